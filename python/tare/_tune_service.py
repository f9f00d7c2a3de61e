# SPDX-License-Identifier: MIT
"""OptimizedFineTuningService: one training job looked at as a whole, as coroutines. Knows nothing of HTTP.

Loading, preprocessing and the training step are each measured and tuned by the class that does it; what only the whole shows is
measured here: the share of time in which the step waits for data, and what its removal brings. Steps run in a child that is thrown
away, so that the model does not learn from being measured (on a GPU, which no child may share, in this process)."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import itertools
import math
import statistics
import sys
import time
from typing import Any, Callable, Iterable, Iterator, NamedTuple

from tare._tune import Tuned, confirm, log, queued_seconds, setting
from tare._tune_batch import BatchSizeOptimizer
from tare._tune_child import can_fork, in_child
from tare._tune_memory import TARGET as LESS_MEMORY
from tare._tune_memory import MemoryOptimizer, weighed
from tare._tune_profile import ProfilingOptimizer
from tare._unknown import Unknown, known, plain

# What users hope for, in times as fast
TARGETS = {"data_loading": (2.0, 4.0), "preprocessing": (2.0, 3.0), "training": (1.5, 2.0), "memory": LESS_MEMORY}
STEPS = 2  # of training, for the memory that they take
LOOKED_AT_S = 2.0  # of training, for the share of waiting
MOST_BATCHES = 200
LOSS_DIFFERS = 0.05  # mean difference of losses from which lower precision is another training
LOSSES = 8
LEARNED = "on a GPU the steps ran in this process: the model has learned from them"


class Stall(NamedTuple):
    """The share of time in which the step waits for its batch, with its 95 % interval over parts of the run."""

    share: float
    low: float
    high: float
    batches: int
    step_s: float
    queued: float = 0.0  # share of the time in which the step was ready and other programs had the processors

    @property
    def bound(self) -> float:
        """How many times as fast it were without waiting: by the upper end, since it is a bound, and as if the others gave way."""
        left = 1 - self.high - self.queued
        return 1 / left if left > 0 else math.inf


class Report(dict):
    """A dict that prints as a table: target, bound on this run, achieved."""

    def __str__(self) -> str:
        rows = [f"{'':<16}{'target':>12}{'bound':>12}  achieved", *(row["text"] for row in self["targets"])]
        return "\n".join(rows + [f"- {text}" for text in self.get("recommendations", ())])


def target_row(what: str, tuned: Tuned) -> dict[str, Any]:
    tuned.target = tuned.target or TARGETS.get(what)
    bound = tuned.amount(tuned.bound) if known(tuned.bound) else "unknown"
    return {
        "text": f"{what:<16}{tuned.target_text():>12}{bound:>12}  {tuned.gain_text()}: {tuned.verdict.replace('_', ' ')}",
        "what": what, "target": tuned.target, "less": tuned.less, "bound": plain(tuned.bound), "achieved": plain(tuned.gain), "ci": tuned.ci,
        "verdict": tuned.verdict, "applied": tuned.applied, "plan": tuned.plan, "reasons": tuned.reasons,
    }  # fmt: skip


class OptimizedFineTuningService:
    """`await profile_and_optimize_training(model_name, dataset, training_config)`, and its parts.

    A model is known by name: `OptimizedFineTuningService.register("gpt2", make_step)`, where make_step(training_config) gives the function
    that does one training step with a batch and returns the loss; or training_config["step"] is that function. The event loop stands
    still while a coroutine measures: a server has a process of its own for it."""

    models: dict[str, Callable[[dict[str, Any]], Callable[[Any], Any]]] = {}

    def __init__(self, config: Any = None, models: dict[str, Callable] | None = None) -> None:
        setting(config, "budget_s")
        self.config = config
        self.models = {**type(self).models, **(models or {})}
        self.profiler = ProfilingOptimizer(config)
        self.results: list[tuple[str, Tuned]] = []

    @classmethod
    def register(cls, name: str, make_step: Callable[[dict[str, Any]], Callable[[Any], Any]]) -> None:
        cls.models[name] = make_step

    # ---- what a user calls ----

    async def profile_and_optimize_training(
        self, model_name: str, dataset: Any, training_config: dict[str, Any] | None = None, user_id: Any = None,
        profile_data_loading: bool = True, profile_preprocessing: bool = True, profile_training: bool = True,
    ) -> Report:  # fmt: skip
        """training_config: batch_size, gradient_accumulation, step, preprocessing_functions; the rest is the model's. The report has
        `optimization_plan` (what is confirmed, by part), `recommendations`, `targets`, `stall`, `bottlenecks`."""
        log.info("profile_and_optimize_training: model %s, user %s", model_name, user_id)
        config = dict(training_config or {})
        parts = (profile_data_loading, profile_preprocessing, profile_training)
        return await self._alone(self._optimize, model_name, dataset, config, user_id, parts)

    async def optimize_dataset_loading(self, dataset: Any, batch_size: int = 32, shuffle: bool = True, **given: Any) -> Any:
        """A loader as DataLoadingOptimizer gives it; its `.tuned` has the proof."""
        return await self._alone(self._load, dataset, {"batch_size": batch_size, "shuffle": shuffle, **given})

    async def optimize_preprocessing_pipeline(self, functions: Iterable[Callable], sample_data: Iterable) -> Any:
        """A pipeline as PreprocessingOptimizer gives it."""
        return await self._alone(self._prepare, list(functions), list(sample_data))

    async def get_performance_report(self) -> Report:
        """All that was tried so far as target, bound and achieved, and the machine."""
        return Report(
            targets=[target_row(what, tuned) for what, tuned in self.results],
            recommendations=list(dict.fromkeys(text for what, tuned in self.results for text in _advice(what, tuned))),
            system=self.profiler.get_training_stats(),
        )

    @staticmethod
    async def _alone(call: Callable, *args: Any) -> Any:
        """In the thread of the event loop: what else runs would be in the measurement, and beside other threads no worker may be forked."""
        await asyncio.sleep(0)
        return call(*args)

    # ---- parts ----

    def _keep(self, what: str, tuned: Tuned) -> Tuned:
        self.results.append((what, tuned))
        return tuned

    def _load(self, dataset: Any, named: dict[str, Any], step: Callable | None = None) -> Any:
        from tare import DataLoadingOptimizer

        self.loading = DataLoadingOptimizer(self.config)
        with self.profiler.profiler.profile("optimize_dataset_loading"):
            loader = self.loading.optimize_dataloader(dataset, step_fn=step, **named)
        self._keep("data_loading", loader.tuned)
        return loader

    def _prepare(self, functions: list[Callable], sample: list) -> Any:
        from tare import PreprocessingOptimizer

        self.preparing = PreprocessingOptimizer(self.config)
        with self.profiler.profiler.profile("optimize_preprocessing_pipeline"):
            pipeline = self.preparing.optimize_preprocessing_pipeline(functions, sample)
        self._keep("preprocessing", pipeline.tuned)
        return pipeline

    def _optimize(self, model_name: str, dataset: Any, config: dict[str, Any], user_id: Any, parts: tuple[bool, bool, bool]) -> Report:
        first = len(self.results)
        missing: list[str] = []
        bottlenecks: dict[str, Any] = {}
        step = self._step(model_name, config, missing)
        named = {"batch_size": config.get("batch_size", 32), "shuffle": config.get("shuffle", True)}
        stall, loader = None, None
        if parts[0]:
            loader = self._load(dataset, named)
            bottlenecks["data_loading"] = self.loading.identify_bottlenecks()
        if parts[1]:
            functions = config.get("preprocessing_functions")
            if functions:
                self._prepare(list(functions), list(itertools.islice(iter(config.get("sample_data", dataset)), 256)))
                bottlenecks["preprocessing"] = self.preparing.identify_bottlenecks()
            else:
                missing.append("preprocessing was not looked at: training_config has no preprocessing_functions")
        if parts[2] and step is not None:
            stall = self._train(step, dataset, loader, named, config)
            bottlenecks["training"] = _bound_by(stall)
        found = self.results[first:]
        return Report(
            model_name=model_name, user_id=user_id, targets=[target_row(what, tuned) for what, tuned in found],
            optimization_plan={what: tuned.plan for what, tuned in found if self._to_use(what, tuned)},
            recommendations=[text for what, tuned in found for text in _advice(what, tuned)] + missing,
            stall=stall._asdict() if stall else None, bottlenecks=bottlenecks, system=self.profiler.get_training_stats(),
        )  # fmt: skip

    def _to_use(self, what: str, tuned: Tuned) -> bool:
        """What saves memory for time is of use only where memory is limited."""
        wanted = what != "checkpointing" or setting(self.config, "memory_limit") is not None
        return bool(wanted and tuned.plan and tuned.worth(setting(self.config, "apply")))

    def _step(self, model_name: str, config: dict[str, Any], missing: list[str]) -> Callable[[Any], Any] | None:
        step = config.get("step")
        if step is None and model_name in self.models:
            step = self.models[model_name](config)
        if step is None:
            known_ones = ", ".join(sorted(self.models)) or "none"
            missing.append(f"training was not looked at: no model {model_name!r} is registered (there are {known_ones}), and no step is given")
        elif not callable(step):
            raise TypeError(f"a training step is a function of a batch, not {type(step).__name__}")
        return step

    # ---- training ----

    def _train(self, step: Callable, dataset: Any, loader: Any, named: dict[str, Any], config: dict[str, Any]) -> Stall:
        usual = _plain_loader(dataset, named)
        with self.profiler.profiler.profile("training"):
            stall = self.stall(usual, step)
        if loader is not None and loader.tuned.applied:
            tuned = self._whole(step, usual, loader, stall)
        else:
            tuned = Tuned("training", {}, "no_gain", bound=stall.bound, target=TARGETS["training"])
            tuned.reasons.append(f"{stall.share:.0%} of the time is spent waiting for data, and loading is left as it is")
        self._keep("training", tuned)
        self._batches(step, usual, named, config)
        self._keep("mixed precision", self.mixed_precision(step, _batch(usual)))
        self._keep("checkpointing", self.checkpointing(step, _batch(usual)))
        return stall

    def stall(self, loader: Iterable, step: Callable[[Any], Any], seconds: float = LOOKED_AT_S) -> Stall:
        """How long a training loop waits for its batches: a few seconds of it."""
        waits, steps, queued = self._call(functools.partial(_loop, loader, step, seconds))
        if len(steps) < 2:
            raise ValueError(f"{len(steps)} batches: too few to see whether training waits for data")
        return stall_of(waits, steps)._replace(queued=queued / (sum(waits) + sum(steps)))

    def _call(self, call: Callable[[], Any]) -> Any:
        """In a child, or on a GPU here."""
        if can_fork():
            return call()
        said = in_child(call, setting(self.config, "timeout_s"))
        if said.outcome != "done":
            raise RuntimeError(f"a training step {said.outcome}: {said.value}")
        return said.value

    def _whole(self, step: Callable, usual: Iterable, loader: Any, stall: Stall) -> Tuned:
        """The loop with the loader of today and with the one that was found, in turns."""
        batches = max(2, min(MOST_BATCHES, stall.batches))

        def epoch(of: Iterable) -> None:
            for batch in itertools.islice(iter(of), batches):
                step(batch)

        def pairs() -> Tuned:
            return confirm(
                lambda: epoch(usual), lambda: epoch(loader), what="training", plan=dict(getattr(loader, "plan", {})), bound=stall.bound,
                target=TARGETS["training"], threshold=setting(self.config, "optimization_threshold"), budget_s=setting(self.config, "budget_s"),
            )  # fmt: skip

        watch, loader.watch = getattr(loader, "watch", None), None  # parts of it would come from the loader of today
        try:
            return self._call(pairs)
        finally:
            loader.watch = watch

    def _batches(self, step: Callable, usual: Any, named: dict[str, Any], config: dict[str, Any]) -> None:
        """Larger or smaller pieces of the same effective batch: the weights are updated after as many samples as today."""
        accumulation = config.get("gradient_accumulation", 1)
        tuned = Tuned("micro batch", {}, "refused")
        if getattr(step, "model", None) is not None and _has_batch_norm(step.model):
            tuned.reasons.append("the model has BatchNorm layers, whose statistics are of the micro batch: another one is another training")
        elif accumulation == 1:
            tuned.verdict = "no_gain"
            tuned.reasons.append("gradient_accumulation is 1: with the same effective batch it can only become smaller, which helps memory alone")
        else:
            tuned = BatchSizeOptimizer(self.config).find(
                step, lambda n: _batch(usual, n), base=named["batch_size"], effective=named["batch_size"] * accumulation
            )
        self._keep("micro batch", tuned)

    def mixed_precision(self, step: Callable[[Any], Any], batch: Any) -> Tuned:
        """The step in bfloat16 where PyTorch allows it, in turns with the step as it is; refused where the losses of a few steps from the
        same start differ. Advice: nothing is changed."""
        torch = sys.modules.get("torch")
        tuned = Tuned("mixed precision", {}, "refused")
        if torch is None:
            tuned.reasons.append("the step does not use PyTorch")
            return tuned
        device = "cuda" if can_fork() else "cpu"

        def lower() -> Any:
            with torch.autocast(device, dtype=torch.bfloat16):
                return step(batch)

        why = self._losses_differ(lambda: step(batch), lower, step)
        if why:
            tuned.reasons.append(why)
            return tuned
        plan = {"mixed_precision": "bfloat16", "device": device}
        rule = {"threshold": setting(self.config, "optimization_threshold"), "budget_s": setting(self.config, "budget_s")}
        sync = torch.cuda.synchronize if device == "cuda" else lambda: None
        return self._call(lambda: confirm(lambda: (step(batch), sync()), lambda: (lower(), sync()), what="mixed precision", plan=plan, **rule))

    def checkpointing(self, step: Callable[[Any], Any], batch: Any) -> Tuned:
        """Layers of the step's model computed again in the backward pass instead of kept: less memory for more time, both measured in turns. The
        bound is what is left without all that the backward pass keeps. Within memory_context(), since glibc's heap would stay as large. Advice: nothing is changed."""
        torch, model = sys.modules.get("torch"), getattr(step, "model", None)
        tuned = Tuned("checkpointing", {}, "refused", less=True)
        blocks = recomputable(model) if torch is not None and model is not None else {}
        if torch is None or model is None:
            tuned.reasons.append("the step has no .model of PyTorch whose layers could be computed again")
        elif _has_batch_norm(model):
            tuned.reasons.append("the model has BatchNorm layers, whose statistics would count a batch twice")
        elif not blocks:
            tuned.reasons.append("the model has no repeated blocks: nothing between their ends could be dropped")
        elif can_fork():
            tuned.reasons.append(f"memory is compared in children: {can_fork()}")
        if tuned.reasons:
            return tuned

        def losses() -> list[float | None]:
            return [_loss(step(batch)) for _ in range(STEPS)]

        def again() -> list[float | None]:
            with MemoryOptimizer(self.config).memory_context(), recomputing(blocks):
                return losses()

        _load_checkpoint(torch)
        try:
            least = self._call(functools.partial(_least_memory, lambda: step(batch), model))
        except RuntimeError as failed:
            tuned.reasons.append(str(failed))
            return tuned
        plan = {"checkpointing": [name or "the whole model" for name in blocks], "memory_context": True}
        tuned = MemoryOptimizer(self.config).confirm(losses, again, what="checkpointing", plan=plan, same=_losses_apart)
        if tuned.ci and least > 0:
            tuned.bound = max(1.0, statistics.median(unit.memory for unit in tuned.baseline) / least)
        if tuned.verdict == "confirmed" and not setting(self.config, "memory_limit"):
            tuned.reasons.append("worth it where memory is the limit: for a larger batch, or a smaller machine")
        return tuned

    def _losses_differ(self, base: Callable[[], Any], lower: Callable[[], Any], step: Any) -> str | None:
        """Each from the same start: a child each, or the model's own state set back."""
        losses = []
        for run in (base, lower):
            back = _remember(step) if can_fork() else None
            if can_fork() and back is None:
                return "the step has no .model and .optimizer whose state could be set back: losses cannot be compared"
            try:
                losses.append(self._call(lambda: [_loss(run()) for _ in range(LOSSES)]))
            except RuntimeError as error:
                return f"a step in {'bfloat16' if run is lower else 'full precision'} failed: {error}"
            finally:
                if back is not None:
                    back()
        full, low = losses
        if any(x is None or not math.isfinite(x) for x in full + low):
            return "the step returns no loss, or one that is no number: lower precision cannot be judged"
        apart = statistics.mean(abs(a - b) for a, b in zip(full, low)) / max(statistics.mean(map(abs, full)), 1e-12)
        return f"losses differ by {apart:.1%} on average over {LOSSES} steps" if apart > LOSS_DIFFERS else None


