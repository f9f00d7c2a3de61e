# SPDX-License-Identifier: MIT
"""The table of functions as text: pstats' columns, and a line on what the profiler itself cost."""

_SORTS = {
    "self": lambda f: (-f.self_ns, f.key),
    "total": lambda f: (-f.total_ns, f.key),
    "calls": lambda f: (-f.calls, f.key),
    "primitive": lambda f: (-f.primitive, f.key),
    "name": lambda f: (f.name, f.key),
    "file": lambda f: f.key,
    "line": lambda f: (f.line, f.key),
    "standard": lambda f: (f"{_place(f)}", f.key),
}
_ALSO = {
    "tottime": "self",
    "time": "self",
    "cumtime": "total",
    "cumulative": "total",
    "ncalls": "calls",
    "pcalls": "primitive",
    "filename": "file",
    "module": "file",
    "nfl": "name",
    "stdname": "standard",
}
HEADER = "   ncalls     tottime     percall     cumtime     percall filename:lineno(function)"


def _place(f):
    if f.file != "~":
        return f"{f.file}:{f.line}({f.name})"
    return "{" + f.name[1:-1] + "}" if f.name.startswith("<") else f.name


def _row(f):
    calls = str(f.calls) if f.calls == f.primitive else f"{f.calls}/{f.primitive}"
    per_call, per_primitive = f.self_ns / f.calls, f.total_ns / max(f.primitive, 1)
    times = "".join(f" {ns / 1e9:11.{digits}f}" for ns, digits in ((f.self_ns, 6), (per_call, 9), (f.total_ns, 6), (per_primitive, 9)))
    return f"{calls:>9}{times} {_place(f)}"


def _own_cost(profile):
    """What was subtracted, and what could not be."""
    cost = profile.self_cost
    if cost["total_ns"] is None:
        return "self: unknown, hence not subtracted (another profiler was active)"
    each = [f"{sum(cost['python']):.0f} ns a Python call"]
    if sum(cost["c"]):
        each.append(f"{sum(cost['c']):.0f} ns a C call")
    line = f"self: tare's own cost, {cost['total_ns'] / 1e9:.6f} s ({', '.join(each)}), is subtracted"
    if cost["slowdown"] > 1.1:
        line += f"\nself: this Python runs code between calls {cost['slowdown']:.1f} x slower while it is profiled; that is not subtracted"
    return line


def sort_key(word):
    """The order for one of our words or of pstats'; ValueError that names the words."""
    word = _ALSO.get(word, word)
    if word not in _SORTS:
        raise ValueError(f"sort={word!r}: choose one of {', '.join([*_SORTS, *_ALSO])}")
    return _SORTS[word]


def text(profile, sort, limit):
    """The whole table; limit: rows shown."""
    order = sort_key(sort)
    rows = sorted(profile.functions(), key=order)
    calls, primitive = sum(f.calls for f in rows), sum(f.primitive for f in rows)
    counted = f"{calls} function calls" + (f" ({primitive} primitive calls)" if calls != primitive else "")
    seconds, threads = sum(f.self_ns for f in rows) / 1e9, profile._status()["threads"]
    together = f" of {threads} threads together" if threads > 1 else ""
    head = [f"         {counted} in {seconds:.6f} seconds{together}", "", f"   Ordered by: {sort}", ""]
    shown = rows if limit is None else rows[:limit]
    more = [f"... and {len(rows) - len(shown)} functions more"] if len(shown) < len(rows) else []
    notes = [_own_cost(profile), *(f"incomplete: {why}" for why in profile.trouble)]
    return "\n".join([*head, HEADER, *map(_row, shown), *more, "", *notes])
