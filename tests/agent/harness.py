# SPDX-License-Identifier: MIT
"""harness - builds victims against libtare.so and libtare.a, runs them with and without a trace, compares what can be
seen from outside (stdout, exit status, files), reads the trace with `tare report --json`, and speaks TAP."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

SRC = os.environ.get("TARE_SRC", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.environ.get("BUILT", os.path.join(SRC, "build"))
TARE = os.environ.get("TARE", os.path.join(BUILD, "tare"))
HERE = os.path.join(SRC, "tests", "agent", "victims")
TMP = tempfile.mkdtemp(prefix="tare-agent-")
TIMEOUT = 240  # a hang is what is looked for: beside busy cores 10,000 threads take more than a minute
KINDS = ("so", "a")
ran = failed = 0


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def check(ok, text):
    if not ok:
        raise Failure(text)


def library():
    """The folder of libtare.so: a copy beside the victims, for the tree may be closed to a user that they become."""
    if not os.path.exists(os.path.join(TMP, "libtare.so")):
        for name in ("libtare.so.0", "libtare.so"):
            shutil.copy(os.path.join(BUILD, name), os.path.join(TMP, name))
    return TMP


def build(name, kind="so", source=None, extra=()):
    """The victim NAME.c (or .cc) linked with the shared or the static library."""
    out = os.path.join(TMP, "-".join([name, kind] + [e.strip("-") for e in extra]))
    if os.path.exists(out):
        return out
    source = source or os.path.join(HERE, name + ".c")
    cc = "g++" if source.endswith(".cc") else os.environ.get("CC", "gcc")
    link = ["-L" + library(), "-ltare", "-Wl,-rpath," + TMP] if kind == "so" else [os.path.join(BUILD, "libtare.a")]
    command = [cc, "-O1", "-g", "-D_GNU_SOURCE", "-Wall", "-Werror", "-I" + os.path.join(SRC, "include"), source,
               "-o", out] + ([] if kind == "none" else link) + ["-pthread", "-ldl"] + list(extra)
    done = subprocess.run(command, capture_output=True, text=True)
    check(done.returncode == 0, " ".join(command) + "\n" + done.stderr)
    return out


class Outcome:
    def __init__(self, folder, status, out):
        self.folder, self.status, self.out = folder, status, out
        self.trace = os.path.join(folder, "t.tare")
        self.files = sorted(f for f in os.listdir(folder) if not f.startswith("t.tare"))
        self.bytes = {f: open(os.path.join(folder, f), "rb").read() for f in self.files}

    def seen(self):
        return (self.status, self.out, self.files, self.bytes)


def run(command, traced=True, env=None, pre=None, folder=None, path="t.tare"):
    """Run in a fresh folder. A hang is a failure; what a killed victim leaves behind is its own."""
    folder = folder or tempfile.mkdtemp(dir=TMP)
    full = {k: v for k, v in os.environ.items() if not k.startswith("TARE_")}
    if traced:
        full.update({"TARE_TRACE": path, "TARE_WEIGH": "off"})
        full.update(env or {})
    try:
        done = subprocess.run(command, cwd=folder, env=full, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=TIMEOUT, preexec_fn=pre)
    except subprocess.TimeoutExpired:
        raise Failure("%s does not end %s" % (" ".join(command), "traced" if traced else "untraced"))
    return Outcome(folder, done.returncode, done.stdout.decode(errors="replace"))


class Report:
    def __init__(self, path):
        done = subprocess.run([TARE, "report", path, "--json"], capture_output=True, text=True, timeout=TIMEOUT)
        check(done.returncode == 0, "tare report: status %d: %s" % (done.returncode, done.stderr))
        self.json = json.loads(done.stdout)
        self.loss, self.trace = self.json["loss"], self.json["trace"]
        self.counts, self.sums, self.threads = {}, {}, {}
        stack = list(self.json["tree"])
        while stack:
            n = stack.pop()
            self.counts[n["name"]] = self.counts.get(n["name"], 0) + n["count"]
            self.threads[n["name"]] = max(self.threads.get(n["name"], 0), n["threads"] or 0)
            if "sum" in n:
                self.sums[n["name"]] = self.sums.get(n["name"], 0) + n["sum"]
            stack += n["children"]

    def expect(self, counts, lost=0):
        """Exact calls per name, nothing damaged, at most `lost` dropped (None: do not care)."""
        have = {k: self.counts.get(k, 0) for k in counts}
        check(have == counts, "calls %r, expected %r; loss %r" % (have, counts, self.loss))
        check(not self.loss["damaged_chunks"], "damaged: %r" % self.loss)
        if lost is not None:
            check(self.loss["dropped"] <= lost, "dropped %d" % self.loss["dropped"])


def same(victim, args=(), counts=None, env=None, pre=None, lost=0, then=None, kinds=KINDS, status=None, extra=()):
    """The victim behaves alike without and with a trace, and the trace holds what it did."""
    for kind in kinds:
        command = [build(victim, kind, extra=extra)] + [str(a) for a in args]
        plain, traced = run(command, False, pre=pre), run(command, True, env, pre)
        check(plain.seen() == traced.seen(), "%s differs when traced:\n%r\n%r" % (kind, plain.seen(), traced.seen()))
        if status is not None:
            check(plain.status == status, "status %r, expected %r: %s" % (plain.status, status, plain.out))
        report = Report(traced.trace) if counts is not None or then else None
        if counts is not None:
            report.expect(counts, lost)
        if then:
            then(report, traced)
        shutil.rmtree(plain.folder)
        shutil.rmtree(traced.folder)


def wait_for(condition, what, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, "waited in vain for " + what)
        time.sleep(0.005)


def test(name, function, *args, **named):
    """One line of TAP."""
    global ran, failed
    ran += 1
    try:
        function(*args, **named)
        print("ok %d - %s" % (ran, name), flush=True)
    except Skip as why:
        print("ok %d - %s # SKIP %s" % (ran, name, why), flush=True)
    except Exception as e:  # a broken test is a failed one
        failed += 1
        print("not ok %d - %s" % (ran, name))
        for line in ("%s: %s" % (type(e).__name__, e)).splitlines():
            print("# " + line[:2000], flush=True)


def finish():
    print("1..%d" % ran, flush=True)
    shutil.rmtree(TMP, ignore_errors=True)
    sys.exit(1 if failed else 0)
