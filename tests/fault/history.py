# SPDX-License-Identifier: MIT
"""The history under fire: writers killed at random moments, a full disk, a lock that lasts. What was kept stays kept."""
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

from harness import SRC, TARE, TMP, Skip, check, finish, test

TRIALS = int(os.environ.get("KILL_TRIALS", "200"))
ENV = {k: v for k, v in os.environ.items() if not k.startswith("TARE")}


def documents(folder, n):
    with open(os.path.join(SRC, "tests", "cli", "report", "sweep.run.json")) as f:
        doc = json.load(f)
    os.makedirs(folder)
    for i in range(n):
        doc["id"] = "01KC%022d" % i
        with open(os.path.join(folder, "%04d.json" % i), "w") as f:
            json.dump(doc, f)


def ask(history, *words):
    done = subprocess.run([TARE, "history", *words, "--history", history], capture_output=True, text=True, env=ENV, timeout=60)
    return done.returncode, done.stdout, done.stderr


def kept(history):
    """The ids in the history, which must open and be whole."""
    if not os.path.exists(history):
        return set()
    rc, out, err = ask(history, "list", "--limit", "0", "--json")
    check(rc == 0, "exit %d: %s" % (rc, err))
    with sqlite3.connect(history) as db:
        check(db.execute("pragma integrity_check").fetchall() == [("ok",)], "integrity_check")
        orphans = db.execute("select count(*) from value where run not in (select seq from run)").fetchone()[0]
        bare = db.execute("select count(*) from run where seq not in (select run from document)").fetchone()[0]
        check(orphans == 0 and bare == 0, "%d values without a run, %d runs without a document" % (orphans, bare))
    return {r["id"] for r in json.loads(out)["runs"]}


