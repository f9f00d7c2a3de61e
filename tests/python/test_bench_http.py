# SPDX-License-Identifier: MIT
"""`tare bench http://..` against the reference server: what is told of requests is what the server did to them. Nothing here depends on how fast
the machine is: times are only held from below, by what the server is known to have waited."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

WAIT = 120


@pytest.fixture
def service(build):
    program = build / "tests" / "ref-server"
    if not program.exists():
        pytest.skip("the reference server was not built (make tests)")
    child = subprocess.Popen([program, "--seconds", str(WAIT)], stdout=subprocess.PIPE, text=True)
    word, port = child.stdout.readline().split()
    assert word == "port"
    yield f"http://127.0.0.1:{port}"
    child.kill()
    child.wait()
    child.stdout.close()


@pytest.fixture
def bench(build, tmp_path):
    tare = os.environ.get("TARE", str(build / "tare"))

    def call(url, *options, code=(0, 1)):
        done = subprocess.run([tare, "bench", url, *options, "--no-save", "--json"], cwd=tmp_path, capture_output=True, text=True, timeout=WAIT, check=False)
        if "built without llhttp" in done.stderr:
            pytest.skip("built without llhttp")
        assert done.returncode in code, done.stderr
        return json.loads(done.stdout) if done.stdout else done.stderr

    return call


@pytest.fixture
def measured_log(build, bench, tmp_path):
    """The document, and when the server says that it had received each request."""

    def call(target, *options):
        log = tmp_path / "server.jsonl"
        with subprocess.Popen([build / "tests" / "ref-server", "--log", log, "--seconds", str(WAIT)], stdout=subprocess.PIPE, text=True) as child:
            document = bench(f"http://127.0.0.1:{child.stdout.readline().split()[1]}{target}", *options, code=(0, 1, 3))
            child.send_signal(signal.SIGTERM)
            assert child.wait(20) == 0
        return document, [json.loads(line) for line in log.read_text().splitlines()]

    return call


def adds_up(case):
    http = case["http"]
    assert http["due"] == http["answered"] + http["failed"] + http["open"]
    assert case["samples"] == http["answered"]
    return http


@pytest.mark.parametrize("load", [["--rate", "100/s"], ["--concurrency", "3"], ["--rate", "50/s", "--fresh"]])
def test_every_request_is_counted_and_none_is_too_fast(service, bench, load):
    case = bench(f"{service}/fixed?ms=20", *load, "--budget", "1s", code=(0, 1, 3))["cases"][0]
    http = adds_up(case)
    assert http["answered"] == http["due"] > 0 and http["statuses"] == {"200": http["due"]}
    assert case["latency_ns"]["min"] >= 20e6 and http["service_ns"]["p50"]["value"] >= 20e6
    assert http["unstamped"] == 0  # the kernel says when bytes came
    assert case["memory"] is None and "service" in case["unknown"]["memory"]


def test_a_sweep_has_a_case_for_each_rate(service, bench):
    run = bench(f"{service}/fixed?ms=1", "--rate", "20,40/s", "--budget", "500ms", code=(0, 1, 3))
    assert [(c["name"], c["params"]["rate"]) for c in run["cases"]] == [("rate=20", 20), ("rate=40", 40)]
    run = bench(f"{service}/fixed?ms=1", "--concurrency", "1,4", "--budget", "300ms", code=(0, 1, 3))
    assert [c["params"]["concurrency"] for c in run["cases"]] == [1, 4]
    assert run["cases"][1]["http"]["connections"] <= 4


def test_what_is_never_answered_stays_in_the_percentiles(service, bench):
    """5 % of the requests have no answer: p99 is above the timeout, and no number is given in its place."""
    case = bench(f"{service}/silent?share=0.05", "--rate", "300/s", "--budget", "2s", "--timeout", "600ms", code=(1, 3))["cases"][0]
    http = adds_up(case)
    assert http["faults"]["timeout"] >= 1
    assert case["latency_ns"]["p99"] is None and case["latency_ns"]["at_least"]["p99"] >= 600e6
    assert case["latency_ns"]["max"] is None


def test_statuses_that_are_wrong_are_failures_by_kind(service, bench):
    case = bench(f"{service}/errors?share=0.3", "--rate", "200/s", "--budget", "1s", code=(1, 3))["cases"][0]
    http = adds_up(case)
    assert http["faults"] == {"status": http["failed"]} and http["statuses"]["500"] == http["failed"] > 0
    assert "status 500" in case["failure"] and "as asked" in case["failure"]


def test_a_server_that_dies(service, bench):
    run = bench(f"{service}/dies?at=60", "--rate", "100/s", "--budget", "1500ms", "--warmup", "0", code=(1, 3))
    http = adds_up(run["cases"][0])
    assert http["answered"] <= 60 and http["failed"] > 0
    assert set(http["faults"]) <= {"refused", "reset", "cut"}
    assert 0 < http["last_answer_ns"] < 1.5e9  # when it died


@pytest.mark.parametrize("path, says", [("invalid", "not HTTP/1.1"), ("length", "ended before"), ("reset", "reset"), ("half", "ended before"),
                                        ("redirect", "redirects are not followed"), ("loris?gap=400", "in time"), ("endless", "")])
def test_nothing_is_measured_where_the_first_request_fails(service, bench, path, says):
    told = bench(f"{service}/{path}", "--rate", "10/s", "--budget", "300ms", "--timeout", "700ms", code=(3,))
    assert says in told and path.split("?")[0] in told


def test_a_body_and_what_must_be_in_the_answer(service, bench, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    ok = bench(f"{service}/echo", "--inputs", "in.jsonl", "--expect-body", '"a"', "--budget", "200ms", code=(0, 1, 3))["cases"][0]
    assert adds_up(ok)["failed"] == 0
    told = bench(f"{service}/echo", "--inputs", "in.jsonl", "--expect-body", "not there", "--budget", "200ms", code=(3,))
    assert "the expected text is not in the body" in told


def test_a_template_and_what_answers_must_have(service, bench, tmp_path):
    (tmp_path / "t.json").write_text('{"id": {{id}}, "text": "{{line:text}}", "n": {{random:5..9}}}')
    (tmp_path / "lines.jsonl").write_text('{"text": "a\\"b"}\n{"text": "c"}\n')
    sent = ["--template", "t.json", "--inputs", "lines.jsonl", "--concurrency", "1", "--max-runs", "20"]
    good = bench(f"{service}/echo?{{{{id}}}}", *sent, "--expect-json", "n>=5", "--expect-json", "n<=9", "--expect-json", "text")["cases"][0]
    assert good["http"]["answered"] == 20
    bad = bench(f"{service}/echo", *sent, "--expect-json", "text=c", code=(0, 1, 3))  # the first line has another text
    assert "text in the answer is" in bad if isinstance(bad, str) else bad["cases"][0]["http"]["faults"] == {"body": 10}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--template", "t.json"], "no file of lines"),
        (["--template", "t.json", "--body", "t.json"], "does not go with"),
        (["--template", "gone.json"], "gone.json"),
        (["--expect-json", "n>x"], "--expect-json"),
        (["--replay", "t.json"], "no line has a time"),
        (["--speed", "2"], "goes with --replay"),
        (["--replay", "log", "--speed", "100000"], "log: from its first to its last time are 3000 ns at --speed 100000"),
        (["--replay", "mixed"], "mixed: from its first to its last time are 8482 days at --speed 1"),
        (["--replay", "log", "--scenario", "single-stream"], "--replay does not go with --scenario"),
        (["--replay", "log", "--arrivals", "ramp"], "--arrivals goes with --rate or --find-rate"),
        (["--arrivals", "bursty"], "--arrivals goes with --rate or --find-rate"),
        (["--find-rate", "--slo", "p99<=1s", "--arrivals", "ramp"], "--arrivals ramp does not go with --find-rate"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_anything_is(bench, tmp_path, options, says):
    (tmp_path / "t.json").write_text('{"text": "{{line}}"}')
    (tmp_path / "log").write_text("0\n0.1\n0.3\n")
    (tmp_path / "mixed").write_text("[10/Oct/2000:13:55:36 -0700] x\n2024-01-01T00:00:00Z y\n")
    assert says in bench("http://127.0.0.1:9/", *options, code=(2,))


def test_a_log_is_replayed_at_its_times(measured_log, tmp_path):
    at = [0.0, 0.05, 0.05, 0.2, 0.6]
    (tmp_path / "log.csv").write_text("time,what\n" + "".join(f"{t},x\n" for t in at))
    document, log = measured_log("/fixed?ms=1", "--replay", "log.csv", "--speed", "0.5", "--warmup", "0")
    case = document["cases"][0]
    assert case["http"]["due"] == len(at) and document["config"]["arrivals"] == "replay"
    assert case["open_loop"]["offered"] == pytest.approx(len(at) / 1.2, rel=1e-3)
    received = sorted(r["received"] for r in log)[-len(at) :]  # the first request is the one that looks whether it works
    late = case["open_loop"]["longest_delay_ns"]
    for a, t in zip(received, at):
        assert a - received[0] >= (t - at[0]) * 2e9 - late


@pytest.mark.parametrize("kind", ["bursty", "ramp", "constant", "poisson"])
def test_arrivals_of_every_kind_are_what_they_say(service, bench, kind):
    case = bench(f"{service}/fixed?ms=0", "--rate", "200/s", "--arrivals", kind, "--budget", "1s", code=(0, 1, 3))["cases"][0]
    want = 110 if kind == "ramp" else 200  # a ramp begins at a tenth
    assert abs(case["http"]["due"] - want) <= (0 if kind == "constant" else 15 * (3 if kind == "bursty" else 1) * 5)
    if kind == "ramp":
        due = [m["due"] for m in case["http"]["over_time"]]
        assert sum(due[len(due) // 2 :]) > 1.5 * sum(due[: len(due) // 2])


def test_secrets_are_in_no_document(service, bench, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "Bearer s3cr3t")
    run = bench(f"{service}/fixed?ms=0&key=s3cr3t", "--header", "Authorization: env:SECRET_KEY", "--budget", "200ms", code=(0, 1, 3))
    assert "s3cr3t" not in json.dumps(run)


def test_ctrl_c_gives_what_there_is(service, build, tmp_path):
    tare = os.environ.get("TARE", str(build / "tare"))
    child = subprocess.Popen([tare, "bench", f"{service}/fixed?ms=1", "--rate", "100/s", "--budget", "60s", "--warmup", "0", "--no-save", "--json"],
                             cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=WAIT)
    if "built without llhttp" in err:
        pytest.skip("built without llhttp")
    run = json.loads(out)
    assert adds_up(run["cases"][0])["answered"] > 0 and run["config"]["interrupted"] is True


def test_ipv6(build, bench):
    program = build / "tests" / "ref-server"
    if not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("no IPv6 here")
    child = subprocess.Popen([program, "--seconds", str(WAIT), "--host", "::1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    line = child.stdout.readline().split()
    if not line:
        child.wait()
        pytest.skip("the server cannot listen on ::1 here")
    case = bench(f"http://[::1]:{line[1]}/fixed?ms=1", "--budget", "200ms", code=(0, 1, 3))["cases"][0]
    child.kill()
    child.wait()
    child.stdout.close()
    assert adds_up(case)["answered"] > 0


def test_a_unix_socket(build, bench, tmp_path):
    path = tmp_path / "s"
    child = subprocess.Popen([build / "tests" / "ref-server", "--seconds", str(WAIT), "--unix", path], stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    case = bench(f"unix:{path}:/fixed?ms=2", "--budget", "200ms", code=(0, 1, 3))["cases"][0]
    child.kill()
    child.wait()
    child.stdout.close()
    assert adds_up(case)["answered"] > 0 and case["latency_ns"]["min"] >= 2e6


@pytest.fixture
def compare(build, tmp_path):
    def call(base, new, *options, code=(0, 1)):
        words = [os.environ.get("TARE", str(build / "tare")), "compare", "--ab", base, new, *options, "--json"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=WAIT, check=False)
        assert done.returncode in code, done.stderr
        return json.loads(done.stdout) if done.stdout else done.stderr

    return call


def test_two_services_in_turn(service, compare, tmp_path):
    """20 ms against 30 ms: the same server answers both, so that a busy machine hits both alike."""
    document = compare(f"{service}/fixed?ms=20&key=s3cret", f"{service}/fixed?ms=30", "--budget", "6s", "--max-pairs", "40")
    case = document["cases"][0]
    metrics = {m["metric"]: m for m in case["metrics"]}
    assert set(metrics) == {"latency.mean", "throughput"} and "memory.peak" in case["unknown"]  # whose processor time it is, nobody knows
    ratio = metrics["latency.mean"]["ratio"]
    assert 1.1 < ratio["value"] < 1.6 and ratio["lo"] < 1.5 + 0.05 and ratio["hi"] > 1.3
    assert document["verdict"] in ("regressed", "inconclusive")
    kept = next((tmp_path / "tare-results").glob("*.json")).read_text()
    assert "s3cret" not in kept and document["base"]["type"] == "http"
    assert "/fixed?.." in document["reproduce"]  # which says where something was left out


def test_services_are_compared_with_company_and_some_failures(service, compare):
    case = compare(f"{service}/fixed?ms=5", f"{service}/errors?share=0.02&ms=5", "--budget", "60s", "--concurrency", "2", "--max-pairs", "25")["cases"][0]
    assert case["name"] == "concurrency=2" and case["failed_pairs"] > 0
    assert any(n["id"] == "pairs.failed" and "status 500" in n["text"] for n in case["notes"])


@pytest.mark.parametrize(
    ("base", "new", "options", "code", "says"),
    [
        ("{}/fixed", "./program", [], 2, "compare two of one kind"),
        ("{}/fixed", "http://127.0.0.1:1/", [], 3, "refused"),
        ("{}/fixed", "{}/errors?share=1", [], 3, "status 500"),
        ("{}/fixed", "{}/fixed", ["--threads", "2"], 2, "--threads is for models"),
        ("a.onnx", "b.onnx", ["--body", "x"], 2, "--body is for services"),
        ("{}/fixed", "ftp://x/", [], 2, "only http:// and https://"),
    ],
)
def test_services_that_cannot_be_compared(service, compare, tmp_path, base, new, options, code, says):
    (tmp_path / "program").write_text("#!/bin/sh\n")
    (tmp_path / "program").chmod(0o755)
    assert says in compare(base.format(service), new.format(service), *options, code=(code,))


SERVER = """
import http.server, sys, time
class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        time.sleep(0.01)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    def log_message(self, *what):
        pass
