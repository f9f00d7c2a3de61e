# SPDX-License-Identifier: MIT
"""Samples of hosts over long times: sums over minutes and hours give what the samples give, and stay when those go."""

import os
import sqlite3
import subprocess
import time

import pytest

from served import command, eventually, start  # noqa: F401
from test_serve_live import ask, push, sample

HOUR = 3_600_000
SPAN = 30 * HOUR
T0 = int(time.time() * 1000) // HOUR * HOUR - 3 * SPAN


def count(server, what):
    db = sqlite3.connect(os.path.join(server.data, "history.db"), timeout=30)
    try:
        return db.execute("SELECT count(*) FROM " + what).fetchone()[0]
    finally:
        db.close()


def questions(server, token):
    """Minutes, hours, a long time in few pieces, a time that begins anywhere."""
    spans = [(T0, T0 + 5 * HOUR, 300), (T0, T0 + SPAN, 30), (T0 - SPAN, T0 + 2 * SPAN, 7), (T0 + 1234567, T0 + 7654321, 40)]
    return [ask(server, token, "host=gpu7&name=%s&from=%d&to=%d&points=%d" % (name, *span)) for name in ("load.1m", "net.rx") for span in spans]


def same(one, other):
    for a, b in zip(one, other):
        assert {**a, "series": 0} == {**b, "series": 0}
        for x, y in zip(a["series"], b["series"]):
            assert {**x, "mean": 0} == {**y, "mean": 0}
            assert x["mean"] == pytest.approx(y["mean"], rel=1e-12)


def test_sums_say_what_the_samples_say_and_outlive_them(start, command):
    server = start()
    token = server.token()
    for hour in list(range(5)) + [7, 29]:  # the others are gaps
        at = [T0 + hour * HOUR + 20_000 * i for i in range(170)]
        push(server, token, *[sample("load.1m", t, (t // 1000 * 7) % 101) for t in at], *[sample("net.rx", t, (t - T0) // 10 % 9_000_000, "eth0") for t in at],
             number=hour)
    before = questions(server, token)
    assert [got["resolution"] for got in before] == [60_000, 3_600_000, 3_600_000, 60_000] * 2
    assert before[1]["series"][0]["at"] == [T0 + h * HOUR for h in (0, 1, 2, 3, 4, 7, 29)]  # gaps stay gaps
    assert count(server, "block WHERE due_ms > 0") == 7
    eventually(lambda: count(server, "block WHERE due_ms > 0") == 0)
    assert count(server, "rollup") > 0
    same(questions(server, token), before)
    fine = "host=gpu7&name=load.1m&from=%d&to=%d&points=1000" % (T0, T0 + 600_000)
    got = ask(server, token, fine)
    assert got["resolution"] is None and len(got["series"][0]["at"]) == 30
    # late ones: at once in the answer, though the sums are older
    push(server, token, sample("load.1m", T0 + 5000, 1000), number=100)
    late = questions(server, token)
    assert late[0]["series"][0]["max"][0] == 1000 and late[1]["series"][0]["n"][0] == before[1]["series"][0]["n"][0] + 1
    eventually(lambda: count(server, "block WHERE due_ms > 0") == 0)
    same(questions(server, token), late)
    server.stop()

    server = start("--keep-samples", "2h", data=server.data)
    eventually(lambda: count(server, "chunk") == 1)  # the newest stays
    same(questions(server, token), late)
    got = ask(server, token, fine)
    assert got["resolution"] == 60_000 and len(got["series"][0]["at"]) == 10 and got["series"][0]["max"][0] == 1000
    push(server, token, sample("load.1m", T0 + 6000, 2000), number=101)  # an hour whose samples went
    eventually(lambda: ask(server, token, fine)["series"][0]["max"][0] == 2000)
    assert ask(server, token, fine)["series"][0]["n"][0] == got["series"][0]["n"][0] + 1
    server.stop()

    server = start("--keep-samples", "2h,3h", data=server.data)
    eventually(lambda: count(server, "rollup WHERE width_ms = 60000") == 0)
    got = ask(server, token, fine)
    assert got["resolution"] == HOUR and got["from"] == T0 and len(got["series"][0]["at"]) == 1
    server.stop()

    server = start("--keep-samples", "2h,2h,1d", data=server.data)
    eventually(lambda: count(server, "rollup") == 0)
    assert ask(server, token, fine)["series"][0]["at"] == []
    assert subprocess.run([command, "serve", "--check", "--data", str(server.data)], check=False,
                          capture_output=True).returncode == 0


@pytest.mark.parametrize("times, says", [("", "one to three times"), ("1d,", "one to three times"), ("1d,2d,3d,4d", "one to three times"), ("1h", "2h, the least"),
                                         ("3d,2d", "2d is shorter than the one before"), ("x", "one to three times")])
def test_times_that_make_no_sense(command, times, says, tmp_path):
    done = subprocess.run([command, "serve", "--port", "0", "--data", str(tmp_path / "d"), "--keep-samples", times], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and says in done.stderr, done.stderr
