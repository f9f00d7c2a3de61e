# SPDX-License-Identifier: MIT
"""What all optimizers share: their configurations, the pairs that confirm a gain, and the one form of result.

Nothing is said to be faster that was not measured in turns with what it replaces (`confirm`); nothing is applied that was not
confirmed; what gives other results is refused, with the first difference. docs/tuning.md has the rules."""

from __future__ import annotations

import dataclasses
import difflib
import json
import logging
import math
import os
import resource
import statistics
import struct
import sys
import time
from typing import Any, Callable, Iterable, Iterator, NamedTuple

from tare import _tare
from tare._tare import in_sentence
from tare._unknown import Unknown, known, plain

log = logging.getLogger("tare.tune")

VERDICTS = ("confirmed", "likely", "no_gain", "refused", "different_data", "over_budget")
APPLY = {"never": (), "confirmed": ("confirmed",), "likely": ("confirmed", "likely")}
EQUIVALENCE = ("bitwise", "order", "multiset", "tolerance")
_JUDGED = {"confirmed": "confirmed", "likely": "likely", "no gain": "no_gain", "worse": "no_gain", "not shown": "no_gain"}


# ---- configurations ----

_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "flag": (lambda v: isinstance(v, bool), "True or False"),
    "count": (lambda v: _is_count(v) and v >= 0, "a whole number, 0 or more"),
    "some": (lambda v: _is_count(v) and v >= 1, "a whole number above 0"),
    "amount": (lambda v: _is_number(v) and v >= 0, "a number, 0 or more"),
    "seconds": (lambda v: _is_number(v) and v > 0, "seconds above 0"),
    "share": (lambda v: _is_number(v) and 0 < v <= 1, "a share above 0, at most 1"),
    "path": (lambda v: isinstance(v, (str, os.PathLike)) and bool(os.fspath(v)), "a path"),
    "text": (lambda v: v is None or isinstance(v, str), "a word or None"),
    "size": (lambda v: v is None or isinstance(v, (int, float, str)), 'bytes, a text like "16GiB" or "80%", or None'),
    "equivalence": (lambda v: v in EQUIVALENCE, " or ".join(EQUIVALENCE)),
    "apply": (lambda v: v in APPLY, " or ".join(APPLY)),
}


def _is_number(v: Any) -> bool:
    return isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v)


def _is_count(v: Any) -> bool:
    return isinstance(v, int) and not isinstance(v, bool)


def _key(default: Any, rule: str) -> Any:
    return dataclasses.field(default=default, metadata={"rule": rule})


def _configuration(cls: type) -> type:
    """A dataclass whose unknown keys and impossible values are errors, when it is made and when it is changed."""
    cls = dataclasses.dataclass(cls)
    rules = {field.name: field.metadata["rule"] for field in dataclasses.fields(cls)}
    made = cls.__init__

    def __init__(self: Any, **given: Any) -> None:
        for name in given:
            if name not in rules:
                raise TypeError(_unknown_key(cls, name, rules))
        made(self, **given)

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if name not in rules:
            raise AttributeError(_unknown_key(cls, name, rules))
        allowed, words = _RULES[rules[name]]
        if not allowed(value):
            raise ValueError(f"{cls.__name__}: {name} is {words}, not {value!r}")
        object.__setattr__(self, name, value)

    cls.__init__, cls.__setattr__ = __init__, __setattr__  # type: ignore[misc, assignment]
    return cls


def _unknown_key(cls: type, name: str, rules: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(rules), 1, 0.5)
    return f"{cls.__name__} has no key {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


@_configuration
class ProfilingConfig:
    """What is profiled, and when a change is worth it. Times in seconds, memory in bytes."""

    enabled: bool = _key(True, "flag")
    profile_cpu: bool = _key(True, "flag")
    profile_memory: bool = _key(True, "flag")
    profile_gpu: bool = _key(True, "flag")
    profile_data_loading: bool = _key(True, "flag")
    profile_preprocessing: bool = _key(True, "flag")
    profile_depth: int = _key(10, "some")
    min_time_threshold: float = _key(0.001, "amount")
    min_memory_threshold: float = _key(1024 * 1024, "amount")
    save_profiles: bool = _key(False, "flag")
    profile_dir: str = _key("profiles", "path")
    auto_optimize: bool = _key(True, "flag")
    optimization_threshold: float = _key(0.1, "amount")
    real_time_monitoring: bool = _key(True, "flag")
    alert_threshold: float = _key(5.0, "seconds")
    monitoring_interval: float = _key(1.0, "seconds")
    log_precision: bool = _key(False, "flag")
    log_memory_usage: bool = _key(False, "flag")
    budget_s: float = _key(60.0, "seconds")
    timeout_s: float = _key(600.0, "seconds")
    memory_limit: Any = _key(None, "size")
    equivalence: str = _key("order", "equivalence")
    apply: str = _key("confirmed", "apply")
    seed: int = _key(0, "count")


