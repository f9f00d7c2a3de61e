# SPDX-License-Identifier: MIT
"""Threads: many, at once and in turn, and every way for one to end."""
from harness import Report, check, finish, run, build, same, test

MODES = ({}, {"TARE_MODE": "aggregate"}, {"TARE_MODE": "events"})


def calls(n):
    return {"work": n, "inner": n, "items": n}


def all_modes(what, n, counts):
    for env in MODES:
        same("threads", [what, n], counts, env, status=0)


def told_apart(report, _):
    check(report.threads["work"] == 200, "%d threads" % report.threads["work"])
    around = report.counts.get("constructor", 0) + report.counts.get("late", 0)
    check(report.trace["events"] == 200 * 5 + 2 * around, "%d events" % report.trace["events"])
    check(report.sums["items"] == 600, "items add up to %d" % report.sums["items"])


def alive(what, status, scopes):
    for env in MODES:
        for kind in ("so", "a"):
            for _ in range(5):
                r = run([build("threads", kind), what], env=env)
                check((r.status, r.out) == (status, ""), "%r" % (r.seen(),))
                report = Report(r.trace)
                report.expect({"work": 4, "inner": 4}, lost=None)
                check(all(report.counts.get(s, 0) > 0 for s in scopes), "%r" % report.counts)


test("200 threads are told apart", same, "threads", ["waves", 200], calls(200), then=told_apart)
test("10,000 threads in waves of 100", same, "threads", ["waves", 10000], calls(10000), kinds=("so",), status=0)
test("3,000 threads in waves, in each mode alone", lambda: [
    same("threads", ["waves", 3000], calls(3000), env, kinds=("a",)) for env in MODES[1:]])
test("10,000 threads in waves need the memory of a few", same, "threads", ["waves", 10000], calls(10000),
     {"TARE_MEMORY": "48M"}, kinds=("so",))
test("10,000 threads at once", same, "threads", ["crowd", 10000], calls(20000), kinds=("so",), status=0)
test("detached threads", all_modes, "detached", 300, calls(600))
test("pthread_exit out of a scope", same, "threads", ["leave", 300], calls(300), status=0)
test("cancelled threads end where they would", all_modes, "cancel", 8, {"c7": 400})
test("scopes in destructors of thread data, three rounds", all_modes, "key", 50, {"work": 200, "destructor": 150})
test("busy threads alive at exit", alive, "alive", 7, ["loop"])
test("sleeping threads alive at exit", alive, "asleep", 7, [])
test("exit from another thread", same, "threads", ["exit"], calls(1), status=5)
test("main leaves by pthread_exit", all_modes, "main", 4, dict(calls(5), atexit=1))
test("atexit handlers, constructors", same, "threads", ["atexit"], dict(calls(1), atexit=1, constructor=1), kinds=("so",))
finish()
