# SPDX-License-Identifier: MIT
"""What ModelProfiler knows of a model beside its times, put into the run document, so that JSON, CSV and the page have what those of
`tare bench --layers` have: parameters, operations, activations, layers. What is not known stays null, with its reason."""

from __future__ import annotations

from typing import Any

from tare._run import Run
from tare._unknown import known

# fact: where in the document's `static`
_FACTS = {"parameters": "parameters", "activation_bytes": "activation_sum", "activation_peak_bytes": "activation_peak"}


def _whole(value: Any) -> int | None:
    return round(value) if known(value) else None


def _explained(case: dict[str, Any], *keys: str) -> None:
    """These are there now: a reason why they were not would be false."""
    case["unknown"] = {path: why for path, why in (case.get("unknown") or {}).items() if path.split(".")[0] not in keys}


def with_facts(run: Run, facts: dict[str, Any]) -> Run:
    """The run with its model's parameters and arithmetic, where the document has none of its own."""
    document = run.to_dict()
    case, subject = document["cases"][0], document["subject"]
    cost = {"complete": not facts.get("uncounted"), "macs": _whole(facts.get("macs")), "flops": _whole(facts.get("flops"))}
    static = {to: _whole(facts.get(key)) for key, to in _FACTS.items()}
    unknown = {to: facts[key].reason for key, to in _FACTS.items() if key in facts and not known(facts[key])}
    if subject.get("static") is None and any(value is not None for value in static.values()):
        subject["static"] = {**static, "cost": cost, "cost_per_run": cost, "unknown": unknown}
    if case.get("cost") is None and cost["flops"] is not None:
        case["cost"] = cost
        _explained(case, "cost")
    return Run.of(document)


def with_layers(run: Run, layers: Any) -> Run:
    """The run with the layers of its first case; shares are of the pass that timed them."""
    document = run.to_dict()
    case = document["cases"][0]
    case["layers"] = [_layer(name, row, layers) for name, row in layers.items()] or None
    case["profile"] = {"runs": layers.runs, "node_ns": round(layers.self_ns)}
    if known(layers.total_ms) and layers.total_ms > 0:
        case["profile"]["covered"] = layers.profiled_ms / layers.total_ms
    _explained(case, "layers", "profile")
    return Run.of(document)


def _layer(name: str, row: dict[str, Any], layers: Any) -> dict[str, Any]:
    kinds = {module["type"] for module in row["modules"] if module["type"]}
    share = row["share"]
    return {
        "name": name,
        "op": kinds.pop() if len(kinds) == 1 else None,
        "nodes": len(row["modules"]),
        "calls": round(row["calls"] * layers.runs),
        "share": min(max(share, 0.0), 1.0) if known(share) else None,
        "flops": _whole(row["flops"]),
        "parameters": _whole(row["parameters"]),
        "output_bytes": _whole(row["activation_bytes"]),
        "time_ns": max(row["time_ms"] * 1e6, 0.0) if known(row["time_ms"]) else None,
    }
