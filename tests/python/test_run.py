# SPDX-License-Identifier: MIT
"""tare run with real programs: what it must leave untouched, what it must survive, and that its sums are the kernel's."""

import datetime
import http.server
import json
import os
import pathlib
import pty
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time

import jsonschema
import pytest

PYTHON = os.path.realpath(sys.executable)


@pytest.fixture(scope="session")
def validator(root):
    return jsonschema.Draft202012Validator(json.loads((root / "docs/schema/run-1.json").read_text()))


@pytest.fixture
def command(build):
    return os.environ.get("TARE", str(build / "tare"))


@pytest.fixture
def watch(tare, validator, tmp_path):
    """watch("--option", .., "--", "program", ..): the document, validated; .done is the finished process."""

    def call(*args, status=0, **more):
        done = tare("run", "-o", "run.json", "--no-history", *args, status=status, **more)
        document = json.loads((tmp_path / "run.json").read_text())
        validator.validate(document)
        document["done"] = done
        return document

    return call


@pytest.fixture
def started(command, clean_env, tmp_path):
    """started("--option", .., "--", "program", ..): a running `tare run`, ended after the test."""
    running = []

    def call(*args, **more):
        process = subprocess.Popen([command, "run", *map(str, args)], cwd=tmp_path, env=clean_env, **more)
        running.append(process)
        return process

    yield call
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait()


def case(document):
    return document["cases"][0]


def metric(document, name, label=""):
    return next(m for m in case(document)["watch"]["metrics"] if m["metric"] == name and m["label"] == label)


def until(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "not within %g s: %s" % (seconds, what)
        time.sleep(0.02)


def is_alive(pid):
    try:
        state = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


# ---- what is left untouched ----


def test_streams_are_the_programs_own(command, clean_env, tmp_path):
    data = bytes(range(256)) * 5000  # more than a pipe holds
    copy = "import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d); sys.stderr.buffer.write(d[:1000])"
    done = subprocess.run([command, "run", "-q", "--no-save", "--", PYTHON, "-c", copy], input=data, cwd=tmp_path,
                          env=clean_env, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0 and done.stdout == data and done.stderr == data[:1000]
    assert not list(tmp_path.iterdir())


def test_summary_goes_to_stderr_only(watch):
    document = watch("--", "sh", "-c", "echo hello")
    assert document["done"].stdout == "hello\n"
    assert "processors on average" in document["done"].stderr
    assert document["kind"] == "run" and document["subject"]["type"] == "command"
    assert document["config"]["command"] == ["sh", "-c", "echo hello"]


def test_closed_streams_stay_closed(command, clean_env, tmp_path):
    look = "for fd in 0 1 2; do if [ -e /proc/$$/fd/$fd ]; then echo open >&9; else echo closed >&9; fi; done"
    line = "exec 9>seen; exec '%s' run --no-save -o run.json -- sh -c \"$1\" <&- >&- 2>&-" % command
    subprocess.run(["sh", "-c", line, "sh", look], cwd=tmp_path, env=clean_env, timeout=120, check=True)
    assert (tmp_path / "seen").read_text().split() == ["closed"] * 3
    json.loads((tmp_path / "run.json").read_text())


@pytest.mark.parametrize("code", [0, 1, 2, 3, 77, 126, 127, 255])
def test_exit_codes(tare, code):
    tare("run", "-q", "--no-save", "--probe", "process", "--", "sh", "-c", "exit %d" % code, status=code)


def test_signals_end_it_as_in_a_shell(watch):
    document = watch("--", "sh", "-c", "kill -KILL $$", status=137)
    assert case(document)["watch"]["signal"] == 9 and case(document)["watch"]["exit_code"] is None


def test_environment_and_folder_are_untouched(tare, tmp_path):
    out = tare("run", "-q", "--no-save", "--", "sh", "-c", "pwd; echo $WORD; echo ${TARE_TRACE-none}", env={"WORD": "a b"}).stdout
    assert out.split("\n")[:3] == [str(tmp_path), "a b", "none"]


# Programs of the system show what they inherit; Python would not: it ignores SIGPIPE and SIGXFSZ itself.
VIEW = {
    "status": "grep -E '^(Sig(Blk|Ign|Cgt)|Umask|[UG]id|Groups|Cap|NoNewPrivs|Seccomp|THP|Cpus_allowed_list|Mems_allowed_list)'"
              " /proc/self/status",
    "limits": "cat /proc/self/limits",
    "group, session, terminal, priority, nice, scheduler": "cut -d' ' -f5,6,7,18,19,40,41 /proc/self/stat",
    "descriptors": "exec find /proc/self/fd -mindepth 1 -not -lname '/proc/*' -printf '%f %l\\n'",
    "folder": "pwd; readlink /proc/self/root",
    "the rest": "cat /proc/self/oom_score_adj /proc/self/timerslack_ns /proc/self/personality /proc/self/coredump_filter"
                " /proc/self/cgroup; ls -l /proc/self/ns | sed 's/.* -> //'",
    "environment": "env -0 | sort -z | tr '\\0' '\\n' | grep -v '^_='",
}


def leave_all_alone():
    pass


def ignore_sigpipe():
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as systemd does for every service


def set_all_that_is_inherited():
    for name in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT, signal.SIGUSR2, signal.SIGRTMIN):
        signal.signal(name, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGUSR1, signal.SIGTERM, signal.SIGRTMAX, signal.SIGTTOU})
    os.umask(0o027)
    os.nice(3)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 21))
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pathlib.Path("/proc/self/oom_score_adj").write_text("500")


