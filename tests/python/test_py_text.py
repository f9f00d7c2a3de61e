# SPDX-License-Identifier: MIT
"""EmbeddingProfiler and NLIProfiler, python -m tare nli, nli-batch, embedding: the example's commands as they stand, on models of a few neurons
and on functions whose behaviour is known."""

import json
import re
import shutil
import subprocess
import sys

import pytest

NLI = "synth:deberta-v3-nli,layers=1,hidden=32,heads=2,vocab=1000"
EMBEDDING = "synth:minilm-l6,layers=1,hidden=32,heads=2,vocab=1000"
SMALL = {"TARE_NLI_MODEL": NLI, "TARE_NLI_BATCH_MODEL": NLI, "TARE_EMBEDDING_MODEL": EMBEDDING, "TARE_BUDGET": "100ms",
         "OMP_NUM_THREADS": "1"}  # fmt: skip

# Functions and objects whose answers and times are known.
MODELS = '''
import time

def length(texts):
    time.sleep(0.0005 + 0.00005 * len(texts))
    return [[float(len(t)), 1.0] for t in texts]

def spoilt_by_batches(pairs):
    """The answer hangs on what else is in the batch, as with padding that is not masked."""
    time.sleep(0.0005)
    return [[0.0, 1.0, 0.0] if len(pairs) < 8 else [1.0, 0.0, 0.0] for _ in pairs]

class Encoder:
    """As sentence-transformers: cuts into batches of its own unless told otherwise, shows progress unless told not to."""
    device = "cpu"
    def __init__(self):
        self.seen = set()
    def encode(self, sentences, batch_size=32, show_progress_bar=None, convert_to_numpy=True):
        assert show_progress_bar is False and batch_size == len(sentences), (show_progress_bar, batch_size)
        self.seen.add(len(sentences))
        return length(sentences)

class CrossEncoder:
    class config:
        id2label = {"0": "ENTAILMENT", "1": "NEUTRAL", "2": "CONTRADICTION"}
    def predict(self, pairs):
        time.sleep(0.0005)
        return [self.word(*pair) for pair in pairs]
    def word(self, premise, hypothesis):
        return "entailment" if hypothesis in premise else "neutral"

def leak(texts, kept=[]):
    kept.append(bytearray(b"x") * (1 << 18))
    time.sleep(0.0003)
    return length(texts)

async def later(texts):
    return texts

def fails(texts):
    raise KeyError("no such token")

made = Encoder()
def build():
    return Encoder()
not_a_model = 7
'''


@pytest.fixture
def models(tmp_path):
    (tmp_path / "models.py").write_text(MODELS)
    return tmp_path


