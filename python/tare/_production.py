# SPDX-License-Identifier: MIT
"""ProductionProfiler: request latencies in a service, with an SLA, in memory that does not grow with the number of requests.

The last entries are kept as they are; of all requests of the last hour there is a histogram for each minute, from which the report is made. With a
server the same requests go there in batches. A request costs a few microseconds; memory and processor load come from the sampling thread, once a second.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from datetime import datetime
from typing import Any, Callable

from tare import _tare
from tare._forks import keep_lock
from tare._metrics import MB
from tare._requests import RequestLog, service_name
from tare._unknown import Unknown

MINUTE_S = 60
INTERVAL_S = 1.0
FRESH_S = 5.0  # samples older than this are asked for anew
PROBES = ("self", "system")


class _Minute:
    """Requests of one minute."""

    __slots__ = ("start", "total", "most", "violations", "errors", "latency")

    def __init__(self, start: float) -> None:
        self.start = start
        self.violations = self.errors = 0
        self.total = self.most = 0.0
        self.latency = _tare.Hist()

    def add(self, latency: float, violated: bool, failed: bool) -> None:
        self.total += latency
        self.most = max(self.most, latency)
        self.violations += violated
        self.errors += failed
        self.latency.record(round(latency * 1e9))


class _Request:
    """`with profile_request(id)`: its time, kept until log_metrics() asks for it."""

    __slots__ = ("owner", "request_id", "thread", "begun", "cpu_begun", "wall_s", "cpu_s", "failed")

    def __init__(self, owner: "ProductionProfiler", request_id: Any) -> None:
        self.owner, self.request_id = owner, request_id

    def __enter__(self) -> "_Request":
        self.thread = threading.get_ident()
        self.cpu_begun = time.thread_time_ns()
        self.begun = time.perf_counter_ns()
        return self

    def __exit__(self, kind: Any, *exception: Any) -> None:
        self.wall_s = (time.perf_counter_ns() - self.begun) / 1e9
        same = self.thread == threading.get_ident()
        self.cpu_s = (time.thread_time_ns() - self.cpu_begun) / 1e9 if same else None
        self.failed = kind.__name__ if kind is not None else None
        self.owner._finished(self)

    async def __aenter__(self) -> "_Request":
        return self.__enter__()

    async def __aexit__(self, *exception: Any) -> None:
        self.__exit__(*exception)


class ProductionProfiler:
    """profile_request() around the work, log_metrics() with the latency that the user saw, generate_hourly_report().

    sla_s, sla_ms  a latency above it is a violation
    server         "http://host:8321" of a `tare serve`: requests go there, too, in batches; service= names this one (else the program),
                   objective= the share of requests that should keep the SLA, token= one of scope ingest (else TARE_TOKEN)
    max_entries    of metrics_log, newest last
    max_pending    requests that ended and were not logged yet; the oldest is forgotten first
    on_violation   called with the entry; else a warning in the log "tare", at most one a second
    """

    def __init__(
        self, sla_s: float = 2.0, max_entries: int = 1000, max_pending: int = 10_000, on_violation: Callable | None = None, *,
        sla_ms: float | None = None, server: str | None = None, service: str | None = None, objective: float = 0.99, **sending: Any,
    ) -> None:
        self.sla_s, self.max_pending, self.on_violation = sla_s if sla_ms is None else sla_ms / 1000, max_pending, on_violation
        if sending and server is None:
            raise TypeError(f"{', '.join(sending)}: for sending, which needs server=")
        self.log = RequestLog(service or service_name(), server, promises=((self.sla_s, objective),), **sending) if server else None
        self.metrics_log: deque = deque(maxlen=max_entries)
        self.requests = self.sla_violations = self.forgotten = 0
        self._pending: dict[Any, _Request] = {}
        self._minutes: deque = deque(maxlen=62)
        self._watch: Any = None
        self._read_at, self._read = -math.inf, (None, None)
        self._warned = -math.inf
        keep_lock(self)

    def profile_request(self, request_id: Any) -> _Request:
        return _Request(self, request_id)

    def log_metrics(self, request_id: Any, user_facing_latency: float, route: str = "request") -> dict[str, Any]:
        """Count one request; gives its entry. Times of profile_request() are None where there was none of that id. A request whose block raised is an
        error: the server counts it as one, and not among the latencies."""
        if not (math.isfinite(user_facing_latency) and user_facing_latency >= 0):
            raise ValueError(f"request {request_id}: {user_facing_latency} is no latency in seconds")
        now = time.time()
        entry = self._entry(request_id, user_facing_latency, now)
        violated = user_facing_latency > self.sla_s
        with self._lock:
            self.requests += 1
            self.sla_violations += violated
            self.metrics_log.append(entry)
            self._minute(now).add(user_facing_latency, violated, entry["failed"] is not None)
        if self.log is not None:
            self.log.record(route, round(user_facing_latency * 1e9), failed=entry["failed"], request_id=request_id)
        if violated:
            self.alert_sla_violation(entry)
        return entry

    def alert_sla_violation(self, entry: dict[str, Any]) -> None:
        """To be overridden, or on_violation."""
        if self.on_violation is not None:
            try:
                self.on_violation(entry)
            except Exception:  # the request was served: what its alarm does wrong is not its caller's affair
                logging.getLogger("tare").exception("on_violation of request %s", entry["request_id"])
            return
        now = time.monotonic()
        if now - self._warned >= 1:
            self._warned = now
            logging.getLogger("tare").warning("request %s took %.3f s, SLA %.3f s", entry["request_id"], entry["user_facing_latency"], self.sla_s)

    def generate_hourly_report(self) -> dict[str, Any]:
        """Of the last hour, by whole minutes. Percentiles are within 0.54 %; latencies are Unknown when there were no requests. What raised
        is an error also where nobody logged it; `not_logged` of the blocks have no latency, so that no percentile has them."""
        cutoff = time.time() - 3600 - MINUTE_S
        ended_after = time.perf_counter() - 3600 - MINUTE_S
        with self._lock:
            minutes = [minute for minute in self._minutes if minute.start > cutoff]
            latency = _tare.Hist()
            for minute in minutes:
                latency.merge(minute.latency)
            count, total, errors = latency.count, sum(m.total for m in minutes), sum(m.errors for m in minutes)
            waiting = [one for one in self._pending.values() if one.begun / 1e9 + one.wall_s > ended_after]
            violations, most = sum(m.violations for m in minutes), max((m.most for m in minutes), default=0.0)
        none = Unknown("no requests in the last hour")
        return {
            "requests_processed": count,
            "average_latency": total / count if count else none,
            **{f"p{p}_latency": latency.quantile(p / 100) / 1e9 if count else none for p in (50, 95, 99)},
            "max_latency": most if count else none,
            "errors": errors + sum(one.failed is not None for one in waiting),
            "not_logged": len(waiting),
            "sla_violations": violations,
            "sla_violation_rate": violations / count if count else none,
            "sla_s": self.sla_s,
        }

    def _finished(self, request: _Request) -> None:
        with self._lock:
            self._pending.pop(request.request_id, None)
            self._pending[request.request_id] = request
            if len(self._pending) > self.max_pending:
                del self._pending[next(iter(self._pending))]
                self.forgotten += 1

    def _entry(self, request_id: Any, latency: float, now: float) -> dict[str, Any]:
        with self._lock:
            request = self._pending.pop(request_id, None)
        memory_mb, cpu_percent = self._machine()
        return {
            "timestamp": datetime.fromtimestamp(now).isoformat(),
            "request_id": request_id,
            "internal_latency": request.wall_s if request else None,
            "cpu_time": request.cpu_s if request else None,
            "failed": request.failed if request else None,
            "user_facing_latency": latency,
            "memory_mb": memory_mb,
            "cpu_percent": cpu_percent,
        }

    def _machine(self) -> tuple:
        """MB of this process and percent of all processors, at most a second or so old; None: unknown."""
        at = time.monotonic()
        if at - self._read_at > INTERVAL_S:
            self._read_at, self._read = at, self._read_machine()
        return self._read

    def _read_machine(self) -> tuple:
        if self._watch is None:
            with self._lock:
                self._watch = self._watch or _tare.Watch(PROBES, INTERVAL_S, INTERVAL_S, INTERVAL_S)
        now = _tare.sampler_now(PROBES, FRESH_S)
        rss, busy, cpus = now.get("self.memory.rss"), now.get("cpu.busy"), now.get("cpu.count")
        known_rate = busy and cpus and busy[1] is not None and busy[2] < 2 * FRESH_S
        return rss[0] / MB if rss else None, busy[1] / busy[2] / cpus[0] * 100 if known_rate else None

    def _minute(self, now: float) -> _Minute:
        start = now - now % MINUTE_S
        if not self._minutes or self._minutes[-1].start != start:
            self._minutes.append(_Minute(start))
        return self._minutes[-1]

