# SPDX-License-Identifier: MIT
"""What a process of a service served, counted as it happens and sent to `tare serve` in batches by a thread of its own. No request ever waits for the
server: counting takes a lock for a microsecond or two. What could not be sent waits, for about an hour; what waits longer is lost, and is said to be."""

from __future__ import annotations

import atexit
import http.client
import json
import logging
import os
import re
import socket
import ssl
import sys
import threading
import time
import urllib.parse
import weakref
from collections import deque
from typing import Any

from tare import _tare

OTHER = "(other)"
MAX_ROUTES = 200  # names beyond are counted together: a route that has an id in it must not make the process grow
WORST = 10
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TEXT = re.compile(r"[\x00-\x1f\x7f]")
_alive: weakref.WeakSet = weakref.WeakSet()


def batch_id() -> str:
    """A ULID."""
    n = int(time.time() * 1000) << 80 | int.from_bytes(os.urandom(10), "big")
    return "".join(DIGITS[n >> 5 * i & 31] for i in range(25, -1, -1))


def line(text: Any) -> str:
    """One line of at most 200 bytes; never empty."""
    return _TEXT.sub("?", str(text)).encode(errors="replace")[:200].decode(errors="ignore") or "?"


class _Route:
    """Requests of one route in one interval."""

    __slots__ = ("latency", "first_byte", "errors", "cancelled", "within", "worst")

    def __init__(self, promises: int) -> None:
        self.latency, self.first_byte = _tare.Hist(), _tare.Hist()
        self.errors = self.cancelled = 0
        self.within = [0] * promises
        self.worst: list[tuple] = []

    @property
    def requests(self) -> int:
        return self.latency.count + self.errors + self.cancelled


