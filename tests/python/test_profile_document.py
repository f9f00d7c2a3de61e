# SPDX-License-Identifier: MIT
"""tare.profile/1 as a page holds it: against its schema, against `tare report --json` of the same trace, and the example of its page."""

import json
import os
import re
import subprocess
import sys

import jsonschema
import pytest

PROGRAM = r"""
#include <pthread.h>
#include <tare/tare.h>
static volatile unsigned long sum;
static void spin(unsigned n) { while (n--) sum += n; }
static void load(void) { TARE_SCOPE("load"); spin(2000); }
static void step(int d) { TARE_SCOPE("step"); load(); spin(1000); if (d) step(d - 1); }
static void *work(void *p) { TARE_SCOPE("worker"); for (int i = 0; i < 20; i++) step(1); tare_count("items", 1); return p; }
int main(void)
{
    tare_site *odd = tare_site_new(TARE_SITE_SCOPE, "</script><script>alert(1)//\xe2\x80\xa8", "", 0);
    tare_scope s;
    pthread_t t;
    TARE_SCOPE("main");
    pthread_create(&t, 0, work, 0);
    for (int i = 0; i < 30; i++) step(2);
    tare_begin(&s, odd);
    tare_end(&s);
    pthread_join(t, 0);
    return 0;
}
"""
DATA = re.compile(r'<script id="tare-data" type="application/json">(.*?)</script>', re.S)


@pytest.fixture
def record(compile_c, clean_env, tmp_path):
    """record("name"): run the program, return its trace."""
    program = compile_c(PROGRAM)

    def call(name, **env):
        trace = tmp_path / (name + ".tare")
        subprocess.run([program], env={**clean_env, "TARE_TRACE": str(trace), **env}, check=True, timeout=60, cwd=tmp_path)
        return trace

    return call


@pytest.fixture
def profile_of(tare, tmp_path, root, build):
    """profile_of(*files): the profile on the page of these traces, valid by the schema."""
    if not (build / "page.html").exists():
        pytest.skip("this tare was built without the report page (no node)")
    schema = jsonschema.Draft202012Validator(json.loads((root / "docs/schema/profile-1.json").read_text()))

    def call(*files):
        out = tmp_path / "page.html"
        tare("report", *files, "--html", out)
        (text,) = DATA.findall(out.read_text())
        assert "<" not in text and "\u2028" not in text
        (item,) = [i for i in json.loads(text)["items"] if i["kind"] == "profile"]
        schema.validate(item["document"])
        return item["document"]

    return call


def paths(frames, nodes):
    """{("main", "step"): (total, calls)} of a table of nodes."""
    out, names = {}, []
    for parent, frame, total, calls in zip(nodes["parent"], nodes["frame"], nodes["total"], nodes["calls"]):
        names.append((*(names[parent] if parent >= 0 else ()), frames["name"][frame]))
        out[names[-1]] = (total, calls)
    return out


def reported(rows, above=()):
    """The same of `tare report --json`."""
    out = {}
    for row in rows:
        if row["kind"] == "scope":
            out[(*above, row["name"])] = (row["total_ns"], row["count"])
            out.update(reported(row["children"], (*above, row["name"])))
    return out


@pytest.mark.parametrize("mode", ["events", "aggregate"])
def test_a_page_holds_what_the_report_says(tare, record, profile_of, mode):
    trace = record("app", TARE_MODE=mode)
    doc = profile_of(trace)
    want = reported(json.loads(tare("report", "--json", trace).stdout)["tree"])
    assert paths(doc["frames"], doc["nodes"]) == want
    assert ("main", "step", "step", "step", "load") in want
    assert doc["hidden"] == 0 and "base" not in doc


def test_threads_add_up_to_the_whole(record, profile_of):
    doc = profile_of(record("app"))
    assert len(doc["threads"]) == 2
    calls = {}
    for thread in doc["threads"]:
        for path, (_, n) in paths(doc["frames"], thread["nodes"]).items():
            calls[path] = calls.get(path, 0) + n
    assert calls == {path: n for path, (_, n) in paths(doc["frames"], doc["nodes"]).items()}


def test_two_traces_have_the_first_as_base(tare, record, profile_of):
    old, new = record("old"), record("new")
    doc = profile_of(old, new)
    assert os.path.basename(doc["file"]) == "new.tare" and os.path.basename(doc["base"]["file"]) == "old.tare"
    for trace, nodes in ((new, doc["nodes"]), (old, doc["base"]["nodes"])):
        assert paths(doc["frames"], nodes) == reported(json.loads(tare("report", "--json", trace).stdout)["tree"])


def test_the_example_of_the_manual_prints_what_it_says(root):
    text = (root / "docs/profile-format.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.S)
    first, printed = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.S))
    assert json.loads(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout) == printed
    schema = jsonschema.Draft202012Validator(json.loads((root / "docs/schema/profile-1.json").read_text()))
    schema.validate(first)
    schema.validate(printed)
