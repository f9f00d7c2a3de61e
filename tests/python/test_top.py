# SPDX-License-Identifier: MIT
"""tare top on a terminal: what it shows, what keys do, and that the terminal is as before however it ends."""

import json
import os
import signal
import subprocess
import sys
import termios
import time

import pytest

from vt import Session

ENTER = b"\x1b[?1049h\x1b[?25l\x1b[?7l"
LEAVE = b"\x1b[?7h\x1b[?25h\x1b[?1049l"


@pytest.fixture
def top(build, clean_env, tmp_path):
    """top("--interval", "200ms", columns=80): tare top on a pty, closed after the test."""
    sessions = []
    command = os.environ.get("TARE", str(build / "tare"))

    def start(*args, columns=80, lines=24, env=None, shell=None):
        full = {**clean_env, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **(env or {})}
        for name in ("NO_COLOR", "COLORTERM", "COLUMNS"):
            if not env or name not in env:
                full.pop(name, None)
        argv = [command, "top", *map(str, args)]
        session = Session(["sh", "-c", shell, "sh", *argv] if shell else argv, columns, lines, full, tmp_path)
        sessions.append(session)
        return session

    yield start
    for session in sessions:
        session.close()


@pytest.fixture
def victim(tmp_path):
    """A process with a name that tries to steer the terminal, and a child of it."""
    script = "import subprocess, time; p = subprocess.Popen(['sleep', '300']); p.wait()"
    process = subprocess.Popen([sys.executable, "-c", script, "evil\x1b[2J\nname\x07", b"bad\xff\xfeutf8"])
    yield process
    subprocess.run(["pkill", "-P", str(process.pid)], check=False)
    process.kill()
    process.wait()


def started(session, *wanted):
    """Wait for a frame with rates."""
    return session.until(lambda t: "CPU%" in t and "CPU   [" in t and all(w in t for w in wanted))


def assert_restored(session):
    """The terminal is as it was before: screen, cursor, wrapping, modes of the line."""
    assert session.raw.count(ENTER) == session.raw.count(LEAVE) >= 1
    assert session.screen.modes == {7, 25}
    assert termios.tcgetattr(session.slave) == session.before


def test_start_and_quit(top):
    session = top("--interval", "200ms")
    text = started(session)
    rows = text.split("\n")
    assert rows[0].startswith("tare top ") and "every 0.2s" in rows[0]
    for title in ("Mem   [", "Wait", "Disk", "Net"):
        assert any(r.startswith(title) for r in rows), title
    assert not any("none:" in r for r in rows), "a pane of nothing"
    assert rows[-1].startswith("q quit")
    assert 1049 in session.screen.modes and 25 not in session.screen.modes
    assert termios.tcgetattr(session.slave)[3] & (termios.ECHO | termios.ICANON) == 0
    session.type("q")
    assert session.end() == 0
    assert_restored(session)


@pytest.mark.parametrize("columns,lines", [(40, 10), (20, 5), (200, 60), (8, 2), (300, 12)])
def test_sizes(top, columns, lines):
    session = top("--interval", "150ms", columns=columns, lines=lines)
    session.until(lambda t: "tare top" in t)
    session.read(0.7)  # the terminal itself fails on anything drawn outside
    rows = session.screen.rows()
    assert len(rows) == lines and rows[0].startswith("tare top"[:columns])
    if lines >= 10:
        assert any("COMMAND" in r for r in rows) and any(r.startswith("CPU   [") for r in rows)
    session.type("q")
    assert session.end() == 0


def test_resize(top):
    session = top("--interval", "200ms")
    started(session)
    session.resize(40, 10)
    session.until(lambda t: "COMMAND" in t and "~" not in t)
    assert len(session.screen.rows()) == 10
    session.resize(132, 43)
    text = session.until(lambda t: "COMMAND" in t and "~" not in t and "processors" in t)
    assert len(text.split("\n")) == 43
    session.type("q")
    assert session.end() == 0
    assert_restored(session)


def test_only_changes_are_written(top):
    session = top("--interval", "300ms")
    started(session)
    session.read(1)
    frame = sum(len(r) for r in session.screen.rows())
    before = len(session.raw)
    session.type(" ")
    session.until(lambda t: "PAUSED" in t)
    session.read(0.5)
    paused = len(session.raw)
    session.read(1.5)
    assert len(session.raw) == paused, "paused, and still writing"
    assert paused - before < 8 * frame


