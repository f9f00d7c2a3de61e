# SPDX-License-Identifier: MIT
"""`tare synth`: the models are what they claim to be. Judged by the onnx package, by ONNX Runtime, by counting, and by
references written here in numpy; never by tare."""

import collections
import json
import math
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper
from onnx_cost import macs, parameters

TINY = ("--layers", 2, "--hidden", 128, "--vocab", 100)
SMALL = {
    "minilm-l6": (*TINY, "--heads", 4, "--head", "embedding"),
    "minilm-l12": (*TINY, "--heads", 4),
    "bert-base": TINY,
    "bert-large": (*TINY, "--head", "classes", "--classes", 5),
    "distilbert": (*TINY, "--head", "embedding"),
    "deberta-v3-base": (*TINY, "--head", "embedding"),
    "deberta-v3-nli": TINY,
    "gpt2-small": TINY,
    "gpt2-small --kv-cache": (*TINY, "--kv-cache"),
    "vit-b16": ("--layers", 2, "--hidden", 128, "--image", 48),
    "resnet50": ("--image", 64, "--classes", 10),
    "mobilenetv2": ("--image", 64, "--classes", 10),
    "mlp": ("--sizes", "20,30,10"),
}


@pytest.fixture
def synth(tare, tmp_path):
    """synth("mlp", "--sizes", "3,4"): the path of the model."""

    def call(arch, *options, name="model.onnx"):
        tare("synth", *arch.split(), "-o", name, *options)
        return tmp_path / name

    return call


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def feed(inputs, batch=2, sequence=7, past=3):
    """Inputs that fit: ids below 100, the last place of the first row masked."""
    rng = np.random.default_rng(5)
    free = {"batch_size": batch, "sequence_length": sequence, "past_sequence_length": past,
            "past_sequence_length + sequence_length": past + sequence}
    made = {}
    for i in inputs:
        shape = [free.get(d, d) for d in i.shape]
        if i.name == "attention_mask":
            made[i.name] = np.ones(shape, np.int64)
            made[i.name][0, -1] = 0
        elif i.name == "token_type_ids":
            made[i.name] = rng.integers(0, 2, shape)
        elif i.name == "position_ids":
            made[i.name] = np.broadcast_to(np.arange(shape[1]), shape).copy()
        elif i.type == "tensor(int64)":
            made[i.name] = rng.integers(0, 100, shape)
        else:
            made[i.name] = rng.standard_normal(shape).astype(np.float32)
    return made


def run(path, **dims):
    s = session(path)
    outputs = s.run(None, feed(s.get_inputs(), **dims))
    assert all(np.isfinite(o).all() for o in outputs)
    return dict(zip([o.name for o in s.get_outputs()], outputs, strict=True))


def cosine(a, b):
    a, b = a.astype(float), b.astype(float)
    return float((a * b).sum() / math.sqrt((a * a).sum() * (b * b).sum()))


# ---- counts: the originals, to the last one ----


@pytest.mark.parametrize(("arch", "params", "points"), [
    ("minilm-l6", 22713216, {128: 1434599424, 256: 3020046336, 512: 6643924992}),
    ("minilm-l12", 33360000, {128: 2869051392}),
    ("bert-base", 109482240, {128: 11174215680, 384: 35333406720, 512: 48318971904}),
    ("distilbert", 66362880, {128: 5586812928}),
    ("deberta-v3-base", 183831552, {128: 19629342720}),
    ("gpt2-small", 124439808, {128: 16114089984}),
    ("vit-b16", 86567656, {0: 17563828224}),
    ("resnet50", 25557032, {0: 4089184256}),
    ("mobilenetv2", 3504872, {0: 300774272}),
])
def test_counts(tare, tmp_path, arch, params, points):
    said = json.loads(tare("synth", arch, "-o", "m.onnx", "--external-data", "--json").stdout)
    model = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    (tmp_path / "m.onnx.data").unlink()
    assert parameters(model) == params == said["parameters"]
    for sequence, expected in points.items():
        assert macs(model, batch_size=1, sequence_length=sequence) == expected
        once = 12 * 2 * 512 * 768 * 768 if arch.startswith("deberta") else 0  # positions: of weights alone
        assert macs(model, batch_size=3, sequence_length=sequence) == once + 3 * (expected - once)


