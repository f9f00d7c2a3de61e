# SPDX-License-Identifier: MIT
"""tare serve from outside: who gets in, what is kept, what slow, hostile and dying clients can do to others."""

import contextlib
import json
import os
import resource
import select
import signal
import socket
import stat
import subprocess
import threading

import pytest

from serve_client import WAIT, Client, request
from served import command, document, eventually, id_of, lock, server, start  # noqa: F401

# ---- who gets in ----

def test_health_says_ok_and_no_more(server):
    got = server.ask("GET", "/healthz")
    assert got.status == 200 and got.body == b"ok\n"
    assert "server" not in got.headers
    head = server.ask("HEAD", "/healthz")
    assert head.status == 200 and head.headers["content-length"] == "3"


def test_without_a_token_nothing_else_is_told(server):
    for method, path in [("GET", "/api/v1/self"), ("GET", "/api/v1/runs"), ("POST", "/api/v1/runs"), ("GET", "/api/v1/runs/01KA3QZ4M6S1V7W8X9Y0Z1A2B3")]:
        got = server.ask(method, path, body=b"{}" if method == "POST" else None)
        assert got.status == 401 and got.headers["www-authenticate"].startswith("Bearer")
        assert got.headers["content-type"] == "application/problem+json"
        assert got.json["status"] == 401 and got.json["request"] == got.headers["x-request-id"]


def test_tokens_that_are_none(server):
    good = server.token("read")
    assert server.ask("GET", "/api/v1/self", token=good).status == 200
    bad = [good[:-1], good + "0", good[:-1] + ("0" if good[-1] != "0" else "1"), good.upper(), "tare_", "x" * 4000, good.replace("read", "admin"),
           good.split("_")[-1]]
    for token in bad:
        assert server.ask("GET", "/api/v1/self", token=token).status == 401
    assert server.ask("GET", "/api/v1/self", headers={"Authorization": "Basic " + good}).status == 401
    assert server.ask("GET", "/api/v1/self?token=" + good).status == 401  # never in a URL


@pytest.mark.parametrize("scope, read, ingest", [("read", 200, 403), ("ingest", 403, 201), ("admin", 403, 403), ("read,ingest", 200, 201)])
def test_a_scope_is_needed(server, document, scope, read, ingest):
    token = server.token(scope)
    assert server.ask("GET", "/api/v1/runs", token=token).status == read
    assert server.ask("POST", "/api/v1/runs", token=token, body=document(1)).status == ingest


def test_a_revoked_token_and_an_expired_one(server, command):
    token, short = server.token("read"), server.token("read", "--expires", "1ms")
    assert server.ask("GET", "/api/v1/self", token=token).status == 200
    eventually(lambda: server.ask("GET", "/api/v1/self", token=short).status == 401)
    listed = json.loads(subprocess.check_output([command, "token", "list", "--json", "--data", server.data]))["tokens"]
    assert [t["id"] for t in listed] == [token.split("_")[2], short.split("_")[2]]
    assert token.split("_")[3] not in json.dumps(listed)
    subprocess.run([command, "token", "revoke", "--data", server.data, listed[0]["id"]], check=True, capture_output=True)
    eventually(lambda: server.ask("GET", "/api/v1/self", token=token).status == 401)


def test_the_secret_is_nowhere_on_disk(server, document):
    token = server.token()
    assert server.ask("POST", "/api/v1/runs", token=token, body=document(1)).status == 201
    for folder, _, names in os.walk(server.data):
        for name in names:
            path = os.path.join(folder, name)
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600, name
            with open(path, "rb") as f:
                assert token.split("_")[3].encode() not in f.read()


def test_guesses_are_slowed_down(server):
    answers = [server.ask("GET", "/api/v1/self").status for _ in range(200)]
    assert answers[0] == 401 and 429 in answers
    assert server.ask("GET", "/api/v1/self", token=server.token("read")).status == 200  # who has a token is not kept out


# ---- other sites ----

def test_a_foreign_host_is_refused(start):
    server = start("--allow-host", "tare.example")
    for host, status in [("localhost", 200), ("127.0.0.1:%d" % server.port, 200), ("LOCALHOST:1", 200), ("[::1]:80", 200), ("tare.example", 200),
                         ("evil.example", 421), ("localhost.evil.example", 421), ("127.0.0.1.evil.example", 421), ("tare.example.evil", 421)]:
        assert server.ask("GET", "/healthz", headers={"Host": host}).status == status, host


