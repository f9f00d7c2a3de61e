# SPDX-License-Identifier: MIT
"""What a server runs for its clients: nothing unless its operator's file names it, and that in a process that can do no harm."""

import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import uuid

import pytest

from serve_client import WAIT
from served import RUN, command, document, eventually, id_of, server, start  # noqa: F401

PYTHON = "/usr/bin/python3"
SCOPES = "read,ingest,run"
pytestmark = pytest.mark.skipif(not os.path.exists(PYTHON), reason="no " + PYTHON)


def python(code, **more):
    return {"argv": [PYTHON, "-c", code], **more}


@pytest.fixture
def open_folder():
    """One that the user of jobs may look into, wherever the tests lie."""
    with tempfile.TemporaryDirectory(prefix="tare-", dir="/tmp") as path:
        os.chmod(path, 0o755)
        yield pathlib.Path(path)


@pytest.fixture
def serve(start, tmp_path):
    """serve({name: operation}): a server that runs them, with its file."""
    def call(operations, limits=None, **more):
        path = tmp_path / "operations.json"
        path.write_text(json.dumps({"schema": "tare.operations/1", "limits": limits or {}, "operations": operations}))
        path.chmod(0o600)
        return start("--operations", path, "--rate", 0, **more)
    return call


def job(server, token, operation, wait=WAIT, **parameters):
    body = json.dumps({"operation": operation, "parameters": parameters}).encode()
    return server.ask("POST", "/api/v1/jobs?wait=%d" % wait, token=token, body=body)


def record(server, token, id_):
    return server.ask("GET", "/api/v1/jobs/" + id_, token=token).json


def ended(server, token, id_):
    eventually(lambda: record(server, token, id_)["state"] not in ("queued", "running"))
    return record(server, token, id_)


def finished(server, token, operation, **parameters):
    """The job's record at its end."""
    got = job(server, token, operation, wait=0, **parameters)
    assert got.status == 202, got.body
    assert got.headers["location"] == "/api/v1/jobs/" + got.json["id"]
    return ended(server, token, got.json["id"])


def processes_with(mark):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                if mark.encode() in f.read() and int(pid) != os.getpid():
                    found.append(int(pid))
        except OSError:
            pass
    return found


# ---- off by default ----

def test_nothing_is_run_unless_the_operator_says_so(server):
    token = server.token(SCOPES)
    for path in ("/api/v1/jobs", "/finetuning/profile-and-optimize", "/finetuning/optimize-dataset-loading", "/finetuning/optimize-preprocessing",
                 "/finetuning/profile-operation"):
        got = server.ask("POST", path, token=token, body=b"{}")
        assert got.status == 403 and "--operations FILE" in got.json["detail"]
    assert server.ask("GET", "/api/v1/jobs", token=token).json == {"jobs": []}


def test_what_is_not_named_is_not_run(serve):
    server = serve({"good": python("print(1)")})
    got = job(server, server.token(SCOPES), "/bin/sh")
    assert got.status == 403 and "names no operation" in got.json["detail"]


