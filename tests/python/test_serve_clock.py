# SPDX-License-Identifier: MIT
"""A clock that is set while tare serve runs: deadlines, sessions and limits do not notice; what says a time of day does."""

import os
import shutil
import struct
import subprocess

import pytest

from serve_client import request
from served import command, start  # noqa: F401

HOUR = 3600
STEPPED = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile int64_t *step; /* seconds */
__attribute__((constructor)) static void begin(void)
{
    int fd = open(getenv("CLOCK_STEP"), O_RDONLY | O_CLOEXEC);
    void *p = mmap(NULL, 8, PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || p == MAP_FAILED) _exit(99);
    step = p;
    close(fd);
}
int clock_gettime(clockid_t id, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, id, t);
    if (rc == 0 && step && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += *step;
    return rc;
}
time_t time(time_t *out)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (out) *out = t.tv_sec;
    return t.tv_sec;
}
int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    *out = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return 0;
}
"""


@pytest.fixture
def stepped(start, tmp_path):
    """A server, and what sets its clock: so many seconds beside the machine's."""
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    source, library, offset = tmp_path / "step.c", tmp_path / "step.so", tmp_path / "step"
    source.write_text(STEPPED)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    offset.write_bytes(bytes(8))

    def set_clock(seconds):
        with open(offset, "r+b") as f:
            f.write(struct.pack("=q", seconds))

    env = {**os.environ, "LD_PRELOAD": str(library), "CLOCK_STEP": str(offset), "ASAN_OPTIONS": "verify_asan_link_order=0"}
    return start(env=env), set_clock


def date_of(server):
    return server.ask("GET", "/healthz").headers["date"]


@pytest.mark.parametrize("seconds", [1000 * HOUR, -1000 * HOUR])
def test_a_session_lasts_as_long_as_it_lasts(stepped, seconds):
    server, set_clock = stepped
    token = server.token()
    got = server.ask("POST", "/api/v1/session", body=b'{"token": "%s"}' % token.encode())
    assert got.status == 201
    cookie = {"Cookie": got.headers["set-cookie"].partition(";")[0]}
    before = date_of(server)
    set_clock(seconds)
    assert date_of(server) != before  # it is set
    assert server.ask("GET", "/api/v1/session", headers=cookie).json["session"] is not None
    assert server.ask("GET", "/api/v1/runs", headers=cookie).status == 200


@pytest.mark.parametrize("seconds", [1000 * HOUR, -1000 * HOUR])
def test_deadlines_neither_come_at_once_nor_never(stepped, seconds):
    server, set_clock = stepped
    idle, slow, dripping = (server.client() for _ in range(3))
    idle.send(request("GET", "/healthz"))
    assert idle.reply().status == 200
    slow.send(request("GET", "/healthz")[:-2])
    dripping.send(b"GET /healthz HTTP/1.1\r\n")
    set_clock(seconds)
    slow.send(b"\r\n")
    assert slow.reply().status == 200
    idle.send(request("GET", "/healthz"))
    assert idle.reply().status == 200
    assert dripping.reply().status == 408


def test_guesses_are_not_forgiven(stepped):
    server, set_clock = stepped

    def guess():
        return server.ask("GET", "/api/v1/runs", token="tare_read_000000000000_" + "0" * 64).status

    while guess() != 429:
        pass
    set_clock(1000 * HOUR)
    assert 429 in [guess() for _ in range(20)]  # else the whole room of 32 guesses would be there again


def test_a_token_expires_by_the_time_of_day(stepped):
    server, set_clock = stepped
    token = server.token("read", "--expires", "1h")
    assert server.ask("GET", "/api/v1/runs", token=token).status == 200
    set_clock(2 * HOUR)
    assert server.ask("GET", "/api/v1/runs", token=token).status == 401
    set_clock(0)
    assert server.ask("GET", "/api/v1/runs", token=token).status == 200
