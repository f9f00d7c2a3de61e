# SPDX-License-Identifier: MIT
"""The defaults of `tare bench` and of tare.bench() are the same numbers."""
import ast
import os
import re

SRC = os.environ.get("TARE_SRC", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def c_defaults():
    with open(os.path.join(SRC, "src", "bench", "bench.h"), encoding="utf-8") as f:
        found = dict(re.findall(r"^#define BENCH_(BUDGET_NS|PRECISION) (\S+)", f.read(), re.M))
    return {"budget": float(found["BUDGET_NS"]) / 1e9, "precision": float(found["PRECISION"])}


def test_python_has_the_defaults_of_the_command():
    with open(os.path.join(SRC, "python", "tare", "_bench.py"), encoding="utf-8") as f:
        tree = ast.parse(f.read())
    bench = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "bench")
    given = {a.arg: d for a, d in zip(bench.args.kwonlyargs, bench.args.kw_defaults)}
    given.update(zip([a.arg for a in bench.args.args][-len(bench.args.defaults):], bench.args.defaults))
    assert {k: float(ast.literal_eval(given[k])) for k in c_defaults()} == c_defaults()
