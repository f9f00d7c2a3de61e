# SPDX-License-Identifier: MIT
"""A function profile as files: pstats, text, speedscope, folded stacks, and the document of the report page."""

import json
import marshal

from tare._whole_file import write_bytes, write_text


def write_prof(profile, path):
    """What pstats, snakeviz and gprof2dot read."""
    write_bytes(path, marshal.dumps(profile.stats))


def write_table(profile, path):
    write_text(path, profile.text(sort="total") + "\n")


def _stack_name(label):
    """`;` and line ends have a meaning in folded stacks."""
    file, line, name = label
    full = name if file == "~" else f"{name} ({file}:{line})"
    return full.replace(";", ",").replace("\n", " ")


def _paths(tree):
    """(path, self ns) of every node that has time of its own; a path is a tuple of numbers of functions."""
    path_of = [()] * len(tree.parent)
    for node, (parent, function) in enumerate(zip(tree.parent, tree.function)):
        above = path_of[parent] if parent >= 0 else ()
        path_of[node] = above if function < 0 else (*above, function)
        if tree.self_ns[node] > 0 and function >= 0:
            yield path_of[node], tree.self_ns[node]


def write_folded(profile, path):
    """Stacks and nanoseconds, for flamegraph.pl and the like."""
    rows = []
    for tree in profile.trees():
        names = [_stack_name(label) for label in tree.labels]
        thread = _stack_name(("~", 0, tree.name))
        rows += [";".join([thread, *(names[f] for f in stack)]) + f" {ns}\n" for stack, ns in _paths(tree)]
    write_text(path, "".join(rows))


def _speedscope_thread(tree):
    samples, weights = [], []
    for stack, ns in _paths(tree):
        samples.append(stack)
        weights.append(ns)
    return {
        "type": "sampled",
        "name": tree.name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }


def _speedscope_frame(label):
    file, line, name = label
    return {"name": name} if file == "~" else {"name": name, "file": file, "line": line}


def write_speedscope(profile, path):
    trees = profile.trees()
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "tare",
        "shared": {"frames": [_speedscope_frame(label) for label in trees[0].labels] if trees else []},
        "profiles": [_speedscope_thread(tree) for tree in trees],
    }
    write_text(path, json.dumps(document, separators=(",", ":")))


def profile_document(profile, name):
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
        "frames": {"name": names, "file": ["" if f == "~" else f for f in file], "line": line},
        "nodes": nodes,
    }
