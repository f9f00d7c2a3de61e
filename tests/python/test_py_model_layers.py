# SPDX-License-Identifier: MIT
"""ModelProfiler's layers, FLOPs and memory of PyTorch models against what small programs are known to do."""

import itertools
import types

import pytest

torch = pytest.importorskip("torch", reason="no PyTorch in this environment (make deps)")
F = torch.nn.functional
torch.set_num_threads(1)

WIDTH, WIDE, HEADS, BATCH, LENGTH = 16, 64, 4, 2, 6
TOKENS = BATCH * LENGTH
X = torch.randn(BATCH, LENGTH, WIDTH)


class Named(torch.nn.Module):
    """A module whose parts are called as the words say; forward() runs them in a row, or `code` does."""

    def __init__(self, /, code=None, **parts):
        super().__init__()
        self.code = code
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, x):
        if self.code:
            return self.code(self, x)
        for part in self.children():
            x = part(x)
        return x


def linear(rows, columns):
    return torch.nn.Linear(rows, columns)


def attend(self, x):
    """BertSelfAttention with scaled_dot_product_attention."""
    query, key, value = (part(x).reshape(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for part in (self.query, self.key, self.value))
    return F.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(x.shape)


def join(self, x):
    """BertSelfOutput and BertOutput: a product, the residual, a norm."""
    wide, x = x
    return self.LayerNorm(self.dense(wide) + x)


def bert_layer():
    """The names of Hugging Face's BertLayer."""
    own = Named(attend, query=linear(WIDTH, WIDTH), key=linear(WIDTH, WIDTH), value=linear(WIDTH, WIDTH))
    output = Named(join, dense=linear(WIDTH, WIDTH), LayerNorm=torch.nn.LayerNorm(WIDTH))
    attention = Named(lambda self, x: self.output((self.self(x), x)), self=own, output=output)
    intermediate = Named(dense=linear(WIDTH, WIDE), intermediate_act_fn=torch.nn.GELU())
    output = Named(join, dense=linear(WIDE, WIDTH), LayerNorm=torch.nn.LayerNorm(WIDTH))

    def code(self, x):
        x = self.attention(x)
        return self.output((self.intermediate(x), x))

    return Named(code, attention=attention, intermediate=intermediate, output=output)


def bert():
    embeddings = Named(word_embeddings=torch.nn.Embedding(100, WIDTH))
    encoder = Named(layer=torch.nn.Sequential(bert_layer(), bert_layer()))
    return Named(embeddings=embeddings, encoder=encoder, pooler=Named(dense=linear(WIDTH, WIDTH))).eval()


IDS = torch.arange(TOKENS).reshape(BATCH, LENGTH)


def macs_of(tare_package, model, data):
    facts = tare_package.ModelProfiler(model=model).profile(data, num_runs=1, warmup_runs=0)["model"]
    assert facts["uncounted"] == {}
    return facts["macs"]


# ---- layers ----


def test_the_mlp_of_bert_is_both_of_its_products(tare_package):
    layers = tare_package.ModelProfiler(model=bert()).profile_layers(IDS, ["attention", "mlp", "embedding"], num_runs=3)
    assert [row["name"] for row in layers["mlp"]["modules"]] == [
        f"encoder.layer.{n}.{part}" for n in (0, 1) for part in ("intermediate", "output")
    ]
    products = 2 * 2 * TOKENS * 2 * WIDTH * WIDE
    assert products < layers["mlp"]["flops"] < 1.2 * products
    norm = 2 * WIDTH
    assert layers["mlp"]["parameters"] == 2 * (2 * WIDTH * WIDE + WIDE + WIDTH + norm)
    assert layers["attention"]["parameters"] == 2 * (4 * (WIDTH * WIDTH + WIDTH) + norm)
    assert layers["attention"]["calls"] == 2 and layers["embedding"]["calls"] == 1


def test_a_layer_inside_another_is_not_counted_twice(tare_package):
    names = ["attention", "mlp", "normalization"]
    layers = tare_package.ModelProfiler(model=bert()).profile_layers(IDS, names, num_runs=3)
    norm = 2 * WIDTH
    assert layers["normalization"]["calls"] == 4 and layers["normalization"]["parameters"] == 4 * norm
    assert layers["attention"]["parameters"] == 2 * 4 * (WIDTH * WIDTH + WIDTH)
    again = tare_package.ModelProfiler(model=bert()).profile_layers(IDS, names[::-1], num_runs=3)
    assert {name: again[name]["flops"] for name in names} == {name: layers[name]["flops"] for name in names}


def test_a_norm_called_after_attention_is_a_norm(tare_package):
    """The names of Llama's layers."""
    parts = {"input_layernorm": torch.nn.LayerNorm(WIDTH), "self_attn": linear(WIDTH, WIDTH), "post_attention_layernorm": torch.nn.LayerNorm(WIDTH)}
    profiler = tare_package.ModelProfiler(model=Named(**parts, mlp=linear(WIDTH, WIDTH)).eval())
    for names in (["attention"], ["attention", "mlp", "norm"], ["norm", "mlp", "attention"]):
        layers = profiler.profile_layers(X, names, num_runs=1)
        assert [row["name"] for row in layers["attention"]["modules"]] == ["self_attn"]
    assert layers["norm"]["parameters"] == 2 * 2 * WIDTH
    assert [row["name"] for row in profiler.profile_layers(X, ["post_att"], num_runs=1)["post_att"]["modules"]] == ["post_attention_layernorm"]


def test_layers_and_the_rest_are_the_whole(tare_package):
    """Work of modules that hold others, as attention's own products, has a row too."""
    profiler = tare_package.ModelProfiler(model=bert())
    layers = profiler.profile_layers(IDS, num_runs=5)
    assert "encoder.layer.1.attention.self" in layers and layers["encoder.layer.1.attention.self"]["flops"] > 0
    assert sum(row["share"] for row in layers.values()) == pytest.approx(1)
    assert sum(row["time_ms"] for row in layers.values()) == pytest.approx(layers.profiled_ms)
    model = profiler.profile(num_runs=1, warmup_runs=0)["model"]
    for key in ("flops", "parameters", "activation_bytes"):
        assert sum(row[key] for row in layers.values()) == model[key], key


class Clock:
    """Time that passes only where a program says so: layers have known times on any machine."""

    def __init__(self, monkeypatch):
        from tare import _model_layers, _model_weigh

        self.ns, self.read_ms = 0, 0
        monkeypatch.setattr(_model_layers, "time", types.SimpleNamespace(perf_counter_ns=self.read))
        monkeypatch.setattr(_model_weigh, "perf_counter_ns", lambda: self.ns)

    def read(self):
        self.ns += round(self.read_ms * 1e6)
        return self.ns

    def takes(self, ms, result=None):
        self.ns += round(ms * 1e6)
        return result


@pytest.fixture
def clock(tare_package, monkeypatch):
    return Clock(monkeypatch)


def test_shares_are_of_the_same_runs(tare_package, clock):
    """Three quarters in one layer, a quarter in no module, whatever the machine does in between: every third run is slow."""
    turns = iter(range(10**9))

    def code(self, x):
        slow = clock.takes(0, 4 if next(turns) % 3 == 0 else 1)
        clock.takes(slow)
        return self.mlp((slow, x))

    model = Named(code, mlp=Named(lambda self, given: clock.takes(3 * given[0], given[1])))
    layers = tare_package.ModelProfiler(model=model).profile_layers(X, ["mlp"], num_runs=9)
    assert layers["mlp"]["share"] == pytest.approx(0.75) and layers["mlp"]["time_ms"] == pytest.approx(0.75 * layers.profiled_ms)
    assert layers.outside_ms == pytest.approx(0.25 * layers.profiled_ms)
    assert layers.total_ms in (4, 16)


def test_a_stop_in_a_layer_is_not_its_time(tare_package, clock):
    """Nine layers of 1 ms; in each run the machine stops for 6 ms in another one. Means over the usual runs gave three of them 20 %."""
    turns = itertools.count()
    parts = {f"part{n}": Named(lambda self, run, n=n: clock.takes(7 if run % 9 == n else 1, run)) for n in range(9)}

    def code(self, x):
        run = next(turns)
        for n in range(9):
            getattr(self, f"part{n}")(run)
        return x

    layers = tare_package.ModelProfiler(model=Named(code, **parts)).profile_layers(X, num_runs=27)
    assert [row["share"] for name, row in layers.items() if name.startswith("part")] == pytest.approx([1 / 9] * 9)


def test_rounding_is_no_time_outside_of_the_rows(tare_package):
    """0.1 + 0.2 ms are more than 0.3: nothing is left over, and not -0.00 ns of it."""
    from tare import _model_layers

    layers = _model_layers.LayerProfiles({name: {"time_ms": ms} for name, ms in (("a", 0.1), ("b", 0.2))})
    layers.profiled_ms = 0.3
    assert str(layers.outside_ms) == "0.0"


@pytest.mark.parametrize(("plain_ms", "cost_ns", "said"), [(1.0, 1000, ""), (0.7, 1000, "143% of a plain run: other work disturbed it"),
                                                            (1.4, 1000, "71% of a plain run: other work disturbed it"),
                                                            (1.0, 200_000, "most of the time was profiling")])  # fmt: skip
def test_layers_that_do_not_add_up_are_a_hint(tare_package, plain_ms, cost_ns, said):
    """As `tare bench --layers` says: profiled runs of 1 ms beside plain ones of more or less, or hooks that took longer than the run."""
    from tare import _model_layers

    row = {"time_ms": 1.0, "time_most_ms": 1.1, "share": 1.0, "calls": 10, "parameters": 0, "flops": 0, "flops_complete": True, "activation_bytes": 0}
    layers = _model_layers.LayerProfiles(a=row)
    layers.profiled_ms, layers.total_ms, layers.self_ns = 1.0, plain_ms, cost_ns
    assert said in str(layers) and str(layers).count("take shares as a hint") == bool(said)
    layers.note = "fused paths are left"
    assert str(layers).count("take shares as a hint") == 0


def test_the_time_of_a_layer_is_its_own(tare_package, clock):
    """2 ms in attention's own code, 3 and 4 ms in two products inside it, 1 ms in the model's code."""
    parts = {name: Named(lambda self, x, ms=ms: clock.takes(ms, x)) for name, ms in (("query", 3), ("value", 4))}
    attention = Named(lambda self, x: clock.takes(2, self.value(self.query(x)) + 1), **parts)
    model = Named(lambda self, x: clock.takes(1, self.attention(self.attention(x))), attention=attention)
    layers = tare_package.ModelProfiler(model=model).profile_layers(X, num_runs=5)
    times = {name: (row["time_ms"], row["calls"]) for name, row in layers.items()}
    calls = {name: count for name, (_, count) in times.items()}
    assert calls == {"attention": 2, "attention.query": 2, "attention.value": 2, "(model itself)": 0}
    assert [ms for ms, _ in times.values()] == pytest.approx([4, 6, 8, 1])
    assert layers.profiled_ms == pytest.approx(19) and layers.total_ms == 19


def test_a_tied_twin_that_is_never_called_counts_once(tare_package):
    """As T5's `shared` beside its encoder's table."""
    model = Named(lambda self, x: self.embed_tokens(x), shared=torch.nn.Embedding(100, WIDTH), embed_tokens=torch.nn.Embedding(100, WIDTH))
    model.embed_tokens.weight = model.shared.weight
    profiler = tare_package.ModelProfiler(model=model)
    row = profiler.profile_layers(IDS, ["embedding"], num_runs=1)["embedding"]
    assert (row["parameters"], row["calls"], row["flops"]) == (100 * WIDTH, 1, 0)
    assert sum(row["parameters"] for row in profiler.profile_layers(num_runs=1).values()) == 100 * WIDTH


def test_a_time_below_the_cost_of_profiling_is_no_zero(tare_package, clock):
    """Reading the clock takes as long as the layer: all that is known is the most that it can be."""
    clock.read_ms = 1
    model = Named(lambda self, x: clock.takes(10, self.norm(x)), norm=torch.nn.Identity())
    layers = tare_package.ModelProfiler(model=model).profile_layers(X, num_runs=5)
    row = layers["norm"]
    assert row["time_ms"] == 0 and row["time_most_ms"] == 1 and "< 1.00 ms" in str(layers)
    assert layers["(model itself)"]["time_ms"] == layers.profiled_ms > 0


def test_layers_by_name_have_parameters_flops_and_bytes(tare_package):
    layers = tare_package.ModelProfiler(model=bert()).profile_layers(IDS, ["embedding", "query"], num_runs=5)
    assert list(layers) == ["embedding", "query"]
    assert layers["embedding"]["flops"] == 0 and layers["query"]["flops"] == 2 * (2 * TOKENS * WIDTH * WIDTH + TOKENS * WIDTH)
    assert layers["query"]["activation_bytes"] == 2 * TOKENS * WIDTH * 4
    assert all(row["time_ms"] > 0 for row in layers.values())
    assert "query" in str(layers) and "taken out" in str(layers)


def test_a_layer_that_is_not_there_is_a_warning(tare_package):
    with pytest.warns(RuntimeWarning, match="convolution"):
        layers = tare_package.ModelProfiler(model=bert()).profile_layers(IDS, ["mlp", "convolution"], num_runs=2)
    assert layers["convolution"]["modules"] == [] and layers["mlp"]["modules"]


def encoder_layer():
    return torch.nn.TransformerEncoderLayer(WIDTH, HEADS, WIDE, batch_first=True).eval()


def test_the_mlp_of_pytorchs_own_layer(tare_package):
    layers = tare_package.ModelProfiler(model=encoder_layer()).profile_layers(X, ["attention", "mlp"], num_runs=3)
    assert [row["name"] for row in layers["mlp"]["modules"]] == ["linear1", "linear2"]
    assert layers["mlp"]["parameters"] == 2 * WIDTH * WIDE + WIDE + WIDTH
    assert layers["attention"]["flops"] > 2 * (4 * TOKENS * WIDTH * WIDTH + 2 * TOKENS * LENGTH * WIDTH)
    assert layers["attention"]["flops_complete"] and "fused" in layers.note
    alone = tare_package.ModelProfiler(model=encoder_layer()).profile_layers(X, num_runs=2)
    assert alone["self_attn"]["parameters"] == 4 * (WIDTH * WIDTH + WIDTH)  # also those that only the fused path reads


# ---- FLOPs ----

ATTENTION = 4 * TOKENS * WIDTH * WIDTH + 2 * TOKENS * LENGTH * WIDTH


def test_fused_attention_has_its_products(tare_package):
    head = torch.randn(BATCH, HEADS, LENGTH, 8)
    fused = Named(lambda self, x: F.scaled_dot_product_attention(x, x, x))
    assert macs_of(tare_package, fused, head) == 2 * BATCH * HEADS * LENGTH * LENGTH * 8
    for kept in (True, False):  # the fast path, and that of training
        attention = torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval()
        model = Named(lambda self, x, kept=kept: self.it(x, x, x, need_weights=kept)[0], it=attention)
        assert macs_of(tare_package, model, X) == ATTENTION
    other = torch.randn(BATCH, 9, WIDTH)
    cross = Named(lambda self, x: self.it(x, other, other)[0], it=torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval())
    assert macs_of(tare_package, cross, X) == 2 * (TOKENS + BATCH * 9) * WIDTH * WIDTH + 2 * TOKENS * 9 * WIDTH


def test_grouped_products_of_experts(tare_package):
    weights, ends = torch.randn(3, WIDTH, 8), torch.tensor([4, 8, 16], dtype=torch.int32)
    if not hasattr(torch, "_grouped_mm"):
        pytest.skip("this PyTorch has none")
    assert macs_of(tare_package, Named(lambda self, x: torch._grouped_mm(x, weights, offs=ends)), torch.randn(16, WIDTH)) == 16 * WIDTH * 8


def test_an_encoder_with_padding_counts_what_is_not_padded(tare_package):
    encoder = torch.nn.TransformerEncoder(encoder_layer(), 1).eval()
    padded = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    model = Named(lambda self, x: self.it(x, src_key_padding_mask=padded), it=encoder)
    rows = 6 + 4
    assert macs_of(tare_package, model, X) == rows * (4 * WIDTH * WIDTH + 2 * WIDTH * WIDE) + 2 * (6 * 6 + 4 * 4) * WIDTH


def test_code_that_cannot_be_watched_has_no_flops_but_a_profile(tare_package):
    from tare._flops import _thread

    def code(self, x):
        if getattr(_thread, "mode", None):
            raise RuntimeError("torch.compile: non-infra torch dispatch mode present")
        return self.mlp(x)

    profiler = tare_package.ModelProfiler(model=Named(code, mlp=linear(WIDTH, WIDTH)))
    facts = profiler.profile(X, num_runs=2, warmup_runs=0)["model"]
    assert "torch.compile" in facts["flops"].reason and "torch.compile" in facts["activation_bytes"].reason
    row = profiler.profile_layers(num_runs=2)["mlp"]
    assert "torch.compile" in row["flops"].reason and row["calls"] == 1 and row["time_ms"] > 0
    assert "unknown" in str(profiler.profile_layers(num_runs=2))


# ---- memory ----

MIB = 2**20


def test_activations_that_no_module_makes_are_counted(tare_package):
    """Eight tensors of 1 MiB, of which never more than three live; views and changes in place make none."""

    def code(self, x):
        for _ in range(4):
            x = F.relu(x * 2)
            x.add_(1)
        return x.reshape(-1)[:4]

    model = tare_package.ModelProfiler(model=Named(code)).profile(torch.zeros(512, 512), num_runs=1, warmup_runs=0)["model"]
    assert model["activation_bytes"] == 8 * MIB and model["activation_peak_bytes"] == 3 * MIB


def test_the_peak_of_memory_is_that_of_the_run(tare_package):
    """100 MiB that a run makes and frees."""

    def code(self, x):
        return torch.ones(100, MIB // 4).sum() + x

    profiler = tare_package.ModelProfiler(model=Named(code))
    seen = profiler.memory_profile(False, False, input_data=torch.zeros(4), num_runs=5)
    assert seen["peak"] - seen["after"] == pytest.approx(100 * MIB, rel=0.1)
    assert all(one["peak"] - one["rss"] > 90 * MIB for one in seen["snapshots"][1:])


def test_a_peak_that_cannot_be_told_is_unknown(tare_package, monkeypatch):
    """Where the kernel's peak cannot be set back, an earlier one hides that of these runs."""
    from tare import _memory, _tare

    peak = [500 * MIB]
    monkeypatch.setattr(_tare, "memory_peak", lambda reset: (peak[0], False))
    assert "set back" in _memory.peak_of(lambda: None).reason
    assert _memory.peak_of(lambda: peak.__setitem__(0, 600 * MIB)) == 600 * MIB


# ---- what a later call takes from an earlier one ----


def test_the_batch_size_stays(tare_package, tare, tmp_path):
    tare("synth", "mlp", "--sizes", "32,64,8", "-o", "mlp.onnx")
    profiler = tare_package.ModelProfiler(tmp_path / "mlp.onnx")
    profiler.profile(num_runs=3, warmup_runs=1, batch_size=4)
    layers = profiler.profile_layers(num_runs=3)
    assert layers.params["batch"] == 4 and sum(row["flops"] for row in layers.values() if row["flops"]) >= 2 * 4 * (32 * 64 + 64 * 8)
    assert profiler.profile_layers(num_runs=3, batch_size=2).params["batch"] == 2
    profiler = tare_package.ModelProfiler(model=bert())
    profiler.profile(IDS, num_runs=1, warmup_runs=0, batch_size=2 * BATCH)
    assert profiler.profile_layers(layer_names=["pooler"], num_runs=1)["pooler"]["activation_bytes"] == 4 * 2 * TOKENS * WIDTH
    assert profiler.profile(IDS, num_runs=1, warmup_runs=0)["params"]["batch"] == BATCH


def test_the_parts_of_end_to_end_are_of_the_same_runs(tare_package, clock):
    """The model and its hooks get slower together: in every run the model is a quarter of the whole."""
    turns, now = iter(range(10**9)), {}

    def prepare(data):
        now["ms"] = (1, 4)[next(turns) // 7 % 2]
        return clock.takes(2 * now["ms"], data)

    def model(x):
        return clock.takes(now["ms"], x)

    profiler = tare_package.ModelProfiler(model=model, preprocess=prepare, postprocess=lambda out: clock.takes(now["ms"]))
    results = profiler.profile([1, 2], num_runs=20, warmup_runs=1)
    whole, latency = results["end_to_end"], results["latency"]
    assert {name: part["share"] for name, part in whole["parts"].items()} == {"preprocess": 0.5, "model": 0.25, "postprocess": 0.25}
    assert whole["mean"] == 4 * latency["mean"] and whole["p50"] == 4 * latency["p50"] and whole["max"] == 16
    assert whole["parts"]["model"]["mean"] == latency["mean"]
    assert "preprocess 50.0 %, model 25.0 %" in str(results)
    bare = tare_package.ModelProfiler(model=linear(8, 8), preprocess=prepare).profile(num_runs=2, warmup_runs=0)
    assert "input_data" in bare["end_to_end"].reason and "unknown" in str(bare)


def test_a_program_that_compiles_a_part_of_its_model_goes_on(tare_package):
    """PyTorch refuses to compile whole graphs of what is being counted: PerformanceProfiler leaves a compiled part out and says so."""
    model = Named(part=linear(8, 8)).eval()
    model.part.compile(fullgraph=True, backend="eager")
    profiler = tare_package.PerformanceProfiler()
    for _ in range(2):
        with profiler.profile("block"):
            model(torch.randn(4, 8))
    assert profiler.get_metrics("block").compute.uncounted == {"compiled code": 1}
