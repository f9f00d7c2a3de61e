# SPDX-License-Identifier: MIT
"""tare attach: real interpreters that already run, looked into from outside. The programs know the answer."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest


def interpreters():
    """One of each version that is here; the first is the one that runs this."""
    found = {sys.version_info[:2]: sys.executable} if (3, 9) <= sys.version_info[:2] <= (3, 13) else {}
    pyenv = os.path.expanduser("~/.pyenv/versions")
    for name in sorted(os.listdir(pyenv)) if os.path.isdir(pyenv) else []:
        version, path = re.match(r"3\.(9|1[0-3])\.", name), os.path.join(pyenv, name, "bin/python3")
        if version and os.access(path, os.X_OK):
            found.setdefault((3, int(version[1])), path)
    return found


VERSIONS = sorted(interpreters())
each_version = pytest.mark.parametrize("version", VERSIONS, ids=lambda v: "%d.%d" % v)


@pytest.fixture
def started(tmp_path):
    """Starts a program that says "ready", and ends it afterwards."""
    running = []

    def start(text, *args, python=sys.executable):
        script = tmp_path / ("victim%d.py" % len(running))
        script.write_text(textwrap.dedent(text))
        p = subprocess.Popen([os.path.realpath(python), "-S", str(script), *args], stdout=subprocess.PIPE, text=True)
        running.append(p)
        assert p.stdout.readline() == "ready\n"
        return p

    yield start
    for p in running:
        p.kill()
        p.wait()
        p.stdout.close()


@pytest.fixture
def tare(build):
    def run(*args, status=0, **options):
        done = subprocess.run([str(build / "tare"), *map(str, args)], capture_output=True, text=True, timeout=120, check=False, **options)
        assert done.returncode == status, done.stderr + done.stdout
        return done

    return run


THREADS = """
    import os, threading, time
    started = []
    def spin():
        started.append(1)
        x = 0
        while True:
            x += 1
    class Worker:
        def work(self, n):
            word, items, flag = "b\\u00fccher", [1, 2.5, None], True
            spin()
    def locker(lock):
        started.append(1)
        lock.acquire()
    def reader(fd):
        started.append(1)
        os.read(fd, 1)
    def lines():
        started.append(1)
        time.sleep(
            1000)
        yield 1
    def use_lines():
        return list(lines())
    lock = threading.Lock()
    lock.acquire()
    kept = os.pipe()
    for f, args in ((Worker().work, (-5,)), (locker, (lock,)), (reader, kept[:1]), (use_lines, ())):
        threading.Thread(target=f, args=args, daemon=True).start()
    while len(started) < 4:
        time.sleep(0.01)
    time.sleep(0.2)
    print("ready", flush=True)
    time.sleep(1000)
