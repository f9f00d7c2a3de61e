# SPDX-License-Identifier: MIT
"""Types of the package tare."""

import os
from typing import Any, Callable, Iterable, Mapping, Sequence, TypeVar, overload

__version__: str

# ---- scopes: tare._tare ----

_F = TypeVar("_F", bound=Callable[..., Any])

class Scope:
    name: str
    def __enter__(self) -> Scope: ...
    def __exit__(self, *exc: object) -> bool: ...
    def __call__(self, function: _F) -> _F: ...

@overload
def scope(what: str) -> Scope: ...
@overload
def scope(what: _F) -> _F: ...
def start(path: str | os.PathLike[str], *, mode: str = ..., disk_bytes: int = ..., memory_bytes: int = ...) -> None: ...
def stop() -> None: ...
def recording() -> bool: ...
def count(name: str, n: int = ...) -> None: ...
def mark(name: str, text: str = ...) -> None: ...

# ---- functions: tare._functions ----

class functions:
    running: bool
    seconds: float
    trouble: list[str]
    self_cost: dict[str, Any]
    stats: dict[tuple[str, int, str], tuple[Any, ...]]
    def __init__(self, *, fast: bool = ..., exact_c: bool = ..., limit: int = ...) -> None: ...
    def enable(self) -> None: ...
    def disable(self) -> None: ...
    def clear(self) -> None: ...
    def __enter__(self) -> functions: ...
    def __exit__(self, *exc: object) -> bool: ...
    def functions(self) -> list[Any]: ...
    def trees(self) -> list[Any]: ...
    def create_stats(self) -> None: ...
    def text(self, sort: str = ..., limit: int | None = ...) -> str: ...
    def print(self, sort: str = ..., limit: int | None = ..., file: Any = ...) -> None: ...
    def save(self, path: str) -> str: ...
    title: str
    def flame(self, path: str, title: str | None = ...) -> str: ...

# ---- lines: tare._lines ----

class lines:
    trouble: list[str]
    running: bool
    def __init__(self, *what: Any) -> None: ...
    def add(self, what: Any) -> None: ...
    def __call__(self, function: _F) -> _F: ...
    def enable(self) -> None: ...
    def disable(self) -> None: ...
    def __enter__(self) -> lines: ...
    def __exit__(self, *exc: object) -> bool: ...
    def functions(self) -> list[Any]: ...
    def lines(self) -> list[Any]: ...
    def text(self) -> str: ...
    def print(self, file: Any = ...) -> None: ...
    def save(self, path: str) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...

# ---- profile_function: tare._decorator ----

class FunctionProfile:
    name: str
    calls: int
    profiled: int
    dropped: int
    saved: list[tuple[str, str]]
    def save(self) -> tuple[str, str] | None: ...

@overload
def profile_function(name: _F) -> _F: ...
@overload
def profile_function(
    name: str | None = ...,
    *,
    folder: str | os.PathLike[str] = ...,
    every: int = ...,
    slower_than: float = ...,
    interval: float = ...,
    batch: int = ...,
    at_exit: bool = ...,
    sure: bool = ...,
) -> Callable[[_F], _F]: ...

# ---- models: tare._model, tare._model_results, tare._monitor ----

class ProfileResults(dict[str, Any]):
    document: dict[str, Any]
    case: dict[str, Any]
    def save(self, path: str | os.PathLike[str]) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...

class BenchmarkResults(list[ProfileResults]):
    document: dict[str, Any]

class LayerProfiles(dict[str, dict[str, Any]]):
    total_ms: float
    self_ns: float
    runs: int

