# SPDX-License-Identifier: MIT
"""check_known.py REPORT.json TRUTH.txt NAME: TAP lines: does the report agree with what the program knew?"""
import json
import sys

report, name = json.load(open(sys.argv[1])), sys.argv[3]
truth = {line.split()[0]: [float(word) for word in line.split()[1:]] for line in open(sys.argv[2])}
found = {}


def walk(node):
    entry = found.setdefault(node.get("name"), {"count": 0, "net": 0, "gross": 0, "sum": 0})
    entry["count"] += node.get("count") or 0
    entry["net"] += node.get("total_ns") or 0
    entry["gross"] += node.get("gross_total_ns") or 0
    entry["sum"] += node.get("sum") or node.get("value") or 0
    for child in node.get("children", []):
        walk(child)


tree = report["tree"]
for root in tree if isinstance(tree, list) else [tree]:
    walk(root)


def say(ok, what, detail):
    print(f"{'ok' if ok else 'not ok'} - {name}: {what}")
    if not ok:
        print(f"# {detail}")


for kind, (calls, ns, spread, away) in truth.items():
    seen = found.get(kind, {"count": 0, "net": 0, "gross": 0, "sum": 0})
    if kind == "tokens":
        say(seen["sum"] == calls, "counter sum is exact", f"{seen} against {calls}")
        continue
    say(seen["count"] == calls, f"{kind}: count is exact", f"{seen['count']} against {calls}")
    # The program's own clock reads lie inside the scope: 100 ns a call and 1 % are theirs and the weighing's.
    # Weighing leaves one call in 64 out and puts the mean of the others in its place: four standard errors of that. They
    # are nothing, unless the processor was taken away in some of the calls for much longer than they last.
    chance = 0 if name == "unweighed" else 4 * (max(spread, 0) / 64) ** 0.5
    slack = 0.01 * ns + calls * (600 if kind == "parent" else 100) + chance
    say(-slack <= seen["net"] - ns <= slack + away, f"{kind}: net total within 1 % + 100 ns a call", f"{seen} against {ns}")
    say(seen["gross"] >= ns - 0.002 * ns - chance, f"{kind}: gross total holds all of it", f"{seen} against {ns}")
