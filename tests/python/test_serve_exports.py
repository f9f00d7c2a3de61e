# SPDX-License-Identifier: MIT
"""Samples handed on: OTLP/HTTP and Prometheus' remote write, read by other people's protobuf and by a Snappy of the test's own; and by a real Prometheus where one is installed."""

import http.server
import json
import os
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import pytest

from otlp_messages import CLASSES
from served import command, eventually, start  # noqa: F401
from serve_client import WAIT
from test_serve_live import push, sample


def unsnap(data):
    """Snappy's block format, as its description has it."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                return value, at

    size, at = varint(0)
    out = bytearray()
    while at < len(data):
        tag, at = data[at], at + 1
        if tag & 3 == 0:
            n = tag >> 2
            if n >= 60:
                n, at = int.from_bytes(data[at:at + n - 59], "little"), at + n - 59
            out += data[at:at + n + 1]
            at += n + 1
            continue
        assert tag & 3 == 2, "a form that is never written"
        back, at = int.from_bytes(data[at:at + 2], "little"), at + 2
        assert 0 < back <= len(out)
        for _ in range((tag >> 2) + 1):
            out.append(out[-back])
    assert len(out) == size
    return bytes(out)


class Receiver:
    """Says what `answers` says, one after another, then 200; keeps what it said 200 to."""

    def __init__(self, *answers):
        self.answers, self.asked, self.samples = list(answers), [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = outer.answers.pop(0) if outer.answers else 200
                outer.asked.append((self.path, dict(self.headers), status))
                if status == 200:
                    outer.samples += outer.read(body, self.headers)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    @staticmethod
    def read(body, headers):
        if headers.get("Content-Encoding") == "snappy":
            assert headers["X-Prometheus-Remote-Write-Version"] == "0.1.0"
            got = CLASSES["WriteRequest"].FromString(unsnap(body))
            for s in got.timeseries:
                assert [x.name for x in s.labels] == sorted(x.name for x in s.labels)
            return [(dict((x.name, x.value) for x in s.labels), p.timestamp, p.value) for s in got.timeseries for p in s.samples]
        out = []
        for r in CLASSES["Request"].FromString(body).resource_metrics:
            about = {a.key: a.value.string_value for a in r.resource.attributes}
            for m in r.scope_metrics[0].metrics:
                points = m.sum.data_points or m.gauge.data_points
                if m.sum.data_points:
                    assert m.sum.aggregation_temporality == 2 and m.sum.is_monotonic
                out += [({**about, "__name__": m.name, "unit": m.unit, **{a.key: a.value.string_value for a in p.attributes}}, p.time_unix_nano // 10**6, p.as_double) for p in points]
        return out


@pytest.fixture
def serve(start, tmp_path):
    def call(**exports):
        path = tmp_path / "operations.json"
        path.write_text(json.dumps({"schema": "tare.operations/1", "exports": exports}))
        path.chmod(0o600)
        return start("--operations", path, "--rate", 0)
    return call


def test_samples_arrive_once_and_in_the_others_words(serve, tmp_path):
    now = int(time.time() * 1000)
    prometheus, otlp = Receiver(503, 429), Receiver(500)
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")
    server = serve(prom={"url": prometheus.url + "/api/v1/write", "protocol": "prometheus", "token_file": str(secret)}, other={"url": otlp.url + "/v1/metrics", "protocol": "otlp"})
    token = server.token()
    push(server, token, sample("load.1m", now, 1), number=0)  # it may begin before the first export looked: not counted on
    time.sleep(2.5)
    for n in range(1, 6):
        push(server, token, sample("load.1m", now + n, n), sample("net.rx", now + n, 10 * n, "eth0"), sample("my.own/queue", now + n, 0.5, unit="items"), number=n)
    bound = server.token("ingest", "--project", "nlp")
    push(server, bound, sample("load.1m", now, 7), host="p", number=9)
    wanted = {("gpu7", now + n, v) for n in range(1, 6) for v in (n, 10 * n, 0.5)}
    for receiver in (prometheus, otlp):
        eventually(lambda: len([s for s in receiver.samples if s[1] > now or s[2] == 7]) >= 16)
        assert {(s[0].get("host", s[0].get("host.name")), s[1], s[2]) for s in receiver.samples if s[1] > now} == wanted
        assert len(receiver.samples) == len({(json.dumps(s[0], sort_keys=True), s[1]) for s in receiver.samples})  # each once
    ours = {json.dumps(s[0], sort_keys=True) for s in prometheus.samples if s[1] > now}
    assert json.dumps({"__name__": "my_own_queue", "host": "gpu7"}, sort_keys=True) in ours and len(ours) == 3
    assert [s[0]["project"] for s in prometheus.samples if s[2] == 7] == ["nlp"] and [s[0]["tare.project"] for s in otlp.samples if s[2] == 7] == ["nlp"]
    assert {s[0]["unit"] for s in otlp.samples if s[0]["__name__"] == "my.own/queue"} == {"items"}
    assert {s[0]["label"] for s in otlp.samples if s[0]["__name__"] == "net.rx"} == {"eth0"}
    assert {(a[0], a[1].get("Authorization")) for a in prometheus.asked} == {("/api/v1/write", "Bearer s3cret")}
    assert {(a[0], a[1].get("Authorization")) for a in otlp.asked} == {("/v1/metrics", None)}
    said = server.stop()[1]
    assert said.count("export prom: samples wait in the store: HTTP status 503") == 1 and "export prom: it answers again" in said and "s3cret" not in said
    prometheus.close()
    otlp.close()


def test_what_waits_survives_a_kill_and_what_is_refused_is_passed(serve):
    now = int(time.time() * 1000)
    away = Receiver(*[503] * 1000)
    server = serve(prom={"url": away.url, "protocol": "prometheus"})
    token = server.token()
    time.sleep(2.5)
    push(server, token, *[sample("load.1m", now + n, n) for n in range(1, 2000)], number=1)
    eventually(lambda: away.asked)
    server.kill()
    away.answers = []
    server = serve(prom={"url": away.url, "protocol": "prometheus"})  # another owner: it waits until the first one's time is over
    eventually(lambda: len(away.samples) >= 1999)
    away.answers = [400]
    asked = len(away.asked)
    push(server, token, sample("load.1m", now + 3000, 1), number=2)
    eventually(lambda: len(away.asked) > asked)
    push(server, token, sample("load.1m", now + 3001, 2), number=3)
    eventually(lambda: len(away.samples) >= 2000)
    assert [s[1] - now for s in away.samples] == list(range(1, 2000)) + [3001]
    assert "export prom: refused for good, and left out: HTTP status 400" in server.stop()[1]
    away.close()


@pytest.mark.parametrize("exports, says", [
    ({"a": {"protocol": "otlp"}}, 'a: "url" is missing'), ({"a": {"url": "ftp://x"}}, "expected a URL"), ({"a": {"url": "http://x", "protocol": "graphite"}}, 'expected "otlp" or "prometheus"'),
    ({"a b": {"url": "http://x"}}, "a name has letters"), ({"x%d" % i: {"url": "http://x"} for i in range(9)}, "more than 8"), ([], "an object of exports"),
    ({"a": {"url": "http://x", "token_file": "/nowhere"}}, "/nowhere: cannot be read"), ({"a": {"url": "http://x", "token": "x"}}, '"token" is no key here'),
])
def test_settings_that_are_wrong(command, exports, says, tmp_path):
    path = tmp_path / "operations.json"
    path.write_text(json.dumps({"schema": "tare.operations/1", "exports": exports}))
    path.chmod(0o600)
    done = subprocess.run([command, "serve", "--data", tmp_path / "data", "--port", "0", "--operations", path], capture_output=True, text=True, timeout=WAIT, check=False)
    assert done.returncode in (2, 3) and says in done.stderr, done.stderr


@pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed")
def test_a_real_prometheus(serve, tmp_path):
    (tmp_path / "p.yml").write_text("global: {}\n")
    port = 20000 + os.getpid() % 20000
    prometheus = subprocess.Popen([shutil.which("prometheus"), "--config.file=%s" % (tmp_path / "p.yml"), "--storage.tsdb.path=%s" % (tmp_path / "tsdb"), "--web.enable-remote-write-receiver",
                                   "--web.listen-address=127.0.0.1:%d" % port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        server = serve(prom={"url": "http://127.0.0.1:%d/api/v1/write" % port, "protocol": "prometheus"})
        token = server.token()
        time.sleep(2.5)
        now = int(time.time() * 1000)
        push(server, token, *[sample("net.rx", now - 5000 + 1000 * n, 100 * n, "eth%d" % k) for k in range(20) for n in range(5)], number=1)

        def values():
            query = urllib.parse.urlencode({"query": "{host=\"gpu7\"}[1m]", "time": now / 1000 + 1})
            try:
                got = json.load(urllib.request.urlopen("http://127.0.0.1:%d/api/v1/query?%s" % (port, query), timeout=WAIT))
            except OSError:
                return []
            return sorted((r["metric"]["label"], [float(v[1]) for v in r["values"]]) for r in got["data"]["result"])

        eventually(lambda: len(values()) == 20)
        assert values() == sorted(("eth%d" % k, [100.0 * n for n in range(5)]) for k in range(20))
    finally:
        prometheus.kill()
        prometheus.wait()