# ---- one training loop ----


def _loop(loader: Iterable, step: Callable[[Any], Any], seconds: float) -> tuple[list[float], list[float], float]:
    """Times of waiting and of steps, and for how long steps were ready and others had the processors; the first batch, which starts workers and
    fills queues, is not counted. Epochs follow each other."""
    waits: list[float] = []
    steps: list[float] = []
    end, first, queued = math.inf, True, 0.0
    while time.monotonic() < end and len(steps) < MOST_BATCHES:
        it, got = iter(loader), 0
        while time.monotonic() < end and len(steps) < MOST_BATCHES:
            begun = time.perf_counter()
            try:
                batch = next(it)
            except StopIteration:
                break
            before, fetched = queued_seconds(), time.perf_counter()
            step(batch)
            got += 1
            if first:
                first, end = False, time.monotonic() + seconds
                continue
            waits.append(fetched - begun)
            steps.append(time.perf_counter() - fetched)
            queued += queued_seconds() - before
        if not got:
            break
    return waits, steps, queued


def stall_of(waits: list[float], steps: list[float]) -> Stall:
    """The share of waiting, and its interval over up to ten parts in the order of time."""
    size = math.ceil(len(waits) / min(10, len(waits)))
    parts = [slice(i, i + size) for i in range(0, len(waits), size)]
    shares = [sum(waits[p]) / (sum(waits[p]) + sum(steps[p])) for p in parts]
    share = sum(waits) / (sum(waits) + sum(steps))
    half = 2.3 * statistics.stdev(shares) / math.sqrt(len(shares)) if len(shares) > 1 else 1.0  # Student's t of 9 degrees, rounded up
    return Stall(share, max(0.0, share - half), min(1.0, share + half), len(steps), statistics.median(steps))


