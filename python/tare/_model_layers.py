# SPDX-License-Identifier: MIT
"""Layers of a PyTorch module: time, parameters, FLOPs and bytes of tensors, module by module, through forward hooks.

Times come from passes of their own: hooks cost time, so these passes never count as latency. What the hooks cost is weighed against
the same runs without them and taken out. A layer's numbers are its own: what a layer inside it accounts for is not counted twice, so
that the layers and what lies outside of them add up to the whole of the same runs.
"""

from __future__ import annotations

import statistics
import time
import warnings
from typing import Any, Callable, Iterable

from tare import _answers, _tare
from tare._unknown import Unknown

# What people call a group, and what the table of docs/layers.md calls it
SYNONYMS = {"normalization": "norm", "feedforward": "mlp", "feed_forward": "mlp", "ffn": "mlp", "attn": "attention", "embeddings": "embedding"}
ITSELF = "(model itself)"
SUMMED = ("time_ms", "time_most_ms", "calls", "parameters", "flops", "activation_bytes")
MOST_NS = 50_000  # as in tare bench --layers


class LayerProfiles(dict):
    """Layer or group -> {"time_ms", "share", "calls", "parameters", "flops", "activation_bytes", "modules", ...}. "time_most_ms" is the
    time with what profiling costs in it.

    `total_ms`: one run without profiling. `profiled_ms`: one of those in between with profiling, its cost taken out, which shares are of.
    `outside_ms`: the part of it that is in no row. `self_ns`: what profiling one call of a layer costs. `params`: batch and the like.
    `note`: what else to know."""

    total_ms: float
    profiled_ms: float
    self_ns: float
    runs: int
    params: dict[str, Any]
    note = ""

    @property
    def outside_ms(self) -> float:
        rest = self.profiled_ms - sum(row["time_ms"] for row in self.values())
        return rest if abs(rest) > 1e-9 * self.profiled_ms else 0.0  # less is the rounding of a sum

    def __str__(self) -> str:
        return _answers.layers_text(self)


# ---- which modules ----


def _children(module: Any) -> bool:
    return any(True for _ in module.children())


def chosen_modules(model: Any, layer_names: list[str]) -> dict[str, list[tuple[str, Any]]]:
    """Group -> [(qualified name, module)]: the outermost modules that each name fits. One that fits two names belongs to the first of
    them; one that lies in a module of another group, as a norm does in attention, is taken out of that."""
    groups: dict[str, list[tuple[str, Any]]] = {wanted: [] for wanted in layer_names}
    places: dict[str, int] = {}
    for name, module in model.named_modules():
        place = next((at for at, wanted in enumerate(layer_names) if name and _fits(wanted, name, module)), None)
        held = [at for outer, at in places.items() if name.startswith(outer + ".")]
        if place is not None and held[-1:] != [place]:
            places[name] = place
            groups[layer_names[place]].append((name, module))
    warn_of_missing(groups, sorted({type(module).__name__ for module in model.modules()}))
    return groups


def warn_of_missing(groups: dict[str, list], kinds: list[str]) -> None:
    for wanted in [name for name, found in groups.items() if not found]:
        warnings.warn(f"no layer is called {wanted!r}; the model has {', '.join(kinds)}", RuntimeWarning, stacklevel=4)


def _fits(wanted: str, name: str, module: Any) -> bool:
    """By its whole name, by a part of its own name or type, or by the group that words in its path tell, as in `tare bench --layers`. Where
    a group is wanted, a word in a name of another group is none: post_attention_layernorm is a norm."""
    word, own, kind = wanted.lower(), name.rpartition(".")[2], type(module).__name__
    group = SYNONYMS.get(word, word)
    if name == wanted or _tare.layer_group(f"{name}/{kind}/x") == group:
        return True
    other = _tare.layer_group(f"{group}/x") == group and _tare.layer_group(f"{own}/{kind}/x") not in (None, group)
    return not other and word in f"{own} {kind}".lower()


def _every_layer(model: Any, run: Callable[[], Any]) -> tuple[dict[str, Any], Any]:
    """Modules that hold no other, and those that call operators themselves, as attention does; and what they count. Those that were
    not called are none: their weights are used by another."""
    modules = {name: module for name, module in model.named_modules() if name}
    counts = _counted(run, modules)
    kept = {name: module for name, module in modules.items() if name in counts and (counts[name].operators or not _children(module))}
    return kept, counts


