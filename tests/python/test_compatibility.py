# SPDX-License-Identifier: MIT
"""What docs/compatibility.md promises of files: each one that an earlier tare wrote (tests/golden) is read by this one, and says what it
said. The samples were written by the versions that their names say; tests/golden/README.md tells how."""

import gzip
import json
import os
import re
import shutil
import sqlite3

import pytest
from trace_reader import Trace

GOLDEN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden")
MINORS = ["1.0", "1.1", "1.2", "1.3"]
PAUSES_SINCE = "1.2"


@pytest.fixture
def sample(tmp_path):
    """sample("trace/1.0.tare"): a copy, with the live files beside it unpacked. Readers may fold, migrate and lock as they like."""

    def copy(name):
        folder, base = os.path.split(os.path.join(GOLDEN, name))
        for entry in sorted(os.listdir(folder)):
            source = os.path.join(folder, entry)
            if entry == base:
                shutil.copy(source, tmp_path)
            elif entry.startswith(base + ".") and entry.endswith(".gz"):
                with gzip.open(source) as packed:
                    (tmp_path / entry[: -len(".gz")]).write_bytes(packed.read())
        return tmp_path / base

    return copy


def tree_of(nodes, path=()):
    """{path: (kind, count, sum of a counter)}"""
    out = {}
    for node in nodes:
        here = (*path, node["name"])
        out[here] = (node["kind"], node["count"], node.get("sum"))
        out.update(tree_of(node["children"], here))
    return out


def recorded_by_program(minor, killed):
    """What tests/golden/trace/program.c does."""
    leaves = 7 + (5 if minor >= PAUSES_SINCE else 0)
    want = {("main work",): ("scope", 0 if killed else 1, None), ("worker",): ("scope", 1, None), ("main work", "note"): ("mark", 1, None)}
    if minor >= PAUSES_SINCE:
        want[("main work", "coroutine")] = ("scope", 1, None)
    if not killed:
        want[("child",)] = ("scope", 1, None)
    for parent, n in (("main work", leaves), ("worker", 100), ("child", 1)):
        if (parent,) in want:
            want[(parent, "leaf")] = ("scope", n, None)
            want[(parent, "leaf", "tokens")] = ("counter", n, 3 * n)
    return want


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("killed", [False, True])
def test_traces_of_programs(sample, tare, minor, killed):
    path = sample("trace/%s%s.tare" % (minor, "-killed" if killed else ""))
    assert Trace(str(path)).minor == int(minor[2:])
    said = json.loads(tare("report", "--json", path).stdout)
    assert tree_of(said["tree"]) == recorded_by_program(minor, killed)
    assert [p["closed"] for p in said["trace"]["processes"]] == ([False] if killed else [True, True])
    assert said["loss"]["damaged_chunks"] == said["loss"]["unknown_chunks"] == said["loss"]["damaged_bytes"] == 0
    # begin and end of each scope (of the killed: `main work` has no end), a count of each leaf, a mark; what waited is one more each
    tree = recorded_by_program(minor, killed).items()
    least = sum((2 if kind == "scope" else 1) * count for _, (kind, count, _) in tree)
    assert said["trace"]["events"] >= least + killed
    chrome = json.loads(tare("export", path, "--format", "chrome", "-o", "-").stdout)
    names = {e.get("name") for e in (chrome["traceEvents"] if isinstance(chrome, dict) else chrome)}
    assert {"leaf", "worker"} <= names


def test_every_version_has_samples():
    """A new minor version of the trace wants its samples here before it is released."""
    with open(os.path.join(GOLDEN, "..", "..", "src", "trace", "format.h"), encoding="utf-8") as header:
        major, minor = re.search(r"TRACE_MAJOR = (\d+), TRACE_MINOR = (\d+)", header.read()).groups()
    assert MINORS == ["%s.%d" % (major, i) for i in range(int(minor) + 1)], \
        "record tests/golden/trace/%s.%s.tare as tests/golden/README.md says, and add it to MINORS" % (major, minor)  # fmt: skip
    with open(os.path.join(GOLDEN, "..", "..", "src", "store", "schema.c"), encoding="utf-8") as schema:
        newest = max(int(n) for n in re.findall(r"char version_(\d+)\[\]", schema.read()))
    assert os.path.exists(os.path.join(GOLDEN, "documents", "history-%d.db.gz" % newest)), \
        "keep a history of schema %d as tests/golden/README.md says" % newest  # fmt: skip


