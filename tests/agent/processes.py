# SPDX-License-Identifier: MIT
"""Processes: fork, exec, every kind of end, descriptors, and programs that share a path."""
import os
import signal

from harness import Report, build, check, finish, run, same, test, wait_for

P = "processes"


def no_live(_, outcome):
    left = [f for f in os.listdir(outcome.folder) if ".live-" in f]
    check(not left, "left behind: %r" % left)


def n_processes(n, closed=None):
    def then(report, outcome):
        have = report.trace["processes"]
        check(len(have) == n, "%d processes, expected %d" % (len(have), n))
        if closed is not None:
            check(sum(p["closed"] for p in have) == closed, "%r" % have)
            no_live(report, outcome)
    return then


def daemon():
    for kind in ("so", "a"):
        seen = []
        for traced in (False, True):
            r = run([build(P, kind), "daemon", "5"], traced)
            wait_for(lambda: os.path.exists(os.path.join(r.folder, "done")), "the daemon")
            wait_for(lambda: not any(".live-" in f for f in os.listdir(r.folder)), "its trace")
            names = sorted(f for f in os.listdir(r.folder) if not f.startswith("t.tare"))
            seen.append((r.status, [(f, open(os.path.join(r.folder, f), "rb").read()) for f in names]))
        check(seen[0] == seen[1], "%r" % (seen,))
        Report(r.trace).expect({"child": 20000, "work": 20005})


def closed_output(kind):
    """Started without stdout: what it prints must fail, not go into the trace."""
    seen = []
    for traced in (False, True):
        r = run(["sh", "-c", "exec 0<&- 1>&-; exec '%s' fds" % build(P, kind)], traced)
        seen.append(r.seen())
    check(seen[0] == seen[1], "%r" % (seen,))
    Report(r.trace).expect({"work": 1})
    check(b"printed" not in open(r.trace, "rb").read(), "its output is in the trace")


def together():
    """Started at one moment, again and again: all of them meet in one trace."""
    script = ("for i in 1 2 3 4; do '%s' linger & '%s' linger & done; while [ $(ls | grep -c live-) -lt 8 ]; do sleep 0.01; done; "
              "touch go; wait; rm go" % (build(P, "so"), build(P, "a")))
    for _ in range(12):
        r = run(["sh", "-c", script])
        report = Report(r.trace)
        report.expect({"work": 16000, "inner": 16000})
        check(len(report.trace["processes"]) == 8, "%d processes" % len(report.trace["processes"]))
        check(os.listdir(r.folder) == ["t.tare"], "%r" % os.listdir(r.folder))


def in_turn():
    folder = run(["true"], False).folder
    for n in (1, 2, 3):
        run([build(P), "nested", "0"] if n != 2 else [build(P), "abort"], folder=folder)
    trace = os.path.join(folder, "t.tare")
    Report(trace).expect({"level": 1, "work": 10})
    Report(trace + ".old").expect({"level": 0, "work": 5})
    run([build(P), "nested", "0"], folder=folder)
    Report(trace + ".old").expect({"level": 1})
    check(sorted(os.listdir(folder)) == ["t.tare", "t.tare.old"], "%r" % os.listdir(folder))


def restarted(report, outcome):
    Report(outcome.trace + ".child").expect({"child": 100, "work": 100})


SCOPES = {"fork": {"parent": 1, "work": 300, "child": 100}}
test("fork without exec", same, P, ["fork", 100], SCOPES["fork"], then=n_processes(2, 2), status=0)
test("forks three deep", same, P, ["nested", 3], {"level": 4, "work": 40}, lost=0, then=n_processes(4, 4), status=0)
test("fork while other threads record", same, P, ["threads", 60], {"child": 120, "forked": 60},
     lost=None, then=n_processes(61, 61), status=0)
test("1000 forks that _exit", same, P, ["loop", 1000], {"child": 100, "work": 101},
     then=n_processes(101), status=0, kinds=("so",))
test("1000 forks: what the dead left is folded in", same, P, ["loop", 100], {"child": 10}, then=no_live)
test("a child is killed", same, P, ["childkill", 50], None, status=0, then=lambda r, o: check(
    r.counts["child"] >= 50 and r.loss["unclosed_scopes"] <= 3, "%r %r" % (r.counts, r.loss)))
test("the parent ends first", same, P, ["parentfirst", 30], {"work": 90, "child": 60}, then=n_processes(2, 2), status=4)
test("vfork and exec", same, P, ["vfork", 7], {"work": 12}, then=n_processes(2, 2), status=0)
test("exec of itself, three times", same, P, ["execself", 3], {"work": 40}, then=n_processes(4), status=6)
test("exec of itself leaves no live file", same, P, ["execself", 3], {"work": 40}, then=no_live)
test("posix_spawn", same, P, ["spawn"], {"work": 6}, then=n_processes(2, 2), status=0)
test("system()", same, P, ["system", 4], {"work": 21}, then=n_processes(5, 5), status=0)
test("a daemon that closes every descriptor", daemon)
test("closed descriptors: nothing goes into the program's files", same, P, ["closeall", 50000], {"work": 50001}, status=0)
test("descriptor numbers are the program's own", same, P, ["fds"], {"work": 1}, status=0)
test("started without stdin and stdout", lambda: [closed_output(k) for k in ("so", "a")])
test("_exit", same, P, ["_exit", 42], {"work": 5}, status=42)
test("abort", same, P, ["abort"], {"work": 5}, status=-signal.SIGABRT)
test("SIGSEGV", same, P, ["segv"], {"work": 5}, status=-signal.SIGSEGV)
test("SIGTERM", same, P, ["term"], {"work": 5}, status=-signal.SIGTERM)
test("exit status", same, P, ["code", 113], {"work": 5}, status=113)
test("a child stops its parent's session and starts its own", same, P, ["restart", 100], None, then=restarted, status=0)
test("eight programs share a path at the same time", together)
test("programs in turn on one path: the earlier trace is kept whole", in_turn)
finish()