def test_counts_of_bert_large(synth):
    """Counted at 2 layers, 24 follow: 1.3 GB need not be written for that."""
    small = {n: onnx.load(synth("bert-large", "--layers", n, "--external-data"), load_external_data=False)
             for n in (1, 2)}
    layer = parameters(small[2]) - parameters(small[1])
    assert parameters(small[1]) + 23 * layer == 335141888
    at = {n: macs(small[n], batch_size=1, sequence_length=384) for n in small}
    assert at[1] + 23 * (at[2] - at[1]) == 123212922880


def test_counts_of_a_perceptron(synth):
    model = onnx.load(synth("mlp", "--sizes", "5,7,3"))
    assert parameters(model) == 5 * 7 + 7 + 7 * 3 + 3
    assert macs(model, batch_size=4) == 4 * (5 * 7 + 7 * 3)


# ---- every file is valid, runs with free dimensions, and agrees between precisions and operator sets ----


VARIANTS = [("fp32", 17, 1), ("fp32", 21, 0.999999), ("fp16", 13, 0.9999), ("int8", 17, 0.99), ("fp32", 13, 0.999999),
            ("fp32", 18, 0.999999), ("fp16", 17, 0.9999), ("fp16", 21, 0.9999), ("int8", 13, 0.99), ("int8", 21, 0.99)]


@pytest.mark.parametrize("arch", SMALL)
def test_valid_and_agreeing(synth, arch):
    reference = None
    for dtype, opset, least in VARIANTS if arch != "resnet50" else VARIANTS[:4]:  # 100 MB each
        path = synth(arch, "--dtype", dtype, "--opset", opset, *SMALL[arch])
        onnx.checker.check_model(str(path), full_check=True)
        model = onnx.load(path)
        assert [o.version for o in model.opset_import] == [opset]
        got = run(path)
        if reference is None:
            reference = got
            if "image" not in str(SMALL[arch]):
                run(path, batch=1, sequence=1, past=0)
                run(path, batch=3, sequence=60)
        assert got.keys() == reference.keys()
        for name, value in got.items():
            assert value.shape == reference[name].shape and value.dtype == np.float32
            assert cosine(value, reference[name]) >= least - 1e-9, (name, dtype, opset)
            assert 1e-3 < np.abs(value).max() < 100, (name, dtype)
        if dtype == "fp16":
            assert not any(t.data_type == onnx.TensorProto.FLOAT for t in model.graph.initializer
                           if math.prod(t.dims) > 1)
        if dtype == "int8":
            assert any(n.op_type in ("MatMulInteger", "ConvInteger") for n in model.graph.node)
            assert sum(math.prod(t.dims) for t in model.graph.initializer
                       if t.data_type == onnx.TensorProto.FLOAT) < parameters_of_vectors(model)


def parameters_of_vectors(model):
    """More than biases and norms hold, far less than the matrices: what may stay float in an int8 model."""
    return sum(t.dims[0] if t.dims else 1 for t in model.graph.initializer) + 2 * 256 * 128


def test_full_size(synth):
    """The one that bench uses, whole: in all precisions, a sentence embedding of length 1."""
    got = {d: run(synth("minilm-l6", "--dtype", d, "--head", "embedding"), batch=2, sequence=16)
           for d in ("fp32", "fp16", "int8")}
    for d, outputs in got.items():
        assert np.linalg.norm(outputs["sentence_embedding"], axis=1) == pytest.approx([1, 1], abs=1e-5)
        for name, value in outputs.items():
            assert cosine(value, got["fp32"][name]) > 0.99, (d, name)


def test_seeds(synth):
    a = run(synth("mlp", *SMALL["mlp"]))["output"]
    b = run(synth("mlp", *SMALL["mlp"], "--seed", 2))["output"]
    assert abs(cosine(a, b)) < 0.9


