# SPDX-License-Identifier: MIT
"""What must be said of work that runs on a GPU, as long as a bench watches none: that nothing of the GPU is in the answer, and that the
memory in it is the process's on the host."""

from __future__ import annotations

import os
from typing import Any

from tare._tare import in_sentence

UNSEEN = "a bench does not watch GPUs in this version: `tare run` and ModelProfiler.gpu_profile() ask NVML"
HOST_ONLY = "it runs on {}, and only the process's memory on the host was measured"
_PEAKS = ("rss_peak", "delta", "per_unit")


def is_open(files: str = "/proc/self/fd") -> bool:
    """Whether this process uses CUDA: whoever does holds the device of unified memory open. Loads no library to find out."""
    try:
        held = [os.path.join(files, name) for name in os.listdir(files)]
        return any(os.path.islink(path) and os.readlink(path).startswith("/dev/nvidia-uvm") for path in held)
    except OSError:
        return False


def tell(document: dict[str, Any], device: str | None = None) -> dict[str, Any]:
    """The document with that said. With a device, which is where the model is, the host's peaks are not called the model's memory:
    they are unknown, targets for them are not judged, and the finding has them. Without one, the process has a GPU open, and what was
    measured may use it or not."""
    peaks = [case["memory"]["rss_peak"] or 0 for case in document["cases"] if case.get("memory")]
    for case in document["cases"]:
        case.setdefault("unknown", {})["gpu"] = UNSEEN
        if device and case.get("memory"):
            case["memory"].update(dict.fromkeys(_PEAKS))
            case["unknown"].update({f"memory.{name}": HOST_ONLY.format(device) for name in _PEAKS})
    for target in document["targets"] if device else ():
        if target["metric"].startswith("memory."):
            target.update(achieved=None, ratio=None, confidence=None, verdict="inconclusive")
    title = f"it ran on {device}" if device else "this process uses a GPU"
    document["findings"] = [one for one in document["findings"] if one["id"] != "machine.gpu-unseen"]
    document["findings"].append({
        "id": "machine.gpu-unseen", "severity": "warn", "case": None,
        "title": f"{title}, of which nothing is in here: {in_sentence(max(peaks, default=0), 'B')} are the process's peak on the host",
        "evidence": {"host_rss_peak": max(peaks, default=0)},
        "action": "watch the GPU with `tare run`, or with ModelProfiler.gpu_profile()",
    })  # fmt: skip
    return document
