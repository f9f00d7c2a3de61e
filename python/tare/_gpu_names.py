# SPDX-License-Identifier: MIT
"""What PyTorch knows of the work on a GPU: the module and the operator that launch it, and the memory of its allocator. Modules are
told by forward hooks, operators by PyTorch's own emit_nvtx(), both as ranges that libtare-gpu.so joins to kernels. PyTorch is never
imported here: who uses a GPU without it gets everything else."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any, Callable

from tare import _tare
from tare._unknown import Unknown

NO_MEMORY = "PyTorch's allocator is not in use in this process: the driver's view of memory is in the trace of `tare run --gpu`"
_INJECTION = "NVTX_INJECTION64_PATH"


def _torch() -> Any:
    """PyTorch, if the program has it and it can use CUDA."""
    torch = sys.modules.get("torch")
    return torch if getattr(getattr(torch, "version", None), "cuda", None) and hasattr(torch, "cuda") else None


# ---- who else has CUPTI ----


def owner() -> str | None:
    """Who records the GPU now, as a reason; None: nobody known."""
    trace, tool = _tare.environment("TARE_GPU_TRACE"), os.environ.get("CUDA_INJECTION64_PATH")
    if trace:
        return f"`tare run --gpu` records this process already, into {trace}"
    if tool and tool != "none":
        return f"CUDA_INJECTION64_PATH={tool}: another tool records this process"
    torch = _torch()
    if torch and _profiler_runs(torch):
        return "torch.profiler is recording, and CUPTI serves one tool at a time"
    if torch and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
        return "a CUDA graph is being captured, which waiting for the GPU would break"
    return None


def _profiler_runs(torch: Any) -> bool:
    profiler = getattr(torch.autograd, "profiler", None)
    return bool(getattr(profiler, "_is_profiler_enabled", False)) or torch._C._autograd._profiler_enabled()


def is_left_by_torch(why: str) -> bool:
    """Whether CUPTI is held by a torch.profiler that has ended: it never gives it back, but does not use it."""
    return "another tool has CUPTI" in why and _torch() is not None and "torch.profiler" in sys.modules


# ---- names ----


class Naming:
    """Names of a block: prepare(), then the recording starts, begin(), the block, end()."""

    def __init__(self, library: str, modules: Any, ops: bool) -> None:
        self.unknown: dict[str, str] = {}
        self.notes: list[str] = []
        self._library, self._wanted, self._ops = library, modules, ops
        self._undo: list[Any] = []

    def prepare(self) -> None:
        """NVTX looks for who listens when it is first used: that may be in the block."""
        _tare.gpu_nvtx()
        other = os.environ.get(_INJECTION)
        if other and other != self._library:
            self.notes.append(f"{_INJECTION}={other}: another tool has the NVTX ranges")
            return
        os.environ[_INJECTION] = self._library
        self._undo.append(lambda: os.environ.pop(_INJECTION, None) if not other else None)
        torch = _torch()
        if torch and not _hears(torch.cuda.nvtx._nvtx):
            self._tee(torch)

    def _tee(self, torch: Any) -> None:
        nvtx = torch.cuda.nvtx
        plain = nvtx._nvtx
        nvtx._nvtx = _Tee(plain)
        self._undo.append(lambda: setattr(nvtx, "_nvtx", plain))
        self.notes.append("NVTX was in use before: only ranges of torch.cuda.nvtx are seen")

    def begin(self) -> None:
        torch = _torch()
        if self._wanted is not False and self._wanted is not None:
            self._begin_modules(torch)
        if self._ops:
            self._begin_ops(torch)

    def _begin_modules(self, torch: Any) -> None:
        if not torch:
            self.unknown["modules"] = "PyTorch with CUDA is not in this process"
            return
        paths = _Paths(self._wanted)
        from torch.nn.modules import module

        # For all modules, not on each: with hooks of its own a TransformerEncoderLayer leaves its fused path
        self._undo.append(_without_warning())
        before = module.register_module_forward_pre_hook(paths.before)
        after = module.register_module_forward_hook(paths.after, always_call=True)
        self._undo += [before.remove, after.remove]

    def _begin_ops(self, torch: Any) -> None:
        if not torch:
            self.unknown["operators"] = "PyTorch with CUDA is not in this process"
            return
        emitting = torch.autograd.profiler.emit_nvtx()
        begun = _tare.gpu_nvtx()
        emitting.__enter__()
        self._undo.append(lambda: self._end_ops(emitting, begun))

    def _end_ops(self, emitting: Any, begun: int) -> None:
        emitting.__exit__(None, None, None)
        if _tare.gpu_nvtx() == begun:
            self.unknown["operators"] = "PyTorch told none: no operator ran, or its NVTX was in use before tare.gpu()"

    def end(self) -> None:
        while self._undo:
            self._undo.pop()()


def _without_warning() -> Callable[[], None]:
    """PyTorch warns that hooks for all modules run for a compiled one, too, which is as it should be here. What ends that."""
    warnings.filterwarnings("ignore", message=r"Using `torch\.compile\(module\)` when there are global hooks")
    added = warnings.filters[0]

    def end() -> None:
        if added in warnings.filters:
            warnings.filters.remove(added)

    return end


def _hears(nvtx: Any) -> bool:
    """Whether a range of this copy of NVTX arrives: one is begun before anything is recorded."""
    before = _tare.gpu_nvtx()
    nvtx.rangePushA("tare")
    nvtx.rangePop()
    return _tare.gpu_nvtx() > before


class _Tee:
    """torch.cuda.nvtx, with ranges told to us, too."""

    def __init__(self, nvtx: Any) -> None:
        self._nvtx = nvtx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nvtx, name)

    def rangePushA(self, name: str) -> Any:  # noqa: N802 - PyTorch's name
        _tare.gpu_push(name, False)
        return self._nvtx.rangePushA(name)

    def rangePop(self) -> Any:  # noqa: N802
        _tare.gpu_pop(False)
        return self._nvtx.rangePop()


class _Paths:
    """Hooks that tell which module runs. A module that is called from no other is a model: its type is the first word of the paths in it,
    unless a name was given."""

    def __init__(self, wanted: Any) -> None:
        self._path: dict[Any, str] = {}  # keeps the modules, as long as the block is open
        given = wanted if isinstance(wanted, dict) else {}
        if not given and hasattr(wanted, "named_modules"):
            given = {type(getattr(wanted, "_orig_mod", wanted)).__name__: wanted}
        for name, model in given.items():
            self._meet(name, model)

    def _meet(self, root: str, model: Any) -> None:
        for path, module in model.named_modules():
            path = ".".join(word for word in path.split(".") if word not in ("", "_orig_mod"))  # compiled: the model is that
            self._path.setdefault(module, f"{root}.{path}" if path else root)

    def before(self, module: Any, args: Any) -> None:
        if sys.modules["torch"].compiler.is_compiling():
            return
        path = self._path.get(module)
        if path is None:
            self._meet(type(getattr(module, "_orig_mod", module)).__name__, module)
            path = self._path[module]
        _tare.gpu_push(path, True)

    def after(self, module: Any, args: Any, result: Any) -> None:
        if not sys.modules["torch"].compiler.is_compiling():
            _tare.gpu_pop(True)


# ---- memory ----


def memory_now() -> dict[str, dict[str, int]]:
    """By GPU that PyTorch's allocator has given memory of: bytes given out now, and at most so far."""
    torch = _torch()
    if not torch or not torch.cuda.is_initialized():
        return {}
    out = {}
    for number in range(torch.cuda.device_count()):
        stats = torch.cuda.memory_stats(number)
        if stats.get("segment.all.allocated"):
            out[f"cuda:{number}"] = {
                "allocated": stats["allocated_bytes.all.current"],
                "peak": stats["allocated_bytes.all.peak"],
                "reserved": stats["reserved_bytes.all.current"],
            }
    return out


def memory_between(before: dict[str, Any], after: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The counters are the program's: none is set back. So the peak is known where it is higher than all before."""
    out = {}
    for device, now in after.items():
        was = before.get(device, {"allocated": 0, "peak": 0, "reserved": 0})
        peak: Any = now["peak"] if now["peak"] > was["peak"] else None
        if peak is None:
            peak = Unknown(f"not above an earlier peak of {was['peak']} bytes: torch.cuda.reset_peak_memory_stats() before the block makes it known")
        out[device] = {"before": was["allocated"], "after": now["allocated"], "peak": peak, "reserved": now["reserved"]}
    return out