def test_weights_are_nearly_normal(synth):
    model = onnx.load(synth("mlp", "--sizes", "1000,1000,2"))
    w = next(numpy_helper.to_array(t) for t in model.graph.initializer if t.dims == [1000, 1000])
    z = w / math.sqrt(2 / 1000)
    assert abs(z.mean()) < 0.005 and abs(z.std() - 1) < 0.005
    assert abs((np.abs(z) < 1).mean() - 0.68) < 0.02
    for shifted in (np.roll(z, 1, 0), np.roll(z, 1, 1)):
        assert abs((z * shifted).mean()) < 0.005


def test_quantised_weights_are_the_float_ones(synth):
    """Also where the float one is stored the other way round (Gemm)."""
    weights = {d: {t.name: numpy_helper.to_array(t) for t in onnx.load(
        synth("bert-base", *TINY, "--dtype", d)).graph.initializer} for d in ("fp32", "int8", "fp16")}
    names = [n for n in weights["int8"] if n.endswith("_quantized")]
    assert "pooler.dense.weight_quantized" in names and len(names) == 3 + 2 * 6 + 1
    for q in names:
        name = q.removesuffix("_quantized")
        scale, real = weights["int8"][name + "_scale"], weights["fp32"][name]
        if name == "pooler.dense.weight":
            real = real.T
        assert np.abs(weights["int8"][q] * scale - real).max() <= scale * 0.5001
        assert np.abs(weights["int8"][q].astype(int)).max() == 127
    for name, value in weights["fp32"].items():
        if value.dtype == np.float32 and not name.startswith("constant."):
            np.testing.assert_array_equal(value.astype(np.float16), weights["fp16"][name])