@pytest.mark.parametrize("before", [leave_all_alone, ignore_sigpipe, set_all_that_is_inherited])
@pytest.mark.parametrize("options", [["--no-save"], ["-o", "run.json", "--no-history"]], ids=["no-trace", "trace"])
def test_the_program_sees_what_it_would_without_tare(command, clean_env, tmp_path, before, options):
    """Field by field: signals, masks, limits, descriptors, ids, priorities, folder, environment."""
    added = {"no-trace": {"TARE_WATCHED=1"}, "trace": {"TARE_WATCHED=1", "TARE_TRACE=%s/run.tare" % tmp_path}}
    with open(tmp_path / "kept", "w", encoding="utf-8") as kept:

        def see(show, *front):
            with open(tmp_path / "seen", "w", encoding="utf-8") as out:
                subprocess.run([*front, "sh", "-c", show], cwd=tmp_path, env={**clean_env, "WORD": "a b"}, stdin=subprocess.DEVNULL,
                               stdout=out, stderr=subprocess.STDOUT, pass_fds=[kept.fileno()], preexec_fn=before, timeout=120,
                               check=False)
            return sorted((tmp_path / "seen").read_text().splitlines())

        for field, show in VIEW.items():
            plain, watched = see(show), see(show, command, "run", "-q", *options, "--")
            assert plain, field
            if field == "environment":
                names = added["trace" if "-o" in options else "no-trace"]
                assert set(watched) - set(plain) == names
                watched = [line for line in watched if line not in names]
            assert watched == plain, field


def test_a_terminal_is_passed_on(command, clean_env, tmp_path):
    """The program sees the terminal, is in its foreground group, and Ctrl-C reaches it: its handler decides the code."""
    program = "import os, signal, sys, time\nsignal.signal(signal.SIGINT, lambda *a: (print('caught', flush=True), sys.exit(5)))\n" \
              "print('tty', os.isatty(0), os.tcgetpgrp(0) == os.getpgrp(), flush=True)\ntime.sleep(60)"
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execvpe(command, [command, "run", "-q", "--no-save", "--", PYTHON, "-c", program], clean_env)
    said = b""

    def wait_for(word):
        nonlocal said
        end = time.monotonic() + 60
        while word not in said:
            assert time.monotonic() < end, said
            if select.select([master], [], [], 1)[0]:
                said += os.read(master, 1000)

    wait_for(b"tty True True")
    os.write(master, b"\x03")
    wait_for(b"caught")
    assert said.count(b"caught") == 1
    _, status = os.waitpid(pid, 0)
    os.close(master)
    assert os.waitstatus_to_exitcode(status) == 5


# ---- signals and children ----


@pytest.mark.parametrize("name", ["TERM", "HUP", "USR1", "USR2", "INT", "QUIT"])
def test_signals_are_passed_on(started, tmp_path, name):
    program = "trap 'echo %s >got; exit 9' %s; echo >ready; while :; do sleep 0.05; done" % (name, name)
    process = started("-q", "--no-save", "--", "sh", "-c", program)
    until((tmp_path / "ready").exists, "the program is up")
    process.send_signal(getattr(signal, "SIG" + name))
    assert process.wait(60) == 9
    assert (tmp_path / "got").read_text() == name + "\n"


