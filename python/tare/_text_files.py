# SPDX-License-Identifier: MIT
"""TextProfile: what a text profiler found, as a dict that becomes a JSON file, with the run document beside it."""

from __future__ import annotations

import json
import os
from datetime import datetime
from itertools import count
from typing import Any

from tare._run import Run
from tare._whole_file import write_text

RESULTS = "tare-results"


class TextProfile(dict):
    """The document; print() shows it as tables; `run` is the run document that all its numbers come from."""

    def __init__(self, kind: str, run: Run, document: dict[str, Any]) -> None:
        super().__init__(document)
        self.kind = kind
        self.run = run

    def __str__(self) -> str:
        from tare._text_table import show

        return show(self)

    def save(self, folder: str | os.PathLike = RESULTS, output: str | os.PathLike | None = None) -> str:
        """Write <kind>_<date>.json into the folder (a second one of the day is .._2.json), or `output`, which is replaced; and the run
        document beside it. The path."""
        folder = (os.path.dirname(output) or ".") if output else os.fspath(folder)
        os.makedirs(folder, exist_ok=True)
        self["run"] = os.path.basename(self.run.save(folder))
        text = json.dumps(self, indent=2) + "\n"
        return write_text(output, text) if output else _write_dated(folder, f"{self.kind}_{self['timestamp'][:10]}", text)


def _write_dated(folder: str, stem: str, text: str) -> str:
    """Never over another file, never half of one."""
    written = write_text(os.path.join(folder, f".{stem}.{os.getpid()}"), text)
    try:
        for number in count(1):
            path = os.path.join(folder, f"{stem}.json" if number == 1 else f"{stem}_{number}.json")
            try:
                os.link(written, path)
                return path
            except FileExistsError:
                continue
    finally:
        os.unlink(written)


def now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")
