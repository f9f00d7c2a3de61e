# SPDX-License-Identifier: MIT
"""ModelProfiler: every kind of subject, what its results say and do not say, layers, memory, baselines, and the command for CI."""

import csv
import json
import types

import jsonschema
import numpy
import pytest

torch = pytest.importorskip("torch", reason="no PyTorch in this environment (make deps)")


@pytest.fixture(scope="session")
def validator(root):
    return jsonschema.Draft202012Validator(json.loads((root / "docs/schema/run-1.json").read_text()))


class Attention(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.projections = torch.nn.Linear(width, 3 * width)

    def forward(self, x):
        query, key, value = self.projections(x).chunk(3, -1)
        return torch.softmax(query @ key.transpose(-1, -2), -1) @ value


class Net(torch.nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.embedding = torch.nn.Embedding(100, width)
        self.attention = Attention(width)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))

    def forward(self, ids):
        return self.mlp(self.attention(self.embedding(ids)))


def mlp():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).eval()


@pytest.fixture
def net(tare_package):
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture
def profiler(tare_package, net):
    return tare_package.ModelProfiler(model=net)


IDS = torch.arange(32).reshape(4, 8)


# ---- results ----


def test_results_are_as_the_seed_prints_them(profiler, validator):
    results = profiler.profile(input_data=IDS, num_runs=2000, warmup_runs=3)  # enough to bound p50 on a busy machine, too
    validator.validate(results.document)
    latency = results["latency"]
    assert latency["min"] <= latency["p50"] <= latency["p95"] <= latency["max"]
    assert latency["min"] <= latency["mean"] <= latency["max"]
    low, high = latency["intervals"]["p50"]
    assert low <= latency["p50"] <= high
    case = results.document["cases"][0]
    assert latency["mean"] == case["latency_ns"]["mean"] / 1e6 and results["runs"] == 2000
    assert results["memory"]["peak"] == case["memory"]["rss_peak"] > 10_000_000
    rate = results["throughput"]
    assert rate["samples_per_second"] == pytest.approx(4 * rate["requests_per_second"])
    assert rate["tokens_per_second"] == pytest.approx(32 * rate["requests_per_second"])
    assert results["params"] == {"batch": 4, "seq": 8, "precision": "fp32", "device": "cpu"}
    assert results["name"] == "batch=4,seq=8,precision=fp32"
    text = str(results)
    assert "p50" in text and "samples/s" in text and "Net" in text


def test_what_is_not_known_says_why(profiler):
    results = profiler.profile(IDS, num_runs=5, warmup_runs=1)
    assert f"{results['latency']['p99']:.2f}" == "unknown"
    assert "needs 368 samples, here 5" in results["latency"]["p99"].reason
    assert "in memory already" in results["load_ms"].reason
    assert "GPU" in results["gpu"].reason


def test_the_model_by_arithmetic(profiler, net):
    model = profiler.profile(IDS, num_runs=3, warmup_runs=1)["model"]
    assert model["parameters"] == sum(p.numel() for p in net.parameters())
    assert model["size_bytes"] == 4 * model["parameters"]
    tokens, width = 4 * 8, 16
    attention = 2 * 4 * 8 * 8 * width
    assert model["macs"] == tokens * width * (3 * width + 8 * width) + attention
    scores = 4 * 8 * 8
    assert model["activation_bytes"] == 4 * (tokens * (width + 3 * width + width + 4 * width + 4 * width + width) + 2 * scores)
    assert model["activation_peak_bytes"] == 4 * tokens * (width + 4 * width + 4 * width)  # in GELU; a call keeps what it was given
    assert model["uncounted"] == {}


def test_end_to_end_has_the_hooks_in_it(tare_package):
    import time

    def slow(data):
        time.sleep(0.005)
        return data

    profiler = tare_package.ModelProfiler(model=mlp(), preprocess=slow, postprocess=lambda out: out.tolist())
    results = profiler.profile(torch.randn(2, 8), num_runs=10, warmup_runs=1)
    assert results["end_to_end"]["p50"] > 4 > results["latency"]["p50"]


def test_the_users_module_is_not_touched(tare_package):
    module = mlp().train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    profiler = tare_package.ModelProfiler(model=module, precision="bf16")
    profiler.profile(torch.randn(2, 8), num_runs=3, warmup_runs=1, detailed_analysis=True)
    assert module.training and all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in module.modules())


