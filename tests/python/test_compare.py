# SPDX-License-Identifier: MIT
"""tare compare on saved runs, tare bench --repeat and --baseline: documents validate, formats parse, verdicts hold."""

import copy
import json
import xml.etree.ElementTree as xml

import jsonschema
import pytest


def validator(root, name):
    return jsonschema.Draft202012Validator(json.loads((root / "docs/schema" / name).read_text()))


@pytest.fixture
def runs(root, tmp_path):
    """runs(prefix, n, times): n documents a day apart whose medians are `times` those of the sample, with 1 % of noise."""
    sample = json.loads((root / "tests/cli/report/sweep.run.json").read_text())
    made = [0]

    def make(prefix, n, times=1.0, seconds=86400):
        names = []
        for i in range(n):
            made[0] += 1
            doc = copy.deepcopy(sample)
            doc["cases"] = doc["cases"][:2]
            doc["id"] = "01KA%022d" % made[0]
            minutes, second = divmod(made[0] * seconds, 60)
            hours, minute = divmod(minutes, 60)
            days, hour = divmod(hours, 24)
            doc["created"] = "2026-01-%02dT%02d:%02d:%02d.000Z" % (days + 1, hour, minute, second)
            for case in doc["cases"]:
                value = int(case["latency_ns"]["p50"]["value"] * times * (1 + 0.01 * ((made[0] * 7 % 5) - 2) / 2))
                case["latency_ns"]["p50"] = {"value": value, "lo": value - 1000, "hi": value + 1000}
            names.append("%s%d.json" % (prefix, i))
            (tmp_path / names[-1]).write_text(json.dumps(doc))
        return names

    return make


def sides(base, new):
    return [x for name in base for x in ("--base", name)] + [x for name in new for x in ("--new", name)]


def compare(tare, root, *args, status=0):
    document = json.loads(tare("compare", "--json", *args, status=status).stdout)
    validator(root, "comparison-1.json").validate(document)
    return document


def test_three_runs_a_side_decide(tare, root, runs):
    base = runs("a", 3)
    document = compare(tare, root, *sides(base, runs("b", 3, 1.2)), status=1)
    assert document["verdict"] == "regressed" and document["method"] == "saved"
    metric = document["cases"][0]["metrics"][0]
    assert metric["metric"] == "latency.p50" and metric["role"] == "gate" and metric["method"] == "runs"
    assert metric["ratio"]["lo"] < 1.2 < metric["ratio"]["hi"] and metric["p_value"] < 0.01
    assert compare(tare, root, *sides(base, runs("c", 3, 0.8)))["verdict"] == "improved"


def test_runs_close_together_are_one(tare, root, runs):
    both = sides(runs("a", 3, seconds=10), runs("b", 3, 1.5, seconds=10))
    assert compare(tare, root, *both)["verdict"] == "unverified"
    assert compare(tare, root, *both, "--close-runs", status=1)["verdict"] == "regressed"


@pytest.mark.parametrize("times, verdict, status", [(0.1, "improved", 0), (10, "regressed", 1)])
def test_far_beyond_any_noise_is_a_verdict(tare, root, runs, times, verdict, status):
    """One run a side, and three within half a minute, which are one."""
    for n in (1, 3):
        document = compare(tare, root, *sides(runs("a", n, seconds=10), runs("b", n, times, seconds=10)), status=status)
        median = document["cases"][0]["metrics"][0]
        assert (median["verdict"], median["method"]) == (verdict, "far")
        assert (document["verdict"] == "regressed") == (verdict == "regressed")
        assert "no plausible noise" in median["why"] and median["sd_launch"] is None


@pytest.mark.parametrize("times", [1, 1.05, 1.5])
def test_two_single_runs_never_fail(tare, root, runs, times):
    names = runs("a", 1) + runs("b", 1, times)
    document = compare(tare, root, *names)
    assert document["verdict"] == "unverified"
    assert all(m["ratio"]["lo"] is None and m["p_value"] is None for c in document["cases"] for m in c["metrics"])
    assert any("--ab" in n["text"] for n in document["notes"])
    compare(tare, root, *names, "--strict", status=3)


def test_a_history_is_a_yardstick(tare, root, runs):
    tare("history", "import", *runs("h", 9))
    document = compare(tare, root, runs("a", 1)[0], runs("b", 1, 1.3)[0], status=1)
    assert document["cases"][0]["metrics"][0]["method"] == "history"
    assert document["cases"][0]["metrics"][0]["evidence"]["history_runs"] == 9


