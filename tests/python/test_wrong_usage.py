# SPDX-License-Identifier: MIT
"""Wrong usages, a row each: the exit status is 2, stdout stays empty, one sentence names the word that is wrong and what to type, and
no file is left behind (the folder for results may be made)."""

import os
import shlex
import subprocess
import sys

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
    # files of another kind
    ("bench folder", "folder: a folder, not a model: name the .onnx file in it"),
    ("bench text.txt", "text.txt: is not an ONNX model: looks like text"),
    ("bench r.tare", "r.tare: is not an ONNX model: looks like a trace of tare (tare report shows it)"),
    ("bench one.json", "one.json: is not an ONNX model: looks like JSON"),
    ("bench empty", "empty: the file is empty"),
    ("bench model.onnx --inputs text.txt", "text.txt: no tensor in .npy, .npz or ONNX form: looks like text"),
    ("bench model.onnx --inputs nosuch.npz", "nosuch.npz: No such file"),
    ("compare one.json text.txt", "text.txt: no run document: looks like text"),
    ("compare one.json r.json", "runs of different kinds: of tare bench and of tare run"),
    ("compare one.json r.tare", "r.tare is a trace: --gpu compares"),
    ("report one.json r.tare", "looks like a trace of tare"),
    ("report model.onnx", "looks like an ONNX model (tare inspect shows it, tare bench measures it)"),
    ("report r.tare --memory", "record one with tare run --memory"),
    ("report r.tare --stacks", "record them with tare run --stacks or tare attach"),
    ("report r.tare --gpu", "recorded without `tare run --gpu`"),
    ("report one.json --flat", "--flat is for traces"),
    ("plan r.tare --rate 5/s --slo 'p95<=1s'", "looks like a trace of tare"),
    ("import folder", "tare history import"),
    ("import one.json", "tare history import"),
    ("export one.json -f chrome", "is a run document"),
    ("token list", "there is no data of a server here; --data names its folder"),
    # services
    ("bench localhost:8000/x", "a service is http://localhost:8000/x"),
    ("bench http://localhost:99999/x", "ports up to 65535"),
    ("bench http://localhost:1/x --memory", "--memory is for models, commands and Python functions; this is a service"),
    ("bench http://localhost:1/x --find-rate", "--find-rate goes with --slo"),
    ("bench http://localhost:1/x --llm", "/chat/completions"),
    ("bench http://localhost:1/x --header foo", "expected 'Name: value'"),
    ("push --server localhost one.json", "http:// or https:// stands first"),
    ("run --bench '--rate 5/s' -- true", "an address stands first"),
    # options that want another one, or values that mean nothing
    ("bench model.onnx --pause 3s", "--pause goes with --repeat"),
    ("bench model.onnx --server http://localhost:1", "--server goes with --push or --push-must"),
    ("bench model.onnx --optimization 7", "there are 0, 1, 2 and 99"),
    ("bench model.onnx --seq 12", "its free dimensions are: batch_size"),
    ("bench model.onnx --dim foo=3", "its free dimensions are: batch_size"),
    ("bench model.onnx --variant model.onnx", "expected NAME=FILE"),
    ("bench model.onnx --shell", "a command goes after --"),
    ("bench -- folder", "folder: a folder, not a program"),
    ("bench --batch 1 -- true", "--batch is for models and Python functions; this is a command"),
    ("bench --synth nosuch", "tare synth --list"),
    ("run --alert 'cpu>80' -- true", "cpu is a share of the whole, 1 at most; write cpu>80%"),
    ("run --alert 'cpuu>80%' -- true", "did you mean cpu?"),
    ("run --alert 'cpu>80% for 10' -- true", "expected a time, as in 20ms"),
    ("run --probe foo -- true", "there are process, cgroup, system"),
    ("compare --ab model.onnx", "name a second model"),
    ("compare --ab model.onnx -- true", "compare two of one kind"),
    ("compare --budget 10 --ab true false", "write 10s or 10ms"),
    ("history rm", "there are: list, show, tag"),
    ("top --sort foo --once", "'foo' is not one of cpu, memory, pid, io"),
    ("attach --duration 5 1", "write 5s or 5ms"),
    ("synth mlp", "where to? -o <file>"),
    ("serve --port 99999", "out of range 0 to 65535"),
]  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory, build):
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "w.py").write_text("print(1)\n")
    (folder / "text.txt").write_text("hello\n")
    (folder / "prog").write_text("#!/bin/sh\n")
    (folder / "prog").chmod(0o755)
    (folder / "folder").mkdir()
    (folder / "empty").touch()
    for line in ("synth mlp -o model.onnx", "run --trace r.tare -o r.json --no-history -- true",
                 "bench --max-runs 3 --budget 10ms --no-history -- true"):  # fmt: skip
        assert ask(build / "tare", line, folder).returncode == 0, line
    next((folder / "tare-results").glob("bench_*.json")).rename(folder / "one.json")
    return folder


