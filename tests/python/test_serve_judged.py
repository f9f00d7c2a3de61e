# SPDX-License-Identifier: MIT
"""What tare serve judges: trends, what got worse, two runs compared, a run as pages show it. Made-up runs whose answer is known."""

import datetime
import json
import subprocess

import pytest

from served import DIGITS, command, document, id_of, server, start  # noqa: F401

BEGAN = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


@pytest.fixture
def made(root):
    """made(7, scale=2): run number 7, a day after number 6, with all latencies twice as long."""
    text = (root / "tests/cli/report/sweep.run.json").read_text()

    def make(number, scale=1.0, subject="minilm", commit=None):
        run = json.loads(text)
        run["id"] = "01KA3QZ4M6S1V7W8X9Y" + "".join(DIGITS[number >> 5 * i & 31] for i in range(6, -1, -1))
        run["created"] = (BEGAN + datetime.timedelta(days=number)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        run["subject"]["name"] = subject
        run["cases"] = run["cases"][:2]
        for case in run["cases"]:
            v = int(10e6 * scale * (1 + 0.001 * (number * 7 % 5)))
            case["latency_ns"] = {"p50": {"value": v, "lo": v - 1000, "hi": v + 1000}}
            case["samples_raw"] = case["throughput"] = None
        if commit:
            run["config"]["git_commit"] = commit
        return json.dumps(run).encode()

    return make


def post(server, runs, token=None):
    token = token or server.token("ingest")
    for run in runs:
        got = server.ask("POST", "/api/v1/runs", token=token, body=run)
        assert got.status == 201, got.body
    return [id_of(r) for r in runs]


# ---- trend ----

def test_a_step_is_found_where_it_was_made(server, made, command):
    ids = post(server, [made(i, scale=1 if i < 10 else 1.3) for i in range(20)])
    token = server.token("read")
    got = server.ask("GET", "/api/v1/trend?subject=minilm&metric=latency.p50", token=token)
    assert got.status == 200 and got.json["schema"] == "tare.trend/1" and got.json["history"] is None
    assert got.json["series"]
    for series in got.json["series"]:
        (change,) = series["changes"]
        assert change["at"] == 10 and change["run"] == ids[10] and change["run_before"] == ids[9] and change["worse"]
        assert change["ratio_lo"] <= 1.3 <= change["ratio_hi"]
    said = json.loads(subprocess.check_output([command, "trend", "--json", "--history", server.data + "/history.db"]))
    assert {**said, "history": None} == got.json  # one judge


def test_what_got_worse_is_ranked_by_how_much(server, made):
    post(server, [made(i, scale=1 if i < 10 else 1.2, subject="small") for i in range(20)])
    post(server, [made(100 + i, scale=1 if i < 10 else 2, subject="large") for i in range(20)])
    post(server, [made(200 + i, subject="still") for i in range(20)])
    post(server, [made(300 + i, scale=1 if i < 10 else 0.5, subject="better") for i in range(20)])
    token = server.token("read")
    got = server.ask("GET", "/api/v1/regressions", token=token).json
    subjects = [r["subject"] for r in got["regressions"]]
    assert set(subjects) == {"small", "large"} and subjects == sorted(subjects)
    assert got["metric"] == "latency.p50" and got["next"] is None and got["series"] % 4 == 0
    for r in got["regressions"]:
        assert r["ratio_lo"] <= (2 if r["subject"] == "large" else 1.2) <= r["ratio_hi"]
    only = server.ask("GET", "/api/v1/regressions?subject=small", token=token).json["regressions"]
    assert {r["subject"] for r in only} == {"small"}


def test_what_got_worse_goes_on_from_series_to_series(server, made):
    post(server, [made(100 * k + i, scale=1 if i < 10 else 2, subject="s%03d" % k) for k in range(3) for i in range(14)])
    token = server.token("read")
    every = [s["id"] for s in server.ask("GET", "/api/v1/series?metric=latency.p50", token=token).json["series"]]
    for i, last in enumerate(every):
        got = server.ask("GET", "/api/v1/regressions?after=%d" % last, token=token).json
        assert got["series"] == len(got["regressions"]) == len(every) - i - 1 and got["next"] is None
    assert server.ask("GET", "/api/v1/regressions?after=x", token=token).status == 400


def test_an_empty_store_has_no_regressions(server):
    got = server.ask("GET", "/api/v1/regressions", token=server.token("read"))
    assert got.status == 200 and got.json["regressions"] == [] and got.json["series"] == 0


@pytest.mark.parametrize("query, status, says", [
    ("", 400, "subject"), ("?subject=minilm&metric=latency.p5", 400, "latency.p50"), ("?subject=minilm&last=0", 400, "last"),
    ("?subject=minilm&last=2001", 400, "last"), ("?subject=%zz", 400, "%"), ("?subject=nobody", 404, "no such"),
    ("?subject=minilm&case=none", 404, "no such"), ("?subject=minilm&host=none", 404, "no such")])
def test_questions_about_trends_that_have_no_answer(server, made, query, status, says):
    post(server, [made(1)])
    got = server.ask("GET", "/api/v1/trend" + query, token=server.token("read"))
    assert got.status == status and says in got.json["detail"]


# ---- comparing ----

def test_two_runs_are_compared_by_how_much_runs_differ(server, made):
    ids = post(server, [made(i) for i in range(12)] + [made(20, scale=1.5)])
    got = server.ask("GET", "/api/v1/compare?base=%s&new=%s" % (ids[0], ids[-1]), token=server.token("read"))
    assert got.status == 200 and got.json["schema"] == "tare.comparison/1" and got.json["verdict"] == "regressed"
    assert (got.json["base"]["name"], got.json["new"]["name"]) == (ids[0], ids[-1])
    assert server.data not in got.body.decode()
    metric = next(m for m in got.json["cases"][0]["metrics"] if m["metric"] == "latency.p50")
    assert metric["verdict"] == "regressed" and metric["ratio"]["lo"] <= 1.5 <= metric["ratio"]["hi"]
    same = server.ask("GET", "/api/v1/compare?base=%s&new=%s" % (ids[0], ids[5]), token=server.token("read"))
    assert same.status == 200 and same.json["verdict"] != "regressed"


def test_two_runs_without_a_history_are_not_judged(server, made):
    ids = post(server, [made(1), made(2, scale=1.5)])
    got = server.ask("GET", "/api/v1/compare?base=%s&new=%s" % tuple(ids), token=server.token("read"))
    assert got.status == 200 and got.json["verdict"] in ("unverified", "inconclusive")


@pytest.mark.parametrize("query, status", [
    ("", 400), ("?base=01KA3QZ4M6S1V7W8X9Y0000001", 400), ("?base=x&new=y", 400),
    ("?base=01KA3QZ4M6S1V7W8X9Y0000001&new=01KA3QZ4M6S1V7W8X9Y0000009", 404),
    ("?base=01KA3QZ4M6S1V7W8X9Y0000009&new=01KA3QZ4M6S1V7W8X9Y0000001", 404),
    ("?base=01KA3QZ4M6S1V7W8X9Y0000001&new=01KA3QZ4M6S1V7W8X9Y0000001&force=2", 400)])
def test_comparisons_that_have_no_answer(server, made, query, status):
    post(server, [made(1)])
    assert server.ask("GET", "/api/v1/compare" + query, token=server.token("read")).status == status


# ---- one run, and lists ----

def test_a_run_as_pages_show_it_has_its_samples(server, root):
    text = (root / "tests/web/data/sweep.json").read_bytes()
    (id_,) = post(server, [text])
    got = server.ask("GET", "/api/v1/runs/%s/view" % id_, token=server.token("read"))
    assert got.status == 200 and got.json["id"] == id_
    assert len(got.json["cases"][0]["samples_ns"]) == 519
    assert server.ask("GET", "/api/v1/runs/%s/view" % id_[:-1], token=server.token("read")).status == 404


def test_runs_of_a_commit(server, made):
    ids = post(server, [made(1, commit="abc123"), made(2, commit="abd456"), made(3)])
    token = server.token("read")

    def listed(word):
        return [r["id"] for r in server.ask("GET", "/api/v1/runs?commit=" + word, token=token).json["runs"]]

    assert listed("abc") == ids[:1] and listed("ab") == ids[1::-1] and listed("abc1234") == [] and listed("%25") == []


# ---- other projects ----

def test_another_project_is_not_judged_and_is_no_yardstick(server, made):
    mine, theirs = (server.token("read,ingest", "--project", p) for p in ("mine", "theirs"))
    post(server, [made(i, scale=1 if i < 10 else 2) for i in range(20)], theirs)
    ids = post(server, [made(50), made(51, scale=1.5)], mine)
    for path in ("/api/v1/trend?subject=minilm", "/api/v1/regressions"):
        got = server.ask("GET", path, token=mine)
        assert got.status == 200 and id_of(made(0)) not in got.body.decode()
    trend = server.ask("GET", "/api/v1/trend?subject=minilm", token=mine).json
    assert {p["run"] for s in trend["series"] for p in s["points"]} == set(ids)
    assert server.ask("GET", "/api/v1/regressions", token=mine).json["regressions"] == []
    assert server.ask("GET", "/api/v1/regressions", token=theirs).json["regressions"] != []
    compared = server.ask("GET", "/api/v1/compare?base=%s&new=%s" % tuple(ids), token=mine)
    assert compared.json["verdict"] in ("unverified", "inconclusive")  # their runs would have told
    foreign = id_of(made(0))
    for path in ("/api/v1/compare?base=%s&new=%s" % (foreign, ids[0]), "/api/v1/compare?base=%s&new=%s" % (ids[0], foreign), "/api/v1/runs/%s/view" % foreign):
        assert server.ask("GET", path, token=mine).status == 404
