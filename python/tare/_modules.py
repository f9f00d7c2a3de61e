# SPDX-License-Identifier: MIT
"""Which PyTorch modules a block calls: with how many rows, and what their forward passes cost. Estimates, and called so.

Only outermost modules are looked at, by one hook for all. A forward pass is counted when a module sees a shape for the first time;
later passes of that shape are taken to cost the same, so that the program runs at full speed.
"""

from __future__ import annotations

import sys
import threading
import weakref
from contextvars import ContextVar
from typing import Any

from tare._flops import Cost, FlopCounter, distinct_parameters

_open: ContextVar[tuple] = ContextVar("tare_module_watchers", default=())
_lock = threading.Lock()
_hooks: list = []
_watchers: set = set()  # those that are open

ROWS = "estimated: rows of the first tensor that each outermost PyTorch module was given"
FORWARD = "forward passes of PyTorch modules, counted once for each shape; estimate_flops=True counts everything"
EVERYTHING = "every PyTorch operator of this thread, backward passes and optimizer steps included"

KNOWN_MOST = 1000  # shapes of a module


class ModuleWatcher:
    """What the code inside `with` calls, in this thread and context. `known`: module -> shapes -> Cost, kept from block to block."""

    __slots__ = ("rows", "cost", "known", "_outermost", "_inner", "_parameters", "_counting")

    def __init__(self, known: Any = None) -> None:
        self.rows = 0
        self.cost: Any = None if known is None else Cost()
        self.known = known
        self._outermost: weakref.WeakSet = weakref.WeakSet()
        self._inner: weakref.WeakSet = weakref.WeakSet()
        self._parameters: dict = {}
        self._counting: list = []

    @property
    def parameters(self) -> int:
        return sum(self._parameters.values())

    def begin(self, module: Any, args: tuple) -> None:
        if module in self._inner:
            return
        if module not in self._outermost:
            self._meet(module)
        shape = next((x.shape for x in args if hasattr(x, "shape")), ())
        self.rows += shape[0] if shape else 0
        if self.known is not None:
            self._begin_cost(module, args)

    def _meet(self, module: Any) -> None:
        self._outermost.add(module)
        self._inner.update(inner for inner in module.modules() if inner is not module)
        if self.known is not None:
            self._parameters.update(distinct_parameters(module))

    def _begin_cost(self, module: Any, args: tuple) -> None:
        shapes = self.known.get(module)
        if shapes is None:
            shapes = self.known[module] = {}
        key = (module.training, tuple(tuple(x.shape) if hasattr(x, "shape") else x.__class__ for x in args))
        if key not in shapes and _is_compiled(module):
            shapes[key] = Cost()
            shapes[key].uncounted["compiled code"] = 1
        if key in shapes:
            self.cost.add(shapes[key])
        elif len(shapes) < KNOWN_MOST:
            self._counting.append((module, key, FlopCounter().__enter__()))

    def end(self, module: Any) -> None:
        if self._counting and self._counting[-1][0] is module:
            _, key, counter = self._counting.pop()
            counter.__exit__(None, None, None)
            self.known[module][key] = counter.cost
            self.cost.add(counter.cost)

    def __enter__(self) -> "ModuleWatcher":
        _watchers.add(self)
        _tend_hooks()
        _open.set((*_open.get(), self))
        return self

    def __exit__(self, *exception: object) -> None:
        while self._counting:
            self._counting.pop()[2].__exit__(None, None, None)
        _open.set(tuple(watcher for watcher in _open.get() if watcher is not self))
        _watchers.discard(self)
        _tend_hooks()


def _is_compiled(module: Any) -> bool:
    """Whether a part of it is compiled: PyTorch does not compile what operators are counted of, and fails if it must (fullgraph)."""
    return any(type(part).__name__ == "OptimizedModule" or getattr(part, "_compiled_call_impl", None) for part in module.modules())


# The compiler follows calls into hooks. It takes is_compiling() for True, so that nothing of them gets into compiled code.


def _before(module: Any, args: tuple) -> None:
    if sys.modules["torch"].compiler.is_compiling():
        return
    for watcher in _open.get():
        watcher.begin(module, args)


def _after(module: Any, args: Any, result: Any) -> None:
    if sys.modules["torch"].compiler.is_compiling():
        return
    for watcher in _open.get():
        watcher.end(module)


def _tend_hooks() -> None:
    """The hooks are there while anybody watches. The lock is for who changes that, so that blocks seldom wait for one another."""
    from torch.nn.modules import module

    while bool(_watchers) != bool(_hooks):
        with _lock:
            if _watchers and not _hooks:
                before, after = module.register_module_forward_pre_hook(_before), module.register_module_forward_hook(_after, always_call=True)
                _hooks.extend((before, after))
            elif not _watchers:
                while _hooks:
                    _hooks.pop().remove()