@pytest.mark.parametrize("arch", ["bert-base", "distilbert", "deberta-v3-base", "vit-b16", "resnet50", "mlp"])
def test_int8_is_what_the_runtime_would_write(synth, tmp_path, arch):
    """The same nodes in the same number as ONNX Runtime's own tool makes of the float model, and like answers."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    ours = synth(arch, *SMALL[arch], "--dtype", "int8", name="int8.onnx")
    theirs = tmp_path / "theirs.onnx"
    quantize_dynamic(synth(arch, *SMALL[arch]), theirs,
                     weight_type=QuantType.QUInt8 if arch == "resnet50" else QuantType.QInt8)
    nodes = [collections.Counter(n.op_type for n in onnx.load(path).graph.node) for path in (ours, theirs)]
    assert nodes[0] == nodes[1]
    expected = run(theirs)
    for name, value in run(ours).items():
        assert cosine(value, expected[name]) > 0.999, name


# ---- external data ----


def test_external_data(synth, tmp_path):
    inside = run(synth("minilm-l6", *TINY, "--heads", 2))
    path = synth("minilm-l6", *TINY, "--heads", 2, "--external-data", name="outside.onnx")
    assert path.stat().st_size < 40000 and (tmp_path / "outside.onnx.data").exists()
    onnx.checker.check_model(str(path), full_check=True)
    for name, value in run(path).items():
        np.testing.assert_array_equal(value, inside[name])


MEASURED = """import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)"""


def test_more_than_two_gigabytes(build, clean_env, tmp_path):
    """Goes to a data file without being asked, in a few megabytes of memory."""
    done = subprocess.run([sys.executable, "-S", "-c", MEASURED, str(build / "tare"), "synth", "mlp", "--sizes",
                           "24000,24000,2", "-o", "m.onnx", "--json"], cwd=tmp_path, env=clean_env, check=True,
                          capture_output=True, text=True)
    said = json.loads(done.stdout)
    data = tmp_path / "m.onnx.data"
    assert said["data_file"] == "m.onnx.data" and data.stat().st_size == said["data_bytes"] > 2**31
    assert (tmp_path / "m.onnx").stat().st_size == said["bytes"] < 10000
    with open(data, "rb") as f:
        f.seek(-4096, 2)
        assert any(f.read())
    data.unlink()
    assert parameters(onnx.load(tmp_path / "m.onnx", load_external_data=False)) == said["parameters"]
    assert int(done.stderr.split()[-1]) < 30 * 1024  # KiB; before it stands the progress of a slow disk


# ---- meaning ----


def test_masked_places_do_not_matter(synth):
    for arch in ("bert-base", "distilbert", "deberta-v3-base"):
        s = session(synth(arch, *TINY))
        f = feed(s.get_inputs(), batch=1)
        f["attention_mask"][0, 4:] = 0
        before = s.run(["last_hidden_state"], f)[0]
        f["input_ids"][0, 4:] = 7
        np.testing.assert_allclose(s.run(["last_hidden_state"], f)[0][:, :4], before[:, :4], atol=1e-5)
        f["input_ids"][0, 0] = (f["input_ids"][0, 0] + 1) % 100
        assert np.abs(s.run(["last_hidden_state"], f)[0][:, 1:4] - before[:, 1:4]).max() > 1e-4


def test_decoder_is_causal(synth):
    s = session(synth("gpt2-small", *TINY))
    f = feed(s.get_inputs(), batch=1)
    f["attention_mask"][:] = 1
    before = s.run(None, f)[0]
    f["input_ids"][0, 5] = (f["input_ids"][0, 5] + 1) % 100
    after = s.run(None, f)[0]
    np.testing.assert_allclose(after[:, :5], before[:, :5], atol=1e-6)
    assert np.abs(after[:, 5:] - before[:, 5:]).max() > 1e-3


@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_cache_goes_on_where_it_stopped(synth, dtype):
    """Token by token with the cache gives what all tokens at once give."""
    plain = session(synth("gpt2-small", *TINY, "--dtype", dtype))
    cached = session(synth("gpt2-small", *TINY, "--dtype", dtype, "--kv-cache", name="kv.onnx"))
    ids = np.random.default_rng(3).integers(0, 100, (2, 6))
    positions = np.broadcast_to(np.arange(6), (2, 6)).copy()
    ones = np.ones((2, 6), np.int64)
    whole = plain.run(None, {"input_ids": ids, "attention_mask": ones, "position_ids": positions})[0]
    past = {i.name: np.zeros((2, 2, 0, 64), np.float32) for i in cached.get_inputs() if "past" in i.name}
    names = [o.name for o in cached.get_outputs()]
    assert names[0] == "logits"
    for step in (range(0, 3), range(3, 4), range(4, 6)):
        f = {"input_ids": ids[:, step], "position_ids": positions[:, step],
             "attention_mask": ones[:, :step.stop], **past}
        got = dict(zip(names, cached.run(None, f), strict=True))
        np.testing.assert_allclose(got["logits"], whole[:, step], atol=1e-4 if dtype == "fp32" else 1e-2)
        past = {n.replace("present", "past_key_values"): v for n, v in got.items() if n != "logits"}


def test_bert_is_bert(synth):
    """Against a second implementation."""
    path = synth("bert-base", "--layers", 2, "--hidden", 16, "--heads", 2, "--vocab", 100)
    w = {t.name: numpy_helper.to_array(t).astype(float) for t in onnx.load(path).graph.initializer
         if t.data_type == onnx.TensorProto.FLOAT}
    f = feed(session(path).get_inputs(), batch=1)
    mask = f["attention_mask"][0].astype(bool)

    def linear(name, x):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    def heads(x):
        return x.reshape(len(x), 2, 8).transpose(1, 0, 2)

    x = (w["embeddings.word_embeddings.weight"][f["input_ids"][0]]
         + w["embeddings.token_type_embeddings.weight"][f["token_type_ids"][0]]
         + w["embeddings.position_embeddings.weight"][:7])
    x = layer_norm(x, 1e-12)
    for i in range(2):
        at = "encoder.layer.%d." % i
        q, k, v = (heads(linear(at + "attention.self." + p, x)) for p in ("query", "key", "value"))
        p = np.exp(q @ k.transpose(0, 2, 1) / math.sqrt(8)) * mask
        context = (p / p.sum(-1, keepdims=True)) @ v
        x = layer_norm(x + linear(at + "attention.output.dense", context.transpose(1, 0, 2).reshape(7, 16)), 1e-12)
        y = linear(at + "intermediate.dense", x)
        x = layer_norm(x + linear(at + "output.dense", y * 0.5 * (1 + erf(y / math.sqrt(2)))), 1e-12)
    pooled = np.tanh(x[0] @ w["pooler.dense.weight"].T + w["pooler.dense.bias"])
    hidden, pooler = session(path).run(None, f)
    np.testing.assert_allclose(hidden[0], x, atol=1e-4)
    np.testing.assert_allclose(pooler[0], pooled, atol=1e-4)


# ---- DeBERTa against a second implementation, written from the definition of its attention ----


def log_buckets(distance, buckets=256, furthest=512):
    middle = buckets // 2
    size = np.abs(distance)
    far = np.ceil(np.log(np.maximum(size, 1) / middle) / np.log((furthest - 1) / middle) * (middle - 1)) + middle
    return np.where(size <= middle, distance, np.sign(distance) * far).astype(int)


def layer_norm(x, eps=1e-7):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


def erf(x):
    return np.vectorize(math.erf)(x)


def deberta_reference(w, ids, mask, heads, layers):
    """Loops over heads and pairs; weights are [in, out]; all norms have weight 1 and bias 0."""
    def linear(name, x):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    x = layer_norm(w["deberta.embeddings.word_embeddings.weight"][ids]) * mask[:, None]
    table = layer_norm(w["deberta.encoder.rel_embeddings.weight"])
    n = len(ids)
    place = np.arange(n)
    bucket = log_buckets(place[:, None] - place[None, :])
    for i in range(layers):
        at = "deberta.encoder.layer.%d." % i
        q, k, v = (linear(at + "attention.self.%s_proj" % p, x) for p in ("query", "key", "value"))
        table_q, table_k = (linear(at + "attention.self.%s_proj" % p, table) for p in ("query", "key"))
        width = x.shape[1] // heads
        context = np.zeros_like(x)
        for h in range(heads):
            c = slice(h * width, (h + 1) * width)
            score = np.full((n, n), -np.inf)
            for a in range(n):
                for b in range(n):
                    to = min(max(bucket[a, b] + 256, 0), 511)      # where b lies, seen from a
                    back = min(max(-bucket[b, a] + 256, 0), 511)   # the row that the key looks up for this pair
                    if mask[a] and mask[b]:
                        score[a, b] = (q[a, c] @ k[b, c] + q[a, c] @ table_k[to, c]
                                       + k[b, c] @ table_q[back, c]) / math.sqrt(3 * width)
            p = np.exp(score - np.where(mask, score.max(-1), 0)[:, None]) * mask[:, None]
            p = p / np.maximum(p.sum(-1, keepdims=True), 1e-30)
            context[:, c] = p @ v[:, c]
        x = layer_norm(x + linear(at + "attention.output.dense", context))
        y = linear(at + "intermediate.dense", x)
        y = linear(at + "output.dense", y * 0.5 * (1 + erf(y / math.sqrt(2))))
        x = layer_norm(x + y)
    return x


@pytest.mark.parametrize("length", [9, 300])
def test_deberta_is_deberta(synth, length):
    path = synth("deberta-v3-base", "--layers", 1 if length > 100 else 2, "--hidden", 16, "--heads", 2, "--vocab", 100)
    model, w = onnx.load(path), {}
    for tensor in model.graph.initializer:  # large scores, so that each pair counts
        if tensor.data_type == onnx.TensorProto.FLOAT:
            value = numpy_helper.to_array(tensor)
            value = value * np.float32(15) if "query_proj" in tensor.name or "key_proj" in tensor.name else value
            tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
            w[tensor.name] = value.astype(float)
    onnx.save(model, path)
    ids = np.random.default_rng(1).integers(0, 100, (1, length))
    mask = np.ones((1, length), np.int64)
    mask[0, -2:] = 0
    got = session(path).run(None, {"input_ids": ids, "attention_mask": mask})[0][0]
    expected = deberta_reference(w, ids[0], mask[0], 2, 1 if length > 100 else 2)
    np.testing.assert_allclose(got, expected, atol=1e-4)