class RequestLog:
    """record() what was served. service: letters, digits, - and _; server: "http://host:8321"; token: of scope ingest (else TARE_TOKEN);
    promises: (seconds, objective), at most 8; interval_s: what one batch is about, 1 to 60; keep: batches that may wait for the server."""

    def __init__(
        self, service: str, server: str, *, token: str | None = None, promises: Any = ((0.2, 0.99),), interval_s: float = 10, keep: int = 360,
        host: str | None = None, timeout_s: float = 5,
    ) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", service):
            raise ValueError(f"service {service!r}: 1 to 40 letters, digits, - and _")
        url = urllib.parse.urlsplit(server)
        if url.scheme not in ("http", "https") or not url.hostname or url.path not in ("", "/") or url.query or url.username:
            raise ValueError(f"server {server!r}: http://host:port or https://host:port")
        if not 1 <= interval_s <= 60:
            raise ValueError(f"interval_s {interval_s}: 1 to 60")
        if len(promises) > 8 or not all(seconds > 0 and 0 <= share < 1 for seconds, share in promises):
            raise ValueError(f"promises {promises!r}: at most 8 of (seconds above 0, a share below 1)")
        self.service, self.host, self.timeout_s = service, line(host or socket.gethostname()), timeout_s
        self.promises = [(round(seconds * 1e9), float(share)) for seconds, share in promises]
        self.token = token or _tare.environment("TARE_TOKEN")
        self.lost = self.sent = self.refused = 0  # requests
        self._url, self._interval_ms, self._keep = url, round(interval_s * 1000), keep
        self._warned: set[str] = set()
        self._begin()
        _alive.add(self)

    def _begin(self) -> None:
        """Also in the child of a fork, which has neither the thread nor what its parent will send."""
        self._lock, self._wake = threading.Lock(), threading.Condition()
        self._routes: dict[str, _Route] = {}
        self._waiting: deque = deque()
        self._said = self.lost
        self._from_ms = int(time.time() * 1000)
        self._thread: threading.Thread | None = None
        self._closed = False

    # ---- counting ----

    def record(
        self, route: str, latency_ns: int, *, failed: str | None = None, cancelled: bool = False, first_byte_ns: int | None = None, request_id: Any = None
    ) -> None:
        latency_ns = max(0, latency_ns)
        with self._lock:
            at = self._routes.get(route) or self._new_route(route)
            if cancelled:
                at.cancelled += 1
                return
            if failed is not None:
                at.errors += 1
            else:
                at.latency.record(latency_ns)
                if first_byte_ns is not None:
                    at.first_byte.record(max(0, first_byte_ns))
                for i, (threshold, _) in enumerate(self.promises):
                    at.within[i] += latency_ns <= threshold
            if request_id is not None and (len(at.worst) < WORST or latency_ns > at.worst[-1][0]):
                at.worst.append((latency_ns, int(time.time() * 1000), line(request_id), failed and line(failed)))
                at.worst.sort(key=lambda w: -w[0])
                del at.worst[WORST:]

    def _new_route(self, route: str) -> _Route:
        if self._thread is None:
            self._start()
        name = line(route)
        if name not in self._routes and len(self._routes) >= MAX_ROUTES:
            name = OTHER
        return self._routes.setdefault(name, _Route(len(self.promises)))

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="tare-requests", daemon=True)
        self._thread.start()

    # ---- sending ----

    def _take(self, now_ms: int) -> None:
        """What was counted becomes a batch that waits; empty ones too, since they say that this process is alive."""
        with self._lock:
            routes, self._routes = self._routes, {}
            begun, self._from_ms = self._from_ms, now_ms
            unsaid, self._said = self.lost - self._said, self.lost
        begun = min(max(begun, now_ms - 60_000), now_ms - 1)  # the clock may have been set
        document = {"schema": "tare.requests/1", "id": batch_id(), "service": self.service, "host": self.host, "from_ms": begun, "to_ms": now_ms,
                    "lost": unsaid, "routes": [self._route(name, at) for name, at in routes.items()] or None}
        self._waiting.append((document, sum(at.requests for at in routes.values())))
        while len(self._waiting) > self._keep:
            gone, requests = self._waiting.popleft()
            self.lost += requests
            self._said -= gone["lost"]  # it was not heard
            self._warn("lost", "the server did not answer for so long that requests are lost: they will be missing in all reports, which say so")

    def _route(self, name: str, at: _Route) -> dict[str, Any]:
        answered = at.latency.count
        slo = [{"threshold_ns": ns, "objective": share, "within": within, "breached": answered - within}
               for (ns, share), within in zip(self.promises, at.within)]
        worst = [{"id": w[2], "at_ms": w[1], "latency_ns": w[0], "failed": w[3]} for w in at.worst]
        return {"route": name, "latency_ns": at.latency.document(), "first_byte_ns": at.first_byte.document(), "errors": at.errors,
                "cancelled": at.cancelled, "slo": slo or None, "worst": worst or None}

    def _send_waiting(self) -> bool:
        """Oldest first. True: nothing waits any more."""
        connection = None
        try:
            while self._waiting:
                document, requests = self._waiting[0]
                connection = connection or self._connect()
                status, text = self._post(connection, document)
                if status not in (200, 201, 409, 413, 422):
                    self._warn(f"answer {status}", f"the server answered {status}: {text}")
                    return False
                self._waiting.popleft()
                if status in (200, 201):
                    self.sent += requests
                else:
                    self.refused += requests
                    self.lost += requests
                    self._warn(f"answer {status}", f"the server refused a batch, which is lost: {status} {text}")
        except (OSError, http.client.HTTPException) as e:
            self._warn("connect", f"the server cannot be reached ({e}); requests wait")
            return False
        finally:
            if connection is not None:
                connection.close()
        self._warned.discard("connect")
        return True

    def _connect(self) -> http.client.HTTPConnection:
        if self._url.scheme == "https":
            trust = ssl.create_default_context(cafile=_tare.environment("TARE_CA_FILE") or None)
            return http.client.HTTPSConnection(self._url.hostname, self._url.port, timeout=self.timeout_s, context=trust)
        return http.client.HTTPConnection(self._url.hostname, self._url.port or 80, timeout=self.timeout_s)

    def _post(self, connection: http.client.HTTPConnection, document: dict[str, Any]) -> tuple[int, str]:
        connection.request("POST", "/api/v1/requests", json.dumps(document), {"Content-Type": "application/json", "Authorization": "Bearer " + self.token})
        answer = connection.getresponse()
        body = answer.read(4096).decode(errors="replace")
        try:
            return answer.status, str(json.loads(body).get("detail", ""))
        except (ValueError, AttributeError):
            return answer.status, ""

    def _warn(self, kind: str, text: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            logging.getLogger("tare").warning("requests of %s: %s", self.service, text)

    def _run(self) -> None:
        while not self._closed:
            now = int(time.time() * 1000)
            with self._wake:
                if not self._closed:
                    self._wake.wait((self._interval_ms - now % self._interval_ms) / 1000)
            if not self._closed:
                self._take(int(time.time() * 1000))
                self._send_waiting()

    def flush(self) -> bool:
        """Send what was counted so far, here and now. False: something still waits for the server."""
        self._take(int(time.time() * 1000))
        return self._send_waiting()

    def close(self) -> bool:
        """End the thread and send the rest. False: it could not be sent, and is counted in `lost`."""
        self._closed = True
        with self._wake:
            self._wake.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(2 * self.timeout_s)
        self._thread = None
        _alive.discard(self)
        done = self.flush()
        if not done:
            self.lost += sum(requests for _, requests in self._waiting)
            self._waiting.clear()
            self._warn("end", f"ended with {self.lost} requests that could not be sent")
        return done


def service_name() -> str:
    """Where nothing is said: what the program is called."""
    name = os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0]
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:40].strip("-") or "python"


def _in_child() -> None:
    for log in list(_alive):
        log.lost = log.sent = log.refused = 0
        log._begin()


def _at_exit() -> None:
    for log in list(_alive):
        log.timeout_s = min(log.timeout_s, 2)
        log.close()


os.register_at_fork(after_in_child=_in_child)
atexit.register(_at_exit)
