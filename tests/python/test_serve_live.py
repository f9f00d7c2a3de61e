# SPDX-License-Identifier: MIT
"""Hosts and live metrics: what is kept, what is asked over a time, what is streamed, and who sees it."""

import json
import time

import pytest

from serve_client import request
from served import command, eventually, lock, server, start  # noqa: F401

T0 = 1_763_200_000_000  # a moment some time ago, in milliseconds


def batch(number=1, host="gpu7", samples=(), **more):
    return json.dumps({"batch": "b%d" % number, "host": host, "samples": list(samples), **more}).encode()


def sample(name, at, value, label="", **more):
    return {"name": name, "label": label, "at": at, "value": value, **more}


def push(server, token, *samples, number=1, **more):
    got = server.ask("POST", "/api/v1/metrics", token=token, body=batch(number, samples=samples, **more))
    assert got.status == 201, got.body
    return got


def ask(server, token, query, status=200):
    got = server.ask("GET", "/api/v1/metrics?" + query, token=token)
    assert got.status == status, got.body
    return got.json


# ---- asking ----

def test_pieces_of_time_have_least_mean_and_greatest_and_gaps_stay_gaps(server):
    token = server.token()
    push(server, token, *[sample("load.1m", T0 + at, value) for at, value in [(0, 1), (500, 3), (999, 5), (1000, 7), (3999, 2), (4000, 100), (-1, 50)]])
    got = ask(server, token, "host=gpu7&name=load.1m&from=%d&to=%d&points=4" % (T0, T0 + 4000))
    assert got["step"] == 1000 and got["unit"] == "1" and got["kind"] == "gauge" and got["per_second"] is False
    assert got["series"] == [{"label": "", "at": [T0, T0 + 1000, T0 + 3000], "min": [1, 7, 2], "mean": [3, 7, 2], "max": [5, 7, 2], "n": [3, 1, 1]}]


def test_a_counter_is_asked_as_a_rate_that_no_gap_and_no_restart_makes_up(server):
    token = server.token()
    at = [0, 1000, 2000, 4000, 4000 + 60_001, 5000 + 60_001, 6000 + 60_001]
    value = [100, 110, 130, 130, 1000, 5, 9]
    push(server, token, *[sample("net.rx", T0 + t, v, "eth0") for t, v in zip(at, value)])
    got = ask(server, token, "host=gpu7&name=net.rx&from=%d&to=%d&points=200" % (T0, T0 + 100_000))
    assert got["kind"] == "counter" and got["per_second"] is True and got["unit"] == "B" and got["step"] == 500
    one, = got["series"]
    assert one["label"] == "eth0" and one["at"] == [T0 + 1000, T0 + 2000, T0 + 4000, T0 + 66_000] and one["mean"] == [10, 20, 0, 4]
    got = ask(server, token, "host=gpu7&name=net.rx&from=%d&to=%d&points=1" % (T0 + 1, T0 + 4001))
    one, = got["series"]  # the reading before the time counts for the first rate; the mean is by time: 30 in 4 s
    assert (one["min"], one["mean"], one["max"], one["n"]) == ([0], [7.5], [20], [3])


def test_readings_of_many_batches_in_any_order_are_one_series(server):
    token = server.token()
    order = [5, 1, 4, 0, 3, 2]
    for number in order:
        push(server, token, *[sample("cpu.busy", T0 + number * 1000, number * 2.0, label) for label in ("cpu0", "cpu1")], number=number)
    got = ask(server, token, "host=gpu7&name=cpu.busy&from=%d&to=%d&points=6" % (T0, T0 + 6000))
    assert [s["label"] for s in got["series"]] == ["cpu0", "cpu1"]
    assert all(s["at"] == [T0 + i * 1000 for i in range(1, 6)] and s["mean"] == [2] * 5 for s in got["series"])
    got = ask(server, token, "host=gpu7&name=cpu.busy&label=cpu1&from=%d&to=%d" % (T0, T0 + 6000))
    assert [s["label"] for s in got["series"]] == ["cpu1"]


def test_the_edges_of_an_hour_long_batch(server):
    """A chunk begins up to an hour before its last reading: a question about that last moment finds it."""
    token = server.token()
    push(server, token, sample("load.1m", T0, 1), sample("load.1m", T0 + 3_600_000, 2))
    got = ask(server, token, "host=gpu7&name=load.1m&from=%d&to=%d" % (T0 + 3_600_000, T0 + 3_600_001))
    assert got["series"][0]["mean"] == [2]
    assert ask(server, token, "host=gpu7&name=load.1m&from=%d&to=%d" % (T0 + 3_600_001, T0 + 3_700_000))["series"][0]["at"] == []
    assert ask(server, token, "host=gpu7&name=load.1m&from=%d&to=%d" % (T0 + 1, T0 + 3_600_000))["series"][0]["at"] == []