def test_a_benchmark_recommends_the_cheapest_of_equals(tare_package, monkeypatch):
    """Batches of 4 and 8 cannot be told apart, 1 is surely slower, and another length of texts is no choice."""
    from tare._run import Run, merged
    from tare._text_choice import with_recommendation

    run = tare_package.ModelProfiler(model=len).profile([1, 2], num_runs=5, warmup_runs=1).run

    def measured(batch, seq, rate, low, high):
        document = run.to_dict()
        (case,) = document["cases"]
        case.update(name=f"batch={batch},seq={seq}", params={"batch": batch, "seq": seq})
        case["throughput"] = {"value": rate, "lo": low, "hi": high, "unit": "samples/s"}
        return Run.of({**document, "findings": []})

    runs = [measured(1, 16, 50, 49, 51), measured(8, 16, 101, 90, 112), measured(4, 16, 99, 88, 110), measured(1, 8, 300, 299, 301)]
    chosen = with_recommendation(merged(runs), "samples").recommendation
    assert chosen["case"] == "batch=4,seq=16" and "statistically tied with 101 at batch=8,seq=16" in chosen["why"]
    assert with_recommendation(merged(runs[:1]), "samples").recommendation is None
    results = tare_package.ModelProfiler(model=len).benchmark([{"batch_size": 1}, {"batch_size": 2}], [1, 2], num_runs=40)
    assert results.run.recommendation["case"] in {one["name"] for one in results} and "recommended for throughput: batch=" in str(results)


# ---- subjects ----


def test_a_saved_module_a_folder_and_torchscript(tare_package, tmp_path, validator):
    torch.save(mlp(), tmp_path / "net.pt")
    (tmp_path / "folder").mkdir()
    torch.jit.script(mlp()).save(str(tmp_path / "folder" / "model.ts"))
    for path, kind in ((tmp_path / "net.pt", "torch"), (tmp_path / "folder", "torchscript")):
        results = tare_package.ModelProfiler(path).profile(num_runs=5, warmup_runs=1)
        subject = results.document["subject"]
        assert subject["type"] == kind and len(subject["sha256"]) == 64 and subject["runtime"]["version"] == torch.__version__
        assert results["load_ms"] > 0 and results["model"]["parameters"] == 8 * 16 + 16 + 16 * 4 + 4
        assert results["model"]["macs"] == 8 * 16 + 16 * 4
        validator.validate(results.document)


def test_any_callable(tare_package, validator):
    profiler = tare_package.ModelProfiler(model=lambda texts: [t.upper() for t in texts], unit="texts")
    results = profiler.profile(["a", "b", "c"], num_runs=20, warmup_runs=2)
    validator.validate(results.document)
    assert results["throughput"]["unit"] == "texts/s" and results["params"]["batch"] == 3
    assert "callable" in results["model"]["flops"].reason
    sizes = [one["params"]["batch"] for one in profiler.benchmark([{"batch_size": 1}, {"batch_size": 7}], num_runs=5)]
    assert sizes == [1, 7]


def test_an_onnx_file(tare_package, tare, tmp_path, validator):
    tare("synth", "mlp", "--sizes", "32,64,8", "-o", "mlp.onnx")
    profiler = tare_package.ModelProfiler(tmp_path / "mlp.onnx")
    results = profiler.profile(numpy.ones((3, 32), dtype=numpy.float32), num_runs=20, warmup_runs=2)
    validator.validate(results.document)
    assert results["params"]["batch"] == 3 and results["runs"] == 20 and results["load_ms"] > 0
    assert results["model"]["macs"] == 3 * (32 * 64 + 64 * 8)
    runs = profiler.benchmark([{"batch_size": 1}, {"batch_size": 8, "precision": "int8"}], num_runs=5, warmup_runs=1)
    assert [one["name"] for one in runs] == ["batch=1", "batch=8,precision=int8"]
    validator.validate(runs.document)
    layers = profiler.profile_layers(num_runs=5)
    assert sum(row["share"] for row in layers.values()) == pytest.approx(1, abs=0.01)
    with pytest.raises(ValueError, match="export it in bf16"):
        tare_package.ModelProfiler(tmp_path / "mlp.onnx", precision="bf16")


