# SPDX-License-Identifier: MIT
"""Files of runs (traces) on a server: sent in pieces, kept once, apart by project, read back whole, gone with their run."""

import hashlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess

import pytest

from served import command, document, eventually, id_of, server, start  # noqa: F401
from test_push import Here, cut, here  # noqa: F401

PIECE = 4 << 20
BYTES = {"Content-Type": "application/octet-stream"}


def piece(server, token, body):
    return server.ask("POST", "/api/v1/pieces", token=token, body=body, headers=BYTES)


def upload(server, token, run, name, *bodies):
    pieces = [hashlib.sha256(b).hexdigest() for b in bodies]
    body = json.dumps({"name": name, "pieces": pieces}).encode()
    return server.ask("POST", "/api/v1/runs/%s/uploads" % run, token=token, body=body)


def name_of(*bodies):
    return hashlib.sha256(b"".join(hashlib.sha256(b).digest() for b in bodies)).hexdigest()


def listed(server, token, run):
    got = server.ask("GET", "/api/v1/runs/%s/uploads" % run, token=token)
    return [u["name"] for u in got.json["uploads"]] if got.status == 200 else got.status


@pytest.fixture
def run(server, document):
    assert server.ask("POST", "/api/v1/runs", token=server.token(), body=document(1)).status == 201
    return id_of(document(1))


def test_a_file_goes_in_by_pieces_and_comes_back(server, run):
    token, first, last = server.token(), b"a" * PIECE, b"\0end"
    assert [piece(server, token, b).status for b in (first, last, last)] == [201, 201, 200]
    got = upload(server, token, run, "x.tare", first, last)
    assert got.status == 201 and got.json["bytes"] == PIECE + 4 and got.json["id"] == name_of(first, last)
    assert upload(server, token, run, "x.tare", first, last).status == 200
    assert upload(server, token, run, "x.tare", last).status == 409
    path = got.headers["location"]
    assert server.ask("GET", path, token=token).body == first + last
    assert server.ask("GET", path + "?piece=1", token=token).body == last
    assert server.ask("GET", path + "?piece=2", token=token).status == 404
    assert listed(server, token, run) == ["x.tare"]


def test_what_is_wrong_with_a_file(server, run):
    token = server.token()
    assert piece(server, token, b"").status == 422
    assert server.ask("POST", "/api/v1/pieces", token=token, body=b"{}").status == 415
    assert piece(server, token, b"x" * (PIECE + 1)).status == 413
    assert piece(server, token, b"short").status == 201
    assert upload(server, token, run, "x", b"never sent").status == 422
    assert "pieces[0]" in upload(server, token, run, "x", b"short", b"short").json["detail"]
    for name in ("", ".x", "a/b", "..", "a b", "x" * 65):
        assert upload(server, token, run, name, b"short").status == 422, name
    assert upload(server, token, "01KA3QZ4M6S1V7W8X9Y0Z1A2B3", "x", b"short").status == 404
    assert listed(server, token, "01KA3QZ4M6S1V7W8X9Y0Z1A2B3") == 404
    for body in (b'{"name":"x"}', b'{"name":"x","pieces":[]}', b'{"name":"x","pieces":["12"]}', b'{"name":"x","pieces":[1],"more":1}', b"[]"):
        assert server.ask("POST", "/api/v1/runs/%s/uploads" % run, token=token, body=body).status == 422, body


def test_files_of_another_project_are_not_there(server, document):
    ours, theirs = (server.token("read,ingest", "--project", p) for p in ("ours", "theirs"))
    assert server.ask("POST", "/api/v1/runs", token=theirs, body=document(1)).status == 201
    assert server.ask("POST", "/api/v1/runs", token=ours, body=document(2)).status == 201
    assert piece(server, theirs, b"secret").status == 201
    assert upload(server, theirs, id_of(document(1)), "x", b"secret").status == 201
    path = "/api/v1/uploads/" + name_of(b"secret")
    for end in ("", "?piece=0", "/profile", "/bars", "/timeline", "/page"):
        assert server.ask("GET", path + end, token=ours).status == 404, end
    assert listed(server, ours, id_of(document(1))) == 404
    assert upload(server, ours, id_of(document(1)), "y", b"secret").status == 404
    # who knows a hash and not the bytes gets nothing by it
    assert upload(server, ours, id_of(document(2)), "x", b"secret").status == 422
    assert server.ask("GET", path, token=theirs).body == b"secret"


def test_a_project_has_its_share(start, document):
    server = start("--uploads", 1)
    token = server.token()
    assert piece(server, token, b"a" * (1 << 20)).status == 201
    full = piece(server, token, b"b")
    assert full.status == 413 and "1048576" in full.json["detail"]


