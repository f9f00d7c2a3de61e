# SPDX-License-Identifier: MIT
"""What results look like: as text, as files, as pages. Only formats: every number stands in the result itself, and what is not known
is said to be unknown. Nothing here measures or judges, and nothing is imported that does."""

from __future__ import annotations

import base64
import datetime
import itertools
import json
import linecache
import marshal
import os
import secrets
from html import escape
from typing import Any, Callable, Iterable, Iterator

from tare._calls_text import short_file
from tare._tare import in_column, in_sentence, version
from tare._unknown import known

# ---- files: there whole or not at all, by a temporary name beside them and a rename --------------------------------------------


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


def write_private(path: str, data: bytes) -> None:
    """For its owner alone."""
    _replace(path, data, 0o600)


def _replace(target: str, data: bytes, mode: int = 0o666) -> None:
    beside = _write_beside(target, data, mode)
    try:
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise


def _write_beside(target: str, data: bytes, mode: int) -> str:
    """A new file in the folder of `target`, on the disk; named as core/file.c names them. Its path."""
    name = os.path.join(os.path.dirname(target), f".tare-{secrets.token_hex(8)}")
    with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as out:
        try:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        except BaseException:
            os.unlink(name)
            raise
    return name


def write_text(path: str | os.PathLike, text: str) -> str:
    """The same with text, of which nothing is refused: names of files may hold what is no text."""
    return write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_dated(folder: str, stem: str, text: str) -> str:
    """folder/stem.json, or stem_2.json, .._3.json where that is there: never over another file, for its owner alone. The path."""
    written = _write_beside(os.path.join(folder, stem), text.encode("utf-8", "backslashreplace"), 0o600)
    try:
        for number in itertools.count(1):
            path = os.path.join(folder, f"{stem}.json" if number == 1 else f"{stem}_{number}.json")
            try:
                os.link(written, path)
                return path
            except FileExistsError:
                continue
    finally:
        os.unlink(written)


def by_ending(path: str, writers: dict[str, Callable]) -> Callable:
    """What writes a file of that name; ValueError that names the endings."""
    ending = os.path.splitext(path)[1]
    if ending not in writers:
        raise ValueError(f"{path}: its ending must say what to write: {', '.join(writers)}")
    return writers[ending]


# ---- the report page that the package carries, with data put in: one HTML file that needs nothing else --------------------------

_PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.html")
_PLAIN = "delta-zigzag-varint+base64"  # docs/run-document.md; the other codec needs zstd
_SAMPLES_MOST = 200_000  # in one page
_PLACE = '<script id="tare-data" type="application/json">null</script>'


def carried() -> str:
    """The page's text. RuntimeError with the cause when the package has none."""
    try:
        with open(_PAGE, encoding="utf-8") as page:
            text = page.read()
    except FileNotFoundError:
        text = ""
    if _PLACE not in text:
        raise RuntimeError("this package was built without the report page, which needs node: install node, then pip install . again")
    return text


def _single_times(raw: dict[str, Any]) -> list[int]:
    """A page has no decoder."""
    times, last, value, shift = [], 0, 0, 0
    for byte in base64.b64decode(raw["data"]):
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            last += (value >> 1) ^ -(value & 1)
            times.append(last)
            value = shift = 0
    return times


def _spelled_case(case: dict[str, Any], step: int) -> dict[str, Any]:
    raw = case.get("samples_raw")
    if not raw or raw["codec"] != _PLAIN:
        return case
    kept = f"one in {step} of {raw['kept']}" if step > 1 else raw["kept"]
    rest = {key: value for key, value in case.items() if key != "samples_raw"}
    return {**rest, "samples_ns": _single_times(raw)[::step], "samples_kept": kept}


