# SPDX-License-Identifier: MIT
"""What the commands of python -m tare have in common: wrong words told in one line, progress on stderr."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, NoReturn

import tare

_EVERY_S = 10  # between lines where stderr is no terminal


def program(word: str) -> str:
    """What the user typed: `tare WORD` by way of the command, which sets PROGRAM, or `python -m tare WORD`."""
    return f"{getattr(tare, 'PROGRAM', 'python -m tare')} {word}"


class Parser(argparse.ArgumentParser):
    """One line says what is wrong, the next what to type, as of the other commands."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\ntry: {self.prog} -h\n")


def refusal(wrong: BaseException) -> str:
    """The system's words without the number that Python adds."""
    name, words = getattr(wrong, "filename", None), getattr(wrong, "strerror", None)
    return f"{name}: {words}" if name and words else str(wrong)


class Progress:
    """Called as progress(what, done, total): one line of a terminal, else a line each ten seconds."""

    def __init__(self, out: Any = None, clock: Any = time.monotonic):
        self.out, self.clock = out or sys.stderr, clock
        self.began = self.told = clock()
        self.terminal = self.out.isatty()
        self.open = False

    def __call__(self, what: str, done: int, total: int) -> None:
        now = self.clock()
        share = min(1.0, done / total) if total else 0.0
        left = f"  ETA {(now - self.began) * (1 - share) / share:.0f}s" if share >= 0.05 else ""
        if self.terminal:
            self.open = True
            print(f"\r\033[K{share:4.0%}{left}  {what}", end="", file=self.out, flush=True)
        elif now - self.told >= _EVERY_S:
            self.told = now
            print(f"tare: {share:.0%}{left}  {what}", file=self.out, flush=True)

    def close(self) -> None:
        if self.open:
            print("\r\033[K", end="", file=self.out, flush=True)
        self.open = False
