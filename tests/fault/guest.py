# SPDX-License-Identifier: MIT
"""A good guest: no way to more privileges, no SIGBUS, no brake, no waiting, and other people's files left alone."""
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile

from harness import BUILD, KINDS, TARE, TMP, Report, Skip, build, check, finish, run, test

NOBODY = 65534
os.chmod(TMP, 0o755)


def plain_environment(**more):
    full = {k: v for k, v in os.environ.items() if not k.startswith("TARE_")}
    full.update(TARE_WEIGH="off", **more)
    return full


def become_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def need_root():
    if os.getuid() != 0:
        raise Skip("not root")


# ---- privileges --------------------------------------------------------------------------------

def privileged(mode):
    """A program that runs as root for nobody: TARE_TRACE is nobody's wish."""
    need_root()
    for kind in KINDS:
        folder = tempfile.mkdtemp(dir=TMP)
        os.chmod(folder, 0o777)
        program = os.path.join(folder, "su")
        shutil.copy(build("guest", kind), program)
        os.chmod(program, 0o755 | mode)
        if mode == 0 and subprocess.run(["setcap", "cap_net_raw+ep", program], stderr=subprocess.DEVNULL).returncode:
            raise Skip("no setcap (libcap2-bin) or no file capabilities here")
        done = subprocess.run([program, "privileged"], env=plain_environment(TARE_TRACE=os.path.join(folder, "t.tare")),
                              stdout=subprocess.PIPE, text=True, preexec_fn=become_nobody)
        if "AT_SECURE 0" in done.stdout:
            raise Skip("this file system does not raise privileges")
        check(done.stdout == "AT_SECURE 1, recording 0\n", done.stdout)
        check(os.listdir(folder) == ["su"], "%r" % os.listdir(folder))


# ---- full disks --------------------------------------------------------------------------------

def kernel_has(kind):
    """Built in, or a module that can be loaded."""
    if shutil.which("modprobe"):
        subprocess.run(["modprobe", "-q", kind], stderr=subprocess.DEVNULL)
    return kind in open("/proc/filesystems").read().split()


def mount_script(kind, at):
    """Shell that mounts a small file system of that kind at a folder. Skips by name what is not to be had here."""
    if kind == "tmpfs":
        return "mount -t tmpfs -o size=4m none %s" % at
    if kind.startswith("overlay on "):  # as containers have it: what is written goes to the upper one
        return ("mkdir under lower && %s && mkdir under/upper under/work && "
                "mount -t overlay -o lowerdir=lower,upperdir=under/upper,workdir=under/work none %s"
                % (mount_script(kind[len("overlay on "):], "under"), at))
    if not kernel_has(kind):
        raise Skip("this kernel has no %s" % kind)
    if kind == "nfs":
        if not shutil.which("exportfs") or not os.path.isdir("/proc/fs/nfsd"):
            raise Skip("no NFS server (nfs-kernel-server) here")
        return ("truncate -s 128M image && mkfs.ext4 -q image && mkdir under && mount -o loop image under && "
                "exportfs -o rw,no_root_squash,insecure,fsid=7 127.0.0.1:$PWD/under && mount -t nfs 127.0.0.1:$PWD/under %s" % at)
    if not shutil.which("mkfs." + kind):
        raise Skip("no mkfs.%s" % kind)
    mb = {"xfs": 320, "bcachefs": 256}.get(kind, 128)
    return "truncate -s %dM image && mkfs.%s -q image >/dev/null 2>&1 && mount -o loop image %s" % (mb, kind, at)


def fill_disk(kind, recorder, tries=3):
    """The folder with what is left of a program that records on a disk that fills up: it runs to its end, and threads of
    it that do not write there themselves are not held up. Any write can wait for a disk that others keep busy, once; what
    waits because the disk is full does so each time."""
    need_root()
    folder = tempfile.mkdtemp(dir=TMP)
    mount = mount_script(kind, "disk")
    script = ("mkdir disk; %s || exit 99; %s '%s' fill disk 3; rc=$?; rm -f disk/filler; mkdir kept; "
              "cp -a disk/?.tare* kept/; umount disk; exit $rc" % (mount, recorder, build("guest")))
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=folder, env=plain_environment(), timeout=240,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 99 or "unshare" in done.stdout:
        raise Skip("%s cannot be mounted here: %s" % (kind, done.stdout.strip()[:80]))
    check(done.returncode == 7 and "ran to its end" in done.stdout, "status %d: %s" % (done.returncode, done.stdout))
    held_up = word(done.stdout, "blocked") >= 0.5
    if held_up and tries > 1:
        return fill_disk(kind, recorder, tries - 1)
    check(not held_up, "held up by the disk in each of three runs: %s" % done.stdout)
    return os.path.join(folder, "kept")


