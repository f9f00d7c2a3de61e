# SPDX-License-Identifier: MIT
"""What ModelProfiler weighs: finding a model in a file or folder, its device and precision. Measures nothing but loading.

torch is imported only when a subject needs it.
"""

import atexit
import collections
import copy
import functools
import os
import shutil
import sys
import tempfile
import time
import warnings
import zipfile

from tare import _tare
from tare._bench import file_word
from tare._model_inputs import Inputs

PRECISIONS = ("fp32", "bf16", "fp16", "int8")
_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_FILES = (".onnx", ".pt", ".pth", ".ts", ".torchscript", ".bin")


class ModelError(ValueError):
    """A model, input or option that cannot be used; the text says why."""


class DeviceError(RuntimeError):
    """What was asked for cannot be measured on this machine."""


def torch_module():
    try:
        import torch
    except ImportError as why:
        raise ModelError(f"this model needs PyTorch, which cannot be imported here: {why}") from None
    return torch


def usable_device(device, fallback):
    """The device to run on. A missing GPU is an error unless `fallback` (or TARE_DEVICE_FALLBACK) allows "cpu"; then a warning."""
    if device == "cpu":
        return device
    if device.split(":")[0] != "cuda":
        raise ModelError(f'device {device!r} is not known: "cpu", "cuda" and "cuda:N" are')
    missing = _why_no_cuda(device)
    if not missing:
        return device
    allowed = fallback or _tare.environment("TARE_DEVICE_FALLBACK")
    if allowed == "cpu":
        warnings.warn(f"no {device}: {missing}; measured on the CPU instead, as allowed", RuntimeWarning, stacklevel=3)
        return "cpu"
    raise DeviceError(
        f'no {device}: {missing}. Numbers of a CPU would not be those asked for; to have them all the same give device="cpu", '
        'or fallback="cpu" (or TARE_DEVICE_FALLBACK=cpu in the environment) to go there with a warning'
    )


def _why_no_cuda(device):
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed, so nothing here could use it"
    if torch.version.cuda is None:
        return f"PyTorch {torch.__version__} was built without CUDA"
    if not torch.cuda.is_available():
        return "PyTorch finds no usable NVIDIA driver or device"
    number = int(device.partition(":")[2] or 0)
    return None if number < torch.cuda.device_count() else f"this machine has {torch.cuda.device_count()} of them"


def find_model(path):
    """The file or Hugging Face folder meant by `path`. ModelError names what was found instead."""
    path = os.fspath(path)
    if not os.path.exists(path):
        raise ModelError(f"{path}: there is no such file or folder")
    if not os.path.isdir(path):
        return path
    found = sorted(name for name in os.listdir(path) if name.endswith(_FILES) and not name.startswith("pytorch_model"))
    if os.path.exists(os.path.join(path, "config.json")) and not any(name.endswith(".onnx") for name in found):
        return path
    named = [name for name in found if os.path.splitext(name)[0] == "model"]
    if len(named or found) == 1:
        return os.path.join(path, (named or found)[0])
    what = "several models: " + ", ".join(found) if found else f"no model: no file ending in {', '.join(_FILES)} and no config.json"
    raise ModelError(f"{path}: the folder holds {what}")


def open_subject(model, device, trust):
    """The subject for a path, an nn.Module, a TorchScript module or a callable."""
    if isinstance(model, (str, os.PathLike)):
        path = find_model(model)
        return OnnxSubject(path, device) if path.endswith(".onnx") else _load_torch(path, device, trust)
    if _is_module(model):
        return TorchSubject(model, type(model).__name__, None, None, device)
    if callable(model):
        return CallableSubject(model)
    raise ModelError(f"a model is a path, an nn.Module or something callable, not {type(model).__name__}")


def _is_module(model):
    # Whoever has a module has imported torch; asking for it otherwise would import it for nothing.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _load_torch(path, device, trust):
    if path.endswith(".py"):
        raise ModelError(f"{path}: a Python program, not a saved model: name an .onnx file or what torch.save wrote")
    torch = torch_module()
    start = time.perf_counter_ns()
    try:
        module = _read_module(torch, path, trust)
    except (ModelError, MemoryError):
        raise
    except Exception as why:  # unpickling runs the file's own code: it can raise anything
        raise ModelError(f"{path}: cannot be loaded: {type(why).__name__}: {why}") from why
    if not isinstance(module, torch.nn.Module):
        raise ModelError(f"{path}: {_what_it_is(module)}; build the module and give it as model=module")
    return TorchSubject(module, file_word(path), path, time.perf_counter_ns() - start, device)


def _what_it_is(thing):
    if isinstance(thing, dict):
        return "the file holds weights alone (a state dict), not the module they belong to"
    return f"the file holds a {type(thing).__name__}, not a module"