def test_onnx_inputs_by_position_and_by_name(tare_package, tare, tmp_path):
    tare("synth", "minilm-l6", "--layers", 1, "--hidden", 32, "--heads", 4, "--ffn", 64, "--vocab", 200, "-o", "bert.onnx")
    profiler = tare_package.ModelProfiler(tmp_path / "bert.onnx")
    ids = numpy.ones((2, 16), dtype=numpy.int64)
    by_place = profiler.profile((ids, ids, ids * 0), num_runs=3, warmup_runs=1)
    by_name = profiler.profile({"input_ids": ids, "attention_mask": ids, "token_type_ids": ids * 0}, num_runs=3, warmup_runs=1)
    assert by_place["params"]["batch"] == by_name["params"]["batch"] == 2
    assert by_place["throughput"]["tokens_per_second"] > 0
    with pytest.raises(ValueError, match="attention_mask"):
        profiler.profile({"input_ids": ids}, num_runs=3)


@pytest.mark.parametrize("precision, dtype", [("bf16", torch.bfloat16), ("fp16", torch.float16), ("fp32", torch.float32)])
def test_precisions_are_what_runs(tare_package, precision, dtype):
    seen = []

    class Spy(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(8, 8)

        def forward(self, x):
            out = self.inner(x)
            seen.append((x.dtype, out.dtype))
            return out

    profiler = tare_package.ModelProfiler(model=Spy(), precision=precision)
    profiler.profile(numpy.ones((2, 8), dtype=numpy.float64), num_runs=2, warmup_runs=1)
    assert set(seen) == {(dtype, dtype)}


def test_a_model_in_half_precision_is_weighed_as_it_is(tare_package):
    """It was called fp32, its inputs were made fp32, and on a GPU it was made fp32 itself."""
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)).bfloat16()
    seen = []
    net[0].register_forward_pre_hook(lambda _, given: seen.append((given[0].dtype, net[0].weight.dtype)))
    profiler = tare_package.ModelProfiler(model=net)
    assert profiler.precision == "bf16" and "precision=bf16" in profiler.profile(torch.randn(2, 8), num_runs=2).run.cases[0]["name"]
    assert set(seen) == {(torch.bfloat16, torch.bfloat16)}
    assert tare_package.ModelProfiler(model=net, precision="fp32")._subject.at("fp32").module[0].weight.dtype is torch.float32
    assert net[0].weight.dtype is torch.bfloat16


def test_dynamic_int8(tare_package):
    profiler = tare_package.ModelProfiler(model=mlp(), precision="int8")
    kinds = {type(m).__module__ for m in profiler._subject.at("int8").module.modules()}
    assert any("quantized.dynamic" in kind for kind in kinds)
    assert profiler.profile(torch.randn(2, 8), num_runs=3, warmup_runs=1)["params"]["precision"] == "int8"


def test_a_missing_gpu_is_said_and_the_cpu_must_be_allowed(tare_package, monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(RuntimeError, match='fallback="cpu"'):
        tare_package.ModelProfiler(model=mlp(), device="cuda", precision="fp16")
    with pytest.warns(RuntimeWarning, match="measured on the CPU instead"):
        profiler = tare_package.ModelProfiler(model=mlp(), device="cuda", fallback="cpu")
    assert profiler.profile(torch.randn(2, 8), num_runs=2, warmup_runs=1)["params"]["device"] == "cpu"
    monkeypatch.setenv("TARE_DEVICE_FALLBACK", "cpu")
    with pytest.warns(RuntimeWarning):
        tare_package.ModelProfiler(model=mlp(), device="cuda:3")


def test_a_run_on_a_gpu_ends_when_the_gpu_is_done(tare_package, monkeypatch):
    from tare._model_subject import finished

    order = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: order.append(device))
    assert finished(lambda x: order.append("queued") or x + 1, "cuda:0")(1) == 2
    assert order == ["queued", "cuda:0"]


def test_whoever_uses_cuda_has_its_device_open(tare_package, tmp_path):
    from tare import _gpu

    assert not _gpu.is_open(str(tmp_path)) and not _gpu.is_open(str(tmp_path / "gone"))
    (tmp_path / "0").symlink_to("/dev/nvidiactl")  # NVML's, which tare itself may use
    assert not _gpu.is_open(str(tmp_path))
    (tmp_path / "1").symlink_to("/dev/nvidia-uvm")
    assert _gpu.is_open(str(tmp_path))