def test_sort_filter_tree(top, victim):
    session = top("--interval", "200ms", columns=120, lines=40)
    started(session)
    session.type("/%d\r" % victim.pid)
    text = session.until(lambda t: "1 match" in t)
    row = next(r for r in text.split("\n") if r.lstrip().startswith(str(victim.pid)))
    assert "evil\\x1b[2J\\nname\\x07" in row or "import subprocess" in row
    session.type("/")
    session.until(lambda t: "filter: %d_" % victim.pid in t)
    session.type("\x7f" * 8 + "sleep 300\r")
    session.until(lambda t: "match 'sleep 300'" in t and "sleep 300" in t.split("COMMAND")[1])
    session.type("t")
    text = session.until(lambda t: " tree" in t)
    table = text.split("COMMAND")[1].split("\n")
    up = next(i for i, r in enumerate(table) if r.lstrip().startswith("%d " % victim.pid))
    assert "└ sleep 300" in table[up + 1], table
    session.type("\x1b")
    session.until(lambda t: "match" not in t)
    session.type("tm")  # no tree, by memory
    session.read(0.8)
    sizes = [rss(r) for r in str(session.screen).split("COMMAND")[1].split("\n")[1:-1] if r.strip()]
    assert sizes == sorted(sizes, reverse=True) and len(sizes) > 3, sizes
    session.type("p")
    session.read(0.8)
    pids = [int(r.split()[0]) for r in str(session.screen).split("COMMAND")[1].split("\n")[1:-1] if r.strip()]
    assert pids == sorted(pids)
    session.type("q")
    assert session.end() == 0


def rss(row):
    """The bytes of the memory column."""
    text = row.split()[3]
    return float(text[:-1]) * 1024 ** "BKMGT".index(text[-1])


def test_hostile_names_reach_no_terminal(top, victim):
    session = top("--interval", "200ms", "--filter", "evil", columns=300, lines=20)
    text = session.until(lambda t: "import subprocess" in t)  # controls and bad UTF-8 would have failed in vt.py
    assert "evil\\x1b[2J\\nname\\x07" in text and "bad\ufffd\ufffdutf8" in text
    assert victim.poll() is None
    session.type("q")
    assert session.end() == 0


def test_choose_look_and_end(top, victim):
    """Down to the only process of the filter, more of it, its functions, and its end: asked for, and refused first."""
    session = top("--interval", "200ms", lines=30)
    started(session)
    session.type("/%d\r" % victim.pid)
    session.until(lambda t: "1 match" in t)
    session.type("\x1b[B")
    session.until(lambda t: "Esc leave" in t)
    session.type("\r")
    session.until(lambda t: "thread (1)" in t and "memory" in t and "%d python" % victim.pid in t)
    session.type("k")
    session.until(lambda t: "end %d python" % victim.pid in t and "SIGTERM" in t)
    session.type("q")  # no: neither it nor we
    session.until(lambda t: "Esc leave" in t)
    assert victim.poll() is None
    session.type("f")
    session.until(lambda t: "q leaves" in t and "process %d:" % victim.pid in t, 60)
    session.type("q")
    session.until(lambda t: "thread (1)" in t)
    session.type("ky")
    session.until(lambda t: "SIGTERM sent to process %d" % victim.pid in t)
    assert victim.wait(20) == -signal.SIGTERM
    session.until(lambda t: "%d has ended" % victim.pid in t)
    session.type("f")
    session.until(lambda t: "the chosen process has ended" in t)
    session.type("\x1b")
    session.until(lambda t: "has ended" not in t)
    session.type("q")
    assert session.end() == 0
    assert_restored(session)


def test_functions_that_cannot_be_seen(top, victim):
    """A shell has no Python to look into: why is told in the last line of a terminal that is ours again."""
    sleeper = subprocess.Popen(["sleep", "300"])
    try:
        session = top("--interval", "200ms", columns=160)
        started(session)
        session.type("/%d\r" % sleeper.pid)
        session.until(lambda t: "1 match" in t)
        session.type("\x1b[Bf")
        session.until(lambda t: "tare attach" in t.split("\n")[-1], 60)
        session.type("q")
        assert session.end() == 0
        assert_restored(session)
    finally:
        sleeper.kill()
        sleeper.wait()