def test_fail_on_needs_evidence(tare, root, runs):
    both = sides(runs("a", 3), runs("b", 3, 1.2))
    assert compare(tare, root, *both, "--fail-on", "latency.p50>10%", status=1)["verdict"] == "regressed"
    assert compare(tare, root, *both, "--fail-on", "latency.p50>40%")["verdict"] == "same"
    assert compare(tare, root, *both, "--fail-on", "latency.p95")["verdict"] == "same"
    single = runs("c", 1) + runs("d", 1, 3)
    assert compare(tare, root, *single, "--fail-on", "latency.p50>10%")["verdict"] == "unverified"


def test_limits_from_the_projects_file(tare, root, runs, tmp_path):
    (tmp_path / "tare.yaml").write_text("compare:\n  fail-on: latency.p95>5%\n")
    assert compare(tare, root, *sides(runs("a", 3), runs("b", 3, 1.2)))["verdict"] == "same"


def test_junit_parses_and_counts(tare, runs):
    text = tare("compare", "--format", "junit", *sides(runs("a", 3), runs("b", 3, 1.2)), status=1).stdout
    suites = xml.fromstring(text)
    assert int(suites.get("failures")) == len(list(suites.iter("failure"))) == 2
    assert int(suites.get("tests")) == len(list(suites.iter("testcase")))
    text = tare("compare", "--format", "junit", *(runs("c", 1) + runs("d", 1))).stdout
    assert all("no spread to judge by" in s.get("message") for s in xml.fromstring(text).iter("skipped"))


def test_names_cannot_break_out_of_markup(tare, runs, tmp_path):
    names = runs("a", 1) + runs("b", 1)
    for name in names:
        text = (tmp_path / name).read_text().replace("batch=1,seq=128", "<b>|x::error%0A@all\\n")
        (tmp_path / name).write_text(text)
    md = tare("compare", "--format", "md", *names).stdout
    assert "<b>" not in md and "@all" not in md
    xml.fromstring(tare("compare", "--format", "junit", *names).stdout)
    lines = tare("compare", "--format", "github", *names).stdout.splitlines()
    assert all(line.startswith(("::warning title=", "::notice title=")) for line in lines)


def test_repeat_keeps_every_launch(tare, root, tmp_path):
    text = tare("bench", "--repeat", 3, "--max-runs", 30, "--json", "--no-save", "--", "true").stdout
    document = json.loads(text)
    validator(root, "run-1.json").validate(document)
    case = document["cases"][0]
    assert len(case["launches"]) == 3 and case["samples"] == sum(launch["samples"] for launch in case["launches"])
    assert {f["id"] for f in document["findings"]} >= {"launches.spread", "launches.close"}
    assert not list(tmp_path.glob("tare-results/*.json"))


def test_repeat_with_a_pause_and_a_baseline(tare, root, tmp_path):
    tare("bench", "--repeat", 2, "--pause", "300ms", "--max-runs", 5, "--warmup", 1, "--output-dir", "r", "--", "true")
    base = next((tmp_path / "r").glob("bench_*.json"))
    launches = json.loads(base.read_text())["cases"][0]["launches"]
    assert launches[0]["created"] < launches[1]["created"]
    done = tare("bench", "--baseline", base, "--max-runs", 5, "--warmup", 1, "--output-dir", "r", "--json", "--", "true")
    document = json.loads(done.stdout)
    validator(root, "comparison-1.json").validate(document)
    assert document["verdict"] == "unverified" and document["new"]["name"] == "true"


def test_a_slower_command_fails_against_its_history(tare, tmp_path):
    go = ["bench", "--max-runs", 8, "--warmup", 1, "--output-dir", "r", "--name", "a nap"]
    for _ in range(9):
        tare(*go, "--no-history", "--", "sleep", "0.01")
    for i, name in enumerate(sorted((tmp_path / "r").glob("bench_*.json"))):  # runs within seconds would count as one
        document = json.loads(name.read_text())
        document["created"] = "2026-01-01T0%d:00:00.000Z" % i
        name.write_text(json.dumps(document))
    tare("history", "import", "r", "--output-dir", "r")
    tare("history", "baseline", "main", "--output-dir", "r")
    done = tare(*go, "--baseline", "@main", "--fail-on", "latency.p50>50%", "--", "sleep", "0.2", status=1)
    assert "regressed" in done.stdout
