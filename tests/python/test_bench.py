# SPDX-License-Identifier: MIT
"""tare bench on real models and commands: every document validates, and says what was asked and done."""

import json
import xml.etree.ElementTree as xml

import jsonschema
import numpy
import onnx
import onnxruntime
import pytest


@pytest.fixture(scope="session")
def validator(root):
    return jsonschema.Draft202012Validator(json.loads((root / "docs/schema/run-1.json").read_text()))


@pytest.fixture
def bench(tare, root, validator, tmp_path):
    """bench(*args): the document of `tare bench --json`, validated; its exit status beside it."""

    def call(*args, status=0):
        env = {"VIRTUAL_ENV": str(root / ".venv"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
        done = tare("bench", "--json", "--no-save", "--budget", "200ms", *args, status=status, env=env)
        document = json.loads(done.stdout)
        validator.validate(document)
        return document

    return call


@pytest.fixture
def mlp(tare, tmp_path):
    tare("synth", "mlp", "--sizes", "32,64,8", "-o", "mlp.onnx")
    return tmp_path / "mlp.onnx"


@pytest.fixture
def bert(tare, tmp_path):
    tare("synth", "minilm-l6", "--layers", 1, "--hidden", 32, "--heads", 4, "--ffn", 64, "--vocab", 200, "-o", "bert.onnx")
    return tmp_path / "bert.onnx"


def test_a_sweep_has_all_cases_with_what_varies(bench, bert):
    run = bench(bert, "--batch", "1,4", "--seq", "8,16", "--threads", "1")
    assert [c["params"]["batch"] for c in run["cases"]] == [1, 4, 1, 4]
    assert [c["params"]["seq"] for c in run["cases"]] == [8, 8, 16, 16]
    assert run["subject"]["type"] == "onnx" and len(run["subject"]["sha256"]) == 64
    assert run["subject"]["runtime"]["version"] == onnxruntime.__version__
    for case in run["cases"]:
        assert case["samples"] >= 5 and case["load_ns"] > 0 and case["first_run_ns"] > 0
        latency = case["latency_ns"]
        assert latency["min"] <= latency["p50"]["value"] <= latency["max"]
        assert case["self"]["ns_per_run"] is not None
        assert case["units_per_run"] == case["params"]["batch"]


def test_the_memory_of_a_case_does_not_depend_on_its_place(bench, tare, tmp_path):
    """87 MiB of weights, for all batches the same. What the loading of one case freed is no gift to the next, which had 14 % less."""
    tare("synth", "minilm-l6", "-o", "whole.onnx")
    cases = bench(tmp_path / "whole.onnx", "--batch", "1,2", "--seq", "8", "--threads", "1", "--min-runs", "5", "--max-runs", "5")["cases"]
    first, second = (c["memory"]["rss_peak"] for c in cases)
    assert second == pytest.approx(first, rel=0.08)


def test_throughput_is_units_over_time(bench, mlp):
    case = bench(mlp, "--batch", "8", "--threads", "1", "--unit", "rows")["cases"][0]
    rate = 8 / (case["latency_ns"]["mean"] / 1e9)
    assert case["throughput"]["unit"] == "rows/s"
    assert 0.3 * rate < case["throughput"]["value"] <= 1.05 * rate  # time between runs is ours and the machine's


@pytest.mark.parametrize("load", [["--concurrency", "2"], ["--rate", "200/s"], ["--rate", "200/s", "--arrivals", "constant"],
                                  ["--scenario", "single-stream"], ["--scenario", "multi-stream"],
                                  ["--scenario", "server", "--rate", "100/s"], ["--scenario", "offline"]])
def test_load_patterns(bench, mlp, load):
    run = bench(mlp, *load)
    assert run["cases"][0]["samples"] > 0


def test_a_failed_run_of_a_model_is_counted(bench, tmp_path):
    """One run in five gathers beyond the end of its only row; the others have their numbers."""
    h, T = onnx.helper, onnx.TensorProto
    nodes = [h.make_node("RandomUniform", [], ["u"], shape=[1], dtype=T.FLOAT, low=0.0, high=1.25, seed=3.0),
             h.make_node("Cast", ["u"], ["index"], to=T.INT64),
             h.make_node("Gather", ["x", "index"], ["y"])]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [1, 4])], [h.make_tensor_value_info("y", T.FLOAT, [1, 4])])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, tmp_path / "flaky.onnx")
    case, = bench(tmp_path / "flaky.onnx", "--warmup", "50", "--min-runs", "200", "--max-runs", "200", status=1)["cases"]
    assert case["samples"] == 200 and "Gather" in case["failure"]
    assert 20 <= case["failed_runs"] <= 120