def _counted(run: Callable[[], Any], modules: dict[str, Any]) -> Any:
    from tare._tensors import count_run

    return count_run(run, modules)


# ---- times ----


class _Watch:
    """Times of modules while hooks are on. Modules nest, so each call knows what hooked calls inside it took."""

    def __init__(self, sync: Callable[[], None]) -> None:
        self.sync = sync
        self.rows: dict[str, list[int]] = {}  # of this run: own ns, calls, hooked calls directly inside
        self.open: list[list[int]] = []

    def hooks(self, name: str, module: Any) -> list[Any]:
        def before(*_: Any) -> None:
            self.sync()
            self.open.append([0, 0, time.perf_counter_ns()])

        def after(*_: Any) -> None:
            self.sync()
            self._close(name, time.perf_counter_ns())

        return [module.register_forward_pre_hook(before), module.register_forward_hook(after)]

    def _close(self, name: str, now: int) -> None:
        inside_ns, inside, start = self.open.pop()
        row = self.rows.setdefault(name, [0, 0, 0])
        row[0] += now - start - inside_ns
        row[1] += 1
        row[2] += inside
        if self.open:
            self.open[-1][0] += now - start
            self.open[-1][1] += 1

    def run(self, run: Callable[[], Any], hooked: dict[str, Any]) -> dict[str, list[int]]:
        """One run with hooks: its rows; that of "" is the rest of the run."""
        handles = [handle for name, module in hooked.items() for handle in self.hooks(name, module)]
        self.rows = {}
        try:
            self.open = [[0, 0, time.perf_counter_ns()]]
            run()
            self.sync()
            self._close("", time.perf_counter_ns())
        finally:
            for handle in handles:
                handle.remove()
        return self.rows


def _timed(run: Callable[[], Any], sync: Callable[[], None]) -> int:
    start = time.perf_counter_ns()
    run()
    sync()
    return time.perf_counter_ns() - start


def _least_cost(sync: Callable[[], None]) -> tuple[float, float]:
    """ns that the two hooks add to a call at least, and the part of it that lies inside the call's time: weighed on a module that does
    nothing, with warm caches. The shortest of 15 each: others on the machine only add."""
    import torch

    nothing = torch.nn.Identity()
    watch, bare, whole, inside = _Watch(sync), [], [], []
    for _ in range(15):
        bare.append(_timed(lambda: [nothing(None) for _ in range(20)], sync) / 20)
        rows = watch.run(lambda: [nothing(None) for _ in range(20)], {"x": nothing})
        whole.append(_whole(rows) / 20)
        inside.append(rows["x"][0] / 20)
    least = max(0.0, min(whole) - min(bare))
    return least, min(least, min(inside))


def _whole(rows: dict[str, list[int]]) -> int:
    return sum(row[0] for row in rows.values())


def _hook_cost(bare: list[int], seen: list[dict[str, list[int]]], least: float) -> float:
    """The same in place: what a run with hooks takes longer than its neighbour without them, by calls. Never less than the least, and
    at most MOST_NS more: what is beyond that is other work on the machine, and stays in."""
    calls = sum(row[1] for name, row in seen[-1].items() if name)
    added = statistics.median(_whole(rows) - plain for plain, rows in zip(bare, seen))
    return min(max(least, added / calls), least + MOST_NS) if calls else least


def _net(rows: dict[str, list[int]], inside_ns: float, hook_ns: float) -> dict[str, float]:
    """A hooked call bears the part of its hooks' cost that lies inside it; the rest lies in whoever called it."""
    return {name: ns - inside_ns * (calls if name else 0) - (hook_ns - inside_ns) * held for name, (ns, calls, held) in rows.items()}


def _usual_parts(net: list[dict[str, float]], names: Iterable[str]) -> dict[str, float]:
    """What each has of a run, ns, so that they add up to the usual run. Of each run its shares, of a share the median: a machine that is
    slower for a whole run changes no share, and one that stops in a layer now and then changes that of this one run. A mean over runs took
    such stops for the layer's time: an activation had 58 % of a BERT."""
    wholes = [sum(rows.values()) for rows in net]
    whole = max(0.0, statistics.median(wholes))
    shares = {name: statistics.median(rows.get(name, 0) / total if total > 0 else 0.0 for rows, total in zip(net, wholes)) for name in names}
    above = sum(share for share in shares.values() if share > 0)
    return {name: max(0.0, share) / above * whole if above else 0.0 for name, share in shares.items()}


