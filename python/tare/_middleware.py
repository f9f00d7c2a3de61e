# SPDX-License-Identifier: MIT
"""ASGIMiddleware and WSGIMiddleware: every request of a service is counted, from when it should have begun to the last byte of its reply."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Callable

from tare._requests import RequestLog

START_HEADER = "x-request-start"
LONGEST_QUEUE_NS = 3600 * 10**9  # a header that says more is no time


def queued_ns(text: str | None, now_ns: int) -> int:
    """How long ago the proxy took the request: "t=1794837600.123" or plain, in s, ms, us or ns since 1970. 0: not said, or nonsense."""
    try:
        value = float((text or "").strip().removeprefix("t="))
    except ValueError:
        return 0
    if not 0 < value < 1e20:
        return 0
    while value < 1e17:  # 1e17 ns is 1973, and 1e17 of no coarser unit is a time that anyone has
        value *= 1000
    waited = now_ns - int(value)
    return waited if 0 <= waited <= LONGEST_QUEUE_NS else 0


def make_log(service: str | None, server: str | None, log: RequestLog | None, sla_ms: float, objective: float, more: dict[str, Any]) -> RequestLog:
    if log is not None:
        return log
    if not service or not server:
        raise ValueError("service= and server= say what is counted and where it is sent; or log=, a RequestLog")
    return RequestLog(service, server, promises=((sla_ms / 1000, objective),), **more)


class ASGIMiddleware:
    """app.add_middleware(tare.ASGIMiddleware, service="search", server="http://tare:8321"), as the outermost one.

    sla_ms, objective   the promise: so large a share of the requests within so many ms
    route               a function of the scope that names the route; else the framework's own (GET /items/{id}), else the path
    start_header        in which a proxy says when it took the request; what it waited counts. None: not looked at
    log                 a RequestLog that several share; else one is made, with token= and interval_s= if given

    A reply of 500 and above, or an exception, is an error; a request whose client left is cancelled. Replies that stream are timed to the last byte, and
    to the first one beside it."""

    def __init__(
        self, app: Any, service: str | None = None, server: str | None = None, *, sla_ms: float = 200, objective: float = 0.99,
        route: Callable | None = None, start_header: str | None = START_HEADER, log: RequestLog | None = None, **more: Any,
    ) -> None:
        self.app, self.route = app, route
        self.start_header = start_header.lower().encode() if start_header else None
        self.log = make_log(service, server, log, sla_ms, objective, more)

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = _ASGIRequest(self, scope, receive, send)
        try:
            await self.app(scope, request.receive, request.send)
        except asyncio.CancelledError:
            request.finish(cancelled=not request.ended)
            raise
        except BaseException as e:
            request.finish(failed=type(e).__name__)
            raise
        request.finish(cancelled=request.left and not request.ended, failed=None if request.status else "no reply")

    def name(self, scope: dict) -> str:
        if self.route is not None:
            return self.route(scope)
        route = scope.get("route")
        path = getattr(route, "path_format", None) or getattr(route, "path", None)
        if path is None and scope.get("endpoint") is None and "router" in scope:
            path = "(no route)"  # whatever strangers ask for has one name
        return f"{scope['method']} {path or scope['path']}"


class _ASGIRequest:
    __slots__ = ("owner", "scope", "_receive", "_send", "begun", "queued", "status", "first_ns", "last_ns", "ended", "left", "done")

    def __init__(self, owner: ASGIMiddleware, scope: dict, receive: Callable, send: Callable) -> None:
        self.owner, self.scope, self._receive, self._send = owner, scope, receive, send
        self.status, self.first_ns, self.last_ns = 0, None, None
        self.ended = self.left = self.done = False
        self.begun, self.queued = time.perf_counter_ns(), 0
        if owner.start_header:
            for name, value in scope["headers"]:
                if name == owner.start_header:
                    self.queued = queued_ns(value.decode("latin-1"), time.time_ns())

    async def receive(self) -> dict:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.left = True
        return message

    async def send(self, message: dict) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            self.status = message["status"]
        elif kind == "http.response.body" and self.first_ns is None:
            self.first_ns = time.perf_counter_ns()
        await self._send(message)
        if kind == "http.response.body" and not message.get("more_body", False):
            self.ended, self.last_ns = True, time.perf_counter_ns()

    def finish(self, failed: str | None = None, cancelled: bool = False) -> None:
        if self.done:
            return
        self.done = True
        took = (self.last_ns or time.perf_counter_ns()) - self.begun + self.queued
        first = self.first_ns - self.begun + self.queued if self.first_ns is not None else None
        if failed is None and self.status >= 500:
            failed = f"status {self.status}"
        scope = self.scope
        self.owner.log.record(self.owner.name(scope), took, failed=failed, cancelled=cancelled, first_byte_ns=first, request_id=f"{scope['method']} {scope['path']}")


class WSGIMiddleware:
    """app = tare.WSGIMiddleware(app, service="search", server="http://tare:8321"). As ASGIMiddleware; `route` is a function of the environ."""

    def __init__(
        self, app: Callable, service: str | None = None, server: str | None = None, *, sla_ms: float = 200, objective: float = 0.99,
        route: Callable | None = None, start_header: str | None = START_HEADER, log: RequestLog | None = None, **more: Any,
    ) -> None:
        self.app, self.route = app, route
        self.start_key = "HTTP_" + start_header.upper().replace("-", "_") if start_header else None
        self.log = make_log(service, server, log, sla_ms, objective, more)

    def __call__(self, environ: dict, start_response: Callable) -> Any:
        request = _WSGIRequest(self, environ)

        def started(status: str, headers: Any, exc_info: Any = None) -> Any:
            request.status = int(status.split(" ", 1)[0])
            return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)

        try:
            request.body = self.app(environ, started)
            return request
        except BaseException as e:
            request.finish(failed=type(e).__name__)
            raise

    def name(self, environ: dict) -> str:
        if self.route is not None:
            return self.route(environ)
        rule = getattr(environ.get("werkzeug.request"), "url_rule", None)
        return f"{environ['REQUEST_METHOD']} {getattr(rule, 'rule', None) or environ.get('SCRIPT_NAME', '') + environ.get('PATH_INFO', '')}"


class _WSGIRequest:
    """The body that the server iterates and closes."""

    def __init__(self, owner: WSGIMiddleware, environ: dict) -> None:
        self.owner, self.environ = owner, environ
        self.status, self.first_ns, self.ended, self.done = 0, None, False, False
        self.body: Any = ()
        self.pieces: Any = None
        self.begun = time.perf_counter_ns()
        self.queued = queued_ns(environ.get(owner.start_key), time.time_ns()) if owner.start_key else 0

    def __iter__(self) -> "_WSGIRequest":
        self.pieces = iter(self.body)
        return self

    def __next__(self) -> bytes:
        try:
            piece = next(self.pieces)
        except StopIteration:
            self.ended = True
            raise
        except BaseException as e:
            self.finish(failed=type(e).__name__)
            raise
        if self.first_ns is None and piece:
            self.first_ns = time.perf_counter_ns()
        return piece

    def close(self) -> None:
        """A server calls it when all is sent, or when the client left before."""
        try:
            if hasattr(self.body, "close"):
                self.body.close()
        finally:
            self.finish(cancelled=not self.ended)

    def finish(self, failed: str | None = None, cancelled: bool = False) -> None:
        if self.done:
            return
        self.done = True
        took = time.perf_counter_ns() - self.begun + self.queued
        first = self.first_ns - self.begun + self.queued if self.first_ns is not None else None
        if failed is None and self.status >= 500:
            failed = f"status {self.status}"
        environ = self.environ
        name = f"{environ['REQUEST_METHOD']} {environ.get('PATH_INFO', '')}"
        self.owner.log.record(self.owner.name(environ), took, failed=failed, cancelled=cancelled, first_byte_ns=first, request_id=name)