def test_memory_of_the_host_is_not_called_that_of_a_model_on_a_gpu(tare_package, validator):
    """No GPU is needed: a model that says where it is."""
    from tare import _model_weigh
    from tare._model_inputs import Inputs
    from tare._model_results import ProfileResults

    model = types.SimpleNamespace(kind="callable", name="net", device="cuda:0", module=None, path=None, load_ns=None, function=len)
    settings = {"runs": 5, "warmup": 1, "batch": None, "unit": "samples", "targets": ["memory.peak<=1KB", "latency.p50<=10s"]}
    run = _model_weigh.weigh(model, Inputs(([1, 2],)), settings)
    validator.validate(run.to_dict())
    results = ProfileResults(run, run.cases[0])
    for name in ("peak", "delta", "per_sample"):
        assert "cuda:0" in results["memory"][name].reason and "host" in results["memory"][name].reason
    assert "not watched" in results["gpu"].reason
    assert [target["verdict"] for target in run.targets] == ["inconclusive", "pass"] and run.targets[0]["achieved"] is None
    assert "it ran on cuda:0, of which nothing is in here" in str(results) and "peak unknown" in str(results)
    assert "it ran on cuda:0" in str(run)
    (found,) = [one for one in run.findings if one["id"] == "machine.gpu-unseen"]
    assert found["evidence"]["host_rss_peak"] > 10_000_000
    profiler = tare_package.ModelProfiler(model=len)
    profiler.device = "cuda:0"
    seen = profiler.memory_profile(input_data=[1], num_runs=2)
    assert "cuda:0" in seen["peak"].reason and seen["host"]["peak"] > 10_000_000


def test_a_bench_says_why_it_sees_no_gpu(tare_package, monkeypatch):
    from tare import _gpu

    def model(texts):
        return [[1.0] for _ in texts]

    monkeypatch.setattr(_gpu, "is_open", lambda: True)
    run = tare_package.bench(len, [1], budget=0.05)
    assert "this process uses a GPU, of which nothing is in here" in str(run) and run.cases[0].memory_peak > 0
    assert "no CUDA driver" in run.cases[0].reasons["gpu"] or "no libcupti" in run.cases[0].reasons["gpu"]
    assert run.cases[0].reasons["gpu"] in [one for one in run.findings if one["id"] == "machine.gpu-unseen"][0]["action"]
    model.device = "cuda:1"
    found = tare_package.EmbeddingProfiler(model, budget=0.05).profile([1, 2], num_texts=4)
    assert [row["memory_peak_mb"] for row in found["batch_profiles"]] == [None, None] and "memory_efficient" not in found["choices"]
    assert any("it ran on cuda:1" in note for note in found["measurement"])
    assert {t["metric"]: t["verdict"] for t in found["targets"]}["memory.peak"] == "inconclusive"


def test_bad_models_say_what_is_wrong(tare_package, tmp_path):
    make = tare_package.ModelProfiler
    torch.save(mlp().state_dict(), tmp_path / "weights.pt")
    torch.save(mlp(), tmp_path / "whole.pt")
    (tmp_path / "text.pt").write_text("no model")
    (tmp_path / "empty").mkdir()
    (tmp_path / "two").mkdir()
    for name in ("a.pt", "b.onnx"):
        (tmp_path / "two" / name).write_bytes(b"")
    for path, words in (("weights.pt", "state dict"), ("text.pt", "text.pt: cannot be loaded"), ("gone.pt", "no such file"),
                        ("empty", "no model"), ("two", "a.pt, b.onnx")):
        with pytest.raises(ValueError, match=words):
            make(tmp_path / path)
    with pytest.raises(ValueError, match="trust=False"):
        make(tmp_path / "whole.pt", trust=False)
    with pytest.raises(ValueError, match="fp8"):
        make(model=mlp(), precision="fp8")
    with pytest.raises(ValueError, match="no precision fp16"):
        make(model=len, precision="fp16")
    with pytest.raises(ValueError, match="tpu"):
        make(model=mlp(), device="tpu")
    with pytest.raises(ValueError, match="model_path"):
        make()
    with pytest.raises(ValueError, match="input_data"):
        make(model=len).profile()
    with pytest.raises(ValueError, match="num_runs"):
        make(model=mlp()).profile(num_runs=0)
    with pytest.raises(ValueError, match=r"track_allocations is True or False, not \w+; what the model gets is input_data=\.\."):
        make(model=mlp()).memory_profile([1])
    with pytest.raises(ValueError, match=r"configurations\[1\].*threads"):
        make(model=mlp()).benchmark([{}, {"threads": 2}])
    with pytest.raises(ValueError, match="measured yet"):
        make(model=mlp()).export_json(tmp_path / "x.json")
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        make(model=mlp()).profile(torch.randn(2, 9), num_runs=2)


