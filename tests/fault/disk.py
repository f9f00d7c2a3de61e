# SPDX-License-Identifier: MIT
"""Full disks, bad paths and tight limits: the program never notices, and what is lost is told."""
import os
import resource
import subprocess
import tempfile

from harness import KINDS, TMP, Report, Skip, build, check, finish, run, test

NOBODY = 61511  # a user who runs nothing else, which a limit of processes counts
os.chmod(TMP, 0o755)


def limit(which, soft, user=None):
    def pre():
        resource.setrlimit(which, (soft, soft))
        if user is not None:
            os.setgroups([])
            os.setuid(user)
    return pre


def unharmed(args, path="t.tare", env=None, pre=None, folder=None):
    """Alike with and without; returns the traced outcome."""
    for kind in KINDS:
        command = [build("steady", kind)] + [str(a) for a in args]
        plain = run(command, False, pre=pre)
        place = folder() if folder else None
        traced = run(command, True, env, pre, place, path)
        traced.files = [f for f in traced.files if f == "own"]
        check((plain.status, plain.out) == (traced.status, traced.out), "%r, traced %r" % (plain.seen(), traced.seen()))
        check(plain.status == 11, "%r" % (plain.seen(),))
        check(open(os.path.join(traced.folder, "own")).read() == open(os.path.join(plain.folder, "own")).read(), "its file")
    return traced


def on_mount(command, mode, folder):
    full = {k: v for k, v in os.environ.items() if not k.startswith("TARE_")}
    full.update({"TARE_WEIGH": "off"}, **({"TARE_MODE": mode} if mode else {}))
    done = subprocess.run(command, cwd=folder, env=full, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60)
    return done.returncode, done.stdout.decode()


def small_disk(kb, calls, mode=None):
    """The trace on a tmpfs of so many KiB, which is copied out before it goes."""
    for kind in KINDS:
        folder = tempfile.mkdtemp(dir=TMP)
        disk = os.path.join(folder, "disk")
        os.mkdir(disk)
        script = ("mount -t tmpfs -o size=%dk none disk || exit 99; TARE_TRACE=disk/t.tare '%s' %d; rc=$?; "
                  "mkdir kept; cp -a disk/. kept/; exit $rc" % (kb, build("steady", kind), calls))
        r = on_mount(["unshare", "-m", "sh", "-c", script], mode, folder)
        if r[0] == 99 or "unshare" in r[1] or "mount" in r[1]:
            raise Skip("no private mounts here: " + r[1].strip()[:80])
        plain = run([build("steady", kind), str(calls)], False)
        check((plain.status, plain.out) == r, "%r, traced %r" % (plain.seen(), r))
        kept = os.path.join(folder, "kept", "t.tare")
        if os.path.exists(kept) and os.path.getsize(kept) > 64:
            report = Report(kept)
            have, lost = report.counts.get("outer", 0), report.loss["dropped"]
            check(have == calls or (have < calls and lost + report.loss["unclosed_scopes"] > 0),
                  "%d of %d calls on record, %r" % (have, calls, report.loss))
            check(report.trace["events"] + lost >= calls * 11 or mode == "aggregate",
                  "%d events and %d lost of %d" % (report.trace["events"], lost, calls * 11))
        else:
            check(kb < 256, "no trace on a disk of %d KiB" % kb)


def prepared(make):
    def folder():
        place = tempfile.mkdtemp(dir=TMP)
        make(place)
        return place
    return folder


def left_alone():
    """A file that is no trace stays as it is."""
    r = unharmed([100], folder=prepared(lambda d: open(os.path.join(d, "t.tare"), "w").write("precious\n")))
    check(open(r.trace).read() == "precious\n", "the file was changed")


def as_nobody(args, rlimit=None, then=None, path="t.tare"):
    def open_to_all(d):
        os.chmod(d, 0o777)
    if os.getuid() != 0:
        raise Skip("not root: cannot become another user")
    pre = limit(*(rlimit or (resource.RLIMIT_CORE, 0)), user=NOBODY)
    for kind in KINDS:
        command = [build("steady", kind)] + [str(a) for a in args]
        seen = [run(command, t, None, pre, prepared(open_to_all)(), path) for t in (False, True)]
        check(seen[0].seen() == seen[1].seen(), "%r, traced %r" % (seen[0].seen(), seen[1].seen()))
        if then:
            then(seen[1])


