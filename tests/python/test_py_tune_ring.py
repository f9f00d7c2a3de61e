# SPDX-License-Identifier: MIT
"""The ring and its loader: the same batches as DataLoader's, errors and deaths with their place, and nothing left behind.
RING_BATCHES (default 3000) batches go through it while workers are killed; `make soak` takes a million."""

import ctypes
import gc
import importlib.util
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

import numpy
import pytest

import tare
from tare import _tare
from tare import _tune_data_same as same
from tare._tune import descendants

if importlib.util.find_spec("torch") is None:
    pytest.skip("no torch (make deps)", allow_module_level=True)

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from tare._tune_ring import WorkerDied, ring_class


class Mixed(Dataset):
    """Every kind of thing that a batch can have."""

    def __init__(self, n=50, bad=-1, how=None):
        self.n, self.bad, self.how = n, bad, how

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i == self.bad:
            return self.how(i)
        return {"f": torch.arange(7.0) + i, "h": torch.full((2, 3), i, dtype=torch.bfloat16), "n": numpy.arange(4) * i, "i": i, "x": 0.5 * i,
                "t": f"row {i}", "pair": (torch.tensor(i), numpy.float32(i)), "none": torch.empty(0, 2), "b": torch.tensor([i % 2 == 0])}  # fmt: skip


def ring(dataset, **named):
    return ring_class()(dataset, **{"batch_size": 4, "num_workers": 2, "ring_bytes": 1 << 22, **named})


@pytest.fixture(autouse=True)
def nothing_left():
    before = set(os.listdir("/dev/shm"))
    yield
    gc.collect()  # other tests run beside this one: their names in /dev/shm are not ours to judge
    until = time.monotonic() + 60  # a busy machine takes its time to end what was killed
    while multiprocessing.active_children() or list(descendants()):
        assert time.monotonic() < until, "workers are left"
        time.sleep(0.02)
    assert not [name for name in set(os.listdir("/dev/shm")) - before if name.startswith(("tare", f"torch_{os.getpid()}_"))]
    assert "tare-ring" not in open("/proc/self/maps").read()


@pytest.mark.parametrize("more", [{}, {"shuffle": True}, {"drop_last": True}, {"batch_size": None}, {"batch_size": 7, "num_workers": 3}, {"batch_size": 50, "num_workers": 1}])
def test_the_same_batches_as_without(more):
    plain = {k: v for k, v in {"batch_size": 4, **more}.items() if k != "num_workers"}
    assert same.difference(DataLoader(Mixed(), **plain), ring(Mixed(), **more), "bitwise") is None


def pad(samples):
    """A collate function of one's own: ragged, with strides, with an array, with words."""
    length = max(s["i"] for s in samples) + 1
    return torch.stack([torch.nn.functional.pad(s["f"], (0, length)) for s in samples]).t(), numpy.asarray([s["i"] for s in samples]), ["x" * 70000 for _ in samples]


def test_a_collate_function_of_ones_own():
    assert same.difference(DataLoader(Mixed(), batch_size=4, collate_fn=pad), ring(Mixed(), collate_fn=pad)) is None
    (batch, *_), (other, *_) = next(iter(ring(Mixed(), collate_fn=pad))), next(iter(DataLoader(Mixed(), batch_size=4, collate_fn=pad)))
    assert batch.stride() == other.stride()


def test_batches_that_are_kept_stay_as_they_are():
    loader = ring(Mixed(200))
    kept = list(loader)
    again = list(loader)
    assert same.first_difference(kept, again) is None and same.first_difference(kept, list(DataLoader(Mixed(200), batch_size=4))) is None
    kept[0]["f"].fill_(-1)  # writable, and nobody else's
    assert again[0]["f"][0, 1] == 1 and next(iter(loader))["f"][0, 1] == 1


def test_epochs_that_are_left_early():
    loader = ring(Mixed())
    for _ in range(3):
        for batch, _ in zip(loader, range(2)):
            pass
    assert [b["i"].tolist() for b in loader] == [b["i"].tolist() for b in DataLoader(Mixed(), batch_size=4)]


def test_a_slot_that_is_used_is_not_used_again():
    loader = ring(Mixed(400), num_workers=1, prefetch_factor=1)
    source = iter(loader)
    first = next(source)
    copy = first["f"].clone()
    for _ in range(40):
        next(source)
    assert torch.equal(first["f"], copy)
    del first, source


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