def test_a_command(bench):
    run = bench("--", "sh", "-c", "exit 0")
    assert run["subject"]["type"] == "command"
    assert run["cases"][0]["cpu"]["user_ns"] is not None


def test_inputs_and_reference_outputs(bench, mlp, tmp_path):
    rows = numpy.random.default_rng(1).normal(size=(4, 32)).astype(numpy.float32)
    numpy.savez(tmp_path / "in.npz", input=rows)
    numpy.savez_compressed(tmp_path / "out.npz", output=onnxruntime.InferenceSession(str(mlp)).run(None, {"input": rows})[0])
    run = bench(mlp, "--inputs", "in.npz", "--batch", "4", "--expect", "out.npz", "--metric", "max-abs", "--validate-accuracy",
                "--max-drop", "0.0001")
    assert run["cases"][0]["accuracy"]["value"] < 1e-5
    numpy.savez(tmp_path / "wrong.npz", output=numpy.ones((4, 8), numpy.float32) * 99)
    run = bench(mlp, "--inputs", "in.npz", "--batch", "4", "--expect", "wrong.npz", "--metric", "max-abs", "--target",
                "accuracy<=0.5", status=1)
    assert run["targets"][0]["verdict"] == "fail"


def test_labels_from_json_lines(bench, mlp, tmp_path):
    rows = numpy.random.default_rng(2).normal(size=(8, 32)).astype(numpy.float32)
    numpy.savez(tmp_path / "in.npz", input=rows)
    best = onnxruntime.InferenceSession(str(mlp)).run(None, {"input": rows})[0].argmax(axis=1)
    best[0] = (best[0] + 1) % 8
    (tmp_path / "labels.jsonl").write_text("".join('{"label": %d}\n' % k for k in best))
    run = bench(mlp, "--inputs", "in.npz", "--batch", "8", "--expect", "labels.jsonl", "--metric", "accuracy")
    assert run["cases"][0]["accuracy"]["value"] == pytest.approx(7 / 8)


def test_inputs_that_do_not_fit_are_named(tare, root, mlp, tmp_path):
    env = {"VIRTUAL_ENV": str(root / ".venv")}
    numpy.savez(tmp_path / "narrow.npz", input=numpy.zeros((4, 31), numpy.float32))
    assert "narrow.npz" in tare("bench", mlp, "--inputs", "narrow.npz", status=2, env=env).stderr
    numpy.savez(tmp_path / "other.npz", thing=numpy.zeros((4, 32), numpy.float32), other=numpy.zeros((4, 32), numpy.float32))
    assert "input" in tare("bench", mlp, "--inputs", "other.npz", status=2, env=env).stderr
    (tmp_path / "no.npz").write_bytes(b"PK\x03\x04 not really")
    assert "no.npz" in tare("bench", mlp, "--inputs", "no.npz", status=2, env=env).stderr


def test_files_beside_the_answer(tare, root, mlp, tmp_path):
    tare("bench", mlp, "--batch", "1,2", "--budget", "150ms", "--csv", "a.csv", "--md", "a.md", "--junit", "a.xml", "--target",
         "latency.p50<=10s", env={"VIRTUAL_ENV": str(root / ".venv")})
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 3
    assert "|" in (tmp_path / "a.md").read_text()
    assert xml.parse(tmp_path / "a.xml").getroot().tag == "testsuites"
    (saved,) = (tmp_path / "tare-results").glob("*.json")
    plan = json.loads(tare("plan", saved, "--rate", "10/s", "--slo", "p95<=10s", "--json").stdout)
    assert plan
