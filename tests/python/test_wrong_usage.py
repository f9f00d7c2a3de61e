# SPDX-License-Identifier: MIT
"""Wrong usages, a row each: the exit status is 2, stdout stays empty, one sentence names the word that is wrong and what to type, and
no file is left behind (the folder for results may be made)."""

import os
import shlex
import subprocess

import pytest

# what was typed; what must stand in the answer
WRONG = [
    ("frobnicate", "unknown command 'frobnicate'"),
    ("benhc", "did you mean bench?"),
    ("--nosuch", "unknown option --nosuch"),
    ("help nosuch", "unknown command 'nosuch'"),
    ("bench ./prog", "tare bench -- ./prog"),
    ("bench w.py", "tare bench -- python w.py"),
    ("bench 'python w.py'", "tare bench -- python w.py"),
    ("bench nosuch.onnx", "nosuch.onnx: No such file"),
    ("bench m.onnx --batch 1-8", "1,2,4,8"),
    ("bench m.onnx --batch 0", "at least 1"),
    ("bench m.onnx --batch x", "'x' is not a whole number"),
    ("bench m.onnx --batch", "--batch needs a value"),
    ("bench m.onnx --bath 1", "did you mean --batch?"),
    ("bench m.onnx --budget 10", "write 10s or 10ms"),
    ("bench m.onnx --budget 10x", "like 500us, 1.5s or 1m30s"),
    ("bench m.onnx --target 'latency.p95<=100'", "write latency.p95<=100ms"),
    ("bench m.onnx --target latency.p95", "as in latency.p95<=100ms"),
    ("bench m.onnx --target 'latencyp95<=1ms'", "did you mean latency.p95?"),
    ("bench m.onnx --target 'throughput>=10ms'", "not a rate; use /s"),
    ("bench m.onnx --latency-limit 50", "write 50s or 50ms"),
    ("bench m.onnx --threads 0", "at least 1"),
    ("bench m.onnx --precision 5", "0.0001 to 0.5"),
    ("bench m.onnx --percentile p200", "p50, p90, p95, p99"),
    ("bench m.onnx --output-dir /proc/x", "--output-dir /proc/x"),
    ("bench m.onnx --html no/such/page.html", "there is no folder no/such"),
    ("bench m.onnx --min-runs 10 --max-runs 5", "--min-runs 10 is more than --max-runs 5"),
    ("bench m.onnx other.onnx", "one model at a time"),
    ("bench py:w.py", "as in py:embed.py:encode"),
    ("bench --", "where is the command?"),
    ("bench m.onnx --fail-on x", "there is no --baseline"),
    ("bench m.onnx --repeat 0", "1 to 1000"),
    ("bench m.onnx --color blue", "auto, always, never"),
    ("compare", "two saved runs are compared"),
    ("compare nosuch1.json nosuch2.json", "nosuch1.json: cannot open"),
    ("compare --ab-rev HEAD", "give it after --"),
    ("report nosuch.json", "nosuch.json: cannot open"),
    ("report text.txt", "text.txt: not a tare trace"),
    ("report x.json --format pdf", "text, json, csv, md, junit"),
    ("history show", "tare history show <id>"),
    ("history tag", "tare history tag <id> <name>"),
    ("history list --since 7x", "neither a date (2026-11-01, UTC) nor an age (30d)"),
    ("history prune", "there is no history here yet (tare bench writes it)"),
    ("trend --metric latencyp50", "did you mean latency.p50?"),
    ("run", "missing argument: <program>"),
    ("run --alert cpu -- true", "expected > or <"),
    ("run --interval 0 -- true", "0.001s to 3600s"),
    ("top --interval 0", "0.1s to 3600s"),
    ("top x", "takes no arguments"),
    ("attach", "missing argument: <pid>"),
    ("attach 99999999", "process 99999999"),
    ("attach abc", "'abc' is no number of a process"),
    ("inspect", "missing argument: <model.onnx>"),
    ("inspect text.txt", "text.txt: is not an ONNX model: looks like text"),
    ("inspect m.onnx --batch 1-4", "'1-4' is not a whole number"),
    ("tune", "missing argument: <model.onnx>"),
    ("plan x.json", "--rate 50/s"),
    ("plan x.json --rate 50", "--slo 'p95<=500ms'"),
    ("plan x.json --rate 50/s --slo 'p95<=500'", "write p95<=500ms"),
    ("export text.txt", "--format is missing: chrome, perfetto"),
    ("export text.txt -f nosuch", "'nosuch' is not one of chrome"),
    ("import", "name a file"),
    ("import text.txt", "text.txt: is neither a profile of ONNX Runtime nor of torch.profiler"),
    ("synth", "--list names them"),
    ("synth nosuch", "no architecture 'nosuch'"),
    ("synth mlp --dtype fp12", "did you mean fp32?"),
    ("doctor --nosuch", "unknown option --nosuch"),
    ("init workflow", "tare init ci --build make -- ./app"),
    ("init ci", "tare init ci model.onnx"),
    ("push", "--server URL, or TARE_SERVER"),
    ("token", "new, list or revoke <id>"),
    ("completion", "missing argument: <shell>"),
    ("completion tcsh", "'tcsh' is not one of"),
]  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "w.py").write_text("print(1)\n")
    (folder / "text.txt").write_text("hello\n")
    (folder / "prog").write_text("#!/bin/sh\n")
    (folder / "prog").chmod(0o755)
    return folder


def files(place):
    return sorted(name for name in os.listdir(place) if name != "tare-results")


def ask(tare, line, cwd):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TARE_")} | {"HOME": str(cwd)}
    return subprocess.run([tare, *shlex.split(line)], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False)  # fmt: skip


@pytest.mark.parametrize("line, told", WRONG, ids=[line for line, _ in WRONG])
def test_wrong_usage(build, place, line, told):
    before = files(place)
    done = ask(build / "tare", line, place)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert told in done.stderr, done.stderr
    assert done.stderr.startswith("tare") and len(done.stderr.splitlines()) <= 2, done.stderr
    assert files(place) == before


def test_mistakes_in_tare_yaml(build, tmp_path):
    (tmp_path / "tare.yaml").write_text("bench:\n  budgett: 3s\n")
    done = ask(build / "tare", "bench m.onnx", tmp_path)
    assert done.returncode == 2 and "tare.yaml:2: tare bench has no option 'budgett'; did you mean budget?" in done.stderr