time.sleep(0.5)  # nobody answers yet
print("serves", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answers).serve_forever()
"""


@pytest.fixture
def run_bench(build, tmp_path):
    (tmp_path / "server.py").write_text(SERVER)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]

    def call(words, *program, options=(), code=0):
        program = program or (sys.executable, "server.py", str(port))
        line = [os.environ.get("TARE", str(build / "tare")), "run", "--bench", words.format(port=port), *options, "--", *program]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=WAIT, check=False)
        if "built without llhttp" in done.stderr:
            pytest.skip("built without llhttp")
        assert done.returncode == code, done.stderr
        return done

    return call


def documents(folder, command):
    return [json.loads(p.read_text()) for p in (folder / "tare-results").glob(f"{command}_*.json")]


def test_load_and_server_in_one_trace(run_bench, build, tmp_path):
    done = run_bench("http://127.0.0.1:{port}/ --rate 40/s --budget 1s --warmup 5", options=["--trace", "t.tare"])
    assert done.stdout == "serves\n"  # stdout is the program's
    (load,), (program,) = documents(tmp_path, "bench"), documents(tmp_path, "run")
    case = load["cases"][0]
    assert case["http"]["answered"] == case["http"]["due"] > 0 and case["latency_ns"]["min"] >= 10e6
    assert case["http"]["server"]["processes"] >= 1  # --pid is its
    assert program["subject"]["name"].startswith("python") and program["cases"]
    shown = subprocess.run([build / "tare", "report", "t.tare", "--json"], cwd=tmp_path, capture_output=True, text=True, check=True)
    calls = {r["name"]: r["count"] for r in json.loads(shown.stdout)["tree"]}
    assert calls["request"] == case["http"]["due"] and calls["request of the warm-up"] >= 5


@pytest.mark.parametrize(
    ("words", "program", "code", "says"),
    [
        ("ftp://x/", ["true"], 2, "an address stands first"),
        ("http://127.0.0.1:{port}/ --rate x", ["sleep", "20"], 2, "--rate x"),
        ("http://127.0.0.1:{port}/ --wait 300ms", ["sleep", "20"], 3, "no answer within 0.3 s"),
        ("http://127.0.0.1:{port}/", ["sh", "-c", "exit 7"], 7, ""),  # it ended first
        ("http://127.0.0.1:{port}/ --target 'latency.p50<=1us' --max-runs 40", [], 1, "latency.p50"),
    ],
)
def test_load_that_cannot_be_or_does_not_keep_its_target(run_bench, tmp_path, words, program, code, says):
    assert says in run_bench(words, *program, options=["--no-save"], code=code).stderr
    assert not documents(tmp_path, "bench")


IGNORES = "import signal\nfor s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)\n"


@pytest.mark.parametrize(
    ("signal_number", "group", "code"),
    [
        (signal.SIGINT, True, 0),  # the terminal tells all of them: the server is gone long before the load has reckoned what to tell
        (signal.SIGTERM, False, 137),  # tare alone is told, and the server goes on
    ],
)
def test_the_load_of_a_run_that_is_ended_tells_what_there_is(build, tmp_path, signal_number, group, code):
    (tmp_path / "server.py").write_text(IGNORES + SERVER)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    server = [build / "tests" / "ref-server", "--port", port] if group else [sys.executable, "server.py", port]
    words = [os.environ.get("TARE", str(build / "tare")), "run", "--bench", f"http://127.0.0.1:{port}/fixed --concurrency 16 --budget {WAIT}s --warmup 0"]
    child = subprocess.Popen([*words, "--", *server], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    child.stdout.readline()
    time.sleep(4)
    (os.killpg if group else os.kill)(child.pid, signal_number)
    _, err = child.communicate(timeout=2 * WAIT)
    if "built without llhttp" in err:
        pytest.skip("built without llhttp")
    (load,) = documents(tmp_path, "bench")
    assert load["config"]["interrupted"] is True and load["cases"][0]["http"]["answered"] > 0
    assert child.returncode == code, err


# ---- answers against what was expected ----


@pytest.fixture
def lines(tmp_path):
    def write(name, *values):
        path = tmp_path / name
        path.write_text("".join(json.dumps(v) + "\n" for v in values))
        return path

    return write


def wrong_answers(run):
    return [f["title"] for f in run["findings"] if f["id"] == "answers.wrong"]


LOAD = ("--concurrency", "2", "--max-runs", "40", "--warmup", "2")


def test_answers_that_are_all_as_expected(service, bench, lines):
    """/echo gives back what it is sent, so that each line of the inputs is its own answer."""
    sent = lines("in.jsonl", {"out": "cat", "id": 1}, {"out": "dog", "id": 2.0}, {"out": ["x", {"y": None}]})
    want = lines("want.jsonl", {"expected": "cat"}, {"expected": "dog"}, {"expected": ["x", {"y": None}]})
    run = bench(f"{service}/echo", "--inputs", sent, "--expect", want, "--expect-at", "out", "--target", "accuracy>=0.9", *LOAD, code=(0, 3))
    case = run["cases"][0]
    assert case["accuracy"]["value"] == 1 and case["accuracy"]["metric"] == "equal" and case["accuracy"]["examples"] == 40
    assert case["http"]["failed"] == 0 and not wrong_answers(run)
    whole = lines("whole.jsonl", {"expected": {"id": 1.0, "out": "cat"}}, {"expected": {"id": 2, "out": "dog"}}, {"expected": {"out": ["x", {"y": None}]}})
    assert bench(f"{service}/echo", "--inputs", sent, "--expect", whole, *LOAD, code=(0, 3))["cases"][0]["accuracy"]["value"] == 1


def test_wrong_answers_are_counted_and_shown(service, bench, lines):
    sent = lines("in.jsonl", *({"out": word} for word in ("cat", "dog", "cow", "hen")))
    want = lines("want.jsonl", *({"expected": word} for word in ("cat", "dog", "pig", "hen")))
    run = bench(f"{service}/echo", "--inputs", sent, "--expect", want, "--expect-at", "out", "--target", "accuracy>=0.9", *LOAD, code=(1, 3))
    case = run["cases"][0]
    assert case["accuracy"]["value"] == 0.75 and case["accuracy"]["lo"] < 0.75 < case["accuracy"]["hi"]
    assert case["http"]["failed"] == 0  # a wrong answer is an answer
    (text,) = wrong_answers(run)
    assert text.startswith("10 of 40 answers") and '"cow" where "pig" was expected (answer 3 of --expect)' in text
    assert run["targets"][0]["verdict"] == "fail"


@pytest.mark.parametrize("metric, score", [("cosine", (1 + 0.96) / 2), ("max-abs", 1), ("equal", 0.5), ("top1", 0.5)])
def test_metrics_are_those_of_models(service, bench, lines, metric, score):
    sent = lines("in.jsonl", {"scores": [[1, 0]]}, {"scores": [[3, 4]]})
    want = lines("want.jsonl", {"expected": [1, 0]}, {"expected": [4, 3]})
    run = bench(f"{service}/echo", "--inputs", sent, "--expect", want, "--expect-at", "scores", "--metric", metric, *LOAD, code=(0, 1, 3))
    accuracy = run["cases"][0]["accuracy"]
    assert accuracy["metric"] == metric and abs(accuracy["value"] - score) < 1e-9


def test_labels_are_where_the_largest_score_is(service, bench, lines):
    sent = lines("in.jsonl", {"scores": [0.1, 0.9]}, {"scores": [0.8, 0.2]})
    want = lines("want.jsonl", {"label": 1}, {"label": 1})
    run = bench(f"{service}/echo", "--inputs", sent, "--expect", want, "--expect-at", "scores", *LOAD, code=(0, 1, 3))
    accuracy = run["cases"][0]["accuracy"]
    assert accuracy["metric"] == "accuracy" and accuracy["value"] == 0.5
    assert "[0.8,0.2] where label 1 was expected (answer 2 of --expect)" in wrong_answers(run)[0]


@pytest.mark.parametrize("body, says", [('{"a": 1}', "has no out"), ("cat", "no JSON"), ('{"out": 1, "out": 1}', "duplicate"), ('{"out": "x"}', "not all numbers"),
                                        ('{"out": [1, 2, 3]}', "3 values")])
def test_an_answer_that_cannot_be_compared_is_none(service, bench, lines, tmp_path, body, says):
    (tmp_path / "body").write_text(body)
    want = lines("want.jsonl", {"expected": [1, 2]})
    assert says in bench(f"{service}/echo", "--body", tmp_path / "body", "--expect", want, "--expect-at", "out", *LOAD, code=(3,))


def test_expectations_that_do_not_fit_what_is_sent(service, bench, lines, tmp_path):
    sent, want = lines("in.jsonl", 1, 2, 3), lines("want.jsonl", {"expected": 1})
    assert "1 answers for 3 lines" in bench(f"{service}/echo", "--inputs", sent, "--expect", want, code=(2,))
    mixed = lines("mixed.jsonl", {"expected": 1}, {"expected": "x"})
    assert "mixed.jsonl: line 2" in bench(f"{service}/echo", "--inputs", sent, "--expect", mixed, code=(2,))
    assert "--find-rate" in bench(f"{service}/echo", "--find-rate", "--slo", "p99<=1s", "--expect", want, code=(2,))


def test_outputs_of_kserve_are_compared_with_arrays(service, bench, tmp_path):
    numpy = pytest.importorskip("numpy")
    x = numpy.arange(8, dtype=numpy.float32).reshape(2, 4)
    numpy.savez(tmp_path / "x.npz", x=x)
    numpy.savez(tmp_path / "other.npz", x=x + [[0, 0, 0, 0], [0, 0, 0, 0.5]])
    numpy.savez(tmp_path / "named.npz", y=x, z=x)
    for how in ([], ["--binary"]):
        ask = (f"{service}/v2/models/m/infer", "--kserve", *how, "--inputs", tmp_path / "x.npz", *LOAD, "--metric", "max-abs", "--expect")
        run = bench(*ask, tmp_path / "x.npz", code=(0, 3))
        assert run["cases"][0]["accuracy"]["value"] == 0 and run["cases"][0]["accuracy"]["examples"] == 80
        assert bench(*ask, tmp_path / "other.npz", code=(0, 1, 3))["cases"][0]["accuracy"]["value"] == 0.5
        assert "no output 'y'" in bench(*ask, tmp_path / "named.npz", code=(3,))


def test_answers_to_the_same_request_are_told_apart(service, bench, lines):
    def of(*options):
        run = bench(*options, "--concurrency", "1", "--max-runs", "30", "--warmup", "1", code=(0, 1, 3))
        http = run["cases"][0]["http"]
        return http["asked"], http["distinct"], [f["title"] for f in run["findings"] if f["id"] == "answers.distinct"]

    assert of(f"{service}/varies?kinds=1") == (1, 1, ["all 30 answers are equal"])
    assert of(f"{service}/varies?kinds=100000") == (1, 30, ["no two of 30 answers to the same request are equal"])
    assert of(f"{service}/varies?kinds=3") == (1, 3, ["3 distinct answers to the same request among 30"])
    assert of(f"{service}/echo", "--inputs", lines("in.jsonl", 1, 2, 3)) == (3, 3, ["each of 3 requests was always answered alike"])
    assert of(f"{service}/varies?kinds=4", "--inputs", lines("in.jsonl", 1, 2)) == (2, 4, ["4 distinct answers to 2 requests: some are not always answered alike"])
    assert of(f"{service}/fixed?x={{{{random:1..9}}}}") == (None, None, [])


PIECES = """
import socket, sys
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
while True:
    to = listening.accept()[0]
    to.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(sys.argv[1]))
    while to.recv(65536):
        to.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\n")
        to.sendall(b"hello")
