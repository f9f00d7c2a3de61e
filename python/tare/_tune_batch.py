# SPDX-License-Identifier: MIT
"""BatchSizeOptimizer: the batch size that is worth its memory, within the memory and the latency there are.

Sizes are tried in a child that is thrown away (on a GPU, which no child may share, in this process), each for a few steps. A line
through the last points (Theil-Sen) says whether the next may be tried at all; running out of memory is an answer like any other."""

from __future__ import annotations

import functools
import itertools
import math
import os
import statistics
import sys
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator, NamedTuple

from tare import _tare
from tare._tare import in_sentence
from tare._tune import Tuned, confirm, in_bytes, log, setting
from tare._tune_child import Ran, can_fork, in_child, is_out_of_memory
from tare._unknown import Unknown, known

TRUSTED = 0.10  # points of a line that is believed lie this close to it
KNEE = 0.05  # a doubling that gives less is not worth it
EQUAL = 0.97  # rates this close are equal: the smaller batch is taken
STEPS = 4  # of a probe, at least: state of the optimizer comes with the first, workspaces with the second
PROBE_S = 0.2  # a probe takes at least so long: steps of a millisecond say nothing alone
VERIFIED = 20  # steps
SEEDS = 3  # of a metric


class Probe(NamedTuple):
    """One size: "done", "over" memory, "slow" beyond the latency; bytes at the peak; seconds of each step but the first."""

    size: int
    outcome: str
    peak: int
    times: tuple[float, ...]

    @property
    def seconds(self) -> float:
        return statistics.median(self.times)

    @property
    def best_s(self) -> float:
        """The quickest step: what sizes are compared by, since others delay some steps and never hurry one."""
        return min(self.times)

    @property
    def rate(self) -> float:
        return self.size / self.best_s


