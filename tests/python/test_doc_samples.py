# SPDX-License-Identifier: MIT
"""Outputs on the pages: numbers differ from run to run, the words and the columns must be those that this tare prints."""

import json
import os
import re
import subprocess
import sys

import pytest


def shape(text):
    """Every number and unit as one sign, however wide; lines that hold anything else."""
    text = re.sub(r"\b(True|False)\b", "either", text)
    text = re.sub(r"[<~+-]* *\b\d[\d.,]*(e[+-]?\d+)?( *(ns|us|ms|s|[KMG]?i?B)\b| *%)?", " # ", text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip(" #")]


def blocks(page):
    """The fenced blocks of a page: (language, text)."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.S | re.M)


def block_after(page, start):
    """The first plain block that begins with a line that begins so."""
    return next(text for language, text in blocks(page) if not language and text.startswith(start))


def run_python(package, code, cwd, *more, path=()):
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(str(p) for p in (package, *path)))
    done = subprocess.run([sys.executable, *more] if more else [sys.executable, "-c", code], env=env, cwd=cwd, capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_performance_profiler(root, package, tmp_path):
    """The first program of the page is run; of what it diagnoses only the leak is the program's own doing."""
    page = root / "docs" / "python" / "performance-profiler.md"
    code = next(text for language, text in blocks(page) if language == "python")
    told, shown = shape(run_python(package, code, tmp_path)), shape(block_after(page, "wall "))
    assert [line for line in told if not line.startswith(("- ", "probe gpu", "GPU"))] == \
           [line for line in shown if not line.startswith(("- ", "probe gpu", "GPU"))]  # fmt: skip
    assert [line for line in shown if line.startswith("- Memory")] == [line for line in told if line.startswith("- Memory")]


@pytest.mark.parametrize("page, start", [("docs/python/functions.md", "[('the'"), ("README.md", "$ tare functions"),
                                         ("docs/tour.md", "$ tare functions")])  # fmt: skip
def test_functions_table(root, package, page, start):
    told = shape(run_python(package, None, root / "examples", "-m", "tare", "functions", "--rows", "0", "words.py"))
    shown = [line for line in shape(block_after(root / page, start)) if not line.startswith(("$", "..."))]
    rows = {re.sub(r"^[# |`-]*", "", line) for line in told}
    # The tree leaves out what takes little time, and how much that is depends on the machine; the table has every function.
    rows |= {re.sub(r".* (\S+): # \((\S+)\)$", r"\2 \1: #", line) for line in told}
    for line in shown:
        name = re.sub(r"^[# |`-]*", "", line)
        known = name in rows or name.startswith(("self:", "function calls"))
        assert known or (line.startswith("#") and "words.py" not in line and sys.version_info[:2] != (3, 12)), (line, sorted(rows)[:20])


def test_functions_tree(root, package, tmp_path):
    page = root / "docs" / "python" / "functions.md"
    code = next(text for language, text in blocks(page) if "words.top" in text)
    lines = run_python(package, code.replace("> 1e6", ">= 0"), tmp_path, path=[root / "examples"]).splitlines()
    told = {re.sub(r" [\d.]+ ms$", "", line) for line in lines}
    names = [re.sub(r" [\d.]+ ms$", "", line) for line in block_after(page, "top 1 ").splitlines()]
    if sys.version_info[:2] == (3, 12):
        assert set(names) <= told
    assert {"top 1", "  count 1", "          <genexpr> 18001"} <= told and {"top 1", "  count 1"} <= set(names)


def heads(text):
    """Heads of tables and the first words of lines, as they stand: those without a number."""
    return {" ".join(line.split()) for line in text.splitlines() if not re.search(r"\d", re.sub(r"p\d\d|95 %", "", line))}


def command(build, *words, cwd):
    done = subprocess.run([str(build / "tare"), *map(str, words)], capture_output=True, text=True, check=False, cwd=cwd,
                          env=dict(os.environ, TARE_PAGER="cat"))  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", ["README.md", "docs/tour.md"])
def test_tables(root, build, tmp_path, name):
    """Heads of the tables of a page, against reports of documents and runs that need no model."""
    fixtures = root / "tests" / "cli"
    page = root / name
    document = json.loads((fixtures / "report" / "sweep.run.json").read_text())
    document["cases"][0]["latency_ns"]["p99"] = document["cases"][0]["latency_ns"]["p95"]  # no case has it: then the column is not there
    (tmp_path / "sweep.json").write_text(json.dumps(document))
    told = heads(command(build, "report", "sweep.json", cwd=tmp_path))
    bench = next(line for line in block_after(page, "$ tare bench minilm.onnx --batch 1,4").splitlines() if line.startswith("batch "))
    assert " ".join(bench.split()).replace("texts/s", "samples/s") in {h.replace("texts/s", "samples/s") for h in told}, told
    watched = command(build, "run", "--no-save", "--", "sleep", "0.3", cwd=tmp_path)
    for line in block_after(page, "$ tare run -- python3").splitlines():
        word = line.split(" ")[0]
        if re.match(r"(subject|host|time|cpu|memory|tare) ", line) or line in ("phases",):
            assert re.search(rf"^{word}\b", watched, re.M), (line, watched)
        if line.startswith("phase "):
            assert " ".join(line.split()) in heads(watched), (line, watched)


def test_tables_of_traces(root, build, tmp_path):
    page = root / "docs" / "tour.md"
    trace = tmp_path / "t.tare"
    run_python(os.environ["BUILT"] + "/python/cpython-%d%d" % sys.version_info[:2], f"import tare\ntare.start({str(trace)!r})\n"
               "for i in range(50):\n  with tare.scope('a'): tare.count('tokens', 1)\ntare.stop()", tmp_path)  # fmt: skip
    said = heads(command(build, "report", trace, cwd=tmp_path))
    for line in block_after(page, "$ TARE_TRACE=build/demo").splitlines():
        if line.lstrip().startswith("count "):
            assert " ".join(line.split()) in said, (line, said)
