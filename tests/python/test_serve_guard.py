# SPDX-License-Identifier: MIT
"""Who may do what, over every route that the server says it has (its OpenAPI document, which a unit test holds to be the
table of routes): route x role x method, other projects, other spellings of paths, bodies that are bombs."""

import gzip
import json
import os
import sqlite3
import zlib

import pytest

from serve_client import request
from served import command, document, eventually, id_of, server, start  # noqa: F401

SCOPES = ("read", "ingest", "run", "admin")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "TRACE")
NOBODY = "01KA3QZ4M6S1V7W8X9Y0Z1A2B3"  # an id that nothing has


@pytest.fixture
def fast(start):
    """Without limits on rates: a matrix is many requests."""
    return start("--rate", 0)


class Route:
    def __init__(self, path, method, told):
        self.path, self.method, self.told = path, method.upper(), told
        self.scope = told["x-scope"]
        self.name = "%s %s" % (self.method, path)
        self.here = path.replace("{id}", NOBODY)
        self.takes = next(iter(told["requestBody"]["content"])) if "requestBody" in told else None

    def ask(self, server, token=None, path=None, headers=(), **more):
        body = b"{}" if self.takes else None
        return server.ask(self.method, path or self.here, token=token, body=body, headers={"Content-Type": self.takes, **dict(headers)}, **more)


def routes_of(server, token):
    """Those that there are; the read token is asked for anyway."""
    paths = server.ask("GET", "/api/v1/openapi.json", token=token).json["paths"]
    found = [Route(path, method, told) for path, methods in paths.items() for method, told in methods.items()]
    assert len(found) > 5
    return found


def is_off(got):
    """Running things is off unless its operator says otherwise: 403, whoever asks."""
    return got.status == 403 and "--operations" in got.json["detail"]


# ---- the document ----

def test_the_document_is_valid_openapi(server):
    validator = pytest.importorskip("openapi_spec_validator")
    told = server.ask("GET", "/api/v1/openapi.json", token=server.token("read")).json
    assert told["openapi"].startswith("3.1")
    validator.validate(told)
    names = [o["operationId"] for methods in told["paths"].values() for o in methods.values()]
    assert len(names) == len(set(names))