"""


def in_script(thread):
    return [(f["name"], f["line"]) for f in thread["frames"] if f["file"].endswith("victim0.py")]


@each_version
def test_where_every_thread_is(started, tare, version):
    p = started(THREADS, python=interpreters()[version])
    for _ in range(20):  # threads that the machine has not let go to sleep yet are looked at again
        seen = json.loads(tare("attach", "--once", "--locals", "--json", p.pid).stdout)
        by_name = {in_script(t)[0][0]: t for t in seen["threads"] if in_script(t)}
        states = {by_name[n]["state"] for n in ("locker", "reader", "lines") if n in by_name}
        if states == {"lock", "I/O", "events" if version < (3, 11) else "sleep"} and in_script(by_name["<module>"])[0][1] == 35:
            break
        time.sleep(0.2)
    assert seen["pid"] == p.pid and seen["python"]["version"].startswith("%d.%d" % version)
    work = "Worker.work" if version >= (3, 11) else "work"
    assert [n for n, _ in in_script(by_name["spin"])] == ["spin", work]
    assert in_script(by_name["spin"])[1][1] == 12 and in_script(by_name["spin"])[0][1] in (7, 8)
    assert by_name["spin"]["state"] in ("runs", "GIL")
    assert [n for n, _ in in_script(by_name["lines"])] == ["lines", "use_lines"]
    assert by_name["reader"]["call"] == "read" and by_name["reader"]["target"] == "pipe"
    assert by_name["locker"]["call"] == "futex" and by_name["locker"]["holds_gil"] is False
    assert in_script(by_name["<module>"])[0][1] == 35
    [frame] = [f for f in by_name["spin"]["frames"] if f["name"] == work]
    values = {v["name"]: v["value"] for v in frame["locals"]}
    assert values["n"] == "-5" and values["word"] == "'b\u00fccher'" and values["flag"] == "True"
    assert values["items"] == "[1, 2.5, None]" and values["self"].startswith("<Worker at 0x")
    text = tare("attach", "--once", p.pid).stdout
    assert "waits for I/O: read, pipe" in text and re.search(r"    locker  .*victim0.py:15\n", text)
    assert p.poll() is None


def test_a_stopped_process_can_be_read(started, tare):
    p = started("import time\ndef stay():\n    print('ready', flush=True)\n    while True: time.sleep(0.001)\nstay()\n")
    os.kill(p.pid, signal.SIGSTOP)
    os.waitpid(p.pid, os.WUNTRACED)  # it goes on until its next turn on a processor
    seen = json.loads(tare("attach", "--once", "--json", p.pid).stdout)
    assert seen["threads"][0]["state"] == "stopped" and seen["threads"][0]["frames"][0]["name"] == "stay"
    assert seen["threads"][0]["doubt"] is None


def test_a_deep_recursion_is_read_whole(started, tare):
    p = started("""
        import sys, threading, time
        sys.setrecursionlimit(20000)
        threading.stack_size(512 << 20)
        def deep(n):
            if n == 0:
                print("ready", flush=True)
                time.sleep(1000)
            deep(n - 1)
        threading.Thread(target=deep, args=(9990,)).start()
    """)
    seen = json.loads(tare("attach", "--once", "--json", p.pid).stdout)
    [t] = [t for t in seen["threads"] if any(f["name"] == "deep" for f in t["frames"])]
    assert sum(f["name"] == "deep" for f in t["frames"]) == 9991 and t["doubt"] is None


def test_a_static_python_without_its_file(started, tare, tmp_path):
    """The interpreter was replaced under its feet, as by an upgrade: its memory is all that is needed."""
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip("no Python of the system here")
    copy = tmp_path / "renamed"
    shutil.copy(os.path.realpath("/usr/bin/python3"), copy)
    version = subprocess.run([str(copy), "-c", "import sys; print(sys.version_info[1])"], capture_output=True, text=True, check=True).stdout
    if not 9 <= int(version) <= 13:
        pytest.skip("Python 3.%s of the system" % version.strip())
    p = started("import time\nprint('ready', flush=True)\ntime.sleep(1000)\n", python=str(copy))
    copy.unlink()
    seen = json.loads(tare("attach", "--once", "--json", p.pid).stdout)
    assert seen["threads"][0]["frames"][0]["name"] == "<module>"


def test_what_cannot_be_read_is_refused_by_name(tare, tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert "there is none of that number, or it has ended" in tare("attach", "--once", gone.pid, status=2).stderr
    other = subprocess.Popen(["sleep", "100"])
    try:
        time.sleep(0.1)
        assert re.search(r"holds no Python interpreter \(it runs .*\)", tare("attach", "--once", other.pid, status=3).stderr)
    finally:
        other.kill()
        other.wait()


def test_without_permission_it_says_why(started, build, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    p = started("import time\nprint('ready', flush=True)\ntime.sleep(1000)\n")
    copy = tmp_path / "tare"
    shutil.copy(build / "tare", copy)
    for folder in (tmp_path, *list(tmp_path.parents)[:-2]):
        os.chmod(folder, 0o755)
    os.chmod(copy, 0o755)
    done = subprocess.run([str(copy), "attach", "--once", str(p.pid)], capture_output=True, text=True, user=65534, group=65534, check=False, timeout=60)
    assert done.returncode == 3
    assert "belongs to user 0, and only that user or somebody with CAP_SYS_PTRACE may read it: try sudo" in done.stderr


def test_a_forged_table_of_offsets_is_refused(started, tare):
    """A process that looks like Python, but nothing behind its symbols fits."""
    p = started("""
        import ctypes
        at = (ctypes.c_char * 4096).in_dll(ctypes.pythonapi, "_PyRuntime")
        print("ready", flush=True)
        ctypes.memset(ctypes.addressof(at), 0, 640)  # offsets, and the list of interpreters
        while True:
            pass
    """)
    done = tare("attach", "--once", p.pid, status=3)
    assert re.search(r"its (layout is not that|table of offsets)", done.stderr), done.stderr


# ---- recording -----------------------------------------------------------------------------------------

HALVES = """
    import sys, time
    def leaf(x):
        return x + 1
    def calls(n):
        x = 0
        for i in range(n):
            x = leaf(x)
    def loop(n):
        x = 0
        for i in range(n):
            x += i
    def work(f, seconds):  # equal processor time for both, however busy the machine is
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            f(2000)
    def main():
        while True:
            work(calls, 0.02)
            work(loop, 0.02)
    print("ready", flush=True)
    main()