class BatchSizeOptimizer:
    """`find(step, make_batch)`: step(batch) is one step of training or inference, make_batch(n) a batch of n, of the largest samples
    there are where their sizes differ. The answer is a Tuned whose plan has batch_size."""

    def __init__(self, config: Any = None) -> None:
        self.config = config
        self.probes: list[Probe] = []

    def find(
        self, step: Callable[[Any], Any], make_batch: Callable[[int], Any], *, memory: Any = None, latency_ms: float | None = None,
        metric: Callable[[int], float] | None = None, delta: float = 0.0, base: int = 1, most: int = 1 << 16, effective: int | None = None,
        objective: str = "throughput", margin: float = 0.1,
    ) -> Tuned:  # fmt: skip
        """memory      bytes, "16GiB" or "80%" that the process may hold (of a GPU: on it); by default what is free
        latency_ms  no step may take longer
        metric      metric(batch_size), the more the better: may fall by `delta` at most, over three calls each
        base        the batch size of today, which the gain is measured against
        effective   samples between two updates of the weights: only its divisors are tried, and the plan has `accumulation`
        objective   "throughput": the smallest batch within 3 % of the best rate; "largest": the largest that fits
        margin      share of the memory that stays free"""
        self._check(latency_ms, base, most, effective, objective, margin)
        engine = _engine(self.config, step, make_batch, memory, margin)
        self.probes = []
        with engine.within():
            search = _Search(engine, latency_ms, _sizes(base, most, effective), objective, self.probes)
            tuned = self._answer(search, engine, latency_ms, base, effective)
            if metric is not None and tuned.plan:
                self._keep_metric(tuned, engine, metric, delta, base)
            if tuned.plan and tuned.plan["batch_size"] != base and any(p.size == base and p.outcome == "done" for p in self.probes):
                self._confirm(tuned, engine, base)
                if tuned.verdict == "no_gain" and objective == "throughput":
                    tuned.rejected.append((tuned.plan, tuned.reasons[-1]))
                    tuned.plan = {**tuned.plan, "batch_size": base, **({"accumulation": effective // base} if effective else {})}
        tuned.reasons += engine.remarks
        log.debug("%s", tuned)
        return tuned

    @staticmethod
    def _check(latency_ms: Any, base: int, most: int, effective: Any, objective: str, margin: float) -> None:
        if objective not in ("throughput", "largest"):
            raise ValueError(f"objective={objective!r}: choose throughput or largest")
        if not (1 <= base <= most) or (effective is not None and (effective < 1 or effective % base)):
            raise ValueError(f"1 <= base <= most, and base divides effective: base={base}, most={most}, effective={effective}")
        if not 0 <= margin < 1 or (latency_ms is not None and not latency_ms > 0):
            raise ValueError(f"margin is a share below 1 and latency_ms above 0: margin={margin}, latency_ms={latency_ms}")

    def _answer(self, search: "_Search", engine: Any, latency_ms: Any, base: int, effective: Any) -> Tuned:
        chosen, why = search.run(base)
        tuned = Tuned("batch size", {}, "no_gain", bound=search.bound(base))
        tuned.rejected = [({"batch_size": p.size}, p.outcome) for p in self.probes if p.outcome != "done"]
        tuned.reasons.append(why)
        for back in itertools.chain((0.93, 0.93), itertools.repeat(0.75)):  # a little where a step in twenty takes a little more; then as after any failure
            if not chosen:
                break
            proof = engine.probe(chosen, VERIFIED, latency_ms)
            if proof.outcome == "done":
                break
            tuned.rejected.append(({"batch_size": chosen}, f"{proof.outcome} in {VERIFIED} steps"))
            chosen = max((s for s in search.sizes if s <= back * chosen), default=0)
        if not chosen:
            tuned.verdict = "refused"
            tuned.reasons.append(f"no batch size fits into {in_sentence(engine.cap, 'B')}" + (f" and {latency_ms:g} ms" if latency_ms else ""))
            return tuned
        tuned.plan = {"batch_size": chosen, **({"accumulation": effective // chosen} if effective else {})}
        tuned.reasons.append(
            f"{VERIFIED} steps at {chosen} held at most {in_sentence(proof.peak, 'B')} of {in_sentence(engine.cap, 'B')}, "
            f"{in_sentence(proof.seconds, 's')} a step, the longest {in_sentence(max(proof.times), 's')}"
        )
        if chosen == base:
            tuned.reasons.append("that is the batch size of today: leave it as it is")
        elif chosen < base:
            tuned.verdict = "likely"  # that it runs at all is what is gained; nothing can be measured against what does not
            tuned.reasons.append(f"{base}, the batch size of today, is beyond the limits")
        return tuned

    def _keep_metric(self, tuned: Tuned, engine: Any, metric: Callable[[int], float], delta: float, base: int) -> None:
        """Refused unless the metric is no worse in each of three pairs."""
        size = tuned.plan["batch_size"]
        for _ in range(SEEDS if size != base else 0):
            said = engine.call(lambda: (float(metric(base)), float(metric(size))))
            if said.outcome != "done":
                why = f"the metric {said.outcome}: {said.value}"
            elif not all(map(math.isfinite, said.value)):
                why = f"the metric is {said.value[0]:g} at {base} and {said.value[1]:g} at {size}"
            elif said.value[1] < said.value[0] - delta:
                why = f"the metric falls from {said.value[0]:g} at {base} to {said.value[1]:g} at {size}"
            else:
                continue
            tuned.rejected.append((tuned.plan, why))
            tuned.plan, tuned.verdict = {}, "refused"
            tuned.reasons.append(why)
            return

    def _confirm(self, tuned: Tuned, engine: Any, base: int) -> None:
        """Time per sample, in batches of today and in those of the plan."""
        size = tuned.plan["batch_size"]
        budget = setting(self.config, "budget_s")

        def pairs() -> Tuned:
            today, then = (functools.partial(engine.repeat, engine.make_batch(n), 1) for n in (base, size))
            today.work, then.work = base, size  # type: ignore[attr-defined]
            rule = {"threshold": setting(self.config, "optimization_threshold"), "budget_s": budget}
            return confirm(today, then, what=tuned.what, plan=tuned.plan, **rule)

        said = engine.call(pairs, 2 * budget + engine.timeout_s, both=True)
        if said.outcome != "done":
            tuned.verdict = "refused"
            tuned.reasons.append(f"batches of {base} and {size} in turns: {said.outcome} {said.value or ''}")
            return
        for name in ("verdict", "gain", "ci", "cpu", "memory", "uses_more_cpu", "baseline", "candidate"):
            setattr(tuned, name, getattr(said.value, name))
        tuned.reasons += said.value.reasons
        if known(tuned.bound) and tuned.ci and tuned.ci[0] > tuned.bound:
            tuned.bound = Unknown("measured in turns it is more than the line through single sizes allows: they scatter")


def _sizes(base: int, most: int, effective: int | None) -> list[int]:
    """Where there is a number of samples to an update, its divisors; else all multiples of today's batch, from halves of it on."""
    if effective is not None:
        return [n for n in range(1, min(effective, most) + 1) if effective % n == 0]
    below = [base >> i for i in range(base.bit_length() - 1, 0, -1)]
    return sorted({*below, *range(base, most + 1, base)})


def _below(line: tuple[float, float, float] | None, size: int, limit: float) -> bool:
    """A line that cannot be believed forbids nothing."""
    return line is None or line[2] >= TRUSTED or (line[0] + line[1] * size) * (1 + 2 * line[2]) < limit


class _Search:
    """Doubling while the line through the last points allows it, then halving the gap."""

    def __init__(self, engine: Any, latency_ms: float | None, sizes: list[int], objective: str, probes: list[Probe]) -> None:
        self.engine, self.latency_ms, self.sizes, self.objective, self.probes = engine, latency_ms, sizes, objective, probes

    def _probe(self, size: int) -> Probe:
        probe = self.engine.probe(size, STEPS, self.latency_ms)
        self.probes.append(probe)
        log.debug("batch %d: %s, %s", size, probe.outcome, in_sentence(probe.peak, "B"))
        return probe

    def done(self) -> list[Probe]:
        return sorted((p for p in self.probes if p.outcome == "done"), key=lambda p: p.size)

    def _line(self, of: Callable[[Probe], float], last: int) -> tuple[float, float, float] | None:
        points = [(float(p.size), float(of(p))) for p in self.done()[-last:]]
        return _tare.fit(points) if len(points) >= 3 else None

    def _fits(self, size: int) -> bool:
        """By the line; where there is none that can be believed, it has to be tried."""
        memory, seconds = self._line(lambda p: p.peak, 4), self._line(lambda p: p.seconds, 4)
        latency = self.latency_ms / 1e3 if self.latency_ms is not None else math.inf
        return _below(memory, size, self.engine.cap) and _below(seconds, size, latency)

    def _at_knee(self) -> bool:
        """Two doublings in a row gave little, and so does the line t = t0 + k * size: then the next gives t0 / (t0 + 2 k size)."""
        done = self.done()
        if self.objective == "largest" or len(done) < 4:
            return False
        line = self._line(lambda p: p.best_s, 6)
        measured = all(b.rate / a.rate - 1 < KNEE for a, b in zip(done[-3:-1], done[-2:]))
        by_line = line is not None and line[2] < 0.3 and line[1] > 0 and max(line[0], 0) / (max(line[0], 0) + 2 * line[1] * done[-1].size) < KNEE
        return measured or by_line

    def run(self, base: int = 1) -> tuple[int, str]:
        """The size to take, 0: none, and why it is not more. From today's on; smaller ones where that is beyond the limits."""
        size, beyond = base, None
        why = f"{self.sizes[-1]} is the most that was asked for"
        while beyond is None:
            probe = self._probe(size)
            if probe.outcome != "done":
                beyond, why = size, f"{size} is {'over the memory' if probe.outcome == 'over' else 'beyond the latency'}"
            elif self._at_knee():
                why = f"beyond {size} a doubling gives less than {KNEE:.0%}"
                break
            else:
                following = [s for s in self.sizes if size < s <= 2 * size] or [s for s in self.sizes if s > size][:1]
                if not following:
                    break
                if not self._fits(following[-1]):
                    beyond, why = following[-1], f"{following[-1]} would be beyond the limits by the line through what was measured"
                size = following[-1]
        while beyond is not None and not self.done() and beyond > self.sizes[0]:
            size = max(s for s in self.sizes if s < beyond and (s <= beyond // 2 or s == self.sizes[0]))
            if self._probe(size).outcome != "done":
                beyond = size
        if beyond is not None:
            why = self._close_in(beyond, why)
        return self._choose(), why

    def _close_in(self, beyond: int, why: str) -> str:
        for attempt in range(10):
            low = self.done()[-1].size if self.done() else 0
            between = [s for s in self.sizes if low < s < beyond]
            if not between or beyond <= low * 1.08 + 1:
                break
            size = between[len(between) // 2]
            allowed = [s for s in between if self._fits(s)]
            if len(allowed) < len(between) and attempt < 3:  # as near to the limits as the lines allow; where they mislead, halves
                if not allowed:
                    break
                size = allowed[-1]
            probe = self._probe(size)
            if probe.outcome != "done":
                beyond, why = size, f"{size} is {'over the memory' if probe.outcome == 'over' else 'beyond the latency'}"
        return why

    def _choose(self) -> int:
        done = self.done()
        if not done or self.objective == "largest":
            return done[-1].size if done else 0
        best = max(p.rate for p in done)
        return next(p.size for p in done if p.rate >= EQUAL * best)

    def bound(self, base: int) -> float:
        """How many times as many samples a second an endless batch would give, (t0 + k base) / (k base), and what the points may be off."""
        line = self._line(lambda p: p.best_s, 64)
        if line is None or line[1] <= 0 or line[2] >= 0.3:
            return Unknown("times of too few sizes, or times that scatter: no bound")
        return max(1.0, (line[0] + line[1] * base) * (1 + line[2]) / (line[1] * base * (1 - line[2])))


# ---- where a size is tried ----


class _InChild:
    """On processors: peak of the whole child, from the pages it shares with us on."""

    def __init__(self, config: Any, step: Callable, make_batch: Callable, memory: Any, margin: float) -> None:
        self.step, self.make_batch = step, make_batch
        self.timeout_s = setting(config, "timeout_s")
        self.remarks: list[str] = []
        free = _free_memory()
        asked = min(in_bytes(memory, free), free) if memory is not None else free * setting(config, "max_memory_usage")
        self.cap = asked * (1 - margin)
        if self.cap <= _tare.memory_now()[0]:
            raise ValueError(f"memory={memory!r}: this process holds {in_sentence(_tare.memory_now()[0], 'B')} already")

    @contextmanager
    def within(self) -> Iterator[None]:
        yield

    def call(self, what: Callable[[], Any], timeout_s: float | None = None, both: bool = False) -> Ran:
        """both: two batches are held at once, which may take what is left free."""
        return in_child(what, timeout_s or self.timeout_s, None if both else self.cap)

    def repeat(self, batch: Any, times: int) -> None:
        for _ in range(times):
            self.step(batch)

    def _steps(self, size: int, steps: int, latency_ms: float | None) -> list[float]:
        batch, times = self.make_batch(size), []
        while len(times) < steps or (steps == STEPS and sum(times) < PROBE_S):
            begun = time.perf_counter()
            self.repeat(batch, 1)
            times.append(time.perf_counter() - begun)
            if latency_ms is not None and len(times) >= STEPS and statistics.median(times[1:]) * 1e3 > latency_ms:
                break
        return times

    def probe(self, size: int, steps: int, latency_ms: float | None) -> Probe:
        said = self.call(lambda: self._steps(size, steps, latency_ms))
        if said.outcome == "failed":
            raise RuntimeError(f"a step with a batch of {size} failed: {said.value}")
        if said.outcome == "late":
            raise TimeoutError(f"{steps} steps with a batch of {size} took longer than timeout_s={self.timeout_s:g}")
        times = tuple((said.value or [])[1:])
        slow = latency_ms is not None and times and _late(times, latency_ms / 1e3)
        return Probe(size, "slow" if said.outcome == "done" and slow else said.outcome, said.peak, times)


def _late(times: tuple[float, ...], limit_s: float) -> bool:
    """More than one step in twenty; of few steps, more than half: one that others delayed says nothing."""
    allowed = max(1, len(times) // 20) if len(times) >= VERIFIED - 1 else len(times) // 2
    return sum(t > limit_s for t in times) > allowed


class _OnGpu(_InChild):
    """In this process, under the allocator's own limit; what the steps do to the model stays."""

    def __init__(self, config: Any, step: Callable, make_batch: Callable, memory: Any, margin: float) -> None:
        self.step, self.make_batch, self.cuda = step, make_batch, sys.modules["torch"].cuda
        self.timeout_s = setting(config, "timeout_s")
        self.remarks = ["on a GPU the steps ran in this process: the model has learned from them"]
        free, self.total = self.cuda.mem_get_info()
        free += self.cuda.memory_reserved()
        asked = min(in_bytes(memory, self.total), free) if memory is not None else free * setting(config, "max_memory_usage")
        self.cap = asked * (1 - margin)

    @contextmanager
    def within(self) -> Iterator[None]:
        self.cuda.set_per_process_memory_fraction(min(1.0, self.cap / self.total))
        try:
            yield
        finally:
            self.cuda.set_per_process_memory_fraction(1.0)
            self.cuda.empty_cache()

    def repeat(self, batch: Any, times: int) -> None:
        super().repeat(batch, times)
        self.cuda.synchronize()

    def call(self, what: Callable[[], Any], timeout_s: float | None = None, both: bool = False) -> Ran:
        self.cuda.empty_cache()
        self.cuda.reset_peak_memory_stats()
        try:
            value, outcome = what(), "done"
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            value, outcome = None, "over"
        return Ran(outcome, value, self.cuda.max_memory_reserved())


def _engine(config: Any, step: Callable, make_batch: Callable, memory: Any, margin: float) -> Any:
    return (_OnGpu if can_fork() else _InChild)(config, step, make_batch, memory, margin)


def _free_memory() -> float:
    """What this process holds and what it could still get: of the machine, or of its control group."""
    own = _tare.memory_now()[0]
    now = _tare.sampler_now(("system", "cgroup"), 0.0)
    free = own + now["memory.available"][0] if "memory.available" in now else os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    held, limit = (now.get(name, (math.nan,))[0] for name in ("cgroup.memory", "cgroup.memory.limit"))
    return min(free, own + limit - held) if known(held) and known(limit) and limit > 0 else free
