# SPDX-License-Identifier: MIT
"""tare serve under a service manager: a socket that is there before it, and what it tells. No systemd is needed."""

import os
import signal
import socket
import subprocess
import tempfile
import uuid

import pytest

from serve_client import WAIT, Client, request
from served import command  # noqa: F401


@pytest.fixture
def manager(command, tmp_path):
    """start(sockets, options): the server with these sockets from descriptor 3 on, as systemd starts it."""
    started = []

    def start(*sockets, options=(), pid="$$", env=None):
        high = [os.dup(s.fileno()) for s in sockets]  # none of them is among those that are written over
        moves = " ".join("%d<&%d" % (3 + i, fd) for i, fd in enumerate(high))
        script = 'LISTEN_PID=%s LISTEN_FDS=%d exec "$@" %s' % (pid, len(high), moves)
        p = subprocess.Popen(["bash", "-c", script, "-", command, "serve", "--data", str(tmp_path / "data"), *options], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, pass_fds=high, env={**os.environ, **(env or {})})
        for fd in high:
            os.close(fd)
        started.append(p)
        return p

    yield start
    for p in started:
        if p.poll() is None:
            p.kill()
        p.communicate(timeout=WAIT)


@pytest.fixture
def short():
    """A folder whose sockets have names of less than 108 bytes, wherever the tests lie."""
    with tempfile.TemporaryDirectory(prefix="tare-", dir="/tmp") as path:
        yield path


def listening(address="127.0.0.1"):
    s = socket.socket()
    s.bind((address, 0))
    s.listen(100)
    return s


def end(process):
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=WAIT)
    return process.returncode, said


def test_a_socket_that_is_there_before_the_server(manager):
    """Who comes before it is answered by it, and who comes between two of them by the second; no client sees the difference."""
    with listening() as s:
        port = s.getsockname()[1]
        for _ in range(2):
            early = [Client(port) for _ in range(20)]
            for c in early:
                c.send(request("GET", "/healthz"))
            p = manager(s, options=("--threads", "4"))
            assert p.stdout.readline().strip() == "http://127.0.0.1:%d" % port
            assert [c.reply().status for c in early] == [200] * 20
            assert end(p)[0] == 0


def test_sockets_of_another_process_are_not_taken(manager):
    with listening() as s:
        p = manager(s, pid="1", options=("--port", "0"))
        port = int(p.stdout.readline().strip().rsplit(":", 1)[1])
        assert port != s.getsockname()[1]
        c = Client(port)
        c.send(request("GET", "/healthz"))
        assert c.reply().status == 200


def test_sockets_that_cannot_be_served(manager, short):
    with listening() as a, listening() as b, socket.socket() as deaf, socket.socket(socket.AF_UNIX) as local, listening("0.0.0.0") as all_of_them:
        local.bind(short + "/x")
        local.listen()
        for sockets, why in (((a, b), "one socket"), ((deaf,), "no TCP socket that listens"), ((local,), "no TCP socket that listens"),
                             ((all_of_them,), "--behind-proxy")):
            p = manager(*sockets)
            _, said = p.communicate(timeout=WAIT)
            assert p.returncode == 2 and why in said, said


@pytest.mark.parametrize("abstract", [False, True])
def test_what_the_manager_is_told(manager, short, abstract):
    name = "@tare-test-%s" % uuid.uuid4() if abstract else short + "/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind("\0" + name[1:] if abstract else name)
        told.settimeout(WAIT)
        p = manager(options=("--port", "0"), env={"NOTIFY_SOCKET": name})
        assert told.recv(4096) == b"READY=1"
        c = Client(int(p.stdout.readline().strip().rsplit(":", 1)[1]))
        c.send(request("GET", "/healthz"))
        assert c.reply().status == 200
        assert end(p)[0] == 0
        assert told.recv(4096) == b"STOPPING=1"


def test_a_manager_that_is_no_address(manager):
    p = manager(options=("--port", "0"), env={"NOTIFY_SOCKET": "not/absolute"})
    _, said = p.communicate(timeout=WAIT)
    assert p.returncode == 2 and "NOTIFY_SOCKET" in said


def test_a_manager_that_is_gone(manager, short):
    p = manager(options=("--port", "0"), env={"NOTIFY_SOCKET": short + "/nobody"})
    assert p.stdout.readline().startswith("http://")
    assert end(p)[0] == 0
