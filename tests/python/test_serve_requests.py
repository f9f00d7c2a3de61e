# SPDX-License-Identifier: MIT
"""Requests of services: batches come in, percentiles, promises and reports go out. The expected numbers come from sorting the latencies
themselves; buckets are found by exact integer arithmetic here, not by tare's code."""

import json
import random
import sqlite3
import time

import pytest

from served import DIGITS, command, server, start  # noqa: F401

MS, HOUR = 1_000_000, 3_600_000
BOUND = 0.005416
FIELDS = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}


def bucket(value):
    """The i with 2^(i/64) < value <= 2^((i+1)/64)."""
    i = value.bit_length() * 64
    while value ** 64 <= 2 ** i:
        i -= 1
    return i


def histogram(values):
    counts = {}
    for v in values:
        counts[bucket(v)] = counts.get(bucket(v), 0) + 1
    first, last = min(counts), max(counts)
    return {"sum": sum(values), "min": min(values), "max": max(values),
            "histogram": {"scale": 6, "offset": first, "zero": 0, "counts": [counts.get(i, 0) for i in range(first, last + 1)]}}


def route(name, values, threshold_ms=200, errors=0, cancelled=0, **more):
    within = sum(v <= threshold_ms * MS for v in values)
    return {"route": name, "latency_ns": histogram(values) if values else None, "first_byte_ns": None, "errors": errors, "cancelled": cancelled,
            "slo": [{"threshold_ns": threshold_ms * MS, "objective": 0.99, "within": within, "breached": len(values) - within}], "worst": None, **more}


_number = iter(range(1, 1 << 30))


def batch(at_ms, routes, service="search", host="web-1", lost=0, **more):
    n = next(_number)
    tail = "".join(DIGITS[n >> 5 * i & 31] for i in range(5, -1, -1))
    at_ms -= at_ms % 10_000
    return {"schema": "tare.requests/1", "id": "01KA3QZ4M6S1V7W8X9Y0" + tail, "service": service, "host": host, "from_ms": at_ms, "to_ms": at_ms + 10_000,
            "lost": lost, "routes": routes or None, **more}


def send(server, token, document):
    return server.ask("POST", "/api/v1/requests", token=token, body=json.dumps(document).encode())


