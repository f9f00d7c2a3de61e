# SPDX-License-Identifier: MIT
"""Hosts and live metrics: what is kept, what is asked over a time, what is streamed, and who sees it."""

import gzip
import json
import shutil
import subprocess
import time

import pytest

import otlp_messages
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


# ---- as they come ----

class Stream:
    """Events of one viewer."""

    def __init__(self, server, token, query="host=gpu7", **headers):
        self.client = server.client()
        self.client.send(request("GET", "/api/v1/live?" + query, token=token, headers=headers))
        self.head = self.client.reply(head_only=True)

    def event(self):
        """The next one that is no comment; None: the end."""
        while True:
            while b"\n\n" not in self.client.left:
                more = self.client.sock.recv(65536)
                if not more:
                    return None
                self.client.left += more
            text, _, self.client.left = self.client.left.partition(b"\n\n")
            fields = dict(line.split(": ", 1) for line in text.decode().split("\n") if not line.startswith(":"))
            if "data" in fields:
                return fields

    def samples(self):
        event = self.event()
        assert event["event"] == "samples"
        return int(event["id"]), [(s["name"], s["label"], s["at"], s["value"]) for s in json.loads(event["data"])["samples"]]


def test_samples_are_streamed_as_they_come(server):
    token = server.token()
    push(server, token, sample("load.1m", T0, 0))
    stream, other = Stream(server, token), Stream(server, token)
    assert stream.head.status == 200 and stream.head.headers["content-type"] == "text/event-stream"
    assert "content-length" not in stream.head.headers and stream.head.headers["connection"] == "close"
    push(server, token, sample("load.1m", T0 + 1, 9), host="elsewhere")
    for number in (2, 3):
        push(server, token, sample("load.1m", T0 + number, number), sample("gpu.power", T0 + number, 300, "gpu0"), number=number)
        wanted = [("load.1m", "", T0 + number, number), ("gpu.power", "gpu0", T0 + number, 300)]
        first, second = stream.samples(), other.samples()
        assert first == second and first[1] == wanted
    push(server, token, sample("load.1m", T0 + 4, 4), number=4)
    push(server, token, sample("load.1m", T0 + 5, 5), number=5)
    again = Stream(server, token, **{"Last-Event-ID": str(first[0])})  # what it missed comes first
    assert [again.samples()[1][0][3] for _ in range(2)] == [4, 5]
    assert server.stop()[0] == 0
    while again.event():
        pass
    assert again.event() is None


def test_what_cannot_be_resumed_is_said_to_be_a_gap(server):
    token = server.token()
    push(server, token, sample("load.1m", T0, 0))
    stream = Stream(server, token, **{"Last-Event-ID": "999"})
    assert stream.event()["event"] == "gap"
    push(server, token, sample("load.1m", T0, 1), number=2)
    assert stream.samples()[1] == [("load.1m", "", T0, 1)]


def test_viewers_that_are_none(server):
    nlp, ads = server.token("read,ingest", "--project", "nlp"), server.token("read,ingest", "--project", "ads")
    push(server, nlp, sample("load.1m", T0, 0))
    for token, query, status in [(nlp, "", 400), (nlp, "host=other", 404), (ads, "host=gpu7", 404), (nlp, "host=gpu7&project=ads", 404)]:
        assert server.ask("GET", "/api/v1/live?" + query, token=token).status == status
    assert server.ask("HEAD", "/api/v1/live?host=gpu7", token=nlp).status == 200
    assert Stream(server, nlp).head.status == 200


def test_a_revoked_token_ends_its_stream(server, command):
    import subprocess
    token, short = server.token(), server.token("read")
    push(server, token, sample("load.1m", T0, 0))
    stream = Stream(server, short)
    subprocess.run([command, "token", "revoke", "--data", server.data, short.split("_")[2]], check=True, capture_output=True)
    assert stream.event() is None


def test_viewers_that_leave_or_do_not_read_disturb_nobody(start):
    """Some are gone, one never reads: it is cut, and the one who reads gets everything in order."""
    server = start("--rate", 0)
    token = server.token()
    push(server, token, sample("load.1m", T0, 0))
    for _ in range(10):
        Stream(server, token).client.close()
    asleep = Stream(server, token)
    reader = Stream(server, token)
    many = [sample("x", T0, 1.5, "label of a series %d" % i) for i in range(9000)]
    stop, seen, number = time.monotonic() + 60, [], 1
    while server.ask("GET", "/api/v1/self", token=token).json["closed_by_deadline"] == 0:
        assert time.monotonic() < stop
        number += 1
        push(server, token, sample("load.1m", T0 + number, number), *many, number=number)
        seen.append(reader.samples()[1][0][3])
    assert seen == list(range(2, number + 1))
    assert asleep.client.is_closed()
    assert server.stop()[0] == 0


