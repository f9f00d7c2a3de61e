# SPDX-License-Identifier: MIT
"""`tare bench py:..` and `python -m tare bench`: a Python process does the work, the answer is that of any other subject. And documents of
tare.bench hold what the schema says."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

EMBED = '''
import asyncio, os, signal, sys, time

def encode(texts):
    time.sleep(0.001)
    return [len(t) for t in texts]

def wait(texts):
    time.sleep(0.02)

def check(texts):
    assert isinstance(texts, list) and {len(t.split()) for t in texts} == {5}, texts

def in_case_3(texts):
    if len(texts) == 3:
        raise ValueError("boom")

def talk(texts):
    print("said by the function", flush=True)
    os.write(1, b"said by its C code\\\\n")
    time.sleep(0.001)

def end(texts):
    os._exit(7)

def crash(texts):
    os.kill(os.getpid(), signal.SIGSEGV)

def killed_at_4(texts, calls=[]):
    calls.append(len(texts))
    if len(texts) == 4 and calls.count(4) > int(os.environ.get("SPARED", "0")):
        os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when memory runs out
    time.sleep(0.001)

def dies_after_4(texts, calls=[]):
    """At batch 4 the process dies after its answer, before it is asked anything else: a child that outlives it answers."""
    from tare import _worker
    calls.append(len(texts))
    if calls.count(4) == 200 and len(texts) == 4:
        answer = _worker.Lane.answer
        def last_answer(lane, request):
            told = answer(lane, request)
            if request[0] != _worker.STATE:
                return told
            me = os.getpid()
            if os.fork():
                os.kill(me, signal.SIGKILL)
            while os.getppid() == me:
                time.sleep(0.001)
            time.sleep(0.01)
            lane.socket.send(told)
            os._exit(0)
        _worker.Lane.answer = last_answer
    time.sleep(0.001)

def leave(texts):
    sys.exit(4)

def hang(texts):
    time.sleep(100)

def end_with_heir(texts):
    if os.fork() == 0:  # has the sockets still
        os.close(1), os.close(2)
        time.sleep(60)
    os._exit(9)

def fork_once(texts, forked=[]):
    if not forked:
        forked.append(os.fork())
    assert forked[0], "the child of a fork was asked"
    time.sleep(0.001)

async def nap(texts):
    await asyncio.sleep(0.002)

def compute(texts):
    return sum(range(20000))

def grow(texts, kept=[]):
    kept.append(bytearray(1 << 20))
    time.sleep(0.001)

class Model:
    def encode(self, texts):
        return texts

model = Model()
number = 3
'''
MADE = "def make_input(batch, length):\n    return ['x'] * batch, length\n\ndef f(items, length):\n    assert len(items) == 4 and length == 9\n"


@pytest.fixture
def py(tare, package, tmp_path):
    """py("embed.py:encode", *options, status=0): tare bench of it, with texts.txt beside it."""
    (tmp_path / "embed.py").write_text(EMBED)
    (tmp_path / "made.py").write_text(MADE)
    (tmp_path / "texts.txt").write_text("one two three\n\nfour five\n")
    env = {"PYTHONPATH": str(package), "TARE_PYTHON": sys.executable}

    def call(function, *options, inputs="texts.txt", status=0, **more):
        given = ["--inputs", inputs] if inputs else []
        return tare("bench", "py:" + function, *given, "--budget", "30ms", "--warmup", "2", *options, status=status, env={**env, **more})

    return call


def document(done):
    return json.loads(done.stdout)


def test_a_sweep_as_of_any_subject(py, tmp_path, validator):
    done = py("embed.py:encode", "--batch", "1,4", "--length", "2,5", "--unit", "texts", "--json", "--csv", "a.csv", "--html", "a.html")
    run = document(done)
    validator(run)
    assert [c["name"] for c in run["cases"]] == ["batch=1,length=2", "batch=4,length=2", "batch=1,length=5", "batch=4,length=5"]
    assert run["subject"]["type"] == "python" and run["subject"]["name"] == "embed.py:encode" and run["subject"]["path"].endswith("embed.py")
    assert run["subject"]["runtime"]["version"] == "%d.%d.%d" % sys.version_info[:3]
    for case in run["cases"]:
        assert case["units_per_run"] == case["params"]["batch"]
        assert 1e6 <= case["latency_ns"]["p50"]["value"] < 20e6
        assert case["memory"]["rss_peak"] > 4 << 20 and case["memory"]["rss_before"]  # the process with Python in it
        assert 0 < case["cpu"]["utilization"] < 0.9  # it sleeps
    assert (tmp_path / "a.csv").exists() and (tmp_path / "a.html").exists()
    assert len(list((tmp_path / "tare-results").glob("bench_embed.py*encode_*.json"))) == 1


def test_inputs_are_cut_and_repeated(py, tmp_path):
    py("embed.py:check", "--batch", "3", "--length", "5", "--no-save")
    (tmp_path / "items.json").write_text('["a b c d e f"]')
    py("embed.py:check", "--length", "5", "--no-save", inputs="items.json")
    py("made.py:f", "--batch", "4", "--length", "9", "--no-save", inputs=None)
    run = document(py("embed.py:model.encode", "--no-save", "--json"))
    assert run["cases"][0]["units_per_run"] == 2 and run["cases"][0]["unit"] == "items"


def test_an_array_gives_rows(py, tmp_path):
    numpy = pytest.importorskip("numpy")
    numpy.save(tmp_path / "rows.npy", numpy.zeros((3, 2)))
    (tmp_path / "rows.py").write_text("def f(x):\n    assert x.shape == (7, 2)\n")
    py("rows.py:f", "--batch", "7", "--no-save", inputs="rows.npy")


def test_modules_short_calls_and_coroutines(py):
    run = document(py("gc:isenabled", "--json", "--no-save", inputs=None))
    assert run["cases"][0]["calls_per_sample"] > 1 and run["cases"][0]["unit"] == "calls"
    assert run["cases"][0]["latency_ns"]["p50"]["value"] < 1000
    run = document(py("embed.py:nap", "--json", "--no-save"))
    assert run["cases"][0]["latency_ns"]["p50"]["value"] > 1.9e6


def test_memory_is_that_of_the_python_process(py):
    run = document(py("embed.py:grow", "--json", "--no-save", "--min-runs", "40"))
    assert run["cases"][0]["memory"]["delta"] > 4 << 20  # how many runs that is, the machine decides


def test_what_is_printed_is_not_the_answer(py):
    done = py("embed.py:talk", "--json", "--no-save", "--max-runs", "5", "--min-runs", "5")
    assert document(done)["cases"][0]["samples"] == 5
    assert "said by the function" in done.stderr and "said by its C code" in done.stderr


def test_one_bad_case_loses_no_other(py, tmp_path):
    run = document(py("embed.py:in_case_3", "--batch", "1,2,3,4", "--max-runs", "40", "--json", status=1))
    assert [c["samples"] for c in run["cases"]] == [40, 40, None, 40]
    bad = run["cases"][2]
    assert bad["failure"].startswith("run 1: ValueError: boom") and bad["params"]["batch"] == 3
    assert bad["unknown"]["latency_ns"] == bad["unknown"]["samples"] == "the case failed"
    told = [f for f in run["findings"] if f["id"] == "runs.failed"]
    assert len(told) == 1 and told[0]["case"] == "batch=3" and told[0]["title"].startswith("not measured: run 1: ValueError: boom")
    assert list((tmp_path / "tare-results").glob("bench_*.json"))


@pytest.mark.parametrize("batches, spared, load", [
    ("1,2,4,8", "0", ()),
    ("4,1,8", "0", ()),  # the first one, which is run before all
    ("1,2,4,8", "500", ("--budget", "3s")),  # in the midst of measuring
    ("1,2,4,8", "0", ("--rate", "200", "--budget", "300ms")),
    ("1,2,4,8", "0", ("--concurrency", "3")),
])
def test_a_case_that_kills_the_process_loses_no_other(py, batches, spared, load):
    done = py("embed.py:killed_at_4", "--batch", batches, "--min-runs", "40", "--max-runs", "600", "--precision", "0.0001", *load,
              "--json", "--no-save", status=1, SPARED=spared)
    run = document(done)
    assert [str(c["params"].get("batch", 4)) for c in run["cases"]] == batches.split(",")
    for case in run["cases"]:
        if case["name"] == "batch=4":
            assert case["failure"].endswith(": the Python process was killed by signal 9 (Killed)") and case["samples"] is None
            assert case["failure"].startswith("run 1:") == (spared == "0")
        else:
            assert case["failure"] is None and case["samples"] >= 40 and case["latency_ns"]["p50"]["value"] > 1_000_000
            assert case["memory"]["rss_peak"] > 1 << 20 and case["warmup_runs"] >= 1
    assert [f["case"] for f in run["findings"] if f["id"] == "runs.failed"] == ["batch=4"]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("batches", ["4,1,8", "1,4"])
def test_a_process_that_dies_after_an_answer_is_laid_to_who_had_it(py, batches):
    """The next case, which is asked in vain, was blamed."""
    done = py("embed.py:dies_after_4", "--batch", batches, "--min-runs", "300", "--max-runs", "600", "--precision", "0.0001",
              "--json", "--no-save", status=1)
    for case in document(done)["cases"]:
        if case["name"] == "batch=4":
            assert case["failure"] == ("after an answer, before the next question: "
                                       "the Python process was killed by signal 9 (Killed)") and case["samples"] is None
        else:
            assert case["failure"] is None and case["samples"] >= 300


def test_an_exception_names_the_case_and_shows_the_traceback(py, tmp_path):
    done = py("embed.py:in_case_3", "--batch", "3", status=3)
    assert "case batch=3: run 1: ValueError: boom" in done.stderr
    assert 'embed.py", line' in done.stderr and "in in_case_3" in done.stderr and "_worker.py" not in done.stderr
    assert done.stderr.count("Traceback") == 1
    assert not done.stdout and not list((tmp_path / "tare-results").glob("[!.]*"))


@pytest.mark.parametrize("function, said", [
    ("end", "the Python process ended early with exit code 7"),
    ("crash", "the Python process was killed by signal 11"),
    ("leave", "SystemExit: 4"),
    ("hang", "no answer after 0.5 s"),
])
def test_a_process_that_ends_or_hangs(py, function, said):
    done = py("embed.py:" + function, "--batch", "1,2", "--timeout", "500ms", "--no-save", status=3)
    assert "case batch=1: " in done.stderr and said in done.stderr


def test_forked_children_do_not_stand_in_for_the_worker(py):
    started = time.monotonic()
    done = py("embed.py:end_with_heir", "--no-save", status=3)
    assert "the Python process ended early with exit code 9" in done.stderr and time.monotonic() - started < 55
    done = py("embed.py:fork_once", "--no-save", "--json", "--max-runs", "20", "--min-runs", "20")
    assert document(done)["cases"][0]["samples"] == 20


@pytest.mark.parametrize("function, inputs, options, said", [
    ("none.py:f", None, (), "none.py: no such file"),
    ("embed.py:none", None, (), "embed.py:none: embed.py has no none"),
    ("embed.py:number", None, (), "number is int, which cannot be called"),
    ("no.such.module:f", None, (), "no.such.module: no such module"),
    ("embed.py", None, (), "expected py:FILE.py:NAME"),
    ("embed.py:encode", "none.txt", (), "none.txt"),
    ("embed.py:encode", "/dev/null", (), "holds no inputs"),
    ("embed.py:encode", None, ("--batch", "2"), "give --inputs"),
    ("embed.py:encode", "texts.txt", ("--length", "0"), "--length 0"),
    ("embed.py:encode", "texts.txt", ("--seq", "5"), "--seq is for models; this is a Python function (texts have --length)"),
    ("embed.py:encode", "texts.txt", ("--layers",), "--layers is for models; this is a Python function"),
])
def test_bad_input(py, function, inputs, options, said):
    done = py(function, *options, "--no-save", inputs=inputs, status=2)
    assert said in done.stderr and not done.stdout


FLAKY = """
import time
calls = 0