def test_files_are_checked_copied_and_go_with_their_run(start, command, document, tmp_path):
    server = start()
    token, old = server.token(), document(1, created="2020-01-02T03:04:05.000Z")
    assert server.ask("POST", "/api/v1/runs", token=token, body=old).status == 201
    assert piece(server, token, b"bytes").status == 201
    assert upload(server, token, id_of(old), "x", b"bytes").status == 201
    copy = tmp_path / "copy"
    copy.mkdir(mode=0o700)
    subprocess.run([command, "serve", *server.store, "--backup", str(copy / "history.db")], check=True, capture_output=True)
    server.stop()
    again = start(data=copy)
    assert again.ask("GET", "/api/v1/uploads/" + name_of(b"bytes"), token=token).body == b"bytes"
    again.stop()
    with sqlite3.connect(copy / "history.db") as db:
        db.execute("update piece set body = ?", [b"bytez"])
    done = subprocess.run([command, "serve", "--data", str(copy), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "damaged" in done.stdout
    kept = start("--keep", "90d", data=server.data)
    eventually(lambda: kept.ask("GET", "/api/v1/uploads/" + name_of(b"bytes"), token=token).status == 404)
    kept.stop()
    done = subprocess.run([command, "serve", *server.store, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_what_was_acknowledged_survives_a_kill_while_uploading(start, document):
    """kill -9 between and within pieces: what got its 201 is there, and the file is whole or not there."""
    server = start("--rate", 0)
    token = server.token()
    assert server.ask("POST", "/api/v1/runs", token=token, body=document(1)).status == 201
    known = []
    for k in range(4):
        bodies = [os.urandom(200000) + bytes([k]) for _ in range(3)]
        for n, body in enumerate(bodies):
            if n == k:  # half a piece, and then the end
                c = server.client()
                c.send(b"POST /api/v1/pieces HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token.encode() +
                       b"\r\nContent-Type: application/octet-stream\r\nContent-Length: 200001\r\n\r\n" + body[:100000])
                os.kill(server.pid, signal.SIGKILL)
                server.kill()
                server = start("--rate", 0, data=server.data)
                c.close()
            assert piece(server, token, body).status == 201
            assert upload(server, token, id_of(document(1)), "%d-%d" % (k, n), body).status == 201
            known.append(body)
    server.kill()
    server = start("--rate", 0, data=server.data)
    for body in known:
        assert server.ask("GET", "/api/v1/uploads/" + name_of(body), token=token).body == body


# ---- by the command ----

def traced(here, *more):
    """`tare run --push` of a program without scopes; what it said."""
    return here.run("run", "--push", "--interval", "50ms", *more, "--", "sh", "-c", "sleep 0.3").stderr


def test_run_pushes_its_trace_and_report_fetches_it(here, server, command):
    here.use(server, server.token("ingest"))
    traced(here, "-o", "r.json", "--trace", "r.tare")
    run = json.loads((here.folder / "r.json").read_text())["id"]
    token = server.token("read,ingest")
    assert listed(server, token, run) == ["r.tare"]
    (here.folder / "r.tare").unlink()
    here.use(server, token)
    assert "samples of probes" in here.run("report", "--server", server.address, "--trace", "@" + run).stdout
    id_ = server.ask("GET", "/api/v1/runs/%s/uploads" % run, token=token).json["uploads"][0]["id"]
    line = server.ask("GET", "/api/v1/uploads/%s/timeline" % id_, token=token)
    assert line.status == 200 and line.json["schema"] == "tare.timeline/1"
    none = server.ask("GET", "/api/v1/uploads/%s/profile" % id_, token=token)
    assert none.status == 422 and "no scopes" in none.json["detail"]


def test_push_of_a_trace_by_name(here, server):
    here.use(server, server.token("ingest"))
    traced(here, "-o", "r.json", "--trace", "r.tare")
    assert json.loads(here.run("push", "r.tare", "--json").stdout)["there"] == 1
    shutil.copy(here.folder / "r.tare", here.folder / "other.tare")
    assert "whose trace" in here.run("push", "other.tare", rc=2).stderr
    run = json.loads((here.folder / "r.json").read_text())["id"]
    here.run("push", "other.tare", "--run", run)
    assert listed(server, server.token("read"), run) == ["other.tare", "r.tare"]


def test_a_trace_waits_while_the_server_is_away(here, start):
    server = start()
    token, port = server.token("ingest"), server.port
    here.use(server, token)
    server.stop()
    traced(here, "-o", "r.json", "--trace", "r.tare")
    notes = here.folder / "tare-results" / "unsent"
    assert len(here.waiting()) == 1 and len(list(notes.rglob("*.trace"))) == 1
    server = start("--port", port, data=server.data)
    here.run("push")
    run = json.loads((here.folder / "r.json").read_text())["id"]
    assert here.waiting() == list(notes.rglob("*.trace")) == []
    assert listed(server, server.token("read"), run) == ["r.tare"]


def test_a_flame_graph_of_what_was_sent(server, run, root):
    """A trace with scopes, as the page shows it; and bytes that are no trace."""
    token, bytes_ = server.token(), (root / "fuzz" / "corpus" / "trace" / "whole").read_bytes()
    assert piece(server, token, bytes_).status == 201 and piece(server, token, b"no trace").status == 201
    assert upload(server, token, run, "good.tare", bytes_).status == 201
    assert upload(server, token, run, "bad.tare", b"no trace").status == 201
    good = server.ask("GET", "/api/v1/uploads/%s/profile?most=100" % name_of(bytes_), token=token)
    assert good.status == 200 and good.json["schema"] == "tare.profile/1", good.body[:300]
    page = server.ask("GET", "/api/v1/uploads/%s/page" % name_of(bytes_), token=token).json
    assert page["schema"] == "tare.page/1" and [i["kind"] for i in page["items"]] == ["profile", "bars"]
    assert page["items"][0]["document"]["schema"] == "tare.profile/1"
    for view in ("profile", "page"):
        bad = server.ask("GET", "/api/v1/uploads/%s/%s" % (name_of(b"no trace"), view), token=token)
        assert bad.status == 422 and "/proc" not in bad.json["detail"], bad.body
    assert server.ask("GET", "/healthz").status == 200