# ---- memory ----


def test_memory_over_runs(tare_package, profiler):
    seen = profiler.memory_profile(input_data=IDS, num_runs=12)
    assert len(seen["snapshots"]) == 13 and seen["peak"] >= seen["after_warmup"] > 0
    assert seen["allocations"]["allocated_bytes"] > 0 and seen["sites"][0]["bytes"] > 0
    assert profiler.memory_profile(memory_snapshots=False, track_allocations=False, track_deallocations=False)["snapshots"] == []
    kept = []

    def leaks(_):
        kept.append(bytearray(1 << 20))

    grown = tare_package.ModelProfiler(model=leaks).memory_profile(input_data=1, num_runs=20)["growth"]
    assert grown["leak"] and grown["per_run"] == pytest.approx(1 << 20, rel=0.2)


def test_the_gpu_says_what_it_has_and_why_not_more(tare_package, profiler):
    seen = profiler.gpu_profile()
    assert "process of its own" in seen["kernels"].reason or "nothing to run" in seen["kernels"].reason
    assert "memory_transfers" in seen["unknown"] and (seen["available"] or seen["why"])
    assert "kernels" not in profiler.gpu_profile(track_kernels=False)
    seen = tare_package.ModelProfiler(model=len).gpu_profile([1, 2])
    assert "no CUDA driver" in seen["kernels"].reason or "no libcupti" in seen["kernels"].reason


# ---- keeping and comparing ----


def test_exports(profiler, tmp_path, validator):
    profiler.profile(IDS, num_runs=10, warmup_runs=1)
    profiler.benchmark([{"batch_size": 2}, {"batch_size": 4}], num_runs=10)
    text = profiler.export_json(tmp_path / "run.json")
    document = json.loads(text)
    assert json.loads((tmp_path / "run.json").read_text()) == document
    validator.validate(document)
    assert sorted(case["params"]["batch"] for case in document["cases"]) == [2, 4]
    profiler.export_csv(tmp_path / "run.csv")
    rows = list(csv.DictReader((tmp_path / "run.csv").open()))
    assert sorted(int(row["batch"]) for row in rows) == [2, 4]
    assert {row["subject"] for row in rows} == {"Net"}
    with pytest.raises(OSError):
        profiler.export_json(tmp_path / "no" / "folder.json")


def test_the_document_holds_the_model_and_its_layers(profiler, tmp_path, validator):
    results = profiler.profile(IDS, num_runs=10, warmup_runs=1)
    case = profiler.document["cases"][0]
    assert case["layers"] is None and "layers" in case["unknown"]
    layers = profiler.profile_layers(num_runs=3, warmup_runs=1)
    document = json.loads(profiler.export_json(tmp_path / "run.json"))
    validator.validate(document)
    case, static = document["cases"][0], document["subject"]["static"]
    assert static["parameters"] == results["model"]["parameters"] > 0
    assert case["cost"]["flops"] == results["model"]["flops"] == static["cost_per_run"]["flops"] > 0
    assert {row["name"]: row["parameters"] for row in case["layers"]} == {name: row["parameters"] for name, row in layers.items()}
    assert sum(row["parameters"] for row in case["layers"]) == static["parameters"]
    assert all(row["time_ns"] >= 0 and row["calls"] >= 0 for row in case["layers"]) and case["profile"]["runs"] == 3
    assert not {"layers", "profile", "cost"} & {path.split(".")[0] for path in case["unknown"]}
    profiler.profile_layers(layer_names=["emb"], num_runs=2)  # groups of some are an answer of their own
    assert profiler.document["cases"][0]["layers"] == case["layers"]