def flaky():
    global calls
    calls += 1
    if calls % 10 == 7:
        time.sleep(0.02)
        raise ValueError("broken")
    return calls

def hangs_up():
    global calls
    calls += 1
    if calls == 50:
        import os
        os._exit(4)
"""


def test_a_failed_run_is_counted_and_the_others_are_kept(py, tmp_path):
    """Every tenth raises after 20 ms: what it took is in the throughput though runs are asked for many at a time."""
    (tmp_path / "f.py").write_text(FLAKY)
    run = document(py("f.py:flaky", "--warmup", "20", "--max-runs", "90", "--min-runs", "90", "--no-save", "--json", inputs=None, status=1))
    case, = run["cases"]
    assert case["samples"] == 90 and case["failure"] == "run 7: ValueError: broken"
    assert case["failed_runs"] == pytest.approx(case["samples"] / 9, abs=2)
    assert case["latency_ns"]["p50"]["value"] < 5_000_000 < 20_000_000 <= case["latency_ns"]["at_least"]["p95"]
    assert case["throughput"]["value"] < 90 / (8 * 0.02)
    told, = [f["title"] for f in run["findings"] if f["id"] == "runs.failed"]
    assert "failed (" in told and "first: run 7: ValueError: broken" in told


def test_a_process_that_ends_is_the_end_of_its_case(py, tmp_path):
    (tmp_path / "f.py").write_text(FLAKY)
    done = py("f.py:hangs_up", "--no-save", inputs=None, status=3)
    assert "the Python process ended early with exit code 4" in done.stderr


def test_a_file_that_fails_to_import(py, tmp_path):
    (tmp_path / "broken.py").write_text("import no_such_thing\n")
    done = py("broken.py:f", "--no-save", inputs=None, status=3)
    assert "No module named 'no_such_thing'" in done.stderr and 'broken.py", line 1' in done.stderr


def test_a_python_without_tare_is_named(py, tmp_path):
    done = py("embed.py:encode", "--no-save", status=3, PYTHONPATH=str(tmp_path))
    assert sys.executable + " cannot import tare" in done.stderr and "No module named tare" in done.stderr
    done = py("embed.py:encode", "--no-save", status=3, TARE_PYTHON="/nonexistent/python")
    assert "/nonexistent/python" in done.stderr


def at_once(run):
    """Runs under way on average, by what they give and what they take."""
    case = run["cases"][0]
    return case["throughput"]["value"] * case["latency_ns"]["p50"]["value"] / 1e9 / case["units_per_run"]


def test_side_by_side_as_far_as_python_lets_them(py):
    assert at_once(document(py("embed.py:wait", "--concurrency", "3", "--json", "--no-save"))) > 1.5  # they sleep
    assert at_once(document(py("embed.py:compute", "--concurrency", "3", "--json", "--no-save"))) < 1.5  # one at a time: the GIL


def test_load_patterns_launches_and_baselines(py):
    run = document(py("embed.py:encode", "--rate", "100/s", "--budget", "200ms", "--json", "--no-save"))
    assert run["config"]["load"] == "open" and run["cases"][0]["open_loop"]["served"] > 3
    run = document(py("embed.py:encode", "--repeat", "2", "--json", "--no-save"))
    assert len(run["cases"][0]["launches"]) == 2
    py("embed.py:encode", "--target", "latency.p50<=1us", "--no-save", status=1)
    py("embed.py:encode", "--output-dir", "kept")
    done = py("embed.py:encode", "--baseline", "kept", "--output-dir", "more")
    assert "encode" in done.stdout


COUNTED = """
calls = 0