@_configuration
class DataOptimizationConfig:
    """What may be changed about loading, preprocessing, memory and files, and within which limits."""

    optimize_loading: bool = _key(True, "flag")
    prefetch_factor: int = _key(2, "some")
    num_workers: int = _key(4, "count")
    pin_memory: bool = _key(True, "flag")
    persistent_workers: bool = _key(True, "flag")
    memory_efficient: bool = _key(True, "flag")
    max_memory_usage: float = _key(0.8, "share")
    chunk_size: int = _key(1000, "some")
    enable_caching: bool = _key(True, "flag")
    cache_dir: str = _key("cache", "path")
    cache_size: int = _key(1000, "count")
    remember: bool = _key(True, "flag")
    streaming: bool = _key(False, "flag")
    optimize_preprocessing: bool = _key(True, "flag")
    batch_preprocessing: bool = _key(True, "flag")
    parallel_preprocessing: bool = _key(True, "flag")
    preprocessing_workers: int = _key(2, "some")
    optimize_io: bool = _key(True, "flag")
    compression: str | None = _key("auto", "text")
    buffer_size: int = _key(8192, "some")
    async_io: bool = _key(True, "flag")
    monitor_performance: bool = _key(True, "flag")
    log_metrics: bool = _key(True, "flag")
    alert_threshold: float = _key(5.0, "seconds")
    mixed_precision: bool = _key(False, "flag")
    optimization_threshold: float = _key(0.1, "amount")
    budget_s: float = _key(60.0, "seconds")
    timeout_s: float = _key(600.0, "seconds")
    memory_limit: Any = _key(None, "size")
    equivalence: str = _key("order", "equivalence")
    apply: str = _key("confirmed", "apply")
    seed: int = _key(0, "count")


def setting(config: Any, name: str) -> Any:
    """A key of either configuration, whichever was given; its default where the one given has no such key, or none was given."""
    if config is not None and not isinstance(config, (ProfilingConfig, DataOptimizationConfig)):
        raise TypeError(f"a configuration is a ProfilingConfig or a DataOptimizationConfig, not {type(config).__name__}")
    for kind in (config, DataOptimizationConfig, ProfilingConfig):
        if hasattr(kind, name):
            return getattr(kind, name)
    raise AttributeError(f"no configuration has the key {name!r}")


def in_bytes(size: Any, whole: float | None = None) -> int:
    """Bytes of a number, of "16GiB" or "4GB" or, of a whole, "80%". ValueError that says what it takes."""
    try:
        share = whole is not None and isinstance(size, str) and size.strip().endswith("%")
        value = float(size.strip()[:-1]) / 100 * whole if share else _tare.in_bytes(str(size).strip())
        if not (math.isfinite(value) and value > 0):
            raise ValueError
    except ValueError:
        raise ValueError(f'{size!r} is no size above 0: bytes, or a text like "16GiB", "512MB"' + (', "80%"' if whole else "")) from None
    return int(value)


# ---- one unit of work, weighed ----


class Unit(NamedTuple):
    """One measured unit: seconds and processor seconds of a call, or of a unit of its work (children included); bytes at its end (PSS;
    None: unknown); seconds in which the calling thread was ready and others had the processors."""

    wall_s: float
    cpu_s: float
    memory: int | None
    queued_s: float = 0.0


def descendants(pid: int | str = "self") -> Iterator[int]:
    """Process ids of the children that live, theirs included."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/children") as file:
                children = file.read().split()
        except OSError:
            continue
        for child in children:
            yield int(child)
            yield from descendants(child)


def cpu_seconds() -> float:
    """Processor seconds of this process and its children, those that ended and were waited for included."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = time.process_time() + ended.ru_utime + ended.ru_stime
    for pid in descendants():
        try:
            total += time.clock_gettime((~pid << 3) | 2)  # a process's clock, as clock_getcpuclockid(3) names it
        except OSError:
            pass
    return total