def spelled_out(item: dict[str, Any]) -> dict[str, Any]:
    """The item as the page takes it: in a run document single times as numbers."""
    if item["kind"] != "run":
        return item
    document = item["document"]
    count = sum(case["samples_raw"]["count"] for case in document["cases"] if case.get("samples_raw"))
    step = -(-count // _SAMPLES_MOST) or 1
    return {**item, "document": {**document, "cases": [_spelled_case(case, step) for case in document["cases"]]}}


def write_page(path: Any, items: list[dict[str, Any]], title: str) -> Any:
    """Writes `items` ({"kind": "run", "name", "document"} or {"kind": "profile", "document"}) as one HTML page; returns the path."""
    data = {
        "schema": "tare.page/1",
        "title": title,
        "created": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "tool": {"version": version},
        "items": [spelled_out(item) for item in items],
    }
    packed = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return write_text(path, carried().replace(_PLACE, _PLACE.replace("null", "%s", 1) % packed, 1))


def run_page(path: Any, document: dict[str, Any], title: str | None = None) -> Any:
    """A run document as a page."""
    name = document["subject"]["name"]
    return write_page(path, [{"kind": "run", "name": name, "document": document}], title or name)


# ---- profiles of functions: pstats, speedscope, folded stacks, and the document of the page --------------------------------------


def write_prof(profile: Any, path: str) -> None:
    """What pstats, snakeviz and gprof2dot read."""
    write_bytes(path, marshal.dumps(profile.stats))


def _stack_name(label: tuple) -> str:
    """`;` and line ends have a meaning in folded stacks."""
    file, line, name = label
    full = name if file == "~" else f"{name} ({file}:{line})"
    return full.replace(";", ",").replace("\n", " ")


def _paths(tree: Any) -> Iterator[tuple]:
    """(path, self ns) of every node that has time of its own; a path is a tuple of numbers of functions."""
    path_of = [()] * len(tree.parent)
    for node, (parent, function) in enumerate(zip(tree.parent, tree.function)):
        above = path_of[parent] if parent >= 0 else ()
        path_of[node] = above if function < 0 else (*above, function)
        if tree.self_ns[node] > 0 and function >= 0:
            yield path_of[node], tree.self_ns[node]


def write_folded(profile: Any, path: str) -> None:
    """Stacks and nanoseconds, for flamegraph.pl and the like."""
    rows = []
    for tree in profile.trees():
        names = [_stack_name(label) for label in tree.labels]
        thread = _stack_name(("~", 0, tree.name))
        rows += [";".join([thread, *(names[f] for f in stack)]) + f" {ns}\n" for stack, ns in _paths(tree)]
    write_text(path, "".join(rows))


def _speedscope_thread(tree: Any) -> dict[str, Any]:
    paths = list(_paths(tree))
    return {
        "type": "sampled",
        "name": tree.name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(ns for _, ns in paths),
        "samples": [stack for stack, _ in paths],
        "weights": [ns for _, ns in paths],
    }


def _speedscope_frame(label: tuple) -> dict[str, Any]:
    file, line, name = label
    return {"name": name} if file == "~" else {"name": name, "file": file, "line": line}


def write_speedscope(profile: Any, path: str) -> None:
    trees = profile.trees()
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "tare",
        "shared": {"frames": [_speedscope_frame(label) for label in trees[0].labels] if trees else []},
        "profiles": [_speedscope_thread(tree) for tree in trees],
    }
    write_text(path, json.dumps(document, separators=(",", ":")))


def profile_document(profile: Any, name: str) -> dict[str, Any]:
    """tare.profile/1: all threads below one root."""
    trees = profile.trees()
    labels = trees[0].labels if trees else []
    frames = [*labels, ("~", 0, "all threads"), *(("~", 0, tree.name) for tree in trees)]
    nodes = {"parent": [-1], "frame": [len(labels)], "self": [0], "total": [sum(t.total_ns[0] for t in trees)], "calls": [1]}
    for number, tree in enumerate(trees):
        first = len(nodes["parent"])
        nodes["parent"] += [parent + first if parent >= 0 else 0 for parent in tree.parent]
        nodes["frame"] += [f if f >= 0 else len(labels) + 1 + number for f in tree.function]
        nodes["self"] += tree.self_ns
        nodes["total"] += tree.total_ns
        nodes["calls"] += tree.calls
    file, line, names = ([label[i] for label in frames] for i in (0, 1, 2))
    return {
        "schema": "tare.profile/1",
        "name": name,
        "unit": "ns",
        "measured": {
            "duration_ns": round(profile.seconds * 1e9),
            "processes": 1,
            "threads": len(trees),
            "own_ns": round(own) if (own := profile.self_cost["total_ns"]) is not None else None,
            "lost": profile._status()["lost"],
        },
        "frames": {"name": names, "file": ["" if f == "~" else f for f in file], "line": line},
        "nodes": nodes,
    }


