# SPDX-License-Identifier: MIT
"""Does the gain last? A loader that was tuned is watched in its first epochs of real use, the user's own step included: parts of an epoch
come from the loader as it was, in turns with the new one, in the same order of samples. Where the new one is not surely faster there, the
loader is as it was from the next epoch on, and says so."""

from __future__ import annotations

import itertools
import logging
import math
import sys
import time
from typing import Any, Callable, Iterator

from tare import _tare
from tare._tune import Tuned, log
from tare._tune_data_same import close

_UNIT_S, _UNITS, _PAIRS = 0.2, 16, {"least": 8, "most": 12}  # a unit lasts so long, or a part of an epoch
_TURNS = "cbbc"  # candidate, base, base, candidate
_classes: dict[type, type] = {}


class Order:
    """Where a loader has the indices of its batches from: all of an epoch, or the part that is its turn."""

    def __init__(self, whole: Any) -> None:
        self.whole, self.part = whole, None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.whole) if self.part is None else self.part

    def __len__(self) -> int:
        return len(self.whole)


def in_parts(cls: type) -> type:
    """A class of loaders that can be watched, and go back to what they were."""
    if cls in _classes:
        return _classes[cls]

    class Tunable(cls):  # type: ignore[misc, valid-type]
        watch: Watch | None = None
        _order: Order | None = None
        _back: Any = None

        def check_worker_number_rationality(self) -> None:
            """More workers than processors: what waits may have them, and it was measured."""

        @property
        def _index_sampler(self) -> Any:
            if self._order is None:
                self._order = Order(super()._index_sampler)
            return self._order

        def __iter__(self) -> Iterator[Any]:
            if self._back is not None:
                self.end_workers()
                return iter(self._back)
            if self.watch is not None:
                return self.watch.epoch(self)
            if getattr(self, "_iterator", None) is not None:
                self.draw()
            return super().__iter__()

        def draw(self) -> None:
            """As DataLoader does when an epoch begins, unless its workers are there already: then the next epoch would be shuffled otherwise
            than without workers."""
            if hasattr(self, "generator"):
                import torch

                torch.empty((), dtype=torch.int64).random_(generator=self.generator)

        def part(self, indices: Iterator[Any]) -> Iterator[Any]:
            """Batches of these indices only; draws nothing from the loader's generator."""
            kept, self._index_sampler.part = getattr(self, "generator", None), indices
            if "torch" in sys.modules:
                self.generator = sys.modules["torch"].Generator()
            try:
                return super().__iter__()
            finally:
                self.generator = kept

        def end_part(self) -> None:
            self._index_sampler.part = None

        def go_back(self, to: Any) -> None:
            """From the next epoch on, as `to`."""
            self.watch, self._back = None, to

        def end_workers(self) -> None:
            if self.watch is not None:
                self.watch.end()
            close(getattr(self, "_iterator", None) or getattr(self, "_team", None))
            self._iterator = None

    Tunable.__name__ = Tunable.__qualname__ = "Tuned" + cls.__name__
    Tunable.__doc__ = cls.__doc__
    _classes[cls] = Tunable
    return Tunable


class Watch:
    """One loader in use. `make_base` makes a loader as it was, of a class of in_parts(); `queues` are the batches that each prepares ahead."""

    def __init__(self, tuned: Tuned, make_base: Callable[[], Any], queues: tuple[int, int]) -> None:
        self.tuned, self.make_base = tuned, make_base
        self.base: Any = None
        self.units: dict[str, list[float]] = {"c": [], "b": []}
        self.queues = {"b": queues[0], "c": queues[1]}
        self.most = math.inf  # batches of a unit, whatever their time

    def least_epoch(self) -> int:
        """Batches that an epoch must have: a part of each, with what fills and empties the queues."""
        return sum(2 * max(1, queue) + self._least(queue) for queue in self.queues.values())

    @staticmethod
    def _least(queue: int) -> int:
        return max(2, 2 * queue)

    def epoch(self, loader: Any) -> Iterator[Any]:
        loader.draw()
        self.most = _batches(loader) / _UNITS
        indices = iter(loader._index_sampler.whole)
        for first in indices:  # a part begins while there is one more
            yield from self._part(loader, itertools.chain([first], indices))
            if self._decided(loader):
                loader.watch = None
        if loader.watch is None:
            self.end()

    def end(self) -> None:
        if self.base is not None:
            self.base.end_workers()
        self.base = None

    def _part(self, loader: Any, indices: Iterator[Any]) -> Iterator[Any]:
        """Batches of one unit. It is measured after as many as fill the queue, and takes no more indices when it is long enough: what then is
        in the queue still comes. When the decision is there, all that is left of the epoch."""
        which, go = self._turn(loader), [True]
        queue, settled = self.queues[which], max(1, self.queues[which])
        if which == "b" and self.base is None:
            self.base = self.make_base()
        source = self.base if which == "b" else loader
        begun, n = 0.0, 0
        try:
            for batch in source.part(_while(go, indices)):
                yield batch
                del batch
                n, now = n + 1, time.perf_counter()
                if n == settled:
                    begun = now
                long = now - begun >= _UNIT_S or n - settled >= self.most
                if n - settled >= self._least(queue) and long and go[0] and loader.watch is self:
                    go[0] = False
                    self.units[which].append((now - begun) / (n - settled))
        finally:
            source.end_part()

    def _turn(self, loader: Any) -> str:
        if loader.watch is self:
            return _TURNS[sum(map(len, self.units.values())) % 4]
        return "c" if loader._back is None else "b"

    def _decided(self, loader: Any) -> bool:
        """Whether there are enough pairs; then it is said, and a loader whose gain did not last goes back."""
        pairs = list(zip(self.units["b"], self.units["c"]))
        if loader.watch is not self or len(pairs) < _PAIRS["least"]:
            return False
        said = _tare.confirm([c / b for b, c in pairs], threshold=0.0, **_PAIRS)
        if said["verdict"] == "going on":
            return False
        gain, low, high = self.tuned.in_use = said["gain"]
        seen = f"in use, with the program's own step, {gain:.2f}x ({low:.2f} to {high:.2f}) in {len(pairs)} pairs"
        lasts = said["verdict"] in ("confirmed", "likely")
        self.tuned.reasons.append(f"{seen}: " + ("it lasts" if lasts else "the gain does not last, from the next epoch on the loader is as it was"))
        log.log(logging.INFO if lasts else logging.WARNING, "%s: %s", self.tuned.what, self.tuned.reasons[-1])
        if not lasts:
            self.tuned.undo()
            self.tuned.verdict = "no_gain"
        return True


def _batches(loader: Any) -> float:
    try:
        return len(loader)
    except TypeError:  # a sampler that does not know
        return math.inf


def _while(go: list[bool], indices: Iterator[Any]) -> Iterator[Any]:
    while go[0]:
        try:
            index = next(indices)
        except StopIteration:
            return
        yield index
