# SPDX-License-Identifier: MIT
"""Layers of a PyTorch module: time, parameters, FLOPs and bytes of results, module by module, through forward hooks.

Times come from passes of their own: hooks cost time, so these passes never count as latency. What the hooks cost is weighed against
the same runs without them and taken out.
"""

from __future__ import annotations

import statistics
import time
import warnings
from typing import Any, Callable, Iterable

from tare import _answers
from tare._flops import module_costs
from tare._unknown import Unknown

# What people call a layer and what modules are called
SYNONYMS = {
    "attention": ("attention", "attn"),
    "mlp": ("mlp", "feedforward", "feed_forward", "ffn", "intermediate"),
    "embedding": ("embed", "wte", "wpe"),
    "normalization": ("norm",),
}


class LayerProfiles(dict):
    """Layer or group -> {"time_ms", "share", "calls", "parameters", "flops", "activation_bytes", "modules", ...}.

    `total_ms`: one run without profiling. `self_ns`: what profiling one call of a layer costs; times are without it."""

    total_ms: float
    self_ns: float
    runs: int

    def __str__(self) -> str:
        return _answers.layers_text(self)


class _Watch:
    """Times of modules while hooks are on. Modules nest, so each call knows how many hooked calls it holds."""

    def __init__(self, sync: Callable[[], None]) -> None:
        self.sync = sync
        self.times: dict[str, list[tuple[int, int]]] = {}  # per name: (ns, hooked calls inside) of each call
        self.bytes: dict[str, int] = {}
        self.open: list[list[int]] = []

    def hooks(self, name: str, module: Any) -> list[Any]:
        def before(*_: Any) -> None:
            self.sync()
            self.open.append([0, time.perf_counter_ns()])

        def after(_module: Any, _inputs: Any, output: Any) -> None:
            self.sync()
            inside, start = self.open.pop()
            self.times.setdefault(name, []).append((time.perf_counter_ns() - start, inside))
            if self.open:
                self.open[-1][0] += inside + 1
            self.bytes[name] = tensor_bytes(output)

        return [module.register_forward_pre_hook(before), module.register_forward_hook(after)]


def tensor_bytes(output: Any) -> int:
    """Bytes of the tensors in a module's result, however nested."""
    if hasattr(output, "untyped_storage"):
        return output.nbytes
    if isinstance(output, dict):
        output = output.values()
    return sum(map(tensor_bytes, output)) if isinstance(output, Iterable) and not isinstance(output, str) else 0


def chosen_modules(model: Any, layer_names: list[str] | None) -> dict[str, list[tuple[str, Any]]]:
    """Group -> [(qualified name, module)]: leaves by their own names, or the outermost modules that each name asked for matches."""
    if layer_names is None:
        return {name: [(name, m)] for name, m in model.named_modules() if name and not any(True for _ in m.children())}
    groups = {wanted: _outermost(model, wanted) for wanted in layer_names}
    warn_of_missing(groups, sorted({type(module).__name__ for module in model.modules()}))
    return groups


def warn_of_missing(groups: dict[str, list], kinds: list[str]) -> None:
    for wanted in [name for name, found in groups.items() if not found]:
        warnings.warn(f"no layer is called {wanted!r}; the model has {', '.join(kinds)}", RuntimeWarning, stacklevel=4)


def _outermost(model: Any, wanted: str) -> list[tuple[str, Any]]:
    words = SYNONYMS.get(wanted.lower(), (wanted.lower(),))
    found: list[tuple[str, Any]] = []
    for name, module in model.named_modules():
        held = any(name.startswith(outer + ".") for outer, _ in found)
        called = (name.rpartition(".")[2] + " " + type(module).__name__).lower()
        if name and not held and (name == wanted or any(word in called for word in words)):
            found.append((name, module))
    return found


