# SPDX-License-Identifier: MIT
"""DataLoadingOptimizer: workers, threads or the ring, and how far ahead, chosen for a data set, and only what is proved.

One instrumented pass feeds the model (src/analyze/tune/loader_model.h), which names the bottleneck and bounds the gain; a short search
measures what the model expects to be good; the finalist must give the same data and be faster in turns with what it replaces."""

from __future__ import annotations

import itertools
import logging
import math
import os
import statistics
import warnings
from typing import Any, Callable

from tare import _tare
from tare import _tune_data_kept as kept
from tare import _tune_data_run as run
from tare import _tune_data_same as same
from tare._tune import DataOptimizationConfig, ProfilingConfig, Tuned, confirm, in_bytes, pss_bytes, setting
from tare._tune_data_watch import Watch, _batches
from tare._unknown import Unknown, known

log = logging.getLogger("tare.tune")

TARGET = (2.0, 4.0)  # what users hope for from a good configuration
_SEARCH_RUNS, _UNIT_S, _SHOWN_BYTES, _LARGE = 12, 0.3, 256 << 20, 1 << 20


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
        if run.has_torch():
            from torch.utils.data import DataLoader

            if hasattr(loader, "tuned") and loader.tuned.applied:
                raise TypeError("this loader is tuned already: give the one it was made from")
            if type(loader) is not DataLoader:
                raise TypeError(f"{type(loader).__name__} is not torch's own DataLoader: what it does besides cannot be kept")
        elif not isinstance(loader, run.Plain):
            raise TypeError(f"{type(loader).__name__} is no loader that tare knows without torch")
        now = {"mode": "processes", "workers": loader.num_workers, "depth": loader.prefetch_factor or 2}
        return self._optimize(run.settings_of(loader), now, step_fn, equivalence, transport, loader)

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
        seconds = setting(self.config, "timeout_s")
        try:
            with warnings.catch_warnings(), same.random_kept(settings.get("generator")), same.deadline(seconds, "the data set, or the step"):
                warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than processors: what waits may have them
                found = task.tune()
        except same.Hangs as why:
            found = task.refused(str(why))
        finally:
            task.end()
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


