# SPDX-License-Identifier: MIT
"""A run as a small HTML table for notebooks. Shows what the document says; unknown is a dash."""

from html import escape

_STYLE = "border-collapse:collapse;font-size:90%"


def _number(value, digits=4):
    if value is None:
        return "–"
    return f"{value:,.{max(0, digits - len(str(int(abs(value)))))}f}"


def _bytes(value):
    return "–" if value is None else f"{value / 2**20:,.1f} MiB"


# title: how its cell is made of a case
_COLUMNS = {
    "p50 ms": lambda c: _number(c.p50_ms),
    "p95 ms": lambda c: _number(c.p95_ms),
    "p99 ms": lambda c: _number(c.p99_ms),
    "per second": lambda c: _number(c.throughput),
    "memory": lambda c: _bytes(c.memory_peak),
}


def _row(cells, tag="td", bold=False):
    weight = "bold" if bold else "normal"
    return "<tr>" + "".join(
        f'<{tag} style="text-align:{"left" if i == 0 else "right"};padding:2px 8px;font-weight:{weight}">{escape(c)}</{tag}>'
        for i, c in enumerate(cells)
    ) + "</tr>"


def _table(run):
    best = (run.recommendation or {}).get("case")
    rows = [_row(["case", *_COLUMNS], "th", True)]
    rows += [_row([c.name, *(make(c) for make in _COLUMNS.values())], bold=c.name == best) for c in run.cases]
    return f'<table style="{_STYLE}">{"".join(rows)}</table>'


def _target(t):
    achieved = "unknown" if t["achieved"] is None else f"{t['achieved']:g}"
    return f"{t['case']}: {t['metric']} {t['op']} {t['value']:g} {t['unit'] or ''}: {achieved}, {t['verdict']}"


def html(run):
    """The table, the recommendation, targets and findings."""
    lines = [f"{f['severity']}: {f['title']}. {f['action'] or ''}" for f in run.findings]
    lines += [_target(t) for t in run.targets]
    if run.recommendation:
        lines.insert(0, f"recommended for {run.recommendation['objective']}: {run.recommendation['why']}")
    items = "".join(f"<li>{escape(line.strip())}</li>" for line in lines)
    return f"<div><b>{escape(run.subject)}</b>{_table(run)}<ul>{items}</ul></div>"
