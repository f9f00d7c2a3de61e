# SPDX-License-Identifier: MIT
"""tare top --server: a host as a server knows it, from made-up batches whose answer is known."""

import json
import time

import pytest

from served import command, server, start  # noqa: F401
from test_push import Here, free_port, here  # noqa: F401
from test_serve_live import push, sample
from test_top import top  # noqa: F401

GIB = 1 << 30


def moment(at, seconds, **more):
    """A machine of four processors, one of which works; 1,000 bytes come in each second."""
    return [sample("cpu.count", at, 4), sample("cpu.all", at, 4.0 * seconds), sample("cpu.busy", at, 1.0 * seconds), sample("cpu.user", at, 0.75 * seconds),
            sample("cpu.system", at, 0.25 * seconds), sample("memory.total", at, 8 * GIB), sample("memory.available", at, 6 * GIB),
            sample("net.rx", at, 1000.0 * seconds, "eth0"), *[sample(name, at, value) for name, value in more.items()]]


@pytest.fixture
def seven(server, here):
    """A host gpu7 that was heard twice; when it was the last time."""
    at = int(time.time() * 1000) - 5000
    token = server.token()
    push(server, token, *moment(at - 1000, 100, **{"load.1m": 3.5}), number=1)
    push(server, token, *moment(at, 101), sample("app.queue", at, 3), number=2)
    here.use(server, server.token("read"))
    return at


def once(here, server, *more, rc=0):
    return here.run("top", "--once", "--server", server if isinstance(server, str) else server.address, *more, rc=rc)


def test_one_moment_for_programs(server, here, seven):
    got = json.loads(once(here, server, "--json").stdout)
    assert got["host"] == "gpu7" and got["server"] == server.address and got["interval_s"] == 1
    assert 5 <= got["age_s"] < 3600 and got["at"].startswith(time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seven // 1000)))
    assert got["derived"]["cpu"]["value"] == pytest.approx(0.25) and got["derived"]["memory"]["value"] == pytest.approx(0.25)
    rx = got["metrics"]["net.rx"]
    assert rx["values"] == {"eth0": 101000} and rx["rates"] == {"eth0": pytest.approx(1000)}
    assert "load.1m" in got["absent"]  # it was not sent with the last moment: a gap is a gap
    assert got["derived"]["cpu.iowait.share"]["value"] is None  # nor was that: it is unknown, and no 100 %
    assert got["processes"] == [] and "app.queue" not in got["metrics"]


def test_one_moment_for_people(server, here, seven):
    text = once(here, server).stdout
    first = text.split("\n")[0]
    assert first.startswith("tare top  gpu7  ") and " old, " + server.address in first and "every" not in first
    assert "25.0 %" in text and "2.0G of 8.0G" in text and "eth0" in text
    prom = once(here, server, "--prom").stdout
    assert [line for line in prom.split("\n") if 'interface="eth0"' in line and line.endswith(" 101000")]


def test_a_single_moment_has_no_rates(server, here):
    here.use(server, server.token())
    push(server, here.env["TARE_TOKEN"], *moment(int(time.time() * 1000), 100))
    got = json.loads(once(here, server, "--json").stdout)
    assert got["metrics"]["cpu.busy"]["rates"] == {"": None} and got["derived"]["memory"]["value"] == pytest.approx(0.25)


def test_no_rate_over_a_long_gap(server, here):
    here.use(server, server.token())
    at = int(time.time() * 1000)
    push(server, here.env["TARE_TOKEN"], *moment(at - 61_000, 100), number=1)
    push(server, here.env["TARE_TOKEN"], *moment(at, 161), number=2)
    assert json.loads(once(here, server, "--json").stdout)["metrics"]["cpu.busy"]["rates"] == {"": None}


def test_which_host(server, here, seven):
    push(server, server.token(), sample("load.1m", seven, 1), host="gpu8", number=1)
    said = once(here, server, rc=2).stderr
    assert "which host? --host: gpu7 (heard " in said and ", gpu8 (heard " in said
    said = once(here, server, "--host", "gpu9", rc=2).stderr
    assert "no such host: gpu9; there are gpu7" in said
    assert json.loads(once(here, server, "--host", "gpu8", "--json").stdout)["metrics"]["load.1m"]["values"] == {"": 1}


def test_a_host_of_another_project_is_absent(server, here, seven):
    push(server, server.token("ingest", "--project", "nlp"), sample("load.1m", seven, 1), host="secret", number=1)
    here.use(server, server.token("read", "--project", "ads"))
    said = once(here, server, "--host", "secret", rc=2).stderr
    assert "no host has sent metrics" in said and "gpu7" not in said


def test_servers_that_do_not_answer(server, here):
    here.use(server, server.token("read"))
    assert "no host has sent metrics (tare run --push)" in once(here, server, rc=2).stderr
    port = free_port()
    assert "server away: http://127.0.0.1:%d: Connection refused" % port in once(here, "http://127.0.0.1:%d" % port, rc=3).stderr
    here.use(server, server.token("ingest"))
    assert "may not" in once(here, server, rc=2).stderr
    assert "is no URL" in once(here, "gpu7:80", rc=2).stderr
    assert "--server" in here.run("top", "--once", "--host", "x", rc=2).stderr


def test_on_a_terminal_a_server_goes_and_comes(start, top):
    first = start()
    token = first.token()
    at = int(time.time() * 1000)
    push(first, token, *moment(at - 1000, 100), number=1)
    push(first, token, *moment(at, 101), number=2)
    session = top("--interval", "200ms", "--server", first.address, env={"TARE_TOKEN": token}, columns=120)
    session.until(lambda t: "gpu7" in t and "25.0 %" in t and " old, " in t)
    first.kill()
    session.until(lambda t: "server away: " in t and "25.0 %" in t)  # what was known stays, and grows old
    second = start("--port", first.port)
    push(second, token, *moment(at + 1000, 103), number=3)
    session.until(lambda t: "server away" not in t and "2.0K/s" in t)
    session.type("q")
    assert session.end() == 0