@pytest.mark.parametrize("text, why", [
    ("{", "line 1"), ("[]", "expected an object"), ('{"schema": "tare.operations/2"}', "tare.operations/1"), ("{}", '"schema"'),
    ('{"schema": "tare.operations/1",\n"operation": {}}', 'line 2, byte 44: "operation" is no key here; did you mean "operations"?'),
    ('{"schema": "tare.operations/1", "operations": {"a": {}}}', '"argv" is missing'),
    ('{"schema": "tare.operations/1", "operations": {"a": {"argv": ["ls"]}}}', "absolute path"),
    ('{"schema": "tare.operations/1", "operations": {"a": {"argv": ["/{x}"]}}}', "absolute path"),
    ('{"schema": "tare.operations/1", "operations": {"a": {"argv": ["/bin/ls", "{x}"]}}}', "names no parameter"),
    ('{"schema": "tare.operations/1", "operations": {"a": {"argv": ["/bin/ls"], "timeout": 3}}}', 'did you mean "timeout_s"?'),
    ('{"schema": "tare.operations/1", "operations": {"a": {"argv": ["/bin/ls"], "timeout_s": 0}}}', "whole number from 1"),
    ('{"schema": "tare.operations/1", "operations": {"a": {"argv": ["/bin/ls"], "memory_mb": 1.5}}}', "whole number from 1"),
    ('{"schema": "tare.operations/1", "operations": {"a": {"argv": ["/bin/ls"], "parameters": {"x": {"type": "int"}}}}}', "needs min and max"),
    ('{"schema": "tare.operations/1", "operations": {"a": {"argv": ["/bin/ls"], "parameters": {"x": {"type": "text"}}}}}', "a type is int"),
    ('{"schema": "tare.operations/1", "operations": {"a": {"argv": ["/bin/ls"], "parameters": {"x": {"type": "int", "min": 1, "max": 2, "default": 3}}}}}',
     "default of x"),
    ('{"schema": "tare.operations/1", "operations": {"a": {"argv": ["/bin/ls", "{x}"], "parameters": {"x": {"type": "texts", "max": 1, "bytes": 1}}}}}',
     "no single value"),
    ('{"schema": "tare.operations/1", "operations": {"a": {"argv": ["/bin/ls"]}, "a": {"argv": ["/bin/ls"]}}}', "twice"),
    ('{"schema": "tare.operations/1", "operations": {"a": {"argv": ["/bin/ls"], "env": ["HOME"]}}}', "NAME=value"),
    ('{"schema": "tare.operations/1", "operations": {"a": {"argv": ["/bin/ls"], "reads": ["etc"]}}}', "no absolute path"),
])
def test_a_wrong_file_is_told_with_its_line(command, tmp_path, text, why):
    path = tmp_path / "operations.json"
    path.write_text(text)
    path.chmod(0o600)
    done = subprocess.run([command, "serve", "--data", tmp_path / "data", "--port", "0", "--operations", path], capture_output=True, text=True, timeout=WAIT)
    assert done.returncode == 2 and str(path) in done.stderr and why in done.stderr, done.stderr
    assert not (tmp_path / "data").exists()


def test_a_file_that_others_may_write_is_refused(command, tmp_path):
    path = tmp_path / "operations.json"
    path.write_text('{"schema": "tare.operations/1"}')
    path.chmod(0o666)
    done = subprocess.run([command, "serve", "--data", tmp_path / "data", "--port", "0", "--operations", path], capture_output=True, text=True, timeout=WAIT)
    assert done.returncode == 2 and "others may write it" in done.stderr


# ---- requests ----

PARAMETERS = {
    "n": {"type": "int", "min": 1, "max": 9, "default": 4}, "rate": {"type": "number", "min": 0, "max": 1, "default": 0.5},
    "on": {"type": "bool", "default": True}, "kind": {"type": "enum", "values": ["a", "-b"], "default": "a"},
    "at.names": {"type": "names", "values": ["x", "y"], "optional": True}, "at.texts": {"type": "texts", "max": 2, "bytes": 5, "optional": True},
}
ECHO = "import sys, json; print(json.dumps({'argv': sys.argv[1:], 'stdin': json.load(sys.stdin)}))"


def test_parameters_are_typed_and_nothing_else_gets_through(serve):
    echo = {"argv": [PYTHON, "-c", ECHO, "--n={n}", "{rate}", "{on}", "{kind}"], "parameters": PARAMETERS}
    server = serve({"echo": echo})
    token = server.token(SCOPES)
    plain = job(server, token, "echo")
    assert plain.status == 200, plain.body
    assert plain.json["argv"] == ["--n=4", "0.5", "true", "a"] and plain.json["stdin"] == {"n": 4, "rate": 0.5, "on": True, "kind": "a"}
    given = {"n": 9, "rate": 1, "on": False, "kind": "-b", "at": {"names": ["y", "x"], "texts": ["$(id)", "; ls"]}}
    got = job(server, token, "echo", **given)
    assert got.json["argv"] == ["--n=9", "1", "false", "-b"] and got.json["stdin"] == given
    assert got.json["job"]["state"] == "done" and got.headers["location"] == got.json["job"]["location"]
    for wrong, why in [({"n": 0}, "n: a whole number from 1 to 9"), ({"n": 1.0}, "n: "), ({"n": "1"}, "n: "), ({"rate": 1.01}, "rate: "), ({"on": 1}, "on: "),
                       ({"kind": "c"}, "kind: "), ({"kind": "a --n=1"}, "kind: "), ({"at": {"names": ["z"]}}, "at.names: item 0"),
                       ({"at": {"texts": ["123456"]}}, "at.texts: item 0"), ({"at": {"texts": ["a"] * 3}}, "at.texts: "), ({"at": 1}, "at: an object"),
                       ({"other": 1}, "other: operation echo has no such parameter"), ({"at": {"other": 1}}, "at.other: ")]:
        got = job(server, token, "echo", **wrong)
        assert got.status == 422 and why in got.json["detail"], (wrong, got.body)
    for body in (b"[]", b"{", b'{"operation": 1}', b'{"operation": "echo", "argv": ["/bin/sh"]}', b'{"operation": "echo", "parameters": []}'):
        assert server.ask("POST", "/api/v1/jobs", token=token, body=body).status == 422
    assert server.ask("POST", "/api/v1/jobs?wait=x", token=token, body=b'{"operation": "echo"}').status == 400