def forbidden():
    place = tempfile.mkdtemp(dir=TMP)  # root's alone
    as_nobody([100, "x"], path=os.path.join(place, "t.tare"))
    check(os.listdir(place) == [], "%r" % os.listdir(place))


def no_descriptors():
    command = [build("steady", "a", extra=["-static"]), "1000"]
    seen = [run(command, t, pre=limit(resource.RLIMIT_NOFILE, 3)) for t in (False, True)]
    check(seen[0].seen() == seen[1].seen() and seen[0].status == 11, "%r" % [x.seen() for x in seen])


def told(outcome):
    report = Report(outcome.trace)
    report.expect({"outer": 100000, "inner": 400000}, lost=None)
    check(report.trace["events"] + report.loss["dropped"] >= 1100000, "%r" % report.loss)
    check(report.loss["dropped"] > 0, "a helper ran after all")


def file_size(limit_bytes, what="x"):
    r = unharmed([20000, what], pre=limit(resource.RLIMIT_FSIZE, limit_bytes))
    if limit_bytes >= 1 << 18:
        report = Report(r.trace)
        check(report.counts["outer"] == 20000 or report.loss["dropped"] > 0, "%r %r" % (report.counts, report.loss))


def kept_apart(calls, disk):
    """TARE_DISK: events beyond it are dropped and counted, aggregates stay exact."""
    for kind in KINDS:
        r = run([build("steady", kind), str(calls)], env={"TARE_DISK": disk})
        report = Report(r.trace)
        report.expect({"outer": calls, "inner": 4 * calls, "steps": calls}, lost=None)
        check(report.loss["dropped"] > 0 and report.trace["events"] + report.loss["dropped"] >= 11 * calls,
              "%d events, %r" % (report.trace["events"], report.loss))


def little_memory():
    for mode in ("aggregate", "events"):
        r = run([build("steady"), "300", "threads", "300"], env={"TARE_MEMORY": "1M", "TARE_MODE": mode})
        plain = run([build("steady"), "300", "threads", "300"], False)
        check(plain.seen() == r.seen(), "%r %r" % (plain.seen(), r.seen()))
        report = Report(r.trace)
        check(report.loss["dropped"] > 0 and report.counts["outer"] > 300, "%r %r" % (report.counts, report.loss))


def mkfifo(d):
    os.mkfifo(os.path.join(d, "t.tare"))


for kb in (64, 132, 256, 512, 2048):
    test("a disk of %d KiB" % kb, small_disk, kb, 30000)
test("a disk of 256 KiB, aggregate alone", small_disk, 256, 30000, "aggregate")
test("a disk of 256 KiB, events alone", small_disk, 256, 30000, "events")
test("the folder is missing", unharmed, [100], "no/such/folder/t.tare")
test("the path is a folder", unharmed, [100], folder=prepared(lambda d: os.mkdir(os.path.join(d, "t.tare"))))
test("the path is a pipe", unharmed, [100], folder=prepared(mkfifo))
test("the path is a loop of links", unharmed, [100], folder=prepared(lambda d: os.symlink("t.tare", os.path.join(d, "t.tare"))))
test("the path is a device", unharmed, [100], "/dev/full")
test("the path is in /proc", unharmed, [100], "/proc/t.tare")
test("the path is far too long", unharmed, [100], "x" * 5000)
test("a name that is just too long", unharmed, [100], "x" * 250)
test("a file that is no trace is left alone", left_alone)
test("a folder that may not be written", forbidden)
for size in (1, 4096, 100000, 1 << 18, 1 << 20):
    test("RLIMIT_FSIZE %d" % size, file_size, size)
test("RLIMIT_FSIZE: its own handler is not called", file_size, 100000, "handler")
test("RLIMIT_AS leaves the program its memory", unharmed, [1000, "alloc", 128], pre=limit(resource.RLIMIT_AS, 192 << 20))
test("RLIMIT_AS very small", unharmed, [1000, "alloc", 1], pre=limit(resource.RLIMIT_AS, 16 << 20))
test("RLIMIT_NOFILE 3", no_descriptors)
for n in (4, 6, 16):
    test("RLIMIT_NOFILE %d" % n, unharmed, [1000], pre=limit(resource.RLIMIT_NOFILE, n))
test("RLIMIT_NPROC: no helper thread, loss is told", as_nobody, [100000], (resource.RLIMIT_NPROC, 0), told)
test("TARE_DISK small", kept_apart, 200000, "100K")
test("TARE_DISK 0", kept_apart, 200000, "0")
test("TARE_MEMORY 1M with 300 threads", little_memory)
finish()