def exact(values, q):
    values = sorted(values)
    return values[max(1, -(-int(q * 10_000) * len(values) // 10_000)) - 1]


@pytest.fixture
def token(server):
    return server.token("read,ingest")


@pytest.fixture
def latencies():
    made = random.Random(7)
    return [max(1, int(made.lognormvariate(16, 1))) for _ in range(12_000)]


def total(server, token, query, service="search"):
    got = server.ask("GET", f"/api/v1/services/{service}/latency?{query}", token=token)
    assert got.status == 200, got.body
    return got.json


def test_a_fleet_is_one_distribution(server, token, latencies):
    """Percentiles of all hosts together, not a mean of theirs; counts of promises are exact."""
    now = int(time.time() * 1000)
    for host in range(6):
        mine = latencies[host * 2000:(host + 1) * 2000]
        assert send(server, token, batch(now - 30_000, [route("/find", mine, errors=host)], host=f"web-{host}")).status == 201
    got = total(server, token, "from=-10m")
    assert got["schema"] == "tare.sla/1" and got["error"] < 0.006
    latency = got["total"]["latency_ns"]
    for name, q in FIELDS.items():
        truth, told = exact(latencies, q), latency[name]
        assert told["lo"] <= truth <= told["hi"] and abs(told["value"] - truth) <= BOUND * truth + 1, name
        assert told["hi"] - told["lo"] <= 0.012 * truth + 2
    assert (latency["count"], latency["min"], latency["max"], latency["mean"]) == (12_000, min(latencies), max(latencies), sum(latencies) // 12_000)
    assert got["total"]["requests"] == 12_015 and got["total"]["errors"] == 15
    promise, = got["total"]["slo"]
    within = sum(v <= 200 * MS for v in latencies)
    assert (promise["within"], promise["breached"], promise["errors"]) == (within, 12_000 - within, 15)
    assert promise["attainment"] == pytest.approx(within / 12_015)
    burn = (12_015 - within) / 12_015 / 0.01
    assert promise["burn"] == pytest.approx(burn) == promise["burn_1h"] == promise["burn_6h"]
    assert sum(sum(s["latency_ns"]["histogram"]["counts"]) for s in got["steps"] if s["latency_ns"]) == 12_000
    assert [r["name"] for r in got["routes"]] == ["/find"]


def test_burn_looks_back_an_hour_and_six(server, token):
    now = int(time.time() * 1000)
    good, bad = [MS] * 99, [300 * MS]
    assert send(server, token, batch(now - 5 * HOUR, [route("/a", good + bad * 9)])).status == 201  # 9 of 108
    assert send(server, token, batch(now - 120_000, [route("/a", good + bad)])).status == 201  # 1 of 100: just the budget
    promise, = total(server, token, "from=-5m")["total"]["slo"]
    assert promise["burn_1h"] == pytest.approx(1) and promise["burn"] == pytest.approx(1)
    assert promise["burn_6h"] == pytest.approx(10 / 208 / 0.01)


def test_steps_and_routes(server, token):
    base = (int(time.time() * 1000) - 2 * HOUR) // HOUR * HOUR
    for i in range(3):
        assert send(server, token, batch(base + i * 60_000, [route("/a", [(i + 1) * MS] * 10), route("/b", [5 * MS] * (i + 1))])).status == 201
    got = total(server, token, f"from={base}&to={base + 180_000}&step=1m")
    assert [s["requests"] for s in got["steps"]] == [11, 12, 13] and got["resolution_ms"] == 60_000
    assert [r["total"]["requests"] for r in got["routes"]] == [30, 6]
    got = total(server, token, f"from={base}&to={base + 180_000}&step=1m&route=/a")
    assert [s["latency_ns"]["max"] for s in got["steps"]] == [MS, 2 * MS, 3 * MS] and len(got["routes"]) == 1
    got = total(server, token, f"from={base}&to={base + 60_000}&step=10s")
    assert [s["requests"] for s in got["steps"]] == [11, 0, 0, 0, 0, 0] and got["steps"][1]["latency_ns"] is None
    got = total(server, token, f"from={base}&to={base + HOUR}&step=1h")
    assert got["resolution_ms"] == HOUR and got["total"]["requests"] == 36


def test_too_few_for_a_percentile_is_unknown(server, token):
    assert send(server, token, batch(int(time.time() * 1000) - 20_000, [route("/a", [MS] * 99)])).status == 201
    latency = total(server, token, "from=-5m")["total"]["latency_ns"]
    assert latency["p95"]["value"] == MS and latency["p99"] is None and latency["p9999"] is None


def test_sending_again_is_harmless(server, token):
    one = batch(int(time.time() * 1000) - 20_000, [route("/a", [MS] * 10)])
    assert [send(server, token, one).status for _ in range(3)] == [201, 200, 200]
    assert total(server, token, "from=-5m")["total"]["requests"] == 10
    assert send(server, token, {**one, "lost": 1}).status == 409
    assert total(server, token, "from=-5m")["total"]["requests"] == 10


def test_what_was_acknowledged_survives_a_kill(start):
    server = start()
    token = server.token("read,ingest")
    for _ in range(5):
        assert send(server, token, batch(int(time.time() * 1000) - 20_000, [route("/a", [MS] * 10)])).status == 201
    server.kill()
    again = start(data=server.data)
    assert total(again, token, "from=-10m")["total"]["requests"] == 50


def test_other_projects_are_absent(server):
    red, blue, all_of_them = server.token("read,ingest", "--project", "red"), server.token("read,ingest", "--project", "blue"), server.token("read,ingest")
    one = batch(int(time.time() * 1000) - 20_000, [route("/a", [MS] * 10)])
    assert send(server, red, one).status == 201
    assert send(server, blue, {**one, "lost": 3}).status == 201  # an id is its project's: no 409 that would tell of the other
    names = lambda token: [(s["service"], s["project"]) for s in server.ask("GET", "/api/v1/services", token=token).json["services"]]
    assert names(red) == [("search", "red")] and names(blue) == [("search", "blue")]
    assert names(all_of_them) == [("search", "blue"), ("search", "red")]
    assert send(server, red, batch(int(time.time() * 1000) - 20_000, [route("/b", [MS])], service="secret")).status == 201
    assert server.ask("GET", "/api/v1/services/secret/latency", token=blue).status == 404
    assert server.ask("GET", "/api/v1/services/secret/latency?project=red", token=blue).status == 404
    assert server.ask("GET", "/api/v1/services/secret/reports", token=blue).status == 404
    assert server.ask("GET", "/api/v1/services/secret/latency", token=all_of_them).status == 404
    assert total(server, all_of_them, "project=red", "secret")["total"]["requests"] == 1


# ---- reports ----

def hour_id(at_ms, service="search", form="%Y%m%d%H"):
    return service + "-" + time.strftime(form, time.gmtime(at_ms / 1000))


def reseal(server, which, to):
    """Tests have no hours to wait: the server is stopped, and slots are as if they had come at another time. What they were sealed with."""
    db = sqlite3.connect(server.data + "/history.db")
    was = [row[0] for row in db.execute(f"SELECT DISTINCT seal_ms FROM request_slot WHERE {which}")]
    db.execute(f"UPDATE request_slot SET seal_ms = {to} WHERE {which}")
    db.commit()
    db.close()
    return was


def test_an_hour_is_sealed_and_late_data_makes_a_revision(start):
    server = start()
    token = server.token("read,ingest")
    base = (int(time.time() * 1000) - 3 * HOUR) // HOUR * HOUR
    for minute in range(60):
        for host in ("web-1", "web-2"):
            assert send(server, token, batch(base - HOUR + minute * 60_000, [], host=host)).status == 201
    assert send(server, token, batch(base + 60_000, [route("/a", [MS * i for i in range(1, 201)], errors=4)], host="web-1")).status == 201
    server.stop()
    reseal(server, "width_ms = 3600000", "at_ms + 3900000")  # as it would be had it come in time
    server = start(data=server.data)
    path = "/api/v1/reports/" + hour_id(base)
    first = server.ask("GET", path, token=token)
    assert first.status == 200, first.body
    told = first.json
    assert (told["kind"], told["revision"], told["revisions"], told["id"]) == ("hour", 1, 1, hour_id(base))
    assert told["sealed_ms"] == base + HOUR + 300_000
    assert told["total"]["requests"] == 204 and told["total"]["slo"][0]["within"] == 200
    assert told["completeness"]["hosts_expected"] == 2 and told["completeness"]["hosts_heard"] == 1
    assert told["completeness"]["minutes_missing"] == 59 + 60
    assert [(m["host"], m["minutes"]) for m in told["completeness"]["missing"]] == [("web-2", 60), ("web-1", 59)]
    # late: a revision of its own, and the first stays what it was
    asked = int(time.time() * 1000)
    assert send(server, token, batch(base + 120_000, [route("/a", [MS] * 6)], host="web-2", lost=5)).status == 201
    server.stop()
    late = reseal(server, "seal_ms <> 0 AND seal_ms <> at_ms + 3900000", base + HOUR + 600_000)
    assert all(seal % 300_000 == 0 and seal > asked for seal in late)  # with whatever comes within the same five minutes
    server = start(data=server.data)
    second = server.ask("GET", path, token=token).json
    assert (second["revision"], second["revisions"]) == (2, 2) and second["total"]["requests"] == 210 and second["total"]["lost"] == 5
    assert second["completeness"]["hosts_heard"] == 2 and second["completeness"]["minutes_missing"] == 59 + 59
    again = server.ask("GET", path + "?revision=1", token=token).json
    assert again["revisions"] == 2 and {k: v for k, v in again.items() if k != "revisions"} == {k: v for k, v in told.items() if k != "revisions"}
    assert server.ask("GET", path + "?revision=3", token=token).status == 404
    listed = server.ask("GET", "/api/v1/services/search/reports", token=token).json["reports"]
    assert [(r["id"], r["revisions"]) for r in listed] == [(hour_id(base), 2), (hour_id(base - HOUR), 1)]
    # for people
    md = server.ask("GET", path + "?format=md", token=token)
    assert md.headers["content-type"].startswith("text/markdown") and b"Revision 2 of 2" in md.body
    assert b"2 of 2 expected hosts were heard; 118 minutes of a host missing; 5 requests lost" in md.body
    html = server.ask("GET", path + "?format=html", token=token)
    assert html.headers["content-type"].startswith("text/html") and html.body.count(b"<table>") == html.body.count(b"</table>") == 4


def test_names_cannot_write_markup(start):
    server = start()
    token = server.token("read,ingest")
    evil = "<script>alert(1)</script>|x"
    base = (int(time.time() * 1000) - 50 * HOUR) // HOUR * HOUR
    worst = [{"id": evil, "at_ms": base, "latency_ns": MS, "failed": None}]
    assert send(server, token, batch(base, [route(evil, [MS] * 3, worst=worst)], host=evil)).status == 201
    server.stop()
    reseal(server, "width_ms = 3600000", "at_ms + 3900000")
    server = start(data=server.data)
    for form in ("md", "html"):
        told = server.ask("GET", f"/api/v1/reports/{hour_id(base)}?format={form}", token=token)
        assert told.status == 200 and b"<script" not in told.body and told.body.count(b"alert") == 3
    day = server.ask("GET", "/api/v1/reports/" + hour_id(base, form="%Y%m%d"), token=token).json
    assert (day["kind"], day["total"]["requests"], day["revision"]) == ("day", 3, 1)
    assert day["completeness"]["minutes_missing"] == 24 * 60 - 1 and day["sealed_ms"] == day["total"]["to_ms"] + 300_000


@pytest.mark.parametrize("query", ["revision=0", "revision=x", "format=pdf"])
def test_a_report_that_cannot_be(server, token, query):
    assert server.ask("GET", "/api/v1/reports/search-2026111614?" + query, token=token).status in (400, 404)
    for name in ("search", "search-", "-2026111614", "search-2026111624", "search-20261332", "search-2026"):
        assert server.ask("GET", "/api/v1/reports/" + name, token=token).status == 404, name


# ---- what is wrong ----

GOOD = batch(1_794_837_600_000, [route("/a", [MS] * 10)])


def changed(path, value):
    made = json.loads(json.dumps(GOOD))
    at = made
    *way, last = path
    for step in way:
        at = at[step]
    at[last] = value
    return made


@pytest.mark.parametrize("path, value, says", [
    (("schema",), "tare.run/1", "tare.run/1"),
    (("id",), "7", "id: expected a ULID"),
    (("service",), "a/b", "service: expected 1 to 40 letters"),
    (("host",), "", "host: expected 1 to 200 bytes"),
    (("host",), "a\nb", "host: expected 1 to 200 bytes"),
    (("to_ms",), GOOD["from_ms"], "to_ms is not after from_ms"),
    (("to_ms",), GOOD["from_ms"] + 60_001, "the interval is longer than a minute"),
    (("lost",), -1, "lost"),
    (("routes", 0, "errors"), None, "routes[0].errors"),
    (("routes", 0, "route"), "", "routes[0].route"),
    (("routes", 0, "latency_ns", "histogram", "scale"), 5, "routes[0]: latency_ns: histogram.scale: 5, only 6 is taken"),
    (("routes", 0, "latency_ns", "histogram", "offset"), 4096, "buckets outside of 1 to 2^64"),
    (("routes", 0, "latency_ns", "histogram", "counts"), [0], "sum, min or max of nothing"),
    (("routes", 0, "latency_ns", "sum"), 1, "the sum is below"),
    (("routes", 0, "latency_ns", "min"), 7, "min is not in the lowest bucket"),
    (("routes", 0, "latency_ns", "max"), 1 << 40, "max is not in the highest bucket"),
    (("routes", 0, "slo", 0, "within"), 9, "routes[0]: slo[0]: within and breached are not the 10 requests"),
    (("routes", 0, "slo", 0, "objective"), 1, "objective must be below 1"),
    (("routes", 0, "slo", 0, "threshold_ns"), 0, "threshold_ns must be above 0"),
    (("routes",), [route("/a", [MS]), route("/a", [MS])], "routes[1]: is the same route as routes[0]"),
    (("routes", 0, "slo"), [route("/a", [MS] * 10)["slo"][0]] * 9, "slo: 9 items, at most 8 are allowed"),
])
def test_a_batch_that_is_wrong_is_told_where(server, token, path, value, says):
    got = send(server, token, changed(path, value))
    assert got.status == 422 and says in got.json["detail"], got.body
    assert server.ask("GET", "/api/v1/services", token=token).json["services"] == []


def test_the_future_is_refused(server, token):
    got = send(server, token, batch(int(time.time() * 1000) + HOUR, [route("/a", [MS])]))
    assert got.status == 422 and "is in the future" in got.json["detail"]


def test_too_many_promises_change_nothing(server, token):
    now = int(time.time() * 1000) - 20_000
    for i in range(4):
        slo = [{"threshold_ns": (8 * i + k + 1) * MS, "objective": 0.9, "within": 1, "breached": 0} for k in range(8)]
        assert send(server, token, batch(now, [route("/a", [MS], slo=slo)])).status == 201
    one = batch(now, [route("/b", [MS]), route("/a", [MS], threshold_ms=500)])
    got = send(server, token, one)
    assert got.status == 422 and "more than 32 thresholds" in got.json["detail"]
    assert [r["name"] for r in total(server, token, "from=-5m")["routes"]] == ["/a"]
    assert send(server, token, one).status == 422  # nor was its id taken


@pytest.mark.parametrize("query, says", [
    ("from=yesterday", "from is a time"), ("from=-5m&to=-10m", "from is not before to"), ("step=7s", "step is a multiple of 10s"), ("step=x", "step is a length"),
    ("from=-30d&step=10s", "more than 1000 steps"), ("route=", "route is empty"), ("from=2026-13-01T00:00:00Z", "from is a time"), ("to=99999999999999999999", "to is a time"),
])
def test_a_question_that_is_wrong(server, token, query, says):
    assert send(server, token, batch(int(time.time() * 1000) - 20_000, [route("/a", [MS])])).status == 201
    got = server.ask("GET", "/api/v1/services/search/latency?" + query, token=token)
    assert got.status == 400 and says in got.json["detail"], got.body


def test_times_as_people_write_them(server, token):
    base = (int(time.time()) - 3600) // 60 * 60
    said = lambda s: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(s))
    assert said(1_794_837_600) == "2026-11-16T14:00:00Z"
    assert send(server, token, batch(base * 1000, [route("/a", [MS])])).status == 201
    got = total(server, token, f"from={said(base)}&to={said(base + 59)}&step=1m")
    assert got["total"]["requests"] == 1 and (got["total"]["from_ms"], got["total"]["to_ms"]) == (base * 1000, base * 1000 + 60_000)
    assert total(server, token, f"from={said(base + 10)}&to={said(base + 59)}&step=10s")["total"]["requests"] == 0


def test_the_answer_is_what_the_schema_says(server, token, root):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((root / "docs/schema/sla-1.json").read_text())
    assert send(server, token, batch(int(time.time() * 1000) - 20_000, [route("/a", [MS] * 200)])).status == 201
    jsonschema.validate(total(server, token, "from=-5m"), schema)
    jsonschema.validate(GOOD, json.loads((root / "docs/schema/requests-1.json").read_text()))