def test_stop_and_continue_while_functions_are_shown(top, victim):
    """^Z stops both, with the terminal given back; the shell wakes the one it knows."""
    session = top("--interval", "200ms")
    started(session)
    session.type("/%d\r" % victim.pid)
    session.until(lambda t: "1 match" in t)
    session.type("\x1b[Bf")
    session.until(lambda t: "q leaves" in t, 60)
    session.type("\x1a")
    deadline = time.monotonic() + 20
    while "T" not in open("/proc/%d/stat" % session.process.pid).read().rsplit(")", 1)[1][:3]:
        assert time.monotonic() < deadline
        session.read(0.05)
    session.read(0.2)
    assert_restored(session)
    session.process.send_signal(signal.SIGCONT)
    session.until(lambda t: "q leaves" in t and 1049 in session.screen.modes, 60)
    session.process.send_signal(signal.SIGTERM)  # to us alone: passed on
    assert session.end(60) == 143
    assert_restored(session)


def test_mouse(top, victim):
    session = top("--interval", "200ms", lines=30)
    started(session)
    assert b"\x1b[?1000h" in session.raw
    session.type("/%d\r" % victim.pid)
    session.until(lambda t: "1 match" in t)
    row = next(i for i, r in enumerate(session.screen.rows()) if r.lstrip().startswith(str(victim.pid)))
    session.type("\x1b[<0;5;%dM\x1b[<0;5;%dm" % (row + 1, row + 1))
    session.until(lambda t: "Esc leave" in t)
    session.type("\x1b[<0;5;%dM" % (row + 1))
    session.until(lambda t: "thread (1)" in t)
    session.type("\x1b[<64;5;5M\x1b[<65;5;5Mq")
    assert session.end() == 0
    assert session.raw.count(b"\x1b[?1000h") == session.raw.count(b"\x1b[?1000l")
    assert_restored(session)


def test_help_and_unknown_keys(top):
    session = top("--interval", "200ms")
    started(session)
    session.type("?")
    session.until(lambda t: "keys (any key closes this)" in t)
    session.type("q")  # closes the help, not the program
    session.until(lambda t: "keys (any" not in t)
    session.type("zX\x1b[17~\x1bOP\x00\xff".encode("latin1"))
    session.type("1")
    session.until(lambda t: "\ncpu0 " not in t)
    session.type("-")
    session.until(lambda t: "every 0.1s" in t)
    session.type("++")
    session.until(lambda t: "every 0.5s" in t)
    session.type("q")
    assert session.end() == 0


@pytest.mark.parametrize("number,status", [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 0),
                                           (signal.SIGQUIT, 131)])
def test_signals_restore(top, number, status):
    session = top("--interval", "200ms")
    started(session)
    session.process.send_signal(number)
    assert session.end() == status
    assert_restored(session)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGUSR1, signal.SIGALRM,
                                    signal.SIGXCPU, signal.SIGPWR, signal.SIGTRAP, signal.SIGSYS])
def test_crash_restores(top, number):
    session = top("--interval", "200ms")
    started(session)
    session.process.send_signal(number)
    assert session.end() == -number
    assert_restored(session)


def test_ctrl_c_quits(top):
    session = top("--interval", "200ms")
    started(session)
    session.type("\x03")
    assert session.end() == 0
    assert_restored(session)


def test_stop_and_continue(top):
    session = top("--interval", "200ms")
    started(session)
    session.process.send_signal(signal.SIGTSTP)
    deadline = time.monotonic() + 10
    while "T" not in open("/proc/%d/stat" % session.process.pid).read().rsplit(")", 1)[1][:3]:
        assert time.monotonic() < deadline
        session.read(0.05)
    session.read(0.2)
    assert_restored(session)  # while it is stopped the shell has its terminal
    session.process.send_signal(signal.SIGCONT)
    session.read(0.1)
    session.until(lambda t: "CPU%" in t and 1049 in session.screen.modes)
    session.type("q")
    assert session.end() == 0
    assert_restored(session)


def test_terminal_gone(top):
    session = top("--interval", "200ms")
    started(session)
    os.close(session.slave)
    os.close(session.master)
    assert session.process.wait(20) == 129
    session.master, session.slave = os.openpty()


def test_iterations(top):
    session = top("--interval", "100ms", "--iterations", 3)
    assert session.end() == 0
    assert_restored(session)


@pytest.mark.parametrize("env,wanted,never", [
    ({"TERM": "xterm-256color"}, "38;5;", "38;2;"), ({"TERM": "xterm", "COLORTERM": "truecolor"}, "38;2;", "38;5;"),
    ({"TERM": "xterm"}, "0;32", "38;"), ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "0;1", "3"),
])
def test_colors(top, env, wanted, never):
    session = top("--interval", "150ms", env=env)
    started(session)
    session.type("q")
    assert session.end() == 0
    used = " ".join(session.screen.styles)
    assert wanted in used and never not in used, used


