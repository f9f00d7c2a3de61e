# SPDX-License-Identifier: MIT
"""tare serve --db: several servers on one PostgreSQL, and what happens to clients when it is away, full or not ours."""

import json
import os
import subprocess
import threading
import time

import made
import pytest

from postgres import Postgres, binaries
from served import command, document, eventually, id_of, start  # noqa: F401
from test_serve_requests import MS, batch, route, send, total


@pytest.fixture(scope="module")
def pg(root, command):
    if not binaries():
        pytest.skip("PostgreSQL is not installed")
    if made.is_without("libpq"):
        pytest.skip("built without libpq")
    server = Postgres(root)
    yield server
    server.close()


@pytest.fixture
def db(pg, request):
    """A database of the test's own."""
    name = "t%d" % (abs(hash(request.node.name)) % 10**9)
    pg.sql("CREATE DATABASE %s" % name)
    return name


def refused(command, *words):
    done = subprocess.run([command, *words], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stderr


def test_two_servers_are_one(start, pg, db, document):
    one, two = start("--db", pg.url(db)), start("--db", pg.url(db))
    token = one.token()
    assert one.ask("POST", "/api/v1/runs", token=token, body=document(1)).status == 201
    assert two.ask("POST", "/api/v1/runs", token=token, body=document(1)).status == 200  # there already
    assert two.ask("POST", "/api/v1/runs", token=token, body=document(1, kind="other")).status in (409, 422)
    assert two.ask("GET", "/api/v1/runs/" + id_of(document(1)), token=token).body == document(1)
    assert [r["id"] for r in two.ask("GET", "/api/v1/runs", token=token).json["runs"]] == [id_of(document(1))]
    bound = two.token("read", "--project", "nlp")
    assert one.ask("GET", "/api/v1/runs", token=bound).json["runs"] == []
    assert one.ask("GET", "/api/v1/runs/" + id_of(document(1)), token=bound).status == 404
    assert not os.path.exists(one.data)  # nothing of it is kept here


def test_a_query_that_is_no_utf_8_does_not_reach_the_database(start, pg, db, document):
    """The database would refuse it: clients heard that the store failed, or where it is."""
    server = start("--db", pg.url(db), "--rate", 0)
    token = server.token("read,ingest,admin")
    assert server.ask("POST", "/api/v1/runs", token=token, body=document(1)).status == 201
    asked = 0
    for path, methods in server.ask("GET", "/api/v1/openapi.json", token=token).json["paths"].items():
        for given in methods.get("get", {}).get("parameters", []):
            if given["in"] != "query":
                continue
            got = server.ask("GET", "%s?%s=%%ff" % (path.replace("{id}", "x-2026111614"), given["name"]), token=token)
            assert got.status in (200, 400, 404), (path, given["name"], got.body)
            assert b"postgres" not in got.body, (path, given["name"], got.body)
            asked += 1
    assert asked > 50
    assert "UTF" not in server.stop()[1]


def test_two_servers_take_the_same_runs_at_once(start, pg, db, document):
    """Every document to both, at the same time: each is there once, and nobody hears of an error."""
    servers = [start("--db", pg.url(db), "--rate", 0), start("--db", pg.url(db), "--rate", 0)]
    token = servers[0].token()
    answers = []

    def post(server, numbers):
        answers.extend(server.ask("POST", "/api/v1/runs", token=token, body=document(n)).status for n in numbers)

    threads = [threading.Thread(target=post, args=(s, range(k, 40, 2))) for s in servers for k in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(answers) == [200] * 40 + [201] * 40
    assert pg.sql("SELECT count(*), count(DISTINCT id) FROM run", db) == "40|40"
    assert pg.sql("SELECT count(*) FROM run LEFT JOIN document ON document.run = run.seq WHERE body IS NULL", db) == "0"


def test_tokens_are_in_the_database(start, command, pg, db):
    server = start("--db", pg.url(db))
    token = server.token("read")
    listed = json.loads(subprocess.check_output([command, "token", "list", "--json", "--db", pg.url(db)]))["tokens"]
    assert [t["id"] for t in listed] == [token.split("_")[2]]
    subprocess.run([command, "token", "revoke", "--db", pg.url(db), listed[0]["id"]], check=True, capture_output=True)
    eventually(lambda: server.ask("GET", "/api/v1/self", token=token).status == 401)


def test_what_is_wrong_is_told_without_the_password(command, pg, db):
    secret = "s3cr3t"
    rc, said = refused(command, "serve", "--db", pg.url("nowhere"), "--port", "0")
    assert rc == 2 and "there is no such database" in said and "nowhere" in said
    rc, said = refused(command, "serve", "--db", "postgresql://me:%s@/x?host=%s/none" % (secret, pg.folder), "--port", "0")
    assert rc == 3 and "cannot be reached" in said and secret not in said
    rc, said = refused(command, "token", "list", "--db", "postgresql://me:%s@/x?nonsense=1" % secret)
    assert rc == 2 and "is no address of a database" in said and secret not in said
    rc, said = refused(command, "token", "list", "--db", "mysql://me:%s@host/x" % secret)
    assert rc == 2 and "postgresql://user@host/name" in said and secret not in said
    rc, said = refused(command, "token", "list", "--db", pg.url(db))
    assert rc == 2 and "there is no history here yet" in said


def test_a_wrong_password(command, pg, db):
    hba = os.path.join(pg.folder, "data", "pg_hba.conf")
    with open(hba) as f:
        before = f.read()
    pg.sql("CREATE ROLE asked LOGIN PASSWORD 'right'")
    try:
        with open(hba, "w") as f:
            f.write("local all asked scram-sha-256\n" + before)
        pg.sql("SELECT pg_reload_conf()")
        url = "postgresql://asked:%s@/" + db + "?host=" + pg.folder

        def is_asked():
            rc, said = refused(command, "token", "list", "--db", url % "n0t-th1s")
            assert "n0t-th1s" not in said
            return rc != 0 and "access denied" in said

        eventually(is_asked)
        rc, said = refused(command, "token", "list", "--db", url % "right")
        assert rc == 2 and "no history here" in said
    finally:
        with open(hba, "w") as f:
            f.write(before)
        pg.sql("SELECT pg_reload_conf()")


def test_what_is_not_ours_is_left_alone(start, command, pg, db):
    pg.sql("CREATE TABLE cats(name TEXT)", db)
    rc, said = refused(command, "serve", "--db", pg.url(db), "--port", "0")
    assert rc == 2 and "holds tables of something else" in said
    assert pg.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", db) == "1"
    pg.sql("DROP TABLE cats", db)
    start("--db", pg.url(db)).stop()
    pg.sql("UPDATE tare_schema SET version = 99", db)
    rc, said = refused(command, "serve", "--db", pg.url(db), "--port", "0")
    assert rc == 2 and "written by a newer tare (schema 99" in said
    assert pg.sql("SELECT version FROM tare_schema", db) == "99"


def test_a_database_that_comes_back(start, pg, db, document):
    """kill -9 of PostgreSQL: meanwhile 503, and the same server goes on when it is there again; nothing is lost."""
    server = start("--db", pg.url(db))
    token = server.token()
    assert server.ask("POST", "/api/v1/runs", token=token, body=document(1)).status == 201
    pg.kill()
    assert server.ask("GET", "/healthz").status == 200
    assert server.ask("GET", "/api/v1/runs", token=token).status == 503
    got = server.ask("POST", "/api/v1/runs", token=token, body=document(2))
    assert got.status == 503 and "postgres" not in got.body.decode()
    pg.start()
    eventually(lambda: server.ask("POST", "/api/v1/runs", token=token, body=document(2)).status in (200, 201))
    eventually(lambda: server.ask("GET", "/api/v1/runs", token=token).status == 200)
    for n in (1, 2):
        eventually(lambda: server.ask("GET", "/api/v1/runs/" + id_of(document(n)), token=token).body == document(n))
    assert pg.sql("SELECT count(*) FROM run", db) == "2"
    assert "the connection was lost" in server.stop()[1]


def test_two_servers_add_to_the_same_slots(start, pg, db):
    """Requests of one service by both at once, some of them twice: every one counts, and counts once."""
    servers = [start("--db", pg.url(db), "--rate", 0), start("--db", pg.url(db), "--rate", 0)]
    token, now, answers = servers[0].token(), int(time.time() * 1000) - 30_000, []

    def post(k):
        for i in range(10):
            one = batch(now, [route("/a", [MS * (i + 1)] * 4, errors=1), route("/b", [MS])], host="web-%d" % k)
            answers.append([send(servers[(k + i + again) % 2], token, one).status for again in range(2)])

    threads = [threading.Thread(target=post, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert answers == [[201, 200]] * 40
    got = total(servers[1], token, "from=-10m")["total"]
    assert (got["requests"], got["errors"], got["slo"][0]["within"]) == (40 * 6, 40, 40 * 5)
