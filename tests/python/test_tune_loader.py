# SPDX-License-Identifier: MIT
"""`tare tune py:train.py:make_loader`: the whole way through a real loader, what user code does wrong, limits, and that Ctrl-C leaves
nothing. What a sample waits is known, so that no test depends on how fast the machine is."""

import glob
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

import tare
from tare import _tune
from tare import _tune_data as data
from tare import _tune_worker as worker

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="no torch (make deps)")

TRAIN = """
import threading, time, torch
from torch.utils.data import DataLoader, Dataset

class Waits(Dataset):
    def __init__(self, n=300, seconds=0.01):
        self.n, self.seconds = n, seconds
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        time.sleep(self.seconds)
        return torch.full((4,), float(i))

def make_loader():
    return DataLoader(Waits(), batch_size=4)

def of_quick():
    return DataLoader(Waits(300, 0), batch_size=4)

def slow_step(batch):
    time.sleep(0.1)

def step(batch):
    pass

def endless():
    return DataLoader(Waits(100000), batch_size=4)

class Fails(Waits):
    def __getitem__(self, i):
        raise KeyError("lost")

def of_failing():
    return DataLoader(Fails(), batch_size=4)

def raises():
    raise ValueError("no data here")

def number():
    return 7

def empty():
    return DataLoader([], batch_size=2)

class Locked(Waits):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

def of_spawned():
    return DataLoader(Locked(), batch_size=4, num_workers=1, multiprocessing_context="spawn")

def bad_step(batch):
    raise RuntimeError("out of luck")
"""


