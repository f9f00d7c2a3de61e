# SPDX-License-Identifier: MIT
"""Logging in to tare serve: links, tokens, cookies, and what other sites cannot do with them."""

import gzip
import hashlib
import json
import re
import subprocess

import pytest

from served import command, document, eventually, server, start  # noqa: F401

OURS = {"Origin": "http://localhost", "X-Tare": "page"}


def log_in(server, origin="http://localhost", **secret):
    return server.ask("POST", "/api/v1/session", body=json.dumps(secret).encode(), headers={**OURS, "Origin": origin})


def cookie_of(reply):
    return reply.headers["set-cookie"].split(";")[0]


def link_of(server):
    line = server.process.stdout.readline().strip()
    if not line:
        pytest.skip("built without node: no pages")
    assert line.startswith(server.address + "/login#once=")
    return line.split("=")[1]


def who(server, cookie):
    return server.ask("GET", "/api/v1/session", headers={"Cookie": cookie}).json["session"]


# ---- in ----

def test_a_link_works_once(server):
    once = link_of(server)
    got = log_in(server, once=once)
    assert got.status == 201 and got.json["session"]["scopes"] == "read,run,admin" and got.json["session"]["token"] is None
    assert server.ask("GET", "/api/v1/self", headers={"Cookie": cookie_of(got)}).status == 200
    again = log_in(server, once=once)
    assert again.status == 401 and "set-cookie" not in again.headers
    assert who(server, cookie_of(got))  # who was in stays in


def test_a_session_is_worth_what_its_token_is(server, document):
    got = log_in(server, token=server.token("read", "--project", "a"))
    assert got.status == 201 and got.json["session"]["project"] == "a"
    cookie = {"Cookie": cookie_of(got)}
    assert server.ask("GET", "/api/v1/runs", headers=cookie).status == 200
    assert server.ask("POST", "/api/v1/runs", body=document(1), headers={**cookie, **OURS}).status == 403
    foreign = server.ask("POST", "/api/v1/runs", token=server.token("ingest", "--project", "b"), body=document(2))
    assert foreign.status == 201
    assert server.ask("GET", "/api/v1/runs", headers=cookie).json["runs"] == []
    assert server.ask("GET", "/api/v1/runs/" + foreign.json["id"], headers=cookie).status == 404


def test_the_cookie(server, start, tmp_path):
    plain = log_in(server, token=server.token("read")).headers["set-cookie"]
    assert re.fullmatch(r"tare_session_%d=[0-9a-f]{64}; Path=/; HttpOnly; SameSite=Strict" % server.port, plain)
    behind = start("--behind-proxy", data=tmp_path / "behind")
    assert log_in(behind, token=behind.token("read")).status == 403  # a page of plain http, which the proxy does not serve
    got = log_in(behind, origin="https://localhost", token=behind.token("read"))
    assert re.fullmatch(r"__Host-tare_session=[0-9a-f]{64}; Path=/; HttpOnly; SameSite=Strict; Secure", got.headers["set-cookie"])
    assert who(behind, cookie_of(got))


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"{}", b'{"once": 1}', b'{"token": ["a"]}', b'{"once": "a", "token": "b"}',
                                  b'{"token": "a", "token": "b"}', b'{"token": "a\\u0000"}', b"\xff"])
def test_what_is_no_login_is_400(server, body):
    got = server.ask("POST", "/api/v1/session", body=body, headers=OURS)
    assert got.status == 400 and "set-cookie" not in got.headers


def test_guesses_are_slowed_down(server):
    answers = [log_in(server, token="tare_read_" + "0" * 12 + "_%064x" % i).status for i in range(100)]
    assert answers[0] == 401 and answers[-1] == 429
    assert log_in(server, token=server.token("read")).status == 201


def test_a_body_beyond_its_limit(server):
    assert log_in(server, token="x" * 2000).status == 413


# ---- out ----

def test_logging_out_ends_the_session_not_the_token(server):
    token = server.token("read")
    cookie = cookie_of(log_in(server, token=token))
    out = server.ask("DELETE", "/api/v1/session", headers={"Cookie": cookie, **OURS})
    assert out.status == 204 and "Max-Age=0" in out.headers["set-cookie"]
    assert server.ask("GET", "/api/v1/self", headers={"Cookie": cookie}).status == 401
    assert server.ask("GET", "/api/v1/self", token=token).status == 200


def test_a_revoked_token_takes_its_sessions_along(server, command):
    token, other = server.token("read"), server.token("read")
    cookie, stays = (cookie_of(log_in(server, token=t)) for t in (token, other))
    subprocess.run([command, "token", "revoke", "--data", server.data, token.split("_")[2]], check=True, capture_output=True)
    eventually(lambda: server.ask("GET", "/api/v1/self", headers={"Cookie": cookie}).status == 401)
    assert who(server, cookie) is None and who(server, stays)


def test_a_session_ends_by_age(start):
    server = start("--session-max", "1s")
    cookie = cookie_of(log_in(server, token=server.token("read")))
    eventually(lambda: server.ask("GET", "/api/v1/self", headers={"Cookie": cookie}).status == 401)


