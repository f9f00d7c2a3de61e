# SPDX-License-Identifier: MIT
"""`tare bench http://..` against a server of known behaviour (tests/http) that writes down when it did what. The numbers of
tare are held to that record, not to what was wished for: on a busy machine the server itself is late."""

import json
import signal
import statistics
import subprocess

import jsonschema
import made
import numpy
import pytest

MS = 1_000_000
USUAL = "tokens=30&first=60&gap=10"


@pytest.fixture(scope="session")
def ref_server():
    return made.make("build/tests/ref-server")[0]


class Measured:
    def __init__(self, document, log, text):
        self.document, self.log, self.text = document, log, text
        self.case = document["cases"][0]
        self.stream = self.case.get("stream")
        self.http = self.case["http"]
        self.findings = {f["id"] for f in document["findings"]}

    def full(self):
        """Requests that the server played to their end."""
        return [r for r in self.log if r["end"] == "done"]


@pytest.fixture
def measure(tare, root, ref_server, tmp_path):
    """measure("/path?query", options): the document, and what the server wrote down."""

    def call(target, *options, status=0):
        log = tmp_path / "server.jsonl"
        with subprocess.Popen([ref_server, "--log", log, "--seconds", "120"], stdout=subprocess.PIPE, text=True) as server:
            port = int(server.stdout.readline().split()[1])
            done = tare("bench", f"http://127.0.0.1:{port}{target}", "--json", "--no-save", *options, status=status)
            server.send_signal(signal.SIGTERM)
            assert server.wait(20) == 0
        document = json.loads(done.stdout)
        jsonschema.Draft202012Validator(json.loads((root / "docs/schema/run-1.json").read_text())).validate(document)
        return Measured(document, [json.loads(line) for line in log.read_text().splitlines()], done.stderr)

    return call


def llm(measure, query, *options, path="/v1/chat/completions", rate="30/s", budget="2s", status=(0, 1, 3)):
    return measure(f"{path}?{query}", "--llm", "--model", "m", "--rate", rate, "--budget", budget, *options, status=status)


def event_times(request):
    return [at for at, n in zip(request["wrote"], request["events"]) for _ in range(n)]


def gaps_of(log):
    return sorted(b - a for r in log for a, b in zip(event_times(r), event_times(r)[1:]))


def test_everything_adds_up(measure):
    m = llm(measure, USUAL)
    h = m.http
    assert h["due"] == h["answered"] + h["failed"] + h["open"] and h["failed"] == 0
    assert h["due"] == m.case["open_loop"]["due"]
    assert m.stream["tokens_out"] == 30 * h["answered"] == m.stream["events"] and m.stream["tokens_out_p50"] == 30
    assert m.stream["tokens_in"] == 12 * h["answered"] and not m.stream["estimated"]
    assert h["due"] <= len(m.full()) <= h["due"] + m.case["warmup_runs"] + 2


