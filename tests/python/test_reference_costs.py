# SPDX-License-Identifier: MIT
"""`tare inspect` against what is known of well-known models: parameters and multiply-accumulates to the last one, on the
models that `tare synth` writes and on graphs that PyTorch exported (tests/models, by both of its exporters)."""

import gzip
import json

import onnx
import pytest

# parameters, then by sequence length (0: images of 224 x 224): multiply-accumulates, of the graph as it stands and of a run
KNOWN = {
    "resnet50": (25557032, {0: (4089184256,) * 2}),
    "mobilenetv2": (3504872, {0: (300774272,) * 2}),
    "vit-b16": (86567656, {0: (17563828224,) * 2}),
    "bert-base": (109482240, {128: (11174215680,) * 2, 384: (35333406720,) * 2, 512: (48318971904,) * 2}),
    "bert-large": (335141888, {384: (123212922880,) * 2}),
    "distilbert": (66362880, {128: (5586812928,) * 2}),
    "minilm-l6": (22713216, {128: (1434599424,) * 2, 256: (3020046336,) * 2, 512: (6643924992,) * 2}),
    "minilm-l12": (33360000, {128: (2869051392,) * 2}),
    "deberta-v3-base": (183831552, {128: (19629342720, 12381585408)}),
}
EXPORTED = [(arch, exporter) for arch in KNOWN for exporter in ("torchscript", "dynamo")
            if (arch, exporter) not in {("bert-large", "dynamo"), ("minilm-l12", "dynamo")}]


@pytest.fixture
def inspect(tare):
    """inspect("m.onnx", batch=2, seq=128): what the document says of the graph."""

    def call(path, **dims):
        options = [word for name, value in dims.items() for word in ("--dim", "%s=%d" % (name, value))]
        return json.loads(tare("inspect", path, *options, "--json").stdout)["subject"]["static"]

    return call


def check(static, parameters, macs, per_run):
    assert static["parameters"] == parameters
    assert static["unknown_nodes"] == 0
    assert static["cost"]["complete"] is True
    assert static["cost"]["macs"] == macs
    assert static["cost_per_run"]["macs"] == per_run
    assert static["activation_peak"] <= static["activation_arena"] <= static["activation_sum"]


def check_all(inspect, path, arch):
    parameters, points = KNOWN[arch]
    for sequence, (macs, per_run) in points.items():
        dims = {"seq": sequence} if sequence else {}
        check(inspect(path, **dims), parameters, macs, per_run)
        once = macs - per_run  # does not grow with the batch
        check(inspect(path, batch=3, **dims), parameters, once + 3 * per_run, 3 * per_run)


def unpack(root, folder, arch, exporter):
    """The exported graph, with weights that are a hole in a file."""
    model = onnx.load_from_string(gzip.decompress((root / "tests/models" / f"{arch}.{exporter}.onnx.gz").read_bytes()))
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    places = [{e.key: e.value for e in t.external_data} for t in model.graph.initializer]
    with open(folder / "weights", "wb") as f:
        f.truncate(max(int(p["offset"]) + int(p["length"]) for p in places if p))
    return path


@pytest.mark.parametrize(("arch", "exporter"), EXPORTED)
def test_exported(inspect, root, tmp_path, arch, exporter):
    check_all(inspect, unpack(root, tmp_path, arch, exporter), arch)


@pytest.mark.parametrize("arch", ["minilm-l6", "mobilenetv2", "resnet50"])
def test_synthesised(tare, inspect, arch):
    """The small ones, written whole; tests/unit/test_inspect.c has the graphs of all."""
    tare("synth", arch, "-o", "m.onnx")
    check_all(inspect, "m.onnx", arch)


def test_exporters_agree(inspect, root, tmp_path):
    """The same work, however it is written down, but for what one exporter adds (biases of zero)."""
    found = {e: inspect(unpack(root, tmp_path, "bert-base", e), seq=128)["cost"] for e in ("torchscript", "dynamo")}
    for part in ("macs", "flops", "simple", "division", "transcendental"):
        assert found["torchscript"][part] == found["dynamo"][part]
