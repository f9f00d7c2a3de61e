# SPDX-License-Identifier: MIT
"""tare bench --memory: the allocations of a run of programs, models and functions whose allocations are known; nothing of it in what is timed."""

import json
import subprocess

import jsonschema
import pytest

KNOWN = """
#include <stdlib.h>
#include <stdio.h>
void *volatile keep;
__attribute__((noinline)) static void many(void) { for (int i = 0; i < 100; i++) { keep = malloc(1000); free(keep); } }
__attribute__((noinline)) static void big(void) { keep = malloc(1 << 20); }
int main(void)
{
    many();
    big();
    FILE *f = fopen("seen", "a");
    fputs(getenv("LD_PRELOAD") && *getenv("LD_PRELOAD") ? "agent\\n" : "plain\\n", f);
    fclose(f);
    return 0;
}
"""


@pytest.fixture
def bench(tare, root, tmp_path):
    """bench(*words, status=0): the document, validated, and the process."""
    schema = jsonschema.Draft202012Validator(json.loads((root / "docs/schema/run-1.json").read_text()))

    def call(*words, status=0, env=None):
        env = {"VIRTUAL_ENV": str(root / ".venv"), "XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "tmp"), **(env or {})}
        (tmp_path / "tmp").mkdir(exist_ok=True)
        done = tare("bench", "--memory", "--json", "--no-save", "--budget", "100ms", "--warmup", "1", "--min-runs", "3", *words, status=status, env=env)
        document = json.loads(done.stdout)
        schema.validate(document)
        assert list((tmp_path / "tmp").iterdir()) == [], "nothing is left"
        return document, done

    return call


@pytest.fixture
def known(tmp_path):
    (tmp_path / "known.c").write_text(KNOWN)
    subprocess.run(["gcc", "-g", "-O1", "known.c", "-o", "known"], cwd=tmp_path, check=True)
    return tmp_path / "known"


def test_a_command(bench, known, tmp_path):
    document, _ = bench("--", known)
    [case] = document["cases"]
    found = case["allocations"]
    sites = {s["function"]: s for s in found["sites"]}
    assert 1 <= found["runs"] == found["processes"] <= 3 and found["lost"] is None
    assert (sites["many"]["blocks"], sites["many"]["bytes"], sites["many"]["largest"]) == (100, 100_000, 1000)
    assert (sites["big"]["blocks"], sites["big"]["bytes"]) == (1, 1 << 20) and sites["big"]["file"].endswith("known.c")
    assert found["each"]["blocks"] == sum(s["blocks"] for s in found["sites"]) == sum(s["blocks"] for s in found["sizes"])
    assert found["each"]["largest"] == 1 << 20 <= found["each"]["peak"]
    assert found["load"] is found["first"] is None and case["unknown"]["allocations.load"]
    seen = (tmp_path / "seen").read_text().split()
    assert seen[-found["runs"]:] == ["agent"] * found["runs"] and set(seen[:-found["runs"]]) == {"plain"}
    assert len(seen) - found["runs"] >= case["samples"], "no run that is timed has the agent in it"


def test_what_comes_before_each_run_is_not_of_it(bench, known, tmp_path):
    document, _ = bench("--prepare", f"{known}; {known}", "--", known)
    assert {s["function"]: s["blocks"] for s in document["cases"][0]["allocations"]["sites"]}["many"] == 100


def test_all_cases_of_a_model(bench, tare, tmp_path):
    tare("synth", "mlp", "--sizes", "32,64,8", "-o", "mlp.onnx")
    document, _ = bench("mlp.onnx", "--batch", "1,8")
    for case in document["cases"]:
        found = case["allocations"]
        assert found["runs"] == 10 and found["processes"] == 1 and "allocations" not in case["unknown"]
        assert 0 < found["each"]["blocks"] < found["load"]["blocks"] and found["load"]["kept"] > 0
        assert sum(s["blocks"] for s in found["sizes"]) == pytest.approx(found["each"]["blocks"])
        assert any("onnxruntime" in (s["library"] or "") for s in found["sites"])


def test_a_python_function(bench, package, tmp_path):
    (tmp_path / "f.py").write_text("kept = []\ndef leak():\n    kept.append(bytearray(100_000))\ndef work():\n    return [bytearray(5_000) for _ in range(50)]\n")
    env = {"PYTHONPATH": str(package)}
    leak = bench("py:f.py:leak", env=env)[0]["cases"][0]["allocations"]
    work = bench("py:f.py:work", env=env)[0]["cases"][0]["allocations"]
    assert leak["runs"] == 10 and leak["each"]["kept"] == pytest.approx(100_000, rel=0.02)
    assert [s["line"] for s in leak["sites"]][0] == 3
    assert work["each"]["kept"] < 1000 and work["sites"][0]["line"] == 5
    assert 250_000 < work["sites"][0]["bytes"] < 275_000 and 50 <= work["sites"][0]["blocks"] <= 170


def test_programs_that_cannot_be_looked_into(bench, tmp_path):
    (tmp_path / "s.c").write_text("int main(void) { return 0; }")
    if subprocess.run(["gcc", "-static", "s.c", "-o", "s"], cwd=tmp_path, capture_output=True, check=False).returncode:
        pytest.skip("no static libc here")
    document, done = bench("--", "./s")
    assert document["cases"][0]["allocations"] is None and "statically linked" in document["cases"][0]["unknown"]["allocations"]
    assert "statically linked" in done.stderr and document["cases"][0]["samples"] >= 3


def test_the_text(tare, known):
    said = tare("bench", "--memory", "--no-save", "--budget", "100ms", "--min-runs", "3", "--", known).stdout
    assert "allocations of a run" in said and "many known.c:5" in said and "none of them is timed" in said


def test_not_of_services(tare):
    assert "--memory" in tare("bench", "--memory", "http://localhost:1/", status=2).stderr
