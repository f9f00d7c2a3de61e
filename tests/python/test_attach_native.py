# SPDX-License-Identifier: MIT
"""tare attach --native: frames of native code, in C programs and around those of Python. The programs know the answer."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from test_attach import each_version, interpreters

NESTED = r"""
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long work;
__attribute__((noinline)) void spins(void) { for (;;) work++; }
__attribute__((noinline)) void waits(void) { char c; while (read(0, &c, 1) == 1) work++; }
__attribute__((noinline)) void sleeps(void) { for (;;) { struct timespec t = {1000, 0}; nanosleep(&t, NULL); work++; } }
__attribute__((noinline)) void middle(void (*f)(void)) { f(); work++; }
static void *other(void *arg) { (void)arg; middle(spins); work++; return NULL; }
static void *third(void *arg) { (void)arg; middle(sleeps); work++; return NULL; }
int main(void)
{
    pthread_t a, b;
    pthread_create(&a, NULL, other, NULL);
    pthread_create(&b, NULL, third, NULL);
    puts("ready");
    fflush(stdout);
    middle(waits);
    work++;
    return 0;
}
"""


@pytest.fixture
def program(tmp_path):
    """A C program with these flags that runs and has said "ready"."""
    running = []

    def start(source, *flags):
        (tmp_path / "p.c").write_text(source)
        subprocess.run(["cc", "-O1", *flags, "-o", tmp_path / "p", tmp_path / "p.c", "-pthread"], check=True)
        p = subprocess.Popen([tmp_path / "p"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        running.append(p)
        assert p.stdout.readline() == "ready\n"
        return p

    yield start
    for p in running:
        p.kill()
        p.wait()
        p.stdin.close()
        p.stdout.close()


def once(tare, pid, *options):
    return json.loads(tare("attach", "--once", "--native", "--json", *options, pid).stdout)


def names(thread):
    return [f["name"] for f in thread["frames"]]


def stacks_of_c(tare, pid, wanted):
    """Looked at until all three threads are where they will stay."""
    for _ in range(50):
        seen = once(tare, pid)
        by_leaf = {leaf: t for t in seen["threads"] for leaf in ("spins", "waits", "sleeps") if leaf in names(t)}
        if len(by_leaf) == 3 and all(t["cut"] is None for t in by_leaf.values()):
            break
        time.sleep(0.1)
    assert len(by_leaf) == 3, seen
    for leaf, outermost in wanted.items():
        stack = names(by_leaf[leaf])
        assert stack[stack.index(leaf) + 1 : stack.index(leaf) + 3] == ["middle", outermost], stack
        assert by_leaf[leaf]["cut"] is None
    return by_leaf


@pytest.mark.parametrize("flags", [["-fomit-frame-pointer"], ["-fno-omit-frame-pointer"]], ids=lambda f: f[0])
def test_a_c_program(program, tare, flags):
    p = program(NESTED, "-g", *flags)
    if flags[0] == "-fno-omit-frame-pointer":  # read() is not one of the calls that go on as if nothing had been
        seen = once(tare, p.pid)
        main = next(t for t in seen["threads"] if t["tid"] == p.pid)
        assert main["cut"] in (None, "a register that is not known of a thread that waits") and names(main)[0]
        wanted = {"spins": "other", "sleeps": "third"}
        for _ in range(50):
            threads = {leaf: t for t in once(tare, p.pid)["threads"] for leaf in wanted if leaf in names(t)}
            if len(threads) == 2 and all(t["cut"] is None for t in threads.values()):
                break
            time.sleep(0.1)
        for leaf, outermost in wanted.items():
            stack = names(threads[leaf])
            assert stack[stack.index(leaf) + 1 : stack.index(leaf) + 3] == ["middle", outermost] and threads[leaf]["cut"] is None
    else:
        seen = stacks_of_c(tare, p.pid, {"spins": "other", "waits": "main", "sleeps": "third"})
        spins = next(f for f in seen["spins"]["frames"] if f["name"] == "spins")
        assert spins["native"] and spins["file"].endswith("p.c") and spins["line"] == 8 and spins["module"].endswith("/p")
        text = tare("attach", "--once", "--native", p.pid).stdout
        assert "no frames of Python: " in text and "    spins  [p]  " in text
    p.stdin.write("x")  # it was not disturbed: what it waits for still comes
    p.stdin.close()
    assert p.wait(timeout=60) == 0


def test_without_native_it_says_what_would_show_it(program, tare):
    p = program(NESTED)
    assert "--native shows native frames" in tare("attach", "--once", p.pid, status=3).stderr


def test_a_stopped_program_stays_stopped(program, tare):
    p = program(NESTED)
    os.kill(p.pid, signal.SIGSTOP)
    deadline = time.monotonic() + 60
    seen = once(tare, p.pid)
    while {t["state"] for t in seen["threads"]} != {"stopped"} and time.monotonic() < deadline:
        time.sleep(0.1)
        seen = once(tare, p.pid)
    assert {t["state"] for t in seen["threads"]} == {"stopped"} and state_of(p.pid) == "T"
    assert any("waits" in names(t) for t in seen["threads"])
    os.kill(p.pid, signal.SIGCONT)
    p.stdin.close()
    assert p.wait(timeout=60) == 0


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


MERGED = """
    import json, sys, threading, time
    def key(x):
        time.sleep(1000)
    def sorts():
        sorted([3, 1, 2], key=key)
    def gen():
        yield 1
        time.sleep(1000)
    def lists():
        return list(gen())
    def spin():
        while True:
            json.loads('[[[[[1, 2, {"a": 3}]]]]]')
    for f in sorts, lists, spin:
        threading.Thread(target=f, daemon=True).start()
    time.sleep(0.3)
    print("ready", flush=True)
    time.sleep(1000)
"""


@each_version
def test_frames_of_python_stand_where_they_run(started, tare, version):
    p = started(MERGED, python=interpreters()[version])
    for _ in range(30):
        seen = once(tare, p.pid)
        by_name = {n: t for t in seen["threads"] for n in ("sorts", "lists", "spin") if n in names(t)}
        if len(by_name) == 3 and by_name["sorts"]["cut"] is None:
            break
        time.sleep(0.2)
    assert [t["python"] for t in seen["threads"]] == [True] * 4 and all(t["cut"] is None for t in by_name.values()), seen
    stack = by_name["sorts"]["frames"]
    order = [f["name"] for f in stack]
    key, sorts = order.index("key"), order.index("sorts")
    assert key < sorts and order.index("list_sort") in range(key, sorts), order  # a C function between the two of Python
    assert stack[key]["line"] == 4 and "native" not in stack[key] and not any("EvalFrameDefault" in n for n in order)
    assert "list_sort" not in order[sorts:] and order[-1] in ("__clone3", "__clone", "clone", "clone3"), order
    order = names(by_name["lists"])
    assert order.index("gen") < order.index("lists") and any("list" in n and "lists" not in n for n in order[: order.index("lists")]), order


def test_processes_of_others_are_refused(tare, build, started):
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    p = started("import time; print('ready', flush=True); time.sleep(1000)")
    done = subprocess.run([str(build / "tare"), "attach", "--once", "--native", str(p.pid)], capture_output=True, text=True, timeout=60,
                          check=False, preexec_fn=lambda: os.setuid(65534))
    assert done.returncode == 3 and "belongs to user 0" in done.stderr, done.stderr + str(sys.version_info)
