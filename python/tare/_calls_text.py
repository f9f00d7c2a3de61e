# SPDX-License-Identifier: MIT
"""Call paths as a tree for a terminal: who spent the time, along which way. What libraries do inside themselves is folded into the call
that entered them."""

from __future__ import annotations

import functools
import os
import sysconfig
from typing import Any, Callable

LEAST = 0.01  # of all time: what takes less is not shown


@functools.lru_cache(maxsize=None)
def _prefixes() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    found = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib") if paths.get(name)}
    return tuple(sorted((os.path.join(os.path.realpath(path), "") for path in found), key=len, reverse=True))


def short_file(file: str) -> str:
    """As seen from here, or from the folder that Python finds it in."""
    real = os.path.realpath(file) if os.path.isabs(file) else file
    for prefix in _prefixes():
        if real.startswith(prefix):
            return real[len(prefix):]
    here = os.path.join(os.path.realpath(os.curdir), "")
    return real[len(here):] if real.startswith(here) else file


class _Folded:
    """One tree with library frames folded: nodes by path, times summed."""

    def __init__(self, tree: Any, everything: bool):
        self.tree, self.labels, self.everything = tree, tree.labels, everything
        self.short: dict[str, tuple[str, bool]] = {}
        self.children: dict[int, list[int]] = {}
        for node, parent in enumerate(tree.parent):
            self.children.setdefault(parent, []).append(node)

    def place(self, node: int) -> tuple[str, bool]:
        """(how it is shown, is it a library's?)"""
        file, line, name = self.labels[self.tree.function[node]]
        if file == "~":
            return (name[1:-1] if name.startswith("<") else name), True
        if file not in self.short:
            self.short[file] = short_file(file), file.startswith("<") or os.path.realpath(file).startswith(_prefixes())
        shown, library = self.short[file]
        return f"{name}  {shown}:{line}", library

    def below(self, nodes: list[int], inside: bool) -> dict[str, list[Any]]:
        """What is called from these nodes, by place: [total ns, nodes, is it a library's?]. Within a library its own
        calls are folded, and what they call of the program comes up."""
        found: dict[str, list[Any]] = {}
        todo = [child for node in nodes for child in self.children.get(node, ())]
        while todo:
            node = todo.pop()
            place, library = self.place(node)
            if inside and library and not self.everything:
                todo.extend(self.children.get(node, ()))
                continue
            row = found.setdefault(place, [0.0, [], library])
            row[0] += self.tree.total_ns[node]
            row[1].append(node)
        return found


def _walk(folded: _Folded, nodes: list[int], inside: bool, least: float, lead: str, out: list[tuple[float, str]]) -> None:
    rows = sorted(folded.below(nodes, inside).items(), key=lambda item: (-item[1][0], item[0]))
    rows = [row for row in rows if row[1][0] >= least]
    for number, (place, (total, below, library)) in enumerate(rows):
        last = number + 1 == len(rows)
        out.append((total, f"{lead}{'`- ' if last else '|- '}{place}"))
        if len(lead) < 3 * 40:
            _walk(folded, below, library, least, lead + ("   " if last else "|  "), out)


def tree_text(profile: Any, seconds: Callable[[float], str], everything: bool = False, rows: int = 40) -> str:
    """The tree of all threads; what takes less than a hundredth of the time is left out."""
    trees = sorted(profile.trees(), key=lambda tree: -tree.total_ns[0])
    whole = sum(tree.total_ns[0] for tree in trees)
    out: list[tuple[float, str]] = []
    for tree in trees:
        if tree.total_ns[0] < LEAST * whole:
            continue
        out.append((tree.total_ns[0], tree.name))
        _walk(_Folded(tree, everything), [0], False, LEAST * whole, "", out)
    if not whole:
        return ""
    shown = [f"{100 * total / whole:5.1f} % {seconds(total):>10}  {text}" for total, text in out[:rows]]
    return "\n".join([*shown, *([f"... and {len(out) - rows} lines more (--all)"] if len(out) > rows else [])])