def test_detailed_analysis_is_in_the_document(profiler, validator):
    document = profiler.profile(IDS, num_runs=5, warmup_runs=1, detailed_analysis=True).document
    validator.validate(document)
    assert document["cases"][0]["layers"]


def test_the_html_page_holds_the_run(profiler, package, tmp_path):
    if not (package / "tare" / "page.html").exists():
        pytest.skip("the package was built without the page (no node)")
    profiler.profile(IDS, num_runs=40, warmup_runs=1)
    whole = profiler.generate_html_report(tmp_path / "all.html")
    bare = profiler.generate_html_report(tmp_path / "bare.html", include_graphs=False, include_details=False)
    pages = [(tmp_path / name).read_text() for name in ("all.html", "bare.html")]
    assert whole.endswith("all.html") and bare.endswith("bare.html")
    assert all("batch=4,seq=8,precision=fp32" in page for page in pages) and len(pages[1]) < len(pages[0])


def measured_model(tare_package, loops):
    return tare_package.ModelProfiler(model=lambda _: sum(range(loops))).profile(1, num_runs=200, warmup_runs=5)


def scaled(path, times):
    """A copy of a saved run, as it would be if all had taken so many times as long; its own interval is narrow."""
    document = json.loads(path.read_text())
    document["id"] = "01" + "A" * 24
    latency = document["cases"][0]["latency_ns"]
    for key in ("mean", "min", "max"):
        latency[key] = max(1, round(times * latency[key]))
    for number in latency.values():
        if isinstance(number, dict) and "value" in number:
            number.update({key: max(1, round(times * number["value"])) for key in ("value", "lo", "hi")})
    (path.parent / "scaled.json").write_text(json.dumps(document))
    return str(path.parent / "scaled.json")