"""


@pytest.mark.parametrize("nodelay", [0, 1])
def test_head_and_body_written_apart(bench, nodelay):
    """The kernel's own 40 ms: Nagle's algorithm keeps the body back until the head was acknowledged."""
    with subprocess.Popen([sys.executable, "-c", PIECES, str(nodelay)], stdout=subprocess.PIPE, text=True) as child:
        run = bench(f"http://127.0.0.1:{child.stdout.readline().strip()}/", "--max-runs", "60", code=(0, 1, 3))
        child.kill()
    body = run["cases"][0]["http"]["body_ns"]["p50"]["value"]
    told = any(f["id"] == "service.delayed-ack" for f in run["findings"])
    assert told == (40e6 <= body < 50e6)
    if nodelay:
        assert not told
    elif body < 50e6:  # a machine that is too busy makes it longer
        assert told, body


def test_a_length_that_is_too_small_is_told(bench):
    """Six bytes where three are announced: the answer is the three, and the finding says what was lost."""
    with subprocess.Popen([sys.executable, "-c", PIECES.replace("Content-Length: 5", "Content-Length: 3"), "1"], stdout=subprocess.PIPE, text=True) as child:
        run = bench(f"http://127.0.0.1:{child.stdout.readline().strip()}/", "--max-runs", "20", "--warmup", "1", code=(0, 1, 3))
        child.kill()
    http = run["cases"][0]["http"]
    assert http["answered"] == 20 and http["surplus"] > 0
    assert any(f["id"] == "answers.surplus" for f in run["findings"])
