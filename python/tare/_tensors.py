# SPDX-License-Identifier: MIT
"""One run of PyTorch code, counted: what it computes and which tensors it makes, as a whole and module by module. No clock.

Every tensor counts that an operator makes, whether it is a module's result or not: those of F.relu, matmul and + as well. Views and
in-place operators make none. What an operator takes inside itself and gives back is not seen. Imported when needed: it needs torch.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tare._flops import Cost, FlopCounter
from tare._unknown import Unknown


def _storages(values: Any) -> dict[int, Any]:
    """Where the tensors in `values` lie: place -> storage. Sparse and other tensors without one storage are left out."""
    out = {}
    for tensor in tree_leaves(values):
        if isinstance(tensor, torch.Tensor):
            try:
                storage = tensor.untyped_storage()
            except (RuntimeError, NotImplementedError):
                continue
            out[storage._cdata] = storage
    return out


class TensorCounter(TorchDispatchMode):
    """Counts the bytes of tensors that are made inside `with`: `made` in all, `peak` the most of them alive at once."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # hiding a mode from PyTorch's compiler imports the compiler, as CountingMode says

    def __init__(self) -> None:
        super().__init__()
        self.made = self.peak = self.operators = 0
        self._alive: dict[int, tuple[Any, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        # A place may be used again by the time this operator ends: who is gone goes first.
        self._alive = {place: kept for place, kept in self._alive.items() if not kept[0].expired()}
        before = _storages((args, kwargs))
        out = func(*args, **kwargs)
        for place, storage in _storages(out).items():
            if place not in before and place not in self._alive:
                self._alive[place] = (StorageWeakRef(storage), storage.nbytes())
                self.made += storage.nbytes()
        self.operators += 1
        self.peak = max(self.peak, sum(size for _, size in self._alive.values()))
        return out


class Count:
    """What was done under one name: `calls` of the module; `cost`, bytes of tensors `made` and `operators` called, without those of
    counted modules inside it."""

    __slots__ = ("calls", "cost", "made", "operators")

    def __init__(self) -> None:
        self.calls = self.made = self.operators = 0
        self.cost = Cost()


class Counts(dict):
    """Name -> Count; "" is what belongs to no module asked for. `peak`: bytes of tensors alive at once, at most. `why`: nothing but
    calls could be counted, for this reason."""

    peak = 0
    why = ""

    def number(self, value: Any) -> Any:
        """A number of these counts, or why there is none."""
        return Unknown(self.why) if self.why else value


def count_run(run: Callable[[], Any], modules: dict[str, Any]) -> Counts:
    """Calls run() once, without gradients. Work belongs to the innermost of `modules` that is being called. Not in inference mode, where
    PyTorch shows the operators that are asked for instead of those that run."""
    try:
        with torch.inference_mode(False), torch.no_grad(), TensorCounter() as tensors, FlopCounter() as counter:
            return _count(run, modules, tensors, counter)
    except Exception as why:  # code that compiles itself, as flex_attention does, refuses to be watched
        counts = _count(run, modules, TensorCounter(), FlopCounter())
        counts.why = f"PyTorch's operators cannot be watched here: {str(why).splitlines()[0]}"
        return counts


def _count(run: Callable[[], Any], modules: dict[str, Any], tensors: TensorCounter, counter: FlopCounter) -> Counts:
    counts = Counts({"": Count()})
    stack = [""]
    settled = [counter.cost.copy(), 0, 0]

    def settle() -> None:
        row = counts[stack[-1]]
        row.cost.add(counter.cost.since(settled[0]))
        row.made += tensors.made - settled[1]
        row.operators += tensors.operators - settled[2]
        settled[:] = counter.cost.copy(), tensors.made, tensors.operators

    def before(name: str) -> None:
        settle()
        stack.append(name)
        counts.setdefault(name, Count()).calls += 1

    def after(*_: Any) -> None:
        settle()
        stack.pop()

    handles = [module.register_forward_pre_hook(lambda *_, name=name: before(name)) for name, module in modules.items()]
    handles += [module.register_forward_hook(after) for module in modules.values()]
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    settle()
    counts.peak = tensors.peak
    return counts