def _bound_by(stall: Stall) -> str:
    range_ = f"{stall.share:.0%} ({stall.low:.0%} to {stall.high:.0%})"
    if stall.low > 0.2:
        return f"input-bound: {range_} of the time is spent waiting for data; at most {stall.bound:.2f}x without"
    if stall.high < 0.05:
        return f"compute-bound: {range_} of the time is spent waiting for data; faster loading cannot help"
    return f"waiting for data takes {range_} of the time; at most {stall.bound:.2f}x without"


def _plain_loader(dataset: Any, named: dict[str, Any]) -> Any:
    """As it is used today: no workers."""
    try:
        from torch.utils.data import DataLoader
    except ImportError:
        size = named["batch_size"]
        return [[dataset[k] for k in range(i, min(i + size, len(dataset)))] for i in range(0, len(dataset), size)]
    return DataLoader(dataset, **named)


def _batch(loader: Any, size: int | None = None) -> Any:
    """The first batch, or one of `size` samples."""
    if size is None:
        return next(iter(loader))
    if isinstance(loader, list):
        return list(itertools.islice(itertools.cycle(itertools.chain.from_iterable(loader)), size))
    return loader.collate_fn([loader.dataset[i % len(loader.dataset)] for i in range(size)])


def _loss(value: Any) -> float | None:
    value = getattr(value, "loss", value)
    try:
        return float(value.detach() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, RuntimeError):
        return None