def full_disk(kind):
    """Recording goes on while the disk fills up: what there is can be read. Where it ended before the program did it says so; a
    program that came to its end was never killed."""
    kept = fill_disk(kind, "TARE_TRACE=disk/t.tare")
    report = Report(os.path.join(kept, "t.tare"))
    check(report.counts.get("outer", 0) > 0, "nothing on record")
    waits = kind.split()[-1] in ("btrfs", "bcachefs", "f2fs")
    ended_early(report, 1 if waits else 0, "disk" if waits else None)
    text = subprocess.run([TARE, "report", os.path.join(kept, "t.tare")], capture_output=True, text=True).stdout
    check("killed" not in text, text)
    check(not waits or "1 process ran on when recording had ended" in text, text)


def ended_early(report, n, why):
    told = report.loss["ended_early"], report.trace["processes"][0]["ended_early"]
    check(told == (n, why), "ended early: %r, expected %r; loss %r" % (told, (n, why), report.loss))


def full_disk_of_agent(kind):
    kept = fill_disk(kind, "LD_PRELOAD='%s' TARE_MEMORY_TRACE=disk/m.tare TARE_MEMORY_EVERY=0" % AGENT)
    done = subprocess.run([TARE, "report", "--memory", "--json", os.path.join(kept, "m.tare")], capture_output=True, text=True)
    check(done.returncode == 0 and json.loads(done.stdout), "status %d: %s" % (done.returncode, done.stderr))


AGENT = os.path.join(BUILD, "libtare-agent.so")
SCOPES = {"TARE_TRACE": "t.tare"}
MEMORY = {"LD_PRELOAD": AGENT, "TARE_MEMORY_TRACE": "m.tare", "TARE_MEMORY_EVERY": "0"}


