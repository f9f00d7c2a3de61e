# SPDX-License-Identifier: MIT
"""Where the threads of this program are, while a block runs: `with tare.sample() as s:`. The command looks at this very process from outside,
as `tare attach` does; nothing of it runs in the program. No clock, no statistics of its own."""

from __future__ import annotations

import gzip
import html
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import namedtuple
from typing import Any

from tare import _answers, _command, _memory_block, _tare

Function = namedtuple("Function", "name file own own_interval total total_interval")
Function.__doc__ = "Shares of the time, from 0 to 1: of the function itself, and with all that it calls; with 95 % intervals (low, high)."

_TIMES = ("wall", "cpu", "gil", "idle")
_EXPORTS = {".prof": "prof", ".speedscope.json": "speedscope", ".folded": "folded", ".pb.gz": "pprof", ".pb": "pprof"}
_START_S, _END_S = 60.0, 120.0  # the machine may be busy; never for ever

_lock = threading.Lock()
_now: "sample | None" = None  # the block that is looked at; one at a time


class sample:
    """with tare.sample(hz=200) as s: ..      s.print(), s.functions(), s.flame("x.html"), s.save("x.prof")

    hz          looks per second, at random moments
    budget      percent of one processor that looking may take: of another processor, where there is one; fewer looks where it would not suffice
    consistent  each thread is held still for the moment in which it is read: no stack is torn, the program pays for it (tare attach --consistent)
    Seen are all threads of this process and the Python processes that it starts. Native code counts as part of the function that called it.
    One block at a time.
    """

    def __init__(self, hz: float = 200, *, budget: float = 5, consistent: bool = False) -> None:
        if not 0.1 <= hz <= 10000:
            raise ValueError("hz: from 0.1 to 10000 looks per second")
        if not 0.01 <= budget <= 100:
            raise ValueError("budget: from 0.01 to 100 percent of a processor")
        self.hz, self.budget, self.consistent = hz, budget, consistent
        self._folder: str | None = None
        self._watching: subprocess.Popen | None = None
        self._over, self._by = False, 0

    # ---- the block ----
    def __enter__(self) -> "sample":
        global _now
        refused = _memory_block.supported()
        if refused:
            raise RuntimeError(f"tare.sample: {refused}")
        with _lock:
            if _now is not None and _now._by == os.getpid():
                raise RuntimeError("tare.sample: another block of this program is sampled already: it has what this one does")
            self._forget()
            self._start()
            _now = self
        return self

    def _start(self) -> None:
        self._folder, self._over, self._by = tempfile.mkdtemp(prefix="tare-sample-"), False, os.getpid()
        self._trace = os.path.join(self._folder, "sample.tare")
        _tare.let_children_read(True)
        words = [_command.path(), "attach", "--hz", self.hz, "--budget", self.budget, "-o", self._trace, *(["--consistent"] if self.consistent else []), os.getpid()]
        # A session of its own: Ctrl-C in a terminal is for the program, whose block ends as it does.
        self._watching = subprocess.Popen(
            list(map(str, words)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        deadline = time.monotonic() + _START_S
        while not os.path.exists(self._trace):
            if self._watching.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"tare.sample: {self._end() or 'it did not begin to look'}")
            time.sleep(0.001)

    def _end(self) -> str:
        """What the command said."""
        watching, self._watching = self._watching, None
        watching.send_signal(signal.SIGINT)  # nothing, if it ended by itself
        try:
            said = watching.communicate(timeout=_END_S)[1]
        except subprocess.TimeoutExpired:
            watching.kill()
            said = watching.communicate()[1]
        _tare.let_children_read(False)
        return said.decode(errors="replace").strip()

    def __exit__(self, *ignored: Any) -> None:
        global _now
        with _lock:
            if _now is not self or self._by != os.getpid():  # of a fork: the parent's block
                return
            _now, watching = None, self._watching
            said = self._end()
            if watching.returncode != 0:
                raise RuntimeError(f"tare.sample: {said}")
            self._over = True

    def _forget(self) -> None:
        folder, self._folder = self._folder, None
        if folder and self._by == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)

    def __del__(self) -> None:
        try:
            if self._watching is None:
                self._forget()
        except Exception:  # at the end of the interpreter there may be nothing left to do it with
            pass

    # ---- what it means ----
    def _ask(self, command: str, *options: str) -> str:
        if not self._over:
            raise RuntimeError("tare.sample: the block has not ended")
        return _command.call(command, *options, self._trace)

    def _report(self, time: str, *options: str) -> str:
        if time not in _TIMES:
            raise ValueError(f"time: one of {', '.join(_TIMES)}")
        return self._ask("report", "--stacks", f"--{time}", *options)

    def to_dict(self, time: str = "wall") -> dict[str, Any]:
        """As `tare report --stacks --json` says it."""
        return json.loads(self._report(time, "--json"))

    def functions(self, time: str = "wall") -> list[Function]:
        """By own time, the most first. time: "wall", "cpu", "gil" (while holding the GIL), "idle"."""

        def share(f: dict[str, Any], key: str) -> tuple:
            return f[key]["share"], (f[key]["lo"], f[key]["hi"])

        return [Function(f["name"], f["file"], *share(f, "own"), *share(f, "total")) for f in self.to_dict(time)["functions"]]

    def print(self, time: str = "wall", file: Any = None) -> None:
        """As `tare report --stacks` says it."""
        print(self._report(time), end="", file=file)

    def flame(self, path: Any) -> None:
        """A page with a flame graph."""
        self._ask("report", "--html", os.fspath(path))

    def save(self, path: Any, time: str = "wall") -> None:
        """By the end of its name: .tare (the trace itself), .prof (pstats, snakeviz), .speedscope.json, .pb.gz (pprof), .folded, .html."""
        path = os.fspath(path)
        if time not in _TIMES:
            raise ValueError(f"time: one of {', '.join(_TIMES)}")
        if path.endswith(".html"):
            return self.flame(path)
        kind = next((end for end in (".tare", *_EXPORTS) if path.endswith(end)), None)
        if kind is None:
            raise ValueError(f"{path}: what to write is told by the end of the name: .tare, {', '.join(_EXPORTS)} or .html")
        if kind == ".tare":
            return self._ask("export", "-f", "tare", "-o", path) and None
        between = os.path.join(self._folder or "", "export")
        self._ask("export", "--stacks", "--time", time, "-f", _EXPORTS[kind], "-o", between)
        with open(between, "rb") as file:
            data = file.read()
        os.unlink(between)
        _answers.write_bytes(path, gzip.compress(data) if kind == ".pb.gz" else data)
        return None

    def __str__(self) -> str:
        return self._report("wall").rstrip("\n") if self._over else repr(self)

    def __repr__(self) -> str:
        return f"<tare.sample: {self.hz:g} looks per second{'' if self._over else ', not ended'}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))
