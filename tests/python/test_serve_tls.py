# SPDX-License-Identifier: MIT
"""tare serve --tls-cert: who shakes hands and who does not, and that everything else is as it is without TLS. What
test_serve.py asks of connections is asked here again: the tests are the same functions, the server is another."""

import json
import re
import signal
import socket
import ssl
import subprocess
import threading
import warnings

import pytest

from certificates import authority, openssl, pair, start, with_tls  # noqa: F401
from serve_client import WAIT, Client, request
from served import command, document, eventually, server  # noqa: F401
from test_serve import (  # noqa: F401
    test_a_body_that_is_too_large, test_a_client_that_does_not_read_is_reset, test_a_client_that_leaves_while_its_run_is_kept,
    test_a_refused_request_ends_the_connection_after_its_answer, test_a_run_is_kept_and_comes_back_as_it_was,
    test_a_second_signal_ends_it_at_once, test_continue_is_said_before_the_body_comes, test_drips_are_ended_and_others_do_not_notice,
    test_health_says_ok_and_no_more, test_many_writers_share_commits, test_requests_in_a_row_are_answered_in_their_order, test_too_many_requests,
    test_what_changes_something_must_not_come_from_another_site, test_what_is_under_way_is_answered_at_the_end)


def plain(server):
    """A socket without TLS."""
    return Client(server.port)


def self_of(server, token):
    return server.ask("GET", "/api/v1/self", token=token).json


# ---- who shakes hands ----

def test_the_address_is_https_and_cookies_are_for_https_alone(server):
    assert server.address == "https://127.0.0.1:%d" % server.port
    link = server.process.stdout.readline().strip()
    if link:  # built with its pages
        assert link.startswith(server.address + "/login#once=")
    got = server.ask("POST", "/api/v1/session", body=json.dumps({"token": server.token("read")}).encode(), headers={"Origin": "https://localhost"})
    assert got.status in (200, 201, 204), got.body
    assert re.fullmatch(r"__Host-tare_session=[0-9a-f]{64}; Path=/; HttpOnly; SameSite=Strict; Secure", got.headers["set-cookie"])


def test_pages_of_plain_http_are_another_site(server):
    """They have the server's name, and may be anybody's on the way."""
    login = json.dumps({"token": server.token("read")}).encode()
    for origin, status in (("http://localhost", 403), ("http://127.0.0.1:%d" % server.port, 403), ("HTTPS://localhost", 201)):
        assert server.ask("POST", "/api/v1/session", body=login, headers={"Origin": origin}).status == status, origin


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_versions_that_are_spoken(server, version):
    server.tls.minimum_version = server.tls.maximum_version = version
    server.tls.set_alpn_protocols(["h2", "http/1.1"])
    c = server.client()
    assert c.sock.version() == version.name.replace("_", ".") and c.sock.selected_alpn_protocol() == "http/1.1" and c.sock.compression() is None
    c.send(request("GET", "/healthz"))
    assert c.reply().status == 200


@pytest.mark.parametrize("offered, chosen", [(["http/1.1"], "http/1.1"), (["http/1.0", "h2", "http/1.1"], "http/1.1"), ([], None)])
def test_what_is_spoken_within_is_told(server, offered, chosen):
    if offered:
        server.tls.set_alpn_protocols(offered)
    c = server.client()
    c.send(request("GET", "/healthz"))
    assert c.sock.selected_alpn_protocol() == chosen and c.reply().status == 200


@pytest.mark.parametrize("offered", [["h2"], ["http/1.0", "h3"], ["http/1.10"]])
def test_a_client_that_speaks_something_else_is_told(server, offered):
    server.tls.set_alpn_protocols(offered)
    with pytest.raises(ssl.SSLError, match="(?i)no.application.protocol"):
        server.client()


def test_older_versions_are_refused(server):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server.tls.minimum_version, server.tls.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    server.tls.set_ciphers("DEFAULT@SECLEVEL=0")
    with pytest.raises(ssl.SSLError, match="(?i)alert.protocol.version"):
        server.client()


