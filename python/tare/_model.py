# SPDX-License-Identifier: MIT
"""ModelProfiler: latency, throughput, memory, layers and reports of one model. Every number comes from a run document (tare.run/1)."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Callable, Iterable, Iterator

from tare import _answers, _gpu_block, _gpu_memory, _memory, _memory_block
from tare._gpu import HOST_ONLY
from tare._model_inputs import Inputs
from tare._model_layers import LayerProfiles, profile_module
from tare._model_record import with_facts, with_layers
from tare._model_results import BenchmarkResults, ProfileResults
from tare._model_subject import ModelError, open_subject, usable_device
from tare._model_weigh import Whole, failed, layers_of_onnx, static_of_onnx, weigh
from tare._run import Run, merged
from tare._text_choice import with_recommendation
from tare._unknown import Unknown

_CONFIGURATION = {"batch_size", "precision"}
_RECORDED_RUNS = 10  # of gpu_profile()


class ModelProfiler:
    """Profiles a model: an .onnx file, an nn.Module (object, saved file or folder), TorchScript, or any callable.

    device: "cpu", "cuda", "cuda:N"; a missing GPU is an error unless fallback="cpu" allows the CPU, with a warning. precision: None
    (as it is), "fp32", "bf16", "fp16", "int8" (dynamic). preprocess and postprocess: hooks around the model, for end-to-end latency.
    targets: limits to judge each profile by, as in "latency.p95<=100ms". trust: whether files that run code when they are read
    (torch.save of a whole module) may be read."""

    def __init__(
        self,
        model_path: Any = None,
        device: str = "cpu",
        precision: str | None = None,
        *,
        model: Any = None,
        unit: str = "samples",
        preprocess: Callable[[Any], Any] | None = None,
        postprocess: Callable[[Any], Any] | None = None,
        targets: Iterable[str] = (),
        fallback: str | None = None,
        trust: bool = True,
    ) -> None:
        if (model_path is None) == (model is None):
            raise ModelError("give a model: model_path=PATH, or model= with a module or a function")
        self.device = usable_device(device, fallback)
        self.precision = precision
        self.unit = unit
        self.preprocess = preprocess
        self.postprocess = postprocess
        self.targets = list(targets)
        self._trust = trust
        self._data: Any = None
        self._batch: int | None = None
        self._runs: list[Run] = []
        self._open(model if model_path is None else model_path)

    def _open(self, model: Any) -> None:
        self._subject = open_subject(model, self.device, self._trust)
        self.precision = self.precision or self._subject.own_precision
        self._subject.at(self.precision)  # a precision that cannot be is told now, not after minutes

    def profile(
        self,
        input_data: Any = None,
        num_runs: int = 100,
        warmup_runs: int | str = 10,
        detailed_analysis: bool = False,
        batch_size: int | None = None,
    ) -> ProfileResults:
        """Latency, throughput and memory over `num_runs` runs after `warmup_runs` ("auto": until steady). `input_data` may also be the
        path of another version of the model, to be profiled with the same inputs. detailed_analysis adds layers and memory over runs."""
        if self._is_model_path(input_data):
            self._open(input_data)
            input_data = None
        subject, inputs = self._next(input_data, batch_size)
        run, more = self._weigh_with_hooks(subject, inputs, num_runs, warmup_runs)
        more["model"] = self._model_facts(subject, inputs)
        run = with_facts(run, more["model"])
        if detailed_analysis:
            more.update(self._details(subject.kind, num_runs))
        if "layers" in more:
            run = with_layers(run, more["layers"])
        results = ProfileResults(run, run.cases[0], more)
        self._add_rates(results, inputs)
        self._runs.append(run)
        return results

    def _is_model_path(self, data: Any) -> bool:
        if not isinstance(data, (str, os.PathLike)) or self._subject.kind == "callable":
            return False
        if not os.path.exists(data):
            raise ModelError(f"{os.fspath(data)}: input_data is neither data nor the path of a model that exists")
        return True

    def _next(self, input_data: Any, batch_size: int | None) -> tuple[Any, Inputs | None]:
        """The subject and its inputs. What is not given is that of the last call; new data come with a batch size of their own."""
        if input_data is not None:
            self._data, self._batch = input_data, None
        self._batch = batch_size or self._batch
        return self._ready(self.precision, self._batch)

    def _ready(self, precision: str, batch_size: int | None) -> tuple[Any, Inputs | None]:
        """The subject in its precision, and its inputs: those given, or synthetic ones."""
        subject = self._subject.at(precision)
        if self._data is None:
            inputs = subject.synthetic_inputs()
        else:
            inputs = subject.inputs(self.preprocess(self._data) if self.preprocess else self._data)
        if inputs is not None and batch_size:
            inputs = inputs.with_batch(batch_size)
        return subject, inputs

    def _weigh(self, subject: Any, inputs: Inputs | None, runs: int, warmup: int | str, batch: int | None = None) -> Run:
        _check_runs(runs)
        with self._quiet(subject):
            return weigh(subject, inputs, {"runs": runs, "warmup": warmup, "batch": batch, "unit": self.unit, "targets": self.targets})

    @contextlib.contextmanager
    def _quiet(self, subject: Any) -> Iterator[None]:
        """Gradients off, as in inference."""
        if subject.module is None:
            yield
            return
        import torch

        with torch.inference_mode():
            yield

    def _runner(self, subject: Any, inputs: Inputs) -> Callable[[], Any]:
        return lambda: subject.function(*inputs.args, **inputs.kwargs)

    def _weigh_with_hooks(self, subject: Any, inputs: Inputs | None, runs: int, warmup: int | str) -> tuple[Run, dict[str, Any]]:
        """The Run of the model; and, with hooks around it, the time of all three in the same runs."""
        if not (self.preprocess or self.postprocess):
            return self._weigh(subject, inputs, runs, warmup, self._batch), {}
        why = None
        if subject.kind == "onnx":
            why = "preprocess and postprocess are Python, and ONNX files run without it: give a callable that holds all three"
        elif self._data is None:
            why = "preprocess and postprocess take real data: give input_data"
        if why:
            return self._weigh(subject, inputs, runs, warmup, self._batch), {"end_to_end": Unknown(why)}
        whole = Whole(subject, self.preprocess and self._prepared, self.postprocess)
        run = self._weigh(whole, inputs, runs, warmup, self._batch)
        return run, {"end_to_end": whole.end_to_end(run.cases[0])}

    def _prepared(self, subject: Any) -> Inputs:
        ready = subject.inputs(self.preprocess(self._data))
        return ready.with_batch(self._batch) if self._batch else ready

    def _model_facts(self, subject: Any, inputs: Inputs | None) -> dict[str, Any]:
        """Parameters, size, FLOPs and bytes of results: by arithmetic, without a clock."""
        if subject.kind == "onnx":
            return static_of_onnx(subject, self._batch or (inputs and inputs.batch()))
        if subject.module is None:
            why = "nothing is known of what a callable computes: give the module"
            return {key: Unknown(why) for key in ("parameters", "size_bytes", "flops", "macs", "activation_bytes", "activation_peak_bytes")}
        return _torch_facts(subject, self._runner(subject, inputs))

    def _details(self, kind: str, runs: int) -> dict[str, Any]:
        """Layers where they can be seen, memory over runs where they are in this process."""
        out: dict[str, Any] = {}
        if kind in ("onnx", "torch"):
            out["layers"] = self.profile_layers(num_runs=min(runs, 20))
        if kind != "onnx":
            out["memory_profile"] = self.memory_profile(num_runs=min(runs, 20))
        return out

    @staticmethod
    def _add_rates(results: ProfileResults, inputs: Inputs | None) -> None:
        """Tokens and images a second, where the inputs look like them."""
        if inputs is None:
            return
        per_second = results["throughput"].get("requests_per_second")
        for name, count in (("tokens", inputs.tokens()), ("images", inputs.images())):
            if count and per_second:
                results["throughput"][f"{name}_per_second"] = per_second * count

    def benchmark(
        self, configurations: list[dict[str, Any]], input_data: Any = None, num_runs: int = 50, warmup_runs: int | str = 10
    ) -> BenchmarkResults:
        """One case per configuration: {"batch_size": n, "precision": name}, both optional. Inputs are those of the last call, rows
        repeated or cut to the batch size. A configuration that fails (no memory) is a row with its reason, results.case["failure"];
        where all fail, the first exception comes out."""
        out = BenchmarkResults()
        for number, configuration in enumerate(configurations):
            strange = set(configuration) - _CONFIGURATION
            if strange:
                raise ModelError(f"configurations[{number}]: {', '.join(sorted(strange))} is not known: batch_size and precision are")
        self._next(input_data, None)
        errors = []
        for configuration in configurations:
            size, precision = configuration.get("batch_size", self._batch), configuration.get("precision", self.precision)
            inputs = None
            try:
                subject, inputs = self._ready(precision, size)
                run = self._weigh(subject, inputs, num_runs, warmup_runs, size)
            except Exception as error:  # the model's own: anything may come
                errors.append(error)
                run = self._failed(error, size, precision, inputs)
            out.append(ProfileResults(run, run.cases[0]))
            self._add_rates(out[-1], inputs)
        if errors and len(errors) == len(out):
            raise errors[0]
        out.run = with_recommendation(merged([one.run for one in out]), self.unit)
        for one in out:
            one.run = out.run
        self._runs.append(out.run)
        return out

    def _failed(self, error: Exception, size: int | None, precision: str, inputs: Inputs | None = None) -> Run:
        """A configuration that raised, as a run."""
        try:
            subject = self._subject.at(precision)
        except Exception:
            subject = self._subject
        return failed(subject, inputs, error, {"batch": size, "unit": self.unit, "targets": self.targets})

    def profile_sizes(self, input_data: Any, sizes: Iterable[int | None], num_runs: int, warmup_runs: int | str) -> list[ProfileResults]:
        """profile() for each batch size; one that fails is a row with its reason, unless all do."""
        out, errors = [], []
        for size in sizes:
            try:
                out.append(self.profile(input_data, num_runs, warmup_runs, batch_size=size))
            except Exception as error:  # the model's own: anything may come
                errors.append(error)
                self._runs.append(self._failed(error, size, self.precision))
                out.append(ProfileResults(self._runs[-1], self._runs[-1].cases[0]))
        if errors and len(errors) == len(out):
            raise errors[0]
        return out

    def profile_layers(
        self,
        input_data: Any = None,
        layer_names: list[str] | None = None,
        num_runs: int = 20,
        warmup_runs: int = 3,
        batch_size: int | None = None,
    ) -> LayerProfiles:
        """Time, parameters, FLOPs and bytes of tensors of each layer, or of the groups that `layer_names` match by name or type.
        Inputs and batch size are those of the last call unless they are given."""
        _check_runs(num_runs)
        subject, inputs = self._next(input_data, batch_size)
        out = self._layers(subject, inputs, layer_names, num_runs, warmup_runs)
        last = self._runs[-1].cases if self._runs else []
        if layer_names is None and len(last) == 1 and last[0].params.get("batch") == out.params.get("batch"):
            self._runs[-1] = with_layers(self._runs[-1], out)  # of the case that was measured last
        return out

    def _layers(self, subject: Any, inputs: Inputs | None, layer_names: list[str] | None, num_runs: int, warmup_runs: int) -> LayerProfiles:
        if subject.kind == "onnx":
            return layers_of_onnx(subject, inputs, layer_names, {"runs": num_runs, "batch": self._batch})
        if subject.kind != "torch":
            raise ModelError(f"{subject.name}: layers of a {subject.kind} cannot be seen from outside; give the nn.Module it was made from")
        settings = {"runs": num_runs, "warmup": warmup_runs, "sync": self._sync(), "params": {"batch": inputs.batch()}}
        with self._quiet(subject):
            return profile_module(subject.module, self._runner(subject, inputs), layer_names, settings)

    def _sync(self) -> Callable[[], None]:
        if self.device == "cpu":
            return lambda: None
        import torch

        return lambda: torch.cuda.synchronize(self.device)

    def memory_profile(
        self,
        track_allocations: bool = True,
        track_deallocations: bool = True,
        memory_snapshots: bool = True,
        input_data: Any = None,
        num_runs: int = 20,
        batch_size: int | None = None,
    ) -> dict[str, Any]:
        """Resident memory: the peak of the runs, what is left after each, its growth; for PyTorch, bytes allocated and freed by operator."""
        _check_runs(num_runs)
        _check_switches(track_allocations=track_allocations, track_deallocations=track_deallocations, memory_snapshots=memory_snapshots)
        subject, inputs = self._next(input_data, batch_size)
        if subject.kind == "onnx":
            run = self._weigh(subject, inputs, num_runs, 3, self._batch)
            found = ProfileResults(run, run.cases[0])["memory"]
            unknown = {"snapshots": "an ONNX file runs in a process of its own", "sites": _memory.NO_SITES}
            return {**found, "snapshots": [], "unknown": unknown}
        call = self._runner(subject, inputs)
        with self._quiet(subject):
            out = _memory.memory_of_runs(call, 3, num_runs, memory_snapshots)
            wanted = {"allocations": track_allocations, "deallocations": track_deallocations}
            if self.device != "cpu":
                out = self._memory_on_gpu(subject, call, num_runs, memory_snapshots, wanted, out)
            elif subject.module is not None and (track_allocations or track_deallocations):
                out["allocations"] = _memory.torch_allocations(call, wanted)
            if self.device == "cpu":
                out["sites"] = _memory_block.sites_of(call)
        out.setdefault("sites", Unknown(HOST_ONLY.format(self.device)))
        out["unknown"] = {"sites": out["sites"].reason} if isinstance(out["sites"], Unknown) else {}
        return out

    def _memory_on_gpu(self, subject: Any, call: Callable[[], Any], runs: int, snapshots: bool, wanted: dict[str, bool], host: dict) -> dict[str, Any]:
        """That of the GPU, with that of the host beside it."""
        if subject.module is None or not _gpu_memory.can_tell():
            unknown = Unknown(HOST_ONLY.format(self.device))
            return {**dict.fromkeys([*host, "allocations"], unknown), "host": host, "snapshots": []}
        out = _gpu_memory.memory_of_runs(call, runs, self.device, snapshots)
        if any(wanted.values()):
            out["allocations"] = _memory.torch_allocations(call, wanted, "device")
        out["layers"] = _gpu_memory.memory_of_layers(subject.module, call, self.device)
        out["sites"] = _gpu_memory.memory_by_site(call, self.device)
        return {**out, "host": host}

    def gpu_profile(
        self, input_data: Any = None, track_kernels: bool = True, track_memory_transfers: bool = True, profile_nvtx: bool = True
    ) -> dict[str, Any]:
        """What the GPUs do while the model runs: kernels, copies and NVTX ranges of some runs, recorded as tare.gpu() does; where each kernel
        was launched, from runs of their own, since telling that takes time; and what NVML says. What is not to be had is Unknown."""
        run = module = None
        _check_switches(track_kernels=track_kernels, track_memory_transfers=track_memory_transfers, profile_nvtx=profile_nvtx)
        if self._subject.kind != "onnx" and (input_data is not None or self._data is not None):
            subject, inputs = self._next(input_data, None)
            run, module = self._runner(subject, inputs), subject.module
        asked = {"kernels": track_kernels, "memory_transfers": track_memory_transfers, "nvtx_ranges": profile_nvtx}
        wanted = [name for name, on in asked.items() if on]
        with self._quiet(self._subject):
            seen = _memory.gpu_now(run)
            recorded = self._recorded(run, module, wanted)
        return {"available": bool(seen["devices"]), "device": self.device, **seen, **recorded}

    def _recorded(self, run: Callable[[], Any] | None, module: Any, wanted: list[str]) -> dict[str, Any]:
        why = None
        if run is None:
            onnx = self._subject.kind == "onnx"
            why = "an ONNX file runs in a process of its own: `tare bench --provider cuda --layers`" if onnx else "there is nothing to run: give input_data"
        else:
            plain, named = _gpu_block.gpu(), _gpu_block.gpu(modules=False if module is None else module, ops=True)
            for block in (plain, named):
                run()
                with block:
                    for _ in range(_RECORDED_RUNS):
                        run()
            why = plain.unknown.get("gpu")
        if why:
            return {**{name: Unknown(why) for name in wanted}, "unknown": {name: why for name in wanted}}
        out: dict[str, Any] = {name: getattr(plain, name) for name in wanted}
        more = {"idle": plain.idle, "busy": plain.busy, "steps": plain.steps, "modules": named.modules, "operators": named.operators}
        return {**out, **more, "runs": _RECORDED_RUNS, "document": plain.document, "recorded": plain, "unknown": plain.unknown}

    @property
    def run(self) -> Run:
        """All that was measured, as one Run; of cases measured twice, the later."""
        if not self._runs:
            raise ModelError("nothing has been measured yet: call profile() or benchmark() first")
        return with_recommendation(merged(self._runs), self.unit)

    @property
    def document(self) -> dict[str, Any]:
        """The same as a run document (tare.run/1)."""
        return self.run.to_dict()

    def export_json(self, path: str | os.PathLike[str]) -> str:
        """Writes the run document, which load_baseline and `tare compare` read. Its text."""
        text = self.run.to_json()
        _answers.write_text(path, text)
        return text

    def export_csv(self, path: str | os.PathLike[str]) -> str:
        """Writes a row per case and metric, as `tare report --format csv` does. The path."""
        return _answers.write_text(path, self.run.ask("report", "--format", "csv"))

    def generate_html_report(self, output_path: str | os.PathLike[str], include_graphs: bool = True, include_details: bool = True) -> str:
        """One self-contained page. Without graphs: no samples and histograms; without details: no layers, findings kept. The path."""
        document = _trimmed(self.document, include_graphs, include_details)
        return os.fspath(_answers.run_page(output_path, document, f"Profile of {document['subject']['name']}"))


def _check_runs(runs: Any) -> None:
    if not isinstance(runs, int) or runs < 1:
        raise ModelError(f"num_runs must be a whole number from 1, not {runs!r}")


def _check_switches(**switches: Any) -> None:
    """A tensor in the place of a switch is an input that lost its name."""
    for name, value in switches.items():
        if not isinstance(value, (bool, int)):
            raise ModelError(f"{name} is True or False, not {type(value).__name__}; what the model gets is input_data=..")


def _torch_facts(subject: Any, run: Callable[[], Any]) -> dict[str, Any]:
    from tare._flops import parameter_count
    from tare._tensors import count_run

    counts = count_run(run, {})
    held = [*subject.module.parameters(), *subject.module.buffers()]
    on_disk = subject.path and os.path.isfile(subject.path)
    return {
        "parameters": parameter_count(subject.module),
        "size_bytes": os.path.getsize(subject.path) if on_disk else sum(tensor.nbytes for tensor in held),
        "flops": counts.number(counts[""].cost.flops),
        "macs": counts.number(counts[""].cost.macs),
        "uncounted": dict(counts[""].cost.uncounted),
        "activation_bytes": counts.number(counts[""].made),
        "activation_peak_bytes": counts.number(counts.peak),
    }


def _trimmed(document: dict[str, Any], graphs: bool, details: bool) -> dict[str, Any]:
    """The document with less in it, for a smaller page."""
    for case in document["cases"]:
        if not graphs:
            case["samples_raw"] = None
            case["latency_ns"] = case["latency_ns"] and {**case["latency_ns"], "histogram": None}
        if not details:
            case["layers"] = None
    return document