class _Task:
    """One loader that is looked at."""

    def __init__(self, config: Any, settings: dict, now: dict, step: Callable | None, level: str, transport: str) -> None:
        self.config, self.settings, self.now, self.step, self.level, self.transport = config, settings, now, step, level, transport
        self.threshold, self.budget = setting(config, "optimization_threshold"), setting(config, "budget_s")
        self.findings: dict[str, dict[str, Any]] = {}
        self.rejected: list[tuple[dict, str]] = []
        self.streams: list[run.Stream] = []
        self.bound: Any = Unknown("not measured")
        self.ring: dict = {}

    def end(self) -> None:
        for stream in self.streams:
            stream.end()
        self.streams.clear()

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
            indices = self._batches()
            costs = run.instrumented(self.settings, iter(indices), self.step)
            habits = same.habits(dataset, _few(indices), setting(self.config, "seed"))
        except same.Hangs:
            raise
        except Exception as why:
            return self.refused(f"a sample raised {type(why).__name__}: {why}")
        return self._tune_samples(costs, habits)

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
        pipe, planned = self._model(costs, modes)
        if not modes and not self.now["workers"]:
            return self.refused("; ".join(why))
        if known(self.bound) and self.bound < 1 + self.threshold:
            return self._left(f"at most {self.bound:.2f}x can be gained here, below the {self.threshold:.0%} that a change is worth ({planned['now']['why']})", why)
        if self.level == "bitwise" and habits.random:
            self.settings = dict(self.settings, dataset=same.Seeded(self.settings["dataset"], setting(self.config, "seed")))
        remembers = setting(self.config, "remember")
        mark = kept.mark(self.settings, costs.batch, self.step, self.now, self.level, self.transport, modes, self.threshold) if remembers else None
        out = self._again(mark, costs, pipe, modes, why) if remembers else None
        if out is None:
            best = self._search(pipe, planned, modes)
            out = self._left("nothing that was tried is faster than what is there", []) if best in (None, self.now) else self._proved(best, pipe)
            if remembers and out.verdict in ("confirmed", "no_gain"):
                kept.keep(mark, best if out.verdict == "confirmed" else {}, _sample_s(pipe))
        out.reasons += why
        return out

    def _left(self, reason: str, why: list[str]) -> Tuned:
        out = self.refused(reason, "no_gain")
        out.reasons += why
        return out

    def _model(self, costs: run.Costs, modes: list[str]) -> tuple[dict, dict]:
        """(costs of a sample, what the model says of them); bound and findings are set. The ring is one of the ways where it was asked for, or
        where DataLoader's own transport is what holds the loader back: then its costs are measured too."""
        if "processes" in modes and run.has_torch():
            run.add_transport(costs, self.settings)
        self.batch_bytes = costs.bytes
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
        found = self._differs(plan)
        if found:
            self.rejected.append((plan, found))
            return self.refused(f"the data differ: {found}", "different_data")
        return self._confirm(plan, pipe, unit_s)

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
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * setting(self.config, "max_memory_usage")
        limit = setting(self.config, "memory_limit")
        most = min(free, in_bytes(limit, free)) if limit is not None else free
        try:
            shm = os.statvfs("/dev/shm")
            most = min(most, 0.8 * shm.f_bavail * shm.f_frsize)
        except OSError:
            pass
        return most

    # ---- search ----

    def _search(self, pipe: dict, planned: dict, modes: list[str]) -> dict | None:
        """Measures what the model expects to be good, in turns with what is used today."""
        star = max(1, planned["best"]["workers"], math.ceil(pipe["cores"]))
        wanted = {0, 1, self.now["workers"], round(star / 1.6), star, round(1.4 * star + 1), *(1 << i for i in range(6) if 1 << i <= 2 * star)}
        workers = sorted(w for w in wanted if 0 <= w <= max(_most_workers(), self.now["workers"]))
        depths = sorted({2, self.now["depth"], max(1, planned["depth"])})
        kinds = [self.now["mode"]] + [m for m in modes if m != self.now["mode"]] if self.now["workers"] or "processes" in modes else [*modes, self.now["mode"]]
        memory = self._memory()

        def plan_at(at: tuple) -> dict[str, Any]:
            return {"mode": kinds[at[2]], "workers": workers[at[0]], "depth": depths[at[1]]}

        def allowed(at: tuple) -> bool:
            plan = plan_at(at)
            if not plan["workers"]:
                return at[1] == depths.index(self.now["depth"]) and plan["mode"] == self.now["mode"]
            if plan == self.now:
                return True
            return plan["mode"] in modes and plan["workers"] * plan["depth"] * self.batch_bytes <= memory

        def predict(at: tuple) -> float:
            plan = plan_at(at)
            costs = self.ring if plan["mode"] == "ring" else pipe
            rate = _tare.loader_predict(costs, "threads" if plan["mode"] == "threads" else "processes", plan["workers"])["rate"]
            return -math.log(rate) if rate else 0.0

        knobs = [("workers", len(workers), True, False), ("depth", len(depths), True, False), ("mode", len(kinds), False, False)]
        start = (workers.index(self.now["workers"]), depths.index(self.now["depth"]), kinds.index(self.now["mode"]))
        search = _tare.Search(knobs, start, _SEARCH_RUNS, setting(self.config, "seed") + 1, equal=0.03, allowed=allowed, predict=predict)
        while block := search.ask():
            search.tell(block, [self._cost(plan_at(at)) for at in block])
        tried, best = search.tried()
        for at, outcome, _, ratio in tried:
            said = f"{ratio[0]:.2f} of the time in the search" if ratio else outcome
            if at != tried[best][0] and plan_at(at) != self.now:
                self.rejected.append((plan_at(at), said))
        return plan_at(tried[best][0]) if tried[best][1] == "measured" else None

    def _stream(self, plan: dict) -> run.Stream:
        loader = run.make(self.settings, plan, timeout=setting(self.config, "timeout_s"))
        self.streams.append(run.Stream(loader, plan["workers"] * plan["depth"], self.step))
        return self.streams[-1]

    def _cost(self, plan: dict) -> float | None:
        stream = self._stream(plan)
        try:
            return run.seconds_a_batch(stream)
        except (same.Hangs, KeyboardInterrupt):
            raise
        except Exception as why:
            self.rejected.append((plan, f"{type(why).__name__}: {why}"))
            return None
        finally:
            stream.end()
            self.streams.remove(stream)

    # ---- proof ----

    def _differs(self, plan: dict) -> str | None:
        """Replays the first batches of an epoch, and the last ones, through both."""
        most = max(2, min(64, _SHOWN_BYTES // max(1, self.batch_bytes)))
        base = {"mode": "processes", "workers": 0, "depth": 2}
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
        """The same loader over the last batches only; None: they are among the first, or cannot be known."""
        if not run.has_torch() or _length(self.settings["dataset"]) is None:
            return None
        loader = run.make(self.settings, {"mode": "processes", "workers": 0})
        batches = list(loader._index_sampler)
        if len(batches) <= most or not isinstance(batches[-1], list):
            return None
        kept = {k: v for k, v in self.settings.items() if k not in ("batch_size", "sampler", "drop_last", "shuffle", "batch_sampler")}
        return dict(kept, batch_sampler=batches[-2:])

    def _confirm(self, plan: dict, pipe: dict | None, unit_s: float = _UNIT_S) -> Tuned:
        base, candidate = self._stream(self.now), self._stream(plan)
        try:
            base.short = candidate.short = base.short or candidate.short
            base.other, candidate.other = candidate, base
            base.sized(unit_s)
            alone = pss_bytes()
            candidate.sized(unit_s)
            both = pss_bytes()
            bound = max(self.bound, 1 + self.threshold) if known(self.bound) else None
            out = confirm(base, candidate, what="data loading", plan=plan, threshold=self.threshold, budget_s=self.budget, bound=bound, target=TARGET)
        except same.Hangs:
            raise
        except Exception as why:
            return self.refused(f"{plan['workers']} {plan['mode']} failed: {type(why).__name__}: {why}")
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
            out.reasons.append(f"more was measured than can be gained here ({self.bound:.2f}x): other programs gave way, which is no gain of the loader")

    def _veto(self, out: Tuned, pipe: dict | None) -> None:
        """A gain that takes processors from others is none: more CPU a batch while all processors are busy."""
        if out.verdict not in ("confirmed", "likely") or not out.uses_more_cpu or not out.candidate:
            return
        busy = statistics.median(unit.cpu_s / unit.wall_s for unit in out.candidate)
        have = pipe["cores"] if pipe else run.cores()
        if busy > 0.8 * have:
            out.verdict = "refused"
            out.reasons.append(f"{out.cpu[0]:.2f}x the processor time for a batch, with {busy:.1f} of {have:g} cores busy: it is taken from others")


# ---- small things ----


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