def profile_page(profile: Any, path: str, title: str) -> str:
    """A flame graph as a page of its own."""
    return write_page(path, [{"kind": "profile", "name": title, "document": profile_document(profile, title)}], title)


# ---- the table of functions: pstats' columns, and a line on what the profiler itself cost ----------------------------------------

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
_COLUMNS = (("ncalls", 9), ("tottime", 10), ("%", 7), ("percall", 10), ("cumtime", 10), ("percall", 10), ("+/-", 10), ("waited", 10))
_SPARE = (7, 5, 3, 6, 4)  # columns that a narrow terminal goes without, the first one first
_PLACE_LEAST = 24  # characters of a place in the source: where it is longer, the middle is left out


def _place(f: Any) -> str:
    if f.file != "~":
        return f"{short_file(f.file)}:{f.line}({f.name})"
    return "{" + f.name[1:-1] + "}" if f.name.startswith("<") else f.name


def _bounded(ns: float, doubt: float, calls: int) -> str:
    """Time a call; where more is in doubt than is left, what it is less than."""
    return _seconds(ns / calls) if ns >= doubt else "< " + _seconds((ns + doubt) / calls)


def _seconds(ns: float | None) -> str:
    return in_column(None if ns is None else ns / 1e9, "s")


def _function_cells(f: Any, all_ns: float) -> tuple[str, ...]:
    """`all_ns`: of all functions, which its share is of; where more is in doubt than is left, it has none."""
    percent = 100 * f.self_ns / all_ns if all_ns > 0 and f.self_ns >= f.self_doubt_ns else None
    share = "-" if percent is None else f"{percent:.1f}"
    calls = str(f.calls) if f.calls == f.primitive else f"{f.calls}/{f.primitive}"
    own, total = (f.self_ns, f.self_doubt_ns), (f.total_ns, f.total_doubt_ns)
    times = (_bounded(*own, 1), _bounded(*own, f.calls), _bounded(*total, 1), _bounded(*total, max(f.primitive, 1)),
             _seconds(f.self_doubt_ns), _seconds(f.waited_ns))
    return (calls, times[0], share, *times[1:], _place(f))


def _function_table(rows: list[tuple[str, ...]], width: int | None) -> list[str]:
    """The lines of the table; on a terminal of so many characters without columns that matter least, places cut in the middle."""
    left, longest = list(range(len(_COLUMNS))), max([len(row[-1]) for row in rows] or [0])
    wish = max(min(longest, 60), _PLACE_LEAST)
    if width and all(row[7] == "0 ns" for row in rows):
        left.remove(7)  # nothing waited
    for spare in _SPARE:
        if width and spare in left and sum(_COLUMNS[i][1] + 1 for i in left) + wish > width:
            left.remove(spare)
    room = width - sum(_COLUMNS[i][1] + 1 for i in left) if width else 0

    def line(cells: tuple[str, ...]) -> str:
        place = cells[-1]
        if width and len(place) > max(room, _PLACE_LEAST):
            keep = max(room, _PLACE_LEAST) - 2
            place = f"{place[: keep // 2]}..{place[len(place) - (keep - keep // 2) :]}"
        return f"{' '.join(cells[i].rjust(_COLUMNS[i][1]) for i in left)} {place}"

    return [line((*(name for name, _ in _COLUMNS), "filename:lineno(function)")), *map(line, rows)]