class Local(Exception):
    def __init__(self):
        super().__init__("has a lambda")
        self.f = lambda: 0


def throws(error):
    def how(i):
        raise error

    return how


@pytest.mark.parametrize("error", [ValueError("row 9 is bad"), KeyError("k"), Odd("a", "b"), OSError(5, "gone")])
def test_errors_are_those_of_dataloader(error):
    dataset = Mixed(bad=9, how=throws(error))
    assert same.difference(DataLoader(dataset, batch_size=4, num_workers=2), ring(dataset), "order") is None
    loader, got = ring(dataset), []
    with pytest.raises(Exception) as raised:
        for batch in loader:
            got.append(batch)
    assert len(got) == 2 and "Original Traceback" in str(raised.value)


def test_an_error_that_cannot_be_pickled_is_told():
    with pytest.raises(RuntimeError, match="has a lambda"):
        list(ring(Mixed(bad=9, how=lambda i: throws(Local())(i))))


def test_shapes_that_do_not_stack_and_batches_that_do_not_fit():
    with pytest.raises(RuntimeError, match="stack expects"):
        list(ring(Mixed(bad=9, how=lambda i: {**Mixed()[0], "f": torch.zeros(3)})))
    with pytest.raises(ValueError, match="give ring_bytes="):
        list(ring(Mixed(), ring_bytes=1 << 16))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_worker_that_is_killed_is_named(number):
    loader = ring(Mixed(bad=22, how=lambda i: os.kill(os.getpid(), number)))
    got, begun = 0, None
    with pytest.raises(WorkerDied) as died:
        for batch in loader:
            got, begun = got + 1, time.monotonic()
    assert got == 5 and died.value.index == 22 and died.value.signal == number and died.value.pid > 0
    assert f"worker {died.value.pid} was killed by {number.name} while it made sample 22" in str(died.value)
    assert len(list(ring(Mixed()))) == 13


def test_a_worker_that_leaves_is_named():
    with pytest.raises(WorkerDied, match="left with status 3 while it made sample 22"):
        list(ring(Mixed(bad=22, how=lambda i: os._exit(3))))


def test_a_worker_that_is_killed_while_it_waits():
    loader = ring(Mixed())
    source = iter(loader)
    next(source)
    time.sleep(0.1)
    os.kill(loader._team.processes[0].pid, signal.SIGKILL)
    with pytest.raises(WorkerDied, match="SIGKILL"):
        list(loader)
    del source
    assert len(list(loader)) == 13  # new workers


def test_what_hangs_ends_with_the_timeout_and_the_next_epoch_does_not_wait_for_it():
    loader = ring(Mixed(bad=2, how=lambda i: time.sleep(600)), timeout=1)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
            list(loader)


def test_dead_workers_leave_nothing_in_the_process_that_goes_on():
    def held():
        gc.collect()
        return len(os.listdir("/proc/self/fd")), open("/proc/self/maps").read().count("tare-ring")

    loader, before, kept = ring(Mixed()), held(), []
    for _ in range(4):
        with pytest.raises(WorkerDied):
            for batch in loader:
                kept.append(batch)
                os.kill(loader._team.processes[1].pid, signal.SIGKILL)
        batch = None
        kept.clear()
        loader.close()
        assert held() == before


def test_a_forked_process_has_workers_of_its_own():
    loader = ring(Mixed())
    source, want = iter(loader), [b["i"].tolist() for b in DataLoader(Mixed(), batch_size=4)]
    got = [next(source)["i"].tolist()]
    ours = [p.pid for p in loader._team.processes]
    child = os.fork()
    if child == 0:
        good = False
        try:
            good = [b["i"].tolist() for b in loader] == want and not set(ours) & {p.pid for p in loader._team.processes}
            loader.close()
        finally:
            os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert got + [b["i"].tolist() for b in source] == want and [p.pid for p in loader._team.processes] == ours