COUNTS = """import signal, time
got = []
for s in (signal.SIGTERM, signal.SIGINT): signal.signal(s, lambda n, f: got.append(n))
print("up", flush=True)
end = time.monotonic() + 1
while time.monotonic() < end: time.sleep(0.02)
print(len(got))"""


@pytest.mark.parametrize("name", ["TERM", "INT"])
@pytest.mark.parametrize("send", [os.kill, os.killpg])
def test_a_signal_arrives_once(started, name, send):
    """Whether it was sent to tare or to the whole group, and as often as it was sent."""
    process = started("-q", "--no-save", "--", PYTHON, "-c", COUNTS, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout.readline() == "up\n"
    for _ in range(2):
        send(process.pid, getattr(signal, "SIG" + name))
        time.sleep(0.3)
    assert process.stdout.read() == "2\n"
    assert process.wait(60) == 0


def test_the_end_of_the_terminal_ends_the_program(command, clean_env, tmp_path):
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execvpe(command, [command, "run", "-q", "--no-save", "--", "sh", "-c", "echo $$ >pid; exec sleep 60"], clean_env)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the program is up")
    os.close(master)
    begun = time.monotonic()
    _, status = os.waitpid(pid, 0)
    assert time.monotonic() - begun < 30
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGHUP


def test_a_witness_that_somebody_ends_is_missed_by_nobody(started, tmp_path):
    process = started("-q", "--no-history", "-o", "run.json", "--", PYTHON, "-c", COUNTS, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n"
    children = pathlib.Path("/proc/%d/task/%d/children" % (process.pid, process.pid)).read_text().split()
    witness = [int(c) for c in children if pathlib.Path("/proc/%s/comm" % c).read_text() == "tare-witness\n"]
    assert len(witness) == 1
    os.kill(witness[0], signal.SIGKILL)
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    assert process.stdout.read() == "1\n"
    assert process.wait(60) == 0
    assert case(json.loads((tmp_path / "run.json").read_text()))["watch"]["still_running"] == 0


def test_nothing_of_tare_is_left_when_it_is_killed(started, tmp_path):
    process = started("-q", "--no-save", "--", "sh", "-c", "echo >ready; sleep 60", start_new_session=True)
    until((tmp_path / "ready").exists, "the program is up")
    process.kill()
    process.wait()

    def helpers():
        listed = subprocess.run(["ps", "-o", "pgid=,comm=", "-A"], capture_output=True, text=True, check=True).stdout
        return [line for line in listed.splitlines() if line.split()[0] == str(process.pid) and "tare" in line]

    until(lambda: not helpers(), "only the program is left")
    os.killpg(process.pid, signal.SIGKILL)


def test_the_waiting_for_a_daemon_can_be_ended(started, tmp_path):
    process = started("-q", "--no-history", "-o", "run.json", "--wait-all", "--", PYTHON, "-c", DAEMON % 60)
    until(lambda: (tmp_path / "daemon").exists() and (tmp_path / "daemon").read_text(), "the daemon is up")
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 3
    os.kill(int((tmp_path / "daemon").read_text()), signal.SIGKILL)
    assert case(json.loads((tmp_path / "run.json").read_text()))["watch"]["still_running"] == 1


def test_a_short_program_takes_its_processor_time(watch):
    """The clock starts before the program does, however soon that ends. (The start of its process is in the sum.)"""
    for _ in range(10):
        document = watch("--probe", "process", "--", "true")
        cpu = case(document)["cpu"]
        assert case(document)["latency_ns"]["p50"]["value"] * 3 >= cpu["user_ns"] + cpu["system_ns"]


def test_stopped_and_continued(started, tmp_path):
    """tare stopped and continued: the program went on, samples are late and said to be."""
    program = "echo >ready; while [ ! -e end ]; do sleep 0.05; done; exit 4"
    process = started("-q", "--no-history", "-o", "run.json", "--interval", "20ms", "--", "sh", "-c", program)
    until((tmp_path / "ready").exists, "the program is up")

    def samples_taken(n):
        """tare sleeps between samples: that many more sleeps from now on."""
        def sleeps():
            status = pathlib.Path("/proc/%d/status" % process.pid).read_text()
            return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.M).group(1))
        begun = sleeps()
        until(lambda: sleeps() >= begun + n, "tare samples")

    samples_taken(10)
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.4)
    process.send_signal(signal.SIGCONT)
    samples_taken(10)
    (tmp_path / "end").touch()
    assert process.wait(60) == 4
    document = json.loads((tmp_path / "run.json").read_text())
    assert case(document)["watch"]["late"] >= 1
    assert metric(document, "self.late")["max"] < 0.4 + 5


