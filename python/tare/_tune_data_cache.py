# SPDX-License-Identifier: MIT
"""Samples kept in memory: only of a data set that always gives the same, that fits, and where it is proved faster."""

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


def cached(dataset: Any, config: Any) -> tuple[Any, Tuned]:
    """(the data set to use, what was found)"""

    def refused(why: str) -> tuple[Any, Tuned]:
        return dataset, Tuned("data set", {}, "refused", reasons=[why])

    against = not_by_index(dataset, config)
    if against:
        return refused(against)
    indices = sorted({round(i * (len(dataset) - 1) / (_READ - 1)) for i in range(_READ)})
    try:
        with same.random_kept(), same.deadline(setting(config, "timeout_s"), "the data set"):
            habits = same.habits(dataset, indices, setting(config, "seed"))
            against = not_kept(dataset, habits, max(same.size_of(dataset[i]) for i in indices), config)
            if against:
                return refused(f"samples cannot be kept: {against}")
            keeper = Cached(dataset)
            out = confirm(
                lambda: [dataset[i] for i in indices], lambda: [keeper[i] for i in indices], what="data set", plan={"cache": "memory"},
                threshold=setting(config, "optimization_threshold"), budget_s=setting(config, "budget_s"), same=first_difference,
            )  # fmt: skip
    except same.Hangs as why:
        return refused(str(why))
    except Exception as why:
        return refused(f"a sample raised {type(why).__name__}: {why}")
    out.applied = out.worth(setting(config, "apply"))
    return keeper if out.applied else dataset, out


def not_by_index(dataset: Any, config: Any) -> str | None:
    """Why samples cannot be kept, as far as can be told without reading any."""
    if not setting(config, "enable_caching"):
        return "enable_caching is off"
    if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")) or len(dataset) == 0:
        return "it has no samples by index, or none at all"
    if len(dataset) > setting(config, "cache_size"):
        return f"{len(dataset)} samples are more than cache_size={setting(config, 'cache_size')}: with shuffling most would be read anew"
    return None


def not_kept(dataset: Any, habits: same.Habits, each: float, config: Any) -> str | None:
    """Why they cannot be kept, by what reading some of them has shown; `each` has that many bytes."""
    if habits.fickle or habits.changes or habits.random:
        return habits.fickle or habits.changes or "its samples draw random numbers"
    most = usable_memory(config)
    return f"{each * len(dataset):.0f} bytes are more than the {most:.0f} that may be used" if each * len(dataset) > most else None


def usable_memory(config: Any) -> float:
    """Bytes, by the limit of the configuration and by what is free."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * setting(config, "max_memory_usage")
    limit = setting(config, "memory_limit")
    return min(free, in_bytes(limit, free)) if limit is not None else free
