# SPDX-License-Identifier: MIT
"""Types of the package tare: written where the names are defined, but for a decorator, which needs two."""

import os
from typing import Any, Callable, TypeVar, overload

from tare._bench import bench as bench
from tare._diagnose import diagnose_performance_issues as diagnose_performance_issues
from tare._functions import functions as functions
from tare._gpu_block import gpu as gpu
from tare._lines import lines as lines
from tare._memory_block import leaks as leaks
from tare._memory_block import memory as memory
from tare._sample import sample as sample
from tare._model import ModelProfiler as ModelProfiler
from tare._model_results import detect_regressions as detect_regressions
from tare._model_results import load_baseline as load_baseline
from tare._monitor import ModelMonitor as ModelMonitor
from tare._notebook import load_ipython_extension as load_ipython_extension
from tare._performance import PerformanceProfiler as PerformanceProfiler
from tare._middleware import ASGIMiddleware as ASGIMiddleware
from tare._middleware import WSGIMiddleware as WSGIMiddleware
from tare._production import ProductionProfiler as ProductionProfiler
from tare._requests import RequestLog as RequestLog
from tare._regression import PerformanceRegression as PerformanceRegression
from tare._regression import PerformanceRegressionDetector as PerformanceRegressionDetector
from tare._regression import RegressionWarning as RegressionWarning
from tare._run import Case as Case
from tare._run import Run as Run
from tare._run import load as load
from tare._tare import count as count
from tare._tare import mark as mark
from tare._tare import recording as recording
from tare._tare import scope as scope
from tare._tare import start as start
from tare._tare import stop as stop
from tare._text_profile import EmbeddingProfiler as EmbeddingProfiler
from tare._text_profile import NLIProfiler as NLIProfiler
from tare._tune import DataOptimizationConfig as DataOptimizationConfig
from tare._tune import ProfilingConfig as ProfilingConfig
from tare._tune import Tuned as Tuned
from tare._tune import confirm as confirm
from tare._tune_data import DataLoadingOptimizer as DataLoadingOptimizer
from tare._tune_data import optimize_dataset as optimize_dataset
from tare._tune_batch import BatchSizeOptimizer as BatchSizeOptimizer
from tare._tune_child import LimitExceeded as LimitExceeded
from tare._tune_profile import ProfilingOptimizer as ProfilingOptimizer
from tare._tune_profile import profiling_context as profiling_context
from tare._tune_realtime import RealTimeProfiler as RealTimeProfiler
from tare._tune_service import OptimizedFineTuningService as OptimizedFineTuningService
from tare._tune_files import IOOptimizer as IOOptimizer
from tare._tune_pack import Pack as Pack
from tare._tune_memory import MemoryOptimizer as MemoryOptimizer
from tare._tune_memory import memory_optimization_context as memory_optimization_context
from tare._tune_preprocess import PreprocessingOptimizer as PreprocessingOptimizer
from tare._tune_preprocess import vectorized as vectorized
from tare._unknown import Unknown as Unknown

__version__: str

_F = TypeVar("_F", bound=Callable[..., Any])

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