def _remember(step: Any) -> Callable[[], None] | None:
    kept = [(part, copy.deepcopy(part.state_dict())) for part in (getattr(step, name, None) for name in ("model", "optimizer")) if part is not None]
    return (lambda: [part.load_state_dict(state) for part, state in kept]) if len(kept) == 2 else None


def _has_batch_norm(model: Any) -> bool:
    return any("BatchNorm" in type(module).__name__ for module in model.modules())


# ---- layers that are computed again ----


def recomputable(model: Any) -> dict[str, Any]:
    """Blocks by their names: the members of lists and sequences of modules that have modules of their own, the outermost; or the whole of a
    sequence of four layers or more."""
    import torch

    blocks: dict[str, Any] = {}
    for name, module in model.named_modules():
        if any(f"{name}.".startswith(f"{block}.") for block in blocks):
            continue
        if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)) and len(module) > 1:
            members = {f"{name}.{key}".lstrip("."): block for key, block in module.named_children() if len(list(block.children())) > 1}
            blocks.update(members if len(members) > 1 else {})
    if not blocks and isinstance(model, torch.nn.Sequential) and len(model) >= 4:
        blocks[""] = model
    return blocks


def _load_checkpoint(torch: Any) -> None:
    """What PyTorch loads at the first use, some 100 MiB, is not what the layers take."""
    from torch.utils.checkpoint import checkpoint

    checkpoint(torch.square, torch.ones(1, requires_grad=True), use_reentrant=False).backward()