# ---- for Prometheus ----

def parse(text):
    """Strict: every family has its HELP and TYPE before its lines, together and once; no line twice."""
    import re
    name_ = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
    values, families, kind = {}, [], {}
    assert text.endswith("\n")
    for line in text.rstrip("\n").split("\n"):
        if line.startswith("# HELP "):
            name = re.fullmatch(r"# HELP (%s) .+" % name_, line)[1]
            assert name not in families
            families.append(name)
        elif line.startswith("# TYPE "):
            name, kind_ = re.fullmatch(r"# TYPE (%s) (counter|gauge)" % name_, line).groups()
            assert families[-1] == name and (kind_ == "counter") == name.endswith("_total")
            kind[name] = kind_
        else:
            found = re.fullmatch(r'(%s)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\})? (\S+)' % name_, line)
            assert found and found[1] == families[-1] and families[-1] in kind and not (found[2] or "").endswith(","), line
            assert (found[1], found[2]) not in values, line
            values[found[1], found[2]] = float(found[3])
    return values


def test_prometheus_sees_the_server_and_the_latest_of_its_hosts(server):
    nlp, ads, all_of_them = server.token("read,ingest", "--project", "nlp"), server.token("read,ingest", "--project", "ads"), server.token()
    now = int(time.time() * 1000)
    push(server, nlp, sample("load.1m", now - 1000, 1), sample("load.1m", now, 2), sample("cpu.busy", now, 5, 'a"b\\c'), sample("app.queue", now, 3), host="a")
    push(server, nlp, sample("load.1m", now - 500, 7), sample("memory.total", now - 3_000_000, 7), host="a", number=2)  # older than the latest; too old
    push(server, ads, sample("load.1m", now, 4), host="a")
    push(server, ads, sample("load.1m", now - 3_000_000, 4), host="old")
    got = server.ask("GET", "/metrics", token=all_of_them)
    assert got.status == 200 and got.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    values = parse(got.body.decode())
    loads = {labels: v for (name, labels), v in values.items() if name == "tare_load_1m"}
    assert loads == {'host="a",project="nlp"': 2, 'host="a",project="ads"': 4}
    assert values["tare_cpu_busy_seconds_total", 'host="a",project="nlp",cpu="a\\"b\\\\c"'] == 5
    assert not any("memory_total" in name or "queue" in name for name, _ in values)
    heard = [labels for name, labels in values if name == "tare_host_heard_timestamp_seconds"]
    assert len(heard) == 3 and values["tare_server_requests_total", None] >= 4 and values["tare_server_replies_total", 'code="2xx"'] >= 4
    mine = parse(server.ask("GET", "/metrics", token=nlp).body.decode())
    assert not any("ads" in (labels or "") or "old" in (labels or "") for _, labels in mine)
    same = server.ask("GET", "/api/v1/self", token=nlp).json
    assert {"tare_server_%s" % k for k in same if k not in ("version", "uptime_s", "replies")} <= {n.removesuffix("_total") for n, _ in mine}


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool (Debian's package prometheus)")
def test_promtool_finds_nothing_wrong(server):
    token, now = server.token(), int(time.time() * 1000)
    push(server, token, sample("load.1m", now, 2), sample("cpu.busy", now, 5, label='a"b\\c'), sample("memory.total", now, 1e9), sample("gpu.power", now, 300, label="0"), host="a")
    text = server.ask("GET", "/metrics", token=token).body
    assert b"tare_load_1m" in text
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, b""), text.decode()


# ---- OTLP ----

PROTOBUF = {"Content-Type": "application/x-protobuf"}


def otlp_point(value, at=T0, **attributes):
    point = {"timeUnixNano": str(at * 1_000_000), "attributes": [{"key": k, "value": v} for k, v in attributes.items()]}
    return {**point, **({"asInt": str(value)} if isinstance(value, int) else {"asDouble": value})}


def otlp(*metrics, **resource):
    attributes = [{"key": k.replace("_", "."), "value": {"stringValue": v}} for k, v in resource.items()]
    return json.dumps({"resourceMetrics": [{"scopeMetrics": [{"scope": {"name": "x"}, "metrics": list(metrics)}], "resource": {"attributes": attributes}}]}).encode()