def test_a_stored_run_is_handed_over_as_a_file_and_only_within_its_project(serve, document):
    code = "import sys, json; print(json.dumps({'id': json.load(open(sys.argv[1]))['id']}))"
    server = serve({"look": {"argv": [PYTHON, "-c", code, "{run}"], "parameters": {"run": {"type": "run"}}}})
    mine, other = server.token(SCOPES, "--project", "mine"), server.token(SCOPES, "--project", "other")
    text = document(1)
    assert server.ask("POST", "/api/v1/runs", token=mine, body=text).status == 201
    assert job(server, mine, "look", run=id_of(text)).json["id"] == id_of(text)
    for id_ in (id_of(text), "01KA3QZ4M6S1V7W8X9Y0Z1A2B3"):
        got = job(server, other, "look", run=id_)
        assert got.status == 422 and "no such run" in got.json["detail"]
    assert job(server, mine, "look", run="../../etc/passwd").status == 422
    assert job(server, mine, "look").status == 422


def closed_to_jobs(path):
    """Whether a folder on the way is closed to the user that jobs of a root's server have."""
    return os.geteuid() == 0 and any(not os.stat(p).st_mode & 1 for p in (path, *path.parents))


def test_run_documents_of_a_job_are_kept_and_linked(serve, root, open_folder):
    run = open_folder / "run.json"
    run.write_bytes((root / RUN).read_bytes())
    id_ = "01KA3QZ4M6S1V7W8X9Y0000009"
    code = """
import json, os, sys
os.mkdir('tare-results')
run = json.load(open(sys.argv[1]))
json.dump({**run, 'id': '%s'}, open('tare-results/a.json', 'w'))
open('tare-results/b.json', 'w').write('{}')
os.symlink(sys.argv[1], 'tare-results/c.json')
os.mkfifo('tare-results/d.json')
""" % id_
    server = serve({"make": {"argv": [PYTHON, "-c", code, str(run)], "reads": [str(run)]}})
    mine, other = server.token(SCOPES, "--project", "mine"), server.token(SCOPES, "--project", "other")
    told = finished(server, mine, "make")
    assert told["state"] == "done", told
    assert told["record"]["runs"] == [id_] and [r["name"] for r in told["record"]["refused"]] == ["b.json"]
    assert server.ask("GET", "/api/v1/runs/" + id_, token=mine).json["id"] == id_
    assert server.ask("GET", "/api/v1/runs/" + id_, token=other).status == 404


def test_jobs_of_another_project_are_absent(serve):
    server = serve({"sleep": python("import time; time.sleep(600)")})
    mine, other = server.token(SCOPES, "--project", "mine"), server.token(SCOPES, "--project", "other")
    id_ = job(server, mine, "sleep", wait=0).json["id"]
    assert [j["id"] for j in server.ask("GET", "/api/v1/jobs", token=mine).json["jobs"]] == [id_]
    assert server.ask("GET", "/api/v1/jobs", token=other).json == {"jobs": []}
    assert server.ask("GET", "/api/v1/jobs/" + id_, token=other).status == 404
    assert server.ask("DELETE", "/api/v1/jobs/" + id_, token=other).status == 404
    assert server.ask("DELETE", "/api/v1/jobs/" + id_, token=mine).status == 204
    assert ended(server, mine, id_)["state"] == "cancelled"


# ---- how it is confined ----