@contextlib.contextmanager
def recomputing(blocks: dict[str, Any]) -> Iterator[None]:
    """Within it, what the blocks compute on the way is computed again in the backward pass."""
    from torch.utils.checkpoint import checkpoint, checkpoint_sequential

    for name, block in blocks.items():
        if name:
            block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
        else:
            block.forward = lambda x, layers=list(block): checkpoint_sequential(layers, max(2, math.isqrt(len(layers))), x, use_reentrant=False)
    try:
        yield
    finally:
        for block in blocks.values():
            del block.forward


def _least_memory(call: Callable[[], Any], model: Any) -> int:
    """Bytes that a step takes without what the graph keeps, the parameters aside, and without what the allocator keeps."""
    import torch

    def tight() -> None:
        with MemoryOptimizer().memory_context():
            call()

    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    unit, _ = weighed(tight, False)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        call()
    return (unit.memory or 0) - sum(kept.values())


def _losses_apart(base: list, again: list) -> str | None:
    if any(x is None or not math.isfinite(x) for x in base + again):
        return "the step returns no loss, or one that is no number"
    apart = max(abs(a - b) / max(abs(a), 1e-12) for a, b in zip(base, again))
    return f"losses differ by up to {apart:.2g} of their value" if apart > 1e-4 else None


def _advice(what: str, tuned: Tuned) -> list[str]:
    """One sentence a part: what to do, or why it is left."""
    if tuned.plan and tuned.verdict in ("confirmed", "likely"):
        plan = ", ".join(f"{name}={value}" for name, value in tuned.plan.items())
        gain = f"{tuned.gain_text()} of memory" if tuned.less else tuned.gain_text()
        return [f"{what}: use {plan}: {gain}, {tuned.verdict}" + (f"; {'; '.join(tuned.reasons)}" if tuned.less else "")]
    why = "; ".join(tuned.reasons[:2]) or tuned.verdict.replace("_", " ")
    return [f"{what}: leave it as it is: {why}"]