def _cost_of_calls(profile: Any) -> str:
    """What was subtracted, and what could not be."""
    cost = profile.self_cost
    if cost["total_ns"] is None:
        return "self: unknown, hence not subtracted (another profiler was active)"
    each = [f"{sum(cost['python'][:2]) + cost['site'][1]:.0f} ns a Python call"]
    if sum(cost["c"]):
        each.append(f"{sum(cost['c'][:2]):.0f} ns a C call")
    when = "read while the program ran" if profile._status()["gauge_read"] else "measured before: too few calls to read it among them"
    line = f"self: tare's own cost, {_seconds(cost['total_ns'])} +/- {_seconds(cost['doubt_ns'])} ({', '.join(each)}, {when}), is subtracted"
    if cost["slowdown"] > 1.1:
        line += (f"\nself: this Python runs code between calls slower while it is profiled, {cost['slowdown']:.1f} x in a known loop: "
                 "times are the middle of what it may be, +/- holds the rest")
    if profile.preempted_s > 0.001:
        line += f"\nself: others had the processor for {in_column(profile.preempted_s, 's')}, which no time here contains"
    return line


def sort_key(word: str) -> Callable[[Any], Any]:
    """The order for one of our words or of pstats'; ValueError that names the words."""
    word = _ALSO.get(word, word)
    if word not in _SORTS:
        raise ValueError(f"sort={word!r}: choose one of {', '.join([*_SORTS, *_ALSO])}")
    return _SORTS[word]


def functions_text(profile: Any, sort: str, limit: int | None, width: int | None = None) -> str:
    """The whole table; limit: rows shown; width: of the terminal that it must fit."""
    rows = sorted(profile.functions(), key=sort_key(sort))
    calls, primitive = sum(f.calls for f in rows), sum(f.primitive for f in rows)
    counted = f"{calls} function calls" + (f" ({primitive} primitive calls)" if calls != primitive else "")
    seconds, threads = sum(f.self_ns for f in rows) / 1e9, profile._status()["threads"] - getattr(profile, "_n_left_out", 0)
    together = f" of {threads} threads together" if threads > 1 else ""
    head = [f"         {counted} in {in_column(seconds, 's')}{together}", "", f"   Ordered by: {sort}", ""]
    shown, own_ns = rows if limit is None else rows[:limit], sum(f.self_ns for f in rows)
    left = len(rows) - len(shown)
    more = [f"... and {left} function{'s' * (left != 1)} more"] if left else []
    notes = [_cost_of_calls(profile), *(f"incomplete: {why}" for why in profile.trouble)]
    if getattr(profile, "left_out", ()):
        notes.append(f"left out: threads of the notebook itself ({', '.join(profile.left_out)})")
    return "\n".join([*head, *_function_table([_function_cells(f, own_ns) for f in shown], width), *more, "", *notes])


# ---- lines: the source with numbers beside it ------------------------------------------------------------------------------------

def _lines_of(function: Any) -> str:
    ran = {line.line_number: line for line in function.lines}
    rows = [f"{function.name}, {function.filename}:{function.first_line}: {in_column(function.time_s, 's')}", "",
            f"{'line':>6} {'hits':>11} {'time':>10} {'per hit':>10} {'share':>8}  source"]
    for number in range(min([function.first_line, *ran]), max(ran) + 1):
        line = ran.get(number)
        cells = (f"{line.hits:>11,} {in_column(line.time_s, 's'):>10} {in_column(line.per_hit_s, 's'):>10} {line.time_percent:>6.1f} %"
                 if line else " " * 42)
        source = linecache.getline(function.filename, number).rstrip("\n")
        rows.append(f"{number:>6} {cells}  {source}".rstrip())
    return "\n".join(rows)


