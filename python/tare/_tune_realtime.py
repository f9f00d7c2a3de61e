# SPDX-License-Identifier: MIT
"""RealTimeProfiler: the machine and the input of a training loop while they run, with five alerts.

The machine is sampled by the thread of the extension, without the GIL; a Python thread looks at it once an interval. An alert begins
when its value was above the threshold for `hold_s`, and ends when it was below the lower one for as long: a value that hovers raises
one alert. An unknown value neither begins nor ends one."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from contextlib import contextmanager
from typing import Any, Callable, Iterable, Iterator, NamedTuple

from tare import _tare
from tare._forks import keep_lock
from tare._metrics import memory_percent, now_seen
from tare._tune import log, setting
from tare._unknown import Unknown, known

PROBES = ("self", "gpu", "system", "cgroup")
KEPT = 1000  # alerts that are remembered
LAST_S = 0.06  # before the last look: a rate over less says little


class Rule(NamedTuple):
    key: str
    text: str  # begins the alert
    unit: str
    enter: float
    leave: float
    action: str


RULES = (
    Rule("cpu_percent", "High CPU usage", "%", 80, 70, "reduce workers"),
    Rule("memory_percent", "High memory usage", "%", 80, 70, "enable memory optimization: smaller chunks, streaming"),
    Rule("gpu_memory_percent", "High GPU memory usage", "%", 80, 70, "reduce batch size"),
    Rule("loading_ms_per_batch", "Slow data loading", "ms/batch", 100, 70, "increase workers"),
    Rule("preprocessing_ms_per_sample", "Slow preprocessing", "ms/sample", 1, 0.7, "enable parallel preprocessing"),
)


class Alert(str):
    """The sentence, with `rule`, `value` and `began` (False: it ended)."""

    rule: Rule
    value: float
    began: bool

    @staticmethod
    def of(rule: Rule, value: float, began: bool, hold_s: float) -> "Alert":
        if began:
            said = f"{rule.text}: {value:.3g} {rule.unit}, above {rule.enter:g} for {hold_s:g} s - {rule.action}"
        else:
            said = f"{rule.text} is over: {value:.3g} {rule.unit}, below {rule.leave:g} for {hold_s:g} s"
        alert = Alert(said)
        alert.rule, alert.value, alert.began = rule, value, began
        return alert


class _Mean:
    """Seconds per unit of what was noted since it was asked last, and over all."""

    def __init__(self) -> None:
        self.seconds = self.count = self.all_seconds = self.all_count = 0.0

    def add(self, seconds: float, count: float) -> None:
        self.seconds += seconds
        self.count += count

    def take_ms(self) -> float:
        seconds, count = self.seconds, self.count
        self.all_seconds += seconds
        self.all_count += count
        self.seconds = self.count = 0.0
        return seconds / count * 1e3 if count else Unknown("nothing was noted")

    def mean_ms(self) -> float:
        count = self.all_count + self.count
        return (self.all_seconds + self.seconds) / count * 1e3 if count else Unknown("nothing was noted")


class RealTimeProfiler:
    """add_alert_callback(f), start_monitoring(), stop_monitoring(), get_performance_summary().

        for batch in profiler.batches(loader): ...          the wait for each batch is noted
        with profiler.preprocessing(samples=len(texts)): ...

    Callbacks are called as f(alert, metrics) in the monitoring thread; what they raise is logged. hold_s: how long a value must be beyond
    its threshold."""

    def __init__(self, config: Any = None, hold_s: float = 10.0) -> None:
        self.interval_s = setting(config, "monitoring_interval")
        self.enabled = setting(config, "real_time_monitoring")
        self.hold_s = hold_s
        self.alerts: deque = deque(maxlen=KEPT)
        self._callbacks: list[Callable[[Alert, dict[str, Any]], Any]] = []
        self._judge = _tare.Alerts([(rule.enter, rule.leave, hold_s) for rule in RULES])
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._sums: dict[str, list[float]] = {}
        self._loading, self._preprocessing = _Mean(), _Mean()
        self._looks = 0
        self._seconds = 0.0
        self._begun: float | None = None
        keep_lock(self)

    def add_alert_callback(self, callback: Callable[[Alert, dict[str, Any]], Any]) -> None:
        if not callable(callback):
            raise TypeError(f"a callback takes an alert and metrics; {type(callback).__name__} cannot be called")
        self._callbacks.append(callback)

    # ---- the loop ----

    def start_monitoring(self) -> None:
        """Once more is no error. Nothing happens with real_time_monitoring=False."""
        if not self.enabled or (self._thread is not None and self._thread.is_alive()):
            return
        self._stop.clear()
        self._begun = time.monotonic()
        self._thread = threading.Thread(target=self._monitor, name="tare-monitor", daemon=True)
        self._thread.start()

    def stop_monitoring(self) -> None:
        """Waits for the last look. Not started: nothing happens."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stop.set()
        if thread is not threading.current_thread():
            thread.join()
        self._seconds += time.monotonic() - self._begun
        self._begun = None

    def _monitor(self) -> None:
        watch = _tare.Watch(PROBES, self.interval_s, self.interval_s, self.interval_s)
        try:
            _tare.sampler_now(PROBES, 0.0)  # rates need one before
            while not self._stop.wait(self.interval_s):
                self._look()
            time.sleep(LAST_S)
            self._look()
        finally:
            watch.end()

    def _look(self) -> None:
        seen = now_seen(_tare.sampler_now(PROBES, min(self.interval_s, LAST_S)), {})
        cpus = seen.most("cpu.count")
        with self._lock:
            loading, preprocessing = self._loading.take_ms(), self._preprocessing.take_ms()
        self.judge(
            time.monotonic(),
            {
                "cpu_percent": seen.percent("cpu.busy", 100.0 / cpus) if known(cpus) else cpus,
                "memory_percent": memory_percent(seen, seen.least("memory.available"), seen.most("cgroup.memory")),
                "gpu_memory_percent": 100 * seen.most("gpu.memory.share"),
                "gpu_utilization": 100 * seen.most("gpu.utilization"),
                "process_memory": seen.most("self.memory.rss"),
                "loading_ms_per_batch": loading,
                "preprocessing_ms_per_sample": preprocessing,
            },
        )

    def judge(self, at_s: float, metrics: dict[str, Any]) -> list[Alert]:
        """The alerts that begin or end with these metrics, at that time in seconds; those that begin go to the callbacks."""
        found = []
        for number, rule in enumerate(RULES):
            value = metrics.get(rule.key)
            what = self._judge.tell(number, value if known(value) else float("nan"), at_s)
            if what:
                found.append(Alert.of(rule, value, what > 0, self.hold_s))
        with self._lock:
            self._looks += 1
            for key, value in metrics.items():
                if known(value):
                    row = self._sums.setdefault(key, [0, 0.0, value])
                    self._sums[key] = [row[0] + 1, row[1] + value, max(row[2], value)]
            self.alerts.extend(found)
        for alert in found:
            self._tell(alert, metrics)
        return found

    def _tell(self, alert: Alert, metrics: dict[str, Any]) -> None:
        log.log(logging.WARNING if alert.began and not self._callbacks else logging.INFO, "%s", alert)
        for callback in list(self._callbacks) if alert.began else ():
            try:
                callback(alert, metrics)
            except Exception:  # the program that is watched goes on
                log.exception("alert callback %r", callback)

    # ---- what only the program knows ----

    def batches(self, loader: Iterable) -> Iterator:
        """The batches of a loader; how long each was waited for is noted."""
        it = iter(loader)
        while True:
            begun = time.perf_counter()
            try:
                batch = next(it)
            except StopIteration:
                return
            self.note_loading(time.perf_counter() - begun)
            yield batch

    def note_loading(self, seconds: float, batches: int = 1) -> None:
        with self._lock:
            self._loading.add(seconds, batches)

    @contextmanager
    def preprocessing(self, samples: int = 1) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        self.note_preprocessing(time.perf_counter() - begun, samples)

    def note_preprocessing(self, seconds: float, samples: int) -> None:
        with self._lock:
            self._preprocessing.add(seconds, samples)

    # ---- results ----

    def get_performance_summary(self) -> dict[str, Any]:
        """Means and peaks of all looks, and the alerts; Unknown, with its reason, for what was never seen."""
        with self._lock:
            none = Unknown("never seen while monitoring" if self._looks else "not monitored yet: start_monitoring()")
            sums = {key: self._sums.get(key, (0, none, none)) for key in dict.fromkeys([r.key for r in RULES] + list(self._sums))}
            out: dict[str, Any] = {key: {"mean": s / n if n else s, "max": most, "samples": n} for key, (n, s, most) in sums.items()}
            out["loading_ms_per_batch"]["mean"] = self._loading.mean_ms()
            out["preprocessing_ms_per_sample"]["mean"] = self._preprocessing.mean_ms()
            since = self._begun
            out["seconds"] = self._seconds + (time.monotonic() - since if since is not None else 0.0)
            out["samples"] = self._looks
            out["alerts"] = [str(alert) for alert in self.alerts if alert.began]
        return out