def test_hosts_and_what_they_have(server):
    token = server.token()
    before = time.time() * 1000
    push(server, token, sample("load.1m", T0, 1), about={"os": "Debian 12", "cores": 2, "virtual": True, "gpu": None})
    push(server, token, sample("gpu.power", T0, 300, "gpu0"), sample("app.queue", T0, 3, unit="requests"), sample("app.done", T0, 3, kind="counter"), number=2)
    push(server, token, sample("load.1m", T0, 1), host="a.b", number=1)
    got = server.ask("GET", "/api/v1/hosts", token=token).json
    assert [h["name"] for h in got["hosts"]] == ["a.b", "gpu7"] and got["now"] >= got["hosts"][0]["last_heard"] >= before - 1
    seven = got["hosts"][1]
    assert seven["about"] == {"os": "Debian 12", "cores": 2, "virtual": True, "gpu": None} and seven["metrics"] == 4 and seven["project"] is None
    assert seven["first_heard"] <= seven["last_heard"] and got["hosts"][0]["about"] is None
    names = ask(server, token, "host=gpu7")["metrics"]
    assert names == [{"name": "app.done", "label": "", "unit": None, "kind": "counter"}, {"name": "app.queue", "label": "", "unit": "requests", "kind": "gauge"},
                     {"name": "gpu.power", "label": "gpu0", "unit": "W", "kind": "gauge"}, {"name": "load.1m", "label": "", "unit": "1", "kind": "gauge"}]


@pytest.mark.parametrize("query, status", [
    ("", 400), ("host=nobody", 404), ("host=nobody&name=load.1m", 404), ("host=gpu7&name=nothing", 404), ("host=gpu7&name=load.1m&label=x", 404),
    ("host=gpu7&name=load.1m&points=0", 400), ("host=gpu7&name=load.1m&points=2001", 400), ("host=gpu7&name=load.1m&from=x", 400),
    ("host=gpu7&name=load.1m&from=5&to=5", 400), ("host=gpu7&name=load.1m&from=6&to=5", 400), ("host=gpu7&name=load.1m&from=-1", 400),
    ("host=gpu7&name=load.1m&to=99999999999999999999", 400), ("host=gpu7&name=%zz", 400), ("host=gpu7&name=load.1m&project=other", 404),
    ("host=gpu7&name=load.1m&from=1&to=4503599627370496&points=2000", 200),
])
def test_questions_that_are_none(server, query, status):
    token = server.token()
    push(server, token, sample("load.1m", T0, 1))
    ask(server, token, query, status)


def test_too_many_points_are_refused_with_a_way_out(server):
    token = server.token()
    push(server, token, *[sample("cpu.busy", T0, 1, "cpu%d" % i) for i in range(100)])
    said = ask(server, token, "host=gpu7&name=cpu.busy&points=2000&from=%d" % T0, 422)["detail"]
    assert "label=" in said
    ask(server, token, "host=gpu7&name=cpu.busy&points=500&from=%d" % T0)


# ---- keeping ----

def test_a_batch_that_is_sent_again_counts_once(server):
    token = server.token()
    body = batch(1, samples=[sample("load.1m", T0, 1)])
    first = server.ask("POST", "/api/v1/metrics", token=token, body=body)
    again = server.ask("POST", "/api/v1/metrics", token=token, body=body)
    assert (first.status, again.status) == (201, 200) and first.json == again.json == {"batch": "b1", "samples": 1}
    other = server.ask("POST", "/api/v1/metrics", token=token, body=batch(1, samples=[sample("load.1m", T0, 2)]))
    assert other.status == 409
    push(server, token, sample("load.1m", T0 + 1, 1), host="other", number=1)  # the ids are each host's own
    one, = ask(server, token, "host=gpu7&name=load.1m&from=%d&to=%d" % (T0, T0 + 10))["series"]
    assert one["n"] == [1]


def test_what_was_not_read_is_not_kept(server):
    token = server.token()
    push(server, token, sample("load.1m", T0, None), sample("cpu.count", T0, 2))
    assert [m["name"] for m in ask(server, token, "host=gpu7")["metrics"]] == ["cpu.count"]