def test_a_program_that_is_stopped_is_waited_for(started, tmp_path):
    process = started("-q", "--no-save", "--", "sh", "-c", "echo $$ >pid; sleep 0.1; kill -STOP $$; exit 6")
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the program is up")
    pid = int((tmp_path / "pid").read_text())
    until(lambda: pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()[0] == "T", "it is stopped")
    assert process.poll() is None
    os.kill(pid, signal.SIGCONT)
    assert process.wait(60) == 6


DAEMON = "import os, sys, time\nif os.fork(): os._exit(3)\nos.setsid()\nif os.fork(): os._exit(0)\n" \
         "open('daemon', 'w').write(str(os.getpid()))\nos.close(0); os.close(1); os.close(2)\ntime.sleep(%g)\nopen('end', 'w').write('x')"


def test_a_daemon_is_left_running(watch, tmp_path):
    begun = time.monotonic()
    document = watch("--", PYTHON, "-c", DAEMON % 90, status=3)
    assert time.monotonic() - begun < 80
    until(lambda: (tmp_path / "daemon").exists() and (tmp_path / "daemon").read_text(), "the daemon is up")
    pid = int((tmp_path / "daemon").read_text())
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)
    assert document["done"].returncode == 3


def test_wait_all_waits_for_the_daemon(watch, tmp_path):
    document = watch("--wait-all", "--", PYTHON, "-c", DAEMON % 1, status=3)
    assert (tmp_path / "end").exists()
    assert case(document)["watch"]["still_running"] == 0
    assert case(document)["latency_ns"]["p50"]["value"] > 1e9


def test_fork_storm(watch):
    """2,000 short children: none is left behind, and processor time is the kernel's own total."""
    storm = "import os, resource\nfor i in range(2000):\n p = os.fork()\n if p == 0:\n  sum(range(2000)); os._exit(0)\n os.waitpid(p, 0)\n" \
            "s, c = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))\n" \
            "print(s.ru_utime + s.ru_stime + c.ru_utime + c.ru_stime)"
    document = watch("--", PYTHON, "-c", storm)
    kernel = float(document["done"].stdout)
    cpu = case(document)["cpu"]
    ours = (cpu["user_ns"] + cpu["system_ns"]) / 1e9
    assert kernel <= ours * 1.0001 and ours - kernel < 0.01 * kernel + 0.05  # the rest: the end of the interpreter


def test_orphans_are_counted(watch):
    """Children that nobody waits for are adopted and reaped: their time is in the sum."""
    program = "import os, time\nfor i in range(20):\n if os.fork() == 0:\n  if os.fork() == 0:\n   t = time.process_time()\n" \
              "   while time.process_time() - t < 0.05: pass\n  os._exit(0)\n os.wait()\n"
    document = watch("--wait-all", "--", PYTHON, "-c", program)
    cpu = case(document)["cpu"]
    assert (cpu["user_ns"] + cpu["system_ns"]) / 1e9 >= 1.0
    assert case(document)["watch"]["still_running"] == 0


