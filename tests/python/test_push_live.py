# SPDX-License-Identifier: MIT
"""tare run --push: live metrics of a program while it runs, and what becomes of them where the server is away."""

import json
import os
import platform
import re
import subprocess

import pytest

from serve_client import WAIT
from served import command, eventually, server, start  # noqa: F401
from test_push import Here, cut, free_port, here  # noqa: F401

HOST = re.sub("[^A-Za-z0-9._-]", "_", platform.node())[:64]
BUSY = "import time\nwhile time.process_time() < 3: pass"
UNTIL_GO = "while [ ! -e go ]; do sleep 0.05; done; exit 5"


class Running:
    """`tare run --push` of a program that ends with 5 when it is told to."""

    def __init__(self, here, *options):
        self.here = here
        self.process = subprocess.Popen([here.command, "run", "--push", *options, "-o", "run.json", "--", "sh", "-c", UNTIL_GO], cwd=here.folder, env=here.env,
                                        stderr=subprocess.PIPE, text=True)

    def end(self):
        (self.here.folder / "go").touch()
        said = self.process.communicate(timeout=WAIT)[1]
        assert self.process.returncode == 5, said
        watch = json.loads((self.here.folder / "run.json").read_text())["cases"][0]["watch"]
        assert watch["exit_code"] == 5 and watch["samples"] > 1 and watch["lost"] == 0
        return said


@pytest.fixture
def running(here):
    all_of_them = []

    def call(*options):
        all_of_them.append(Running(here, *options))
        return all_of_them[-1]

    yield call
    for one in all_of_them:
        if one.process.poll() is None:
            one.process.terminate()
            one.process.communicate(timeout=WAIT)


def ask(server, name, points=1, status=200):
    got = server.ask("GET", "/api/v1/metrics?host=%s&name=%s&from=1&to=4503599627370496&points=%d" % (HOST, name, points), token=server.token("read"))
    assert got.status == status, got.body
    return got.json


def readings(server, name="memory.available"):
    """How many of them the server has."""
    hosts = server.ask("GET", "/api/v1/hosts", token=server.token("read")).json["hosts"]
    return ask(server, name)["series"][0]["n"][0] if hosts else 0


def told_metric(run, name):
    return next(m for m in run["cases"][0]["watch"]["metrics"] if m["metric"] == name and m["label"] == "")


def test_a_busy_child_is_seen_there_as_in_its_document(server, here):
    here.use(server, server.token("ingest"))
    done = here.run("run", "--push", "-o", "run.json", "--", "sh", "-c", "python3 -c '%s'; true" % BUSY)
    assert "live metrics" not in done.stderr
    run = json.loads((here.folder / "run.json").read_text())
    rate = sum(ask(server, "process.cpu." + mode)["series"][0]["mean"][0] for mode in ("user", "system"))
    cpu = run["cases"][0]["cpu"]
    assert rate == pytest.approx(cpu["utilization"], rel=0.15)
    assert cpu["user_ns"] + cpu["system_ns"] >= 3e9
    assert readings(server) >= 4  # the first, one for each of at least three seconds, the last
    total = ask(server, "memory.total")["series"][0]
    assert total["min"] == total["max"] == [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    count = ask(server, "process.count")["series"][0]
    assert count["max"][0] <= told_metric(run, "process.count")["max"]
    host, = server.ask("GET", "/api/v1/hosts", token=server.token("read")).json["hosts"]
    assert host["name"] == HOST and host["about"]["kernel"] == platform.release() and host["about"]["os"] == "Linux"


def test_single_processes_are_no_series_of_the_host(server, here):
    here.use(server, server.token("ingest"))
    here.run("run", "--push", "--detail", "--", "true")
    names = server.ask("GET", "/api/v1/metrics?host=" + HOST, token=server.token("read")).json["metrics"]
    assert any(m["name"] == "cpu.busy" and m["label"] for m in names)  # each core is
    assert not [m for m in names if m["name"].startswith("process.") and m["label"]]


def test_a_server_that_is_killed_disturbs_nothing(server, here, running):
    here.use(server, server.token("ingest"))
    one = running()
    eventually(lambda: readings(server) > 1)
    server.kill()
    said = one.end()
    found = re.search(r"live metrics: (\d+) of (\d+) values are not at the server: http://127.0.0.1:%d: Connection refused" % server.port, said)
    assert found and 0 < int(found.group(1)) < int(found.group(2)), said
    assert len(re.findall("live metrics", said)) == 1 and "1 document waits" in said and len(here.waiting()) == 1


def test_a_server_that_comes_back_has_all_of_it(start, here, running):
    first = start()
    here.use(first, first.token("ingest"))
    one = running()
    eventually(lambda: readings(first) > 1)
    before = readings(first)
    first.kill()
    second = start("--port", first.port)
    eventually(lambda: readings(second) > before)
    assert "live metrics" not in one.end()
    got = ask(second, "self.late", points=2000)
    assert sum(got["series"][0]["n"]) == readings(second)


def test_a_batch_whose_answer_is_lost_counts_once(server, cut, here, running):
    here.use("http://127.0.0.1:%d" % cut.server_port, server.token("ingest"))
    one = running()
    eventually(lambda: len(cut.live) > 2)
    assert "live metrics: " in one.end()  # nothing was ever answered
    batches = [b for b, _ in cut.live]
    assert batches == [batches[0]] * len(batches) and [s for _, s in cut.live] == [201] + [200] * (len(batches) - 1)
    assert readings(server) == 1


def test_no_server_at_all(here, running):
    here.use("http://127.0.0.1:%d" % free_port(), "tare_ingest_0123456789ab_" + "0" * 64)
    said = running().end()
    told = re.search(r"live metrics: (\d+) of (\d+) values are not at the server", said)
    assert told and told.group(1) == told.group(2), said


def test_a_token_that_may_not(server, here, running):
    here.use(server, server.token("read"))
    assert "answers 403 (TARE_TOKEN)" in running().end()


def test_two_at_once_are_not_mixed(server, here, running):
    here.use(server, server.token("ingest"))
    one = running()
    eventually(lambda: readings(server) > 0)
    done = here.run("run", "--push", "--", "true")
    assert "no live metrics: another tare run sends those of %s to %s" % (HOST, server.address) in done.stderr
    assert "sent to" in done.stderr  # its document is
    assert "live metrics" not in one.end()


def test_a_program_that_is_none_sends_nothing(server, here):
    here.use(server, server.token("ingest"))
    done = here.run("run", "--push", "--", "no-such-program", rc=127)
    assert "live metrics" not in done.stderr
    assert server.ask("GET", "/api/v1/hosts", token=server.token("read")).json["hosts"] == []