def truncated(recorders, what="wait", status=7, left=0):
    """Somebody cuts the live files down while the program runs. Also with two recorders in it, and a fault of the program's own after theirs."""
    for kind in KINDS:
        folder = tempfile.mkdtemp(dir=TMP)
        process = subprocess.Popen([build("guest", kind), what], cwd=folder, env=plain_environment(**recorders),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        check(process.stdout.readline() == "ready\n", "it did not start")
        live = [name for name in os.listdir(folder) if ".live-" in name]
        check(len(live) == ("TARE_TRACE" in recorders) + ("LD_PRELOAD" in recorders), "live files: %r" % live)
        for name in live:
            os.truncate(os.path.join(folder, name), left)
        out, _ = process.communicate("go\n", timeout=60)
        check(process.returncode == status and out == "ran to its end\n", "status %d: %r" % (process.returncode, out))
        for name in [n for n in os.listdir(folder) if n.endswith(".tare")]:
            read = subprocess.run([TARE, "report", name] + ["--memory"] * (name == "m.tare"), cwd=folder, capture_output=True, text=True)
            check(read.returncode in (0, 2) and (read.stdout or read.stderr), "%s: %d: %s" % (name, read.returncode, read.stderr))
            if left and name == "t.tare":
                ended_early(Report(os.path.join(folder, name)), 1, "page")


# ---- brakes and waiting ------------------------------------------------------------------------

def word(text, name):
    found = re.search("#%s ([0-9.]+)" % name, text)
    check(found, "no %s in %r" % (name, text))
    return float(found.group(1))


def no_brake():
    """Refused more room, a scope costs no more than twice a healthy one, in processor time (the best of some runs: a
    neighbour on the same core or its cache slows the one half of a run or the other)."""
    for mode in ("", "aggregate", "events"):
        ratios = []
        while len(ratios) < 8 and min(ratios, default=3) > 2:
            r = run([build("guest"), "refused"], env={"TARE_MODE": mode} if mode else None)
            check(r.status == 7, "status %d" % r.status)
            check(Report(r.trace).counts["outer"] < 600000, "they were not refused")  # 504,000 by the healthy ones
            ratios.append(word(r.out, "ratio"))
        check(min(ratios) <= 2, "%s: %r times a healthy scope" % (mode or "both", ratios))


def limit_lowered_later():
    """A program that lowers its RLIMIT_AS while it is recorded has as much memory as without us; its calls are all on record."""
    for kind in KINDS:
        for mode in ("aggregate", "events", "both"):
            plain = run([build("guest", kind), "limit"], False)
            traced = run([build("guest", kind), "limit"], env={"TARE_MODE": mode} if mode != "both" else None)
            check(plain.seen() == traced.seen() and plain.status == 7, "%r, traced %r" % (plain.seen(), traced.seen()))
            check(plain.out == "had it had it\n", plain.out)
            if mode != "events":
                Report(traced.trace).expect({"outer": 1001000, "inner": 1001000}, lost=None)


def no_waiting():
    """A real-time thread does not wait for a lock that a preempted thread holds on its processor."""
    r = run([build("guest"), "rt", "3"])
    if "#no real-time" in r.out:
        raise Skip("SCHED_FIFO is not allowed here")
    check(r.status == 7 and word(r.out, "longest_ms") < 400, r.out)


# ---- other people's files ----------------------------------------------------------------------

def old_is_kept():
    """PATH.old that is no trace stays; the earlier trace gets another name."""
    folder = tempfile.mkdtemp(dir=TMP)
    with open(os.path.join(folder, "t.tare.old"), "w") as f:
        f.write("notes\n")
    for _ in range(3):
        run([build("guest")], folder=folder)
    check(open(os.path.join(folder, "t.tare.old")).read() == "notes\n", "t.tare.old was replaced")
    check(sorted(os.listdir(folder)) == ["t.tare", "t.tare.old", "t.tare.old-2"], "%r" % sorted(os.listdir(folder)))
    check(Report(os.path.join(folder, "t.tare.old-2")).counts["outer"] == 10, "the earlier trace")


def links_are_not_followed():
    folder = tempfile.mkdtemp(dir=TMP)
    target = os.path.join(folder, "target")
    open(target, "w").close()
    os.symlink("target", os.path.join(folder, "t.tare"))
    r = run([build("guest")], folder=folder)
    check(r.status == 7 and os.path.getsize(target) == 0 and os.path.islink(os.path.join(folder, "t.tare")), "the link was followed")


def foreign_files_stay():
    """A trace of another user in a sticky folder is neither joined nor moved aside, also not by root."""
    need_root()
    folder = tempfile.mkdtemp(dir=TMP)
    os.chmod(folder, 0o1777)
    run([build("guest")], folder=folder, pre=become_nobody)
    before = os.stat(os.path.join(folder, "t.tare"))
    r = run([build("guest")], folder=folder)
    after = os.stat(os.path.join(folder, "t.tare"))
    check(r.status == 7 and (before.st_ino, before.st_size) == (after.st_ino, after.st_size), "it was touched")
    check(os.listdir(folder) == ["t.tare"], "%r" % os.listdir(folder))


def squashed():
    """Where what we make belongs to somebody else, it is ours all the same: programs share a trace, and keep the last one."""
    shim = build("squash", "none", extra=["-shared", "-fPIC"])
    for kind in KINDS:
        folder = tempfile.mkdtemp(dir=TMP)
        env = plain_environment(TARE_TRACE="t.tare", LD_PRELOAD=shim)
        guest = [build("guest", kind), "wait"]
        first = subprocess.Popen(guest, cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        check(first.stdout.readline() == "ready\n", "it did not start")
        run(guest[:1], folder=folder, env={"LD_PRELOAD": shim})
        first.communicate("go\n", timeout=60)
        check(sorted(os.listdir(folder)) == ["t.tare"], "%r" % sorted(os.listdir(folder)))
        report = Report(os.path.join(folder, "t.tare"))
        check(report.counts["outer"] == 205010, "%r: the second did not join" % report.counts)
        run(guest[:1], folder=folder, env={"LD_PRELOAD": shim})
        check(sorted(os.listdir(folder)) == ["t.tare", "t.tare.old"], "%r" % sorted(os.listdir(folder)))


def private():
    """What was recorded is for its owner alone."""
    r = run([build("guest")])
    check(stat.S_IMODE(os.stat(r.trace).st_mode) == 0o600, oct(os.stat(r.trace).st_mode))


test("a setuid program ignores TARE_TRACE", privileged, stat.S_ISUID)
test("a setgid program ignores TARE_TRACE", privileged, stat.S_ISGID)
test("a program with file capabilities ignores TARE_TRACE", privileged, 0)
for fs in ("ext4", "xfs", "btrfs", "bcachefs", "f2fs", "tmpfs", "nfs", "overlay on ext4", "overlay on btrfs", "overlay on tmpfs"):
    test("a full disk: %s" % fs, full_disk, fs)
for fs in ("ext4", "xfs", "btrfs", "tmpfs", "overlay on btrfs"):
    test("a full disk under the memory agent: %s" % fs, full_disk_of_agent, fs)
test("the live file is truncated", truncated, SCOPES)
test("the live file of the memory agent is truncated", truncated, MEMORY)
test("two live files are truncated, in one program", truncated, {**SCOPES, **MEMORY})
test("all but its header is cut off the live file, and threads come", truncated, SCOPES, "takeover", 7, 1 << 16)
test("live files are truncated, and all signals are blocked", truncated, {**SCOPES, **MEMORY}, "blocked")
test("a page of the program's own is missing", truncated, {**SCOPES, **MEMORY}, "own", -signal.SIGBUS)
test("no brake when refused", no_brake)
test("RLIMIT_AS lowered while recording", limit_lowered_later)
test("a real-time thread never waits", no_waiting)
test("PATH.old that is no trace is kept", old_is_kept)
test("links are not followed", links_are_not_followed)
test("other users' traces are left alone", foreign_files_stay)
test("files that get another owner (NFS, root squashed)", squashed)
test("traces are 0600", private)
finish()