def test_clients_see_who_it_is(server, authority, tmp_path):
    with pytest.raises(ssl.SSLCertVerificationError, match="self-signed|unable to get local issuer"):
        Client(server.port, tls=ssl.create_default_context())
    with pytest.raises(ssl.SSLCertVerificationError, match="(?i)hostname mismatch"):
        authority.trust().wrap_socket(plain(server).sock, server_hostname="tare.example")
    assert server.ask("GET", "/healthz").status == 200


def test_a_session_is_taken_up_again(server):
    server.tls.maximum_version = ssl.TLSVersion.TLSv1_2
    first = server.client()
    first.send(request("GET", "/healthz"))
    assert first.reply().status == 200
    again = server.tls.wrap_socket(plain(server).sock, server_hostname="localhost", session=first.sock.session)
    assert again.session_reused


def test_keys_are_changed_when_a_client_wants_it(server, authority):
    """openssl s_client does on a line with K, and asks the server to do the same."""
    c = subprocess.Popen(["openssl", "s_client", "-connect", "127.0.0.1:%d" % server.port, "-CAfile", str(authority.certificate), "-tls1_3"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        for _ in range(3):
            c.stdin.write(b"K\n")
            c.stdin.flush()
            while b"KEYUPDATE" not in (line := c.stdout.readline()):
                assert line, "it has ended"
        c.stdin.write(request("GET", "/healthz", headers={"Connection": "close"}))
        c.stdin.flush()
        assert b"HTTP/1.1 200 OK" in c.stdout.read()
    finally:
        c.kill()
        c.communicate()


# ---- what is no TLS, or slow ----

@pytest.mark.parametrize("bytes_", [request("GET", "/healthz"), b"\x16\x03\x01\xff\xff" + b"x" * 300, b"\x00" * 70000, b"\x80\x2e\x01\x00\x02" + b"\x00" * 50,
                                    b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", b"\x15\x03\x03\x00\x02\x02\x28"])
def test_plain_bytes_are_closed_and_nobody_else_notices(server, bytes_):
    other = server.client()
    c = plain(server)
    try:
        c.send(bytes_)
        c.sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # it was closed already
    said = b""
    try:
        while piece := c.sock.recv(65536):
            said += piece
    except ConnectionResetError:
        pass
    assert not said.startswith(b"HTTP/") and len(said) < 100  # an alert at the most
    other.send(request("GET", "/healthz"))
    assert other.reply().status == 200


def test_broken_records_after_the_handshake(server):
    c = server.client()
    c.send(request("GET", "/healthz"))
    assert c.reply().status == 200
    raw = socket.socket(fileno=c.sock.detach())
    raw.settimeout(WAIT)
    raw.sendall(b"\x17\x03\x03\x00\x40" + b"x" * 64)
    try:
        while raw.recv(65536):
            pass
    except ConnectionResetError:
        pass
    raw.close()
    assert server.ask("GET", "/healthz").status == 200


def test_handshakes_that_drip_are_closed(server, authority):
    """From accept on there is one deadline for all of it; a byte now and then does not move it."""
    token = server.token()
    outgoing = ssl.MemoryBIO()
    hello = authority.trust().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        hello.do_handshake()
    bytes_ = outgoing.read()
    dripping, silent, stop = plain(server), plain(server), threading.Event()

    def drip():
        for b in bytes_[:-1]:
            try:
                dripping.send(bytes([b]))
            except OSError:
                return
            if stop.wait(0.3):
                return

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        assert dripping.is_closed() and silent.is_closed()
    finally:
        stop.set()
        thread.join()
    assert self_of(server, token)["closed_by_deadline"] == 2


def test_one_address_cannot_take_all_connections(start):
    server = start("--per-address", "3")
    held = [server.client() for _ in range(3)]
    with pytest.raises((ssl.SSLError, OSError)):
        server.client()
    held.pop().close()

    def comes_in():
        try:
            return server.ask("GET", "/healthz").status == 200
        except (ssl.SSLError, OSError):
            return False

    eventually(comes_in)


# ---- bytes ----

def test_requests_cut_into_records_of_a_byte(server, document):
    """And the other way round: one record with several requests."""
    c = server.client()
    for b in request("GET", "/healthz"):
        c.send(bytes([b]))
    assert c.reply().status == 200
    c.send(request("GET", "/healthz") * 50)
    assert [c.reply().status for _ in range(50)] == [200] * 50


def test_large_documents_there_and_back(server, document):
    """Of many records: blanks in front make it large, and it comes back as it was."""
    token = server.token()
    text = document(1)
    assert server.ask("POST", "/api/v1/runs", token=token, body=b" " * (6 << 20) + text).status == 201
    c = server.client()
    target = "/api/v1/runs/" + json.loads(text)["id"]
    c.send(request("GET", target, token=token) * 3)  # more than the kernel's buffers hold at once
    for _ in range(3):
        got = c.reply()
        assert got.status == 200 and got.body == b" " * (6 << 20) + text


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_that_has_said_all(server, version, document):
    """close_notify or FIN right behind the request: the reply still comes, whole, and then the server's close_notify."""
    token = server.token()
    server.tls.minimum_version = server.tls.maximum_version = version
    c = server.client()
    c.send(request("POST", "/api/v1/runs", token=token, body=document(3)))
    socket.socket.shutdown(c.sock, socket.SHUT_WR)  # FIN, TLS goes on
    assert c.reply().status == 201
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    raw = plain(server).sock
    tls = server.tls.wrap_bio(incoming, outgoing, server_hostname="localhost")

    def until_done(call):
        while True:
            try:
                return call()
            except ssl.SSLWantReadError:
                raw.sendall(outgoing.read())
                piece = raw.recv(65536)
                incoming.write(piece) if piece else incoming.write_eof()

    until_done(tls.do_handshake)
    tls.write(request("GET", "/healthz"))
    with pytest.raises(ssl.SSLWantReadError):
        tls.unwrap()  # close_notify, in the same packet as the request
    raw.sendall(outgoing.read())
    raw.settimeout(WAIT)
    said = b""
    while piece := raw.recv(65536):
        said += piece
    assert len(said) > 200  # the reply is within: its bytes are encrypted, and reading them after unwrap() is not possible
    assert self_of(server, token)["replies"]["2xx"] >= 2


def test_a_reply_without_length_ends_with_close_notify(server):
    """Else nobody could tell the end from a cut."""
    c = server.client()
    c.sock.suppress_ragged_eofs = False
    c.send(request("GET", "/healthz", headers={"Connection": "close"}))
    assert c.reply().status == 200
    assert c.sock.recv(10) == b""  # SSLEOFError where it is cut


def test_a_reply_under_way_at_the_end_is_sent_whole(server, document):
    token, text = server.token(), document(1)
    assert server.ask("POST", "/api/v1/runs", token=token, body=text).status == 201
    target, n = "/api/v1/runs/" + json.loads(text)["id"], 300
    c = server.client()
    before = self_of(server, token)["requests"]
    c.send(request("GET", target, token=token))
    c.send(request("GET", target, token=token) * (n - 1))
    eventually(lambda: self_of(server, token)["requests"] > before + 2)
    server.process.send_signal(signal.SIGTERM)
    got = []
    while (r := c.reply()) is not None:
        got.append(r)
    assert got and {r.status for r in got} == {200} and len({r.body for r in got}) == 1
    assert server.process.wait(WAIT) == 0


def test_idle_connections_cost_little(start, command):
    """Buffers of 16 KB and more each way are given back; what stays is OpenSSL's state of a session."""
    if "asan" in command:
        pytest.skip("AddressSanitizer keeps what was freed")
    server = start("--per-address", "0")

    def kb():
        with open("/proc/%d/status" % server.pid, encoding="ascii") as f:
            return int(re.search(r"VmRSS:\s*(\d+)", f.read()).group(1))

    def idle(n):
        made = [server.client() for _ in range(n)]
        for c in made:
            c.send(request("GET", "/healthz"))
            assert c.reply().status == 200
        return made

    first = idle(20)
    before = kb()
    more = idle(200)
    assert (kb() - before) / 200 < 30 and len(first) + len(more) == 220


# ---- files ----

def refused(tare, tmp_path, *options):
    done = subprocess.run([tare, "serve", "--port", "0", "--data", str(tmp_path / "data"), *map(str, options)], capture_output=True, text=True,
                          timeout=WAIT, check=False)
    assert done.returncode == 2 and done.stdout == "", done
    return done.stderr


def test_files_that_cannot_be_used(command, with_tls, tmp_path, authority, pair):
    certificate, key = pair
    _, other = authority.issue("other")
    secret, open_key = tmp_path / "secret.key", tmp_path / "open.key"
    openssl("pkey", "-in", key, "-aes128", "-passout", "pass:x", "-out", secret)
    secret.chmod(0o600)
    open_key.write_bytes(key.read_bytes())
    open_key.chmod(0o644)
    for given, words in [((certificate, tmp_path / "none"), ["none: No such file"]), ((tmp_path / "none", key), ["none: No such file"]),
                         ((certificate, other), ["is not the key of the certificate"]), ((certificate, open_key), ["open.key: others may use the key", "644", "chmod 600"]),
                         ((certificate, secret), ["secret.key: the key has a passphrase"]), ((key, key), ["holds no certificate"]),
                         ((certificate, authority.certificate), ["ca.pem: others may use"]), ((certificate, tmp_path), ["is no file"])]:
        said = refused(command, tmp_path, "--tls-cert", given[0], "--tls-key", given[1])
        assert all(w in said for w in words), said
    text = tmp_path / "text.key"
    text.write_text("no key\n")
    text.chmod(0o600)
    assert "text.key: holds no key in PEM" in refused(command, tmp_path, "--tls-cert", certificate, "--tls-key", text)
    assert "belong together" in refused(command, tmp_path, "--tls-cert", certificate)
    assert "belong together" in refused(command, tmp_path, "--tls-key", key)


def test_an_expired_certificate_is_told(start, authority):
    server = start(files=authority.issue("old", days=-1))
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        server.client()
    code, said = server.stop()
    assert code == 0 and "old.pem: the certificate has expired" in said


def test_a_renewed_certificate_is_read_without_an_end(start, authority, tmp_path):
    files = tmp_path / "now.pem", tmp_path / "now.key"

    def install(pair):
        for to, path in zip(files, pair):
            new = to.with_suffix(".new")
            new.write_bytes(path.read_bytes())
            new.chmod(0o600)
            new.rename(to)

    def serial():
        c = server.client()
        try:
            return c.sock.getpeercert()["serialNumber"]
        finally:
            c.close()

    install(authority.issue("first"))
    server = start(files=files)
    before, open_one = serial(), server.client()
    install(authority.issue("second"))
    assert serial() == before
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: serial() != before)
    open_one.send(request("GET", "/healthz"))  # who was there goes on
    assert open_one.reply().status == 200
    now = serial()
    files[1].write_text("no key")
    server.process.send_signal(signal.SIGHUP)
    while "the certificate stays as it was" not in (line := server.process.stderr.readline()):
        assert line, "it has ended"
    assert "now.key: holds no key in PEM" in line and serial() == now
    assert server.stop()[0] == 0


def test_an_address_of_the_network_is_fine_with_tls(start, command, tmp_path):
    assert "--tls-cert" in refused(command, tmp_path, "--bind", "0.0.0.0")
    server = start("--bind", "0.0.0.0", "--allow-host", "tare.example", data=tmp_path / "other")
    assert server.address == "https://0.0.0.0:%d" % server.port
    assert server.ask("GET", "/healthz", headers={"Host": "tare.example"}).status == 200
