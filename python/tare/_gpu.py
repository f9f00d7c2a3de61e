# SPDX-License-Identifier: MIT
"""The GPU in a run document: what a case did there, from a few runs of their own that are recorded; or why nothing is known of it, and that
the memory in the document is the process's on the host."""

from __future__ import annotations

import os
import sys
from typing import Any, Callable

from tare._tare import in_sentence

HOST_ONLY = "it runs on {}, and only the process's memory on the host was measured"
NO_ALLOCATOR = "PyTorch's allocator is not what the memory comes from"
_PEAKS = ("rss_peak", "delta", "per_unit")
_PASS_S, _LEAST, _MOST = 0.3, 3, 20  # a recorded pass: seconds wished, runs

recording = False  # calls made now are for a look at the GPU, and none of those measured


def is_open(files: str = "/proc/self/fd") -> bool:
    """Whether this process uses CUDA: whoever does holds the device of unified memory open. Loads no library to find out."""
    try:
        held = [os.path.join(files, name) for name in os.listdir(files)]
        return any(os.path.islink(path) and os.readlink(path).startswith("/dev/nvidia-uvm") for path in held)
    except OSError:
        return False


# ---- recorded ----


def allocator() -> Any:
    """torch.cuda where PyTorch uses a GPU in this process; None elsewhere."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda and cuda.is_initialized() else None


def record(document: dict[str, Any], calls: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """Fills `gpu` of each case from recorded runs of its call; `unknown` says why not."""
    global recording
    recording = True
    try:
        return _record_all(document, calls)
    finally:
        recording = False


def _record_all(document: dict[str, Any], calls: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    for case in document["cases"]:
        if case["name"] not in calls:  # it failed
            continue
        median = (case.get("latency_ns") or {}).get("p50")
        ns = median.get("value") if median else None
        runs = min(_MOST, max(_LEAST, int(_PASS_S * 1e9 / ns))) if ns else _LEAST
        try:
            found = _record_case(calls[case["name"]], runs, document["host"]["gpus"])
        except Exception as error:  # the program's: what was measured before is not lost by a look at it
            found = f"a call that was to be recorded failed: {type(error).__name__}: {error}"
        if isinstance(found, str):
            case.setdefault("unknown", {})["gpu"] = found
        else:
            case["gpu"] = found
            (case.get("unknown") or {}).pop("gpu", None)
            if any(device["memory_peak"] is None for device in found["devices"]):
                case.setdefault("unknown", {})["gpu.devices.memory_peak"] = NO_ALLOCATOR
            _put_memory(case, found["devices"])
    return document


def _put_memory(case: dict[str, Any], devices: list[dict[str, Any]]) -> None:
    """What a model of `tare bench` has under these names: here of PyTorch's allocator."""
    unknown, memory, cuda = case.setdefault("unknown", {}), case.get("memory"), allocator()
    peaks = [device["memory_peak"] for device in devices]
    if memory and cuda and all(peaks):
        memory.update(gpu_peak=sum(peaks), gpu_held=sum(map(cuda.memory_reserved, range(cuda.device_count()))))
    for name in ("gpu_peak", "gpu_held") if memory else ():
        unknown[f"memory.{name}"] = NO_ALLOCATOR
        if memory[name] is not None:
            del unknown[f"memory.{name}"]


def _record_case(call: Callable[[], Any], runs: int, cards: list[dict[str, Any]]) -> dict[str, Any] | str:
    from tare._gpu_block import gpu

    call()  # what it allocates once is there
    cuda = allocator()
    for number in range(cuda.device_count() if cuda else 0):
        cuda.reset_peak_memory_stats(number)
    before = [cuda.memory_allocated(number) for number in range(cuda.device_count())] if cuda else []
    with gpu() as seen:  # with the calls: they tell of CUDA graphs of which nothing was recorded
        for _ in range(runs):
            call()
    if "gpu" in seen.unknown:
        return seen.unknown["gpu"]
    lost = seen.document["lost"]["graphs"]
    if lost:
        return f"nothing was recorded of {lost} launch{'' if lost == 1 else 'es'} of CUDA graphs: what the GPU did in {runs} runs is more than what is known"
    if not seen.devices:
        return f"{runs} runs were recorded, and none used a GPU"
    return {
        "kernel_ns": sum(row["total_ns"] for row in seen.kernels) // runs,
        "copy_ns": sum(row["total_ns"] for row in seen.copies) // runs,
        "copy_bytes": sum(row["bytes"] for row in seen.copies if row["direction"] != "fill") // runs,
        "devices": [_device(device, cards, cuda, before) for device in seen.devices],
    }


def _device(device: dict[str, Any], cards: list[dict[str, Any]], cuda: Any, before: list[int]) -> dict[str, Any]:
    number = device["number"]
    card = next((card for card in cards if card.get("uuid") and card["uuid"] == device.get("uuid")), None)
    peak = cuda.max_memory_allocated(number) if cuda and number < len(before) else 0
    return {
        "index": card["index"] if card else number,
        "name": device.get("name"),
        "utilization": device.get("busy"),
        "memory_utilization": None,
        "memory_before": before[number] if peak else None,
        "memory_peak": peak or None,
        "power_w": None,
        "temperature_c": None,
        "clock_mhz": None,
        "throttled_ns": None,
    }


# ---- not recorded ----


def tell(document: dict[str, Any], device: str | None = None) -> dict[str, Any]:
    """The document; where nothing of the GPU is in it, with that said. With a device, which is where the model is, the host's peaks are
    then not called the model's memory: they are unknown, targets for them are not judged, and the finding has them. Without one, the
    process has a GPU open, and what was measured may use it or not."""
    blind = [case for case in document["cases"] if not case.get("gpu") and case.get("samples")]
    said = {"machine.gpu-unseen"} if blind else {"machine.gpu-unseen", "gpu.unwatched"}
    document["findings"] = [one for one in document["findings"] if one["id"] not in said]
    if not blind:
        return document
    peaks = [case["memory"]["rss_peak"] or 0 for case in blind if case.get("memory")]
    for case in blind:
        case.setdefault("unknown", {}).setdefault("gpu", "nothing of a GPU was recorded")
        if device and case.get("memory"):
            case["memory"].update(dict.fromkeys(_PEAKS))
            case["unknown"].update({f"memory.{name}": HOST_ONLY.format(device) for name in _PEAKS})
    for target in document["targets"] if device else ():
        if target["metric"].startswith("memory."):
            target.update(achieved=None, ratio=None, confidence=None, verdict="inconclusive")
    title = f"it ran on {device}" if device else "this process uses a GPU"
    document["findings"].append({
        "id": "machine.gpu-unseen", "severity": "warn", "case": None,
        "title": f"{title}, of which nothing is in here: {in_sentence(max(peaks, default=0), 'B')} are the process's peak on the host",
        "evidence": {"host_rss_peak": max(peaks, default=0)},
        "action": f"watch the GPU with `tare run --gpu` or tare.gpu(); here it was not to be had: {blind[0]['unknown']['gpu']}",
    })  # fmt: skip
    return document