@pytest.fixture
def seed(root, package, clean_env, tmp_path):
    """seed("python scripts/profiling/profile_nli.py"): a command in a copy of examples/text_models, by bash."""
    shutil.copytree(root / "examples" / "text_models", tmp_path / "text_models", ignore=shutil.ignore_patterns("results", "__pycache__"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')  # a link would lose the virtual environment
    (tmp_path / "bin" / "python").chmod(0o755)

    def call(command, status=0):
        env = {**clean_env, **SMALL, "PYTHONPATH": str(package), "PATH": f"{tmp_path / 'bin'}:{clean_env['PATH']}"}
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path / "text_models", env=env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == status, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    call.folder = tmp_path / "text_models"
    return call


def needs_runtime():
    pytest.importorskip("onnxruntime", reason="no ONNX Runtime in this environment (make deps)")


# ---- the example's commands ----


def dated(folder, kind):
    (path,) = folder.glob(f"{kind}_20??-??-??.json")
    return json.loads(path.read_text())


def test_seed_nli(seed):
    needs_runtime()
    done = seed("python scripts/profiling/profile_nli.py --batch-sizes 8,16,32,64 --num-pairs 200")
    lines = done.stdout.splitlines()
    assert lines[1] == "NLI PROFILING SUMMARY" and "System: cpu | Model: deberta-v3-nli shape" in done.stdout
    assert "random" in done.stdout, "that the weights are made up is said"
    assert [line.split("|")[0].strip() for line in lines if line.count("|") == 4][1:] == ["8", "16", "32", "64"]
    results = seed.folder / "scripts" / "profiling" / "results"
    found = dated(results, "nli_profile")
    assert {"timestamp", "system", "batch_profiles", "bottlenecks", "recommendations"} <= set(found)
    row = found["batch_profiles"][1]
    assert row["batch_size"] == 16 and row["throughput_pairs_per_sec"] > 0 and row["latency_ms_per_pair"] > 0
    assert row["memory_delta_mb"] is not None and row["accuracy_metrics"] is None and "not asked" in row["unknown"]["accuracy_metrics"]
    assert (results / found["run"]).exists()


def test_seed_nli_batch_optimization_and_review(seed):
    needs_runtime()
    seed("python scripts/profiling/nli_batch_optimization.py --validate-accuracy --num-pairs 40 --batch-sizes 4,8")
    said = seed("cat scripts/profiling/results/nli_batch_analysis_*.json")
    found = json.loads(said.stdout)
    assert all(row["accuracy_metrics"]["consistent"] for row in found["batch_profiles"])
    assert set(found["choices"]) == {"best_throughput", "recommended", "memory_efficient"}
    assert next(t for t in found["targets"] if t["metric"] == "accuracy")["verdict"] == "pass"


def test_seed_monitoring_one_liners(seed):
    needs_runtime()
    alert = """
    import json
    with open('nightly_profile.json') as f:
        data = json.load(f)
        throughput = data['batch_profiles'][0]['throughput_pairs_per_sec']
        if throughput < LIMIT:  # Below acceptable threshold
            print('ALERT: Performance degraded')
            exit(1)
    """.replace("\n    ", "\n")
    seed("python scripts/profiling/profile_nli.py --num-pairs 100 --output nightly_profile.json --batch-sizes 16")
    seed(f'python -c "{alert.replace("LIMIT", "1e-3")}"')
    assert "ALERT" in seed(f'python -c "{alert.replace("LIMIT", "1e9")}"', status=1).stdout
    seed("for i in {1..3}; do python scripts/profiling/profile_nli.py --output run_$i.json --batch-sizes 8 --num-pairs 16; done")
    average = """
    import json
    import glob
    throughputs = []
    for file in glob.glob('run_*.json'):
        with open(file) as f:
            data = json.load(f)
            throughputs.append(data['batch_profiles'][0]['throughput_pairs_per_sec'])
    print(f'Average: {sum(throughputs)/len(throughputs):.2f}')
    print(f'Variance: {max(throughputs) - min(throughputs):.2f}')
    """.replace("\n    ", "\n")
    assert "Average: " in seed(f'python -c "{average}"').stdout


def test_seed_embedding_scripts(seed):
    needs_runtime()
    kinds = {"profile_batch_sizes": "batch_size_profile", "profile_memory": "memory_analysis", "profile_text_lengths": "text_length_profile"}
    for script, kind in kinds.items():
        seed(f"python scripts/profiling/{script}.py")
        found = dated(seed.folder / "scripts" / "profiling" / "results", kind)
        assert found["system"]["device"] == "cpu" and found["run"]
    lengths = dated(seed.folder / "scripts" / "profiling" / "results", "text_length_profile")
    assert [row["text_length_words"] for row in lengths["length_profiles"]] == [8, 16, 32, 64, 128]


def test_seed_monitoring_snippet_and_tests(seed):
    needs_runtime()
    said = seed(f"python monitoring.py {NLI}")
    assert "nli_performance_check throughput=" in said.stderr
    seed("python -m pytest -q -p no:cacheprovider tests/test_nli_profiling.py::TestNLIProfiler")


# ---- what is called, and how ----


def test_objects_are_called_as_sentence_transformers_wants_it(python, models):
    python("""
        from models import Encoder
        from tare import EmbeddingProfiler
        model = Encoder()
        found = EmbeddingProfiler(model, budget=0.05).profile([2, 5], num_texts=11)
        assert model.seen == {2, 5}, model.seen
        assert found["system"]["device"] == "cpu" and found["system"]["weights"] is None
        assert found["system"]["model"] == "Encoder"
    """)


def test_every_item_is_measured_and_batches_are_full(python, models):
    python("""
        from tare import EmbeddingProfiler
        from models import length
        seen, sizes = set(), set()
        def model(texts):
            seen.update(texts); sizes.add(len(texts))
            return length(texts)
        texts = [f"text number {i}" for i in range(10)]
        row = EmbeddingProfiler(model, texts, budget=0.05).profile_batch_size(batch_size=4, num_texts=10)
        assert seen == set(texts) and sizes == {4}, (seen, sizes)
        assert row["calls"] >= 5
        seen.clear(); sizes.clear()
        EmbeddingProfiler(model, texts, budget=0.05).profile_batch_size(batch_size=16, num_texts=10)
        assert sizes == {16}
    """)


def test_numbers_are_those_of_the_run_document(python, models, root):
    jsonschema = pytest.importorskip("jsonschema")
    python("""
        import tare
        from models import Encoder
        found = tare.EmbeddingProfiler(Encoder(), budget=0.1).profile([1, 16], num_texts=32, validate_accuracy=True)
        path = found.save("out")
        run = tare.load("out/" + found["run"])
        for row in found["batch_profiles"]:
            case = run.case(batch=row["batch_size"])
            assert row["throughput_texts_per_sec"] == case.throughput
            assert row["latency_ms_per_batch"]["p50"] == case.p50_ms
            assert case["accuracy"]["value"] == row["accuracy_metrics"]["label_agreement"], case["accuracy"]
        assert run.recommendation["case"] == f"batch={found['choices']['recommended']['batch_size']}"
        assert path == f"out/batch_size_profile_{found['timestamp'][:10]}.json"
        assert found.save("out").endswith("_2.json")
        text = str(tare.load("out/" + found["run"]))
        assert "recommended for" in text
    """)
    schema = json.loads((root / "docs" / "schema" / "run-1.json").read_text())
    written = list((models / "out").glob("bench_*.json"))
    assert written
    for path in written:
        jsonschema.validate(json.loads(path.read_text()), schema)


# ---- choosing ----


def test_a_larger_batch_is_recommended_where_it_pays(python):
    """A call costs 5 ms whatever its size: throughput grows with the batch, and the recommendation must be near the top."""
    python("""
        import time
        from tare import EmbeddingProfiler
        def model(texts):
            time.sleep(0.005)
            return [[1.0]] * len(texts)
        found = EmbeddingProfiler(model, budget=0.4).profile([1, 2, 32], num_texts=64)
        rates = {row["batch_size"]: row["throughput_texts_per_sec"] for row in found["batch_profiles"]}
        assert rates[32] > 4 * rates[2] and rates[2] > 1.2 * rates[1], rates
        assert found["choices"]["recommended"]["batch_size"] == 32
        assert found["choices"]["best_throughput"]["batch_size"] == 32
        assert found["recommendations"][0].startswith("use batch_size=32")
    """)


def test_choice_by_intervals(python):
    python("""
        import tare
        lengths = tare.EmbeddingProfiler(lambda texts: [[1.0]] * len(texts), budget=0.05).profile_text_lengths([2, 4], 2, 4)
        assert lengths.run.recommendation is None, "lengths are given, not chosen"
        from tare._run import Case
        from tare._text_choice import choose, insights_of, latency_twin, not_told_apart, why
        def case(batch, rate, low, high, memory):
            return Case({"name": f"batch={batch}", "params": {"batch": batch}, "latency_ns": None, "memory": {"delta": memory, "rss_peak": 1},
                         "throughput": rate and {"value": rate, "lo": low, "hi": high}})
        names = lambda cases, changed=(): {word: one.params["batch"] for word, one in choose(cases, set(changed)).items()}
        sure = [case(8, 50, 49.9, 50.1, 1), case(16, 97, 96.9, 97.1, 2), case(32, 98, 97.9, 98.1, 4), case(64, 100, 99.9, 100.1, 8)]
        assert names(sure) == {"best_throughput": 64, "recommended": 16, "memory_efficient": 8}
        assert names(sure, ["batch=16", "batch=8"])["recommended"] == 32, "answers that changed are never recommended"
        vague = [case(16, 97, 80, 110, 2), case(64, 100, 85, 115, 8)]
        assert names(vague)["recommended"] == 16, "not told apart: the cheaper one"
        assert why(choose(vague, set()), "texts") == "97 texts/s, statistically tied with 100 at batch=64, and smaller"
        seen = [case(8, 52.1, 9.4, 94.8, 2.8), case(16, 20, 19, 21, 5), case(32, 52.84, 24.8, 80.8, 38.7)]
        assert names(seen)["recommended"] == 8, "of those that may be as good; 16 surely is not"
        assert names([case(8, 90, 89, 91, 1), case(64, 100, 99, 101, 8)])["recommended"] == 64, "surely less, and below 95 %"
        assert names([case(8, 97, None, None, 1), case(64, 100, 99, 101, 8)])["recommended"] == 64, "no interval to judge by"
        assert not_told_apart(sure[1], sure, set()) == [] and not_told_apart(sure[0], sure, set()) == [16, 32, 64]
        assert not_told_apart(vague[1], vague, set()) == [16] and not_told_apart(vague[1], vague, {"batch=16"}) == []
        alone = [case(16, 97, None, None, None)]
        assert names(alone) == {"best_throughput": 16, "recommended": 16}
        assert names([case(16, None, None, None, 1)]) == {}
        twin = latency_twin({"metric": "throughput", "op": ">=", "value": 2, "unit": "pairs/s", "achieved": 80, "ratio": 40, "verdict": "pass"}, "pair")
        assert (twin["value"], twin["achieved"], twin["ratio"], twin["verdict"]) == (500, 12.5, 40, "pass")
    """)


# ---- answers ----


def test_answers_that_hang_on_the_batch_are_found(python, models):
    done = python("-m", "tare", "nli-batch", "--model", "models.py:spoilt_by_batches", "--batch-sizes", "2,4,8,16", "--num-pairs", "24",
                  "--validate-accuracy", "--budget", "100ms", "--output", "out.json", status=1)  # fmt: skip
    found = json.loads((models / "out.json").read_text())
    verdicts = {row["batch_size"]: row["accuracy_metrics"]["consistent"] for row in found["batch_profiles"]}
    assert verdicts == {2: True, 4: True, 8: False, 16: False} and "CHANGED" in done.stdout
    assert found["choices"]["recommended"]["batch_size"] <= 4, "although larger batches are far faster"
    assert [f["case"] for f in found["bottlenecks"] if f["id"] == "accuracy.changed"] == ["batch=8", "batch=16"]


def test_labels_by_word_in_the_models_order(python, models):
    python("""
        from models import CrossEncoder
        from tare import NLIProfiler
        pairs = [("a dog runs", "a dog"), ("a dog runs", "it is late"), ("a cat sleeps", "a cat"), ("a cat sleeps", "it rains")]
        labels = ["entailment", "neutral", "entailment", "contradiction"]
        found = NLIProfiler(CrossEncoder(), pairs, labels, budget=0.05).profile([2], num_pairs=4, validate_accuracy=True)
        assert found["batch_profiles"][0]["accuracy_metrics"]["label_agreement"] == 0.75
        try:
            NLIProfiler(CrossEncoder(), pairs, ["entailment"] * 3 + ["perhaps"], budget=0.05).profile([2], 4, True)
        except ValueError as why:
            assert "perhaps" in str(why) and "contradiction" in str(why)
        else:
            raise AssertionError("a label that the model does not have")
    """)


def test_answers_that_cannot_be_compared_say_why(python):
    python("""
        from array import array
        from tare import _tare
        from tare._text_accuracy import Answers, collect, compare, nearest
        def refuses(text, call):
            try:
                collect(call, ["a", "b", "c", "d"], 2)
            except ValueError as why:
                assert text in str(why), why
            else:
                raise AssertionError(text)
        refuses("gives 1 answers to a batch of 2", lambda batch: [1.0])
        refuses("no list of answers", lambda batch: None)
        refuses("different sizes", lambda batch: [[1.0], [1.0, 2.0]])
        refuses("none of the labels", lambda batch: ["yes"] * 2)
        nan = compare(Answers(array("d", [1, 0]), 2), Answers(array("d", [float("nan"), 0]), 2), "cosine", 0.01)
        assert not nan["consistent"] and nan["not_numbers"] == 1
        turned = compare(Answers(array("d", [1, 0, 0, 1]), 2), Answers(array("d", [1, 0, 0.2, 1]), 2), "cosine", 0.01)
        assert not turned["consistent"] and turned["worst"] < 0.99
        near = nearest(Answers(array("d", [1, 0, 1, 0.1, 0, 1, 0.1, 1]), 2), [3, 3, 4, 4])
        assert list(near.values) == [3, 3, 4, 4]
        for bad in ((array("d"), array("d"), 1, "cosine"), (array("f", [1]), array("d", [1]), 1, "cosine"), (array("d", [1]), array("d", [1]), 0, "cosine"),
                    (array("d", [1]), array("d", [1]), 1, "beauty"), (array("d", [1]), array("d", [1]), 1, "accuracy"), (3, 4, 1, "cosine")):
            try:
                _tare.score_answers(*bad)
            except (TypeError, ValueError):
                continue
            raise AssertionError(bad)
    """)


def test_ctrl_c_is_one_line(python, models):
    (models / "stop.py").write_text("import os, signal\ndef stop(texts):\n    os.kill(os.getpid(), signal.SIGINT)\n    return [[1.0] for _ in texts]\n")
    done = python("-m", "tare", "embedding", "batch-sizes", "--model", "stop.py:stop", "--batch-sizes", "1", "--budget", "50ms", status=130)
    assert done.stderr.strip() == "tare: interrupted; nothing was written" and not (models / "tare-results").exists()


def test_numbers_have_the_digits_of_the_command(python):
    """Three, whatever their size, in columns and in sentences (src/core/fmt.h); nothing is shown as 0 that is not."""
    done = python("""
        from tare._answers import target_words
        from tare._tare import in_column, in_sentence
        print([in_column(x) for x in (None, float("nan"), 0.0, 0.0056, 0.1, 12.345)])
        print([in_column(*x) for x in ((0.02477, "s"), (2e-3, "s"), (2**21, "B"), (-4096, "B"), (0.1234, "1"), (37.75e6, "FLOPs"), (177_595.9, "texts/s"))])
        print([in_sentence(*x) for x in ((2e-3, "s"), (97.0,), (0.00123, "MB"), (97, "texts/s"))])
        def got(achieved, unit, op="<=", verdict="inconclusive"):
            return target_words({"value": 2.5e6, "achieved": achieved, "unit": unit, "op": op, "verdict": verdict})[1]
        print(got(177_595.9, "texts/s"), got(0.005631, "ms"), got(2.5e6, "ns"), got(None, "ns"))
        print([got(None, "ns", op, verdict) for op in ("<=", "<", ">=", ">") for verdict in ("pass", "fail")])
    """)
    assert done.stdout.splitlines() == [
        "['-', 'unknown', '0', '0.0056', '0.100', '12.3']",
        "['24.8 ms', '2.00 ms', '2.00 MiB', '-4.00 KiB', '12.3 %', '37.75 MFLOPs', '177,596 texts/s']",
        "['2 ms', '97', '0.00123 MB', '97 texts/s']",
        "177,596 texts/s 5.63 us 2.50 ms unknown",
        "['<= 2.50 ms', '> 2.50 ms', '< 2.50 ms', '>= 2.50 ms', '>= 2.50 ms', '< 2.50 ms', '> 2.50 ms', '<= 2.50 ms']",
    ]


def test_no_text_has_digits_of_its_own(root):
    """Times, rates and sizes of texts go through in_column() and in_sentence(); what is a whole percent, or a score near 1, does not."""
    own = re.compile(r"(?:\{[^{}]*(?:_s|_ms|_ns|_mb|throughput|memory|rate|latency|seconds)\b[^{}]*:[^{}]*\.[1-9][fg]\}|%\.4g|\.4g\})")
    found = [f"{path.name}: {line.strip()}" for path in sorted((root / "python/tare").glob("*.py")) if path.name != "_diagnose.py"
             for line in path.read_text().splitlines() if own.search(line)]
    assert not found


# ---- memory and lengths ----


def test_a_leak_is_found_and_none_is_not(python, models):
    done = python("-m", "tare", "embedding", "memory", "--model", "models.py:leak", "--num-texts", "64", "--batch-size", "8", "--budget", "50ms",
                  "--output", "leak.json", status=1)  # fmt: skip
    assert re.search(r"memory grew by \S+ MB after the first third and was not flat at the end", done.stdout) and "LEAK" not in done.stdout
    growth = json.loads((models / "leak.json").read_text())["memory"]["growth"]
    assert growth["leak"] is True and growth["mb_per_iteration"] == pytest.approx(8 * 0.25, rel=0.2)
    done = python("-m", "tare", "embedding", "memory", "--model", "models.py:length", "--num-texts", "64", "--batch-size", "8",
                  "--budget", "50ms", "--output", "none.json")  # fmt: skip
    growth = json.loads((models / "none.json").read_text())["memory"]["growth"]
    assert growth["leak"] is False and "memory is steady" in done.stdout
    few = python("-m", "tare", "embedding", "memory", "--model", "models.py:length", "--num-texts", "8", "--batch-size", "8", "--iterations", "3",
                 "--budget", "50ms", "--output", "few.json")  # fmt: skip
    growth = json.loads((models / "few.json").read_text())["memory"]["growth"]
    assert growth["leak"] is None and "at least 16" in growth["why"] and "unknown" in few.stdout


def test_longer_texts_cost_more(python):
    python("""
        import time
        from tare import EmbeddingProfiler
        def model(texts):
            assert len({len(t.split()) for t in texts}) == 1
            time.sleep(1e-4 * len(texts[0].split()))
            return texts
        found = EmbeddingProfiler(model, budget=0.3).profile_text_lengths([64, 4], batch_size=2, num_texts=6)
        short, long = found["length_profiles"]
        assert (short["text_length_words"], long["text_length_words"]) == (4, 64)
        assert long["relative_throughput"] < 0.5 and long["mean_characters"] > 8 * short["mean_characters"]
        assert "EMBEDDING TEXT LENGTH SUMMARY" in str(found)
    """)


# ---- bad input ----


@pytest.mark.parametrize("args, text", [
    (["--model", "models.py:nothing"], "models.py has no nothing"),
    (["--model", "models.py:not_a_model"], "int can be profiled neither by .encode(batch) nor by calling it"),
    (["--model", "models.py:later"], "later is async"),
    (["--model", "missing.py:f"], "missing.py: no such file"),
    (["--model", "synth:resnet50"], "does not encode texts"),
    (["--model", "synth:no-such-net"], "no-such-net"),
    (["--model", "models.py:length", "--inputs", "missing.txt"], "missing.txt"),
    (["--model", "models.py:length", "--inputs", "bad.json"], "bad.json"),
    (["--model", "models.py:length", "--inputs", "numbers.json"], "numbers.json: item 2"),
    (["--model", "models.py:length", "--budget", "soon"], "budget='soon'"),
    (["--model", "models.py:length", "--target", "latency<=5 apples"], "apples"),
    (["--batch-sizes", "0"], "below 1"),
    (["--batch-sizes", "few"], "'few' is not a whole number"),
    (["--batch-sizes", "8,8"], "named twice"),
])  # fmt: skip
def test_bad_input_is_told(python, models, args, text):
    if any(word.startswith("synth:") for word in args):
        needs_runtime()
    (models / "bad.json").write_text("{")
    (models / "numbers.json").write_text('["a text", 7]')
    done = python("-m", "tare", "embedding", "batch-sizes", "--budget", "50ms", *args, status=2)
    assert text in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_pairs_from_files(python, models):
    (models / "pairs.tsv").write_text("a dog runs\ta dog\tentailment\na dog runs\tit rains\tneutral\n")
    (models / "odd.json").write_text('[["a", "b"], ["c"]]')
    done = python("-m", "tare", "nli", "--model", "models.py:CrossEncoder()", "--inputs", "pairs.tsv", "--validate-accuracy", "--batch-sizes", "1,2",
                  "--budget", "50ms", "--json", "--output-dir", "here")  # fmt: skip
    found = json.loads(done.stdout)
    assert found["settings"]["num_pairs"] == 2
    assert [row["accuracy_metrics"]["label_agreement"] for row in found["batch_profiles"]] == [1.0, 1.0]
    assert found["system"]["device"] is None and found["system"]["unknown"]["device"]
    assert "item 2" in python("-m", "tare", "nli", "--model", "models.py:CrossEncoder()", "--inputs", "odd.json", status=2).stderr


def test_a_model_that_fails_and_a_target_that_is_missed(python, models):
    failed = python("-m", "tare", "embedding", "batch-sizes", "--model", "models.py:fails", status=3)
    assert "the model failed: KeyError" in failed.stderr and "no such token" in failed.stderr
    common = ["-m", "tare", "embedding", "batch-sizes", "--model", "models.py:length", "--batch-sizes", "4", "--budget", "100ms"]
    assert "FAIL" in python(*common, "--target", "throughput>=1e9/s", status=1).stdout
    assert "PASS" in python(*common, "--target", "memory.peak<=9TB").stdout
    (models / "file").write_text("")
    for bad in (("--output-dir", "file/below"), ("--output", "file/below/x.json")):
        done = python(*common, *bad, status=2)
        assert "file/below" in done.stderr and not done.stdout  # before anything is measured


@pytest.mark.parametrize("kind", ["MemoryError('no room')", "RuntimeError('CUDA out of memory')", "ValueError('too long')"])
@pytest.mark.parametrize("words, one, name", [
    (("embedding", "batch-sizes", "--batch-sizes", "2,4,8"), "batch_size", "batch=4"),
    (("embedding", "batch-sizes", "--batch-sizes", "4,2,8", "--validate-accuracy"), "batch_size", "batch=4"),
    (("nli", "--batch-sizes", "2,4,8"), "batch_size", "batch=4"),
    (("nli-batch", "--batch-sizes", "2,4,8", "--validate-accuracy"), "batch_size", "batch=4"),
    (("embedding", "text-lengths", "--lengths", "4,5,6", "--batch-size", "2"), "text_length_words", "batch=2,length=4"),
])
def test_one_bad_case_loses_no_other(python, tare, tmp_path, words, one, name, kind):
    (tmp_path / "bad.py").write_text(f"""import time
def model(items):
    if len(items) == 4 or (isinstance(items[0], str) and len(items[0].split()) == 4 and len(items) == 2):
        raise {kind}
    time.sleep(0.0002)
    return [[0.1, 0.2, 0.7] for _ in items]
""")
    done = python("-m", "tare", *words, "--model", "bad.py:model", "--budget", "50ms", "--json", status=1)
    found = json.loads(done.stdout)
    rows = found.get("batch_profiles") or found["length_profiles"]
    text = kind.replace("('", ": ").replace("')", "")
    for row in rows:
        bad = row[one] == 4
        assert row["failure"] == (f"run 1: {text}" if bad else None) and (row["calls"] is None) == bad
    assert f"tare: {name} failed: run 1: {text}" in done.stderr and "Traceback" not in done.stderr
    assert name in [f["case"] for f in found["bottlenecks"] if f["severity"] == "critical"]
    if "choices" in found:
        assert found["choices"]["recommended"]["batch_size"] != 4
    run = json.loads((tmp_path / "tare-results" / found["run"]).read_text())
    assert [case["samples"] is None for case in run["cases"]] == [row[one] == 4 for row in rows]
    assert len(json.loads(tare("history", "list", "--json").stdout)["runs"]) == 1


def test_answers_that_one_batch_size_does_not_give(python, tmp_path):
    """It can be measured, but it is never recommended, and told."""
    (tmp_path / "bad.py").write_text("calls = []\ndef model(texts):\n    calls.append(len(texts))\n"
                                     "    if calls.count(8) == 1 and len(texts) == 8:\n        raise MemoryError\n    return [[1.0, 2.0]] * len(texts)\n")
    done = python("-m", "tare", "embedding", "batch-sizes", "--batch-sizes", "2,8", "--validate-accuracy", "--model", "bad.py:model",
                  "--num-texts", "16", "--budget", "50ms", "--json", status=1)
    found = json.loads(done.stdout)
    assert found["choices"]["recommended"]["batch_size"] == 2
    assert found["batch_profiles"][1]["unknown"]["accuracy_metrics"] == "MemoryError:"
    assert [f["case"] for f in found["bottlenecks"] if f["id"] == "accuracy.unknown"] == ["batch=8"]


def test_without_a_runtime_the_made_up_model_says_what_to_install(python):
    done = python("-S", "-m", "tare", "nli", status=2)
    assert "pip install numpy onnxruntime" in done.stderr


def test_results_are_in_the_history_and_gate(python, tare, models):
    """Two embedding profiles: one series of two runs; read by report, compare, trend; the second judged by the first."""
    words = ("-m", "tare", "embedding", "batch-sizes", "--model", "models.py:made", "--batch-sizes", "2,4", "--num-texts", 8, "--budget", "50ms")
    python(*words)
    (first,) = models.glob("tare-results/batch_size_profile_*.json")
    done = python(*words, "--baseline", first)
    assert "against the baseline: unverified" in done.stderr
    python(*words, "--no-history", "--baseline", first, "--fail-on", "latency.p50>5%", "--strict", status=3)
    assert "gone.json" in python(*words, "--baseline", "gone.json", status=2).stderr
    runs = json.loads(tare("history", "list", "--json").stdout)["runs"]
    assert len(runs) == 2 and len({run["subject"] for run in runs}) == 1
    assert "texts/s" in tare("report", first).stdout
    assert json.loads(tare("compare", first, models / "tare-results" / json.loads(first.read_text())["run"], "--json").stdout)["cases"]
    assert len(json.loads(tare("trend", "--case", "batch=2", "--json").stdout)["series"][0]["points"]) == 2


# ---- progress, on made-up time ----


class Screen:
    def __init__(self, terminal):
        self.terminal, self.said = terminal, []

    def isatty(self):
        return self.terminal

    def write(self, text):
        self.said.append(text)

    def flush(self):
        pass


def progress_of(terminal):
    """What is shown of 40 s of even work, told each second."""
    from tare._asking import Progress

    screen, now = Screen(terminal), [0.0]
    progress = Progress(screen, lambda: now[0])
    for second in range(1, 40):
        now[0] = float(second)
        progress("measuring batch=8", second, 40)
    progress.close()
    return "".join(screen.said)


def test_progress_off_a_terminal_is_a_line_each_ten_seconds(package):
    said = progress_of(False).splitlines()
    assert said == [f"tare: {share}%  ETA {left}s  measuring batch=8" for share, left in ((25, 30), (50, 20), (75, 10))]


def test_progress_on_a_terminal_is_one_line_that_goes(package):
    said = progress_of(True)
    assert "\n" not in said and said.endswith("\r\033[K") and " 25%  ETA 30s  measuring batch=8" in said
