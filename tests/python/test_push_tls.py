# SPDX-License-Identifier: MIT
"""Runs on their way to a server by https: what test_push.py asks is asked again over TLS, and whom the client does not
trust gets nothing."""

import json
import re
import socket
import ssl
import threading

import pytest

import test_push
from certificates import Authority, authority, pair, start, with_tls  # noqa: F401
from serve_client import WAIT, Server
from served import command, document, server  # noqa: F401
from tare._requests import RequestLog
from test_push import (  # noqa: F401
    MEASURE, kept, test_a_run_is_pushed, test_a_wrong_token_and_one_that_may_not)


@pytest.fixture
def here(command, tmp_path, authority):
    (tmp_path / "here").mkdir()
    made = test_push.Here(command, tmp_path / "here")
    made.env["TARE_CA_FILE"] = str(authority.certificate)
    made.env.pop("SSL_CERT_FILE", None)
    return made


def at(server, host):
    return "https://%s:%d" % (host, server.port)


def not_sent(here, why, waits=1):
    """The run is kept here and the cause is told; `tare push` says the same."""
    said = here.run(*MEASURE).stderr
    assert re.search("not sent: https://[^ ]+: .*" + why, said) and "%d document" % waits in said, said
    assert re.search(why, here.run("push", rc=3).stderr)
    assert len(here.waiting()) == waits


def test_questions_and_answers_of_many_records(server, here, document):
    token = server.token()
    text = document(1)
    assert server.ask("POST", "/api/v1/runs", token=token, body=b" " * (3 << 20) + text).status == 201
    here.use(at(server, "localhost"), token)
    one = json.loads(text)["id"]
    assert here.run("history", "show", one, "--server", at(server, "localhost"), "--json").stdout.strip() == text.decode()


def test_an_unknown_issuer(server, here, tmp_path):
    here.use(server, server.token("ingest"))
    here.env["TARE_CA_FILE"] = str(Authority(tmp_path / "another", "another").certificate)
    not_sent(here, r"issued by nobody who is trusted here .*TARE_CA_FILE")
    del here.env["TARE_CA_FILE"]  # the system's list does not have it either
    not_sent(here, r"issued by nobody who is trusted here", waits=2)
    assert kept(server) == []


def test_the_systems_list_may_be_named(server, here, authority):
    del here.env["TARE_CA_FILE"]
    here.env["SSL_CERT_FILE"] = str(authority.certificate)
    here.use(at(server, "localhost"), server.token("ingest"))
    assert "sent to" in here.run(*MEASURE).stderr and len(kept(server)) == 1


@pytest.mark.parametrize("hosts, asked", [("DNS:tare.example", "localhost"), ("DNS:localhost", "127.0.0.1"), ("IP:127.0.0.2", "127.0.0.1"),
                                          ("DNS:127.0.0.1", "127.0.0.1")])
def test_a_certificate_of_another_host(start, here, authority, hosts, asked):
    server = start(files=authority.issue("of-another", hosts=hosts))
    here.use(at(server, asked), server.token("ingest"))
    not_sent(here, "its certificate is of another host")


def test_a_certificate_that_has_expired(start, here, authority):
    server = start(files=authority.issue("old-one", days=-1))
    here.use(server, server.token("ingest"))
    not_sent(here, "its certificate is not good: certificate has expired")


def test_a_server_without_tls(command, here, tmp_path):
    plain = Server(command, tmp_path / "plain")
    try:
        here.use(at(plain, "127.0.0.1"), plain.token("ingest"))
        not_sent(here, "TLS: ")
    finally:
        plain.kill()


def test_a_list_of_issuers_that_is_none(server, here, tmp_path):
    here.use(server, server.token("ingest"))
    for path, why in [(tmp_path / "none.pem", "none.pem: No such file"), (tmp_path / "bad.pem", "bad.pem: holds no certificates")]:
        (tmp_path / "bad.pem").write_text("no certificate\n")
        here.env["TARE_CA_FILE"] = str(path)
        assert why in here.run(*MEASURE).stderr
    assert kept(server) == []


def test_a_reply_that_is_cut(here, pair):
    """An end without close_notify may be an attacker's: what has no length is not taken for whole."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    listening = socket.create_server(("127.0.0.1", 0))

    def answer():
        raw, _ = listening.accept()
        raw.settimeout(WAIT)
        c = context.wrap_socket(raw, server_side=True)
        while b"\r\n\r\n" not in c.recv(65536):
            pass
        c.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"runs": []}')
        socket.socket(fileno=c.detach()).close()

    thread = threading.Thread(target=answer)
    thread.start()
    here.use("https://127.0.0.1:%d" % listening.getsockname()[1], "tare_read_0123456789ab_" + "0" * 64)
    done = here.run("history", "list", "--server", here.env["TARE_SERVER"], rc=3)
    thread.join()
    listening.close()
    assert "unexpected eof" in done.stderr


def test_requests_of_a_service(server, authority, monkeypatch):
    """The Python package trusts whom the command trusts."""
    log = RequestLog("shop", server.address, token=server.token("ingest"), interval_s=60)
    monkeypatch.delenv("TARE_CA_FILE", raising=False)
    log.record("GET /a", 1000)
    assert not log.flush() and log.sent == 0
    monkeypatch.setenv("TARE_CA_FILE", str(authority.certificate))
    assert log.flush() and log.sent == 1
    log.close()