def test_as_process_one(command, clean_env, tmp_path):
    """In a PID namespace of its own: orphans are reaped, the code is passed on."""
    line = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*line, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no namespaces here")
    program = "for i in 1 2 3; do sh -c 'sleep 0.1 &'; done; sleep 0.5; ps -o stat= | grep -c Z; exit 11"
    done = subprocess.run([*line, command, "run", "-q", "--no-save", "--", "sh", "-c", program], cwd=tmp_path, env=clean_env,
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 11, done.stderr
    assert done.stdout == "0\n"


# ---- faults ----


def test_kill_of_the_program_loses_nothing(started, tare, tmp_path):
    process = started("-q", "--no-history", "-o", "run.json", "--interval", "20ms", "--", "sh", "-c", "echo $$ >pid; sleep 60 & wait")
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the program is up")
    time.sleep(0.5)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert process.wait(60) == 137
    document = json.loads((tmp_path / "run.json").read_text())
    assert case(document)["watch"]["signal"] == 9 and case(document)["watch"]["lost"] == 0
    assert case(document)["watch"]["samples"] >= 5
    assert case(document)["watch"]["still_running"] == 1
    assert "%d samples of probes" % case(document)["watch"]["samples"] in tare("report", "run.tare").stdout


def test_kill_of_tare_leaves_the_program_and_the_trace(started, tare, tmp_path):
    process = started("-q", "--no-history", "-o", "run.json", "--interval", "20ms", "--",
                      "sh", "-c", "echo $$ >pid; sleep 3; echo done >end")
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the program is up")
    time.sleep(1)
    process.kill()
    killed = datetime.datetime.now(datetime.timezone.utc)
    process.wait()
    pid = int((tmp_path / "pid").read_text())
    assert is_alive(pid)
    last = json.loads(tare("top", "--replay", "run.tare", "--once", "--json").stdout)
    at = datetime.datetime.fromisoformat(last["at"].replace("Z", "+00:00"))
    assert (killed - at).total_seconds() < 0.8, "the trace ends long before the kill"
    text = tare("report", "run.tare").stdout
    assert "over the run" in text and "process.memory.rss" in text and "phases" in text
    assert not (tmp_path / "run.json").exists()
    until((tmp_path / "end").exists, "the program ended by itself")


def test_disk_full(tare, tmp_path, command, clean_env):
    """A trace that may not grow: the program runs on, the loss is counted and said, the document is there."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))

    done = subprocess.run([command, "run", "--no-history", "--interval", "2ms", "--trace", "full.tare", "--json", "--",
                           "sh", "-c", "ulimit -f unlimited; sleep 1.5; exit 8"],
                          cwd=tmp_path, env=clean_env, capture_output=True, text=True, timeout=120, check=False, preexec_fn=limit)
    assert done.returncode == 8, done.stderr
    assert "not in the trace: " in done.stderr
    document = json.loads(done.stderr[done.stderr.index("\n{") + 1:done.stderr.rindex("}") + 1])
    watched = case(document)["watch"]
    assert 0 < watched["lost"] < watched["samples"] and watched["exit_code"] == 8
    assert (tmp_path / "full.tare").stat().st_size <= 60_000
    told = tare("report", "full.tare").stdout
    assert "nothing" not in told.rsplit("lost ", 1)[1].splitlines()[0], told


def test_the_json_of_a_trace_has_the_samples(tare, watch, validator, tmp_path):
    """The summary that the trace alone gives is that of the document, as far as samples tell."""
    document = watch("--interval", "20ms", "--no-default-alerts", "--alert", "process.count>0", "--", PYTHON, "-c", BRIEFLY_LARGE)
    kept = json.loads(tare("report", "--json", "run.tare").stdout)["samples"]
    assert kept["schema"] == "tare.watched/1"
    ours = case(document)["watch"]
    for metric_of in ("metrics", "phases"):
        assert [m.get("metric", m.get("name")) for m in kept["watch"][metric_of]] == [m.get("metric", m.get("name")) for m in ours[metric_of]]
    rss = next(m for m in kept["watch"]["metrics"] if m["metric"] == "process.memory.rss")
    assert rss["max"] == metric(document, "process.memory.rss")["max"] > 100e6
    assert [a["rule"] for a in kept["watch"]["alerts"]] == ["process.count>0"]
    document["cases"][0]["watch"], document["findings"] = kept["watch"], kept["findings"]
    del document["done"]
    validator.validate(document)


def test_a_trace_without_its_end_says_so(started, tare, tmp_path):
    """Nobody wrote the end of the sampler's record: what is missing is not known, so it is not "nothing"."""
    process = started("--no-history", "--interval", "20ms", "-o", "run.json", "--", "sleep", "60")
    until(lambda: (tmp_path / "run.tare").exists() and (tmp_path / "run.tare").stat().st_size > 3000, "samples")
    process.kill()
    process.wait()
    assert "did not end its record of samples" in tare("report", "run.tare").stdout


def test_unwritable_places(tare, tmp_path):
    """Known before the program starts; what goes wrong only then takes nothing from the program."""
    (tmp_path / "file").write_text("x")
    done = tare("run", "--output-dir", "file/sub", "--", "touch", "ran", status=2)
    assert "--output-dir file/sub: cannot make the folder" in done.stderr and not (tmp_path / "ran").exists()
    done = tare("run", "-o", "a/run.json", "--", "touch", "ran", status=2)
    assert "there is no folder a" in done.stderr and not (tmp_path / "ran").exists()
    (tmp_path / "a").mkdir()
    done = tare("run", "-o", "a/run.json", "--", "sh", "-c", "mv a b; exit 9", status=9)
    assert "the run document is lost: " in done.stderr


def test_nobody_reads_stderr(command, clean_env, tmp_path):
    """A full pipe as stderr must not stop the sampling: alerts are left out, the document has them."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    process = subprocess.Popen([command, "run", "--no-history", "-o", "run.json", "--interval", "20ms", "--no-default-alerts",
                                "--alert", "process.count>0", "--", "sleep", "0.5"], cwd=tmp_path, env=clean_env, stderr=writer)
    os.close(writer)
    time.sleep(1.5)
    while os.read(reader, 65536):
        pass
    os.close(reader)
    assert process.wait(60) == 0
    watched = case(json.loads((tmp_path / "run.json").read_text()))["watch"]
    assert len(watched["alerts"]) == 1 and watched["late"] <= watched["samples"] / 2


def test_odd_names(watch, tmp_path):
    odd = os.fsdecode(b"a\nb \xff\xc3")
    (tmp_path / odd).write_text("#!/bin/sh\nsleep 0.3\n")
    (tmp_path / odd).chmod(0o755)
    document = watch("--detail", "--", "./" + odd)
    assert case(document)["watch"]["exit_code"] == 0


# ---- alerts ----


def test_on_alert_gets_json_and_cannot_block(watch, tmp_path):
    script = tmp_path / "notify.sh"
    script.write_text("#!/bin/sh\ncat >>alerts.jsonl\necho to-stderr\n")
    script.chmod(0o755)
    document = watch("--interval", "20ms", "--no-default-alerts", "--alert", "process.memory.rss>90MB for 100ms", "--on-alert",
                     "./notify.sh", "--", PYTHON, "-c", "import time\nb = bytearray(100_000_000)\ntime.sleep(1)\ndel b\ntime.sleep(1)")
    events = [json.loads(line) for line in (tmp_path / "alerts.jsonl").read_text().splitlines()]
    assert events[0]["state"] == "fired" and events[0]["metric"] == "process.memory.rss" and events[0]["value"] > 90e6
    assert events[1]["state"] == "cleared" and events[1]["value"] < 90e6 and len(events) == 2
    assert "to-stderr" in document["done"].stderr and document["done"].stdout == ""
    alerts = case(document)["watch"]["alerts"]
    assert len(events) == case(document)["watch"]["hooks"] == 2 * len(alerts)
    assert all(a["end_s"] > a["start_s"] for a in alerts)


def test_json_is_nothing_but_json(tare):
    said = tare("run", "--json", "--no-save", "--no-default-alerts", "--alert", "process.memory.rss>1B", "--interval", "20ms", "--",
                "sleep", "0.3").stderr
    assert len(case(json.loads(said))["watch"]["alerts"]) == 1


def test_a_hook_that_hangs_is_killed(watch):
    document = watch("--interval", "50ms", "--no-default-alerts", "--alert", "process.count>0", "--on-alert", "sleep 100",
                     "--", "sleep", "0.5")
    watched = case(document)["watch"]
    assert watched["hooks"] == 1 and watched["hooks_bad"] == 1
    assert watched["samples"] >= 5


@pytest.fixture
def endpoint():
    """endpoint(answer, delay): a web server of our own; .url, and .got, the (path, headers, JSON) of each POST."""
    servers = []

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

    def call(answer=204, delay=0):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.got.append((self.path, dict(self.headers), json.loads(body)))
                over.wait(delay)
                self.send_response(answer)
                self.end_headers()

            def log_message(self, *args):
                pass

        server, over = Server(("127.0.0.1", 0), Handler), threading.Event()
        server.got, server.url = [], "http://127.0.0.1:%d/alerts?token=secret" % server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append((server, over))
        return server

    yield call
    for server, over in servers:
        over.set()
        server.shutdown()
        server.server_close()


BRIEFLY_LARGE = "import time\nb = bytearray(100_000_000)\ntime.sleep(0.6)\ndel b\ntime.sleep(0.6)"
ALERTING = ("--interval", "20ms", "--no-default-alerts", "--alert", "process.memory.rss>90MB for 100ms", "--probe", "process")


def test_a_webhook_gets_each_alert_once(watch, endpoint, tmp_path):
    server = endpoint()
    document = watch(*ALERTING, "--webhook", server.url, "--on-alert", "cat >>alerts.jsonl", "--", PYTHON, "-c", BRIEFLY_LARGE)
    by_command = [json.loads(line) for line in (tmp_path / "alerts.jsonl").read_text().splitlines()]
    assert sorted((alert["state"] for _, _, alert in server.got)) == ["cleared", "fired"]
    for path, headers, alert in server.got:
        assert path == "/alerts?token=secret" and headers["Content-Type"] == "application/json" and alert in by_command
    watched = case(document)["watch"]
    assert (watched["hooks"], watched["hooks_bad"]) == (4, 0)
    assert "web hook" not in document["done"].stderr


def refusing_url():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return "http://127.0.0.1:%d/secret" % taken.getsockname()[1]


@pytest.mark.parametrize("answer, reason", [(500, "answered 500"), (302, "redirections are not followed"), (None, "onnect")])
def test_a_webhook_that_fails_is_counted_and_told(watch, endpoint, answer, reason):
    url = endpoint(answer).url if answer else refusing_url()
    document = watch(*ALERTING, "--webhook", url, "--", PYTHON, "-c", BRIEFLY_LARGE)
    watched, said = case(document)["watch"], document["done"].stderr
    assert (watched["hooks"], watched["hooks_bad"], watched["exit_code"]) == (2, 2, 0)
    assert "web hook: not delivered: 2 (127.0.0.1" in said and reason in said and "secret" not in said


def test_a_webhook_that_hangs_holds_nothing_up(watch, endpoint):
    """The server answers too late: samples come all the same, and the waiting at the end is bounded."""
    document = watch(*ALERTING, "--webhook", endpoint(delay=60).url, "--", PYTHON, "-c", BRIEFLY_LARGE)
    watched = case(document)["watch"]
    assert watched["hooks_bad"] == 2 and "timed out" in document["done"].stderr
    assert watched["samples"] > 20 and case(document)["latency_ns"]["p50"]["value"] < 8e9


def test_a_webhook_of_the_environment(tare, endpoint):
    server = endpoint()
    tare("run", "--no-save", *ALERTING[:3], "--alert", "process.count>0", "--", "sleep", "0.2", env={"TARE_WEBHOOK": server.url})
    assert [alert["rule"] for _, _, alert in server.got] == ["process.count>0"]


# ---- where things go ----


def test_the_trace_is_called_as_the_document(tare, command, clean_env, tmp_path):
    """One name for both, also of two runs in one second; the last line names both."""
    with subprocess.Popen([command, "run", "-q", "--", "sleep", "0.5"], cwd=tmp_path, env=clean_env) as first:
        said = tare("run", "--", "sleep", "0.1").stderr
        assert first.wait() == 0
    kept = sorted((tmp_path / "tare-results").glob("run_sleep-0.*"))
    assert len(kept) == 4 and len({p.stem for p in kept}) == 2
    for document in (p for p in kept if p.suffix == ".json"):
        assert json.loads(document.read_text())["trace"] == document.stem + ".tare"
    last = said.splitlines()[-1].split()
    assert last[:4] == ["tare", "run:", "kept", "as"] and last[5] == "and"
    assert pathlib.Path(last[4]).stem == pathlib.Path(last[6]).stem and all((tmp_path / p).exists() for p in (last[4], last[6]))


def test_a_program_that_cannot_start_takes_no_name(tare, tmp_path):
    tare("run", "--", "./none", status=127)
    assert not list(tmp_path.glob("tare-results/[!.]*"))


def test_phases_end_with_the_program(watch):
    for program in ("true", "sleep 0.15"):
        document = watch("--interval", "20ms", "--", *program.split())
        wall = case(document)["latency_ns"]["p50"]["value"] / 1e9
        phases = case(document)["watch"]["phases"]
        assert phases and phases[0]["start_s"] == 0 and phases[-1]["end_s"] <= wall + 1e-6


def test_the_program_and_the_machine_are_told_apart(watch):
    said = watch("--interval", "20ms", "--", PYTHON, "-c", "import time\nwhile time.process_time() < 0.5: pass")["done"].stderr
    program, machine = (said.index("the %s over the run" % who) for who in ("program", "machine"))
    assert program < said.index("\nprocess.cpu ", program) < machine < said.index("\nmemory ", machine)
    assert "\nprocess." not in said[machine:]


# ---- the numbers ----


def test_as_time_says(watch, tmp_path):
    """Processor time and peak memory are those of /usr/bin/time for the same process."""
    if not os.path.exists("/usr/bin/time"):
        pytest.skip("no /usr/bin/time")
    program = "import time\nb = bytearray(80_000_000)\nt = time.process_time()\nwhile time.process_time() - t < 0.5: pass"
    document = watch("--", "/usr/bin/time", "-o", "time.txt", "-f", "%U %S %M", PYTHON, "-c", program)
    user, system, kib = (float(x) for x in (tmp_path / "time.txt").read_text().split())
    ours = case(document)
    assert abs((ours["cpu"]["user_ns"] + ours["cpu"]["system_ns"]) / 1e9 - user - system) < 0.01 * (user + system) + 0.02
    assert abs(ours["memory"]["rss_peak"] / 1024 - kib) <= 0.01 * kib
    assert 80e6 < ours["watch"]["tree_rss_peak"] < ours["memory"]["rss_peak"] * 1.2


def test_every_null_has_a_reason(tare, watch, tmp_path):
    document = watch("--", "true")
    reasons = case(document)["unknown"]
    for key, value in case(document).items():
        if value is None:
            assert key in reasons, key


def test_history_and_report(tare, tmp_path):
    for _ in range(2):
        tare("run", "-q", "--", "true")
    assert len(list((tmp_path / "tare-results").glob("run_true_*.json"))) == 2
    assert len(list((tmp_path / "tare-results").glob("run_*.tare"))) == 2
    listed = json.loads(tare("history", "list", "--json").stdout)
    assert len(listed["runs"] if isinstance(listed, dict) else listed) == 2
    text = tare("report", next((tmp_path / "tare-results").glob("run_true_*.json"))).stdout
    assert "exit code 0" in text


def test_scopes_of_libtare_are_in_the_same_trace(root, build, tare, tmp_path):
    (tmp_path / "app.c").write_text('#include <tare/tare.h>\n#include <unistd.h>\n'
                                    'int main(void) { TARE_SCOPE("whole"); chdir("/"); usleep(200000); return 0; }\n')
    subprocess.run(["cc", "-I", root / "include", "app.c", build / "libtare.a", "-pthread", "-o", "app"], cwd=tmp_path, check=True)
    tare("run", "-q", "--no-history", "-o", "run.json", "--", "./app")
    assert json.loads((tmp_path / "run.json").read_text())["trace"] == "run.tare"
    assert "whole" in tare("report", "run.tare").stdout
    last = json.loads(tare("top", "--replay", "run.tare", "--once", "--json").stdout)
    assert "process.cpu.user" in last["metrics"]


def test_the_name_of_the_trace_is_no_pattern(command, clean_env, tmp_path):
    folder = tmp_path / "a%p"
    folder.mkdir()
    said = subprocess.run([command, "run", "-q", "--no-history", "-o", "x%p.json", "--", "sh", "-c", "echo $TARE_TRACE"], cwd=folder,
                          env=clean_env, capture_output=True, text=True, timeout=60, check=True).stdout
    assert said == str(folder / "x%p.tare").replace("%", "%%") + "\n"
    assert (folder / "x%p.tare").exists()


def test_the_trace_of_a_person_and_of_a_run_around_it(tare, tmp_path, command):
    tare("run", "-q", "--no-history", "--", "true", env={"TARE_TRACE": "mine.tare"})
    document = json.loads(next((tmp_path / "tare-results").glob("*.json")).read_text())
    assert (tmp_path / "mine.tare").exists() and document["trace"] is None and document["config"]["trace_path"] == "mine.tare"
    tare("run", "-q", "--no-history", "--trace", "outer.tare", "--", command, "run", "-q", "--no-history", "--output-dir", "inner", "--", "true")
    assert len(list((tmp_path / "inner").glob("*.tare"))) == 1