def files(place):
    return sorted(name for name in os.listdir(place) if name not in ("tare-results", ".cache"))


def ask(tare, line, cwd, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TARE_")} | {"HOME": str(cwd), "TARE_PYTHON": sys.executable, "VIRTUAL_ENV": sys.prefix} | more
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


@pytest.mark.parametrize(
    "text, told",
    [
        ("bench:\n  budgett: 3s\n", "tare.yaml:2: tare bench has no option 'budgett'; did you mean budget?"),
        ("benhc:\n  budget: 3s\n", "tare.yaml:2: tare has no command 'benhc'; did you mean bench?"),
        ("bench:\n  budget: 3\n", "tare.yaml:2: budget: '3' has no unit; write 3s or 3ms"),
        ("bench:\n  batch: [1, x]\n", "tare.yaml:2: batch: 'x' is not a whole number"),
        ("bench:\n\tbudget: 3s\n", "tare.yaml:2: a tab where YAML wants blanks"),
        ("bench: 3\n", "tare.yaml:1: expected options as `name: value` lines"),
    ],
)
def test_mistakes_in_tare_yaml(build, tmp_path, text, told):
    (tmp_path / "tare.yaml").write_text(text)
    done = ask(build / "tare", "bench m.onnx", tmp_path)
    assert done.returncode == 2 and told in done.stderr, done.stderr


# of the commands that the Python package has: what was typed, what must stand in the answer
PYTHON = [
    ("functions", "tare functions: name a script, or a module with -m\ntry: tare functions -h"),
    ("functions nosuch.py", "nosuch.py: No such file or directory"),
    ("functions folder", "folder: Is a directory"),
    ("functions broken.py", "invalid syntax (broken.py, line 1)"),
    ("functions model.onnx", "model.onnx: is no Python program"),
    ("functions --sort foo w.py", "sort='foo': choose one of self, total"),
    ("functions --rows x w.py", "invalid int value: 'x'"),
    ("functions -o out.xyz w.py", "its ending must say what to write: .prof"),
    ("functions -o no/such.txt w.py", "no/such.txt: the folder is missing or not writable"),
    ("lines -f nosuch w.py", "w.py: no function named nosuch in it"),
    ("profile", "tare profile: the following arguments are required: --model-path"),
    ("profile --model-path nosuch", "nosuch: there is no such file or folder"),
    ("profile --model-path w.py", "w.py: a Python program, not a saved model"),
    ("profile --model-path model.onnx --threshold foo:3", "latency:VALUE, throughput:VALUE, memory:VALUE are known"),
    ("profile --model-path model.onnx --baseline nosuch.json", "nosuch.json: there is no such file"),
    ("embedding", "batch-sizes|memory|text-lengths"),
    ("embedding batch-sizes --batch-sizes x", "'x' is not a whole number"),
    ("nli --num-pairs 0", "0 is below 1"),
    ("nli --inputs nosuch.txt", "tare: nosuch.txt: No such file or directory"),
    ("nli --target foo", "'foo' is not a metric; there are: throughput"),
]  # fmt: skip


@pytest.mark.parametrize("line, told", PYTHON, ids=[line for line, _ in PYTHON])
def test_wrong_usage_of_python_words(build, package, place, line, told):
    (place / "broken.py").write_text("def f(:\n")
    before = files(place)
    done = ask(build / "tare", line, place, PYTHONPATH=str(package))
    assert (done.returncode, done.stdout) == (2, ""), done
    assert told in done.stderr and done.stderr.startswith("tare") and len(done.stderr.splitlines()) <= 2, done.stderr
    assert files(place) == before
