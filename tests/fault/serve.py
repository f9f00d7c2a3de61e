# SPDX-License-Identifier: MIT
"""tare serve under fire: kill -9 of the server and of its PostgreSQL under load, and disks that fill up. What was answered
201 is there afterwards, byte for byte and once; what was not may be sent again."""
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

from harness import SRC, TARE, TMP, Skip, check, finish, test

sys.path.insert(0, os.path.join(SRC, "tests", "python"))
from postgres import Postgres, binaries  # noqa: E402
from serve_client import Client, Server, request  # noqa: E402

KILLS = int(os.environ.get("KILL_TRIALS", "12"))
DISKS = int(os.environ.get("DISK_TRIALS", "4"))
PG_KILLS = int(os.environ.get("PG_TRIALS", "4"))
STANDBY_KILLS = int(os.environ.get("STANDBY_TRIALS", "2"))
CLIENTS = 6
WAIT = 60
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

with open(os.path.join(SRC, "tests", "cli", "report", "sweep.run.json")) as f:
    TEXT = json.load(f)


def id_of(number):
    return "01KA3QZ4M6S1V7W8X9Y" + "".join(DIGITS[number >> 5 * i & 31] for i in range(6, -1, -1))


def document(number):
    return json.dumps({**TEXT, "id": id_of(number)}).encode()


class Load:
    """Clients that post one document after another until the server does not answer any more, or says that it cannot."""

    def __init__(self, numbers):
        self.numbers, self.lock = numbers, threading.Lock()
        self.kept, self.unsure, self.refused = [], [], []

    def next(self):
        with self.lock:
            self.numbers[0] += 1
            return self.numbers[0]

    def client(self, port, token, until):
        """until(answer): is this one the last?"""
        try:
            c = Client(port)
        except OSError:
            return
        while True:
            n = self.next()
            try:
                c.send(request("POST", "/api/v1/runs", token=token, body=document(n)))
                got = c.reply()
            except (OSError, AssertionError):
                got = None
            if got is None:
                self.unsure.append(n)
                return
            (self.kept if got.status in (200, 201) else self.refused).append(n)
            if until and until(got):
                return

    def start(self, server, token, until=None):
        self.threads = [threading.Thread(target=self.client, args=(server.port, token, until)) for _ in range(CLIENTS)]
        for t in self.threads:
            t.start()

    def wait_for(self, n):
        """By what was answered, not by the clock: a busy machine is slow."""
        end = time.monotonic() + WAIT
        while len(self.kept) < n:
            check(time.monotonic() < end, "only %d answers" % len(self.kept))
            check(any(t.is_alive() for t in self.threads), "every client was turned away")
            time.sleep(0.001)

    def join(self):
        for t in self.threads:
            t.join(WAIT)
            check(not t.is_alive(), "a client still waits for an answer")


def whole(server, token, numbers):
    """How many of them do not come back as they were sent."""
    c, bad = Client(server.port), 0
    for n in numbers:
        c.send(request("GET", "/api/v1/runs/" + id_of(n), token=token))
        got = c.reply()
        bad += got is None or got.status != 200 or got.body != document(n)
    c.close()
    return bad


def again(server, token, numbers):
    """What nobody answered is sent again, as a client would."""
    for n in numbers:
        got = server.ask("POST", "/api/v1/runs", token=token, body=document(n))
        check(got.status in (200, 201), "sent again: %d %r" % (got.status, got.body))


def in_file(path):
    with sqlite3.connect(path) as db:
        check(db.execute("pragma integrity_check").fetchall() == [("ok",)], "integrity_check")
        bare = db.execute("select count(*) from run where seq not in (select run from document)").fetchone()[0]
        orphans = db.execute("select count(*) from value where run not in (select seq from run)").fetchone()[0]
        check(bare == 0 and orphans == 0, "%d runs without a document, %d values without a run" % (bare, orphans))
        return [r[0] for r in db.execute("select id from run")]


def judge(kept, ids, what):
    """The line that bench/results.md has."""
    lost, twice = len({id_of(n) for n in kept} - set(ids)), len(ids) - len(set(ids))
    print("# %s: %d acknowledged, %d lost, %d duplicates" % (what, len(kept), lost, twice), flush=True)
    check(lost == 0 and twice == 0, "%d acknowledged runs are lost, %d are there twice" % (lost, twice))
    check(len(kept) > 0, "nothing was acknowledged")