class ModelProfiler:
    device: str
    precision: str
    unit: str
    targets: list[str]
    def __init__(
        self,
        model_path: Any = ...,
        device: str = ...,
        precision: str = ...,
        *,
        model: Any = ...,
        unit: str = ...,
        preprocess: Callable[[Any], Any] | None = ...,
        postprocess: Callable[[Any], Any] | None = ...,
        targets: Iterable[str] = ...,
        fallback: str | None = ...,
        trust: bool = ...,
    ) -> None: ...
    def profile(
        self,
        input_data: Any = ...,
        num_runs: int = ...,
        warmup_runs: int | str = ...,
        detailed_analysis: bool = ...,
        batch_size: int | None = ...,
    ) -> ProfileResults: ...
    def benchmark(
        self, configurations: list[dict[str, Any]], input_data: Any = ..., num_runs: int = ..., warmup_runs: int | str = ...
    ) -> BenchmarkResults: ...
    def profile_layers(
        self, input_data: Any = ..., layer_names: list[str] | None = ..., num_runs: int = ..., warmup_runs: int = ...
    ) -> LayerProfiles: ...
    def memory_profile(
        self,
        track_allocations: bool = ...,
        track_deallocations: bool = ...,
        memory_snapshots: bool = ...,
        input_data: Any = ...,
        num_runs: int = ...,
    ) -> dict[str, Any]: ...
    def gpu_profile(
        self, track_kernels: bool = ..., track_memory_transfers: bool = ..., profile_nvtx: bool = ..., input_data: Any = ...
    ) -> dict[str, Any]: ...
    @property
    def document(self) -> dict[str, Any]: ...
    def export_json(self, path: str | os.PathLike[str]) -> str: ...
    def export_csv(self, path: str | os.PathLike[str]) -> str: ...
    def generate_html_report(
        self, output_path: str | os.PathLike[str], include_graphs: bool = ..., include_details: bool = ...
    ) -> str: ...

class Regression(dict[str, Any]): ...

class Regressions(list[Regression]):
    comparison: dict[str, Any]
    @property
    def verified(self) -> list[Regression]: ...
    @property
    def verdict(self) -> str: ...

def load_baseline(path: str | os.PathLike[str]) -> ProfileResults: ...
def detect_regressions(baseline: Any, current: Any, *, force: bool = ..., fail_on: Iterable[str] = ...) -> Regressions: ...

class ModelMonitor:
    name: str
    def __init__(self, name: str = ..., *, folder: str = ..., window: int = ..., slower_than: float | None = ...) -> None: ...
    def inference(self, units: int = ...) -> Any: ...
    def __call__(self, function: _F) -> _F: ...
    def summary(self) -> dict[str, Any]: ...
    def save(self, path: str | os.PathLike[str] | None = ...) -> str: ...
    def reset(self) -> None: ...

# ---- performance: typed where they are written ----

from tare._diagnose import diagnose_performance_issues as diagnose_performance_issues
from tare._performance import PerformanceProfiler as PerformanceProfiler
from tare._production import ProductionProfiler as ProductionProfiler
from tare._regression import PerformanceRegression as PerformanceRegression
from tare._regression import PerformanceRegressionDetector as PerformanceRegressionDetector
from tare._regression import RegressionWarning as RegressionWarning
from tare._unknown import Unknown as Unknown

# ---- models that read texts ----

from tare._text_profile import EmbeddingProfiler as EmbeddingProfiler
from tare._text_profile import NLIProfiler as NLIProfiler

# ---- weighing a function: tare._bench, tare._run ----

class Case(Mapping[str, Any]):
    name: str
    params: dict[str, Any]
    samples: int
    unit: str
    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    throughput: float | None
    memory_peak: int | None
    memory_delta: int | None
    def latency_ms(self, which: str = ...) -> float | None: ...

class Run:
    path: str | None
    id: str
    subject: str
    cases: list[Case]
    findings: list[dict[str, Any]]
    recommendation: dict[str, Any] | None
    best: Case | None
    targets: list[dict[str, Any]]
    passed: bool
    def __init__(self, text: str, report: str | None = ..., path: str | None = ...) -> None: ...
    def case(self, name: str | None = ..., **params: Any) -> Case: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...
    def save(self, folder: str | os.PathLike[str] = ...) -> str: ...
    def html(self, path: str | os.PathLike[str]) -> Any: ...
    def compare(self, baseline: Run | str | os.PathLike[str], *options: str) -> str: ...

def load(path: str | os.PathLike[str]) -> Run: ...
def bench(
    function: Callable[..., Any],
    *args: Any,
    batch_sizes: int | Iterable[int] | None = ...,
    lengths: int | Iterable[int] | None = ...,
    unit: str | None = ...,
    targets: str | Iterable[str] = ...,
    budget: float | str = ...,
    warmup: int | str = ...,
    setup: Callable[..., tuple[Any, ...] | None] | None = ...,
    make_input: Callable[[int, int], Any] | None = ...,
    kwargs: Mapping[str, Any] | None = ...,
    name: str | None = ...,
    precision: float = ...,
    percentile: float | None = ...,
    min_runs: int = ...,
    max_runs: int | None = ...,
    objective: str = ...,
    latency_limit: float | str | None = ...,
    seed: int = ...,
    progress: Callable[[str, int, int], Any] | None = ...,
) -> Run: ...

# ---- notebooks: tare._notebook ----

def load_ipython_extension(ipython: Any) -> None: ...