def _cost_of_lines(profile: Any) -> str:
    cost = profile.self_cost
    if cost is None:
        text = "self: unknown, hence not subtracted (another tracer was active)"
    else:
        total = sum(function.own_cost_s for function in profile.functions())
        text = f"self: tare's own cost, {in_column(total, 's')} ({cost.line_ns:.0f} ns a line, {cost.call_ns:.0f} ns a call or return), is subtracted"
        if cost.slowdown > 1.1:
            text += f"\nself: this Python runs all code {cost.slowdown:.1f} x slower while lines are traced; that is not subtracted"
    return "\n".join([text, *(f"incomplete: {why}" for why in profile.trouble)])


def lines_text(profile: Any) -> str:
    """All functions of which a line ran."""
    parts = [_lines_of(function) for function in profile.functions()] or ["no line of the chosen functions ran"]
    return "\n\n".join([*parts, _cost_of_lines(profile)])


_MISSED = {"<=": ">", "<": ">=", ">=": "<", ">": "<="}


def target_words(target: dict[str, Any]) -> tuple[str, str]:
    """Of a target: its limit, and what was reached. What was counted, though too few runs for a value, is known to be on one side."""

    def quantity(value: float) -> str:
        unit = target["unit"] or ""
        return in_sentence(*{"ns": (value / 1e9, "s"), "ms": (value / 1e3, "s")}.get(unit, (value, unit)))

    limit = quantity(target["value"])
    if target["achieved"] is not None:
        return limit, quantity(target["achieved"])
    side = {"pass": target["op"], "fail": _MISSED.get(target["op"])}.get(target["verdict"])
    return limit, f"{side} {limit}" if side else "unknown"


# ---- in a notebook ----------------------------------------------------------------------------------------------------------------


class Shown:
    """What shows itself as the last value of a cell: as text in a terminal, in columns that stay columns on a page."""

    def _shown(self) -> str:
        raise NotImplementedError

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self._shown())

    def _repr_html_(self) -> str:
        style = "white-space:pre;font-family:monospace;overflow-x:auto;line-height:1.3"
        return f'<pre style="{style}">{escape(self._shown())}</pre>'


# ---- a run in a notebook: what the document says; unknown is a dash ----------------------------------------------------------------


def _latency(case: Any, which: str) -> str:
    """With its interval, where it has one."""
    found = (case.get("latency_ns") or {}).get(which) or {}
    if found.get("value") is None:
        return "-"
    ends = [in_column(found[end] / 1e9, "s") for end in ("lo", "hi") if found.get(end) is not None]
    return in_column(found["value"] / 1e9, "s") + (f" ({' to '.join(ends)})" if len(ends) == 2 else "")


# title: how its cell is made of a case
_RUN_COLUMNS = {
    "p50": lambda c: _latency(c, "p50"),
    "p95": lambda c: _latency(c, "p95"),
    "p99": lambda c: _latency(c, "p99"),
    "per second": lambda c: in_column(c.throughput),
    "memory": lambda c: in_column(c.memory_peak, "B"),
}


def _html_row(cells: list[str], tag: str = "td", bold: bool = False) -> str:
    weight = "bold" if bold else "normal"
    return "<tr>" + "".join(
        f'<{tag} style="text-align:{"left" if i == 0 else "right"};padding:2px 8px;font-weight:{weight}">{escape(c)}</{tag}>'
        for i, c in enumerate(cells)
    ) + "</tr>"


def _html_table(run: Any) -> str:
    best = (run.recommendation or {}).get("case")
    rows = [_html_row(["case", *_RUN_COLUMNS], "th", True)]
    rows += [_html_row([c.name, *(make(c) for make in _RUN_COLUMNS.values())], bold=c.name == best) for c in run.cases]
    return f'<table style="border-collapse:collapse;font-size:90%">{"".join(rows)}</table>'


def _html_target(t: dict[str, Any]) -> str:
    limit, achieved = target_words(t)
    return f"{t['case']}: {t['metric']} {t['op']} {limit}: {achieved}, {t['verdict']}"