def profile_module(model: Any, run: Callable[[], Any], groups: dict, settings: dict) -> LayerProfiles:
    """`run` is one run of the model; settings: runs, warmup, sync (waits for the device), inputs (for counting FLOPs)."""
    hooked = {name: module for found in groups.values() for name, module in found}
    watch = _Watch(settings["sync"])
    bare, with_hooks = [], []
    for number in range(settings["warmup"] + settings["runs"]):
        bare.append(_timed(run, watch.sync))
        with_hooks.append(_hooked_run(run, watch, hooked))
        if number == settings["warmup"] - 1:
            bare, with_hooks, watch.times = [], [], {}
    out = LayerProfiles()
    out.runs = settings["runs"]
    out.total_ms = statistics.median(bare) / 1e6
    out.self_ns = hook_ns = _hook_cost(watch.sync)
    # Shares are of the pass with hooks: PyTorch may leave a fused path when there are any, and then runs differently.
    calls = sum(len(seen) for seen in watch.times.values()) / out.runs
    total = max(1.0, statistics.median(with_hooks) - hook_ns * calls)
    costs = module_costs(model, settings["inputs"].args, settings["inputs"].kwargs)
    for group, found in groups.items():
        out[group] = group_row([_module_row(name, module, watch, (hook_ns, out.runs), costs) for name, module in found], total)
    return out


def _hook_cost(sync: Callable[[], None]) -> float:
    """ns that the two hooks add to a call: weighed on a module that does nothing."""
    import torch

    nothing = torch.nn.Identity()
    watch = _Watch(sync)
    added = []
    for _ in range(15):
        bare = _timed(lambda: [nothing(None) for _ in range(20)], sync)
        added.append((_hooked_run(lambda: [nothing(None) for _ in range(20)], watch, {"": nothing}) - bare) / 20)
    return max(0.0, statistics.median(added))


def _timed(run: Callable[[], Any], sync: Callable[[], None]) -> int:
    start = time.perf_counter_ns()
    run()
    sync()
    return time.perf_counter_ns() - start


def _hooked_run(run: Callable[[], Any], watch: _Watch, hooked: dict[str, Any]) -> int:
    """Runs with and without hooks take turns, so that a drift of the machine hits both."""
    handles = [handle for name, module in hooked.items() for handle in watch.hooks(name, module)]
    try:
        return _timed(run, watch.sync)
    finally:
        for handle in handles:
            handle.remove()


def _module_row(name: str, module: Any, watch: _Watch, weights: tuple[float, int], costs: dict[str, Any]) -> dict[str, Any]:
    hook_ns, runs = weights
    # A call holds the hooks of the calls inside it whole, and about half of its own.
    net = [max(0.0, ns - hook_ns * (inside + 0.5)) for ns, inside in watch.times.get(name, [])]
    calls = len(net) / runs
    cost = costs.get(name)
    return {
        "name": name,
        "type": type(module).__name__,
        "calls": calls,
        "time_ms": statistics.median(net) * calls / 1e6 if net else 0.0,
        "parameters": sum(p.numel() for p in module.parameters()),
        "flops": cost.flops if cost else Unknown("the module was not called"),
        "flops_complete": bool(cost and cost.complete),
        "activation_bytes": round(watch.bytes.get(name, 0) * calls),
    }


def group_row(modules: list[dict[str, Any]], total_ns: float) -> dict[str, Any]:
    """A group: sums over its modules. A sum with an unknown part is unknown, as all arithmetic with an Unknown is."""
    summed = {key: sum(module[key] for module in modules) for key in ("time_ms", "calls", "parameters", "flops", "activation_bytes")}
    return {
        **summed,
        "share": summed["time_ms"] * (1e6 / total_ns) if total_ns else Unknown("the model takes no time"),
        "flops_complete": all(module["flops_complete"] for module in modules),
        "modules": modules,
    }


def activation_bytes(model: Any, run: Callable[[], Any]) -> int:
    """Bytes of all results of leaf modules in one run: what is kept at most when nothing is freed or reused."""
    sizes: list[int] = []
    leaves = [module for module in model.modules() if not any(True for _ in module.children())]
    handles = [leaf.register_forward_hook(lambda _m, _i, output: sizes.append(tensor_bytes(output))) for leaf in leaves]
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    return sum(sizes)