def test_the_record_says_how_well_it_was_confined(serve):
    server = serve({"ok": python("print('hello')")})
    told = finished(server, server.token(SCOPES), "ok")
    confined = told["record"]["confined"]
    assert confined["privileges"] and confined["limits"] and confined["level"] in ("full", "partial")
    assert told["record"]["output"] == "hello\n" and told["record"]["result"] is None and told["record"]["exit"] == 0
    assert told["record"]["wall_s"] > 0 and told["started_ms"] >= told["created_ms"] and told["ended_ms"] >= told["started_ms"]


def confined(told, *parts):
    missing = [p for p in parts if not told["record"]["confined"][p]]
    if missing:
        pytest.skip("this kernel does not confine " + ", ".join(missing))


def test_the_environment_is_empty_but_for_an_allow_list(serve):
    server = serve({"env": python("import os, json; print(json.dumps({'env': dict(os.environ), 'fds': sorted(os.listdir('/proc/self/fd'))[:9]}))", env=["MINE=1"])},
                   env={**os.environ, "SECRET": "s3cr3t"})
    got = job(server, server.token(SCOPES), "env").json
    assert set(got["env"]) <= {"PATH", "LANG", "LC_ALL", "HOME", "TMPDIR", "MINE", "LC_CTYPE"} and got["env"]["MINE"] == "1"
    assert set(got["fds"]) <= {"0", "1", "2", "3"}  # 3: the listing itself


def test_files_of_the_server_and_of_others_are_out_of_reach(serve, tmp_path):
    code = """
import os, json, sys
bad = []
def attempt(what, call):
    try:
        call()
        bad.append(what)
    except OSError:
        pass
data = sys.argv[1]
attempt('list data', lambda: os.listdir(data) or (_ for _ in ()).throw(OSError()))
attempt('read store', lambda: open(data + '/history.db', 'rb'))
attempt('write data', lambda: open(data + '/x', 'w'))
attempt('shadow', lambda: open('/etc/shadow'))
attempt('write /tmp', lambda: open('/tmp/tare-escaped', 'w'))
attempt('mount', lambda: os.stat('/proc/1/root/root/.ssh'))
attempt('setuid', lambda: os.setuid(0))
attempt('chroot', lambda: os.chroot('.'))
open('mine', 'w').write('fine')
print(json.dumps({'bad': bad}))
"""
    server = serve({"look": {"argv": [PYTHON, "-c", code, str(tmp_path / "data")]}})
    token = server.token(SCOPES)
    told = finished(server, token, "look")
    confined(told, "files")
    assert told["state"] == "done", told
    assert told["record"]["result"] == {"bad": []}
    assert not os.path.exists("/tmp/tare-escaped")


def test_processes_of_others_cannot_be_killed_or_seen(serve):
    code = """
import os, json, sys, signal
done = []
for pid in (int(sys.argv[1]), os.getppid()):
    try:
        os.kill(pid, signal.SIGKILL if pid != os.getppid() else 0)
        done += [pid] if pid != os.getppid() else []
    except OSError:
        pass
try:
    os.kill(-1, signal.SIGCONT)
except OSError:
    pass
print(json.dumps({'killed': done, 'seen': os.path.exists('/proc/%s/environ' % sys.argv[1]) and os.access('/proc/%s/environ' % sys.argv[1], os.R_OK)}))
"""
    server = serve({"kill": {"argv": [PYTHON, "-c", code, "{pid}"], "parameters": {"pid": {"type": "int", "min": 2, "max": 2**30}}}})
    token = server.token(SCOPES)
    told = finished(server, token, "kill", pid=server.pid)
    confined(told, "processes")
    assert told["record"]["result"] == {"killed": [], "seen": False}
    assert server.ask("GET", "/healthz").status == 200


def test_there_is_no_network(serve):
    code = """
import socket, json, sys
try:
    socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)
    print(json.dumps({'reached': True}))
except OSError:
    print(json.dumps({'reached': False}))
"""
    operation = {"argv": [PYTHON, "-c", code, "{port}"], "parameters": {"port": {"type": "int", "min": 1, "max": 65535}}}
    server = serve({"off": operation, "on": {**operation, "network": True}})
    token = server.token(SCOPES)
    told = finished(server, token, "off", port=server.port)
    confined(told, "network")
    assert told["record"]["result"] == {"reached": False}
    assert finished(server, token, "on", port=server.port)["record"]["result"] == {"reached": True}