def counted(texts):
    global calls
    calls += 1
    if calls == 200:
        open("enough", "w").close()
    return encode(texts)
"""


def test_an_interruption_keeps_what_was_measured_and_leaves_no_process(build, package, tmp_path, clean_env):
    (tmp_path / "embed.py").write_text(EMBED + COUNTED)
    (tmp_path / "texts.txt").write_text("a\n")
    env = {**clean_env, "PYTHONPATH": str(package), "TARE_PYTHON": sys.executable}
    with subprocess.Popen([build / "tare", "bench", "py:embed.py:counted", "--inputs", "texts.txt", "--budget", "60s", "--precision", "0.0001",
                           "--warmup", "3", "--json", "--no-save"], cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tare:
        deadline = time.time() + 60
        while not (tmp_path / "enough").exists() and time.time() < deadline:
            time.sleep(0.05)
        worker = children(tare.pid)[0]
        tare.send_signal(signal.SIGINT)
        out, said = tare.communicate(timeout=60)
    assert tare.returncode == 0, said
    assert json.loads(out)["config"]["interrupted"] is True and json.loads(out)["cases"][0]["samples"] > 3
    assert not os.path.exists("/proc/%d" % worker)


def test_a_killed_tare_takes_its_python_along(build, package, tmp_path, clean_env):
    (tmp_path / "embed.py").write_text(EMBED)
    env = {**clean_env, "PYTHONPATH": str(package), "TARE_PYTHON": sys.executable}
    with subprocess.Popen([build / "tare", "bench", "py:time:sleep", "--no-save"], cwd=tmp_path, env=env, stderr=subprocess.DEVNULL) as early:
        early.wait(timeout=60)  # sleep() without an argument: a refusal, not a hang
        assert early.returncode == 3
    (tmp_path / "t.json").write_text("[1]")
    with subprocess.Popen([build / "tare", "bench", "py:embed.py:hang", "--inputs", "t.json", "--no-save"], cwd=tmp_path, env=env) as tare:
        deadline = time.time() + 60
        while not children(tare.pid) and time.time() < deadline:
            time.sleep(0.05)
        worker = children(tare.pid)[0]
        time.sleep(1)
        tare.kill()
        tare.wait(timeout=60)
    while alive(worker) and time.time() < deadline:
        time.sleep(0.05)
    assert not alive(worker)


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_python_m_tare_bench_is_the_same(python, tmp_path):
    (tmp_path / "embed.py").write_text(EMBED)
    (tmp_path / "texts.txt").write_text("a b\n")
    done = python("-m", "tare", "bench", "embed.py:encode", "--inputs", "texts.txt", "--batch", "2", "--budget", "30ms", "--json", "--no-save")
    run = json.loads(done.stdout)
    assert run["config"]["python"] == sys.executable and run["cases"][0]["params"]["batch"] == 2


def test_documents_of_tare_bench_are_valid_and_compare(python, tare, validator, tmp_path):
    python("import time, tare\n"
           "for _ in range(2):\n"
           "    print(tare.bench(lambda x: time.sleep(0.001), [1, 2], batch_sizes=[1, 2], lengths=None, budget='50ms',\n"
           "                     targets=['latency.p95<=1s']).save('kept'))\n")
    first, second = sorted((tmp_path / "kept").glob("*.json"))
    for path in first, second:
        validator(json.loads(path.read_text()))
    done = tare("compare", first, second, "--json")
    assert json.loads(done.stdout)["schema"].startswith("tare.comparison/")


def test_runs_that_are_no_files_are_compared_by_name(python, tmp_path):
    """What the command read was a file for a moment only: nobody is told its path."""
    done = python("""
        import json, tare
        def f(): sum(range(1000))
        a, b = (tare.bench(f, max_runs=20) for _ in range(2))
        text, document = b.compare(a), b.compare(a, "--json")
        found = tare.detect_regressions(a, b, force=True).comparison
        print("/tare-" in text + document + json.dumps(found), "again" in text, json.loads(document)["reproduce"])
        print(f"base       {a.subject} of {a.to_dict()['created'][:19]}" in text)
        path = a.save("kept", history=False)
        print(path in b.compare(a), path in b.compare(path))
    """)
    assert done.stdout.splitlines() == ["False False None", "True", "True True"]


@pytest.fixture(scope="session")
def validator(root):
    """validator(document): fails unless the document holds to the schema in the repository."""
    jsonschema = pytest.importorskip("jsonschema")
    with open(root / "docs" / "schema" / "run-1.json", encoding="utf-8") as file:
        check = jsonschema.Draft202012Validator(json.load(file))

    def call(document_):
        faults = [f"{list(e.absolute_path)}: {e.message}" for e in check.iter_errors(document_)]
        assert not faults, faults

    return call


def test_functions_of_one_name_in_two_files_are_two_series(tare, python, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "embed.py").write_text("def encode():\n    pass\nsquare = lambda: 4\ncube = lambda: 8\n")
    program = """
        import importlib.util, json, tare
        def load(path):
            spec = importlib.util.spec_from_file_location("embed", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
        a, b = load("a/embed.py"), load("b/embed.py")
        made = {}
        exec(compile("def encode(): pass", "<cell>", "exec"), made)
        subjects = [a.encode, b.encode, a.square, a.cube, made["encode"], json.dumps]
        quick = {"budget": 0.01, "max_runs": 5}
        print([tare.bench(f, *(["x"] if f is json.dumps else []), **quick).subject for f in subjects])
    """
    names = ["a/embed.py:encode", "b/embed.py:encode", "a/embed.py:<lambda>:3", "a/embed.py:<lambda>:4", "encode"]
    said = eval(python(program).stdout)
    assert said[:-1] == names and said[-1].endswith("json/__init__.py:dumps")
