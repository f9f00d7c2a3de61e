# SPDX-License-Identifier: MIT
"""kill -9 at random moments: what the program had published must be on record, all of it, once."""
import mmap
import os
import random
import shutil
import signal
import struct
import subprocess
import tempfile
import time

from harness import TMP, Report, build, check, finish, test

TRIALS = int(os.environ.get("KILL_TRIALS", "36"))  # of each of six kinds: 216
MODES = {"both": None, "aggregate": "aggregate", "events": "events"}


class Victim:
    """A program with a page of counters that outlives it."""

    def __init__(self, threads, what, mode):
        self.folder = tempfile.mkdtemp(dir=TMP)
        path = os.path.join(self.folder, "page")
        with open(path, "wb") as f:
            f.truncate(4096)
        with open(path, "r+b") as f:
            self.page = mmap.mmap(f.fileno(), 4096)
        env = dict(os.environ, TARE_TRACE=os.path.join(self.folder, "t.tare"), TARE_WEIGH="off")
        if MODES[mode]:
            env["TARE_MODE"] = MODES[mode]
        self.process = subprocess.Popen([build("publish"), path, str(threads)] + what, env=env, start_new_session=True)

    def counter(self, i):
        return struct.unpack_from("<Q", self.page, i * 64)[0]

    def wait(self, i, seconds=20):
        end = time.monotonic() + seconds
        while not self.counter(i) and self.process.poll() is None:
            check(time.monotonic() < end, "the victim does nothing")

    def first_write(self):
        """Until the archive grows, or the program is gone."""
        path = os.path.join(self.folder, "t.tare")
        size = os.stat(path).st_size
        while os.stat(path).st_size == size and self.process.poll() is None:
            pass

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def done(self):
        self.page.close()
        shutil.rmtree(self.folder)


def on_record(v, threads, mode, at_most_more):
    report = Report(os.path.join(v.folder, "t.tare"))
    torn = report.loss["damaged_chunks"]  # a write cut short: told, and all of it still in the live file
    dropped = report.loss["dropped"]  # on a busy machine the helper may be late; never when all fits into its buffers
    check(torn <= 1 and (at_most_more or not dropped), "%r" % report.loss)
    events = {t["name"]: t["events"] for t in report.trace["threads"]}
    for i in range(threads):
        name, did = "w%d" % i, v.counter(i)
        if mode != "aggregate" and did:
            have = events.get(name, 0)
            check(2 * did - dropped <= have <= 2 * (did + at_most_more), "%s: %d events, %d calls published" % (name, have, did))
        slack = 1 if mode != "events" else dropped
        have = report.counts.get(name, 0)
        check(did - slack <= have <= did + at_most_more, "%s: %d calls on record, %d published" % (name, have, did))
    return dropped


def at_random(threads, mode):
    checked = whole = 0
    for trial in range(TRIALS):
        v = Victim(threads, ["loop"], mode)
        if trial % 6:
            v.wait(0)
        time.sleep(random.random() * 0.012)
        v.kill()
        if os.path.exists(os.path.join(v.folder, "t.tare")) and v.counter(0):
            whole += on_record(v, threads, mode, 1) == 0
            checked += 1
        v.done()
    check(checked, "no trial published anything")
    check(3 * whole >= checked, "events were dropped in %d of %d trials" % (checked - whole, checked))


def while_stopping(mode):
    """Killed while it folds what is left into the archive: nothing missing, nothing twice."""
    caught = trials = 0
    while trials < TRIALS or (not caught and trials < 10 * TRIALS):  # a busy machine may be late more often
        trials += 1
        v = Victim(4, ["stop", "3000"], mode)
        v.wait(4)
        v.first_write()
        pause = time.perf_counter() + random.random() * (0.0001 if mode == "aggregate" else 0.002)
        while time.perf_counter() < pause:
            pass
        v.kill()
        caught += v.process.returncode != 0
        on_record(v, 4, mode, 0)
        v.done()
    check(caught, "every trial came too late")


def while_forking():
    for _ in range(TRIALS):
        v = Victim(1, ["fork"], "both")
        v.wait(1)
        time.sleep(random.random() * 0.02)
        v.kill()
        report = Report(os.path.join(v.folder, "t.tare"))
        check(report.loss["damaged_chunks"] <= 1, "%r" % report.loss)
        for i, slack in ((0, 1), (1, 1)):
            have, did = report.counts.get("w%d" % i, 0), v.counter(i)
            check(did - slack <= have <= did + slack, "w%d: %d calls on record, %d published" % (i, have, did))
        v.done()


random.seed(int(os.environ.get("KILL_SEED", str(os.getpid()))))
for m in MODES:
    for n in (1, 4):
        test("%d kills at random moments: %d thread%s, %s" % (TRIALS, n, "s" if n > 1 else "", m), at_random, n, m)
for m in MODES:
    test("%d kills while stopping, %s" % (TRIALS, m), while_stopping, m)
test("%d kills while forking" % TRIALS, while_forking)
finish()