def test_system_calls_that_lead_out_are_refused(serve):
    code = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
done = [name for name, call in {'unshare': lambda: libc.unshare(0x10000000), 'mount': lambda: libc.mount(b'x', b'/tmp', b'tmpfs', 0, None),
                                'ptrace': lambda: libc.ptrace(0, 0, 0, 0), 'setns': lambda: libc.setns(0, 0)}.items() if call() == 0]
print(json.dumps({'done': done}))
"""
    server = serve({"call": python(code)})
    told = finished(server, server.token(SCOPES), "call")
    confined(told, "calls")
    assert told["record"]["result"] == {"done": []}


def test_a_fork_bomb_ends_with_its_job(serve):
    mark = "bomb-" + uuid.uuid4().hex
    code = "import os, time  # %s\nfor _ in range(100000):\n    try:\n        os.fork()\n    except OSError:\n        time.sleep(0.01)\n" % mark
    server = serve({"bomb": python(code, timeout_s=3, processes=30)})
    token = server.token(SCOPES)
    told = finished(server, token, "bomb")
    assert told["state"] in ("timeout", "failed"), told
    eventually(lambda: not processes_with(mark))
    assert server.ask("GET", "/healthz").status == 200


def test_memory_files_and_processor_time_have_limits(serve):
    server = serve({
        "memory": python("b = bytearray(3 << 30)", memory_mb=512),
        "file": python("f = open('x', 'wb')\nwhile True: f.write(b'x' * 65536)", file_mb=1),
        "cpu": python("while True: pass", cpu_s=1, timeout_s=300),
        "open": python("fs = [open('/dev/null') for _ in range(100)]", open_files=20),
    })
    token = server.token(SCOPES)
    memory = finished(server, token, "memory")
    assert memory["state"] == "failed" and "MemoryError" in memory["record"]["messages"]
    file = finished(server, token, "file")
    assert file["state"] == "failed" and ("File too large" in (file["record"]["messages"] or "") or "signal 25" in file["record"]["why"])
    assert finished(server, token, "cpu")["record"]["why"] in ("it was ended by signal 24", "it was ended by signal 9")
    assert "Too many open files" in finished(server, token, "open")["record"]["messages"]


def test_a_flood_of_output_is_cut_and_the_rest_counted(serve):
    server = serve({"flood": python("import sys\nfor _ in range(80): sys.stdout.write('x' * 65536)\nsys.stderr.write('end')")})
    told = finished(server, server.token(SCOPES), "flood")
    assert told["state"] == "done"
    assert told["record"]["dropped_bytes"] == 80 * 65536 + 3 - (1 << 20)
    assert len(told["record"]["output"]) <= 65536


def test_children_that_ignore_term_are_killed(serve):
    mark = "stubborn-" + uuid.uuid4().hex
    code = """
import os, signal, time  # %s
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()  # out of the group
    os.fork()