def test_a_restart_ends_sessions(start, tmp_path):
    first = start()
    cookie = cookie_of(log_in(first, token=first.token("read")))
    first.stop()
    again = start()
    cookie = cookie.replace(str(first.port), str(again.port))
    assert again.ask("GET", "/api/v1/self", headers={"Cookie": cookie}).status == 401


# ---- other sites ----

@pytest.mark.parametrize("headers, status", [
    (OURS, 204), ({"Origin": "http://localhost"}, 403), ({"X-Tare": "page"}, 403), ({}, 403), ({**OURS, "Origin": "http://evil.example"}, 403),
    ({**OURS, "Origin": "null"}, 403), ({**OURS, "Sec-Fetch-Site": "cross-site"}, 403), ({**OURS, "Sec-Fetch-Site": "same-site"}, 403)])
def test_what_changes_something_must_come_from_our_pages(server, headers, status):
    cookie = cookie_of(log_in(server, token=server.token("read")))
    assert server.ask("DELETE", "/api/v1/session", headers={"Cookie": cookie, **headers}).status == status
    assert bool(who(server, cookie)) == (status != 204)


def test_every_unsafe_route_with_a_session_needs_the_header(server, document):
    cookie = cookie_of(log_in(server, token=server.token("read,ingest,run,admin")))
    refused = server.ask("POST", "/api/v1/runs", body=document(1), headers={"Cookie": cookie, "Origin": "http://localhost"})
    assert refused.status == 403
    assert server.ask("POST", "/api/v1/runs", body=document(1), headers={"Cookie": cookie, **OURS}).status == 201


@pytest.mark.parametrize("spoil", [lambda c: c[:-1], lambda c: c + "0", lambda c: c.upper(), lambda c: "x" + c, lambda c: c.replace("=", "=\""),
                                   lambda c: c.split("=")[1]])
def test_cookies_that_are_none(server, spoil):
    cookie = cookie_of(log_in(server, token=server.token("read")))
    assert server.ask("GET", "/api/v1/self", headers={"Cookie": spoil(cookie)}).status == 401
    assert server.ask("GET", "/api/v1/self", headers={"Cookie": "a=b; " + cookie}).status == 200


def test_a_wrong_token_is_not_saved_by_a_cookie(server):
    cookie = cookie_of(log_in(server, token=server.token("read")))
    assert server.ask("GET", "/api/v1/self", token="tare_wrong", headers={"Cookie": cookie}).status == 401


# ---- the pages ----

def page_of(server):
    got = server.ask("GET", "/")
    if got.status == 501:
        pytest.skip("built without node: no pages")
    return got


def test_the_page_may_do_little(server):
    for path in ("/", "/login"):
        page_of(server)
        got = server.ask("GET", path)
        policy = got.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'") and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and got.headers["x-content-type-options"] == "nosniff"
        assert got.headers["cross-origin-opener-policy"] == "same-origin"
        html = gzip.decompress(got.body).decode()
        assert "<style" not in html and not re.search(r"<script(?! src=\"/assets/)", html) and "http" not in html


def test_files_are_named_by_their_hash_and_kept(server):
    html = gzip.decompress(page_of(server).body).decode()
    names = re.findall(r"\"(/assets/([0-9a-f]{16})\.(?:js|css))\"", html)
    assert len(names) == 2
    total = len(page_of(server).body)
    for path, name in names:
        got = server.ask("GET", path)
        assert got.status == 200 and hashlib.sha256(got.body).hexdigest()[:16] == name
        assert "immutable" in got.headers["cache-control"] and got.headers["content-encoding"] == "gzip"
        assert server.ask("GET", path.replace(name, "0" * 16)).status == 404
        total += len(got.body)
    assert total <= 250_000, "what a browser loads for the first page"


def test_a_page_that_is_known_is_not_sent_again(server):
    first = page_of(server)
    assert first.headers["cache-control"] == "no-cache"
    again = server.ask("GET", "/", headers={"If-None-Match": first.headers["etag"]})
    assert again.status == 304 and again.body == b"" and again.headers["etag"] == first.headers["etag"]


def test_logging_out_is_in_the_audit(server):
    admin, token = server.token("admin"), server.token("read", "--project", "nlp")
    cookie = log_in(server, token=token).headers["set-cookie"].split(";")[0]
    for _ in range(2):  # the second time there is nobody any more
        assert server.ask("DELETE", "/api/v1/session", headers={"Cookie": cookie, **OURS}).status == 204
    told = lambda: [(e["what"], e["status"], e["who"], e["project"]) for e in server.ask("GET", "/api/v1/audit", token=admin).json["entries"] if "session" in e["what"]]  # noqa: E731
    who = token.split("_")[2]
    eventually(lambda: told() == [("DELETE /api/v1/session", 204, who, "nlp"), ("POST /api/v1/session", 201, who, "nlp")])


def test_logins_are_in_the_audit(server):
    admin, token = server.token("admin"), server.token("read")
    assert log_in(server, token=token).status == 201
    assert log_in(server, token=token[:-1]).status == 401
    told = lambda: [(e["status"], e["who"]) for e in server.ask("GET", "/api/v1/audit", token=admin).json["entries"] if "session" in e["what"]]  # noqa: E731
    eventually(lambda: told() == [(401, None), (201, token.split("_")[2])])