def run_html(run: Any) -> str:
    """The table, the recommendation, targets and findings."""
    lines = [f"{f['severity']}: {f['title']}. {f['action'] or ''}" for f in run.findings]
    lines += [_html_target(t) for t in run.targets]
    if run.recommendation:
        lines.insert(0, f"recommended for {run.recommendation['objective']}: {run.recommendation['why']}")
    items = "".join(f"<li>{escape(line.strip())}</li>" for line in lines)
    return f"<div><b>{escape(run.subject)}</b>{_html_table(run)}<ul>{items}</ul></div>"


# ---- models: one case, several, and layers -----------------------------------------------------------------------------------------


def profile_lines(results: Any) -> Iterator[str]:
    """A ProfileResults in a few lines."""
    latency, rate, memory = results["latency"], results["throughput"], results["memory"]
    if not results["runs"]:
        yield f"{results.run.subject}, {results['name']}: failed: {results.case['failure']}"
        return
    yield f"{results.run.subject}, {results['name']}: {results['runs']} runs"
    yield "  latency     " + ", ".join(f"{key} {_ms(latency[key])}" for key in ("mean", "p50", "p95", "p99", "max"))
    yield f"  throughput  {in_column(rate['samples_per_second'], rate.get('unit', 'samples/s'))}"
    if known(memory.get("gpu_peak")):
        yield f"  memory      peak {in_column(memory['gpu_peak'], 'B')} on the GPU; of the process, on the host, {in_column(memory['peak'], 'B')}"
    else:
        yield f"  memory      peak {in_column(memory['peak'], 'B')}, {in_column(memory['per_sample'], 'B')} a sample"
    yield f"  load        {_ms(results['load_ms'])}, first run {_ms(results['first_run_ms'])}"
    if "end_to_end" in results:
        yield from _end_to_end(results["end_to_end"])
    if "model" in results:
        model = results["model"]
        yield f"  model       {model['parameters']:,} parameters, {_flops(model)} a run, {in_column(model['size_bytes'], 'B')}"
    for finding in results["findings"]:
        yield f"  {finding['severity']:<11} {finding['title']}"


def _end_to_end(whole: Any) -> Iterator[str]:
    """Latency with the hooks around the model, and what each part takes of it in the same runs."""
    if not known(whole):
        yield f"  end to end  unknown: {whole.reason}"
        return
    parts = ", ".join(f"{name} {in_column(part['share'], '1')}" for name, part in whole["parts"].items())
    yield "  end to end  " + ", ".join(f"{key} {_ms(whole[key])}" for key in ("mean", "p50", "p95")) + f": {parts}"


def _ms(number: float) -> str:
    """Of milliseconds, in the unit that fits."""
    return in_column(number * 1e-3, "s")


def _flops(model: dict[str, Any]) -> str:
    least = "at least " if model.get("uncounted") else ""
    return least + (in_column(model["flops"], "FLOPs") if known(model["flops"]) else "unknown FLOPs")


def configurations_text(results: Any) -> str:
    """One row for each ProfileResults, and which of them to use."""
    width = max([len(one["name"]) for one in results] + [13])
    rows = [f"{'configuration':<{width}} {'p50':>11} {'p95':>11} {'throughput':>18} {'peak memory':>12}"]
    for one in results:
        latency, rate = one["latency"], one["throughput"]
        if not one["runs"]:
            rows.append(f"{one['name']:<{width}} failed: {one.case['failure']}")
            continue
        rows.append(
            f"{one['name']:<{width}} {_ms(latency['p50']):>11} {_ms(latency['p95']):>11} "
            f"{in_column(rate['samples_per_second'], rate.get('unit', 'samples/s')):>18} {in_column(one['memory']['peak'], 'B'):>12}"
        )
    return "\n".join([*rows, *recommendation_lines(results.run)])


def recommendation_lines(run: Any) -> list[str]:
    chosen = run.recommendation
    return [f"recommended for {chosen['objective']}: {chosen['case']}: {chosen['why']}"] if chosen else []