def test_otlp_gauges_and_sums_are_kept(server):
    token = server.token()
    cumulative = {"aggregationTemporality": 2, "isMonotonic": True}
    body = otlp({"name": "system.cpu.time", "unit": "s", "sum": {**cumulative, "dataPoints": [
                    otlp_point(1.5, state={"stringValue": "idle"}, cpu={"intValue": "0"}), otlp_point(3.5, T0 + 1000, cpu={"intValue": "0"}, state={"stringValue": "idle"})]}},
                {"name": "queue.length", "gauge": {"dataPoints": [otlp_point(7), {**otlp_point(9, T0 + 1000), "flags": 1}]}},
                {"name": "queue.limit", "sum": {"aggregationTemporality": "AGGREGATION_TEMPORALITY_CUMULATIVE", "dataPoints": [otlp_point(100)]}},
                host_name="gpu7", service_name="ads")
    for _ in range(2):  # the same request again counts once
        got = server.ask("POST", "/v1/metrics", token=token, body=body)
        assert got.status == 200 and got.json == {}, got.body
    names = ask(server, token, "host=gpu7")["metrics"]
    assert [(m["name"], m["label"], m["unit"], m["kind"]) for m in names] == [
        ("queue.length", "service.name=ads", None, "gauge"), ("queue.limit", "service.name=ads", None, "gauge"),
        ("system.cpu.time", "service.name=ads,cpu=0,state=idle", "s", "counter")]
    when = "&from=%d&to=%d&points=2" % (T0, T0 + 2000)
    assert ask(server, token, "host=gpu7&name=system.cpu.time" + when)["series"][0]["mean"] == [2]
    assert ask(server, token, "host=gpu7&name=queue.length" + when)["series"][0]["n"] == [1]  # no value is a gap
    assert server.ask("GET", "/api/v1/hosts", token=token).json["hosts"][0]["about"] == {"host.name": "gpu7", "service.name": "ads"}


def test_what_otlp_cannot_keep_is_counted_and_the_rest_is_kept(server):
    token = server.token()
    body = otlp({"name": "h", "histogram": {"dataPoints": [{}, {}]}}, {"name": "d", "sum": {"aggregationTemporality": 1, "dataPoints": [otlp_point(1)]}},
                {"name": "bad name", "gauge": {"dataPoints": [otlp_point(1)]}}, {"name": "good", "gauge": {"dataPoints": [otlp_point(1), {"asInt": "1"}, {"timeUnixNano": "1", "asInt": "x"}]}},
                service_name="ads")
    got = server.ask("POST", "/v1/metrics", token=token, body=body)
    assert got.status == 200 and got.json["partialSuccess"]["rejectedDataPoints"] == "6" and "only gauges" in got.json["partialSuccess"]["errorMessage"]
    assert [(m["name"], m["label"]) for m in ask(server, token, "host=ads")["metrics"]] == [("good", "")]
    nameless = server.ask("POST", "/v1/metrics", token=token, body=otlp({"name": "x", "gauge": {"dataPoints": [otlp_point(1)]}}))
    assert nameless.json["partialSuccess"]["rejectedDataPoints"] == "1" and "host.name" in nameless.json["partialSuccess"]["errorMessage"]
    ahead = server.ask("POST", "/v1/metrics", token=token, body=otlp({"name": "x", "gauge": {"dataPoints": [otlp_point(1, T0 * 2)]}}, host_name="a"))
    assert ahead.json["partialSuccess"]["rejectedDataPoints"] == "1" and "ahead" in ahead.json["partialSuccess"]["errorMessage"]


@pytest.mark.parametrize("body, said", [(b"", "line"), (b"[]", "resourceMetrics"), (b"{}", "resourceMetrics"), (b'{"resourceMetrics":{}}', "must be a list"), (b"{", "line 1")])
def test_requests_that_are_no_otlp(server, body, said):
    got = server.ask("POST", "/v1/metrics", token=server.token(), body=body)
    assert got.status == 400 and said in got.json["detail"], got.body