def test_what_the_document_promises_is_so(fast, document):
    """Every example is sent and taken; every answer has a status that the document names, of the type it names."""
    token = fast.token("read,ingest,run,admin")
    ids = {"/api/v1/runs/{id}": id_of(document(1))}
    assert fast.ask("POST", "/api/v1/runs", token=token, body=document(1)).status == 201
    for route in routes_of(fast, token):
        example = route.told.get("x-example")
        path, body = route.path.replace("{id}", ids.get(route.path, NOBODY)), None
        if "requestBody" in route.told:
            body = (example or "{}").encode()
        elif example:
            path += example
        got = fast.ask(route.method, path, token=token, body=body, headers={"Content-Type": route.takes})
        known = route.told["responses"]
        assert str(got.status) in known or "%dXX" % (got.status // 100) in known, (route.name, got.status, got.body)
        if example:
            assert got.status < 300, (route.name, got.body)
        if got.status == 200 and "200" in known:
            assert got.headers["content-type"].split(";")[0] in known["200"]["content"], route.name


# ---- route x role x method ----

def test_every_route_asks_for_its_scope_and_no_other_helps(fast):
    """Nobody: 401. A token of all scopes but the one: 403. The one: neither."""
    tokens = {scope: fast.token(scope) for scope in SCOPES}
    without = {scope: fast.token(",".join(s for s in SCOPES if s != scope)) for scope in SCOPES}
    for route in routes_of(fast, tokens["read"]):
        if route.scope == "none":
            assert route.ask(fast).status not in (401, 403), route.name
            continue
        assert route.scope in SCOPES, route.name
        assert route.ask(fast).status in (401, 429), route.name  # 429: guesses are slowed down
        refused = route.ask(fast, without[route.scope])
        assert refused.status == 403 and "scope" in refused.json["detail"], (route.name, refused.body)
        got = route.ask(fast, tokens[route.scope])
        if is_off(got):
            continue
        assert got.status not in (401, 403, 405) and got.status < 500, (route.name, got.status, got.body)


def test_methods_that_a_path_has_not_do_nothing(fast):
    token = fast.token(",".join(SCOPES))
    routes = routes_of(fast, token)
    for path in sorted({r.path for r in routes}):
        has = {r.method for r in routes if r.path == path}
        has |= {"HEAD"} if "GET" in has else set()
        for method in METHODS:
            if method in has:
                continue
            got = fast.ask(method, path.replace("{id}", NOBODY), token=token)
            assert got.status in (400, 405), (method, path, got.status)
            if got.status == 405:
                assert set(got.headers["allow"].split(", ")) == has, path


def test_what_changes_something_is_refused_from_other_sites_on_every_route(fast):
    token = fast.token(",".join(SCOPES))
    for route in routes_of(fast, token):
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            got = route.ask(fast, token, headers=headers)
            assert route.method == "GET" or got.status == 403, (route.name, headers)
        assert route.ask(fast, token, headers={"Host": "evil.example"}).status == 421, route.name


# ---- other projects ----

def test_nothing_of_another_project_is_seen_on_any_route(fast, document):
    """Both projects are filled by what their tokens may do; then no answer to one of them has a word of the other's."""
    every = ",".join(SCOPES)
    mine, theirs = fast.token(every, "--project", "mine"), fast.token(every, "--project", "secretproject")
    secret = json.loads(document(2))
    secret["subject"]["name"] = "secretsubject"
    secret = json.dumps(secret).encode()
    assert fast.ask("POST", "/api/v1/runs", token=mine, body=document(1)).status == 201
    assert fast.ask("POST", "/api/v1/runs", token=theirs, body=secret).status == 201
    known = [id_of(secret), "secretsubject", "secretproject", theirs.split("_")[2]]
    routes = routes_of(fast, mine)
    told = "".join(r.ask(fast, theirs).body.decode("utf-8", "replace") for r in routes if r.method == "GET")
    assert known[0] in told  # the other way round it would be seen
    for route in sorted(routes, key=lambda r: "{id}" in r.path):  # ids last: the audit tells one what one asked oneself
        for id_ in (known[0], known[3], "secretsubject", "secretproject"):
            if "{id}" not in route.path and id_ != known[0]:
                continue
            got = route.ask(fast, mine, path=route.path.replace("{id}", id_))
            for word in known:
                assert word.encode() not in got.body, (route.name, word)
            if "{id}" in route.path:
                assert got.status in (400, 404, 409, 422), (route.name, id_, got.status)
                absent = route.ask(fast, mine)
                assert absent.status == got.status, (route.name, "absent and foreign are told apart")
    assert fast.ask("GET", "/api/v1/runs/" + known[0], token=theirs).body == secret


# ---- spellings of paths ----

TRICKS = ["/..", "/../", "/.", "//", "/%2e%2e", "/%2e%2e/", "/..%2f", "/%2e%2e%2f", "/%252e%252e", "/%252e%252e%252f", "/..%5c", "/..\\", "\\..\\", "%5c",
          "/..;/", ";/..", ";x=1", "/.%00./", "%00", "%0a", "%0d%0a", "/%c0%ae%c0%ae", "/%e0%80%ae", "/%uff0e", "/..%c0%af", "/....//", "/.../", "%2f", "%2F..",
          "/%2e", "/~", "/*", "/{id}", "%7bid%7d", "/x/..", "/%ff", "/%", "/%zz", "/file:%2f%2f%2fetc%2fpasswd", "/etc/passwd", "/%2fetc%2fpasswd", "/#", "/|id",
          "/`id`", "/$(id)", "/'or'1'='1", "/%27%20or%201=1", "/history.db", "/../history.db"]


def test_other_spellings_are_404_on_every_route(fast):
    token = fast.token(",".join(SCOPES))
    client = fast.client()
    asked = 0
    for path in sorted({r.path for r in routes_of(fast, token)}):
        base = path.replace("{id}", NOBODY)
        spelled = [base + trick for trick in TRICKS] + [trick + base for trick in TRICKS if trick.startswith("/")]
        spelled += [base.replace("/", "//", 1), base[:-1] + "%%%02x" % ord(base[-1]), base.upper() + "X", base.replace("/", "/./", 1), base.replace("/", "%2f")]
        for odd in spelled:
            client.send(request("GET", odd, token=token))
            got = client.reply()
            asked += 1
            assert got.status in (400, 404), (odd, got.status)  # 400: no byte of a request
            assert b"passwd" not in got.body and b"root:" not in got.body and b"SQLite" not in got.body, odd
            if got.status == 400 or got.headers.get("connection") == "close":
                client.close()
                client = fast.client()
    assert asked > 400
    assert fast.ask("GET", "/healthz").status == 200


# ---- bodies that are bombs ----

def test_compressed_bodies_are_refused_on_every_route(fast, document):
    """Nothing is unpacked but gzip of OTLP, which has its own test: 415, and the connection ends without the body being read."""
    token = fast.token(",".join(SCOPES))
    bomb = gzip.compress(b" " * (4 << 20))
    for route in routes_of(fast, token):
        if "requestBody" not in route.told:
            continue
        for coding, body in (("gzip" if route.here != "/v1/metrics" else "x-gzip", bomb), ("deflate", zlib.compress(b"x" * 100000)), ("br", b"\x00"), ("identity, gzip", bomb)):
            got = fast.ask(route.method, route.here, token=token, body=body, headers={"Content-Encoding": coding})
            assert got.status == 415 and "Content-Encoding" in got.json["detail"], (route.name, coding, got.status)
    assert fast.ask("POST", "/api/v1/runs", token=token, body=document(1), headers={"Content-Encoding": "identity"}).status == 201


@pytest.mark.parametrize("bomb", [
    b"[" * 200000, b'{"a":' * 50000 + b"1" + b"}" * 50000, b"[" + b"1," * 400000 + b"1]", b'"' + b"a" * 800000 + b'"', b'"' + b"\\u0000" * 100000 + b'"',
    b"1" * 500000, b"1e999999999", b'{' + b",".join(b'"%d":1' % i for i in range(60000)) + b"}", b"\xef\xbb\xbf{}", b"\xff" * 1000, b"", b"null", b"{}{}",
], ids=["deep arrays", "deep objects", "long array", "long text", "NULs", "digits", "exponent", "members", "mark", "no UTF-8", "empty", "null", "two"])
def test_json_bombs_on_every_route(fast, bomb):
    """Whatever takes JSON says what is wrong with it, and serves on."""
    token = fast.token(",".join(SCOPES))
    for route in routes_of(fast, token):
        if route.takes != "application/json":
            continue
        got = fast.ask(route.method, route.here, token=token, body=bomb)
        assert is_off(got) or got.status in (400, 404, 413, 422), (route.name, got.status, got.body)
        assert len(got.body) < 2000
    assert fast.ask("GET", "/healthz").status == 200


@pytest.mark.parametrize("path", ["/api/v1/requests", "/v1/metrics"])
def test_the_memory_of_a_bomb_is_given_back(fast, path):
    """4 MiB of empty lists are a tree of some 100 MB; what is left afterwards is one heap of the allocator at most."""
    token = fast.token("ingest")

    def resident():
        with open("/proc/%d/statm" % fast.pid, encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20
    before = resident()
    for _ in range(4):
        assert fast.ask("POST", path, token=token, body=b"[" + b"[]," * 1390000 + b"[]]").status in (400, 422)
    assert resident() - before < 64


def test_a_flood_of_headers_is_refused(server):
    for lines in ([b"X-%d: y" % i for i in range(101)], [b"X: " + b"y" * 17000], [b"X-%d: " % i + b"z" * 500 for i in range(60)], [b"Cookie: a=b"] * 5000):
        client = server.client()
        try:
            client.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"\r\n".join(lines) + b"\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert client.reply().status == 431
    assert server.ask("GET", "/healthz").status == 200


# ---- tokens ----

def ids(server, token):
    return [t["id"] for t in server.ask("GET", "/api/v1/tokens", token=token).json["tokens"]]


def test_tokens_are_made_listed_and_revoked(server, tare):
    admin = server.token("admin", "--name", "root")
    made = server.ask("POST", "/api/v1/tokens", token=admin, body=b'{"scopes": "ingest,read", "name": "CI", "project": "nlp", "expires_s": 3600}')
    assert made.status == 201 and made.headers["location"] == "/api/v1/tokens/" + made.json["id"]
    token = made.json["token"]
    assert token.startswith("tare_read-ingest_" + made.json["id"] + "_")
    assert server.ask("GET", "/api/v1/runs", token=token).status == 200
    eventually(lambda: all(t["used"] for t in server.ask("GET", "/api/v1/tokens", token=admin).json["tokens"]))
    said = server.ask("GET", "/api/v1/tokens", token=admin)
    assert token.split("_")[-1] not in said.body.decode()
    assert said.json["tokens"] == json.loads(tare("token", "list", "--json", "--data", server.data).stdout)["tokens"]
    assert server.ask("DELETE", made.headers["location"], token=admin).status == 204
    eventually(lambda: server.ask("GET", "/api/v1/runs", token=token).status == 401)
    assert server.ask("DELETE", made.headers["location"], token=admin).status == 404
    assert [t["state"] for t in server.ask("GET", "/api/v1/tokens", token=admin).json["tokens"]] == ["good", "revoked"]


@pytest.mark.parametrize("body, word", [
    (b"{}", "scopes"), (b'{"scopes": "root"}', "scopes"), (b'{"scopes": ["read"]}', "scopes"), (b'{"scopes": "read", "project": "a b"}', "project"),
    (b'{"scopes": "read", "name": 1}', "name"), (b'{"scopes": "read", "expires_s": 0}', "expires_s"), (b'{"scopes": "read", "expires_s": 1.5}', "expires_s"),
    (b'{"scopes": "read", "expires": 5}', "expires_s"), (b'{"scopes": "read", "scopes": "admin"}', "line 1"), (b'{"scopes": ""}', "scopes"),
])
def test_what_is_wrong_with_a_wish_is_told(server, body, word):
    admin = server.token("admin")
    got = server.ask("POST", "/api/v1/tokens", token=admin, body=body)
    assert got.status == 422 and word in got.json["detail"], got.body
    assert len(ids(server, admin)) == 1


def test_an_administrator_of_a_project_cannot_leave_it(server):
    everything, bound, other = server.token("admin"), server.token("admin", "--project", "nlp"), server.token("read", "--project", "ads")
    assert ids(server, bound) == [bound.split("_")[2]] and len(ids(server, everything)) == 3
    for id_ in (other.split("_")[2], everything.split("_")[2], "000000000000"):
        assert server.ask("DELETE", "/api/v1/tokens/" + id_, token=bound).status == 404
    assert server.ask("POST", "/api/v1/tokens", token=bound, body=b'{"scopes": "admin", "project": "ads"}').status == 403
    made = server.ask("POST", "/api/v1/tokens", token=bound, body=b'{"scopes": "admin,read,ingest"}').json
    assert [t["project"] for t in server.ask("GET", "/api/v1/tokens", token=made["token"]).json["tokens"]] == ["nlp", "nlp"]
    seen = server.ask("GET", "/api/v1/audit", token=made["token"]).json["entries"]
    assert seen and {e["project"] for e in seen} == {"nlp"}
    assert server.ask("DELETE", "/api/v1/tokens/" + bound.split("_")[2], token=made["token"]).status == 204


# ---- the audit ----

def test_who_did_what_is_in_the_audit(server, document, tare):
    admin, reader = server.token("admin"), server.token("read")
    made = server.ask("POST", "/api/v1/tokens", token=admin, body=b'{"scopes": "ingest"}')
    assert server.ask("POST", "/api/v1/runs", token=made.json["token"], body=document(1)).status == 201  # no entry
    gone = server.ask("DELETE", "/api/v1/tokens/" + made.json["id"], token=admin)
    none = server.ask("DELETE", "/api/v1/tokens/" + NOBODY, token=admin)
    refused = server.ask("GET", "/api/v1/tokens", token=reader)
    stranger = server.ask("GET", "/api/v1/self", token="tare_read_0123456789ab_" + "0" * 64)
    wanted = [("token new", None, 200), ("token new", None, 200), ("POST /api/v1/tokens", made, 201), ("DELETE /api/v1/tokens/{id}", gone, 204),
              ("DELETE /api/v1/tokens/{id}", none, 404), ("GET /api/v1/tokens", refused, 403), ("GET /api/v1/self", stranger, 401)]
    told = lambda: server.ask("GET", "/api/v1/audit", token=admin).json["entries"][::-1]  # noqa: E731
    eventually(lambda: len(told()) == len(wanted))
    for entry, (what, reply, status) in zip(told(), wanted):
        assert (entry["what"], entry["status"]) == (what, status)
        assert entry["request"] == (reply.headers["x-request-id"] if reply else None)
        assert entry["from"] == ("127.0.0.1" if reply else "command")
    made_entry, stranger_entry = told()[2], told()[-1]
    assert made_entry["who"] == admin.split("_")[2] and made_entry["about"] == made.json["id"] and stranger_entry["who"] is None
    page = server.ask("GET", "/api/v1/audit?limit=2&before=4", token=admin).json["entries"]
    assert [e["seq"] for e in page] == [3, 2]
    for bad in ("?limit=0", "?limit=1001", "?before=0", "?before=x"):
        assert server.ask("GET", "/api/v1/audit" + bad, token=admin).status == 400
    by_command = json.loads(tare("audit", "list", "--json", "--data", server.data).stdout)["entries"]
    assert by_command == [{k: v for k, v in e.items() if k != "hash"} for e in told()[::-1]]
    said = tare("audit", "verify", "--data", server.data).stdout
    assert "7 entries" in said and "head " + told()[-1]["hash"] in said


def test_what_was_done_to_the_audit_is_found(server, tare):
    admin = server.token("admin")
    for _ in range(4):
        assert server.ask("POST", "/api/v1/tokens", token=admin, body=b'{"scopes": "read"}').status == 201
    tare("audit", "verify", "--data", server.data)
    with sqlite3.connect(os.path.join(server.data, "history.db")) as db:
        db.execute("UPDATE audit SET about = 'another' WHERE seq = 3")
    db.close()
    said = tare("audit", "verify", "--data", server.data, status=1).stderr
    assert "entry 3 of the audit is not as it was written" in said


def test_a_flood_of_refusals_does_not_fill_the_disk(start, tare):
    server = start("--rate", 0)
    admin, reader = server.token("admin"), server.token("read")
    c = server.client()
    c.send(request("GET", "/api/v1/tokens", token=reader) * 1000)
    assert {c.reply().status for _ in range(1000)} == {403}

    def counted():
        entries = server.ask("GET", "/api/v1/audit?limit=1000", token=admin).json["entries"]
        listed = [e for e in entries if e["what"] == "GET /api/v1/tokens"]
        more = sum(int(e["about"]) for e in entries if e["what"].startswith("more requests"))
        return len(listed) + more == 1000 and more > 0
    eventually(counted)
    tare("audit", "verify", "--data", server.data)