def layers_text(layers: Any) -> str:
    """A row for each layer or group of a LayerProfiles."""
    width = max([len(name) for name in layers] + [5])
    lines = [f"{'layer':<{width}}  {'time':>10} {'share':>7} {'calls':>6} {'parameters':>12} {'cost':>14} {'tensors':>11}"]
    for name, row in layers.items():
        lines.append(
            f"{name:<{width}}  {_layer_time(row):>10} {in_column(row['share'], '1'):>7} {row['calls']:>6g} "
            f"{row['parameters']:>12,} {_least(row):>14} {in_column(row['activation_bytes'], 'B'):>11}"
        )
    lines.append(f"one run takes {_ms(layers.total_ms)}; profiling costs {layers.self_ns:.0f} ns a layer call, taken out")
    lines.append(f"shares are of the profiled runs in between: {_ms(layers.profiled_ms)}, {_ms(layers.outside_ms)} of them in no row above")
    note = layers.note or _layers_doubt(layers)
    return "\n".join([*lines, note] if note else lines)


_COVERED_FAR = 0.15  # as in tare bench --layers: a quiet machine does not part profiled and plain runs so far


def _layers_doubt(layers: Any) -> str:
    """Why shares are no more than a hint; "" where they are more. The fair comparison is with plain runs in between."""
    if not known(layers.total_ms) or not layers.total_ms:
        return ""
    taken_ms = sum(row["calls"] for row in layers.values()) * layers.self_ns / 1e6
    if abs(layers.profiled_ms / layers.total_ms - 1) > _COVERED_FAR:
        return f"layers add up to {layers.profiled_ms / layers.total_ms:.0%} of a plain run: other work disturbed it, take shares as a hint"
    return "most of the time was profiling and is taken out: take shares as a hint" if taken_ms > layers.total_ms else ""


def _layer_time(row: dict[str, Any]) -> str:
    """Where what profiling costs is all that was seen, the most that it can be."""
    return _ms(row["time_ms"]) if row["time_ms"] or not row["time_most_ms"] else f"< {_ms(row['time_most_ms'])}"


def _least(row: dict[str, Any]) -> str:
    """FLOPs; with a + when operators that no rule covers are left out."""
    return in_column(row["flops"], "FLOPs") + ("" if row["flops_complete"] else "+")


# ---- models that read texts: what a TextProfile has, part by part ------------------------------------------------------------------

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


def text_profile(profile: Any) -> str:
    """All parts that the profile has."""
    parts = [_head(profile)]
    if "batch_profiles" in profile:
        parts.append(_case_rows("Batch Size Performance:", "Batch", "batch_size", profile["batch_profiles"]))
    if "length_profiles" in profile:
        parts.append(_case_rows("Text Length Performance:", "Words", "text_length_words", profile["length_profiles"]))
    if "memory" in profile:
        parts.append(_memory_rows(profile["memory"]))
    parts += [part(profile) for part in (_accuracy_rows, _choices, _targets, _lists) if part(profile)]
    return "\n\n".join(parts)


def _head(profile: Any) -> str:
    system = profile["system"]
    told = f"\nWeights: {system['weights']}" if system["weights"] else ""
    return f"{_RULE}\n{_TITLES[profile.kind]}\n{_RULE}\n\nSystem: {system['device'] or 'device unknown'} | Model: {system['model']}{told}"


def _spread(row: dict[str, Any], value: float | None) -> str:
    """Half the interval in percent."""
    low, high = row["throughput_interval"]
    return "-" if low is None or high is None or not value else in_column((high - low) / 2 / value, "1")


def _key(rows: list[dict[str, Any]], start: str) -> str:
    return next(key for key in rows[0] if key.startswith(start) and not key.endswith(("interval", "batch")))


