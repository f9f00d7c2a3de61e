# SPDX-License-Identifier: MIT
"""docs/schema/tare-yaml.json takes every tare.yaml that we show or test, refuses what tare refuses, and knows every option."""

import json
import os
import re
import subprocess
import sys

import pytest

jsonschema = pytest.importorskip("jsonschema")
yaml = pytest.importorskip("yaml")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import settings_schema  # noqa: E402

with open(os.path.join(ROOT, "docs", "schema", "tare-yaml.json"), encoding="utf-8") as schema:
    SCHEMA = json.load(schema)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
FIRST_WORDS = re.compile(r"^(bench|suite|tune|run|history|compare):", re.M)


def refused(text):
    return [e.message for e in VALIDATOR.iter_errors(yaml.safe_load(text))]


def samples():
    """{where: text} of the settings that pages and tests show."""
    found = {}
    for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
        for name in names:
            if name.endswith(".md"):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    for n, block in enumerate(re.findall(r"^```yaml\n(.*?)^```$", f.read(), re.S | re.M)):
                        if FIRST_WORDS.search(block):
                            found["%s #%d" % (name, n + 1)] = block
    for name in ("suite.sh", "suite-wins.sh"):
        with open(os.path.join(ROOT, "tests", "cli", "bench", name), encoding="utf-8") as f:
            for n, block in enumerate(re.findall(r"cat >tare\.yaml <<-?'?EOF'?\n(.*?)^EOF$", f.read(), re.S | re.M)):
                found["%s #%d" % (name, n + 1)] = block
    return found


@pytest.mark.parametrize("where", samples())
def test_samples_are_accepted(where):
    assert refused(samples()[where]) == []


GOOD = ["", "bench:\n", "bench: {budget: 5s, json: yes, min-runs: 30, batch: [1, 8], samples: no}".replace(", samples: no", ""),
        "suite:\n  - {command: [./app, 3], max-runs: 3}\n  - {synth: minilm-l6, layers: yes}", "history: kept.db", "history: {json: true}"]
BAD = ["bench:\n  budgt: 4s\n", "suite:\n  - name: a\n    batch: 4\n", "suite:\n  - {command: 'true', bogus: 1}\n", "suite:\n  - {command: 'true', model: x.onnx}\n",
       "suite: 5\n", "bench: [1]\n", "bench: {budget: {a: 1}}\n", "bench: {objective: speed}\n", "bench: {json: 7}\n"]


@pytest.mark.parametrize("text", GOOD)
def test_good(text):
    assert refused(text) == []


@pytest.mark.parametrize("text", BAD)
def test_typos_are_refused(text, tare, tmp_path):
    """By the schema, and by tare, which has the last word."""
    assert refused(text)
    (tmp_path / "tare.yaml").write_text(text)
    tare("bench", "--max-runs", "1", *(["--", "true"] if text.startswith("bench") else []), status=2)


def test_every_option_of_bench_is_known(build):
    """By name, as the command itself completes them."""
    script = subprocess.run([str(build / "tare"), "bench", "-h"], capture_output=True, text=True, check=True).stdout
    named = set(re.findall(r"^  (?:-\w, |    )--(?:\[no-\])?([a-z][\w-]*)", script, re.M)) - set(settings_schema.NOT_SET)
    assert named == set(SCHEMA["properties"]["bench"]["properties"])
    entry = set(SCHEMA["properties"]["suite"]["items"]["properties"])
    assert entry == named | {"name", *settings_schema.SUBJECTS}


def test_rows_of_a_page():
    page = "# x\n```\nusage: tare x [options]\n\noptions:\n  -f, --format <word>       how: text, json (default text)\n      --[no-]samples        keep them\n" \
           "      --layers [<pattern,..>]\n                            of each\n\nOther:\n      --n <n>               how many\n  -h, --help                this\n```\n"
    assert settings_schema.rows(page) == [["format", "word", False, "how: text, json (default text)"], ["samples", None, False, "keep them"],
                                          ["layers", "pattern,..", True, "of each"], ["n", "n", False, "how many"]]
    assert settings_schema.options_of(page)["format"]["enum"] == ["text", "json"]
