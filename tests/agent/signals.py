# SPDX-License-Identifier: MIT
"""Signals: handlers with scopes, stacks of their own, longjmp, and being stopped."""
import os
import signal
import subprocess
import time

from harness import Report, TIMEOUT, build, check, finish, run, same, test

MODES = ({}, {"TARE_MODE": "aggregate"}, {"TARE_MODE": "events"})


def handled(outcome):
    return int(open(outcome.trace + ".handled").read())


def timer(n, main):
    def then(report, outcome):
        ran, lost = handled(outcome), report.loss["dropped"]
        check(ran > 10, "only %d signals" % ran)
        for name in ("handler", "in handler", "handled"):
            have = report.counts.get(name, 0)
            check(ran - lost <= have <= ran, "%s: %d of %d, %d lost" % (name, have, ran, lost))
        if report.trace["processes"][0]["mode"] == ["aggregate"]:  # without a log only handlers lose scopes
            check(lost <= ran * 3 and report.counts["main"] == main, "%d lost in %d signals" % (lost, ran))
        check(main - lost <= report.counts["main"] <= main, "main: %d of %d, %d lost" % (report.counts["main"], main, lost))
        check(not report.loss["abandoned_scopes"], "%r" % report.loss)
    for env in MODES:
        same("signals", ["timer", n], None, dict(env, TARE_DISK="4G", TARE_MEMORY="2G"), then=then, status=0)


def weighed(report, outcome):
    check(not report.loss["damaged_chunks"], "%r" % report.loss)
    check(abs(report.counts["main"] - 200000) <= report.loss["dropped"], "%r" % report.counts)


def jumped(report, _):
    check(report.counts["kept"] == 500, "%r" % report.counts)
    check(report.loss["abandoned_scopes"] == 1500, "%r" % report.loss)


def altstack(report, outcome):
    check(handled(outcome) == 1000, "handled")
    check(report.counts["main"] == report.counts["inner"] == report.counts["handler"] == 1000, "%r" % report.counts)
    check(not report.loss["abandoned_scopes"] and not report.loss["foreign_scopes"], "%r" % report.loss)


def in_all_modes(args, then):
    for env in MODES:
        same("signals", args, None, env, then=then, status=0)


def stopped():
    """Stopped and continued while it records."""
    r = run(["true"], False)
    env = dict(os.environ, TARE_TRACE="t.tare", TARE_WEIGH="off")
    p = subprocess.Popen([build("signals"), "stop", "300000"], cwd=r.folder, env=env, stdout=subprocess.PIPE)
    for _ in range(20):
        p.send_signal(signal.SIGSTOP)
        time.sleep(0.002)
        p.send_signal(signal.SIGCONT)
        time.sleep(0.002)
    check(p.wait(TIMEOUT) == 0, "status %r" % p.returncode)
    Report(r.trace).expect({"main": 300000, "inner": 900000, "steps": 900000}, lost=None)


test("a timer of 1 kHz whose handler uses scopes and counters", timer, 200000, 200000)
test("the same while calls are weighed", same, "signals", ["timer", 200000], None, {"TARE_WEIGH": "on"},
     then=weighed, status=0)
test("a handler that jumps out of scopes", in_all_modes, ["jump", 500], jumped)
test("a handler on a stack of its own, just above", in_all_modes, ["altstack"], altstack)
test("SIGSTOP and SIGCONT", stopped)
finish()