def test_trace_of_a_watched_program(sample, tare):
    """1.1: samples of probes."""
    said = json.loads(tare("report", "--json", sample("trace/1.1-run.tare")).stdout)
    watch = said["samples"]["watch"]
    assert watch["samples"] == sum(len(p.samples) for p in Trace(str(sample("trace/1.1-run.tare"))).processes.values()) > 3
    assert {"cpu", "process.cpu", "process.memory"} <= {m["metric"] for m in watch["metrics"]}


def test_trace_of_a_gpu(sample, tare):
    """1.2: what tests/fake_cupti records is known."""
    said = json.loads(tare("report", "--gpu", "--json", sample("trace/1.2-gpu.tare")).stdout)
    (device,) = said["devices"]
    assert (device["name"], device["operations"], device["multiprocessors"]) == ("Made-up GPU", 101, 100)
    assert (said["kernels"][0]["count"], said["kernels"][0]["total_ns"]) == (100, 3_000_000)


def test_trace_of_memory(sample, tare):
    """1.3: two blocks, of 700001 and 300001 bytes, each recorded; the second is freed."""
    (process,) = json.loads(tare("report", "--memory", "--json", sample("trace/1.3-memory.tare")).stdout)["processes"]
    assert (process["allocations"], process["allocated"]["bytes"], process["at_end"]["bytes"]) == (2, 1_000_002, 700_001)


def test_compressed_trace(sample, tare):
    said = json.loads(tare("report", "--json", sample("trace/1.3-zstd.tare")).stdout)
    assert tree_of(said["tree"]) == recorded_by_program("1.3", False)


# ---- documents ---------------------------------------------------------------------------------------

def without_new(old, new):
    """What `old` says, of what `new` says: a newer minor adds fields."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {k: without_new(v, new[k]) for k, v in old.items() if k in new or v is not None}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [without_new(a, b) for a, b in zip(old, new)]
    return new


@pytest.mark.parametrize("name", ["run-bench", "run-watched"])
def test_run_documents(sample, tare, root, name):
    """Read, and written again: nothing that the old one knew is lost or said otherwise."""
    jsonschema = pytest.importorskip("jsonschema")
    path = sample("documents/%s.json" % name)
    old = json.loads(path.read_text())
    jsonschema.Draft202012Validator(json.loads((root / "docs/schema/run-1.json").read_text())).validate(old)
    new = json.loads(tare("report", "--json", path).stdout)
    kept = {k: v for k, v in old.items() if v not in (None, [], {})}
    for key in kept:
        if key not in ("findings", "recommendation"):  # judged anew where the tare of today knows more
            assert without_new(kept[key], new[key]) == kept[key], key
    assert tare("compare", path, path, status=0).stdout


def test_numbers_of_the_bench(sample, tare):
    case = json.loads(tare("report", "--json", sample("documents/run-bench.json")).stdout)["cases"][0]
    with open(os.path.join(GOLDEN, "documents", "run-bench.json"), encoding="utf-8") as f:
        old = json.load(f)["cases"][0]
    assert case["latency_ns"]["p50"] == old["latency_ns"]["p50"] and case["samples"] == old["samples"] > 0


def test_comparison_document(root):
    jsonschema = pytest.importorskip("jsonschema")
    with open(os.path.join(GOLDEN, "documents", "comparison.json"), encoding="utf-8") as f:
        jsonschema.Draft202012Validator(json.loads((root / "docs/schema/comparison-1.json").read_text())).validate(json.load(f))


@pytest.mark.parametrize("schema", [1, 6])
def test_histories(tmp_path, tare, schema):
    """A history of any earlier schema is brought up to date when it is first written, and gives its runs before and after."""
    path = tmp_path / "history.db"
    with gzip.open(os.path.join(GOLDEN, "documents", "history-%d.db.gz" % schema)) as packed:
        path.write_bytes(packed.read())
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (schema,)
    (run,) = json.loads(tare("history", "list", "--history", path, "--json").stdout)["runs"]
    assert (run["kind"], run["subject"], run["cases"]) == ("bench", "true", 1)
    document = json.loads(tare("report", "@" + run["id"], "--history", path, "--json").stdout)
    assert document["cases"][0]["samples"] > 0
    (series,) = json.loads(tare("trend", "--history", path, "--subject", "true", "--json").stdout)["series"]
    assert series["points"][0]["value"] == document["cases"][0]["latency_ns"]["p50"]["value"]
    tare("history", "tag", run["id"], "kept", "--history", path)
    (again,) = json.loads(tare("history", "list", "--history", path, "--json").stdout)["runs"]
    assert (again["id"], again["tags"]) == (run["id"], ["kept"])