"""


def check_halves(started, tare, tmp_path, version, program=HALVES):
    """The two are not cut at a sample, so a little more than the interval is allowed."""
    p = started(program, python=interpreters()[version])
    trace = tmp_path / "a.tare"
    tare("attach", "--duration", "3s", "--hz", "250", "--budget", "20", "-o", trace, p.pid)
    assert p.poll() is None
    told = json.loads(tare("report", "--stacks", "--cpu", "--json", trace).stdout)
    by_name = {f["name"]: f for f in told["functions"]}
    for name in ("calls", "loop"):
        share = by_name[name]["total"]
        slack = share["hi"] - share["lo"] + 0.05
        assert abs(share["share"] - 0.5) <= slack, (name, share, told["rate"])
    assert by_name["main"]["total"]["share"] > 0.95 and by_name["leaf"]["own"]["share"] > 0
    assert by_name["work"]["own"]["share"] < 0.2
    assert told["rate"]["asked_hz"] == 250 and told["rate"]["stacks_read"] > 10 and told["rate"]["broken_share"] < 0.2
    lines = json.loads(tare("report", "--stacks", "--lines", "--json", trace).stdout)
    assert {f["line"] for f in lines["functions"] if f["name"] == "loop"} & {11, 12}


@each_version
def test_two_halves_of_equal_time(started, tare, tmp_path, version):
    check_halves(started, tare, tmp_path, version)


@each_version
def test_a_generator_has_its_caller(started, tare, tmp_path, version):
    """One that yields while it is read has none at that moment: a third of `calls` stood apart, below nobody."""
    loop = "for i in range(n):\n            x = leaf(x)"
    leaf = "def leaf(x):\n        return x + 1"
    assert loop in HALVES and leaf in HALVES
    program = HALVES.replace(loop, "for x in leaf(n):\n            pass").replace(leaf, "def leaf(n):\n        yield from range(n // 2)\n        for x in range(n // 2): yield x")
    check_halves(started, tare, tmp_path, version, program)


def test_two_halves_with_busy_neighbours(started, tare, tmp_path):
    """A program that has to wait for a processor mostly stands in the system call at which it lost one: 70 % of the looks, 2 % of the time."""
    for _ in range(4):
        started("print('ready', flush=True)\nwhile True: pass")
    check_halves(started, tare, tmp_path, max(interpreters()))


def test_waiting_threads_and_children(started, tare, tmp_path):
    p = started("""
        import subprocess, sys, threading, time
        def sleeper():
            time.sleep(1000)
        def spin():
            while True:
                pass
        for _ in range(20):
            threading.Thread(target=sleeper, daemon=True).start()
        child = subprocess.Popen([sys.executable, "-S", "-c", "import time\\ndef in_child():\\n    end = time.time() + 100\\n    while time.time() < end: pass\\nin_child()"])
        print("ready", flush=True)
        try:
            spin()
        finally:
            child.kill()
    """)
    trace = tmp_path / "a.tare"
    tare("attach", "--duration", "4s", "--budget", "20", "-o", trace, p.pid)
    idle = json.loads(tare("report", "--stacks", "--idle", "--json", trace).stdout)
    assert idle["functions"][0]["name"] == "sleeper" and idle["processes"] >= 2 and idle["threads"] >= 22
    cpu = json.loads(tare("report", "--stacks", "--cpu", "--json", trace).stdout)
    assert {"spin", "in_child"} <= {f["name"] for f in cpu["functions"] if f["own"]["share"] > 0.05}
    one = json.loads(tare("report", "--stacks", "--thread", p.pid, "--json", trace).stdout)
    assert one["functions"][0]["name"] == "spin" and "sleeper" not in {f["name"] for f in one["functions"]}
    assert "has no samples of a thread '1'" in tare("report", "--stacks", "--thread", 1, trace, status=2).stderr
    page = tmp_path / "a.html"
    tare("report", trace, "--html", page)
    assert '"tare.profile/1"' in page.read_text() and "in_child" in page.read_text()


def test_ctrl_c_ends_the_watching_alone(started, build, tare, tmp_path):
    p = started(HALVES)
    trace = tmp_path / "a.tare"
    watching = subprocess.Popen([str(build / "tare"), "attach", "-o", str(trace), str(p.pid)], stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    watching.send_signal(signal.SIGINT)
    assert watching.wait(timeout=60) == 0 and "tare report --stacks" in watching.stderr.read()
    watching.stderr.close()
    assert p.poll() is None
    assert "calls" in tare("report", "--stacks", trace).stdout


def test_a_kill_of_tare_loses_a_second_at_most(started, build, tare, tmp_path):
    p = started(HALVES)
    trace = tmp_path / "a.tare"
    watching = subprocess.Popen([str(build / "tare"), "attach", "-o", str(trace), str(p.pid)], stderr=subprocess.DEVNULL)
    deadline = time.time() + 60
    while time.time() < deadline and (not trace.exists() or trace.stat().st_size < 4000):
        time.sleep(0.1)
    watching.kill()
    watching.wait()
    assert p.poll() is None
    told = json.loads(tare("report", "--stacks", "--json", trace).stdout)
    assert told["wall_ns"] > 0 and told["functions"]


def test_the_process_ends_while_it_is_watched(started, tare, tmp_path):
    p = started("import time\nprint('ready', flush=True)\nend = time.time() + 2\nwhile time.time() < end: pass\n")
    trace = tmp_path / "a.tare"
    tare("attach", "-o", trace, p.pid)
    p.wait()
    assert "<module>" in tare("report", "--stacks", trace).stdout


def test_a_trace_without_stacks_says_so(tare, tmp_path):
    trace = tmp_path / "a.tare"
    tare("run", "--no-save", "--trace", trace, "-q", "--", "true")
    assert "has no sampled stacks: record them with tare attach" in tare("report", "--stacks", trace, status=2).stderr