@pytest.mark.parametrize("headers, status", [
    ({}, 201), ({"Origin": "http://localhost"}, 201), ({"Sec-Fetch-Site": "same-origin"}, 201), ({"Sec-Fetch-Site": "none"}, 201),
    ({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403), ({"Origin": "http://localhost.evil"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403), ({"Sec-Fetch-Site": "same-site"}, 403), ({"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"}, 403),
])
def test_what_changes_something_must_not_come_from_another_site(server, document, headers, status):
    headers = {name: value.replace("http:", server.address.split("/")[0]) for name, value in headers.items()}
    assert server.ask("POST", "/api/v1/runs", token=server.token(), body=document(1), headers=headers).status == status


def test_a_form_cannot_post(server, document):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx", None):
        got = server.ask("POST", "/api/v1/runs", token=server.token(), body=document(1), headers={"Content-Type": kind})
        assert got.status == 415, kind


# ---- routes ----

def test_other_spellings_of_a_path_are_other_paths(server):
    token = server.token()
    for path in ["//", "/api", "/api/v1/runs/", "/api/v1//runs", "/api/v1/./runs", "/api/v1/../v1/runs", "/api/v1/%72uns", "/API/v1/runs", "/api/v1/runs;x",
                 "/api/v1/runs%2f", "/api/v1/runs/..", "/api/v1/runs/%2e%2e", "/api/v1/runs/%252e%252e%252fetc", "/api/v1/runs/..%5c..", "/healthz/", "/healthz%00",
                 "/api/v1/runs/{id}", "/api/v1/runs/a/b", "/api/v1/runs/" + "A" * 65, "/etc/passwd", "/api/v1/runs/01KA3QZ4M6S1V7W8X9Y0Z1A2B"]:
        got = server.ask("GET", path, token=token)
        assert got.status == 404, path
        assert "/" not in got.json["detail"]


def test_a_wrong_method_is_told_which_are_right(server):
    token = server.token()
    got = server.ask("DELETE", "/api/v1/runs", token=token)
    assert got.status == 405 and got.headers["allow"] == "GET, HEAD, POST"
    assert server.ask("PROPFIND", "/healthz").status == 405
    assert server.ask("OPTIONS", "*").status == 404


# ---- runs ----

def test_a_run_is_kept_and_comes_back_as_it_was(server, document):
    token, text = server.token(), document(1)
    got = server.ask("POST", "/api/v1/runs", token=token, body=text)
    assert got.status == 201 and got.json == {"id": id_of(text)} and got.headers["location"] == "/api/v1/runs/" + id_of(text)
    assert server.ask("GET", got.headers["location"], token=token).body == text
    assert server.ask("GET", got.headers["location"].lower().replace("api/v1/runs", "api/v1/runs"), token=token).body == text
    again = server.ask("POST", "/api/v1/runs", token=token, body=text)
    assert again.status == 200 and again.json == got.json
    other = server.ask("POST", "/api/v1/runs", token=token, body=document(1, kind="run"))
    assert other.status == 409
    assert server.ask("GET", got.headers["location"], token=token).body == text


def test_lists(server, document):
    token = server.token()
    for i in range(5):
        name = "minilm" if i % 2 else "a b&c"
        subject = {**json.loads(document(0))["subject"], "name": name}
        assert server.ask("POST", "/api/v1/runs", token=token, body=document(i, subject=subject)).status == 201
    runs = lambda query: [r["subject"] for r in server.ask("GET", "/api/v1/runs" + query, token=token).json["runs"]]  # noqa: E731
    assert len(runs("")) == 5 and runs("?subject=minilm") == ["minilm"] * 2
    assert runs("?x=1&subject=a%20b%26c") == runs("?subject=a+b%26c") == ["a b&c"] * 3
    assert len(runs("?limit=2")) == 2 and runs("?subject=nothing") == []
    for bad in ("?limit=0", "?limit=x", "?limit=1001", "?limit=-1", "?subject=%zz", "?subject=%0", "?subject=%00", "?subject=%ff", "?subject=a%c0%af"):
        assert server.ask("GET", "/api/v1/runs" + bad, token=token).status == 400, bad


def test_a_list_is_that_of_the_command(server, document, tare):
    """The same members, tags as a list, whether a program asks the server or the command."""
    token, history = server.token(), os.path.join(server.data, "history.db")
    for i in range(2):
        assert server.ask("POST", "/api/v1/runs", token=token, body=document(i)).status == 201
    tare("history", "tag", json.loads(document(0))["id"], "kept", "nightly", "--history", history)
    said = server.ask("GET", "/api/v1/runs", token=token).json["runs"]
    assert said == json.loads(tare("history", "list", "--json", "--history", history).stdout)["runs"]
    assert sorted(run["tags"] for run in said) == [[], ["kept", "nightly"]]


@pytest.mark.parametrize("body, place", [
    (b"", "the file is empty"), (b"{", "line 1"), (b"[]", "object"), (b'{"schema":"tare.run/1"}', "id: missing"), (b'{"schema":"tare.run/9"}', "tare.run/9"),
    (b"\xff\xfe", "byte 0xff"), (b'{"a":' * 100000, "depth"),
])
def test_what_is_wrong_with_a_document_is_told(server, body, place):
    got = server.ask("POST", "/api/v1/runs", token=server.token(), body=body)
    assert got.status == 422 and place.lower() in got.json["detail"].lower(), got.body


def test_a_body_that_is_too_large(server):
    token = server.token()
    c = server.client()
    c.send(request("POST", "/api/v1/runs", token=token, headers={"Content-Type": "application/json", "Content-Length": str(1 << 40)}))
    assert c.reply().status == 413 and c.is_closed()
    c = server.client()
    c.send(request("POST", "/api/v1/runs", token=token, headers={"Content-Type": "application/json", "Transfer-Encoding": "chunked"}))
    piece = b"%x\r\n" % (1 << 20) + b"x" * (1 << 20) + b"\r\n"
    try:
        for _ in range(16):
            c.send(piece)
    except (ConnectionResetError, BrokenPipeError):
        pass
    assert c.reply().status == 413


def test_projects_do_not_see_each_other(server, document):
    nlp, ads, all_of_them = server.token("read,ingest", "--project", "nlp"), server.token("read,ingest", "--project", "ads"), server.token()
    mine, theirs = document(1), document(2)
    assert server.ask("POST", "/api/v1/runs", token=nlp, body=mine).status == 201
    assert server.ask("POST", "/api/v1/runs", token=ads, body=theirs).status == 201
    ids = lambda token: sorted(r["id"] for r in server.ask("GET", "/api/v1/runs", token=token).json["runs"])  # noqa: E731
    assert ids(nlp) == [id_of(mine)] and ids(ads) == [id_of(theirs)] and ids(all_of_them) == sorted([id_of(mine), id_of(theirs)])
    for token, status in [(nlp, 200), (ads, 404), (all_of_them, 200)]:
        assert server.ask("GET", "/api/v1/runs/" + id_of(mine), token=token).status == status
    assert server.ask("POST", "/api/v1/runs", token=ads, body=mine).status == 409  # not a word of what is there


# ---- connections ----

def test_requests_in_a_row_are_answered_in_their_order(server, document):
    """Held replies (writes, reads of the store) and those from memory, all sent at once."""
    token = server.token()
    c = server.client()
    sent = b""
    for i in range(20):
        sent += request("POST", "/api/v1/runs", token=token, body=document(i)) + request("GET", "/healthz") + request("GET", "/nowhere")
        sent += request("GET", "/api/v1/runs/" + id_of(document(i)), token=token)
    c.send(sent)
    for i in range(20):
        assert c.reply().json == {"id": id_of(document(i))}
        assert c.reply().body == b"ok\n"
        assert c.reply().status == 404
        assert c.reply().body == document(i)
    c.send(request("GET", "/healthz", headers={"Connection": "close"}))
    assert c.reply().headers["connection"] == "close" and c.reply() is None


def test_continue_is_said_before_the_body_comes(server, document):
    c = server.client()
    text = document(1)
    c.send(request("POST", "/api/v1/runs", token=server.token(), headers={"Content-Type": "application/json", "Content-Length": str(len(text)), "Expect": "100-continue"}))
    assert c.reply().status == 100
    c.send(text)
    assert c.reply().status == 201


def test_a_refused_request_ends_the_connection_after_its_answer(server):
    c = server.client()
    c.send(request("GET", "/healthz") + b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + request("GET", "/healthz"))
    assert c.reply().status == 200 and c.reply().status == 400 and c.reply() is None


def test_drips_are_ended_and_others_do_not_notice(server, document):
    """A byte now and then must not hold a connection, and no deadline begins anew because a byte came."""
    token = server.token()
    head = server.client()
    head.send(b"GET /healthz HTTP/1.1\r\n")
    body = server.client()
    body.send(request("POST", "/api/v1/runs", token=token, headers={"Content-Type": "application/json", "Content-Length": "5000"}))
    chunks = server.client()
    chunks.send(request("POST", "/api/v1/runs", token=token, headers={"Content-Type": "application/json", "Transfer-Encoding": "chunked"}))
    stop = threading.Event()

    def drip(client, piece):
        while not stop.wait(0.3):
            try:
                client.send(piece)
            except OSError:
                return

    threads = [threading.Thread(target=drip, args=a) for a in ((head, b"x"), (body, b" "), (chunks, b"1\r\n \r\n"))]
    for t in threads:
        t.start()
    try:
        for client in (head, body, chunks):
            assert client.reply().status == 408
            assert server.ask("GET", "/healthz").status == 200
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert server.ask("GET", "/api/v1/self", token=token).json["closed_by_deadline"] == 3


def test_a_siege(start):
    """60 that drip in heads and bodies and 200 that do nothing: the drips are ended and counted, all of them before any idle one,
    and another client is answered all the while. `make bench T=serve` has 1,000 and 4,000, with times."""
    server = start("--per-address", 0)
    token = server.token()
    idle = [server.client() for _ in range(200)]
    drips = [server.client() for _ in range(60)]
    for i, c in enumerate(drips):
        head = request("POST", "/api/v1/runs", token=token, headers={"Content-Type": "application/json", "Content-Length": "5000"})
        c.send(head if i % 2 else head[:-2])
    other = server.client()
    left = list(drips)
    while left:
        other.send(request("GET", "/api/v1/self", token=token))
        assert other.reply().status == 200
        ended, _, _ = select.select([c.sock for c in left], [], [], 0.1)
        for c in [c for c in left if c.sock in ended]:
            assert c.reply().status == 408 and c.is_closed()
            left.remove(c)
        for c in left:
            with contextlib.suppress(OSError):
                c.send(b"x")
    ended, _, _ = select.select([c.sock for c in idle], [], [], 0)
    assert ended == []
    said = server.ask("GET", "/api/v1/self", token=token).json
    assert said["closed_by_deadline"] == 60 and said["connections"] >= 202
    for c in idle:
        c.send(request("GET", "/healthz"))
        assert c.reply().status == 200


def test_a_client_that_does_not_read_is_reset(server, document):
    token = server.token()
    text = document(1)
    assert server.ask("POST", "/api/v1/runs", token=token, body=text).status == 201
    c = server.client()
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    ask = request("GET", "/api/v1/runs/" + id_of(text), token=token)
    c.sock.settimeout(1)
    try:
        while True:  # until the server takes no more
            c.send(ask * 50)
    except OSError:
        pass
    eventually(lambda: server.ask("GET", "/api/v1/self", token=token).json["closed_by_deadline"] == 1)
    c.sock.settimeout(WAIT)
    assert c.is_closed()


def test_a_client_that_leaves_while_its_run_is_kept(server, document):
    token = server.token()
    for i in range(30):
        c = server.client()
        c.send(request("POST", "/api/v1/runs", token=token, body=document(i)))
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        c.close()
    assert server.ask("GET", "/healthz").status == 200
    eventually(lambda: server.ask("GET", "/api/v1/self", token=token).json["connections"] == 1)
    assert server.stop()[0] == 0


def test_one_address_cannot_take_all_connections(start):
    server = start("--per-address", 4)
    held = [server.client() for _ in range(4)]
    for c in held:
        c.send(request("GET", "/healthz"))
        assert c.reply().status == 200
    over = server.client()
    assert over.reply().status == 503
    other = server.client(source="127.0.0.2")
    other.send(request("GET", "/healthz"))
    assert other.reply().status == 200
    held[0].close()
    eventually(lambda: server.ask("GET", "/healthz").status == 200)


def test_no_descriptors_left(start):
    """New connections wait, those that are there are served, and when some go others come in."""
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
    server = start("--per-address", 0, preexec_fn=few)
    first = server.client()
    first.send(request("GET", "/healthz"))
    assert first.reply().status == 200
    crowd = [server.client() for _ in range(100)]
    for _ in range(20):
        first.send(request("GET", "/healthz"))
        assert first.reply().status == 200
    for c in crowd[:90]:
        c.close()
    late = server.client()
    late.send(request("GET", "/healthz"))
    assert late.reply().status == 200
    assert server.stop()[0] == 0


def test_too_many_requests(start):
    server = start("--rate", 3)
    c = server.client()
    c.send(request("GET", "/healthz") * 300)
    answers = [c.reply() for _ in range(300)]
    assert answers[0].status == 200
    limited = [a for a in answers if a.status == 429]
    assert limited and int(limited[0].headers["retry-after"]) >= 1


# ---- the end ----

def is_refused(port):
    try:
        Client(port).close()
    except ConnectionRefusedError:
        return True
    return False


def test_what_is_under_way_is_answered_at_the_end(server, document):
    token = server.token()
    idle, half = server.client(), server.client()
    half.send(b"GET /healthz HTTP/1.1\r\nHos")
    waiting = [server.client() for _ in range(20)]
    db = lock(server)
    for i, c in enumerate(waiting):
        c.send(request("POST", "/api/v1/runs", token=token, body=document(i)))
    eventually(lambda: server.ask("GET", "/api/v1/self", token=token).json["bytes_in"] > 20 * len(document(0)))
    server.process.send_signal(signal.SIGTERM)
    eventually(lambda: is_refused(server.port))
    assert idle.is_closed() and half.is_closed()
    assert server.process.poll() is None
    db.execute("ROLLBACK")
    db.close()
    answers = [c.reply() for c in waiting]
    assert {a.status for a in answers} == {201} and {a.headers["connection"] for a in answers} == {"close"}
    assert server.process.wait(WAIT) == 0


def test_a_second_signal_ends_it_at_once(server, document):
    db = lock(server)
    c = server.client()
    c.send(request("POST", "/api/v1/runs", token=None, body=b"{}"))
    c.reply()
    server.process.send_signal(signal.SIGINT)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(WAIT) in (0, -signal.SIGTERM)
    db.close()


@pytest.mark.parametrize("round", range(3))
def test_what_was_acknowledged_survives_kill_9(start, document, round):
    server = start("--per-address", 0, "--rate", 0)
    token, kept, running = server.token(), [], threading.Event()

    def push(worker):
        c = server.client()
        for i in range(100000):
            text = document(worker * 100000 + i)
            try:
                c.send(request("POST", "/api/v1/runs", token=token, body=text))
                got = c.reply()
            except OSError:
                return
            if got is None or got.status != 201:
                return
            kept.append(id_of(text))
            if len(kept) > 30 * (round + 1):
                running.set()

    threads = [threading.Thread(target=push, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    assert running.wait(WAIT)
    server.kill()
    for t in threads:
        t.join()
    again = start("--rate", 0)
    for id_ in kept:
        assert again.ask("GET", "/api/v1/runs/" + id_, token=token).status == 200


def test_many_writers_share_commits(start, document):
    server = start("--per-address", 0, "--rate", 0)
    token = server.token()
    db = lock(server)
    clients = [server.client() for _ in range(40)]
    for i, c in enumerate(clients):
        c.send(request("POST", "/api/v1/runs", token=token, body=document(i)))
    eventually(lambda: server.ask("GET", "/api/v1/self", token=token).json["bytes_in"] > 40 * len(document(0)))
    db.execute("ROLLBACK")
    db.close()
    assert {c.reply().status for c in clients} == {201}
    got = server.ask("GET", "/api/v1/self", token=token).json
    assert got["committed"] == 40 and got["commits"] < 40


def test_a_bad_neighbour_does_not_spoil_the_commit(start, document):
    """Of those that wait together one has an id that is taken: the others are kept."""
    server = start("--per-address", 0, "--rate", 0)
    token = server.token()
    assert server.ask("POST", "/api/v1/runs", token=token, body=document(3, kind="run")).status == 201
    db = lock(server)
    clients = [server.client() for _ in range(8)]
    for i, c in enumerate(clients):
        c.send(request("POST", "/api/v1/runs", token=token, body=document(i)))
    db.execute("ROLLBACK")
    db.close()
    assert [c.reply().status for c in clients] == [201, 201, 201, 409, 201, 201, 201, 201]


# ---- starting ----

def test_data_that_others_may_see_is_refused(tare, tmp_path):
    open_folder = tmp_path / "open"
    open_folder.mkdir(mode=0o755)
    open_folder.chmod(0o755)
    for args in (("serve", "--port", 0), ("token", "list")):
        said = tare(*args, "--data", open_folder, status=2).stderr
        assert "chmod 700" in said and str(open_folder) in said


def test_an_address_of_the_network_needs_tls_in_front(tare):
    said = tare("serve", "--bind", "0.0.0.0", "--port", 0, status=2).stderr
    assert "--behind-proxy" in said
    assert "no address" in tare("serve", "--bind", "nowhere", status=2).stderr


def test_a_port_that_is_taken(server, tare, tmp_path):
    said = tare("serve", "--port", server.port, "--data", tmp_path / "other", status=3).stderr
    assert "cannot listen on 127.0.0.1 port %d" % server.port in said
