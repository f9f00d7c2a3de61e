# SPDX-License-Identifier: MIT
"""What keeps the data of tare serve well: --check, --backup while it serves, --keep."""

import json
import os
import sqlite3
import stat
import subprocess
import threading

from served import command, document, eventually, id_of, server, start  # noqa: F401


def care(command, server, *words):
    return subprocess.run([command, "serve", *server.store, *words], capture_output=True, text=True, check=False, timeout=60)


def test_a_whole_store_is_told_so(server, command, document):
    token = server.token()
    for n in range(3):
        assert server.ask("POST", "/api/v1/runs", token=token, body=document(n)).status == 201
    done = care(command, server, "--check", "--json")
    said = json.loads(done.stdout)
    assert done.returncode == 0 and said["runs"] == 3 and said["trouble"] is None and said["size"] > 0 and said["free"] > 0
    assert "whole" in care(command, server, "--check").stdout
    kept = [os.path.join(server.data, name) for name in ("history.db", "history.db-wal")]
    assert said["size"] >= os.path.getsize(kept[1]) > 0 and said["size"] == sum(map(os.path.getsize, kept))


def test_a_document_that_is_damaged(server, command, document):
    token = server.token()
    assert server.ask("POST", "/api/v1/runs", token=token, body=document(1)).status == 201
    server.stop()
    with sqlite3.connect(os.path.join(server.data, "history.db")) as db:
        body = bytearray(db.execute("select body from document").fetchone()[0])
        body[len(body) // 2] ^= 1
        db.execute("update document set body = ?", [bytes(body)])
    done = care(command, server, "--check", "--json")
    assert done.returncode == 2 and id_of(document(1)) in json.loads(done.stdout)["trouble"]


def test_a_run_without_its_document(server, command, document):
    token = server.token()
    assert server.ask("POST", "/api/v1/runs", token=token, body=document(1)).status == 201
    server.stop()
    with sqlite3.connect(os.path.join(server.data, "history.db")) as db:
        db.execute("delete from document")
    done = care(command, server, "--check", "--json")
    assert done.returncode == 2 and json.loads(done.stdout)["trouble"] == "1 runs have no document"


def test_no_data_is_not_made(command, tmp_path):
    for words in (["--check"], ["--backup", str(tmp_path / "b.db")]):
        done = subprocess.run([command, "serve", "--data", str(tmp_path / "none"), *words], capture_output=True, text=True, check=False)
        assert done.returncode in (2, 3) and "none" in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_copy_while_it_serves(start, command, document, tmp_path):
    """All that was acknowledged before the copy began is in it, and writers do not notice."""
    server = start("--rate", 0)
    token = server.token()
    kept, stop = [], threading.Event()

    def post():
        n = 0
        while not stop.is_set():
            assert server.ask("POST", "/api/v1/runs", token=token, body=document(n)).status == 201
            kept.append(n)
            n += 1

    writer = threading.Thread(target=post)
    writer.start()
    try:
        for k in range(3):
            eventually(lambda: len(kept) > 10 * (k + 1))
            before = list(kept)
            copy = tmp_path / ("copy%d.db" % k)
            done = care(command, server, "--backup", str(copy))
            assert done.returncode == 0, done.stderr
            assert stat.S_IMODE(os.stat(copy).st_mode) == 0o600
            listed = json.loads(subprocess.check_output([command, "history", "list", "--limit", "0", "--json", "--history", str(copy)]))["runs"]
            assert {id_of(document(n)) for n in before} <= {r["id"] for r in listed}
            with sqlite3.connect(copy) as db:
                assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
    finally:
        stop.set()
        writer.join()
    there = care(command, server, "--backup", str(tmp_path / "copy0.db"))
    assert there.returncode == 2 and "is there already" in there.stderr
    nowhere = care(command, server, "--backup", str(tmp_path / "no" / "copy.db"))
    assert nowhere.returncode == 3 and not [f for f in os.listdir(tmp_path) if f.endswith(".part")]


def test_old_runs_go_but_not_those_with_a_tag(start, command, document):
    server = start()
    token = server.token()
    made = {1: "2020-01-02T03:04:05.000Z", 2: "2020-01-02T03:04:05.000Z", 3: "2099-01-01T00:00:00.000Z"}
    for n, created in made.items():
        assert server.ask("POST", "/api/v1/runs", token=token, body=document(n, created=created)).status == 201
    history = os.path.join(server.data, "history.db")
    subprocess.run([command, "history", "tag", "--history", history, id_of(document(2)), "release"], check=True, capture_output=True)
    server.stop()
    server = start("--keep", "90d", data=server.data)
    eventually(lambda: server.ask("GET", "/api/v1/runs/" + id_of(document(1)), token=token).status == 404)
    for n in (2, 3):
        assert server.ask("GET", "/api/v1/runs/" + id_of(document(n)), token=token).status == 200
    assert server.stop()[0] == 0
