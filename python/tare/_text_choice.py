# SPDX-License-Identifier: MIT
"""From a measured sweep of batch sizes to a choice, targets, bottlenecks and sentences. Judges what a run document says; no clock."""

from __future__ import annotations

from math import hypot, inf
from statistics import fmean
from typing import Any

from tare._run import Case, Run
from tare._tare import in_sentence

REACH = 0.95  # of the most throughput: what a smaller batch must surely have to be preferred
GIVEN = ("seq", "length")  # parameters that come with the work
PADDED = 0.25  # share of a batch that is worth telling


def batch_of(case: Case) -> int:
    return case.params["batch"]


def throughput_ratio(case: Case, best: Case) -> tuple[float, float] | None:
    """The interval of what its throughput is of the best one's, by the intervals of both; None: one of them has none."""
    own, most = case["throughput"], best["throughput"]
    if case.name == best.name:
        return 1.0, 1.0
    if None in (own["lo"], own["hi"], most["lo"], most["hi"]):
        return None
    ratio = own["value"] / most["value"]
    low = hypot(1 - own["lo"] / own["value"], most["hi"] / most["value"] - 1)
    high = hypot(own["hi"] / own["value"] - 1, 1 - most["lo"] / most["value"])
    return ratio * (1 - low), ratio * (1 + high)


def is_told_apart(case: Case, best: Case) -> bool:
    """Whether its throughput is surely less than the best one's. Without intervals the numbers must do."""
    ratio = throughput_ratio(case, best)
    return ratio[1] < 1 if ratio else case.throughput < best.throughput


def surely_reaches(case: Case, best: Case, share: float) -> bool:
    """Whether throughput is at least that share of the best one's, by both intervals."""
    ratio = throughput_ratio(case, best)
    return bool(ratio) and ratio[0] >= share


def cost_of(case: Case) -> tuple[float, float]:
    """As `tare bench` does: a smaller batch is cheaper, then less memory."""
    return batch_of(case), inf if case.memory_delta is None else case.memory_delta


def choose(cases: list[Case], changed: set[str]) -> dict[str, Case]:
    """The most throughput; the cheapest case that surely has REACH of it or cannot be told apart from it; the least memory. Never one
    whose answers changed."""
    left = [case for case in cases if case.throughput and case.name not in changed]
    if not left:
        return {}
    best = max(left, key=lambda case: case.throughput)
    enough = [case for case in left if surely_reaches(case, best, REACH) or not is_told_apart(case, best)]
    with_memory = [case for case in left if case.memory_delta is not None]
    chosen = {"best_throughput": best, "recommended": min(enough, key=cost_of)}
    if with_memory:
        chosen["memory_efficient"] = min(with_memory, key=lambda case: (case.memory_delta, batch_of(case)))
    return chosen


def with_recommendation(run: Run, unit: str) -> Run:
    """The run with the case to use for the work of its first case: the length of inputs is given, not chosen."""
    first = [case.params.get(key) for case in run.cases[:1] for key in GIVEN]
    cases = [case for case in run.cases if [case.params.get(key) for key in GIVEN] == first]
    chosen = choose(cases, set()) if len(cases) > 1 else {}
    record = {"objective": "throughput", "case": chosen["recommended"].name, "why": why(chosen, unit)} if chosen else None
    return Run.of({**run.to_dict(), "recommendation": record})


def not_told_apart(case: Case, cases: list[Case], changed: set[str]) -> list[int]:
    """Batch sizes that may be better than this one by more than the reach, as far as the intervals tell."""
    rivals = (c for c in cases if c.throughput and c.name not in changed and c.name != case.name)
    return sorted(batch_of(rival) for rival in rivals if not surely_reaches(case, rival, REACH))


def why(chosen: dict[str, Case], unit: str) -> str:
    """The recommendation in a sentence with its numbers."""
    case, best = chosen["recommended"], chosen["best_throughput"]
    text = in_sentence(case.throughput, f"{unit}/s")
    if case.name == best.name:
        return f"{text}, the most of all that were measured"
    if not surely_reaches(case, best, REACH):
        return f"{text}, statistically tied with {in_sentence(best.throughput)} at {best.name}, and smaller"
    text += f", {case.throughput / best.throughput:.0%} of the most ({in_sentence(best.throughput)} at {best.name})"
    if case.p50_ms and best.p50_ms:
        text += f", and a batch takes {in_sentence(case.p50_ms / 1e3, 's')} instead of {in_sentence(best.p50_ms / 1e3, 's')}"
    return text


def latency_twin(target: dict[str, Any], one: str) -> dict[str, Any]:
    """A rate of at least n a second says that one takes at most 1/n: the same verdict in milliseconds."""
    achieved = target["achieved"]
    return {
        **target,
        "metric": f"latency_ms_per_{one}",
        "op": "<=",
        "value": 1000 / target["value"],
        "unit": "ms",
        "achieved": 1000 / achieved if achieved else None,
    }


def targets_of(run: Run, case: Case | None, one: str) -> list[dict[str, Any]]:
    """How the recommended case stands to the targets."""
    rows = []
    for target in run.targets if case else ():
        if target["case"] == case.name:
            rows.append(target)
            if target["metric"] == "throughput" and target["op"] in (">=", ">"):
                rows.append(latency_twin(target, one))
    return rows


def _is_about_measuring(finding: dict[str, Any]) -> bool:
    return finding["id"].startswith(("machine.", "self."))


def bottlenecks_of(run: Run) -> list[dict[str, Any]]:
    """What the judge of the harness found wrong with the model in this setting."""
    wrong = (f for f in run.findings if f["severity"] != "info" and not _is_about_measuring(f))
    return [{"description": f.pop("title"), **f} for f in wrong]


def notes_of(run: Run) -> list[str]:
    """What it found wrong with the measurement."""
    return [f"{f['title']}: {f['action']}" for f in run.findings if f["severity"] != "info" and _is_about_measuring(f)]


def insights_of(run: Run, chosen: dict[str, Case]) -> list[str]:
    """What the sweep shows, in sentences."""
    said = []
    cases = sorted((case for case in run.cases if case.throughput), key=batch_of)
    if chosen and len(cases) > 1 and batch_of(cases[0]) != batch_of(chosen["best_throughput"]):
        best, least = chosen["best_throughput"], cases[0]
        gain = best.throughput / least.throughput
        if is_told_apart(least, best) and gain >= 1.1:
            said.append(f"{gain:.1f}x the throughput from batch_size={batch_of(least)} to batch_size={batch_of(best)}")
    return said + [f["title"] for f in run.findings if f["severity"] == "info" and not _is_about_measuring(f)]


def padding_of(items: list[Any], batch: int) -> float:
    """Share of a batch that is padding to its longest item, estimated by counting words."""
    words = [len(" ".join(item).split() if isinstance(item, (list, tuple)) else item.split()) for item in items]
    parts = [words[at : at + batch] for at in range(0, len(words), batch)]
    return fmean(1 - fmean(part) / max(part) if max(part) else 0.0 for part in parts)


def padding_finding(items: list[Any], batch: int) -> dict[str, Any] | None:
    share = padding_of(items, batch)
    if share < PADDED:
        return None
    return {
        "id": "text.padding",
        "severity": "info",
        "description": f"about {share:.0%} of a batch of {batch} is padding: texts of different lengths share batches",
        "case": f"batch={batch}",
        "evidence": {"padding": share, "method": "estimated by counting words"},
        "action": "sort texts by length before they are cut into batches (not measured here: measure both)",
    }
