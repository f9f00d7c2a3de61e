# SPDX-License-Identifier: MIT
"""What PyTorch code computes, by the cost rules of `tare inspect` (docs/cost.md), counted while it runs.

    with FlopCounter() as counter:
        model(x)
    counter.cost.flops, counter.cost.macs, counter.parameters

    parameter_count(model)              # elements, tied weights once

Every operator that PyTorch dispatches on this thread is looked up in the table of _flops_table.py, which names the ONNX operators
it is worth; the extension counts them. Operators without a row are not guessed: `cost.uncounted` lists them, and the sum is then a
lower bound. Forward and backward passes and optimizer steps are counted alike, if they run while the counter is open.
"""

from __future__ import annotations

import threading
import weakref
from contextvars import ContextVar
from typing import Any

PARTS = ("macs", "int_macs", "simple", "division", "transcendental", "integer", "read", "written")


class Cost:
    """Counts of docs/cost.md; bytes in `read` and `written`. `uncounted`: operator -> calls that no rule covers."""

    __slots__ = (*PARTS, "uncounted")

    def __init__(self, **counts: int) -> None:
        for part in PARTS:
            setattr(self, part, counts.get(part, 0))
        self.uncounted: dict[str, int] = {}

    @property
    def flops(self) -> int:
        """2 * MACs + simple operations: a multiply-accumulate is two."""
        return 2 * self.macs + self.simple

    @property
    def complete(self) -> bool:
        """False: a lower bound, see `uncounted`."""
        return not self.uncounted

    def add(self, other: "Cost") -> None:
        for part in PARTS:
            setattr(self, part, getattr(self, part) + getattr(other, part))
        for name, calls in other.uncounted.items():
            self.uncounted[name] = self.uncounted.get(name, 0) + calls

    def since(self, earlier: "Cost") -> "Cost":
        """What was added after `earlier`, a copy of this one, was made."""
        out = Cost(**{part: getattr(self, part) - getattr(earlier, part) for part in PARTS})
        for name, calls in self.uncounted.items():
            if calls > earlier.uncounted.get(name, 0):
                out.uncounted[name] = calls - earlier.uncounted.get(name, 0)
        return out

    def copy(self) -> "Cost":
        return self.since(Cost())

    def to_dict(self) -> dict[str, Any]:
        return {**{part: getattr(self, part) for part in PARTS}, "flops": self.flops, "uncounted": dict(self.uncounted)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cost) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Cost(flops={self.flops}, macs={self.macs}, uncounted={self.uncounted})"


# The counters that are open here: in this thread and, within a thread, in this asyncio task.
_open: ContextVar[tuple] = ContextVar("tare_flop_counters", default=())
_thread = threading.local()


class FlopCounter:
    """Counts what the code inside `with` computes, in this thread and context. Nests; may be entered again and goes on counting."""

    def __init__(self) -> None:
        self.cost = Cost()
        self._parameters: dict[tuple, int] = {}
        self._seen: weakref.WeakSet = weakref.WeakSet()
        self._modes: list[Any] = []

    @property
    def parameters(self) -> int:
        """Elements of the parameters of all modules that were called; tied ones once."""
        return sum(self._parameters.values())

    def see_module(self, module: Any) -> None:
        if module not in self._seen:
            self._seen.update(module.modules())
            self._parameters.update(distinct_parameters(module))

    def __enter__(self) -> "FlopCounter":
        mode = _install()
        mode.counters.append(self)
        self._modes.append(mode)
        _open.set((*_open.get(), self))
        return self

    def __exit__(self, *exception: object) -> None:
        mode = self._modes.pop()
        mode.counters.remove(self)
        _open.set(tuple(counter for counter in _open.get() if counter is not self))
        _uninstall(mode)


def prepare() -> Any:
    """The kind of dispatch mode that counts. Imports all it needs, so that counting does not."""
    from tare import _flops_table

    return _flops_table.CountingMode


def _install() -> Any:
    """The one dispatch mode of this thread, entered when the first counter opens."""
    mode = getattr(_thread, "mode", None)
    if mode is None:
        mode = _thread.mode = prepare()(_open)
        mode.hook = _watch_modules()
        mode.__enter__()
    return mode


def _uninstall(mode: Any) -> None:
    """Left when the last one closes. PyTorch keeps its stack of modes per thread: only the thread that entered can leave."""
    if not mode.counters and getattr(_thread, "mode", None) is mode:
        _thread.mode = None
        mode.hook.remove()
        mode.__exit__(None, None, None)


def _watch_modules() -> Any:
    from torch.nn.modules.module import register_module_forward_pre_hook

    def note(module: Any, _: Any) -> None:
        for counter in _open.get():
            counter.see_module(module)

    return register_module_forward_pre_hook(note)


def distinct_parameters(module: Any) -> dict[tuple, int]:
    """Where each parameter lies -> its elements. Tied weights lie in one place; what has no place (meta) is told by identity."""
    out: dict[tuple, int] = {}
    for tensor in module.parameters():
        try:
            where = tensor.untyped_storage().data_ptr()
        except (RuntimeError, NotImplementedError):
            where = 0
        out[(where, tensor.storage_offset(), tuple(tensor.shape)) if where else (id(tensor),)] = tensor.numel()
    return out


def parameter_count(module: Any) -> int:
    """Elements of all parameters of a module; tied ones once."""
    return sum(distinct_parameters(module).values())
