# SPDX-License-Identifier: MIT
"""DataLoadingOptimizer: workers, threads or the ring, and how far ahead, chosen for a data set, and only what is proved.

One instrumented pass feeds the model (src/analyze/tune/loader_model.h), which names the bottleneck and bounds the gain; a short search
measures what the model expects to be good; the finalist must give the same data and be faster in turns with what it replaces."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import math
import os
import statistics
import sys
import time
import warnings
from typing import Any, Callable

from tare import _tare
from tare import _tune_data_kept as kept
from tare import _tune_data_run as run
from tare import _tune_data_same as same
from tare._tune import DataOptimizationConfig, ProfilingConfig, Spent, Tuned, confirm, pss_bytes, setting
from tare._tune_data_cache import keeper, usable_memory, way_to_keep
from tare._tune_data_watch import Watch, _batches
from tare._unknown import Unknown, known

log = logging.getLogger("tare.tune")

TARGET = (2.0, 4.0)  # what users hope for from a good configuration
_SEARCH_RUNS, _SEARCH_MORE, _UNIT_S, _SHOWN_BYTES, _LARGE = 12, 6, 0.3, 256 << 20, 1 << 20
_LEAST_PAIRS, _SAME_MOST, _BETWEEN = 8, 64, 6  # pairs, as confirm() has it; batches that are compared, and how many more in between
_MOST_DEPTH = 64
_SEARCH_SHARE = 0.6  # of the budget; the rest is for the proof
_PASS_SHARE, _SAME_SHARE, _SAME_LEAST = 0.25, 0.15, 8  # the pass and the replay end there; so many batches are compared in any case
_PASS_LEAST_S = 10.0  # before a pass, or a batch of workers, is said to hang


def optimize_dataset(dataset: Any, config: Any = None) -> Any:
    """The data set, its samples kept in memory where that is proved faster and gives the same; else the data set as it is."""
    return DataLoadingOptimizer(config).optimize_dataset(dataset)


class DataLoadingOptimizer:
    """Makes loaders that are proved to be faster, or the plain one with the reason why. `result` says what was found last."""

    def __init__(self, config: Any = None) -> None:
        setting(config, "apply")
        self.config, self.result = config, None
        self._findings: dict[str, dict[str, Any]] = {}

    # ---- what a user calls ----

    def optimize_dataloader(
        self, dataset: Any, batch_size: Any = 32, shuffle: bool = True, *, step_fn: Callable | None = None,
        equivalence: str | None = None, transport: str = "auto", **given: Any,
    ) -> Any:  # fmt: skip
        """A torch DataLoader (a `Plain` one without torch) over the data set, with the workers that are proved best; its `.tuned` has the
        proof, its `.plan` the settings. Further keywords are DataLoader's own; num_workers and prefetch_factor say what is used today."""
        if isinstance(batch_size, (ProfilingConfig, DataOptimizationConfig)):  # (dataset, config), as some call it
            return DataLoadingOptimizer(batch_size).optimize_dataloader(dataset, 32, shuffle, step_fn=step_fn, **given)
        now = {"mode": "processes", "workers": given.pop("num_workers", 0), "depth": given.pop("prefetch_factor", None) or 2}
        given.pop("persistent_workers", None)
        size, iterable = _length(dataset), run.has_torch() and _is_iterable(dataset)
        if size is None and not iterable and not given.get("sampler") and not given.get("batch_sampler"):
            raise ValueError(f"{type(dataset).__name__} has no length: give it __len__, a sampler=, or make it a torch IterableDataset")
        settings = {"dataset": dataset, **given}
        if not given.get("batch_sampler"):
            settings["batch_size"] = batch_size
        if not iterable and not given.get("sampler") and not given.get("batch_sampler"):
            settings["shuffle"] = bool(shuffle and size != 0)
        if run.has_torch():
            settings = run.settings_of(run.make(settings, {"mode": "processes", "workers": 0}))
        return self._optimize(settings, now, step_fn, equivalence, transport)

    def optimize_existing(self, loader: Any, step_fn: Callable | None = None, *, equivalence: str | None = None, transport: str = "auto") -> Any:
        """The same for a loader that is there; it stays as it is, and comes back itself where nothing is proved better."""
        return self._optimize(*_as_it_is(loader), step_fn, equivalence, transport, loader)

    def apply(self, loader: Any, plan: dict[str, Any]) -> Any:
        """A loader like this one with a plan that was proved before, by `tare tune py:..` or in another run: nothing is measured."""
        settings, now = _as_it_is(loader)
        plan = {**now, **plan}
        if plan.get("cache"):
            settings["dataset"] = keeper(settings["dataset"], plan["cache"]).fill()
        out = run.make(settings, {name: value for name, value in plan.items() if name != "cache"})
        out.plan = plan
        return out

    def identify_bottlenecks(self) -> dict[str, dict[str, Any]]:
        """What holds the loader back that was looked at last: its kind, with evidence, the bound and the costs of the stages. {}: none was."""
        return dict(self._findings)

    def optimize_dataset(self, dataset: Any) -> Any:
        """See optimize_dataset()."""
        from tare._tune_data_cache import cached

        out, self.result = cached(dataset, self.config)
        return out

    def _analyze_dataset(self, dataset: Any) -> dict[str, Any]:
        """Size and habits of a data set from a few samples: what `complexity` means is stated by `sample_cpu_ms` (complex: 1 ms or more)."""
        size = _length(dataset)
        out: dict[str, Any] = {"size": size, "complexity": "unknown", "sample_bytes": None, "sample_ms": None, "sample_cpu_ms": None, "random": None, "reasons": []}
        if not size or not hasattr(dataset, "__getitem__"):
            out["reasons"].append("it is empty" if size == 0 else "it has no length" if size is None else "it has no samples by index")
            return out
        with same.random_kept(), same.deadline(setting(self.config, "timeout_s"), "reading a few samples"):
            costs = run.instrumented({"dataset": dataset, "collate_fn": lambda samples: samples}, iter([_spread(size, 16)]), None)
            habits = same.habits(dataset, _spread(size, 4), setting(self.config, "seed"))
        cpu = sum(c for _, c in costs.stages.values()) / costs.samples
        out.update(
            complexity="complex" if cpu >= 1e-3 else "simple", sample_bytes=costs.bytes // costs.samples, sample_cpu_ms=1e3 * cpu,
            sample_ms=1e3 * statistics.mean(costs.each), random=habits.random,
        )  # fmt: skip
        out["reasons"] += [why for why in (habits.fickle, habits.changes) if why]
        return out

    # ---- how ----

    def _optimize(self, settings: dict, now: dict, step: Callable | None, level: str | None, transport: str, loader: Any = None) -> Any:
        level = level or setting(self.config, "equivalence")
        if level not in same.LEVELS:
            raise ValueError(f"equivalence {level!r}: of a loader, {', '.join(same.LEVELS)}")
        if transport not in ("auto", "queue", "ring"):
            raise ValueError(f"transport {transport!r} is none of auto, queue, ring")
        base = loader if loader is not None else run.make(settings, now)
        task = _Task(self.config, settings, now, step, level, transport)
        found = task.run()
        self._findings, self.result = task.findings, found
        found.applied = found.verdict not in ("refused", "different_data") and found.worth(setting(self.config, "apply"))
        if not found.applied:
            found.plan = {} if found.plan == now else found.plan
        out = self._applied(task, found, base) if found.applied else base
        out.tuned, out.plan = found, found.plan if found.applied else now
        log.info("%s", found)
        return out

    def _applied(self, task: _Task, found: Tuned, base: Any) -> Any:
        """The loader that was found; its first epochs in use are watched, and undo() takes it back."""
        plan, now = found.plan, task.now
        whole = not _is_iterable(task.settings["dataset"])
        loader = run.make(task.settings, plan, watched=whole)
        if not whole:
            found.reasons.append("not watched in use: its workers keep their places in the data")
            return loader

        def back() -> None:
            loader.go_back(base)
            loader.plan = now

        found._undo = back
        queues = tuple(p["workers"] * p["depth"] for p in (now, plan))
        watch = Watch(found, lambda: run.make(task.settings, now, watched=True), queues)
        if not setting(self.config, "monitor_performance"):
            found.reasons.append("not watched in use: monitor_performance is off")
        elif _batches(loader) < watch.least_epoch():
            found.reasons.append(f"not watched in use: an epoch of {len(loader)} batches is too short for it")
        else:
            loader.watch = watch
        return loader


