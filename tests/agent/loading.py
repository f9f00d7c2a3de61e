# SPDX-License-Identifier: MIT
"""Libraries that come and go, tare itself by dlopen, C++ exceptions; settings, clocks, and what a start costs."""
import os
import shutil
import statistics
import subprocess
import time

from harness import BUILD, HERE, KINDS, TARE, TMP, Report, Skip, build, check, finish, run, same, test

MODES = ({}, {"TARE_MODE": "aggregate"}, {"TARE_MODE": "events"})


def plugin(name):
    return build("plugin-" + name, source=os.path.join(HERE, "plugin.c"),
                 extra=["-shared", "-fPIC", '-DNAME="%s"' % name])


def loading(rounds, names):
    for env in MODES:
        counts = dict({n: rounds * 10 // len(names) for n in names}, **{"plugin inner": rounds * 10})
        same("loader", [rounds] + [plugin(n) for n in names], counts, env, kinds=("so",), status=0)


def by_dlopen():
    r = [run([build("loader", "none"), "lib", os.path.join(BUILD, "libtare.so")], t) for t in (False, True)]
    check(r[0].seen() == r[1].seen() and r[0].status == 0, "%r" % [x.seen() for x in r])
    Report(r[1].trace).expect({"by dlopen": 1000})


def exceptions():
    for kind in KINDS:
        binary = build("throws", kind, os.path.join(HERE, "throws.cc"))
        r = [run([binary], t) for t in (False, True)]
        check(r[0].seen() == r[1].seen() and r[0].status == 0, "%r" % [x.seen() for x in r])
        report = Report(r[1].trace)
        report.expect({"outer": 400, "deep": 4000, "caught": 400})
        check(not report.loss["abandoned_scopes"], "%r" % report.loss)
        check(report.counts.get("destroyed", 0) >= 2, "%r" % report.counts)


def fallback():
    for env in MODES:
        r = run([build("steady"), "1000"], env=dict(env, TARE_CLOCK_FALLBACK="1"))
        report = Report(r.trace)
        report.expect({"outer": 1000, "inner": 4000})
        check(report.trace["processes"][0]["tsc"] is False, "the report does not say which clock")
        text = subprocess.run([TARE, "report", r.trace], capture_output=True, text=True).stdout
        check("CLOCK_MONOTONIC_RAW" in text, text)


def stepped():
    if not shutil.which("faketime"):
        raise Skip("faketime is not installed")
    r = run(["faketime", "-f", "+0 x100", build("steady"), "1000", "pause", "1000"])
    report = Report(r.trace)
    report.expect({"outer": 1020})
    check(report.trace["duration_ns"] < 2e9, "%d ns" % report.trace["duration_ns"])


def garbage():
    """Nonsense in a setting is as if it were not there, or the session is refused; the program never notices."""
    values = ("", "x", "-1", "99999999999999999999999", "1K", "0", "\xff", "9" * 3000, "%s%n", "aggregate,events")
    plain = run([build("steady"), "100"], False)
    for name in ("MODE", "CLOCK", "DISK", "MEMORY", "WEIGH", "CLOCK_FALLBACK"):
        for value in values:
            r = run([build("steady"), "100"], env={"TARE_" + name: value})
            check(r.seen() == plain.seen(), "TARE_%s=%.40r: %r" % (name, value, r.seen()))
            if os.path.exists(r.trace) and os.path.getsize(r.trace) > 64:
                Report(r.trace).expect({"outer": 100}, lost=None)
    r = run([build("steady"), "100"], path="")
    check(r.seen() == plain.seen() and not os.path.exists(r.trace), "an empty path")
    r = run([build("steady"), "100"], path="t.tare-%p-%%-%z")
    made = [f for f in os.listdir(r.folder) if f.startswith("t.tare-")]
    check(len(made) == 1 and made[0].endswith("-%-%z") and "%p" not in made[0], "%r" % os.listdir(r.folder))


def modes(env, tree, events, clock="ordered"):
    r = run([build("steady"), "500"], env=env)
    report = Report(r.trace)
    report.expect({"outer": 500, "inner": 2000, "steps": 500})
    check(report.trace["has_tree"] == tree and report.trace["has_events"] == events, "%r" % report.trace)
    check(report.trace["events"] == (500 * 11 if events else 0), "%d events" % report.trace["events"])
    check(report.trace["processes"][0]["clock"] == clock, "%r" % report.trace["processes"])


def start_up():
    """Information, not a limit: a busy machine is no fault of ours."""
    took = {False: [], True: []}
    folder = run(["true"], False).folder
    for i in range(60):
        for traced in (False, True):
            env = dict(os.environ, **({"TARE_TRACE": "t.tare-%d" % i} if traced else {}))
            begin = time.perf_counter()
            subprocess.run([build("steady"), "1"], cwd=folder, env=env, stdout=subprocess.DEVNULL)
            took[traced].append(time.perf_counter() - begin)
    plain, traced = (statistics.median(took[t]) * 1e3 for t in (False, True))
    print("# a short run: %.2f ms, traced %.2f ms: start and stop cost %.2f ms (start-up goal 2 ms)"
          % (plain, traced, traced - plain))
    check(len(os.listdir(folder)) == 61, "%d files" % len(os.listdir(folder)))


test("a library loaded and unloaded 100 times", loading, 100, ["one"])
test("five libraries in turn, 100 times", loading, 100, ["one", "two", "three", "four", "five"])
test("tare itself loaded by dlopen, RTLD_LOCAL", by_dlopen)
test("C++ exceptions through scopes, objects destroyed late", exceptions)
test("TARE_CLOCK_FALLBACK", fallback)
test("the wall clock runs away", stepped)
test("garbage in the settings", garbage)
test("TARE_MODE aggregate", modes, {"TARE_MODE": "aggregate"}, True, False)
test("TARE_MODE events", modes, {"TARE_MODE": "events"}, False, True)
test("both modes, fast clock", modes, {"TARE_CLOCK": "fast"}, True, True, "fast")
test("what a start costs", start_up)
finish()
