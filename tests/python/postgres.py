# SPDX-License-Identifier: MIT
"""A PostgreSQL of a test's own (tests/postgres.sh): started, killed and started again. On no network."""

import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time

WAIT = 60


def binaries():
    """The folder of initdb; None: PostgreSQL is not installed."""
    found = shutil.which("initdb") or next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), reverse=True)), None)
    return os.path.dirname(os.path.realpath(found)) if found else None


class Postgres:
    def __init__(self, source, *settings):
        self.script, self.settings = os.path.join(str(source), "tests", "postgres.sh"), settings
        self.folder = tempfile.mkdtemp(prefix="tare-pg-", dir="/tmp")  # the path of a socket is short
        self.process = None
        self.start()

    def url(self, name="postgres", **more):
        more = {"host": self.folder, "user": "postgres", **more}
        return "postgresql:///%s?%s" % (name, "&".join("%s=%s" % kv for kv in more.items()))

    def start(self):
        self.process = subprocess.Popen(["sh", self.script, self.folder, *self.settings])
        end = time.monotonic() + WAIT
        while not self.answers():
            assert self.process.poll() is None and time.monotonic() < end, self.log()
            time.sleep(0.02)

    def answers(self):
        return subprocess.run([os.path.join(binaries(), "pg_isready"), "-q", "-h", self.folder], check=False).returncode == 0

    def log(self):
        with open(os.path.join(self.folder, "postgres.log")) as f:
            return f.read()[-2000:]

    def sql(self, text, name="postgres"):
        psql = [os.path.join(binaries(), "psql"), "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-U", "postgres", name]
        return subprocess.run(psql, input=text, capture_output=True, text=True, check=True, cwd="/").stdout.strip()

    def standby(self):
        """Another one that follows this one, which from now on waits for it at each commit."""
        other = Postgres.__new__(Postgres)
        other.script, other.settings, other.process = self.script, self.settings, None
        other.folder = tempfile.mkdtemp(prefix="tare-pg-", dir="/tmp")
        command = [os.path.join(binaries(), "pg_basebackup"), "-D", os.path.join(other.folder, "data"), "-h", self.folder, "-U", "postgres", "-R", "-c", "fast", "--no-sync"]
        if os.getuid() == 0:
            os.chown(other.folder, 65534, 65534)
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] + command
        subprocess.run(command, check=True, capture_output=True, cwd="/")
        other.start()
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")  # not within a transaction
        self.sql("SELECT pg_reload_conf()")
        end = time.monotonic() + WAIT
        while self.sql("SELECT sync_state FROM pg_stat_replication") != "sync":
            assert time.monotonic() < end, self.log() + other.log()
            time.sleep(0.02)
        return other

    def promote(self):
        self.sql("SELECT pg_promote(true)")

    def kill(self):
        """kill -9 of all of it: the first process and those it started, which else would end in order."""
        group = [self.process.pid] + [int(p) for p in subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True,
                                                                     text=True, check=False).stdout.split()]
        for pid in group:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(timeout=WAIT)
        for pid in group[1:]:  # what is left of it holds the memory that the next one wants
            end = time.monotonic() + WAIT
            while os.path.exists("/proc/%d" % pid) and time.monotonic() < end:
                time.sleep(0.01)

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(timeout=WAIT)
        shutil.rmtree(self.folder, ignore_errors=True)