def test_tokens_are_seen_when_the_server_sent_them(measure):
    m = llm(measure, USUAL + "&role=5", budget="4s")
    ttft = m.stream["ttft_ns"]["p50"]["value"]
    truth = statistics.median(event_times(r)[0] - r["received"] for r in m.full())
    late = m.http["delay_ns"] if "delay_ns" in m.http else m.http["delay"]
    delay = late["p99"]["value"] if late["p99"] else late["max"]
    assert ttft > truth - 0.5 * MS, "before the server sent it; the role alone is no token"
    assert ttft < truth + delay + max(0.5 * MS, truth / 10)
    gaps = gaps_of(m.full())
    assert m.stream["gap_ns"]["p50"]["value"] == pytest.approx(gaps[len(gaps) // 2], abs=max(0.5 * MS, gaps[len(gaps) * 3 // 4] - gaps[len(gaps) // 4]))
    tpot = statistics.median((event_times(r)[-1] - event_times(r)[0]) / 29 for r in m.full())
    assert m.stream["tpot_ns"]["p50"]["value"] == pytest.approx(tpot, rel=0.05)
    assert m.stream["gap_ns"]["p50"]["lo"] <= m.stream["gap_ns"]["p50"]["value"] <= m.stream["gap_ns"]["p50"]["hi"]


def test_events_glued_on_the_way_are_named(measure):
    m = llm(measure, USUAL + "&per_write=5")
    assert m.stream["coalesced"] >= 24 / 29 - 0.01
    assert m.stream["shared_reads"] >= 24 * m.http["answered"]
    assert "stream.coalesced" in m.findings


def test_several_tokens_in_an_event(measure):
    m = llm(measure, USUAL + "&per_event=3", budget="3s")
    tpot = statistics.median((event_times(r)[-1] - event_times(r)[0]) / 27 for r in m.full())
    assert m.stream["tokens_per_event"] == pytest.approx(3)
    assert m.stream["tpot_ns"]["p50"]["value"] == pytest.approx(tpot, rel=0.05)
    assert m.stream["gap_ns"]["p50"]["value"] > 2 * m.stream["tpot_ns"]["p50"]["value"]
    assert "stream.many-tokens" in m.findings


@pytest.mark.parametrize("form", ["split=3", "eol=1&comments=1", "eol=2&data=1", "tool=1", "usage=2", "done=0"])
def test_forms_of_streams(measure, form):
    m = llm(measure, "tokens=5&first=20&gap=5&" + form, budget="1s")
    assert m.http["failed"] == 0 and m.stream["events"] == 5 * m.http["answered"] == m.stream["tokens_out"]


def test_the_plain_form_and_reasoning(measure):
    m = llm(measure, "tokens=5&first=20&gap=5", path="/v1/completions", budget="1s")
    assert m.stream["events"] == 5 * m.http["answered"]
    m = llm(measure, "tokens=6&first=20&gap=20&reasoning=3", budget="2s")
    first, answer = m.stream["ttft_ns"]["p50"]["value"], m.stream["ttft_answer_ns"]["p50"]["value"]
    assert answer - first == pytest.approx(60 * MS, rel=0.25)


def test_what_the_server_does_not_count(measure):
    m = llm(measure, "tokens=5&first=20&gap=5&usage=0&cached=0", budget="1s")
    assert m.stream["estimated"] and m.stream["tokens_out"] == m.stream["events"]
    assert m.stream["tokens_in"] is None and "stream.uncounted" in m.findings


def test_cached_prompts_are_told(measure):
    m = llm(measure, "tokens=5&first=20&gap=5&cached=9", budget="1s")
    assert m.stream["tokens_cached"] == 9 * m.http["answered"] and "stream.cached" in m.findings


@pytest.mark.parametrize("how,says", [("error_at=3", "out of blocks"), ("cut_at=3", "")])
def test_a_stream_that_breaks_is_no_answer(tare, ref_server, how, says):
    with subprocess.Popen([ref_server, "--seconds", "60"], stdout=subprocess.PIPE, text=True) as server:
        port = int(server.stdout.readline().split()[1])
        done = tare("bench", f"http://127.0.0.1:{port}/v1/chat/completions?tokens=5&first=5&gap=2&{how}", "--llm", "--no-save",
                    "--rate", "20/s", "--budget", "1s", status=(1, 3))
        server.terminate()
    assert says in done.stdout + done.stderr


def test_goodput_counts_what_was_due(measure):
    m = llm(measure, "tokens=5&first=40&gap=5&slots=2", "--slo", "ttft<=120ms", "--target", "goodput>=99%", rate="60/s", budget="3s")
    good = m.stream["goodput"]
    assert good["due"] == m.http["due"] and good["good"] + good["missed"]["ttft"] == good["due"]
    assert good["lo"] <= good["value"] <= good["hi"] and good["value"] == pytest.approx(good["good"] / good["due"])
    assert 0 < good["good"] < good["due"], "two at a time are 46 a second: they queue up"
    assert m.document["targets"][0]["verdict"] == "fail"


def test_a_stall_is_paid_for_by_all_who_come_meanwhile(measure):
    m = measure("/stall?ms=2&every=1.5&for=0.4", "--rate", "200/s", "--budget", "6s", status=(0, 1, 3))
    took = sorted(r["wrote"][-1] - r["received"] for r in m.full())
    for q, key in ((0.9, "p90"), (0.95, "p95"), (0.99, "p99")):
        truth = took[int(len(took) * q)]
        assert truth > 50 * MS, "a quarter of the time is stall"
        assert m.case["latency_ns"][key]["value"] == pytest.approx(truth, rel=0.25)
    assert m.case["latency_ns"]["p90"]["value"] > 100 * MS


def test_the_unanswered_stay_in_the_percentiles(measure):
    m = measure("/silent?share=0.05&ms=2", "--rate", "100/s", "--budget", "4s", "--timeout", "500ms", status=(0, 1, 3))
    h, latency = m.http, m.case["latency_ns"]
    assert h["due"] == h["answered"] + h["failed"] and h["faults"] == {"timeout": h["failed"]}
    assert 0.01 < h["failed"] / h["due"] < 0.12
    assert latency["p99"] is None and latency["at_least"]["p99"] >= 500 * MS
    assert latency["max"] is None and latency["p50"]["value"] < 500 * MS
    silent = sum(r["end"] == "peer" and not r["wrote"] for r in m.log)
    assert h["failed"] <= silent


def test_kserve(measure, tmp_path):
    numpy.savez(tmp_path / "x.npz", x=numpy.arange(8, dtype=numpy.float32).reshape(2, 4), n=numpy.arange(3, dtype=numpy.int64))
    for more in ((), ("--binary",)):
        m = measure("/v2/models/m/infer", "--kserve", "--inputs", str(tmp_path / "x.npz"), *more, "--budget", "300ms",
                    status=(0, 1, 3))
        assert m.http["failed"] == 0 and m.http["answered"] > 0


def test_kserve_answers_are_looked_at(tare, ref_server, tmp_path):
    numpy.savez(tmp_path / "x.npz", x=numpy.zeros(4, dtype=numpy.float32))
    with subprocess.Popen([ref_server, "--seconds", "60"], stdout=subprocess.PIPE, text=True) as server:
        port = int(server.stdout.readline().split()[1])
        done = tare("bench", f"http://127.0.0.1:{port}/fixed", "--kserve", "--inputs", str(tmp_path / "x.npz"), "--no-save",
                    "--budget", "300ms", status=(1, 3))
        server.terminate()
    assert "it has no outputs" in done.stdout + done.stderr
