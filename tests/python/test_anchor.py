# SPDX-License-Identifier: MIT
"""tare doctor --aa, and anchored histories measured for real: a program whose work trebles in the middle of a history."""

import json

import jsonschema

LOOP = "i=0; while [ $i -lt %d ]; do i=$((i + 1)); done"


def write_program(folder, name, turns):
    path = folder / name
    path.write_text("#!/bin/sh\n" + LOOP % turns + "\n")
    path.chmod(0o755)
    return path


def test_step_of_a_real_program_is_found(tare, root, tmp_path):
    """Seven runs and seven runs with three times the work: CPU time relative to the anchor tells them apart on any machine, however
    busy. Neighbours on a core moved the CPU time of a tenth of a second by a quarter: a step of 30 % was not always where it should be."""
    anchor, program = write_program(tmp_path, "frozen", 10000), tmp_path / "program"
    for i in range(14):
        write_program(tmp_path, "program", 10000 if i < 7 else 30000)
        done = tare("bench", "--budget", "0.2s", "--min-runs", "3", "--max-runs", "5", "--anchor", anchor,
                    "--anchor-name", "v1", "--anchor-budget", "0.7s", "--json", "--", program)
        run = json.loads(done.stdout)
        jsonschema.Draft202012Validator(json.loads((root / "docs/schema/run-1.json").read_text())).validate(run)
        ratios = {a["metric"]: a for a in run["cases"][0]["anchored"]}
        assert set(ratios) == {"latency.p50", "cpu.time"} and ratios["cpu.time"]["anchor"] == "v1"
        assert 0.5 < ratios["cpu.time"]["value"] / (1 if i < 7 else 3) < 2
    (series,) = json.loads(tare("trend", "--anchored", "--metric", "cpu.time", "--json").stdout)["series"]
    assert series["anchor"] == "v1" and len(series["points"]) == 14
    (change,) = series["changes"]
    assert change["at"] == 7 and change["worse"] and 2 < change["ratio"] < 4.5
    tare("trend", "--anchored", "--metric", "cpu.time", "--fail", status=1)


def test_another_anchor_is_another_series(tare, tmp_path):
    """Ratios to two anchors are never in one series: the newest anchor's is shown."""
    for name in ("v1", "v1", "v2"):
        tare("bench", "--budget", "0.1s", "--min-runs", "3", "--anchor", "true", "--anchor-name", name, "--anchor-budget",
             "0.3s", "--", "true")
    (series,) = json.loads(tare("trend", "--anchored", "--json").stdout)["series"]
    assert series["anchor"] == "v2" and len(series["points"]) == 1 and series["other_anchors"] == 1
    assert "not mixed with those to 1 other" in tare("trend").stdout
    (series,) = json.loads(tare("trend", "--anchor", "v1", "--json").stdout)["series"]
    assert series["anchor"] == "v1" and len(series["points"]) == 2 and series["other_anchors"] == 0
    assert "no such case, host or anchor" in tare("trend", "--anchor", "v3", status=2).stderr
    tare("trend", "--anchor", "v1", "--absolute", status=2)


def test_self_test_of_this_machine(tare, tmp_path):
    """A few seconds of A/A: counted, bounded, kept."""
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    first = json.loads(tare("doctor", "--quick", "--aa", "5s", "--json", env=env).stdout)["selftest"]
    assert first["comparisons"] >= 1 and first["inconclusive"] + first["regressed"] + first["improved"] <= first["comparisons"]
    assert first["false_alarm_rate"]["hi"] > first["false_alarm_rate"]["value"]
    kept = json.loads(tare("doctor", "--quick", "--json", env=env).stdout)["selftest"]
    assert kept["measured"] == first["measured"] and kept["comparisons"] == first["comparisons"]
    comparison = json.loads(tare("compare", "--ab", "true", "true", "--max-pairs", "20", "--json", env=env).stdout)
    assert any(n["id"] == "machine.selftest" for n in comparison["notes"])
