# SPDX-License-Identifier: MIT
"""tare benchmarks and profiles machine-learning workloads, and subtracts its own cost.

Names are found on first use (PEP 562), so that `import tare` costs the C extension alone; nothing here imports torch, numpy or
onnxruntime before a name that needs them is used.
"""

import atexit as _atexit
import sys as _sys
from importlib import import_module as _import_module

if "t" in _sys.abiflags:
    raise ImportError(
        "tare does not run in free-threaded CPython (%s): its extension leaves the order of what threads record to the GIL. "
        "Use the ordinary build of Python %d.%d." % (_sys.executable, *_sys.version_info[:2])
    )

from tare._tare import count, mark, recording, scope, start, stop
from tare._tare import thread_names as _thread_names
from tare._tare import version as __version__

_atexit.register(_thread_names)  # a trace of TARE_TRACE is closed after the interpreter has gone

# public name: the module of the package that defines it
_WHERE = {
    "functions": "_functions",
    "gpu": "_gpu_block",
    "leaks": "_memory_block",
    "lines": "_lines",
    "memory": "_memory_block",
    "load_ipython_extension": "_notebook",
    "detect_regressions": "_model_results",
    "load_baseline": "_model_results",
    "ModelMonitor": "_monitor",
    "ModelProfiler": "_model",
    "profile_function": "_decorator",
    "EmbeddingProfiler": "_text_profile",
    "NLIProfiler": "_text_profile",
    "bench": "_bench",
    "sample": "_sample",
    "Case": "_run",
    "load": "_run",
    "Run": "_run",
    "PerformanceProfiler": "_performance",
    "PerformanceRegressionDetector": "_regression",
    "ProductionProfiler": "_production",
    "ASGIMiddleware": "_middleware",
    "WSGIMiddleware": "_middleware",
    "RequestLog": "_requests",
    "diagnose_performance_issues": "_diagnose",
    "PerformanceRegression": "_regression",
    "RegressionWarning": "_regression",
    "IOOptimizer": "_tune_files",
    "Pack": "_tune_pack",
    "MemoryOptimizer": "_tune_memory",
    "memory_optimization_context": "_tune_memory",
    "PreprocessingOptimizer": "_tune_preprocess",
    "vectorized": "_tune_preprocess",
    "Unknown": "_unknown",
    "Tuned": "_tune",
    "confirm": "_tune",
    "ProfilingConfig": "_tune",
    "DataOptimizationConfig": "_tune",
    "DataLoadingOptimizer": "_tune_data",
    "optimize_dataset": "_tune_data",
    "ProfilingOptimizer": "_tune_profile",
    "profiling_context": "_tune_profile",
    "RealTimeProfiler": "_tune_realtime",
    "BatchSizeOptimizer": "_tune_batch",
    "LimitExceeded": "_tune_child",
    "OptimizedFineTuningService": "_tune_service",
}

__all__ = ["__version__", "count", "mark", "recording", "scope", "start", "stop", *_WHERE]


def __getattr__(name):
    if name not in _WHERE:
        raise AttributeError(f"module 'tare' has no attribute {name!r}")
    value = getattr(_import_module("tare." + _WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)