def test_otlp_in_protobuf_is_what_it_is_in_json(server):
    token, cumulative = server.token(), {"aggregationTemporality": 2, "isMonotonic": True}
    metrics = [{"name": "system.cpu.time", "unit": "s", "description": "not kept", "sum": {**cumulative, "dataPoints": [
                   otlp_point(1.5, state={"stringValue": "idle"}, cpu={"intValue": "-3"}), otlp_point(3, T0 + 1000, on={"boolValue": True}, r={"doubleValue": 0.25})]}},
               {"name": "queue.length", "gauge": {"dataPoints": [otlp_point(-7), {**otlp_point(9, T0 + 1000), "flags": 1}, otlp_point(float("nan"), T0 + 2000)]}},
               {"name": "h", "histogram": {"dataPoints": [{}, {}]}}, {"name": "e", "exponentialHistogram": {"dataPoints": [{}]}}, {"name": "s", "summary": {"dataPoints": [{}]}},
               {"name": "d", "sum": {"aggregationTemporality": 1, "dataPoints": [otlp_point(1)]}}, {"name": "bad name", "gauge": {"dataPoints": [otlp_point(1)]}}]
    numbers = json.loads(json.dumps(metrics).replace("NaN", "null"))  # protobuf has numbers that JSON has not
    plain = server.ask("POST", "/v1/metrics", token=token, body=otlp(*numbers, host_name="json", service_name="ads"))
    for _ in range(2):  # the same request again counts once
        packed = otlp_messages.packed(otlp(*metrics, host_name="proto", service_name="ads").replace(b"NaN", b'"NaN"'))
        got = server.ask("POST", "/v1/metrics", token=token, body=packed, headers=PROTOBUF)
        assert got.status == 200 and got.headers["content-type"] == "application/x-protobuf", got.body
        assert otlp_messages.reply(got.body) == plain.json and plain.json["partialSuccess"]["rejectedDataPoints"] == "7"
    when = "&from=%d&to=%d&points=4" % (T0, T0 + 4000)
    for name in ("system.cpu.time", "queue.length"):
        one, other = (ask(server, token, "host=%s&name=%s%s" % (host, name, when))["series"] for host in ("json", "proto"))
        assert one == other and one
    assert server.ask("POST", "/v1/metrics", token=token, body=b"", headers=PROTOBUF).body == b""  # nothing is a message, too


@pytest.mark.parametrize("body, said", [(b"\x0a", "no protobuf"), (b"\x0a\x05\x0a", "no protobuf"), (b"\x08\x01", "another type"), (b'{"resourceMetrics":[]}', "no protobuf"),
                                        (b"\x0a\x09\x12\x07\x12\x05\x0a\x03a\xffb", "UTF-8"), (b"\x0a\x09\x12\x07\x12\x05\x0a\x03a\x00b", "UTF-8")])
def test_what_is_no_otlp_in_protobuf(server, body, said):
    got = server.ask("POST", "/v1/metrics", token=server.token(), body=body, headers=PROTOBUF)
    assert got.status == 400 and said in got.json["detail"], got.body


def test_otlp_of_other_encodings_is_refused(server):
    token = server.token()
    for headers in ({"Content-Type": "text/plain"}, {"Content-Type": "application/x-protobuffer"}, {**PROTOBUF, "Content-Encoding": "zstd"}):
        assert server.ask("POST", "/v1/metrics", token=token, body=b"\x0a\x00", headers=headers).status == 415
    assert server.ask("POST", "/api/v1/metrics", token=token, body=b"\x0a\x00", headers=PROTOBUF).status == 415  # only where it is OTLP
    assert server.ask("POST", "/v1/metrics", token=token, body=b'{"resourceMetrics":[]}').json == {}

def test_gzip_bodies_of_otlp(server):
    """The same request packed and not is one; what would burst, is damaged or cut short is refused, and nothing of it is kept."""
    token = server.token()
    body = json.dumps({"resourceMetrics": [{"resource": {"attributes": [{"key": "host.name", "value": {"stringValue": "gpu7"}}]}, "scopeMetrics": [{"metrics": [
        {"name": "app.queue", "gauge": {"dataPoints": [{"timeUnixNano": str(T0 * 1_000_000), "asDouble": 3.5}]}}]}]}]}).encode()

    def post(data, coding="gzip"):
        return server.ask("POST", "/v1/metrics", token=token, body=data, headers={"Content-Type": "application/json", "Content-Encoding": coding}).status

    packed = gzip.compress(body)
    for bad in (packed[:-1], packed[:20], packed + b"x", body, b"", packed[:30] + b"\xff\xff" + packed[32:]):
        assert post(bad) == 400, bad
    assert post(gzip.compress(b" " * (100 << 20))) == 413
    assert server.ask("GET", "/api/v1/hosts", token=token).json["hosts"] == []
    assert post(packed) == 200 and post(packed, "GZIP") == 200 and post(body, "identity") == 200
    got = ask(server, token, "host=gpu7&name=app.queue&from=%d&to=%d" % (T0, T0 + 1000))
    assert got["series"][0]["n"] == [1] and got["series"][0]["mean"] == [3.5]
    assert server.ask("POST", "/api/v1/metrics", token=token, body=packed, headers={"Content-Encoding": "gzip"}).status == 415  # only where it is OTLP