def test_ascii(top):
    session = top("--interval", "150ms", columns=100, lines=40, env={"LC_ALL": "C"})
    started(session)
    session.read(0.5)
    session.type("q")
    assert session.end() == 0
    assert all(b < 128 for b in session.raw)


def test_dumb_terminal_is_refused(top):
    session = top(env={"TERM": "dumb"})
    assert session.end() == 2
    assert b"--once" in session.raw and b"\x1b[?1049h" not in session.raw


def test_pid(top, victim, tare):
    session = top("--interval", "200ms", "--pid", victim.pid, columns=100)
    text = session.until(lambda t: "Prog  %d: 2 processes" % victim.pid in t and "COMMAND" in t)
    table = [r for r in text.split("COMMAND")[1].split("\n")[1:-1] if r.strip()]
    assert len(table) == 2 and any("sleep 300" in r for r in table), table
    answer = json.loads(tare("top", "--once", "--interval", "200ms", "--json", "--pid", victim.pid).stdout)
    assert answer["metrics"]["process.count"]["values"][""] == 2
    assert {p["parent"] for p in answer["processes"]} >= {victim.pid}
    assert "tare_processes 2\n" in tare("top", "--once", "--interval", "200ms", "--prom", "--pid", victim.pid).stdout
    subprocess.run(["pkill", "-P", str(victim.pid)], check=True)
    victim.wait()
    session.until(lambda t: "has ended" in t)
    session.type("q")
    assert session.end() == 0


def test_alert_shows(top):
    session = top("--interval", "200ms", "--alert", "load.1m<100000")
    started(session, "ALERT load.1m<100000")
    session.type("q")
    assert session.end() == 0


def test_record_and_replay(top, tare, tmp_path):
    session = top("--interval", "150ms", "--record", "kept.tare", "--iterations", 8, "--alert", "load.1m<100000")
    started(session, "recording")
    assert session.end() == 0
    last = json.loads(tare("top", "--once", "--json", "--replay", "kept.tare").stdout)
    assert last["processes"] and last["metrics"]["cpu.busy"]["rates"]
    session = top("--replay", "kept.tare", "--speed", 60)
    session.until(lambda t: "replay 8 of 8" in t and "COMMAND" in t)
    session.type("\x1b[D")
    session.until(lambda t: "replay 7 of 8" in t and "PAUSED" in t)
    session.type("[")
    session.until(lambda t: "replay 1 of 8" in t)
    session.type("]")
    session.until(lambda t: "replay 8 of 8" in t)
    session.type("[")
    session.until(lambda t: "replay 1 of 8" in t)
    session.type("- ")  # slower, and on
    session.until(lambda t: "replay 8 of 8, x30" in t)
    session.type("q")
    assert session.end() == 0
    assert_restored(session)


def test_killed_recording_is_kept(top, tare):
    session = top("--interval", "100ms", "--record", "kept.tare")
    started(session, "recording")
    session.read(1)
    session.process.send_signal(signal.SIGKILL)
    session.process.wait()
    answer = json.loads(tare("top", "--once", "--json", "--replay", "kept.tare").stdout)
    assert answer["metrics"]["memory.total"]["values"][""] > 0


def test_recording_that_cannot_begin(top):
    session = top("--interval", "100ms", "--record", "/no/such/folder/x.tare")
    assert session.end() == 2
    assert b"/no/such/folder" in session.raw and b"\x1b[?1049h" not in session.raw


def test_full_disk_while_recording(top, tare, tmp_path):
    """The file may not grow beyond some blocks: what is shown goes on, what was written can be read."""
    session = top("--interval", "100ms", "--record", "kept.tare", shell="trap '' XFSZ; ulimit -f 24; exec \"$@\"")
    started(session)
    session.until(lambda t: "cannot write to the trace" in t)
    frame = str(session.screen)
    session.until(lambda t: t != frame)
    session.type("q")
    assert session.end() == 3
    assert_restored(session)
    assert b"cannot write to the trace" in session.raw.split(LEAVE)[1]
    assert json.loads(tare("top", "--once", "--json", "--replay", "kept.tare").stdout)["metrics"]


def test_prometheus_accepts(tare):
    """promtool's own verdict, where Prometheus is installed."""
    text = tare("top", "--once", "--interval", "200ms", "--prom").stdout
    tool = os.environ.get("PROMTOOL", "promtool")
    try:
        done = subprocess.run([tool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no promtool here (Debian: prometheus)")
    assert done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr
