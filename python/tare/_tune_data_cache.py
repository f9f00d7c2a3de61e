# SPDX-License-Identifier: MIT
"""Samples kept in memory: only of a data set that always gives the same, that fits, and where it is proved faster. Of one that draws
random numbers in its `transform`, samples are kept as they are before the first function that does."""

from __future__ import annotations

import copy
import os
from typing import Any

from tare import _tune_data_same as same
from tare._tune import Tuned, confirm, first_difference, in_bytes, setting

_READ = 64  # samples that are compared and timed


class Cached:
    """A data set whose samples are kept after the first reading. Each reader gets its own copy, so that nobody changes what is kept."""

    def __init__(self, dataset: Any) -> None:
        self.dataset, self._kept = dataset, {}

    def fill(self) -> Cached:
        """Reads what is not kept yet: workers that are forked afterwards have all of it, in the same memory."""
        for index in range(len(self)):
            if index not in self._kept:
                self._kept[index] = self.dataset[index]
        return self

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        if index not in self._kept:
            self._kept[index] = self.dataset[index]
        return copy.deepcopy(self._kept[index])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("dataset", "_kept"):
            raise AttributeError(name)
        return getattr(self.dataset, name)


class _Steps:
    """Functions one after the other; what came out last is remembered, to be found in the sample."""

    def __init__(self, steps: list) -> None:
        self.steps, self.made = steps, None

    def __call__(self, value: Any) -> Any:
        for step in self.steps:
            value = step(value)
        self.made = value
        return value


def steps_of(dataset: Any) -> list | None:
    """The functions of its `transform`: those of a Compose, or the one that it is; None: it has none."""
    transform = getattr(dataset, "transform", None)
    if not callable(transform):
        return None
    steps = getattr(transform, "transforms", None)
    return list(steps) if isinstance(steps, (list, tuple)) else [transform]


class Begun(Cached):
    """A data set whose samples are kept as the first `count` functions of its `transform` leave them; the others run for each reading, and draw
    what they always drew. A sample must hold what `transform` gave as it is, in a tuple, a list or a dict, or be it."""

    def __init__(self, dataset: Any, count: int) -> None:
        super().__init__(dataset)
        steps = steps_of(dataset)
        self.early, self.rest = same.shallow(dataset), _Steps(steps[count:])
        self.early.transform = _Steps(steps[:count])

    def _begin(self, index: Any) -> tuple[Any, Any]:
        """(the sample, where in it the others go on)"""
        sample, made = self.early[index], self.early.transform.made
        parts = sample.items() if type(sample) is dict else enumerate(sample) if type(sample) in (tuple, list) else [(None, sample)]
        places = [place for place, part in parts if part is made]
        if len(places) != 1:
            raise ValueError("a sample does not hold what its transform gives, once and as it is")
        return sample, places[0]

    def fill(self) -> Begun:
        for index in range(len(self)):
            if index not in self._kept:
                self._kept[index] = self._begin(index)
        return self

    def __getitem__(self, index: Any) -> Any:
        if index not in self._kept:
            self._kept[index] = self._begin(index)
        sample, place = copy.deepcopy(self._kept[index])
        if place is None and type(sample) is not dict:
            return self.rest(sample)
        parts = list(sample) if type(sample) is tuple else sample
        parts[place] = self.rest(parts[place])
        return tuple(parts) if type(sample) is tuple else parts

    def __getattr__(self, name: str) -> Any:
        if name in ("early", "rest"):
            raise AttributeError(name)
        return super().__getattr__(name)


def keeper(dataset: Any, how: str) -> Cached:
    """As a plan names it: "memory", or "prefix-2" for what the first two functions of the transform give."""
    if isinstance(dataset, same.Seeded):
        return same.Seeded(keeper(dataset.dataset, how), dataset.seed) if how != "memory" else Cached(dataset)
    return Cached(dataset) if how == "memory" else Begun(dataset, int(how.partition("-")[2]))


def way_to_keep(dataset: Any, habits: same.Habits, indices: list, config: Any) -> tuple[str | None, str]:
    """(how, as keeper() takes it; None and why: they cannot be kept)"""
    against = not_by_index(dataset, config)
    if against or not habits.random or habits.fickle or habits.changes or not steps_of(dataset):
        against = against or habits.fickle or habits.changes or ("its samples draw random numbers" if habits.random else None)
        against = against or _too_large(dataset, [dataset[i] for i in indices], config)
        return (None, against) if against else ("memory", "")
    why = "its samples draw random numbers before any function of its transform"
    for count in reversed(range(len(steps_of(dataset)))):
        begun = Begun(dataset, count)
        try:
            before = same.habits(begun.early, indices, setting(config, "seed"))
            some = [begun._begin(i)[0] for i in indices]
        except same.Hangs:
            raise
        except Exception as raised:  # the data set itself wants what all of its transform gives
            why = f"they draw random numbers, and after {count} functions of the transform: {raised}"
            continue
        if before.random or before.fickle or before.changes:
            continue
        against = _too_large(dataset, some, config)
        return (None, against) if against else (f"prefix-{count}", "")
    return None, why


def _too_large(dataset: Any, some: list, config: Any) -> str | None:
    bytes_, most = max(map(same.size_of, some)) * len(dataset), usable_memory(config)
    return f"{bytes_:.0f} bytes are more than the {most:.0f} that may be used" if bytes_ > most else None


def cached(dataset: Any, config: Any) -> tuple[Any, Tuned]:
    """(the data set to use, what was found)"""

    def refused(why: str) -> tuple[Any, Tuned]:
        return dataset, Tuned("data set", {}, "refused", reasons=[why])

    against, seed = not_by_index(dataset, config), setting(config, "seed")
    if against:
        return refused(against)
    indices = sorted({round(i * (len(dataset) - 1) / (_READ - 1)) for i in range(_READ)})
    try:
        with same.random_kept(), same.deadline(setting(config, "timeout_s"), "the data set"):
            habits = same.habits(dataset, indices, seed)
            how, against = way_to_keep(dataset, habits, indices, config)
            if how is None:
                return refused(f"samples cannot be kept: {against}")
            kept = keeper(dataset, how)
            pair = [same.Seeded(one, seed) for one in (dataset, kept)] if habits.random else [dataset, kept]
            out = confirm(
                lambda: [pair[0][i] for i in indices], lambda: [pair[1][i] for i in indices], what="data set", plan={"cache": how},
                threshold=setting(config, "optimization_threshold"), budget_s=setting(config, "budget_s"), same=first_difference,
            )  # fmt: skip
    except same.Hangs as why:
        return refused(str(why))
    except Exception as why:
        return refused(f"a sample raised {type(why).__name__}: {why}")
    out.applied = out.worth(setting(config, "apply"))
    return kept if out.applied else dataset, out


def not_by_index(dataset: Any, config: Any) -> str | None:
    """Why samples cannot be kept, as far as can be told without reading any."""
    if not setting(config, "enable_caching"):
        return "enable_caching is off"
    if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")) or len(dataset) == 0:
        return "it has no samples by index, or none at all"
    if len(dataset) > setting(config, "cache_size"):
        return f"{len(dataset)} samples are more than cache_size={setting(config, 'cache_size')}: with shuffling most would be read anew"
    return None


def usable_memory(config: Any) -> float:
    """Bytes, by the limit of the configuration and by what is free."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * setting(config, "max_memory_usage")
    limit = setting(config, "memory_limit")
    return min(free, in_bytes(limit, free)) if limit is not None else free