def _read_module(torch, path, trust):
    if os.path.isdir(path):
        return _read_transformers(path)
    if _is_torchscript(path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return torch.jit.load(path, map_location="cpu")
    if not trust:
        raise ModelError(f"{path}: reading a saved module runs code from the file, and trust=False forbids it")
    return torch.load(path, map_location="cpu", weights_only=False)


def _is_torchscript(path):
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def _read_transformers(path):
    try:
        from transformers import AutoModel
    except ImportError:
        raise ModelError(f"{path}: a folder with config.json is read with transformers, which is not installed here") from None
    return AutoModel.from_pretrained(path, local_files_only=True)


class CallableSubject:
    """Any Python function: taken as it is."""

    kind = "callable"
    module = None

    def __init__(self, function):
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.path = None
        self.load_ns = None

    own_precision = "fp32"

    def at(self, precision):
        if precision != "fp32":
            raise ModelError(f"{self.name}: a callable has no precision {precision} to choose; give the module itself")
        return self

    def inputs(self, data):
        return Inputs.of(data)

    def synthetic_inputs(self):
        raise ModelError(f"{self.name}: what to call it with is not known: give input_data")


class TorchSubject:
    """An nn.Module or a TorchScript module, in eval mode, on its device and in one precision. The user's module is never changed."""

    def __init__(self, module, name, path, load_ns, device, precision="fp32"):
        torch = torch_module()
        self.kind = "torchscript" if isinstance(module, torch.jit.ScriptModule) else "torch"
        self.module = module
        self.function = module if device == "cpu" else finished(module, device)
        self.name = name
        self.path = path
        self.load_ns = load_ns
        self.device = device
        self.precision = precision

    @property
    def own_precision(self):
        """Of its weights as they are: of most of them where they differ."""
        names = {getattr(torch_module(), dtype): name for name, dtype in _DTYPES.items()}
        held = collections.Counter()
        for weight in self.module.parameters():
            held[names.get(weight.dtype, "fp32")] += weight.numel()
        return held.most_common(1)[0][0] if held else "fp32"

    @functools.lru_cache(maxsize=None)  # noqa: B019 - as many entries as precisions, and they live as long as the subject
    def at(self, precision):
        """The same subject in this precision, ready to run."""
        if precision not in PRECISIONS:
            raise ModelError(f"precision {precision!r} is not known: {', '.join(PRECISIONS)} are")
        start = time.perf_counter_ns()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch announces moves of its quantisation package on each use
            module = _int8(self) if precision == "int8" else _cast(self, precision)
        load_ns = self.path and self.load_ns + time.perf_counter_ns() - start
        return TorchSubject(module, self.name, self.path, load_ns, self.device, precision)

    def inputs(self, data):
        dtype = getattr(torch_module(), _DTYPES.get(self.precision, "float32"))
        return Inputs.of(data).as_tensors(dtype, self.device)

    def synthetic_inputs(self):
        return self.inputs(_synthetic(self))


def finished(module, device):
    """The module as a function that returns when the device is done, not when the work is queued."""
    wait = torch_module().cuda.synchronize

    def run(*args, **kwargs):
        out = module(*args, **kwargs)
        wait(device)
        return out

    return run


def _cast(subject, precision):
    torch = torch_module()
    module = copy.deepcopy(subject.module).eval()
    if precision != subject.own_precision:
        module = module.to(dtype=getattr(torch, _DTYPES[precision]))
    return module.to(device=subject.device)


def _int8(subject):
    torch = torch_module()
    if subject.kind == "torchscript":
        raise ModelError(f"{subject.name}: TorchScript cannot be quantised afterwards; give the module it was made from")
    if subject.device != "cpu":
        raise ModelError(f"{subject.name}: dynamic int8 of PyTorch runs on the CPU alone, not on {subject.device}")
    return torch.ao.quantization.quantize_dynamic(copy.deepcopy(subject.module).eval(), {torch.nn.Linear}, dtype=torch.qint8)


# The first layer that has weights tells what a model takes: kind of layer -> kind and shape of one input, by the shape of its weights
_FIRST_LAYERS = {
    "Embedding": lambda weight: ("int", (1, 128), weight[0]),
    "Linear": lambda weight: ("float", (1, weight[1]), None),
    "Conv1d": lambda weight: ("float", (1, weight[1], 1024), None),
    "Conv2d": lambda weight: ("float", (1, weight[1], 224, 224), None),
}


def _synthetic(subject):
    torch = torch_module()
    first = next((layer for layer in subject.module.modules() if any(True for _ in layer.parameters(recurse=False))), None)
    shape_of = _FIRST_LAYERS.get(getattr(first, "original_name", type(first).__name__))  # TorchScript keeps the name there
    if not shape_of:
        raise ModelError(f"{subject.name}: what it takes cannot be told from its first layer: give input_data")
    kind, shape, below = shape_of(tuple(first.weight.shape))
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, below, shape, generator=generator) if kind == "int" else torch.randn(shape, generator=generator)


class OnnxSubject:
    """An ONNX file: weighed by the command `tare bench`, so that no Python is between the runs."""

    kind = "onnx"
    module = None
    own_precision = "fp32"

    def __init__(self, path, device, precision="fp32"):
        self.path = path
        self.name = file_word(path)[:-5]  # without .onnx
        self.device = device
        self.precision = precision
        self.load_ns = None

    def at(self, precision):
        """fp32 means: as the file is. int8 is made from it by ONNX Runtime's quantiser."""
        if precision == self.precision or precision == "fp32":
            return self
        if precision == "int8":
            return OnnxSubject(_quantized(self.path), self.device, "int8")
        raise ModelError(f"{self.path}: an ONNX file has the precision it was exported with; export it in {precision}")

    def inputs(self, data):
        return Inputs.of(data)

    def synthetic_inputs(self):
        return None  # the harness makes them from the graph


def _quantized(path):
    """An int8 twin of the model in a folder that lives as long as the process."""
    try:
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError as why:
        raise ModelError(f"{path}: int8 needs the packages onnxruntime and onnx: {why}") from None
    twin = os.path.join(_scratch(), f"{os.path.splitext(os.path.basename(path))[0]}-int8.onnx")
    quantize_dynamic(path, twin, weight_type=QuantType.QInt8)
    return twin


@functools.lru_cache(maxsize=None)
def _scratch():
    folder = tempfile.mkdtemp(prefix="tare-model-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