time.sleep(600)
""" % mark
    server = serve({"stubborn": python(code, timeout_s=1)})
    told = finished(server, server.token(SCOPES), "stubborn")
    assert told["state"] == "timeout" and told["record"]["exit"] is None
    eventually(lambda: not processes_with(mark))


def test_one_that_obeys_term_may_tidy_up(serve):
    code = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: (print('tidy', flush=True), sys.exit(0)))\nprint('up', flush=True)\ntime.sleep(600)"
    server = serve({"tidy": python(code, timeout_s=3)})
    told = finished(server, server.token(SCOPES), "tidy")
    assert told["state"] == "timeout" and told["record"]["output"] == "up\ntidy\n"


def test_what_a_job_leaves_in_the_background_ends_with_it(serve):
    mark = "left-" + uuid.uuid4().hex
    server = serve({"leave": python("import os, time  # %s\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)" % mark)})
    assert finished(server, server.token(SCOPES), "leave")["state"] == "done"
    eventually(lambda: not processes_with(mark))


def test_a_program_that_is_not_there(serve):
    server = serve({"gone": {"argv": ["/nowhere/at/all"]}})
    told = finished(server, server.token(SCOPES), "gone")
    assert told["state"] == "failed" and "could not be started: exec" in told["record"]["why"]


def test_folders_of_jobs_are_gone_afterwards(serve, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for p in (scratch, tmp_path, *tmp_path.parents):
        if str(p).startswith("/tmp/") or p == scratch:
            p.chmod(0o777 if p == scratch else 0o755)
    code = "import os\nfor i in range(300):\n    os.mkdir('d'); os.chdir('d')\nopen('f', 'w').close(); os.chmod('..', 0)"
    server = serve({"deep": python(code)}, env={**os.environ, "TMPDIR": str(scratch)})
    told = finished(server, server.token(SCOPES), "deep")
    assert told["state"] == "done", told["record"]
    assert os.listdir(scratch) == []


def test_a_folder_of_the_servers_alone_is_no_hindrance(serve, tmp_path):
    (tmp_path / "mine").mkdir(mode=0o700)
    server = serve({"ok": python("print(1)")}, env={**os.environ, "TMPDIR": str(tmp_path / "mine")})
    told = finished(server, server.token(SCOPES), "ok")
    assert told["state"] == "done", told["record"]


# ---- the queue ----

def test_queue_quota_and_cancelling(serve):
    server = serve({"sleep": python("import time; time.sleep(600)"), "ok": python("print(1)")}, limits={"queue": 3, "per_token": 2})
    a, b = server.token(SCOPES), server.token(SCOPES)
    running = job(server, a, "sleep", wait=0).json["id"]
    waiting = job(server, a, "ok", wait=0).json["id"]
    refused = job(server, a, "ok", wait=0)
    assert refused.status == 429 and "as many jobs" in refused.json["detail"] and refused.headers["retry-after"]
    assert job(server, b, "ok", wait=0).status == 202 and job(server, b, "ok", wait=0).status == 202
    c = server.token(SCOPES)
    assert "too many jobs wait" in job(server, c, "ok", wait=0).json["detail"]
    eventually(lambda: record(server, a, running)["state"] == "running")
    assert record(server, a, waiting)["state"] == "queued"
    assert server.ask("DELETE", "/api/v1/jobs/" + waiting, token=a).status == 204
    assert record(server, a, waiting)["state"] == "cancelled"
    assert server.ask("DELETE", "/api/v1/jobs/" + waiting, token=a).status == 409
    assert server.ask("DELETE", "/api/v1/jobs/" + running, token=a).status == 204
    assert ended(server, a, running)["state"] == "cancelled"
    for j in server.ask("GET", "/api/v1/jobs", token=b).json["jobs"]:
        assert ended(server, b, j["id"])["state"] in ("done", "cancelled")
    assert job(server, a, "ok").status == 200


def test_who_waits_too_long_hears_where_to_look(serve):
    server = serve({"sleep": python("import time; time.sleep(600)")})
    token = server.token(SCOPES)
    got = job(server, token, "sleep", wait=1)
    assert got.status == 202 and got.json["state"] == "running" and got.headers["location"].endswith(got.json["id"])


def test_a_failure_is_told_to_who_waits(serve):
    server = serve({"bad": python("import sys; sys.exit(3)"), "slow": python("import time; time.sleep(600)", timeout_s=1)})
    token = server.token(SCOPES)
    got = job(server, token, "bad")
    assert got.status == 502 and "exit status 3" in got.json["detail"]
    assert job(server, token, "slow").status == 504


# ---- the end of the server ----

def test_a_killed_server_leaves_no_orphan_and_no_job_that_runs(serve, start, tmp_path):
    mark = "orphan-" + uuid.uuid4().hex
    server = serve({"sleep": python("import time  # %s\ntime.sleep(600)" % mark)})
    token = server.token(SCOPES)
    running, queued = (job(server, token, "sleep", wait=0).json["id"] for _ in range(2))
    eventually(lambda: processes_with(mark))
    os.kill(server.pid, signal.SIGKILL)
    eventually(lambda: not processes_with(mark))
    again = start("--operations", tmp_path / "operations.json")
    for id_ in (running, queued):
        told = record(again, token, id_)
        assert told["state"] == "lost" and told["ended_ms"]


def test_an_orderly_end_kills_what_runs_and_answers_who_waits(serve):
    mark = "orderly-" + uuid.uuid4().hex
    server = serve({"sleep": python("import time  # %s\ntime.sleep(600)" % mark)})
    token = server.token(SCOPES)
    client = server.client()
    from serve_client import request
    client.send(request("POST", "/api/v1/jobs?wait=600", token=token, body=b'{"operation": "sleep"}'))
    eventually(lambda: processes_with(mark))
    server.process.send_signal(signal.SIGTERM)
    got = client.reply()
    assert got.status in (202, 502)
    assert server.process.wait(WAIT) == 0
    eventually(lambda: not processes_with(mark))


# ---- the seed's own lines ----

SEED = r"""
curl -X POST http://localhost:8000/finetuning/profile-and-optimize \
  -H "Content-Type: application/json" \
  -d '{
    "model_name": "gpt2",
    "dataset_config": {
      "texts": ["sample text 1", "sample text 2"],
      "max_length": 512
    },
    "training_config": {
      "epochs": 3,
      "learning_rate": 5e-5
    },
    "user_id": 123,
    "profile_data_loading": true,
    "profile_preprocessing": true,
    "profile_training": true
  }'