@pytest.mark.parametrize("body, said", [
    (b"", "ends here"), (b"[]", "object"), (b"{", "byte 1"), (b'{"batch": 5}', "batch: must be"), (batch(host="a b", samples=[sample("x", T0, 1)]), "host: must be"),
    (batch(), "there are none"), (b'{"host":"a","samples":[{"name":"x","at":1,"value":1}]}', "batch: must be"), (batch(samples=[{"at": T0, "value": 1}]), "samples[0]: has no name"),
    (batch(samples=[sample("x", T0, 1), {"name": "y", "at": T0}]), "samples[1]: y: has no value"), (batch(samples=[{"name": "x", "value": 1}]), "x: has no time"),
    (batch(samples=[sample("x y", T0, 1)]), "samples[0]: 'x y'"), (batch(samples=[sample("x" * 65, T0, 1)]), "at most 64"), (batch(samples=[sample("x", T0, "1")]), "value: must be"),
    (batch(samples=[sample("x", T0, True)]), "value: must be"), (batch(samples=[sample("x", 1.5, 1)]), "at: must be"), (batch(samples=[sample("x", -5, 1)]), "at: must be"),
    (batch(samples=[sample("x", T0, 1), sample("x", T0 + 3_600_001, 1)]), "within an hour"), (batch(samples=[sample("x", T0 * 2, 1)]), "ahead"),
    (batch(samples=[sample("gpu.power", T0, 1, unit="kW")]), "its unit is W"), (batch(samples=[sample("load.1m", T0, 1, kind="counter")]), "is a gauge"),
    (batch(samples=[sample("x", T0, 1, kind="histogram")]), "gauge or counter"), (batch(samples=[sample("x", T0, 1, "a\nb")]), "control characters"),
    (batch(samples=[sample("x", T0, 1, "l" * 257)]), "at most 256"), (batch(samples=[sample("x", T0, 1, unit="u" * 33)]), "at most 32"), (batch(samples=["x"]), "list of objects"),
    (batch(samples=[sample("x", T0, 1)], about={"a": {"b": 1}}), "about: must be"), (batch(samples=[sample("x", T0, 1)], about={str(i): 1 for i in range(33)}), "at most 32"),
    (batch(samples=[sample("x", T0, 1)]).replace(b": 1}", b": 1e999}"), "finite"), (batch(samples=[sample("x", T0, 1)]) + b"x", "byte"),
    (batch(samples=[sample("x", T0, 1)]).replace(b"gpu7", b"gpu\xff"), "host: must be"), (batch(samples=[sample("s%d" % (i % 100), T0, 1) for i in range(20001)]), "more than 20000"),
], ids=lambda v: v if isinstance(v, str) else "")
def test_what_is_wrong_with_a_batch_is_told(server, body, said):
    token = server.token()
    got = server.ask("POST", "/api/v1/metrics", token=token, body=body)
    assert got.status == 422 and said in got.json["detail"], got.body
    assert server.ask("GET", "/api/v1/hosts", token=token).json["hosts"] == []


def test_a_host_cannot_have_any_number_of_series(server):
    token = server.token()
    push(server, token, *[sample("x", T0, 1, str(i)) for i in range(10000)])
    got = server.ask("POST", "/api/v1/metrics", token=token, body=batch(2, samples=[sample("x", T0, 2, "0"), sample("x", T0, 1, "more")]))
    assert got.status == 422 and "10000 series" in got.json["detail"]
    push(server, token, sample("x", T0, 3, "0"), number=3)
    assert ask(server, token, "host=gpu7&name=x&label=0&from=%d&to=%d" % (T0, T0 + 1))["series"][0]["n"] == [2]  # of the refused batch nothing


def test_batches_that_wait_share_a_commit_and_a_bad_one_spoils_none(start):
    server = start("--per-address", 0, "--rate", 0)
    token = server.token()
    push(server, token, sample("load.1m", T0, 1), number=3)
    db = lock(server)
    clients = [server.client() for _ in range(8)]
    for i, c in enumerate(clients):
        c.send(request("POST", "/api/v1/metrics", token=token, body=batch(i, samples=[sample("load.1m", T0 + i, i)])))
    eventually(lambda: server.ask("GET", "/api/v1/self", token=token).json["bytes_in"] > 8 * 300)
    db.execute("ROLLBACK")
    db.close()
    assert [c.reply().status for c in clients] == [201, 201, 201, 409, 201, 201, 201, 201]


# ---- who sees it ----

def test_projects_do_not_see_each_others_hosts(server):
    nlp, ads, all_of_them = server.token("read,ingest", "--project", "nlp"), server.token("read,ingest", "--project", "ads"), server.token()
    push(server, nlp, sample("load.1m", T0, 1))
    push(server, ads, sample("load.1m", T0, 2))
    push(server, ads, sample("load.1m", T0, 3), host="secret", number=2)
    hosts = lambda token: [(h["name"], h["project"]) for h in server.ask("GET", "/api/v1/hosts", token=token).json["hosts"]]  # noqa: E731
    assert hosts(nlp) == [("gpu7", "nlp")] and hosts(ads) == [("gpu7", "ads"), ("secret", "ads")] and len(hosts(all_of_them)) == 3
    when = "&name=load.1m&from=%d&to=%d" % (T0, T0 + 1)
    assert ask(server, nlp, "host=gpu7" + when)["series"][0]["mean"] == [1]
    assert ask(server, ads, "host=gpu7" + when)["series"][0]["mean"] == [2]
    foreign = [ask(server, nlp, query + when, 404) for query in ("host=secret", "host=gpu7&project=ads", "host=nobody")]
    assert len({f["detail"] for f in foreign}) == 1
    assert "project=" in ask(server, all_of_them, "host=gpu7" + when, 400)["detail"]
    assert ask(server, all_of_them, "host=gpu7&project=ads" + when)["series"][0]["mean"] == [2]


def test_they_are_kept_over_a_restart(start):
    server = start()
    token = server.token()
    push(server, token, sample("load.1m", T0, 1))
    server.kill()
    again = start()
    push(again, token, sample("load.1m", T0 + 1000, 3), number=2)
    assert ask(again, token, "host=gpu7&name=load.1m&from=%d&to=%d&points=1" % (T0, T0 + 2000))["series"][0]["mean"] == [2]
