# SPDX-License-Identifier: MIT
"""python -m tare finetuning WORD: one request of a server's /finetuning paths, as JSON on stdin, answered as JSON on stdout. The work is that of
OptimizedFineTuningService and ProfilingOptimizer; what is trained, and which functions there are, is in the operator's module."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
from typing import Any

from tare._tune import ProfilingConfig
from tare._tune_profile import ProfilingOptimizer
from tare._tune_service import OptimizedFineTuningService
from tare._unknown import known
from tare._worker import BadInput, locate


class Module:
    """The operator's: make_dataset(dataset_config), models {name: make_step}, and functions by name."""

    def __init__(self, path: str | None, budget_s: float = 60.0) -> None:
        self.path = path
        self.config = ProfilingConfig(budget_s=budget_s)

    def get(self, name: str, fallback: Any = None) -> Any:
        if self.path is None:
            return fallback
        try:
            return locate(f"{self.path}:{name}")[1]
        except BadInput:
            if fallback is not None:
                return fallback
            raise

    def dataset(self, config: dict[str, Any]) -> Any:
        """Without make_dataset it is the texts themselves, cut to max_length characters."""
        make = self.get("make_dataset", texts_of)
        return make(config)


def texts_of(config: dict[str, Any]) -> list[str]:
    return [text[: config.get("max_length", 512)] for text in config.get("texts", [])]


# ---- the words ----


async def profile_and_optimize(module: Module, request: dict[str, Any]) -> dict[str, Any]:
    named = {**request, "dataset": module.dataset(request.pop("dataset_config", {}))}
    named.pop("dataset_config", None)
    return await OptimizedFineTuningService(module.config, models=module.get("models", {})).profile_and_optimize_training(**named)


async def optimize_dataset_loading(module: Module, request: dict[str, Any]) -> dict[str, Any]:
    service = OptimizedFineTuningService(module.config)
    loader = await service.optimize_dataset_loading(module.dataset(request.get("dataset_config", {})), batch_size=request.get("batch_size", 32))
    return {"optimization_plan": loader.plan, "bottlenecks": service.loading.identify_bottlenecks(), **await service.get_performance_report()}


async def optimize_preprocessing(module: Module, request: dict[str, Any]) -> dict[str, Any]:
    service = OptimizedFineTuningService(module.config)
    functions = [module.get(name) for name in request["preprocessing_functions"]]
    if None in functions:
        raise BadInput("the functions are in the operator's module: --module FILE.py")
    pipeline = await service.optimize_preprocessing_pipeline(functions, request["sample_data"])
    plan = pipeline.tuned.plan
    return {"optimization_plan": plan, "bottlenecks": service.preparing.identify_bottlenecks(), **await service.get_performance_report()}


async def profile_operation(module: Module, request: dict[str, Any]) -> dict[str, Any]:
    """One call of the function that --operation names."""
    function = module.get(request.pop("operation"))
    if not callable(function):
        raise BadInput("the operation is a function of the operator's module: --module FILE.py")
    profiler = ProfilingOptimizer(ProfilingConfig(**request.get("config", {})))
    result = profiler.profile_code(function)
    slow = [row.name for row in result.bottleneck_functions]
    return {**result.to_dict(), "bottleneck_functions": slow, "recommendations": result.recommendations, "system": profiler.get_training_stats()}


WORDS = {
    "profile-and-optimize": profile_and_optimize,
    "optimize-dataset-loading": optimize_dataset_loading,
    "optimize-preprocessing": optimize_preprocessing,
    "profile-operation": profile_operation,
}


def as_json(value: Any) -> Any:
    """What is unknown is null, as are numbers that JSON has no word for."""
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) and known(value) else None
    if value is None or isinstance(value, (str, int, bool)):
        return value
    if not known(value):
        return None
    return as_json(value.to_dict()) if hasattr(value, "to_dict") else str(value)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m tare finetuning", description="Answer one request of a server's /finetuning paths: JSON in, JSON out.")
    parser.add_argument("word", choices=sorted(WORDS))
    parser.add_argument("--module", metavar="FILE.py", help="make_dataset, models and functions of the operator")
    parser.add_argument("--operation", help="of profile-operation: the function to call")
    parser.add_argument("--budget", type=float, default=60.0, metavar="SECONDS", help="for searching and confirming, of each part (default 60)")
    options = parser.parse_args(argv)
    try:
        request = json.loads(sys.stdin.read() or "{}")
        if not isinstance(request, dict):
            raise BadInput("the request is no object")
        if options.word == "profile-operation":
            if not options.operation:
                raise BadInput("--operation names the function to call")
            request["operation"] = options.operation
        answer = asyncio.run(WORDS[options.word](Module(options.module, options.budget), request))
    except (BadInput, ValueError, TypeError, KeyError) as bad:
        print(f"tare finetuning: {bad if not isinstance(bad, KeyError) else f'{bad} is missing'}", file=sys.stderr)
        return 2
    print(json.dumps(as_json(answer)))
    return 0