def killed():
    place = tempfile.mkdtemp(dir=TMP)
    data, numbers, kept = os.path.join(place, "data"), [0], []
    server, token = Server(TARE, data, "--rate", 0), None
    for trial in range(KILLS):
        token = token or server.token()
        load = Load(numbers)
        load.start(server, token)
        load.wait_for(1 + random.randrange(40))
        os.kill(server.pid, signal.SIGKILL)
        server.kill()
        load.join()
        server = Server(TARE, data, "--rate", 0)
        check(whole(server, token, load.kept[-20:]) == 0, "trial %d: an acknowledged document does not come back" % trial)
        again(server, token, load.unsure)
        kept += load.kept + load.unsure
    server.kill()
    judge(kept, in_file(os.path.join(data, "history.db")), "SQLite, %d kill -9 under load" % KILLS)
    shutil.rmtree(place)


class Disk:
    """A file system of its own, which holds only as much as it is given; seen by what runs in it."""

    def __init__(self, kb):
        self.place = tempfile.mkdtemp(dir=TMP)
        self.path = os.path.join(self.place, "disk")
        os.mkdir(self.path)
        script = "mount -t tmpfs -o size=%dk,mode=700 none '%s' && echo ready && exec sleep 100000" % (kb, self.path)
        self.holder = subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            raise Skip("no private mounts here: " + self.holder.stderr.read().strip()[:80])
        self.seen = "/proc/%d/root%s" % (self.holder.pid, self.path)

    def server(self):
        """A server in it. None: it does not start."""
        command = os.path.join(self.place, "serve")
        with open(command, "w") as f:
            f.write("#!/bin/sh\nif [ \"$1\" = serve ]; then exec nsenter -t %d -m -- '%s' \"$@\"; fi\n" % (self.holder.pid, TARE))
            f.write("nsenter -t %d -m -- '%s' \"$@\"\n" % (self.holder.pid, TARE))
        os.chmod(command, 0o755)
        try:
            return Server(command, os.path.join(self.path, "data"), "--rate", 0)
        except AssertionError:
            return None

    def leave(self, kb):
        """So much room, and no more."""
        s = os.statvfs(self.seen)
        with open(os.path.join(self.seen, "filler"), "wb") as f:
            f.write(bytes(max(s.f_bavail * s.f_frsize - kb * 1024, 0)))

    def free(self):
        os.unlink(os.path.join(self.seen, "filler"))

    def close(self):
        self.holder.kill()
        self.holder.communicate()
        shutil.rmtree(self.place)


def full(trial, numbers):
    """Acknowledged and lost, and what was acknowledged."""
    disk = Disk(16384)
    try:
        server = disk.server()
        check(server is not None, "does not start")
        token = server.token()
        disk.leave(200 + random.randrange(1200))
        load = Load(numbers)
        load.start(server, token, lambda got: got.status not in (200, 201))
        load.join()
        check(load.refused, "the disk was not full")
        check(whole(server, token, load.kept) == 0, "on a full disk, what is kept cannot be read")
        if trial % 2:  # killed as it is; with no room at all it may refuse to start
            server.kill()
            disk.free()
            server = disk.server()
            check(server is not None, "does not start again")
        else:
            disk.free()
        lost = whole(server, token, load.kept)
        again(server, token, load.refused + load.unsure)
        check(whole(server, token, load.refused) == 0, "what was refused and sent again")
        check(server.stop()[0] == 0, "the server's end")
        out = os.path.join(disk.place, "out")  # SQLite does not open what is seen through /proc
        shutil.copytree(os.path.join(disk.seen, "data"), out)
        ids = in_file(os.path.join(out, "history.db"))
        return lost, len(ids) - len(set(ids)), len(load.kept)
    finally:
        disk.close()


def disks():
    numbers, sums = [0], [0, 0, 0]
    for trial in range(DISKS):
        sums = [a + b for a, b in zip(sums, full(trial, numbers))]
    print("# SQLite, %d full disks: %d acknowledged, %d lost, %d duplicates" % (DISKS, sums[2], sums[0], sums[1]), flush=True)
    check(sums[0] == 0 and sums[1] == 0 and sums[2] > 0, "%r" % sums)


