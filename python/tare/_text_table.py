# SPDX-License-Identifier: MIT
"""A TextProfile as tables for a terminal. Only formats; every number stands in the document."""

from __future__ import annotations

from typing import Any, Iterable

_WIDTH = 80
_RULE, _LINE = "=" * _WIDTH, "-" * _WIDTH
_TITLES = {
    "nli_profile": "NLI PROFILING SUMMARY",
    "nli_batch_analysis": "NLI BATCH SIZE OPTIMIZATION",
    "nli_length_profile": "NLI TEXT LENGTH SUMMARY",
    "nli_memory_analysis": "NLI MEMORY SUMMARY",
    "batch_size_profile": "EMBEDDING BATCH SIZE SUMMARY",
    "text_length_profile": "EMBEDDING TEXT LENGTH SUMMARY",
    "memory_analysis": "EMBEDDING MEMORY SUMMARY",
}
_CHOICES = {"best_throughput": "Best throughput", "recommended": "Recommended", "memory_efficient": "Memory efficient"}


def show(profile: Any) -> str:
    """All parts that the profile has."""
    parts = [_head(profile)]
    if "batch_profiles" in profile:
        parts.append(_rows("Batch Size Performance:", "Batch", "batch_size", profile["batch_profiles"]))
    if "length_profiles" in profile:
        parts.append(_rows("Text Length Performance:", "Words", "text_length_words", profile["length_profiles"]))
    if "memory" in profile:
        parts.append(_memory(profile["memory"]))
    parts += [part(profile) for part in (_accuracy, _choices, _targets, _lists) if part(profile)]
    return "\n\n".join(parts)


def _head(profile: Any) -> str:
    system = profile["system"]
    told = f"\nWeights: {system['weights']}" if system["weights"] else ""
    return f"{_RULE}\n{_TITLES[profile.kind]}\n{_RULE}\n\nSystem: {system['device'] or 'device unknown'} | Model: {system['model']}{told}"


def _number(value: float | None, digits: int) -> str:
    """So many decimals; for what they would show as nearly nothing, two digits that count."""
    if value is None:
        return "-"
    return f"{value:.2g}" if 0 < abs(value) < 10 ** (1 - digits) else f"{value:,.{digits}f}"


def _spread(row: dict[str, Any], value: float | None) -> str:
    """Half the interval in percent."""
    low, high = row["throughput_interval"]
    return "-" if low is None or high is None or not value else f"{(high - low) / 2 / value:.1%}"


def _key(rows: list[dict[str, Any]], start: str) -> str:
    return next(key for key in rows[0] if key.startswith(start) and not key.endswith(("interval", "batch")))


def _rows(title: str, what: str, key: str, rows: list[dict[str, Any]]) -> str:
    rate, latency = _key(rows, "throughput_"), _key(rows, "latency_ms_per_")
    unit = rate.split("_")[1].capitalize()
    lines = [title, _LINE, f" {what} | {unit + '/Sec':>12} | {'+/-':>6} | {'Latency (ms)':>14} | {'Memory (MB)':>13}", _LINE]
    for row in rows:
        lines.append(
            f" {row[key]:>5} | {_number(row[rate], 2):>12} | {_spread(row, row[rate]):>6} | {_number(row[latency], 2):>14} | "
            f"{_number(row['memory_delta_mb'], 1):>13}"
        )
    one = latency.rsplit("_", 1)[1]
    lines.append(f"Latency: of one {one}, its share of a batch. Memory: what the process grew by. +/-: 95 % interval within this run.")
    lines.append(_instrument(rows))
    return "\n".join(lines)


def _instrument(rows: list[dict[str, Any]]) -> str:
    costs = [row["self_ns_per_call"] for row in rows if row["self_ns_per_call"] is not None]
    return f"tare's own cost: {max(costs)} ns a call at most, not in these times" if costs else "tare's own cost: unknown"


