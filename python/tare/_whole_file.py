# SPDX-License-Identifier: MIT
"""Files that are there whole or not at all: a temporary name beside them, then a rename."""

from __future__ import annotations

import os
import tempfile


def write_bytes(path: str | os.PathLike, data: bytes) -> str:
    """The path. What is no file (a pipe, a terminal, /dev/null) is written to as it is; a link stays one."""
    path = os.fspath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as out:
            out.write(data)
        return path
    try:
        _replace(os.path.realpath(path), data)
    except OSError as failed:
        raise OSError(failed.errno, failed.strerror, path) from None  # a temporary name says nothing to anybody
    return path


def _replace(target: str, data: bytes) -> None:
    with tempfile.NamedTemporaryFile("wb", dir=os.path.dirname(target), prefix=".tare-", delete=False) as out:
        try:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
            os.fchmod(out.fileno(), 0o644)
            os.replace(out.name, target)
        except BaseException:
            os.unlink(out.name)
            raise


def write_text(path: str | os.PathLike, text: str) -> str:
    """The same with text, of which nothing is refused: names of files may hold what is no text."""
    return write_bytes(path, text.encode("utf-8", "backslashreplace"))