def _case_rows(title: str, what: str, key: str, rows: list[dict[str, Any]]) -> str:
    rate, latency = _key(rows, "throughput_"), _key(rows, "latency_ms_per_")
    unit = rate.split("_")[1].capitalize()
    lines = [title, _LINE, f" {what} | {unit + '/Sec':>12} | {'+/-':>6} | {'Latency (ms)':>14} | {'Memory (MB)':>13}", _LINE]
    for row in rows:
        if row["failure"]:
            lines.append(f" {row[key]:>5} | {'some runs ' if row['calls'] else ''}failed: {row['failure']}")
        if not row["calls"]:
            continue
        lines.append(
            f" {row[key]:>5} | {in_column(row[rate]):>12} | {_spread(row, row[rate]):>6} | {in_column(row[latency]):>14} | "
            f"{in_column(row['memory_delta_mb']):>13}"
        )
    one = latency.rsplit("_", 1)[1]
    lines.append(f"Latency: of one {one}, its share of a batch. Memory: what the process grew by. +/-: 95 % interval within this run.")
    lines.append(_instrument(rows))
    return "\n".join(lines)


def _instrument(rows: list[dict[str, Any]]) -> str:
    costs = [row["self_ns_per_call"] for row in rows if row["self_ns_per_call"] is not None]
    return f"tare's own cost: {max(costs)} ns a call at most, not in these times" if costs else "tare's own cost: unknown"


def _memory_rows(memory: dict[str, Any]) -> str:
    lines = ["Memory over iterations:", _LINE, " Iteration |  Memory (MB) |   Delta (MB)", _LINE]
    lines += [f" {row['iteration']:>9} | {in_column(row['memory_mb']):>12} | {in_column(row['delta_mb']):>12}" for row in memory["iterations"]]
    growth = memory["growth"]
    if growth["verdict"] == "unknown":
        return "\n".join([*lines, f"Leak test: unknown ({growth['why']})"])
    low, high = growth["interval"]
    grown = f"memory grew by {in_column(growth['rise_mb'], 'MB')} after the first third and was not flat at the end"
    verdict = {"growing": grown, "steady": "memory is steady", "inconclusive": f"inconclusive, {growth.get('why') or 'try more iterations'}"}[growth["verdict"]]
    slope = f"{in_column(growth['mb_per_iteration'], 'MB')} an iteration ({in_column(low)} to {in_column(high)})"
    return "\n".join([*lines, f"Leak test over {memory['samples']} calls: {verdict}; {slope}"])


def _accuracy_rows(profile: Any) -> str:
    rows = [(row["batch_size"], row["accuracy_metrics"]) for row in profile.get("batch_profiles", ()) if row["accuracy_metrics"]]
    if not rows:
        return ""
    metric, reference = rows[0][1]["metric"], rows[0][1]["reference_batch_size"]
    lines = [f"Accuracy (answers against those of batch_size={reference}):", _LINE]
    lines += [f" Batch | {metric:>10} | Largest difference | {'Labels':>8} | Verdict", _LINE]
    for batch, row in rows:
        labels = in_column(row["label_agreement"])
        word = "consistent" if row["consistent"] else "CHANGED"
        lines.append(f" {batch:>5} | {row['consistency']:>10.6f} | {_difference(row):>18} | {labels:>8} | {word}")
    if profile["system"]["weights"]:
        lines.append("Labels: the weights are random, so this says nothing about a trained model.")
    return "\n".join(lines)


def _difference(row: dict[str, Any]) -> str:
    return in_column(row["max_difference"])


def _choices(profile: Any) -> str:
    chosen = profile.get("choices")
    if not chosen or len(profile["batch_profiles"]) < 2:
        return ""
    width = max(map(len, _CHOICES.values())) + 1
    lines = []
    for word, row in chosen.items():
        rate = next(key for key in row if key.startswith("throughput_"))
        unit = rate.split("_")[1]
        lines.append(f"  {_CHOICES[word] + ':':<{width}} {in_column(row[rate])} {unit}/sec @ batch_size={row['batch_size']}")
    return "\n".join(["Performance:", *lines])


def _targets(profile: Any) -> str:
    rows = profile.get("targets")
    if not rows:
        return ""
    lines = [f"Targets (recommended {rows[0]['case']}):"]
    for row in rows:
        times = f", {in_sentence(row['ratio'])}x" if row["ratio"] is not None else ""
        limit, got = target_words(row)
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
