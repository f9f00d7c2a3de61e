# SPDX-License-Identifier: MIT
"""The plugin for pytest: `pytest --tare-memory-limit 200MB`, `@pytest.mark.tare_memory("50MB", leaks="0")`. pytest finds it by its entry point;
nothing of tare is loaded before a test asks for it."""

from __future__ import annotations

import os
import re
from typing import Any, Iterator

import pytest

SHOWN = 5  # sites in the text of a failure
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}


def size(text: Any) -> int:
    """Bytes: 1000000, "1MB", "1 MiB". ValueError with words for people."""
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        return text
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?i?b)?\s*", str(text), re.IGNORECASE)
    if not found or (found[2] or "").lower() not in _UNITS:
        raise ValueError(f"{text!r} is no size: a number with B, KB, MB, GB, KiB, MiB or GiB, as 50MB")
    return round(float(found[1]) * _UNITS[(found[2] or "").lower()])


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("tare", "memory of tests")
    group.addoption("--tare-memory-limit", metavar="SIZE", help="fail a test that holds more than this at its peak, e.g. 200MB (@pytest.mark.tare_memory sets its own)")


def pytest_configure(config: Any) -> None:
    text = 'tare_memory(limit=None, *, leaks=None): fail if the test holds more than limit at its peak, e.g. "50MB"; leaks="0": or if more than that is still held after it'
    config.addinivalue_line("markers", text)
    given = config.getoption("--tare-memory-limit", None)
    if given is not None:
        try:
            size(given)
        except ValueError as why:
            raise pytest.UsageError(f"--tare-memory-limit: {why}") from None


def _limits(item: Any) -> tuple[int | None, int | None]:
    mark, common = item.get_closest_marker("tare_memory"), item.config.getoption("--tare-memory-limit", None)
    args, named = (mark.args, mark.kwargs) if mark else ((), {})
    if len(args) > 1 or set(named) - {"limit", "leaks"}:
        raise ValueError("tare_memory takes a limit and leaks=")
    limit = args[0] if args else named.get("limit", common)
    leaks = named.get("leaks")
    return None if limit is None else size(limit), None if leaks is None else size(leaks)


def _megabytes(count: float) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count:,.0f} bytes"


def _say(what: str, have: float, limit: int, sites: list[Any], of: str) -> str:
    largest = sorted(sites, key=lambda s: -getattr(s, of))[:SHOWN]
    rows = [f"  {_megabytes(getattr(s, of)):>12}  {s}" for s in largest if getattr(s, of) > 0]
    return "\n".join([f"{what} {_megabytes(have)}, more than {_megabytes(limit)}; the largest sites:", *rows])


def _of_test(sites: list[Any], item: Any) -> list[Any]:
    """What was allocated in the test or in what it called: pytest keeps things, too."""
    path = os.path.realpath(str(item.path if hasattr(item, "path") else item.fspath))
    return [s for s in sites if any(f.kind == "python" and f.file and os.path.realpath(f.file) == path for f in s.frames)]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    if item.get_closest_marker("tare_memory") is None and item.config.getoption("--tare-memory-limit", None) is None:
        yield
        return
    try:
        limit, leaks = _limits(item)
    except ValueError as why:
        pytest.fail(f"@pytest.mark.tare_memory: {why}", pytrace=False)
    import gc

    import tare

    if leaks is not None:
        item.runtest()  # caches fill with the first call, and are no leak
        gc.collect()
    m = tare.memory(every=True)
    with m:
        outcome = yield
        gc.collect()
    if outcome.excinfo is not None:
        return
    if m.why is not None:
        outcome.force_exception(pytest.fail.Exception(f"memory is unknown: {m.why}", pytrace=False))
        return
    said = []
    if limit is not None and m.peak > limit:
        said.append(_say("the test held", m.peak, limit, m.sites, "peak"))
    if leaks is not None:
        left = _of_test(m.sites, item)
        held = sum(s.leaked for s in left)
        if held > leaks:
            said.append(_say("after the test are still held", held, leaks, left, "leaked"))
    if said:
        outcome.force_exception(pytest.fail.Exception("\n".join(said), pytrace=False))