@pytest.fixture
def tune(tmp_path, build, package):
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "plain.py").write_text("value = 3\ndef make(): return [1]\n")
    env = {k: v for k, v in os.environ.items() if not k.startswith("TARE")}
    env.update(PYTHONPATH=str(package), TARE_PYTHON=sys.executable, LC_ALL="C.UTF-8")

    def run(*words, wait=True):
        argv = [str(build / "tare"), "tune", *words]
        pipes = {"cwd": tmp_path, "env": env, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        if not wait:
            return subprocess.Popen(argv, **pipes, start_new_session=True)
        return subprocess.run(argv, **pipes, timeout=400, check=False)

    run.folder = tmp_path
    return run


def kept(folder):
    return json.load(open(sorted(glob.glob(str(folder / "tare-results" / "tune_*.json")))[-1]))


@needs_torch
def test_what_waits_is_found_proved_and_kept(tune):
    done = tune("py:train.py:make_loader", "--step", "py:train.py:step", "--budget", "20s", "--only", "workers,mode,prefetch")
    assert done.returncode == 0, done.stderr
    said = kept(tune.folder)
    assert said["kind"] == "tune" and said["subject"]["name"] == "train.py:make_loader" and said["config"]["step"] == "train.py:step"
    assert said["config"]["bound"]["gain_at_most"] > 2 and said["config"]["bound"]["stages_ms"]["fetch"] > 9
    proof = said["recommendation"]["proof"]
    assert proof["metric"] == "throughput" and proof["command"].startswith("tare tune py:train.py:make_loader")
    assert said["cases"][0]["name"] == "batch=4,workers=0" == proof["against"]
    assert all(c["units_per_run"] == 4 and (c["samples"] or c["failure"]) for c in said["cases"])
    if said["recommendation"]["case"] != proof["against"]:  # a machine that is busy with others may not show it
        assert "\napply      " in done.stdout and proof["ratio"] > 1.1 and proof["found"] in ("confirmed", "likely")
    assert "bound      " in done.stdout and "workers: at most" in done.stdout


@needs_torch
def test_a_step_that_is_the_limit_leaves_it(tune):
    done = tune("py:train.py:of_quick", "--step", "py:train.py:slow_step", "--budget", "3s", "--only", "workers,mode,prefetch")
    assert done.returncode == 0, done.stderr
    assert "answer     leave it as it is: at most 1." in done.stdout
    said = kept(tune.folder)
    assert said["recommendation"]["case"] == "batch=4,workers=0" and said["recommendation"]["proof"] is None and len(said["cases"]) == 1


@needs_torch
def test_explain_is_the_bound_alone(tune):
    done = tune("py:train.py:make_loader", "--explain", "--budget", "30s", "--json")
    said = json.loads(done.stdout)
    assert done.returncode == 0 and not said["cases"] and said["config"]["bound"]["gain_at_most"] > 2
    text = tune("py:train.py:make_loader", "--explain", "--budget", "30s").stdout
    assert "to try     workers, prefetch, mode, cache" in text and not (tune.folder / "tare-results").exists() or not glob.glob(str(tune.folder / "tare-results/tune_*"))


@needs_torch
def test_a_limit_that_nothing_keeps(tune):
    done = tune("py:train.py:make_loader", "--budget", "3s", "--latency", "p50<=1us", "--only", "workers,mode")
    assert done.returncode == 1 and "answer     nothing keeps the limits; nearest is " in done.stdout, done.stdout + done.stderr
    assert [c["refused"].split(" is ")[0] for c in kept(tune.folder)["cases"] if c["refused"]]


@needs_torch
@pytest.mark.parametrize(
    "words, code, text",
    [
        (["py:nowhere.py:f"], 2, "nowhere.py: no such file"),
        (["py:plain.py:nothing"], 2, "plain.py:nothing: plain.py has no nothing"),
        (["py:plain.py:value"], 2, "plain.py:value: value is int, which cannot be called"),
        (["py:plain.py:make", "--step", "py:plain.py:nothing"], 2, "plain.py:nothing: plain.py has no nothing"),
        (["py:train.py:raises"], 3, "train.py:raises raised ValueError: no data here"),
        (["py:train.py:number"], 2, "train.py:number: it returned int, which is no torch DataLoader"),
        (["py:train.py:empty"], 2, "train.py:empty: its loader gives no batch"),
        (["py:train.py:of_failing"], 3, "train.py:of_failing: reading its first batch raised KeyError: 'lost'"),
        (["py:train.py:make_loader", "--step", "py:train.py:bad_step"], 3, "train.py:bad_step raised RuntimeError: out of luck"),
        (["py:train.py:of_spawned"], 3, "train.py:of_spawned: reading its first batch raised TypeError: cannot pickle '_thread.lock' object"),
        (["py:train.py:make_loader", "--batch", "8,16"], 2, "--batch: the loader of train.py:make_loader has batches of 4"),
    ],
)
def test_what_cannot_be_tuned_says_why(tune, words, code, text):
    before = set(os.listdir("/dev/shm"))
    done = tune(*words, "--budget", "2s")
    end = time.monotonic() + 200  # names that other programs made meanwhile go with them; only spawned workers have some
    spawned = words[0].endswith("of_spawned")
    left = {name for name in set(os.listdir("/dev/shm")) - before if spawned and name.startswith("sem.mp-")}
    while left and time.monotonic() < end:
        time.sleep(0.05)
        left &= {*os.listdir("/dev/shm")}
    assert not left
    assert (done.returncode, done.stderr.splitlines()[-1].partition("tare tune: ")[2].startswith(text)) == (code, True), done.stderr
    assert done.stdout == "" and not glob.glob(str(tune.folder / "tare-results/tune_*"))


def test_without_torch_it_says_so(tune, tmp_path):
    """A torch that cannot be imported stands before the real one."""
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    done = tune("py:plain.py:make")
    assert done.returncode == 3 and "cannot import torch, which a loader needs" in done.stderr.splitlines()[-1], done.stderr


@needs_torch
def test_an_interrupt_gives_what_there_is_and_leaves_nothing(tune):
    before = set(os.listdir("/dev/shm"))
    child = tune("py:train.py:endless", "--budget", "100s", "--only", "workers", wait=False)
    seen, end = set(), time.monotonic() + 100
    while len(seen) < 3 and time.monotonic() < end:  # Python, and workers of a configuration
        seen |= set(_tune.descendants(child.pid))
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    out, error = child.communicate(timeout=100)
    assert child.returncode == 0 and "it was interrupted after" in out, out + error
    end = time.monotonic() + 30
    while any(os.path.exists(f"/proc/{pid}") for pid in seen) and time.monotonic() < end:
        time.sleep(0.05)
    assert not [pid for pid in seen if os.path.exists(f"/proc/{pid}")]
    ours = tuple(f"torch_{pid}_" for pid in (child.pid, *seen))  # other tests run beside this one
    assert not {name for name in set(os.listdir("/dev/shm")) - before if name.startswith(ours)}
    assert kept(tune.folder)["config"]["interrupted"] is True


@needs_torch
def test_a_search_that_is_killed_goes_on(tune):
    words = ("py:train.py:endless", "--step", "py:train.py:step", "--only", "workers,prefetch")
    child = tune(*words, "--budget", "1h", wait=False)
    seen, end = set(), time.monotonic() + 200
    while not glob.glob(str(tune.folder / "tare-results/*.search")) and child.poll() is None and time.monotonic() < end:
        seen |= set(_tune.descendants(child.pid))
        time.sleep(0.01)
    child.kill()
    child.communicate(timeout=100)
    while any(os.path.exists(f"/proc/{pid}") for pid in seen) and time.monotonic() < end:
        time.sleep(0.05)
    assert not [pid for pid in seen if os.path.exists(f"/proc/{pid}")]
    (left,) = glob.glob(str(tune.folder / "tare-results/*.search"))
    before = json.load(open(left))
    done = tune(*words, "--budget", "2s")
    assert done.returncode == 0, done.stderr
    found = re.search(r"in ([0-9]+) measurements; ([0-9]+) more are from an earlier search", done.stdout)
    assert found and int(found[2]) == sum(map(len, before["blocks"])), done.stdout
    again = tune(*words, "--budget", "2s", "--no-resume")
    assert again.returncode == 0 and "earlier search" not in again.stdout, again.stdout


# ---- the parts ----


@needs_torch
def test_more_settings_are_only_tried_where_they_may_be(monkeypatch):
    import torch
    from torch.utils.data import DataLoader

    def task(loader, **wishes):
        settings, now = data._as_it_is(loader)
        config = tare.DataOptimizationConfig(budget_s=5, timeout_s=100, cache_size=1 << 20)
        out = data._Task(config, settings, now, None, "order", "auto", data.Wishes(extras=True, explain=True, **wishes))
        out.run()
        return out

    plain = DataLoader(list(range(64)), batch_size=4)
    out = task(plain)
    assert list(out.more) == ["cache"] and out.kept is None, out.left
    assert [why.partition(":")[0] for why in out.left if why.startswith(("batch", "pinning"))] == ["batch", "pinning"]
    out = task(plain, batches=(4, 16, 8))
    assert out.more["batch_size"] == [[4, 8, 16], 0] and not tare._unknown.known(out.bound)
    assert task(plain, only=("batch",), batches=(4, 8)).to_try == ["batch"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert task(plain, only=("pinning",)).more == {"pin_memory": [[False, True], 0]}

    class Random(list):
        def __getitem__(self, i):
            return torch.rand(3)

    assert any("draw random numbers" in why for why in task(DataLoader(Random(range(64)), batch_size=4), only=("cache",)).left)

    class Augmented(list):
        transform = staticmethod(lambda x: x + torch.rand(3))

        def __getitem__(self, i):
            return self.transform(torch.ones(3)), i

    assert task(DataLoader(Augmented(range(64)), batch_size=4), only=("cache",)).more == {"cache": [[None, "prefix-0"], 0]}


@needs_torch
def test_plans_are_named_and_applied_as_they_were_proved():
    from torch.utils.data import DataLoader

    plan = {"mode": "processes", "workers": 4, "depth": 2}
    assert worker.name_of({"batch_size": 8, **plan}) == "batch=8,workers=4,processes,prefetch=2"
    assert worker.name_of({"batch_size": 8, **plan, "workers": 0, "cache": "memory", "pin_memory": True}) == "batch=8,workers=0,cache=memory,pinned"
    assert worker.how_to(plan) == "DataLoader(.., num_workers=4, prefetch_factor=2, persistent_workers=True)"
    threads = {"mode": "threads", "workers": 2, "depth": 2, "batch_size": 8, "cache": "memory"}
    assert "apply(loader, {'mode': 'threads'" in worker.how_to(threads)
    loader = tare.DataLoadingOptimizer().apply(DataLoader([float(i) for i in range(20)], batch_size=4), threads)
    assert [batch.tolist() for batch in loader] == [[float(i) for i in range(a, min(a + 8, 20))] for a in (0, 8, 16)]
    assert loader.plan == threads and loader.dataset._kept
    with pytest.raises(TypeError, match="not torch's own DataLoader"):
        tare.DataLoadingOptimizer().apply([1, 2], threads)


@needs_torch
def test_workers_that_hang_are_a_row_and_gone(monkeypatch):
    import torch
    from torch.utils.data import DataLoader, get_worker_info

    class Hangs(list):
        def __getitem__(self, i):
            time.sleep(0.01 if get_worker_info() is None else 1000)
            return torch.ones(2)

    monkeypatch.setattr(data, "_PASS_LEAST_S", 0.5)
    settings, now = data._as_it_is(DataLoader(Hangs(range(400)), batch_size=4))
    config = tare.DataOptimizationConfig(budget_s=4, timeout_s=200, remember=False)
    wishes = data.Wishes(only=("workers", "mode"))
    task = data._Task(config, settings, now, None, "order", "queue", wishes)
    found = task.run()
    hung = [trial.failure for trial in task.trials if trial.plan["mode"] == "processes" and trial.plan["workers"]]
    assert not task.hangs and all("timed out after" in why for why in hung), (hung, found.reasons)
    assert found.verdict != "refused" and not list(_tune.descendants()), found.reasons


@needs_torch
def test_a_data_set_that_hangs_says_so_within_its_time(monkeypatch):
    from torch.utils.data import DataLoader

    class Stops(list):
        def __getitem__(self, i):
            if i > 4:
                time.sleep(1000)
            return i

    monkeypatch.setattr(data, "_PASS_LEAST_S", 0.5)
    settings, now = data._as_it_is(DataLoader(Stops(range(400)), batch_size=4))
    task = data._Task(tare.DataOptimizationConfig(budget_s=0.5, timeout_s=200, remember=False), settings, now, None, "order", "queue")
    found = task.run()
    assert task.hangs and found.reasons[0] == "one pass over the data set and the step did not end within 1 s"


def test_what_was_raised_fits_a_line():
    worker_said = RuntimeError("Caught KeyError in DataLoader worker process 0.\nOriginal Traceback:\n  File ..\nKeyError: 7\n")
    assert data._in_a_line(worker_said) == "RuntimeError: Caught KeyError in DataLoader worker process 0: KeyError: 7"
    assert data._in_a_line(ValueError("plain")) == "ValueError: plain" and data._in_a_line(OSError()) == "OSError: "


def test_the_judges_word_is_told_again():
    def found(verdict, ci):
        return tare.Tuned("x", {}, verdict, gain=1.0, ci=ci)

    assert worker.judged(found("no_gain", (0.8, 0.9)), 0.1) == "worse"
    assert worker.judged(found("no_gain", (0.9, 1.05)), 0.1) == "no gain"
    assert worker.judged(found("no_gain", (0.9, 1.3)), 0.1) == "not shown"
    assert worker.judged(found("over_budget", (0.9, 1.3)), 0.1) == "going on"
    assert worker.judged(found("confirmed", (1.2, 1.3)), 0.1) == "confirmed"


def test_quantiles_are_those_of_the_core():
    assert data._quantile([4, 1, 3, 2], 0.5) == 2.5 and data._quantile([7], 0.95) == 7 and data._quantile([1, 2, 3], 1) == 3