curl -X POST http://localhost:8000/finetuning/optimize-dataset-loading \
  -H "Content-Type: application/json" \
  -d '{
    "dataset_config": {
      "texts": ["sample text 1", "sample text 2"],
      "max_length": 512
    },
    "batch_size": 32
  }'

curl http://localhost:8000/finetuning/performance-report

curl -X POST http://localhost:8000/finetuning/optimize-preprocessing \
  -H "Content-Type: application/json" \
  -d '{
    "preprocessing_functions": [
      "normalize_text",
      "tokenize_text",
      "augment_text"
    ],
    "sample_data": ["sample text 1", "sample text 2"]
  }'

curl -X POST http://localhost:8000/finetuning/profile-operation \
  -H "Content-Type: application/json" \
  -d '{
    "operation": "data_loading",
    "config": {
      "profile_cpu": true,
      "profile_memory": true,
      "profile_gpu": true
    }
  }'
"""


def curl(server, token, line):
    words = [w for w in shlex.split(line.replace("\\\n", " ")) if w.strip()]
    words = [w.replace("http://localhost:8000", server.address) for w in words]
    done = subprocess.run([words[0], "-sS", "-H", "Authorization: Bearer " + token, *words[1:]], capture_output=True, text=True, timeout=5 * WAIT, check=True)
    return json.loads(done.stdout)


def test_the_lines_of_the_seed(start, root, build):
    """Word for word, but for the host, the port and a token; docs/operations.example.json is the operator's file."""
    if subprocess.run(["curl", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("no curl")
    if closed_to_jobs(root) or closed_to_jobs(pathlib.Path(os.path.realpath(sys.prefix))):
        pytest.skip("the tree, or the Python of these tests, is closed to the user of jobs")
    package = next(build.glob("python/cpython-%d%d" % sys.version_info[:2]))
    text = (root / "docs/operations.example.json").read_text()
    text = text.replace("/usr/bin/python3", sys.executable).replace("/srv/tare", str(root / "examples/server"))
    file = json.loads(text)
    for operation in file["operations"].values():
        if operation["argv"][3] == "finetuning":
            operation["argv"] += ["--budget", "2"]
        operation["env"] = ["PYTHONPATH=%s" % package]
        operation["reads"] = [str(root), str(package), os.path.realpath(sys.prefix), sys.prefix]
    path = root / "build" / ("operations-%s.json" % uuid.uuid4().hex)
    path.write_text(json.dumps(file))
    path.chmod(0o600)
    try:
        server = start("--operations", path)
    finally:
        path.unlink()
    token = server.token(SCOPES)
    lines = [line for line in re.split(r"\n\n", SEED.strip())]
    whole, loading, report, preprocessing, profile = (curl(server, token, line) for line in lines)
    assert whole["model_name"] == "gpt2" and whole["user_id"] == 123, whole
    assert isinstance(whole["optimization_plan"], dict) and whole["recommendations"] and whole["job"]["state"] == "done"
    assert {row["what"] for row in whole["targets"]} >= {"data_loading"}
    assert loading["optimization_plan"] and loading["targets"][0]["what"] == "data_loading"
    assert {"profile-and-optimize", "optimize-dataset-loading"} <= set(report["operations"]) and report["recommendations"] and report["targets"]
    assert preprocessing["targets"][0]["what"] == "preprocessing" and preprocessing["bottlenecks"] is not None
    assert "bottleneck_functions" in profile and profile["job"]["operation"] == "data_loading"
