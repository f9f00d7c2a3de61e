# SPDX-License-Identifier: MIT
"""`tare bench http://.. --find-rate` against services whose highest rate is known: by a formula (M/M/4), or because nothing keeps the limit,
or everything. A busy machine makes the server slower than its formula: then only what would contradict the truth is a failure."""

import json
import math
import os
import signal
import subprocess
import sys
import time

import jsonschema
import made
import pytest


@pytest.fixture
def server():
    with subprocess.Popen([*made.make("build/tests/ref-server"), "--seconds", "300"], stdout=subprocess.PIPE, text=True) as child:
        yield child, f"http://127.0.0.1:{child.stdout.readline().split()[1]}"
        child.kill()


@pytest.fixture
def find(tare, root, server):
    def call(target, slo, *options, status=(0, 1, 3)):
        done = tare("bench", server[1] + target, "--find-rate", "--slo", slo, "--json", "--no-save", *options, status=status)
        document = json.loads(done.stdout)
        jsonschema.Draft202012Validator(json.loads((root / "docs/schema/run-1.json").read_text())).validate(document)
        return document, done.returncode

    return call


def mm4_rate(service_s, limit_s, quantile):
    """The rate at which this share of requests leaves an M/M/4 within the limit (Erlang C)."""
    mu, c, low, high = 1 / service_s, 4, 1e-3, 4 / service_s
    for _ in range(60):
        rate = (low + high) / 2
        a = rate / mu
        top = a**c / math.factorial(c) / (1 - a / c)
        waits = top / (sum(a**k / math.factorial(k) for k in range(c)) + top)
        free = c * mu - rate
        over = math.exp(-mu * limit_s) * (1 - waits) + waits * (free * math.exp(-mu * limit_s) - mu * math.exp(-free * limit_s)) / (free - mu)
        low, high = (rate, high) if over <= 1 - quantile else (low, rate)
    return low


def test_a_queue_is_found_where_the_formula_has_it(find):
    document, status = find("/queue?ms=5&servers=4", "p95<=60ms", "--budget", "3s")
    found, truth = document["rate_search"], mm4_rate(0.005, 0.06, 0.95)
    assert 700 < truth < 800
    assert found["slo"] == "latency.p95<=60 ms"
    assert {p["rate"] for p in found["probes"]} == {c["params"]["rate"] for c in document["cases"]}
    if found["passed"] is not None:  # never surely above the truth
        assert found["passed"] <= truth * 1.1
    if found["passed"] is not None and found["failed"] is not None:
        assert found["passed"] < found["failed"] and status == 0
        assert {"rate.found"} <= {f["id"] for f in document["findings"]}
        assert not {"runs.failed", "load.overloaded"} & {f["id"] for f in document["findings"]}
    else:
        assert found["why"] and status in (1, 3)
    assert any(p["seems_kept"] for p in found["probes"]) and not all(p["seems_kept"] for p in found["probes"])


def test_what_no_rate_keeps_is_a_finding(find):
    document, status = find("/fixed?ms=30", "p50<=5ms", "--rate", "0.5/s", "--budget", "200ms")
    found = document["rate_search"]
    assert found["passed"] is None and status in (1, 3) and found["why"]
    assert document["recommendation"] is None


def test_limits_of_each_token_stream(find):
    """Two answers at a time, 60 ms each: 33/s at most; more than that waits, and misses the first token's limit."""
    document, _ = find("/v1/chat/completions?tokens=5&first=40&gap=5&slots=2", "ttft<=200ms,goodput>=90%", "--llm", "--model", "m", "--rate", "8/s", "--budget", "2s")
    found = document["rate_search"]
    assert found["slo"] == "ttft<=200ms,goodput>=90 %"
    if found["passed"] is not None:
        assert found["passed"] <= 37
    assert all(c["stream"]["goodput"]["slo"] == "ttft<=200ms" for c in document["cases"] if c["samples"])


def test_a_server_that_dies_is_told(find, server):
    child, _ = server
    pid = os.fork()
    if not pid:
        time.sleep(2)
        os.kill(child.pid, signal.SIGKILL)
        os._exit(0)
    document, status = find("/fixed?ms=1", "p99<=20ms", "--rate", "20/s", "--budget", "3s")
    os.waitpid(pid, 0)
    assert status == 3 and "stopped answering" in document["rate_search"]["why"]


def test_the_window_over_time_adds_up(tare, server):
    done = tare("bench", server[1] + "/errors?share=0.2", "--rate", "200/s", "--budget", "1s", "--json", "--no-save", status=(0, 1, 3))
    case = json.loads(done.stdout)["cases"][0]
    moments = case["http"]["over_time"]
    assert 5 <= len(moments) <= 60
    assert sum(m["due"] for m in moments) == case["http"]["due"]
    assert sum(m["failed"] for m in moments) == case["http"]["failed"] + case["http"]["open"] > 0
    assert [m["start_ns"] for m in moments] == sorted(m["start_ns"] for m in moments)