def test_two_models_of_one_file_name_are_two_series(tare_package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = []
    for folder in ("A", "B"):
        (tmp_path / folder).mkdir()
        torch.save(mlp(), tmp_path / folder / "model.pt")
        for path in (f"{folder}/model.pt", tmp_path / folder / "model.pt"):
            found = tare_package.ModelProfiler(model_path=path, trust=True).profile(torch.ones(2, 8), num_runs=5)
            names.append(found.document["subject"]["name"])
    assert names == ["A/model.pt", "A/model.pt", "B/model.pt", "B/model.pt"]


def test_baselines_and_regressions(tare_package, tmp_path):
    measured_model(tare_package, 20000).save(tmp_path / "base.json")
    base = tare_package.load_baseline(tmp_path / "base.json")
    assert base["latency"]["p50"] > 0 and base.document["subject"]["name"]
    base = tare_package.load_baseline(scaled(tmp_path / "base.json", 1))
    twice = scaled(tmp_path / "base.json", 2)
    with pytest.warns(RuntimeWarning, match="detect_regressions: unverified: two saved runs"):
        worse = tare_package.detect_regressions(base, twice)
    assert not worse.verified and worse.verdict == "unverified"
    assert "latency.p50" in {one["metric"] for one in worse} and "unverified" in repr(worse)
    with pytest.warns(RuntimeWarning):
        better = tare_package.detect_regressions(twice, base)
    assert "latency.p50" not in {one["metric"] for one in better}


def test_a_change_reads_as_in_the_command(tare_package, tmp_path):
    """A factor of 935 is 935x, not +93400.0 %."""
    measured_model(tare_package, 2000).save(tmp_path / "base.json")
    far = scaled(tmp_path / "base.json", 935)
    found = {one["metric"]: repr(one) for one in tare_package.detect_regressions(tmp_path / "base.json", far)}
    assert " latency.p50 935x (" in found["latency.p50"]


def test_far_beyond_any_noise_is_a_regression(tare_package):
    """200 times the work, where 53 times are beyond noise: one run a side, and three within half a minute, which are one."""
    fast, slow = ([measured_model(tare_package, loops) for _ in range(3)] for loops in (2000, 400_000))
    for base, new in ((fast[0], slow[0]), (fast, slow)):
        found = tare_package.detect_regressions(base, new)
        assert found.verdict == "regressed" and {"latency.p50", "cpu.time"} <= {one["metric"] for one in found.verified}
        assert "no plausible noise" in repr(found)


def test_several_runs_a_side_give_a_verdict(tare_package, tmp_path):
    """Three runs a side, a minute apart each as far as the documents say."""
    run = tare_package.ModelProfiler(model=lambda _: sum(range(3000))).profile(1, num_runs=40)
    sides = {}
    for side, factor in (("base", 1.0), ("new", 3.0)):
        sides[side] = []
        for number in range(4):
            document = json.loads(json.dumps(run.document))
            document["created"] = f"2026-11-15T0{number + (4 if side == 'new' else 0)}:00:00.000Z"
            document["id"] = document["id"][:-2] + f"{'B' if side == 'base' else 'N'}{number}"
            case = document["cases"][0]
            scale = factor * (1 + 0.003 * number)
            case["samples_raw"] = case["latency_ns"]["histogram"] = None
            for name, value in case["latency_ns"].items():
                if isinstance(value, dict):
                    case["latency_ns"][name] = {k: None if v is None else round(v * scale) for k, v in value.items()}
                elif value is not None:
                    case["latency_ns"][name] = round(value * scale)
            path = tmp_path / f"{side}-{number}.json"
            path.write_text(json.dumps(document))
            sides[side].append(path)
    found = tare_package.detect_regressions(sides["base"], sides["new"])
    assert {"latency.p50"} <= {one["metric"] for one in found.verified}
    assert tare_package.detect_regressions(sides["base"], sides["base"]).verified == []


def test_bad_baselines_say_what_is_wrong(tare_package, tmp_path):
    (tmp_path / "bad.json").write_text('{"schema": "tare.run/1"}')
    with pytest.raises(RuntimeError, match="bad.json"):
        tare_package.load_baseline(tmp_path / "bad.json")
    (tmp_path / "words.txt").write_text("no document")
    with pytest.raises(ValueError, match="words.txt: not a run document"):
        tare_package.load_baseline(tmp_path / "words.txt")


# ---- python -m tare profile ----


@pytest.fixture
def latest(tmp_path, tare):
    """A folder with an ONNX file: no test here waits for the import of PyTorch but the one on devices."""
    (tmp_path / "models" / "latest").mkdir(parents=True)
    tare("synth", "mlp", "--sizes", "8,16,4", "-o", "models/latest/model.onnx")
    return tmp_path / "models" / "latest"


def profile_command(python, *words, status=0):
    return python("-m", "tare", "profile", "--model-path", "models/latest", "--num-runs", 60, *words, status=status)


def test_the_command_saves_a_run_and_judges_thresholds(python, latest, tmp_path, validator):
    done = profile_command(python, "--output-dir", "out", "--threshold", "latency.p50:10s", "throughput:0.001samples/s", "memory:1TB")
    assert done.stdout.count("pass") == 3 and "latency" in done.stdout
    (saved,) = (tmp_path / "out").glob("profile_models-latest-model*.json")
    document = json.loads(saved.read_text())
    validator.validate(document)
    assert [target["verdict"] for target in document["targets"]] == ["pass"] * 3


def test_a_missed_threshold_is_exit_1(python, latest):
    done = profile_command(python, "--threshold", "latency:1ns", "throughput:1000samples/s", "--batch-size", "1,4", status=1)
    assert done.stdout.count("fail") == 2 and "latency.p95 <= 1 ns: > 1 ns (batch=" in done.stdout  # too few runs for a p95
    assert "recommended for throughput: batch=" in done.stdout
    json.loads(profile_command(python, "--json", "--threshold", "memory:1KB", status=1).stdout)


@pytest.mark.parametrize("words, said", [
    (["--threshold", "latency"], "latency:VALUE"),
    (["--threshold", "speed:3"], "speed:3"),
    (["--threshold", "latency:100parsec"], "parsec"),
    (["--input", "3xx"], "3xx"),
    (["--inputs", "gone.npy"], "gone.npy"),
    (["--precision", "fp8"], "fp8"),
    (["--num-runs", "0"], "below 1"),
    (["--model-path", "nowhere"], "nowhere"),
])
def test_bad_input_is_exit_2(python, latest, words, said):
    assert said in profile_command(python, *words, status=2).stderr


class NotAtFour(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = mlp()

    def forward(self, x):
        if x.shape[0] == 4:
            raise RuntimeError("no room for 4")
        return self.inner(x)


def test_a_configuration_that_fails_loses_no_other(tare_package, validator):
    profiler = tare_package.ModelProfiler(model=NotAtFour())
    profiler.profile(torch.zeros(1, 8), num_runs=5)
    for sizes in ([1, 4, 8], [1, 8, 4], [4, 1]):
        results = profiler.benchmark([{"batch_size": size} for size in sizes], num_runs=5)
        validator.validate(results.document)
        assert [case.params["batch"] for case in results.run.cases] == sizes
        for size, one, case in zip(sizes, results, results.run.cases):
            assert case.failure == ("run 1: RuntimeError: no room for 4" if size == 4 else None)
            assert one["runs"] == (None if size == 4 else 5) and (size == 4) == (not one["latency"]["p50"])
        assert results.run.best.params["batch"] != 4 and results.run.to_dict()["subject"]["type"] == "torch"
        assert "failed: run 1: RuntimeError: no room for 4" in str(results)
    with pytest.raises(RuntimeError, match="no room for 4"):
        profiler.benchmark([{"batch_size": 4}], num_runs=5)


def test_the_command_keeps_the_batch_sizes_that_did_not_fail(python, tare, latest, tmp_path, validator):
    torch.jit.save(torch.jit.script(NotAtFour().eval()), latest / "model.pt")
    (latest / "model.onnx").unlink()
    done = profile_command(python, "--input", "float32:1x8", "--batch-size", "1,4,8", "--output-dir", "out", "--html", status=1)
    assert "no room for 4" in done.stderr and done.stdout.count(": 60 runs\n") == 2
    (saved,) = (tmp_path / "out").glob("profile_models-latest-model*.json")
    document = json.loads(saved.read_text())
    validator.validate(document)
    assert [case["samples"] for case in document["cases"]] == [60, None, 60]
    assert len(json.loads(tare("history", "list", "--history", tmp_path / "out" / "history.db", "--json").stdout)["runs"]) == 1
    assert "no room for 4" in profile_command(python, "--input", "float32:1x8", "--batch-size", "4", status=3).stderr


def test_what_cannot_be_measured_is_exit_3(python, latest):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    torch.save(mlp(), latest / "model.pt")
    (latest / "model.onnx").unlink()
    assert "no cuda" in profile_command(python, "--device", "cuda", status=3).stderr
    assert "instead" in profile_command(python, "--device", "cuda", "--fallback", "cpu").stderr


def test_the_command_looks_at_its_files_first(python, latest, tmp_path):
    (tmp_path / "file").write_text("")
    for bad in (("--baseline", "missing.json"), ("--output-dir", "file/folder"), ("--output-dir", "file"), ("--output-dir", "/proc/nope"),
                ("--history", "file/x.db")):
        said = profile_command(python, *bad, status=2)
        assert bad[1].removesuffix("/x.db") in said.stderr and "latency" not in said.stdout


def test_the_command_compares_with_a_baseline(python, latest, tmp_path):
    profile_command(python, "--output-dir", "base")
    (base,) = (tmp_path / "base").glob("*.json")
    done = profile_command(python, "--baseline", base, "--layers", "--no-history")
    assert "against the baseline: unverified" in done.stderr and "taken out" in done.stdout
    assert not (tmp_path / "tare-results").exists() and (tmp_path / "base" / "history.db").exists()
    profile_command(python, "--baseline", base, "--strict", "--fail-on", "latency.p50>5%", status=3)
    for limit in ("latency.p95>>5%", "nonsense>5%"):
        done = profile_command(python, "--baseline", base, "--fail-on", limit, status=2)
        assert "--fail-on" in done.stderr and "latency" not in done.stdout
    done = profile_command(python, "--baseline", scaled(base, 0.001), status=1)
    assert "against the baseline: regressed" in done.stderr and "no plausible noise" in done.stderr
    p95 = ("--no-history", "--fail-on", "latency.p95>5%")  # of 60 runs it is not known
    done = profile_command(python, "--baseline", base, *p95)
    assert "--fail-on latency.p95 is not decided" in done.stderr and "not known of" in done.stderr
    profile_command(python, "--baseline", base, *p95, "--strict", status=3)
    done = profile_command(python, "--baseline", scaled(base, 0.0001), *p95, status=1)
    assert "latency.p95 unknown (not known of" in done.stderr and "but latency.p50 is" in done.stderr
    assert "no case in common" in profile_command(python, "--baseline", base, "--input", "float32:5x8", status=3).stderr