def test_children_that_nobody_waits_for(python):
    python("""
        import os, signal, time, torch
        from tare._tune_ring import WorkerDied, ring_class

        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

        class Rows(torch.utils.data.Dataset):
            def __len__(self):
                return 40

            def __getitem__(self, i):
                return os.kill(os.getpid(), signal.SIGKILL) if i == 22 else i

        loader = ring_class()(Rows(), batch_size=4, num_workers=2, ring_bytes=1 << 18)
        for _ in range(2):
            try:
                list(loader)
            except WorkerDied as died:
                assert "nobody knows how" in str(died) and died.index == 22, died
            else:
                raise AssertionError("no error")
    """)


def test_who_else_waits_for_a_worker_does_not_hide_how_it_ended(monkeypatch):
    real, loader = os.waitpid, ring(Mixed(bad=22, how=lambda i: os._exit(5)))

    def taken(pid, options):
        """Somebody is quicker: it is told to them, and to us that there is no such child."""
        team = loader._team
        if team is None or pid not in [p.pid for p in team.processes] or (got := real(pid, options))[0] == 0:
            return (0, 0) if team is not None else real(pid, options)
        next(p for p in team.processes if p.pid == pid)._popen.returncode = os.waitstatus_to_exitcode(got[1])
        raise ChildProcessError(10, "No child processes")

    monkeypatch.setattr(os, "waitpid", taken)
    with pytest.raises(WorkerDied, match="left with status 5 while it made sample 22"):
        list(loader)