@pytest.mark.parametrize("options, says", [
    (["--find-rate"], "--slo"),
    (["--find-rate", "--slo", "latency<=20ms"], "of how many requests"),
    (["--find-rate", "--slo", "ttft.p95<=20ms"], "--llm"),
    (["--find-rate", "--slo", "p99<=20"], "unit"),
    (["--find-rate", "--slo", "p99>=20ms"], "--slo"),
    (["--find-rate", "--slo", "goodput>=95%"], "of which limits"),
    (["--find-rate", "--slo", "throughput>=5/s"], "--slo"),
    (["--find-rate", "--slo", "p99<=20ms,"], "--slo"),
    (["--find-rate", "--slo", "p99<=20ms", "--concurrency", "4"], "--concurrency"),
    (["--find-rate", "--slo", "p99<=20ms", "--rate", "5,6/s"], "begins at one rate"),
    (["--find-rate", "--slo", "p99<=20ms", "--target", "p99<=20ms"], "--target"),
    (["--slo", "latency<=20ms"], "--llm"),
])
def test_bad_limits_are_refused_before_anything_is_sent(tare, options, says):
    assert says in tare("bench", "http://127.0.0.1:1/", *options, status=2).stderr


BURNER = """
import http.server, sys, time
class Burn(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        end = time.process_time() + 0.004
        while time.process_time() < end: pass
        body = b"ok"
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Burn)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


@pytest.fixture
def burner():
    with subprocess.Popen([sys.executable, "-c", BURNER], stdout=subprocess.PIPE, text=True) as child:
        yield child, f"http://127.0.0.1:{int(child.stdout.readline())}/"
        child.kill()


def test_the_processes_of_the_service_in_the_same_seconds(tare, burner):
    """Each request burns 4 ms by the server's own clock: what the kernel says it used is at least that, and little more."""
    child, url = burner
    done = tare("bench", url, "--pid", child.pid, "--concurrency", "2", "--budget", "2s", "--warmup", "0", "--json", "--no-save", status=(0, 1, 3))
    document = json.loads(done.stdout)
    case = document["cases"][0]
    server = case["http"]["server"]
    assert server["pid"] == child.pid and server["name"].startswith("python") and server["processes"] == 1 and server["threads"] >= 2
    seconds = sum(m["due"] for m in case["http"]["over_time"]) / case["throughput"]["value"]
    burnt = 0.004 * case["http"]["answered"] / seconds
    assert burnt * 0.9 <= server["busy"] <= burnt * 1.6 + 0.1
    assert 0 < server["thread_busy"] <= min(1, server["busy"] * 1.05 + 0.05)
    assert 1.5 <= server["in_flight"] <= 2.1  # two were under way all the time
    assert server["rss"] > 5e6 and server["usable"] >= 1
    assert "http.server" not in case["unknown"]


@pytest.mark.parametrize("pid, says", [("999999999", "no such process"), ("0", "--pid"), ("x", "--pid")])
def test_a_process_that_is_not_there_is_refused(tare, pid, says):
    assert says in tare("bench", "http://127.0.0.1:1/", "--pid", pid, status=2).stderr


def test_replicas_from_the_measured_rates_of_a_service(tare, server, tmp_path):
    """Two servers that take 2 ms each: 1,000/s at most. What kept the limit says how many replicas 3,000/s need."""
    tare("bench", server[1] + "/queue?ms=2&servers=2", "--rate", "200,400/s", "--budget", "3s", "--json", status=(0, 1, 3))
    run = next((tmp_path / "tare-results").glob("bench_*.json"))
    done = tare("plan", run, "--rate", "3000/s", "--slo", "p50<=100ms", "--json", status=(0, 1, 2))
    if done.returncode == 0:  # a busy machine may leave the limit undecided: then it says so
        plan = json.loads(done.stdout)
        chosen = plan["chosen"]
        rate = float(chosen["case"].split("=")[1])
        assert chosen["measured"] and chosen["replicas"] == math.ceil(3000 / rate)
        assert chosen["response_ns"] <= 100e6
        text = tare("plan", run, "--rate", "3000/s", "--slo", "p50<=100ms", "--headroom", "20%").stdout
        assert f"with {math.ceil(3600 / rate)} replicas" in text
    none = tare("plan", run, "--rate", "3000/s", "--slo", "p50<=1us", "--json", status=(1, 2))
    assert none.returncode == 2 or json.loads(none.stdout)["chosen"] is None


def test_a_service_without_rates_is_not_planned_with(tare, server, tmp_path):
    tare("bench", server[1] + "/fixed?ms=2", "--concurrency", "2", "--budget", "500ms", status=(0, 1, 3))
    run = next((tmp_path / "tare-results").glob("bench_*.json"))
    assert "--rate or --find-rate" in tare("plan", run, "--rate", "50/s", "--slo", "p50<=1s", status=(2, 3)).stderr
