# SPDX-License-Identifier: MIT
"""Fixtures of everything that tests `tare serve`: from served import command, start, server, document  # noqa: F401"""

import json
import os
import sqlite3
import time

import made
import pytest

from serve_client import WAIT, Server

RUN = "tests/cli/report/sweep.run.json"
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@pytest.fixture(scope="session")
def command(build):
    path = os.environ.get("TARE", str(build / "tare"))
    if made.is_without("llhttp"):
        pytest.skip("built without llhttp")
    return path


@pytest.fixture
def start(command, tmp_path):
    servers = []

    def call(*options, data=None, **popen):
        servers.append(Server(command, data or tmp_path / "data", *options, **popen))
        return servers[-1]

    yield call
    for s in servers:
        s.kill()


@pytest.fixture
def server(start):
    return start()


@pytest.fixture
def document(root):
    """document(7): a run document whose id is its number."""
    text = json.loads((root / RUN).read_text())

    def make(number, **more):
        tail = "".join(DIGITS[number >> 5 * i & 31] for i in range(6, -1, -1))
        return json.dumps({**text, "id": "01KA3QZ4M6S1V7W8X9Y" + tail, **more}).encode()

    return make


def id_of(document):
    return json.loads(document)["id"]


def eventually(look):
    """Waits until it is true."""
    end = time.monotonic() + WAIT
    while not look():
        assert time.monotonic() < end, "never"
        time.sleep(0.01)


def lock(server):
    """Nobody can commit until it is closed."""
    db = sqlite3.connect(os.path.join(server.data, "history.db"), isolation_level=None, check_same_thread=False)
    db.execute("BEGIN IMMEDIATE")
    return db