def _as_it_is(loader: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(settings, plan of today) of a loader that may be changed. TypeError: what it does besides would be lost."""
    if run.has_torch():
        from torch.utils.data import DataLoader

        if hasattr(loader, "tuned") and loader.tuned.applied:
            raise TypeError("this loader is tuned already: give the one it was made from")
        if type(loader) is not DataLoader:
            raise TypeError(f"{type(loader).__name__} is not torch's own DataLoader: what it does besides cannot be kept")
    elif not isinstance(loader, run.Plain):
        raise TypeError(f"{type(loader).__name__} is no loader that tare knows without torch")
    return run.settings_of(loader), {"mode": "processes", "workers": loader.num_workers, "depth": loader.prefetch_factor or 2}


@dataclasses.dataclass
class Trial:
    """A plan, and what was measured of it: nanoseconds of batches, with their step; seconds and processor seconds; bytes (PSS, the most
    that was seen at the end of a measurement)."""

    plan: dict[str, Any]
    times: list[int] = dataclasses.field(default_factory=list)
    wall_s: float = 0.0
    cpu_s: float = 0.0
    memory: int | None = None
    failure: str | None = None

    def take(self, stream: run.Stream) -> None:
        self.times += stream.times
        stream.times = []
        self.wall_s, self.cpu_s = self.wall_s + stream.wall_s, self.cpu_s + stream.cpu_s
        self.memory = max(filter(None, (self.memory, pss_bytes())), default=None)


@dataclasses.dataclass
class Wishes:
    """What `tare tune` asks beyond what the calls of the package do: limits, what else may be varied, and who is told how far it is."""

    latency: tuple[float, float] | None = None  # quantile, seconds of a batch
    memory: float | None = None  # bytes
    batches: tuple[int, ...] = ()  # the first is that of today
    only: tuple[str, ...] | None = None
    extras: bool = False  # cache and pinning, too
    explain: bool = False  # the bound alone
    place: str | None = None  # the folder where a search that is not over is kept; None: the package's own
    recalls: bool | None = None  # an earlier search is gone on with; None: as `remember` says
    keeps: bool | None = None  # and this one is kept for the next
    say: Callable[[str], None] = lambda what: None


class _Task:
    """One loader that is looked at."""

    def __init__(self, config: Any, settings: dict, now: dict, step: Callable | None, level: str, transport: str, wishes: Wishes | None = None) -> None:
        self.wishes = wishes or Wishes()
        self.trials: list[Trial] = []
        self.runs, self.recalled, self.to_try = 0, 0, []
        self.judged: list[str] = []  # what confirm() said in words
        self.left: list[str] = []  # what is not touched, and why
        self.more: dict[str, list[Any]] = {}  # further knobs: their values, and number of today's
        self.kept: Any = None  # the data set, all of it in memory
        self.hangs = False
        self.candidate: dict[str, Any] | None = None
        self.config, self.settings, self.now, self.step, self.level, self.transport = config, settings, now, step, level, transport
        self.threshold, self.budget = setting(config, "optimization_threshold"), setting(config, "budget_s")
        self.spent, self.patience_s = Spent(self.budget), math.inf  # with one batch of workers
        self.findings: dict[str, dict[str, Any]] = {}
        self.rejected: list[tuple[dict, str]] = []
        self.streams: list[run.Stream] = []
        self.bound: Any = Unknown("not measured")
        self.ring: dict = {}

    def run(self) -> Tuned:
        """tune() within the limits of the configuration; leaves no worker and every random state as it was."""
        seconds = setting(self.config, "timeout_s")
        try:
            with warnings.catch_warnings(), same.random_kept(self.settings.get("generator")), same.deadline(seconds, "the data set, or the step"):
                warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than processors: what waits may have them
                self.spent.on("one pass")
                out = self.tune()
                out.reasons += filter(None, [self.spent.said()])
                return out
        except same.Hangs as why:
            self.hangs = True
            return self.refused(str(why))
        finally:
            self.end()

    def end(self) -> None:
        for stream in self.streams:
            stream.end(at_once=True)
        self.streams.clear()

    def trial(self, plan: dict) -> Trial:
        for trial in self.trials:
            if trial.plan == plan:
                return trial
        self.trials.append(Trial(plan))
        return self.trials[-1]

    def refused(self, why: str, verdict: str = "refused") -> Tuned:
        return Tuned("data loading", {}, verdict, bound=self.bound, target=TARGET, reasons=[why], rejected=self.rejected)

    def tune(self) -> Tuned:
        dataset, indices = self.settings["dataset"], None
        if not setting(self.config, "optimize_loading"):
            return self.refused("optimize_loading is off")
        if _length(dataset) == 0:
            return self.refused("the data set is empty")
        if not hasattr(dataset, "__getitem__") or _is_iterable(dataset):
            return self._tune_iterable()
        try:
            with same.deadline(min(setting(self.config, "timeout_s"), max(_PASS_LEAST_S, 2 * self.budget)), "one pass over the data set and the step"):
                indices = self._batches()
                costs = run.instrumented(self.settings, iter(indices), self.step, most_s=_PASS_SHARE * self.budget)
                habits = same.habits(dataset, _few(indices), setting(self.config, "seed"))
        except same.Hangs:
            raise
        except Exception as why:
            return self.refused(f"a sample raised {type(why).__name__}: {why}")
        out = self._tune_samples(costs, habits)
        if setting(self.config, "pin_memory") and run.has_torch() and not sys.modules["torch"].cuda.is_available():
            out.reasons.append("pinned memory and copies beside the step are not tried: there is no CUDA device here")
        return out

    def _batches(self) -> list:
        """Index lists of the first batches of an epoch, as the loader's own sampler gives them; the last one too."""
        loader = run.make(self.settings, {"mode": "processes", "workers": 0})
        out = list(itertools.islice(iter(loader._index_sampler), 256))
        if not out:
            raise ValueError("the sampler gives no batch")
        return out

    def _tune_iterable(self) -> Tuned:
        """Order depends on who reads which part: only where each sample once, in any order, is enough, and shown by a whole epoch."""
        if self.level != "multiset" or not run.has_torch():
            return self.refused("an iterable data set gives its samples in another order, or more than once, with workers: only equivalence=\"multiset\" allows it")
        candidate = {"mode": "processes", "workers": 2, "depth": 2}
        try:
            against = same.processes_refused(self.settings["dataset"], None, self.settings.get("multiprocessing_context"))
            found = against[0] if against else same.difference(run.make(self.settings, self.now), run.make(self.settings, candidate), "multiset")
        except Exception as why:
            return self.refused(f"the data set raised {type(why).__name__}: {why}")
        if found:
            self.rejected.append((candidate, found))
            return self.refused(f"{found}: each worker must read its own part (get_worker_info)", "different_data")
        return self._confirm(candidate, None)

    def _tune_samples(self, costs: run.Costs, habits: same.Habits) -> Tuned:
        modes, why = self._modes(costs, habits)
        pipe, planned = self._model(costs, modes, why)
        self.left += why
        self._add_more(costs, habits)
        self.bound = self._bound(pipe, planned)
        self.to_try = [name for name, varies in (("workers", modes), ("prefetch", modes), ("mode", len(modes) > 1)) if varies and self._may(name)]
        self.to_try += [name for name in ("batch", "cache", "pinning") if {"batch": "batch_size", "pinning": "pin_memory"}.get(name, name) in self.more]
        if self.wishes.explain:
            return self.refused("only the bound was asked for", "no_gain")
        if not modes and not self.now["workers"] and not self.more:
            return self.refused("; ".join(why))
        if known(self.bound) and self.bound < 1 + self.threshold and not self.wishes.latency and not self.wishes.memory:
            return self._left(f"at most {self.bound:.2f}x can be gained here, below the {self.threshold:.0%} that a change is worth ({planned['now']['why']})", why)
        if self.level == "bitwise" and habits.random:
            self.settings = dict(self.settings, dataset=same.Seeded(self.settings["dataset"], setting(self.config, "seed")))
        remembers = setting(self.config, "remember")
        mark = kept.mark(self.settings, costs.batch, self.step, self.now, self.level, self.transport, modes, self.threshold) if remembers else None
        out = self._again(mark, costs, pipe, modes, why) if remembers else None
        if out is None:
            before = self._before(costs, modes)
            best = self._search(pipe, planned, modes, before)
            out = self._left("nothing that was tried is faster than what is there", []) if best in (None, self.now) else self._proved(best, pipe)
            if self.recalled and not self.wishes.extras:  # `tare tune` says it itself
                out.reasons.append(f"{self.recalled} measurements are from an earlier search of {before.day}")
            if remembers and out.verdict in ("confirmed", "no_gain"):
                kept.keep(mark, best if out.verdict == "confirmed" else {}, _sample_s(pipe))
                before.forget()
        out.reasons += why
        return out

    def _left(self, reason: str, why: list[str]) -> Tuned:
        out = self.refused(reason, "no_gain")
        out.reasons += why
        return out

    def _model(self, costs: run.Costs, modes: list[str], why: list[str]) -> tuple[dict, dict]:
        """(costs of a sample, what the model says of them); bound and findings are set. The ring is one of the ways where it was asked for, or
        where DataLoader's own transport is what holds the loader back: then its costs are measured too."""
        if "processes" in modes and run.has_torch():
            try:
                run.add_transport(costs, self.settings)
            except same.Hangs:
                raise
            except Exception as failed:
                modes[:] = [mode for mode in modes if mode == "threads"]
                why.append(f"no worker processes: a batch cannot be handed over: {_in_a_line(failed)}")
        self.batch_bytes = costs.bytes
        self.patience_s = max(_PASS_LEAST_S, self.budget / 4, 50 * sum(costs.each) / max(1, costs.batches))
        pipe = costs.pipeline(max(1, costs.samples // costs.batches), self._memory(), _most_workers() if modes else 0)
        planned = _tare.loader_plan(pipe, self.now["mode"], self.now["workers"])
        bound, now = planned["bound"], planned["now"]
        if "ring" in modes and self.transport == "auto" and not _transport_is_the_limit(pipe):
            modes.remove("ring")
        if "ring" in modes:
            self.ring = run.through_ring(costs, self.settings, pipe)
            rate = _tare.loader_predict(self.ring, "processes", _most_workers())["rate"]
            bound = max(bound, rate / now["rate"]) if bound and rate and now["rate"] else bound
        self.bound = Unknown("nothing took any time") if bound is None else bound
        self.findings = {now["limit"]: {"why": now["why"], "bound": bound, "stages_ms": {k: (1e3 * w, 1e3 * c) for k, (w, c) in pipe["stages"].items()}, "predicted": planned["best"], "depth": planned["depth"]}}
        return pipe, planned

    def _again(self, mark: str, costs: run.Costs, pipe: dict, modes: list[str], why: list[str]) -> Tuned | None:
        """What was found before for this program here, proved again without a search; None: nothing was, or it holds no more."""
        before = kept.recall(mark)
        if before is None:
            return None
        plan, ratio = before["plan"], _sample_s(pipe) / before["sample_s"]
        if not plan:
            if 0.5 < ratio < 2:
                return self._left(f"nothing that was tried was faster on {before['day']}, and a sample costs {ratio:.2f} times what it did then", [])
            log.info("a sample costs %.2f times what it did on %s: searched again", ratio, before["day"])
            return None
        if plan["mode"] not in modes or plan["workers"] * plan["depth"] * self.batch_bytes > self._memory():
            log.info("the decision of %s may not be used any more: searched again", before["day"])
            return None
        out = self._proved(plan, pipe, _UNIT_S / 2)
        if out.verdict != "confirmed":
            log.info("the decision of %s (%s) is not confirmed any more: searched again", before["day"], plan)
            self.rejected.append((plan, f"of {before['day']}: " + (out.reasons[0] if out.reasons else out.verdict)))
            return None
        out.reasons.append(f"found on {before['day']}, proved again without a search")
        return out

    def _proved(self, plan: dict, pipe: dict, unit_s: float = _UNIT_S) -> Tuned:
        """The same data, and faster."""
        most = self._shown()
        each = _sample_s(pipe) * pipe["batch"]  # seconds of a batch by this process; the other side takes no longer
        count = max(min(most, _SAME_LEAST), min(most, int(_SAME_SHARE * self.budget / max(4 * each, 1e-9))))
        found = self._differs(plan, count)
        if found:
            self.rejected.append((plan, found))
            return self.refused(f"the data differ: {found}", "different_data")
        out = self._confirm(plan, pipe, unit_s)
        if count < most:
            out.reasons.append(f"the data were compared by the first {count} batches, some in between and the last ones: {most} would take more than {_SAME_SHARE:.0%} of the budget")
        return out

    # ---- what else may be varied ----

    def _add_more(self, costs: run.Costs, habits: same.Habits) -> None:
        for name, add in (("batch", self._add_batches), ("cache", self._add_cache), ("pinning", self._add_pinning)):
            if self.wishes.extras and self._may(name):
                why = add(costs, habits)
                self.left += [f"{name}: {why}"] if why else []

    def _may(self, name: str) -> bool:
        return self.wishes.only is None or name in self.wishes.only

    def _add_batches(self, costs: run.Costs, habits: same.Habits) -> str | None:
        """Where the sizes are said: how much a step learns from changes with it, so none is tried unasked."""
        size = self.settings.get("batch_size")
        if not self.wishes.batches:
            return "it changes what a step learns from; --batch lists those that may be tried, today's first"
        if not size or self.settings.get("batch_sampler") is not None:
            return "the loader has a batch sampler of its own"
        sizes = sorted({size, *self.wishes.batches})
        self.more["batch_size"] = [sizes, sizes.index(size)]
        return None

    def _add_cache(self, costs: run.Costs, habits: same.Habits) -> str | None:
        """Read once, in this process: what is forked later has it in the same memory."""
        dataset, each = self.settings["dataset"], statistics.mean(costs.each)
        how, why = way_to_keep(dataset, habits, _few(self._batches()), self.config)
        if how is None:
            return f"samples cannot be kept: {why}"
        if each * len(dataset) > 0.2 * self.budget:
            return f"reading all {len(dataset)} samples once would take {each * len(dataset):.0f} s of a budget of {self.budget:g} s"
        if not self.wishes.explain:
            self.wishes.say("reading all samples once")
            self.spent.on("reading all samples once")
            self.kept = keeper(dataset, how).fill()
        self.more["cache"] = [[None, how], 0]
        return None

    def _add_pinning(self, costs: run.Costs, habits: same.Habits) -> str | None:
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_available():
            return "there is no GPU to copy to"
        on = bool(self.settings.get("pin_memory"))
        self.more["pin_memory"] = [[on, not on], 0]
        return None

    def _bound(self, pipe: dict, planned: dict) -> Any:
        """Of the settings of the loader; kept samples cost nothing to read, and another batch has other costs, which nothing here tells."""
        if "batch_size" in self.more:
            return Unknown("what another batch costs is only known once it is tried")
        if "cache" not in self.more or not planned["now"]["rate"]:
            return self.bound
        without = _tare.loader_plan(_without_reading(pipe), self.now["mode"], self.now["workers"])
        if without["bound"] is None or not without["now"]["rate"]:
            return Unknown("but for reading samples, nothing took any time")
        best = without["bound"] * without["now"]["rate"] / planned["now"]["rate"]
        return max(best, self.bound) if known(self.bound) else best

    def _over(self, trial: Trial) -> bool:
        """Beyond a limit, by what was measured."""
        wish = self.wishes
        late = wish.latency is not None and trial.times and _quantile(trial.times, wish.latency[0]) > 1e9 * wish.latency[1]
        return bool(late or (wish.memory is not None and trial.memory and trial.memory > wish.memory))

    # ---- which ways ----

    def _modes(self, costs: run.Costs, habits: same.Habits) -> tuple[list[str], list[str]]:
        """Ways of making batches that may be tried, and why others may not."""
        against = [why for why in (habits.fickle, habits.changes) if why]
        if against:
            return [], [f"only this process may read the data set: {why}" for why in against]
        modes, reasons = [], same.processes_refused(self.settings["dataset"], costs.batch, self.settings.get("multiprocessing_context"))
        if not run.has_torch():
            reasons = ["without torch only threads are tried"]
        elif not reasons:
            modes.append("processes")
            forked = same.processes_refused(self.settings["dataset"], costs.batch, "fork") if self.transport != "queue" else None
            modes += ["ring"] if forked == [] else []
            reasons = (forked or []) if self.transport == "ring" else []
        reasons = [f"no worker processes: {why}" for why in reasons]
        if habits.random:
            reasons.append("no threads: the samples draw random numbers from generators that threads would share")
        elif any(isinstance(value, same._HANDLES) for value in getattr(self.settings["dataset"], "__dict__", {}).values()):
            reasons.append("no threads: the data set has an open handle that they would share")
        elif self.transport != "ring":
            modes.append("threads")
        return modes, reasons

    def _memory(self) -> float:
        """Bytes that batches in queues may take: of the limit of the configuration, of what is free, and of /dev/shm."""
        most = usable_memory(self.config)
        try:
            shm = os.statvfs("/dev/shm")
            most = min(most, 0.8 * shm.f_bavail * shm.f_frsize)
        except OSError:
            pass
        return most

    # ---- search ----

    def _before(self, costs: run.Costs, modes: list[str]) -> kept.Search:
        """The search of this loader, with these limits, that was begun before; what is measured now goes there, too."""
        wish, remembers = self.wishes, setting(self.config, "remember")
        more = (wish.latency, wish.memory, wish.batches, wish.only, sorted(self.more), setting(self.config, "seed"))
        mark = kept.mark(self.settings, costs.batch, self.step, self.now, self.level, self.transport, modes, more)
        recalls, keeps = (remembers if wanted is None else wanted for wanted in (wish.recalls, wish.keeps))
        return kept.Search(mark, wish.place or kept.folder(), recalls, keeps)

    def _search(self, pipe: dict, planned: dict, modes: list[str], before: kept.Search) -> dict | None:
        """Measures what the model expects to be good, in turns with what is used today."""
        star, most = max(1, planned["best"]["workers"], math.ceil(pipe["cores"])), max(_most_workers(), self.now["workers"])
        told = [plan for block in before.blocks for plan, _ in block]
        wanted = {0, 1, self.now["workers"], round(star / 1.6), star, round(1.4 * star + 1), *(1 << i for i in range(6) if 1 << i <= 2 * star)}
        workers = sorted(w for w in wanted.union(plan["workers"] for plan in told) if 0 <= w <= most)
        depths = sorted({2, self.now["depth"], max(1, planned["depth"]), *(plan["depth"] for plan in told if 1 <= plan["depth"] <= _MOST_DEPTH)})
        kinds = [self.now["mode"]] + [m for m in modes if m != self.now["mode"]] if self.now["workers"] or "processes" in modes else [*modes, self.now["mode"]]
        workers = workers if self._may("workers") else [self.now["workers"]]
        depths = depths if self._may("prefetch") else [self.now["depth"]]
        kinds = kinds if self._may("mode") else [self.now["mode"]]
        memory = self._memory()

        def plan_at(at: tuple) -> dict[str, Any]:
            more = {name: values[at[3 + i]] for i, (name, (values, base)) in enumerate(self.more.items()) if at[3 + i] != base}
            return {"mode": kinds[at[2]], "workers": workers[at[0]], "depth": depths[at[1]], **more}

        def allowed(at: tuple) -> bool:
            plan = plan_at(at)
            if not plan["workers"]:
                return at[1] == depths.index(self.now["depth"]) and plan["mode"] == self.now["mode"]
            if all(plan[name] == self.now[name] for name in self.now):
                return True
            larger = plan.get("batch_size", 1) / (self.settings.get("batch_size") or 1) if "batch_size" in plan else 1
            return plan["mode"] in modes and plan["workers"] * plan["depth"] * self.batch_bytes * larger <= memory

        def predict(at: tuple) -> float:
            plan = plan_at(at)
            costs = self.ring if plan["mode"] == "ring" else pipe
            costs = _without_reading(costs) if plan.get("cache") else costs
            rate = _tare.loader_predict(costs, "threads" if plan["mode"] == "threads" else "processes", plan["workers"])["rate"]
            return -math.log(rate) if rate else 0.0

        knobs = [("workers", len(workers), True, False), ("depth", len(depths), True, False), ("mode", len(kinds), False, False)]
        knobs += [(name, len(values), name == "batch_size", name == "batch_size") for name, (values, _) in self.more.items()]
        start = (workers.index(self.now["workers"]), depths.index(self.now["depth"]), kinds.index(self.now["mode"]), *(base for _, base in self.more.values()))
        runs = _SEARCH_RUNS + _SEARCH_MORE * len(self.more)
        search = _tare.Search(knobs, start, runs, setting(self.config, "seed") + 1, equal=0.03, allowed=allowed, predict=predict)
        at_plan = {tuple(sorted(plan_at(at).items())): at for at in itertools.product(*(range(n) for _, n, _, _ in knobs)) if allowed(at)}
        self._recall(search, before, lambda plan: at_plan.get(tuple(sorted(plan.items()))))
        block: Any = None
        self.spent.on("the search")
        while not before.is_over(self.budget) and (not self.trials or self.spent.left_s(_SEARCH_SHARE) > 0) and (block := search.ask()):
            before.blocks.append([(plan_at(at), self._cost(plan_at(at))) for at in block])
            search.tell(block, [cost for _, cost in before.blocks[-1]])
            before.save(self._told_trials(), False, self.budget)
        before.save(self._told_trials(), True, max(self.budget, before.budget_s))
        tried, best = search.tried()
        for at, outcome, _, ratio in tried:
            said = f"{ratio[0]:.2f} of the time in the search" if ratio else outcome
            if at != tried[best][0] and plan_at(at) != self.now:
                self.rejected.append((plan_at(at), said))
        return plan_at(tried[best][0]) if tried[best][1] == "measured" else None

    def _recall(self, search: Any, before: kept.Search, number: Callable[[dict], tuple | None]) -> None:
        """Tells what an earlier search measured. A block with a plan that is not to be tried any more is measured anew."""
        told, before.blocks = before.blocks, []
        for block in told:
            points = [number(plan) for plan, _ in block]
            if not points or None in points:
                continue
            try:
                search.tell(points, [cost for _, cost in block])
            except ValueError:  # as many as can be told
                break
            before.blocks.append(block)
            self.recalled += len(block)
        plans = [plan for block in before.blocks for plan, _ in block]
        self.trials += [Trial(**trial) for trial in before.trials if trial["plan"] in plans]
        before.done = before.done and self.recalled > 0

    def _told_trials(self) -> list[dict[str, Any]]:
        return [vars(trial) for trial in self.trials]

    def _stream(self, plan: dict) -> run.Stream:
        settings = dict(self.settings, dataset=self.kept) if plan.get("cache") else self.settings
        loader = run.make(settings, {k: v for k, v in plan.items() if k != "cache"}, timeout=min(setting(self.config, "timeout_s"), self.patience_s))
        per = (loader.batch_size or 1) if "batch_size" in self.more else 1
        self.streams.append(run.Stream(loader, plan["workers"] * plan["depth"], self.step, per))
        return self.streams[-1]

    def _cost(self, plan: dict) -> Any:
        """Seconds of a batch, or of a sample where batches differ; as _tare.Search is told it."""
        self.wishes.say(f"{len(self.trials)} configurations tried")
        self.runs += 1
        trial, stream, failed = self.trial(plan), self._stream(plan), True
        try:
            cost = run.seconds_a_batch(stream, most_s=self.budget / 8) / stream.per
            trial.take(stream)
            failed = False
            return ("over", cost) if self._over(trial) else cost
        except (same.Hangs, KeyboardInterrupt):
            raise
        except Exception as why:
            trial.failure = _in_a_line(why)
            self.rejected.append((plan, trial.failure))
            return None
        finally:
            stream.end(at_once=failed)
            self.streams.remove(stream)

    # ---- proof ----

    def _shown(self) -> int:
        """Batches that are compared."""
        return max(2, min(_SAME_MOST, _SHOWN_BYTES // max(1, self.batch_bytes)))

    def _differs(self, plan: dict, most: int | None = None) -> str | None:
        """Replays the first batches of an epoch, some in between and the last ones through both."""
        most = most or self._shown()
        base = {"mode": "processes", "workers": 0, "depth": 2, **{name: plan[name] for name in ("batch_size",) if name in plan}}
        self.wishes.say("the same data?")
        self.spent.on("the same data")
        seed = setting(self.config, "seed")
        pairs = [(self.settings, most)]
        tail = self._tail(most)
        if tail is not None:
            pairs.append((tail, most))
        for settings, count in pairs:
            if self.level == "order":  # what is drawn may differ, what is not must not: both sides get generators by sample
                settings = dict(settings, dataset=same.Seeded(settings["dataset"], seed)) if "threads" != plan["mode"] else settings
            found = same.difference(run.make(settings, base), run.make(settings, plan), self.level if settings is not tail else "order", seed, count)
            if found and "more than" in found and self.level == "multiset":
                found = same.difference(run.make(settings, base), run.make(settings, plan), "order", seed, count)
            if found:
                return found
        return None

    def _tail(self, most: int) -> dict | None:
        """The same loader over some batches in between and the last ones; None: they are among the first, or cannot be known."""
        if not run.has_torch() or _length(self.settings["dataset"]) is None:
            return None
        loader = run.make(self.settings, {"mode": "processes", "workers": 0})
        batches = list(loader._index_sampler)
        if len(batches) <= most or not isinstance(batches[-1], list):
            return None
        kept = {k: v for k, v in self.settings.items() if k not in ("batch_size", "sampler", "drop_last", "shuffle", "batch_sampler")}
        between = sorted({most + at for at in _spread(max(1, len(batches) - 2 - most), _BETWEEN)} - {len(batches) - 2, len(batches) - 1})
        return dict(kept, batch_sampler=[batches[at] for at in between] + batches[-2:])

    def _confirm(self, plan: dict, pipe: dict | None, unit_s: float = _UNIT_S) -> Tuned:
        base, candidate = self._stream(self.now), self._stream(plan)
        try:
            base.short = candidate.short = base.short or candidate.short
            base.other, candidate.other = candidate, base
            most_s = max(unit_s, (1 - _SEARCH_SHARE) * self.budget / (2 * _LEAST_PAIRS))
            pair = base.sized(unit_s, most_s) * base.batches
            alone = pss_bytes()
            pair += candidate.sized(unit_s, most_s) * candidate.batches + base.rest_s + candidate.rest_s
            both = pss_bytes()
            self.candidate = plan
            self.wishes.say("proof")
            self.spent.on("the proof, with its least pairs")
            bound = max(self.bound, 1 + self.threshold) if known(self.bound) else None
            left = max(self.spent.left_s(), 2 * _LEAST_PAIRS * pair)  # without its least pairs all the rest was for nothing
            out = confirm(base, candidate, what="data loading", plan=plan, threshold=self.threshold, budget_s=left, bound=bound, target=TARGET)
            self.judged = list(out.reasons)
            for stream, of in ((base, self.now), (candidate, plan)):
                self.trial(of).times += stream.times
        except same.Hangs:
            raise
        except Exception as why:
            return self.refused(f"{plan['workers']} {plan['mode']} failed: {_in_a_line(why)}")
        out.bound, out.rejected, out.memory = self.bound, self.rejected, None  # both ran beside each other: pairs cannot tell their memory apart
        if alone and both and out.baseline:
            out.reasons.append(f"its workers and queues take {max(0, both - alone) / 2**20:.0f} MiB more (PSS, read once)")
        self._too_good(out)
        self._veto(out, pipe)
        if self.step is None:
            out.reasons.append("the loader alone, without a step: the gain of the training is unknown")
        return out

    def _too_good(self, out: Tuned) -> None:
        """More than the loader's own costs allow was gained from other programs that gave way, and goes when they do not."""
        if out.verdict in ("confirmed", "likely") and out.ci and known(self.bound) and out.ci[0] > 1.05 * self.bound:
            out.verdict = "no_gain"
            out.reasons.insert(0, f"more was measured than can be gained here ({self.bound:.2f}x): other programs gave way, which is no gain of the loader")

    def _veto(self, out: Tuned, pipe: dict | None) -> None:
        """A gain that takes processors from others is none: more CPU a batch while all processors are busy."""
        if out.verdict not in ("confirmed", "likely") or not out.uses_more_cpu or not out.candidate:
            return
        busy = statistics.median(unit.cpu_s / unit.wall_s for unit in out.candidate)
        have = pipe["cores"] if pipe else run.cores()
        if busy > 0.8 * have:
            out.verdict = "refused"
            out.reasons.insert(0, f"{out.cpu[0]:.2f}x the processor time for a batch, with {busy:.1f} of {have:g} cores busy: it is taken from others")


# ---- small things ----


def _without_reading(pipe: dict) -> dict:
    return dict(pipe, stages={name: cost for name, cost in pipe["stages"].items() if name not in ("fetch", "decode", "transform")})


def _quantile(times: list[int], q: float) -> float:
    """As stats_quantile_sorted() of the core has it: the same batches are within a limit here and there."""
    x, at = sorted(times), (len(times) - 1) * q
    low = int(at)
    return x[low] + (x[min(low + 1, len(x) - 1)] - x[low]) * (at - low)


def _in_a_line(why: BaseException) -> str:
    """What was raised; of a worker's traceback its last line."""
    lines = [line.strip() for line in str(why).splitlines() if line.strip()] or [""]
    return f"{type(why).__name__}: {lines[0]}" if len(lines) == 1 else f"{type(why).__name__}: {lines[0].rstrip('.')}: {lines[-1]}"


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None


def _sample_s(pipe: dict) -> float:
    """Seconds of a sample by one process alone."""
    return sum(wall for name, (wall, _) in pipe["stages"].items() if name not in ("send", "receive"))


def _transport_is_the_limit(pipe: dict) -> bool:
    """Whether stacking and handing over take more than all else that is done for a batch, and a batch is large enough for the memory it is
    stacked in to matter: smaller ones are made faster than any other process can hand them over."""
    cost = {name: cpu for name, (_, cpu) in pipe["stages"].items()}
    moved = sum(cost.get(name, 0.0) for name in ("collate", "send", "receive"))
    made = sum(wall for name, (wall, _) in pipe["stages"].items() if name in ("fetch", "decode", "transform"))
    return pipe["batch_bytes"] >= _LARGE and moved > made


def _most_workers() -> int:
    """Workers that wait may be more than processors; eight, or two for each."""
    return max(8, math.ceil(2 * run.cores()))


def _is_iterable(dataset: Any) -> bool:
    return run._is_iterable(dataset)


def _spread(size: int, most: int) -> list[int]:
    """Indices over the whole range, the first and the last among them."""
    return sorted({round(i * (size - 1) / max(1, most - 1)) for i in range(most)})


def _few(batches: list) -> list:
    """Some indices of the first batches."""
    flat = [i for batch in batches[:8] for i in (batch if isinstance(batch, list) else [batch])]
    return [flat[at] for at in _spread(len(flat), 6)]