def _memory(memory: dict[str, Any]) -> str:
    lines = ["Memory over iterations:", _LINE, " Iteration |  Memory (MB) |   Delta (MB)", _LINE]
    lines += [f" {row['iteration']:>9} | {row['memory_mb']:>12,.1f} | {row['delta_mb']:>12,.2f}" for row in memory["iterations"]]
    growth = memory["growth"]
    if growth["verdict"] == "unknown":
        return "\n".join([*lines, f"Leak test: unknown ({growth['why']})"])
    low, high = growth["interval"]
    verdict = {"growing": "LEAK: memory grows", "steady": "no leak: memory is steady", "inconclusive": "inconclusive, try more iterations"}[
        growth["verdict"]
    ]
    slope = f"{growth['mb_per_iteration']:+.3f} MB an iteration ({low:+.3f} to {high:+.3f})"
    return "\n".join([*lines, f"Leak test over {memory['samples']} calls: {verdict}; {slope}"])


def _accuracy(profile: Any) -> str:
    rows = [(row["batch_size"], row["accuracy_metrics"]) for row in profile.get("batch_profiles", ()) if row["accuracy_metrics"]]
    if not rows:
        return ""
    metric, reference = rows[0][1]["metric"], rows[0][1]["reference_batch_size"]
    lines = [f"Accuracy (answers against those of batch_size={reference}):", _LINE]
    lines += [f" Batch | {metric:>10} | Largest difference | {'Labels':>8} | Verdict", _LINE]
    for batch, row in rows:
        labels = _number(row["label_agreement"], 3)
        word = "consistent" if row["consistent"] else "CHANGED"
        lines.append(f" {batch:>5} | {row['consistency']:>10.6f} | {_difference(row):>18} | {labels:>8} | {word}")
    if profile["system"]["weights"]:
        lines.append("Labels: the weights are random, so this says nothing about a trained model.")
    return "\n".join(lines)


def _difference(row: dict[str, Any]) -> str:
    return "-" if row["max_difference"] is None else f"{row['max_difference']:.2g}"


def _choices(profile: Any) -> str:
    chosen = profile.get("choices")
    if not chosen or len(profile["batch_profiles"]) < 2:
        return ""
    width = max(map(len, _CHOICES.values())) + 1
    lines = []
    for word, row in chosen.items():
        rate = next(key for key in row if key.startswith("throughput_"))
        unit = rate.split("_")[1]
        lines.append(f"  {_CHOICES[word] + ':':<{width}} {row[rate]:,.2f} {unit}/sec @ batch_size={row['batch_size']}")
    return "\n".join(["Performance:", *lines])


def _quantity(value: float | None, unit: str) -> str:
    if value is None:
        return "unknown"
    if unit == "B":
        return f"{value / 2**20:,.0f} MB"
    return f"{value:,.0f} {unit}".strip() if value >= 10_000 else f"{value:,.4g} {unit}".strip()


def _targets(profile: Any) -> str:
    rows = profile.get("targets")
    if not rows:
        return ""
    lines = [f"Targets (recommended {rows[0]['case']}):"]
    for row in rows:
        times = f", {row['ratio']:.3g}x" if row["ratio"] is not None else ""
        limit, got = _quantity(row["value"], row["unit"]), _quantity(row["achieved"], row["unit"])
        lines.append(f"  {row['verdict'].upper():<13}{row['metric']} {row['op']} {limit}: {got}{times}")
    return "\n".join(lines)


def _bullets(title: str, texts: Iterable[str]) -> list[str]:
    listed = [f"  - {text}" for text in texts]
    return [f"{title}:", *listed] if listed else []


def _lists(profile: Any) -> str:
    found = (f"[{f['severity']}] {f['description']}" + (f" ({f['case']})" if f["case"] else "") for f in profile["bottlenecks"])
    blocks = [
        _bullets("Insights", profile.get("insights", ())),
        _bullets("Bottlenecks", found),
        _bullets("Recommendations", profile["recommendations"]),
        _bullets("About this measurement", profile["measurement"]),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)