def _times(run: Callable[[], Any], hooked: dict[str, Any], settings: dict) -> tuple[LayerProfiles, dict[str, float], dict[str, float]]:
    """Runs with hooks and without take turns, so that a drift of the machine hits both. The whole; its parts, ns a run; and the parts with
    the hooks' cost in them, which are the most that they can be."""
    watch = _Watch(settings["sync"])
    bare, seen = [], []
    for turn in range(settings["warmup"] + settings["runs"]):
        for hooks in (turn % 2, 1 - turn % 2):
            seen.append(watch.run(run, hooked)) if hooks else bare.append(_timed(run, watch.sync))
    bare, seen = bare[settings["warmup"] :], seen[settings["warmup"] :]
    out = LayerProfiles()
    out.runs, out.params, out.note = settings["runs"], settings["params"], settings["note"]
    out.self_ns, inside_ns = _least_cost(watch.sync)
    if not out.note:
        out.self_ns = _hook_cost(bare, seen, out.self_ns)
    net = [_net(rows, inside_ns, out.self_ns) for rows in seen]
    times = _usual_parts(net, ["", *hooked])
    taken = {name: statistics.median(rows[name][0] - less.get(name, 0) for rows, less in zip(seen, net) if name in rows) for name in seen[-1]}
    out.total_ms = statistics.median(bare) / 1e6
    out.profiled_ms = sum(times.values()) / 1e6
    return out, times, {name: ns + taken.get(name, 0) for name, ns in times.items()}


# ---- rows ----


def profile_module(model: Any, run: Callable[[], Any], layer_names: list[str] | None, settings: dict) -> LayerProfiles:
    """`run` is one run of the model; settings: runs, warmup, sync (waits for the device), params."""
    if layer_names is None:
        hooked, counts = _every_layer(model, run)
        groups = {name: [(name, module)] for name, module in hooked.items()}
    else:
        groups = chosen_modules(model, layer_names)
        hooked = {name: module for found in groups.values() for name, module in found}
        counts = _counted(run, hooked)
        # A twin that is never called, as T5's `shared` beside its encoder's table, is no part of a group that is.
        groups = {group: [one for one in found if one[0] in counts] or found for group, found in groups.items()}
    out, times, most = _times(run, hooked, {**settings, "note": _other_code(run, counts)})
    rows = {name: _module_row(name, module, hooked, counts) for name, module in {"": model, **hooked}.items()}
    for name, row in rows.items():
        row["time_ms"], row["time_most_ms"] = times[name] / 1e6, most[name] / 1e6
    for group, found in groups.items():
        out[group] = group_row([rows[name] for name, _ in found], out.profiled_ms)
    if layer_names is None:
        out[ITSELF] = group_row([rows[""]], out.profiled_ms)
    return out


def _other_code(run: Callable[[], Any], hooked: Any) -> str:
    """PyTorch leaves its fused paths when modules have hooks: then other operators run than without them."""
    plain = _counted(run, {})
    if plain[""].operators == sum(row.operators for row in hooked.values()):
        return ""
    return "with hooks on, PyTorch leaves its fused path: it ran other operators than without them"


def _module_row(name: str, module: Any, hooked: dict[str, Any], counts: Any) -> dict[str, Any]:
    """Without what belongs to layers inside it. Tied weights count in each layer that has them."""
    count = counts.get(name)
    held = (other for other_name, other in hooked.items() if other_name.startswith(name + "." if name else ""))
    inner = {id(parameter) for other in held for parameter in other.parameters()}
    own = [parameter.numel() for parameter in module.parameters() if id(parameter) not in inner]
    return {
        "name": name or ITSELF,
        "type": type(module).__name__,
        "calls": count.calls if count else 0,
        "parameters": sum(own),
        "flops": counts.number(count.cost.flops) if count else Unknown("the module was not called"),
        "flops_complete": bool(count and count.cost.complete and not counts.why),
        "activation_bytes": counts.number(count.made) if count else 0,
    }


def group_row(modules: list[dict[str, Any]], total_ms: float) -> dict[str, Any]:
    """A group: sums over its modules. A sum with an unknown part is unknown, as all arithmetic with an Unknown is."""
    summed = {key: sum(module[key] for module in modules) for key in SUMMED}
    return {
        **summed,
        "share": summed["time_ms"] * (1 / total_ms) if total_ms else Unknown("the hooks' own cost is as large as what was measured"),
        "flops_complete": all(module["flops_complete"] for module in modules),
        "modules": modules,
    }
