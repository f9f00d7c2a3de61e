# SPDX-License-Identifier: MIT
"""ProductionProfiler and the middlewares against a real server: what was served is what the server tells, to the request."""

import asyncio
import http.client
import json
import logging
import os
import socket
import threading
import time
import wsgiref.simple_server

import pytest

import tare
from served import command, eventually, server, start  # noqa: F401
from tare._middleware import queued_ns
from tare._requests import MAX_ROUTES, OTHER, RequestLog, batch_id, line

MS = 1_000_000


@pytest.fixture
def token(server):
    return server.token("read,ingest")


@pytest.fixture
def log(server, token):
    made = RequestLog("shop", server.address, token=token, promises=((0.2, 0.9), (1, 0.99)), interval_s=60)
    yield made
    made.close()


def told(server, token, service="shop", query="from=-10m"):
    got = server.ask("GET", f"/api/v1/services/{service}/latency?{query}", token=token)
    assert got.status == 200, got.body
    return got.json


# ---- the log ----

def test_what_is_recorded_arrives_to_the_request(server, token, log):
    for i in range(1, 1001):
        log.record("GET /a", i * MS, first_byte_ns=i * MS // 2, request_id=i)
    for _ in range(7):
        log.record("GET /a", 5, failed="ValueError")
    log.record("GET /b", 5, cancelled=True)
    assert log.flush() and log.sent == 1008
    total = told(server, token)["total"]
    assert (total["requests"], total["errors"], total["cancelled"], total["lost"]) == (1007, 7, 1, 0)
    assert [(s["threshold_ns"], s["within"], s["breached"]) for s in total["slo"]] == [(200 * MS, 200, 800), (1000 * MS, 1000, 0)]
    p99 = total["latency_ns"]["p99"]
    assert p99["lo"] <= 990 * MS <= p99["hi"] and total["latency_ns"]["max"] == 1000 * MS
    assert total["first_byte_ns"]["max"] == 500 * MS
    worst = told(server, token)["worst"]
    assert [w["latency_ns"] // MS for w in worst] == list(range(1000, 990, -1)) and worst[0]["id"] == "1000"


def test_counts_are_exact_under_threads(server, token, log):
    def work(k):
        for i in range(500):
            log.record(f"/{i % 3}", i * MS, failed="E" if i % 10 == 0 else None)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        assert log.flush()  # batches are cut while others count
    for t in threads:
        t.join()
    assert log.flush() and log.sent == 4000 and log.lost == 0
    total = told(server, token)["total"]
    assert (total["requests"], total["errors"]) == (4000, 400)


def test_routes_with_ids_in_them_do_not_grow_without_end(log):
    for i in range(3 * MAX_ROUTES):
        log.record(f"/item/{i}", MS)
    assert len(log._routes) == MAX_ROUTES + 1 and log._routes[OTHER].latency.count == 2 * MAX_ROUTES


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_a_server_that_is_away_costs_no_request_and_loss_is_counted(start, caplog):
    away = RequestLog("shop", f"http://127.0.0.1:{free_port()}", token="t", interval_s=60, keep=3, timeout_s=0.2)
    with caplog.at_level(logging.WARNING, "tare"):
        for i in range(5):
            away.record("/a", MS)
            assert not away.flush()
    assert away.sent == 0 and away.lost == 2 and len(away._waiting) == 3
    said = [r.getMessage() for r in caplog.records]
    assert len(said) == 2 and "cannot be reached" in said[0] and "requests are lost" in said[1]  # each once
    server = start()
    token = server.token("read,ingest")
    away._url, away.token = away._url._replace(netloc=f"127.0.0.1:{server.port}"), token
    away.record("/a", MS)
    assert away.close() and away.sent == 3  # one more was pushed out: three of six
    assert away.lost == 3 and told(server, token)["total"]["requests"] == 3


def test_a_wrong_token_keeps_batches_and_says_so(server, caplog):
    log = RequestLog("shop", server.address, token="tare_nonsense", interval_s=60)
    log.record("/a", MS)
    with caplog.at_level(logging.WARNING, "tare"):
        assert not log.flush() and not log.flush()
    assert len(log._waiting) == 2 and [r.getMessage() for r in caplog.records] == [
        "requests of shop: the server answered 401: a token is needed: Authorization: Bearer ..."]
    log.token = server.token("ingest")
    assert log.close() and log.sent == 1


def test_an_answer_that_got_lost_does_not_count_twice(server, token, log):
    log.record("/a", MS)
    log._take(int(time.time() * 1000))
    document = log._waiting[0][0]
    connection = log._connect()
    assert [log._post(connection, document)[0] for _ in range(2)] == [201, 200]
    connection.close()
    assert log._send_waiting() and told(server, token)["total"]["requests"] == 1


def test_the_thread_sends_by_itself_and_is_alive_without_requests(server, token):
    log = RequestLog("shop", server.address, token=token, interval_s=1)
    log.record("/a", MS)
    eventually(lambda: log.sent == 1)
    assert told(server, token)["total"]["requests"] == 1
    assert log.close()


def test_a_forked_child_counts_for_itself(server, token):
    log = RequestLog("shop", server.address, token=token, interval_s=60)
    log.record("/a", MS)
    pid = os.fork()
    if pid == 0:
        log.record("/child", MS)
        os._exit(0 if log.close() and log.sent == 1 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert log.close() and log.sent == 1
    assert sorted(r["name"] for r in told(server, token)["routes"]) == ["/a", "/child"]


@pytest.mark.parametrize("more, says", [
    ({"service": "a b"}, "service 'a b'"), ({"server": "tare:8321"}, "server 'tare:8321'"), ({"server": "http://u:p@h"}, "server"), ({"interval_s": 0}, "interval_s 0"),
    ({"promises": ((0, 0.9),)}, "promises"), ({"promises": ((1, 1),)}, "promises"),
])
def test_what_cannot_be_is_refused_at_once(more, says):
    with pytest.raises(ValueError, match=says):
        RequestLog(**{"service": "s", "server": "http://h:1", **more})


def test_names():
    assert len(batch_id()) == 26 and len({batch_id() for _ in range(1000)}) == 1000
    assert line("a\nb") == "a?b" and line("") == "?" and len(line("ä" * 300).encode()) <= 200


# ---- ProductionProfiler ----

def test_production_profiler_sends(server, token):
    p = tare.ProductionProfiler(sla_ms=200, server=server.address, service="predict", token=token, interval_s=60, on_violation=lambda entry: None)
    for i in range(1, 101):
        with p.profile_request(i):
            pass
        p.log_metrics(i, i * 0.004)
    with pytest.raises(ZeroDivisionError), p.profile_request("bad"):
        1 / 0
    p.log_metrics("bad", 0.001, route="/other")
    report = p.generate_hourly_report()
    assert (report["requests_processed"], report["errors"], report["sla_violations"], report["sla_s"]) == (101, 1, 50, 0.2)
    assert p.log.close()
    answer = told(server, token, "predict")
    assert (answer["total"]["requests"], answer["total"]["errors"], answer["total"]["slo"][0]["within"]) == (101, 1, 50)
    assert {r["name"]: r["total"]["requests"] for r in answer["routes"]} == {"request": 100, "/other": 1}
    with pytest.raises(TypeError, match="token"):
        tare.ProductionProfiler(token=token)


# ---- ASGI ----

def asgi(app, path, method="GET", headers=(), leave=False):
    """One request to an ASGI app, as a server makes it; the status and the body."""
    sent = []

    async def go():
        asked = asyncio.Event()

        async def receive():
            if not asked.is_set():
                asked.set()
                return {"type": "http.request", "body": b"", "more_body": False}
            if leave:
                return {"type": "http.disconnect"}
            await asyncio.Event().wait()

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
                 "root_path": "", "scheme": "http", "headers": [(k.encode(), v.encode()) for k, v in headers], "server": ("h", 80), "client": ("c", 1)}
        await app(scope, receive, send)

    asyncio.run(go())
    status = next((m["status"] for m in sent if m["type"] == "http.response.start"), None)
    return status, b"".join(m.get("body", b"") for m in sent if m["type"] == "http.response.body")


def test_fastapi_requests_are_counted(server, token, log):
    fastapi = pytest.importorskip("fastapi")
    from fastapi.responses import StreamingResponse

    app = fastapi.FastAPI()

    @app.get("/items/{item}")
    async def item(item: int):
        await asyncio.sleep(0.01 * item)
        return {"item": item}

    @app.get("/broken")
    def broken():
        raise RuntimeError("no")

    @app.get("/full")
    def full():
        return fastapi.Response(status_code=503)

    @app.get("/stream")
    async def stream():
        async def pieces():
            yield b"a"
            await asyncio.sleep(0.05)
            yield b"b"

        return StreamingResponse(pieces())

    app.add_middleware(tare.ASGIMiddleware, log=log)
    for i in (1, 2, 3):
        assert asgi(app, f"/items/{i}") == (200, b'{"item":%d}' % i)
    assert asgi(app, "/stream") == (200, b"ab")
    assert asgi(app, "/full")[0] == 503 and asgi(app, "/nothing/here")[0] == 404
    with pytest.raises(RuntimeError):
        asgi(app, "/broken")
    assert log.flush()
    answer = told(server, token)
    routes = {r["name"]: r["total"] for r in answer["routes"]}
    assert {k: (v["requests"], v["errors"]) for k, v in routes.items()} == {
        "GET /items/{item}": (3, 0), "GET /stream": (1, 0), "GET /full": (1, 1), "GET /broken": (1, 1), "GET (no route)": (1, 0)}
    items = routes["GET /items/{item}"]["latency_ns"]
    assert items["min"] >= 10 * MS and items["max"] >= 30 * MS and items["mean"] >= 20 * MS  # what was slept is a lower bound on any machine
    streamed = routes["GET /stream"]
    assert streamed["latency_ns"]["max"] - streamed["first_byte_ns"]["max"] >= 50 * MS
    assert answer["total"]["slo"][1]["within"] + answer["total"]["slo"][1]["breached"] == 5


def test_asgi_clients_that_leave_are_cancelled_and_other_protocols_pass(server, token, log):
    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            return
        await receive()
        assert (await receive())["type"] == "http.disconnect"

    middle = tare.ASGIMiddleware(app, log=log)
    asyncio.run(middle({"type": "lifespan"}, None, None))
    asgi(middle, "/x", leave=True)

    async def cut(scope, receive, send):
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asgi(tare.ASGIMiddleware(cut, log=log, route=lambda scope: "cut"), "/y")
    assert log.flush()
    total = told(server, token)["total"]
    assert (total["requests"], total["cancelled"], total["errors"]) == (0, 2, 0)


def test_time_in_the_queue_counts(server, token, log):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    asgi(tare.ASGIMiddleware(app, log=log), "/q", headers=[("x-request-start", "t=%.3f" % (time.time() - 7))])
    asgi(tare.ASGIMiddleware(app, log=log, start_header=None), "/n", headers=[("x-request-start", "t=%.3f" % (time.time() - 3000))])
    assert log.flush()
    routes = {r["name"]: r["total"]["latency_ns"]["min"] for r in told(server, token)["routes"]}
    assert routes["GET /q"] >= 6999 * MS and routes["GET /n"] < 2000_000 * MS


def test_what_headers_may_say():
    now = 1_794_837_600_000_000_000
    for text in ("t=1794837599.5", "1794837599.5", "t=1794837599500", "1794837599500000", "1794837599500000000"):
        assert abs(queued_ns(text, now) - 500 * MS) < 1000, text
    for text in (None, "", "soon", "t=", "-5", "nan", "inf", "1e400", "1794837601", "1794830000"):
        assert queued_ns(text, now) == 0, text


# ---- WSGI ----

def test_wsgi_requests_are_counted(server, token, log):
    class Body:
        closed = False

        def __iter__(self):
            return iter([b"a", b"b"])

        def close(self):
            Body.closed = True

    def app(environ, start_response):
        path = environ["PATH_INFO"]
        if path == "/broken":
            raise RuntimeError("no")
        if path == "/sleep":
            time.sleep(0.05)
        start_response("503 Full" if path == "/full" else "200 OK", [("Content-Type", "text/plain")])
        return Body() if path == "/body" else [b"ok"]

    class Quiet(wsgiref.simple_server.WSGIRequestHandler):
        def log_message(self, *args):
            pass

    middle = tare.WSGIMiddleware(app, log=log)
    with wsgiref.simple_server.make_server("127.0.0.1", 0, middle, handler_class=Quiet) as web:
        web.get_app().log  # the middleware is what is served
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        try:
            for path in ("/sleep", "/sleep", "/full", "/body", "/broken"):
                client = http.client.HTTPConnection("127.0.0.1", web.server_port, timeout=60)
                client.request("GET", path)
                answer = client.getresponse()
                assert answer.read() == {"/body": b"ab", "/broken": answer.status == 500 and b"A server error occurred.  Please contact the administrator."}.get(path, b"ok")
                client.close()
        finally:
            web.shutdown()
            thread.join()
    assert Body.closed
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/left"}
    body = middle(environ, lambda *a: None)
    next(iter(body))
    body.close()  # the client left
    assert log.flush()
    routes = {r["name"]: r["total"] for r in told(server, token)["routes"]}
    assert {k: (v["requests"], v["errors"], v["cancelled"]) for k, v in routes.items()} == {
        "GET /sleep": (2, 0, 0), "GET /full": (1, 1, 0), "GET /body": (1, 0, 0), "GET /broken": (1, 1, 0), "GET /left": (0, 0, 1)}
    assert routes["GET /sleep"]["latency_ns"]["min"] >= 50 * MS and routes["GET /sleep"]["first_byte_ns"]["count"] == 2


def test_a_middleware_needs_to_know_where_to_send():
    with pytest.raises(ValueError, match="service= and server="):
        tare.ASGIMiddleware(None)
    with pytest.raises(ValueError, match="service= and server="):
        tare.WSGIMiddleware(None, service="x")