def test_a_killed_program_leaves_no_worker(package, tmp_path):
    program = tmp_path / "p.py"
    program.write_text("""
import os, torch
from tare._tune_ring import ring_class
loader = ring_class()(range(10**6), batch_size=4, num_workers=2, ring_bytes=1 << 18)
for batch in loader:
    print(*[p.pid for p in loader._team.processes], flush=True)
    os.kill(os.getpid(), 9)
""")
    done = subprocess.run([sys.executable, str(program)], env={**os.environ, "PYTHONPATH": str(package)}, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pids = done.stdout.split()
    assert len(pids) == 2
    while any(alive(pid) for pid in pids):  # pytest's own limit ends it
        time.sleep(0.02)


def alive(pid):
    try:
        return ") Z " not in open(f"/proc/{pid}/stat").read() and b"p.py" in open(f"/proc/{pid}/cmdline", "rb").read()
    except OSError:
        return False


def test_an_error_that_is_larger_than_a_slot_is_cut():
    with pytest.raises(RuntimeError, match="ValueError, which does not fit the ring's slots"):
        list(ring(Mixed(bad=0, how=throws(ValueError("long " * 300_000))), ring_bytes=1))


def test_a_batch_that_is_made_at_once_is_named_as_a_whole():
    class Many(Mixed):
        def __getitems__(self, indices):
            return [os._exit(4) if 9 in indices else i for i in indices]

    with pytest.raises(WorkerDied, match="left with status 4 while it made sample .8, 9, 10, 11."):
        list(ring(Many()))


def test_damaged_shared_memory_is_an_error_and_no_crash():
    one = _tare.Ring(2, 100)
    job, slot = one.post(b"abc")
    at = numpy.frombuffer(memoryview(one.view(slot, False)), "u1").ctypes.data
    words = (ctypes.c_uint32 * 5).from_address(at - 64)  # word, owner, at, kind, meta: see ring_shared.h
    words[4] = 101
    with pytest.raises(ValueError, match="slot 0 of the ring is damaged"):
        one.take(job, 0.0)
    (ctypes.c_uint32 * 4).from_address(at - 64 - 8192)[3] = 2**31  # slot_of[0]
    assert one.take(job, 0.0) is False
    with pytest.raises(TypeError):
        _tare.View()


def test_workers_know_who_they_are():
    class Who(Mixed):
        def __getitem__(self, i):
            info = get_worker_info()
            return info.id, info.num_workers, self.mark

    loader = ring(Who(24), num_workers=3, worker_init_fn=lambda i: setattr(get_worker_info().dataset, "mark", 10 + i))
    assert [(b[0][0].item(), b[1][0].item(), b[2][0].item()) for b in loader] == [(k % 3, 3, 10 + k % 3) for k in range(6)]
    with pytest.raises(ZeroDivisionError):
        list(ring(Who(), worker_init_fn=lambda i: 1 / 0))


def test_bad_loaders_and_rings_say_why():
    class Parts(IterableDataset):
        def __iter__(self):
            return iter(())

    with pytest.raises(ValueError, match="with an index"):
        ring(Parts())
    with pytest.raises(ValueError, match="num_workers=1 or more"):
        ring(Mixed(), num_workers=0)
    for slots, size in ((0, 10), (-1, 10), (4, 0), (4, -5), (5000, 10), (4, 1 << 50)):
        with pytest.raises(ValueError, match="slots"):
            _tare.Ring(slots, size)
    one = _tare.Ring(1, 100)
    with pytest.raises(IndexError):
        one.state(1)
    with pytest.raises(ValueError, match="does not fit"):
        one.post(b"x" * 101)
    job, slot = one.post(b"abc")
    with pytest.raises(BlockingIOError):
        one.post(b"abc")
    assert one.wait(job, slot, 0.0) is None and one.take(job, 0.0) == (0, b"abc") and one.take(job, 0.0) is False
    with pytest.raises(ValueError, match="do not fit"):
        one.done(job, slot, 0, b"x" * 101)
    one.done(job, slot, 0, b"made")
    with pytest.raises(RuntimeError, match="not that of job"):
        one.done(job, slot, 0, b"again")
    assert one.wait(job, slot, 0.0) == (0, b"made") and one.free() == 0
    view = memoryview(one.view(slot, True))
    part = view[:4]
    del view
    assert bytes(part) == b"made" and one.free() == 0
    del part
    assert one.free() == 1 and one.post(b"next")[0] == job + 1
    with pytest.raises(OSError, match="pidfd_open"):
        one.watch(2**22 + 5)


class Small(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.tensor([i, i + 1])


class Killer:
    """Kills a worker of the loader now and then, at any moment: by a timer whose handler runs in between."""

    def __init__(self, loader, least, most):
        self.loader, self.rng, self.between, self.kills, self.pid = loader, random.Random(1), (least, most), 0, os.getpid()

    def strike(self, *_):
        if os.getpid() != self.pid:
            return  # a worker that was just forked
        team = self.loader._team
        if team is not None and team.processes and all(p.pid is not None for p in team.processes):
            victim = self.rng.choice(team.processes)
            if victim.exitcode is None:
                os.kill(victim.pid, signal.SIGKILL)
                self.kills += 1
        signal.setitimer(signal.ITIMER_REAL, self.rng.uniform(*self.between))

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, self.strike)
        signal.setitimer(signal.ITIMER_REAL, self.between[0])
        return self

    def __exit__(self, *exc):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


def test_batches_without_end_while_workers_are_killed(capsys):
    asked = os.environ.get("RING_BATCHES")
    left, deaths, longest, held = int(asked or "3000"), 0, 0.0, len(os.listdir("/proc/self/fd"))
    loader = ring(Small(4000), batch_size=4, ring_bytes=1 << 18)
    with Killer(loader, 0.02, 1.0 if asked else 0.2) as killer:
        last = time.monotonic()
        while left > 0 or deaths == 0:
            expected = 0
            try:
                for batch in loader:
                    assert batch[:, 0].tolist() == list(range(expected, expected + 4))
                    now = time.monotonic()
                    longest, last, expected, left = max(longest, now - last), now, expected + 4, left - 1
            except WorkerDied as died:
                now = time.monotonic()
                longest, last, deaths = max(longest, now - last), now, deaths + 1
                assert died.signal == signal.SIGKILL
    loader.close()
    del batch
    gc.collect()
    with capsys.disabled():
        if asked:
            print(f"\n{asked} batches, {killer.kills} workers killed, {deaths} deaths told; at most {longest:.3f} s without a batch or an error")
    assert len(os.listdir("/proc/self/fd")) == held
    assert longest < 1.0 if asked else True  # a busy machine may be late; the soak's is not


def test_the_optimizer_may_choose_it_and_proves_it():
    opt = tare.DataLoadingOptimizer(tare.DataOptimizationConfig(budget_s=2, timeout_s=100))
    loader = opt.optimize_dataloader(Mixed(400), batch_size=8, shuffle=False, transport="ring")
    assert isinstance(loader, DataLoader)
    assert all(plan["mode"] in ("processes", "ring") for plan, _ in opt.result.rejected)
    assert [i for b in loader for i in b["i"].tolist()] == list(range(400))