def need_postgres():
    if not binaries():
        raise Skip("PostgreSQL is not installed")
    if "without libpq" in subprocess.run(["make", "-s", "-C", SRC, "parts"], capture_output=True, text=True, check=False).stdout:
        raise Skip("built without libpq")


def killed_primary():
    """A primary is killed for good under load; its synchronous standby takes over, and the same server finds it by the address of both."""
    need_postgres()
    data, numbers, kept = os.path.join(TMP, "none"), [0], []
    pg, server = Postgres(SRC), None
    try:
        for trial in range(STANDBY_KILLS):
            other = pg.standby()
            url = "postgresql:///postgres?host=%s,%s&user=postgres&target_session_attrs=read-write" % (pg.folder, other.folder)
            server = Server(TARE, data, "--db", url, "--rate", 0)
            token, load = server.token(), Load(numbers)
            load.start(server, token, lambda got: got.status not in (200, 201))
            load.wait_for(1 + random.randrange(40))
            pg.kill()
            load.join()
            other.promote()
            end = time.monotonic() + WAIT
            while server.ask("POST", "/api/v1/runs", token=token, body=document(0)).status not in (200, 201):
                check(time.monotonic() < end, "the server does not find the standby")
                time.sleep(0.02)
            check(whole(server, token, load.kept[-20:]) == 0, "trial %d: an acknowledged document does not come back" % trial)
            again(server, token, load.unsure + load.refused)
            kept += load.kept + load.unsure + load.refused
            server.kill()
            pg.close()
            pg = other
        judge(kept, pg.sql("SELECT id FROM run").split("\n"), "PostgreSQL, %d kills of a primary with a synchronous standby" % STANDBY_KILLS)
    finally:
        if server:
            server.kill()
        pg.close()


def killed_postgres():
    """In turns the server is killed and its database, which the same server must find again."""
    need_postgres()
    pg = Postgres(SRC)
    data, numbers, kept = os.path.join(TMP, "none"), [0], []
    server = None
    try:
        server, token = Server(TARE, data, "--db", pg.url(), "--rate", 0), None
        for trial in range(PG_KILLS):
            token = token or server.token()
            load = Load(numbers)
            load.start(server, token, lambda got: got.status not in (200, 201))
            load.wait_for(1 + random.randrange(40))
            if trial % 2:
                pg.kill()
                load.join()
                pg.start()
            else:
                os.kill(server.pid, signal.SIGKILL)
                server.kill()
                load.join()
                server = Server(TARE, data, "--db", pg.url(), "--rate", 0)
            end = time.monotonic() + WAIT
            while server.ask("GET", "/api/v1/runs", token=token).status != 200 or \
                    server.ask("POST", "/api/v1/runs", token=token, body=document(0)).status not in (200, 201):
                check(time.monotonic() < end, "the server does not find its database again")
                time.sleep(0.02)
            check(whole(server, token, load.kept[-20:]) == 0, "trial %d: an acknowledged document does not come back" % trial)
            again(server, token, load.unsure + load.refused)
            kept += load.kept + load.unsure + load.refused
        judge(kept, pg.sql("SELECT id FROM run").split("\n"), "PostgreSQL, %d kill -9, every second of the database itself" % PG_KILLS)
    finally:
        if server:
            server.kill()
        pg.close()


if "without llhttp" in subprocess.run(["make", "-s", "-C", SRC, "parts"], capture_output=True, text=True, check=False).stdout:
    KILLS = DISKS = PG_KILLS = STANDBY_KILLS = 0
random.seed(int(os.environ.get("KILL_SEED", str(os.getpid()))))
if KILLS:
    test("%d kills of a server under load" % KILLS, killed)
if DISKS:
    test("%d full disks" % DISKS, disks)
if PG_KILLS:
    test("%d kills of a server with PostgreSQL, and of PostgreSQL" % PG_KILLS, killed_postgres)
if STANDBY_KILLS:
    test("%d kills of a primary with a synchronous standby" % STANDBY_KILLS, killed_primary)
finish()