def queued_seconds() -> float:
    """Seconds that this thread was ready and had no processor: others' load, not its own."""
    try:
        with open("/proc/thread-self/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def pss_bytes() -> int | None:
    """Memory of this process and its children, shared pages counted once. None: the kernel does not say."""
    total = 0
    for pid in ("self", *descendants()):
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
        except OSError:
            if pid == "self":
                return None
    return total


def weigh_unit(call: Callable[[], Any], times: int) -> Unit:
    """`times` calls, per call, or per piece where a call does `work` of them. A callable that has `settle` is brought to its steady state
    by it first, outside of the measurement."""
    if hasattr(call, "settle"):
        call.settle()
    cpu, queued, begun = cpu_seconds(), queued_seconds(), time.perf_counter()
    for _ in range(times):
        call()
    wall = time.perf_counter() - begun
    queued = queued_seconds() - queued
    pieces = times * getattr(call, "work", 1)
    return Unit(wall / pieces, max(cpu_seconds() - cpu, 1e-9) / pieces, pss_bytes(), queued / pieces)


# ---- the result ----


@dataclasses.dataclass
class Tuned:
    """What an optimizer found. `gain` is speed, candidate over base: 1.5 is one and a half times as fast, `ci` its 95 % interval;
    `bound` what could be gained at most on this run, `target` what users hope for; `in_use` (gain, low, high) of a loader in the program's own
    loop, once that was watched. print() gives five lines."""

    what: str
    plan: dict[str, Any]
    verdict: str
    gain: float = Unknown("not measured")
    ci: tuple[float, float] | None = None
    bound: float = Unknown("no bound is known")
    target: tuple[float, float] | None = None
    baseline: list[Unit] = dataclasses.field(default_factory=list)
    candidate: list[Unit] = dataclasses.field(default_factory=list)
    cpu: tuple[float, float, float] | None = None
    memory: tuple[float, float, float] | None = None
    uses_more_cpu: bool = False
    reasons: list[str] = dataclasses.field(default_factory=list)
    rejected: list[tuple[dict[str, Any], str]] = dataclasses.field(default_factory=list)
    applied: bool = False
    in_use: tuple[float, float, float] | None = None
    less: bool = False  # gain, bound and target are of memory, base over candidate: 2 is half of it
    _undo: Callable[[], Any] | None = dataclasses.field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict {self.verdict!r} is none of {', '.join(VERDICTS)}")

    def worth(self, apply: str = "confirmed") -> bool:
        """Whether it may be applied by the rule `apply` of the configuration."""
        return self.verdict in APPLY[apply]

    def undo(self) -> bool:
        """Takes back what was applied; whether there was anything."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()
        was, self.applied = self.applied, False
        return was or undo is not None

    def to_dict(self) -> dict[str, Any]:
        """As documents have it: None for what is unknown."""
        out = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if not f.name.startswith("_")}
        out["baseline"], out["candidate"] = ([unit._asdict() for unit in units] for units in (self.baseline, self.candidate))
        out["rejected"] = [{"plan": plan, "why": why} for plan, why in self.rejected]
        return {name: plain(value) for name, value in out.items()}

    def to_json(self, indent: int | None = 1) -> str:
        return json.dumps(self.to_dict(), indent=indent, default=str)

    def amount(self, value: float) -> str:
        """A gain in words."""
        if not self.less:
            return f"{value:.2f}x"
        return f"{1 - 1 / value:.0%} less" if value >= 1 else f"{1 / value - 1:.0%} more"

    def target_text(self) -> str:
        if not self.target:
            return "-"
        return "-".join(f"{100 - 100 / end:.0f}" for end in self.target) + "% less" if self.less else f"{self.target[0]:g}-{self.target[1]:g}x"

    def gain_text(self) -> str:
        if not self.ci:
            return "not measured"
        ends = (self.amount(end) if self.less else f"{end:.2f}" for end in self.ci)
        return f"{self.amount(self.gain)} ({' to '.join(ends)})"

    def __str__(self) -> str:
        target = f"; target {self.target_text()}" if self.target else ""
        plan = ", ".join(f"{name}={value}" for name, value in self.plan.items()) or "leave it as it is"
        bound = f"at most {self.amount(self.bound)}" if known(self.bound) else f"unknown ({getattr(self.bound, 'reason', 'not asked')})"
        return "\n".join(
            [
                f"{self.what}: bound on this run {bound}{target}",
                f"  plan      {plan}",
                f"  achieved  {self.gain_text()}: {self.verdict.replace('_', ' ')}, {len(self.baseline)} pairs",
                f"  cost      CPU {_ratio(self.cpu)}, memory {_ratio(self.memory)}" + (", uses more CPU" if self.uses_more_cpu else ""),
                f"  why       {'; '.join(self.reasons) or 'measured in turns with what it replaces'}",
            ]
        )


def _ratio(of: tuple[float, float, float] | None) -> str:
    return f"{of[0]:.2f}x ({of[1]:.2f} to {of[2]:.2f})" if of else "unknown"


# ---- budgets ----


class Spent:
    """Where the time goes. A budget is kept within a tenth; where it is not, `said()` is by how much, and for what."""

    def __init__(self, budget_s: float | None) -> None:
        self.budget_s, self.begun = budget_s, time.monotonic()
        self.parts: list[tuple[str, float]] = []

    def on(self, what: str) -> None:
        """From now on it is spent on this."""
        self.parts.append((what, time.monotonic()))

    def took_s(self) -> float:
        return time.monotonic() - self.begun

    def left_s(self, share: float = 1.0) -> float:
        """Seconds of the budget, or of a share of it."""
        return math.inf if self.budget_s is None else share * self.budget_s - self.took_s()

    def said(self) -> str | None:
        if self.left_s(1.1) >= 0:
            return None
        now, each = time.monotonic(), dict[str, float]()
        for (what, at), (_, end) in zip(self.parts, [*self.parts[1:], ("", now)]):
            each[what] = each.get(what, 0.0) + end - at
        parts = ", ".join(f"{what} {in_sentence(seconds, 's')}" for what, seconds in each.items())
        return f"took {in_sentence(now - self.begun, 's')} of a budget of {self.budget_s:g} s: {parts}"


# ---- confirmation ----


def confirm(
    base: Callable[[], Any], candidate: Callable[[], Any], *, what: str = "change", plan: dict[str, Any] | None = None,
    threshold: float = 0.10, least: int = 8, most: int = 20, unit_s: float = 0.2, budget_s: float | None = None,
    same: Callable[[Any, Any], str | None] | None = None, bound: float | None = None, target: tuple[float, float] | None = None,
) -> Tuned:  # fmt: skip
    """Is `candidate` faster than `base`? Both do the same work, without arguments, and are called in turns (ABBA) until it is clear.

    same      given what a first call of each returned, says what differs, or None; `first_difference` is one
    bound     the most that could be gained; below the threshold nothing is measured
    unit_s    calls are repeated until a unit takes that long
    budget_s  no pair is begun after it; then the answer is over_budget unless it is clear already"""
    begun = time.monotonic()
    unknown = Unknown("no bound is known") if bound is None else bound
    tuned = Tuned(what, dict(plan or {}), "no_gain", bound=unknown, target=target)
    if known(bound) and bound < 1 + threshold:
        tuned.plan = {}
        tuned.reasons.append(f"at most {bound:.2f}x can be gained here, below the {threshold:.0%} that a change is worth")
        return tuned
    results = base(), candidate()  # the first calls: caches are filled, and the results compared
    difference = same(*results) if same is not None else None
    del results
    if difference is not None:
        tuned.verdict = "different_data"
        tuned.reasons.append(f"the results differ: {difference}")
        return tuned
    times = _calls_per_unit(base, unit_s)
    alike = getattr(base, "work", 1) == getattr(candidate, "work", 1)
    sides = ((base, times), (candidate, times if alike else _calls_per_unit(candidate, unit_s)))
    said = _measure_pairs(tuned, sides, {"threshold": threshold, "least": least, "most": most}, begun, budget_s)
    _judge(tuned, said, threshold, budget_s)
    log.debug("%s", tuned)
    return tuned


def _calls_per_unit(base: Callable[[], Any], unit_s: float) -> int:
    times = 1
    while times < 1 << 20:
        begun = time.perf_counter()
        for _ in range(times):
            base()
        took = time.perf_counter() - begun
        if took >= unit_s:
            return times
        times = max(times + 1, min(times * 10, math.ceil(times * unit_s * 1.1 / max(took, 1e-9))))
    return times


def _measure_pairs(tuned: Tuned, sides: tuple, rule: dict, begun: float, budget_s: float | None) -> dict[str, Any]:
    """Pairs in the order AB BA AB .., as many as the rule asks for, within the budget. What the judge said last."""
    units = (tuned.baseline, tuned.candidate)
    said: dict[str, Any] = {"verdict": "going on", "next": rule["least"]}
    while said["next"]:
        while len(tuned.baseline) < said["next"]:
            if budget_s is not None and time.monotonic() - begun > budget_s:
                return said if len(tuned.baseline) < 2 else _judged(tuned, rule)
            for which in (0, 1) if len(tuned.baseline) % 2 == 0 else (1, 0):
                units[which].append(weigh_unit(*sides[which]))
        said = _judged(tuned, rule)
    return said


def _judged(tuned: Tuned, rule: dict) -> dict[str, Any]:
    pairs = list(zip(tuned.baseline, tuned.candidate))
    memory = [c.memory / b.memory for b, c in pairs] if all(b.memory and c.memory for b, c in pairs) else None
    return _tare.confirm([c.wall_s / b.wall_s for b, c in pairs], [c.cpu_s / b.cpu_s for b, c in pairs], memory, **rule)


def _judge(tuned: Tuned, said: dict[str, Any], threshold: float, budget_s: float | None) -> None:
    if said.get("gain") and math.isfinite(said["gain"][2]):  # two pairs bound nothing
        tuned.gain, tuned.ci = said["gain"][0], said["gain"][1:]
        tuned.cpu, tuned.memory, tuned.uses_more_cpu = said["cpu"], said["memory"], said["uses_more_cpu"]
    tuned.verdict = _JUDGED.get(said["verdict"], "over_budget")
    if tuned.verdict == "over_budget":
        tuned.reasons.append(f"the budget of {budget_s:g} s was used up before it was clear")
    elif said["verdict"] == "worse":
        tuned.reasons.append("it is slower than what is there: leave it as it is")
    elif said["verdict"] == "no gain":
        tuned.reasons.append(f"it surely gains less than {threshold:.0%}: leave it as it is")
    elif said["verdict"] == "not shown":
        tuned.reasons.append(f"{said['pairs']} pairs did not show a gain of {threshold:.0%}: leave it as it is")
    if tuned.uses_more_cpu:
        tuned.reasons.append("it is bought with processor time, which others may miss")
        _refuse_theft(tuned, threshold)


def _refuse_theft(tuned: Tuned, threshold: float) -> None:
    """On a busy machine more threads or processes get a larger share of it, and look faster. That can gain at most the time in which the base was
    ready and others had the processors: what is surely more is a gain."""
    if tuned.verdict not in ("confirmed", "likely"):
        return
    queued = statistics.median(unit.queued_s / unit.wall_s for unit in tuned.baseline)
    if tuned.ci[0] * (1 - queued) < 1 + threshold:
        tuned.verdict = "no_gain"
        tuned.reasons.append(f"{queued:.0%} of the time others had the processors while it was ready, and it takes more processor time: they gave way, which is no gain")


# ---- equivalence ----


def first_difference(a: Any, b: Any, where: str = "result") -> str | None:
    """The first place at which two results differ, by type, structure and every bit; None: there is none. NaN equals NaN of the same
    bits. Arrays and tensors by dtype, shape and bytes."""
    if a is b:
        return None
    if type(a) is not type(b):
        return f"{where} is {type(a).__name__}, then {type(b).__name__}"
    if isinstance(a, float):
        return None if struct.pack("d", a) == struct.pack("d", b) else f"{where} is {a!r}, then {b!r}"
    if isinstance(a, dict):
        return _dict_difference(a, b, where)
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return f"{where} has {len(a)} items, then {len(b)}"
        return next((d for i, (x, y) in enumerate(zip(a, b)) if (d := first_difference(x, y, f"{where}[{i}]"))), None)
    if hasattr(a, "dtype") and hasattr(a, "shape"):
        return _array_difference(a, b, where)
    if type(a).__eq__ is object.__eq__ and hasattr(a, "__dict__"):
        return _dict_difference(vars(a), vars(b), where)
    return None if bool(a == b) else f"{where} is {_short(a)}, then {_short(b)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _dict_difference(a: dict, b: dict, where: str) -> str | None:
    if list(a) != list(b):
        return f"{where} has the keys {_short(list(a))}, then {_short(list(b))}"
    return next((d for key in a if (d := first_difference(a[key], b[key], f"{where}[{key!r}]"))), None)


def _array_difference(a: Any, b: Any, where: str) -> str | None:
    for part in ("dtype", "shape", "device"):
        x, y = getattr(a, part, None), getattr(b, part, None)
        if x != y:
            return f"{where} has {part} {x}, then {y}"
    if getattr(a, "dtype", None) == object:
        return first_difference(a.tolist(), b.tolist(), where)
    x, y = _bits(a), _bits(b)
    if x == y:
        return None
    at = next(i for i, (p, q) in enumerate(zip(x, y)) if p != q)
    return f"{where} differs from element {at // max(1, len(x) // max(1, math.prod(a.shape)))} on"


def _bits(array: Any) -> bytes:
    """Of a numpy array, or of a torch tensor."""
    if "torch" in sys.modules and isinstance(array, sys.modules["torch"].Tensor):
        torch = sys.modules["torch"]
        flat = array.detach().cpu().contiguous().reshape(-1)
        return bytes(flat.view(torch.uint8).numpy()) if flat.numel() else b""
    return array.tobytes()