def killed(command, cwd, seconds, ready=lambda: True):
    """Run until it is ready and then for so long, then kill -9 all of it. True: it was still at work."""
    p = subprocess.Popen(command, cwd=cwd, env=ENV, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not ready() and p.poll() is None:
        time.sleep(0.002)
    time.sleep(seconds)
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return p.wait() != 0


def told_lines(path):
    """How many imports have said that they are done."""
    if not os.path.exists(path):
        return 0
    with open(path) as f:
        return len(f.read().split())


def adding_one_by_one():
    """Each import that returned is there, whatever happened to the next."""
    place = tempfile.mkdtemp(dir=TMP)
    documents(os.path.join(place, "docs"), 400)
    script = "for f in docs/*.json; do '%s' history import --history h.db $f && basename $f .json >>done; done" % TARE
    lost = caught = adds = 0
    for trial in range(TRIALS):
        if trial % 10 == 0:
            for f in ("h.db", "h.db-wal", "h.db-shm", "done"):
                if os.path.exists(os.path.join(place, f)):
                    os.unlink(os.path.join(place, f))
        done = os.path.join(place, "done")
        enough = told_lines(done) + trial % 4  # by what it did, not by the clock: a busy machine is slow
        caught += killed(["sh", "-c", script], place, random.random() * 0.03, lambda: told_lines(done) >= enough)
        told = {"01KC%022d" % int(l) for l in open(done).read().split()} if os.path.exists(done) else set()
        adds += len(told)
        lost += len(told - kept(os.path.join(place, "h.db")))
    check(lost == 0, "%d runs that were reported as kept are not there" % lost)
    check(adds > TRIALS, "only %d adds" % adds)
    check(caught > TRIALS // 2, "only %d of %d kills came in time" % (caught, TRIALS))
    shutil.rmtree(place)


def adding_many_at_once():
    """A folder is one change: all of it or nothing."""
    place = tempfile.mkdtemp(dir=TMP)
    documents(os.path.join(place, "docs"), 60)
    sizes = set()
    for _ in range(max(TRIALS // 5, 1)):
        for f in os.listdir(place):
            if f.startswith("h.db"):
                os.unlink(os.path.join(place, f))
        killed([TARE, "history", "import", "--history", "h.db", "docs"], place, random.random() * 0.15)
        sizes.add(len(kept(os.path.join(place, "h.db"))))
    check(sizes <= {0, 60}, "%r of 60" % sizes)
    shutil.rmtree(place)


def benching():
    """A bench that ended well is in the history; one that was killed is there whole or not at all."""
    place = tempfile.mkdtemp(dir=TMP)
    command = [TARE, "bench", "--max-runs", "2", "--warmup", "0", "--json", "--", "true"]
    history = os.path.join(place, "tare-results", "history.db")
    good = set()
    for trial in range(max(TRIALS // 5, 1)):
        if trial % 4 == 0:
            done = subprocess.run(command, cwd=place, env=ENV, capture_output=True, text=True, timeout=60)
            check(done.returncode == 0 and not done.stderr, done.stderr)
            good.add(json.loads(done.stdout)["id"])
        else:
            killed(command, place, random.random() * 0.4)
        have = kept(history)
        check(good <= have, "%d runs are gone" % len(good - have))
        check(len(have) <= len([f for f in os.listdir(os.path.dirname(history)) if f.endswith(".json")]), "without its document")
    shutil.rmtree(place)


def no_space():
    """On a disk of 1 MiB: the bench warns or says so, and what the history held can be read."""
    place = tempfile.mkdtemp(dir=TMP)
    documents(os.path.join(place, "docs"), 1000)
    os.mkdir(os.path.join(place, "disk"))
    script = ("mount -t tmpfs -o size=1m none disk || exit 99; n=0; for f in docs/*.json; do "
              "'{0}' history import --history disk/h.db $f 2>err || {{ rc=$?; break; }}; n=$((n+1)); done; cat err; "
              "'{0}' history list --limit 0 --json --history disk/h.db >list || cp disk/h.db* . ; echo \"$n $rc\"").format(TARE)
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=place, env=ENV, capture_output=True, text=True, timeout=120)
    if done.returncode == 99 or "unshare" in done.stderr:
        raise Skip("no private mounts here: " + done.stderr.strip()[:80])
    n, rc = done.stdout.split()[-2:]
    check(int(rc) == 3 and "disk/h.db" in done.stdout, done.stdout + done.stderr)
    with open(os.path.join(place, "list")) as f:
        check(len(json.load(f)["runs"]) == int(n) > 0, "%s kept" % n)
    shutil.rmtree(place)


def no_byte_left():
    """On a disk that is full to the last byte the history can be read, and what would change it says why it cannot."""
    place = tempfile.mkdtemp(dir=TMP)
    documents(os.path.join(place, "docs"), 3)
    os.mkdir(os.path.join(place, "disk"))
    script = ("mount -t tmpfs -o size=1m none disk || exit 99; '{0}' history import --history disk/h.db docs/*.json || exit 98; "
              "dd if=/dev/zero of=disk/rest bs=4k 2>/dev/null; dd if=/dev/zero of=disk/crumbs bs=1 count=4096 2>/dev/null; "
              "'{0}' history list --limit 0 --json --history disk/h.db >list || exit 97; "
              "'{0}' history tag --history disk/h.db 01KC{1:022d} x; echo \"tag $?\"; rm disk/rest; "
              "'{0}' history tag --history disk/h.db 01KC{1:022d} x; echo \"tag $?\"").format(TARE, 1)
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=place, env=ENV, capture_output=True, text=True, timeout=120)
    if done.returncode == 99 or "unshare" in done.stderr:
        raise Skip("no private mounts here: " + done.stderr.strip()[:80])
    check(done.returncode == 0, "exit %d: %s" % (done.returncode, done.stderr))
    with open(os.path.join(place, "list")) as f:
        check(len(json.load(f)["runs"]) == 3, "all are listed")
    check("no space left" in done.stderr, done.stderr)
    check([line for line in done.stdout.splitlines() if line.startswith("tag ")] == ["tag 3", "tag 0"], done.stdout + done.stderr)
    shutil.rmtree(place)


def locked():
    """Another process that holds the history for longer than tare waits: told, exit 3; a bench only warns."""
    place = tempfile.mkdtemp(dir=TMP)
    documents(os.path.join(place, "docs"), 2)
    history = os.path.join(place, "h.db")
    check(ask(history, "import", os.path.join(place, "docs", "0000.json"))[0] == 0, "the first import")
    db = sqlite3.connect(history, isolation_level=None)
    db.execute("begin immediate")
    rc, _, err = ask(history, "import", os.path.join(place, "docs", "0001.json"))
    check(rc == 3 and "locked" in err and history in err, "exit %d: %s" % (rc, err))
    bench = [TARE, "bench", "--max-runs", "2", "--warmup", "0", "--history", history, "--", "true"]
    done = subprocess.run(bench, cwd=place, env=ENV, capture_output=True, text=True, timeout=60)
    check(done.returncode == 0 and "not in the history" in done.stderr and "locked" in done.stderr, done.stderr)
    check(len([f for f in os.listdir(os.path.join(place, "tare-results")) if f.endswith(".json")]) == 1, "the document")
    db.execute("rollback")
    db.close()
    check(kept(history) == {"01KC%022d" % 0}, "what it held")
    shutil.rmtree(place)


random.seed(int(os.environ.get("KILL_SEED", str(os.getpid()))))
test("%d kills while runs are added one by one" % TRIALS, adding_one_by_one)
test("kills while many are added at once", adding_many_at_once)
test("kills of tare bench", benching)
test("a full disk", no_space)
test("a disk without a byte left", no_byte_left)
test("a lock that lasts", locked)
finish()
