# SPDX-License-Identifier: MIT
"""tare.gpu(): a block recorded in the running process, with a libcupti of known behaviour (tests/fake_cupti) that makes 100 kernels and
a copy of each recording. Programs run in processes of their own: what is loaded into one stays. What PyTorch tells (emit_nvtx, the
allocator of CUDA) needs a GPU: bench/results.md has what one gave; here a module's path is told by a torch without CUDA that says it has."""

import json
import os
import subprocess
import sys
import textwrap

import pytest
from test_gpu import fakes  # noqa: F401 - a fixture


@pytest.fixture
def program(package, fakes, tmp_path):  # noqa: F811
    """program("text", fault="busy"): what it printed, as JSON of its last line."""

    def call(text, *, fault="", cupti=None, env=None):
        script = tmp_path / "program.py"
        script.write_text("import json, os, sys, tare\n" + textwrap.dedent(text))
        done = subprocess.run(
            [sys.executable, "-X", "dev", script], capture_output=True, text=True, check=False, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(package), "TARE_CUPTI": str(cupti or fakes[0]), "FAKE_CUPTI": fault, **(env or {})})
        assert done.returncode == 0, done.stderr
        said = [line for line in done.stderr.splitlines() if "triton not found" not in line]  # PyTorch's own, of what is not installed
        assert not said, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return call


def test_a_block_and_a_second_one(program):
    said = program("""
        out = []
        for _ in range(2):
            with tare.gpu() as g:
                pass
            out.append([g.kernels[0]["count"], g.copies[0]["bytes"], g.memory_transfers == g.copies, g.devices[0]["operations"],
                        round(g.busy, 3), [c["name"] for c in g.calls], g.steps[0]["count"], {i["cause"] for i in g.idle} >= {"launch"}])
        out.append([g.document["schema"].startswith("tare.gpu/1"), json.loads(g.to_json()) == g.document, "Made-up GPU" in g.text(), g.seconds > 0])
        print(json.dumps(out))
    """)
    assert said[0] == said[1] == [100, 1 << 20, True, 101, 0.031, ["cudaLaunchKernel"], 99, True]
    assert said[2] == [True, True, True, True]


def test_calls_of_a_program_that_has_a_context(program):
    """The fake minds what the real one does: single calls cannot be enabled late, and all others must be as they were."""
    said = program("""
        out = []
        for calls in (True, False, True):
            with tare.gpu(calls=calls) as g:
                pass
            out.append([[c["name"] for c in g.calls], {i["cause"] for i in g.idle} >= {"launch"}])
        print(json.dumps(out))
    """, fault="late")
    assert said == [[["cudaLaunchKernel"], True], [[], False], [["cudaLaunchKernel"], True]]


def test_memory_taken_before_is_unknown(program):
    said = program("""
        with tare.gpu() as g: pass
        print(json.dumps([g.unknown, g.notes, str(g.memory), g.memory.reason]))
    """)
    assert "devices.0.memory_peak_bytes" in said[0] and "graphs that it made before" in said[1][0]
    assert said[2] == "unknown" and "PyTorch" in said[3]


@pytest.mark.parametrize("fault, words", [("busy", "Some Profiler"), ("nodriver", "no CUDA driver")])
def test_cupti_that_cannot_be_had(program, fault, words):
    said = program("""
        done = []
        with tare.gpu() as g:
            done.append(1)
        try:
            g.document
        except RuntimeError as why:
            done.append(str(why))
        print(json.dumps([done, g.unknown, str(g.kernels), g.kernels.reason, bool(g.idle), g.text()]))
    """, fault=fault)
    assert said[0][0] == 1 and words in said[0][1] and words in said[1]["gpu"]
    assert said[2] == "unknown" and words in said[3] and said[4] is False and words in said[5]


def test_no_cupti(program, tmp_path):
    said = program("with tare.gpu() as g: pass\nprint(json.dumps(g.unknown))", cupti=tmp_path / "none.so")
    assert "TARE_CUPTI" in said["gpu"] and "none.so" in said["gpu"]


@pytest.mark.parametrize("variable, words", [("TARE_GPU_TRACE", "tare run --gpu"), ("CUDA_INJECTION64_PATH", "/x/other.so")])
def test_another_records_the_process(program, variable, words):
    said = program("with tare.gpu() as g: pass\nprint(json.dumps(g.unknown))", env={variable: "/x/other.so"})
    assert words in said["gpu"]


def test_blocks_within_and_beside_one_another(program):
    said = program("""
        import threading
        def other():
            with tare.gpu() as h: pass
            out.append(h.unknown["gpu"])
        out = []
        with tare.gpu() as g:
            with tare.gpu() as inner: pass
            out.append(inner.unknown["gpu"])
            thread = threading.Thread(target=other); thread.start(); thread.join()
            try:
                g.__enter__()
            except RuntimeError as why:
                out.append(str(why))
        out.append(g.kernels[0]["count"])
        print(json.dumps(out))
    """)
    assert said[:2] == ["another tare.gpu() block of this process is being recorded"] * 2
    assert "open already" in said[2] and said[3] == 100


def test_an_exception_passes_and_the_trace_is_whole(program):
    said = program("""
        try:
            with tare.gpu() as g:
                raise KeyError("mine")
        except KeyError as mine:
            print(json.dumps([mine.args[0], g.kernels[0]["count"]]))
    """)
    assert said == ["mine", 100]


def test_a_block_where_an_exception_is_handled(program):
    """The caller's exception is none of the block's, and one from the start of a block leaves the next one free to record."""
    said = program("""
        out = []
        try:
            raise KeyError("mine")
        except KeyError:
            with tare.gpu() as g: pass
            out.append(g.kernels[0]["count"])
        plain = tare.gpu._start
        def broken(self): raise KeyboardInterrupt
        tare.gpu._start = broken
        try:
            with tare.gpu() as g: pass
        except KeyboardInterrupt:
            out.append("raised")
        tare.gpu._start = plain
        with tare.gpu() as g: pass
        print(json.dumps([*out, g.kernels[0]["count"]]))
    """)
    assert said == [100, "raised", 100]


def test_busy_of_all_is_unknown_where_that_of_one_is(tare_package):
    g = tare_package.gpu()
    g._why = None
    g._document = {"devices": [{"number": 0, "busy": 0.5}, {"number": 1, "busy": 0.7}]}
    assert g.busy == pytest.approx(0.6)
    g._document["devices"][1].update(busy=None, unknown={"busy": "a hole in the record"})
    assert str(g.busy) == "unknown" and g.busy.reason == "GPU 1: a hole in the record"
    g._document["devices"] = []
    assert "no kernel" in g.busy.reason


def test_as_a_decorator(program):
    said = program("""
        g = tare.gpu()
        @g
        def step(x):
            "doc"
            return x + 1
        said = [step(1), step.__name__, g.kernels[0]["count"]]
        first = g.path
        print(json.dumps([*said, step(2), g.kernels[0]["count"], os.path.exists(os.path.dirname(first)), os.path.exists(g.path)]))
    """)
    assert said == [2, "step", 100, 3, 100, False, True], "thousands of calls leave one trace, not thousands"


def test_a_fork_in_the_block(program):
    """The child leaves the block, too: it has nothing, and the parent has everything."""
    said = program("""
        read, write = os.pipe()
        child = None
        with tare.gpu() as g:
            child = os.fork()
        if child == 0:
            with tare.gpu() as again: pass
            os.write(write, json.dumps([g.unknown["gpu"], again.unknown["gpu"]]).encode())
            os._exit(0)
        os.waitpid(child, 0)
        print(json.dumps([g.kernels[0]["count"], *json.loads(os.read(read, 10000))]))
    """)
    assert said[0] == 100 and all("forked" in why for why in said[1:])


def test_the_trace_is_kept_where_asked_and_else_removed(program, tare, tmp_path):
    said = program("""
        with tare.gpu("kept.tare") as g: pass
        with tare.gpu() as h: pass
        h.save("saved.tare")
        temporary = h.path
        folder = os.path.dirname(temporary)
        there = os.path.exists(temporary)
        del h
        print(json.dumps([g.path, there, os.path.exists(folder)]))
    """)
    assert said == [str(tmp_path / "kept.tare"), True, False]
    for name in ("kept.tare", "saved.tare"):
        assert json.loads(tare("report", "--gpu", "--json", tmp_path / name).stdout)["kernels"][0]["count"] == 100


def test_a_page(program, tmp_path):
    program("""
        with tare.gpu() as g: pass
        print(json.dumps(g.html("page.html")))
    """)
    assert "<html" in (tmp_path / "page.html").read_text()[:2000].lower()


def test_modules_of_pytorch(program):
    """The fake makes its kernels in the last range that was begun. CUDA is only said to be there: no part of it is called."""
    pytest.importorskip("torch")
    said = program("""
        import torch
        torch.version.cuda = "13.0"
        class Heard:
            def rangePushA(self, name): pass
            def rangePop(self): pass
        torch.cuda.nvtx._nvtx = Heard()
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
        out = []
        for modules in (True, {"model": net}, net):
            with tare.gpu(modules=modules) as g:
                net(torch.ones(1, 2))
            out.append([g.modules[0]["module"], g.modules[0]["count"], g.kernels[0]["origins"][0]["count"], str(g.operators), g.ranges])
        with tare.gpu() as g:
            torch.cuda.nvtx.range_push("x")  # NVTX was not heard: told beside it
            torch.cuda.nvtx.range_pop()
        out.append([(r["name"], r["operations"]) for r in g.ranges] + g.notes[-1:])
        compiled = torch.compile(net, backend="eager", fullgraph=True)
        with tare.gpu(modules=True) as g:
            compiled(torch.ones(1, 2))
        out.append([g.modules[0]["module"], len([f for f in __import__("warnings").filters if f[1] and "global hooks" in f[1].pattern])])
        try:
            with tare.gpu(modules=net) as g:
                net(torch.ones(1, 3))
        except RuntimeError:
            out.append(g.modules[0]["module"])
        out.append([len(torch.nn.modules.module._global_forward_hooks), type(torch.cuda.nvtx._nvtx).__name__, os.environ.get("NVTX_INJECTION64_PATH")])
        print(json.dumps(out))
    """)
    assert [row[0] for row in said[:3]] == ["Sequential.1.1", "model.1.1", "Sequential.1.1"]
    assert all(row[1:] == [100, 100, "unknown", []] for row in said[:3])
    assert said[3][0] == ["x", 100] and "NVTX was in use before" in said[3][1]
    assert said[4] == ["Sequential", 0], "nothing of a hook gets into compiled code, and PyTorch has nothing to warn of"
    assert said[5] == "Sequential.0", "the module whose forward failed"
    assert said[6] == [0, "Heard", None], "everything is as it was before"


@pytest.mark.parametrize("word, why", [("all", "a block has node"), ("graph", "crashes a program that has CUDA graphs")])
def test_graphs_of_a_block_are_recorded_by_kernels(tare_package, word, why):
    with pytest.raises(ValueError, match=why):
        tare_package.gpu(graphs=word)


# ---- in run documents and profiles ----


def test_a_bench_has_the_gpu_of_its_cases(program):
    said = program("""
        from tare import _gpu
        _gpu.is_open = lambda: True
        run = tare.bench(len, [1, 2, 3], batch_sizes=[1, 2], budget=0.05)
        case = run.cases[0]
        unseen = [f["id"] for f in run.findings if f["id"] == "machine.gpu-unseen"]
        print(json.dumps([case["gpu"], unseen, case.reasons.get("gpu"), case.reasons["gpu.devices.memory_peak"] == case.reasons["memory.gpu_peak"] and case.reasons["memory.gpu_peak"], case.memory_peak > 0, len(str(run)) > 0]))
    """)
    (device,) = said[0]["devices"]
    assert device["name"] == "Made-up GPU" and device["utilization"] == pytest.approx(0.031, abs=1e-3) and device["memory_peak"] is None
    assert said[0]["kernel_ns"] == 3_000_000 // 20 and said[0]["copy_bytes"] == (1 << 20) // 20, "a pass of 20 short runs"
    assert said[1:] == [[], None, "PyTorch's allocator is not what the memory comes from", True, True]


def test_memory_of_cases_is_that_of_the_allocator(program):
    said = program("""
        from tare import _gpu
        class Allocator:
            device_count = staticmethod(lambda: 1)
            reset_peak_memory_stats = staticmethod(lambda number: None)
            memory_allocated, max_memory_allocated, memory_reserved = (staticmethod(lambda number, n=n: n) for n in (100, 300, 512))
        _gpu.is_open, _gpu.allocator = lambda: True, Allocator
        case = tare.bench(len, [1, 2, 3], batch_sizes=[1], budget=0.05).to_dict()["cases"][0]
        print(json.dumps([case["memory"]["gpu_peak"], case["memory"]["gpu_held"], case["gpu"]["devices"][0]["memory_before"],
                          [path for path in case["unknown"] if path.startswith("memory.gpu_")]]))
    """)
    assert said == [300, 512, 100, []]


def test_the_memory_of_a_model_on_a_gpu_is_not_the_hosts(tare_package):
    """The process's memory on the host stands beside it, and is not called the model's."""
    from tare._model_results import ProfileResults
    from tare._run import Run

    document = tare_package.bench(lambda: None, budget="20ms").to_dict()
    document["cases"][0]["memory"]["gpu_peak"] = 100_000_000
    run = Run.of(document)
    results = ProfileResults(run, run.cases[0])
    assert results["memory"]["gpu_peak"] == 100_000_000
    assert "peak 95.4 MiB on the GPU; of the process, on the host, " in str(results)


def test_recorded_calls_are_none_of_those_measured(program):
    """End-to-end times are those of the last runs: what is called for a look at the GPU afterwards must not be among them."""
    said = program("""
        from tare import _gpu, _model_weigh
        _gpu.is_open = lambda: True
        seen, calls = [], []
        plain = _model_weigh.Whole.end_to_end
        _model_weigh.Whole.end_to_end = lambda self, case: seen.append(len(self._seen)) or plain(self, case)
        p = tare.ModelProfiler(model=lambda x: calls.append(1), preprocess=lambda x: x)
        r = p.profile([1, 2], num_runs=5, warmup_runs=1)
        print(json.dumps([seen, len(calls) > 6, r["gpu"]["kernel_ns"] > 0, sorted(r["end_to_end"]["parts"])]))
    """)
    assert said == [[7], True, True, ["model", "postprocess", "preprocess"]], "a first run, one to warm up, five; not the 20 recorded ones"


def test_a_bench_beside_another_tool(program):
    said = program("""
        from tare import _gpu
        _gpu.is_open = lambda: True
        run = tare.bench(len, [1], budget=0.05)
        print(json.dumps([run.cases[0]["gpu"], run.cases[0].reasons["gpu"], [f["action"] for f in run.findings if f["id"] == "machine.gpu-unseen"]]))
    """, fault="busy")
    assert said[0] is None and "Some Profiler" in said[1] and "Some Profiler" in said[2][0]


def test_a_bench_whose_recorded_call_fails(program):
    """What was measured is not lost by a look at it afterwards."""
    said = program("""
        from tare import _gpu
        _gpu.is_open = lambda: True
        def work(x):
            if _gpu.recording: raise MemoryError("no more")
        run = tare.bench(work, [1], budget=0.05)
        print(json.dumps([run.cases[0]["samples"] > 3, run.cases[0]["gpu"], run.cases[0].reasons["gpu"]]))
    """)
    assert said == [True, None, "a call that was to be recorded failed: MemoryError: no more"]


def test_a_bench_of_graphs_that_were_not_recorded(program):
    """99 kernels are known, and a graph ran beside them: their sum is not the time of the GPU."""
    said = program("""
        from tare import _gpu
        _gpu.is_open = lambda: True
        run = tare.bench(len, [1], budget=0.05)
        with tare.gpu() as g: pass
        print(json.dumps([run.cases[0]["gpu"], run.cases[0].reasons["gpu"], str(g.busy), g.busy.reason]))
    """, fault="graphs")
    assert said[0] is None and "nothing was recorded of 1 launch of CUDA graphs" in said[1]
    assert said[2] == "unknown" and said[3].startswith("GPU 0: 1 launch of CUDA graphs was not recorded: busy for at least 3.07 %")


def test_gpu_profile_of_a_model(program):
    said = program("""
        r = tare.ModelProfiler(model=len).gpu_profile([1, 2])
        few = tare.ModelProfiler(model=len).gpu_profile([1, 2], track_kernels=False)
        print(json.dumps([r["kernels"][0]["count"], r["memory_transfers"][0]["bytes"], r["nvtx_ranges"], round(r["busy"], 3), r["runs"],
                          r["idle"][0]["device"], str(r["modules"]), r["document"]["schema"], "kernels" in few]))
    """)
    assert said[:6] == [100, 1 << 20, [], 0.031, 10, 0] and said[6] == "unknown" and said[7].startswith("tare.gpu/1") and said[8] is False


class Allocator:
    """torch.cuda as far as memory is asked for: a GPU's allocator cannot be had without a GPU."""

    now = most = given = freed = pieces = 0

    def is_initialized(self):
        return True

    def take(self, size):
        self.now, self.given, self.pieces = self.now + size, self.given + size, self.pieces + 1
        self.most = max(self.most, self.now)

    def give(self, size):
        self.now, self.freed = self.now - size, self.freed + size

    def memory_allocated(self, device):
        return self.now

    memory_reserved = memory_allocated

    def max_memory_allocated(self, device):
        return self.most

    def reset_peak_memory_stats(self, device):
        self.most = self.now

    def memory_stats(self, device):
        return {"allocation.all.allocated": self.pieces, "allocated_bytes.all.allocated": self.given, "allocated_bytes.all.freed": self.freed}


def test_memory_of_layers_and_runs(tare_package, monkeypatch):
    """Outer takes 100, inner takes 50 and frees it and keeps 10, then outer takes 5 more and frees all but 3."""
    torch = pytest.importorskip("torch")
    from tare import _gpu_memory

    cuda = Allocator()
    monkeypatch.setattr(_gpu_memory, "allocator", lambda: cuda)

    class Inner(torch.nn.Module):
        def forward(self, x):
            cuda.take(50), cuda.give(50), cuda.take(10)
            return x

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            cuda.take(100)
            x = self.inner(self.inner(x))
            cuda.take(5), cuda.give(122)
            return x

    model = Outer()
    cuda.take(1000)
    layers = _gpu_memory.memory_of_layers(model, lambda: model(1), "cuda")
    assert layers["inner"] == {"calls": 2, "before": 1100, "peak": 1160, "own_peak": 50, "kept": 20}
    assert layers["(model itself)"] == {"calls": 1, "before": 1000, "peak": 1160, "own_peak": 160, "kept": 3}
    assert not model._forward_hooks and not model.inner._forward_pre_hooks
    cuda.give(3)
    seen = _gpu_memory.memory_of_runs(lambda: (model(1), cuda.give(3)), 12, "cuda", True)
    assert (seen["before"], seen["peak"], seen["after"]) == (1000, 1160, 1000) and seen["snapshots"][3] == {"run": 3, "allocated": 1000, "peak": 1160}
    assert seen["per_run"] == {"allocations": 6, "allocated_bytes": 225, "freed_bytes": 225}
    assert seen["growth"]["leak"] is not True


class Recorder:
    """torch.cuda.memory as far as its record of allocations goes."""

    def __init__(self, entries):
        self.entries, self.calls = entries, []

    def _record_memory_history(self, enabled="all", **options):
        self.calls.append(enabled)

    def _snapshot(self):
        return {"device_traces": [self.entries]}


def entry(action, addr, size, *frames):
    return {"action": action, "addr": addr, "size": size, "frames": [{"filename": f, "line": n, "name": name} for f, n, name in frames]}


def test_memory_by_site(tare_package, monkeypatch):
    """Two lines, one of them twice; what was freed before the peak, or taken after it, does not count, nor what another run took before."""
    torch = pytest.importorskip("torch")
    from tare import _gpu_memory

    inside, ours = (torch.__file__.replace("__init__", "nn/functional"), 7, "linear"), (_gpu_memory.__file__, 1, "memory_by_site")
    cuda = Allocator()
    cuda.memory = Recorder([
        entry("segment_alloc", 1, 9999), entry("alloc", 1, 100, inside, ("net.py", 3, "forward")), entry("alloc", 2, 50, ("net.py", 4, "forward")),
        entry("free_requested", 2, 50), entry("free_completed", 2, 50), entry("alloc", 2, 60, inside, ("net.py", 3, "forward")),
        entry("alloc", 3, 30, inside, ours, ("caller.py", 1, "main")), entry("alloc", 5, 20, ours), entry("free_requested", 77, 500), entry("alloc", 4, 80, ("net.py", 9, "late")),
    ])
    monkeypatch.setattr(_gpu_memory, "allocator", lambda: cuda)
    ran = []
    assert _gpu_memory.memory_by_site(lambda: ran.append(1), "cuda") == [
        {"file": "net.py", "line": 3, "function": "forward", "bytes": 160, "pieces": 2}, {"file": inside[0], "line": 7, "function": "linear", "bytes": 30, "pieces": 1},
        {"file": None, "line": None, "function": None, "bytes": 20, "pieces": 1},
    ]
    assert ran == [1] and cuda.memory.calls == ["all", None]
    with pytest.raises(ZeroDivisionError):
        _gpu_memory.memory_by_site(lambda: 1 / 0, "cuda:0")
    assert cuda.memory.calls[-1] is None, "the record ends with a run that fails, too"
    monkeypatch.setattr(_gpu_memory, "_RECORDED", 9)
    assert "more than 9" in _gpu_memory.memory_by_site(int, "cuda").reason
    monkeypatch.setattr(torch._C, "_cuda_isHistoryEnabled", lambda: True, raising=False)
    assert "itself records" in _gpu_memory.memory_by_site(int, "cuda").reason and cuda.memory.calls[-1] is None
    monkeypatch.setattr(torch._C, "_cuda_isHistoryEnabled", lambda: False, raising=False)
    cuda.memory = object()
    assert "does not record" in _gpu_memory.memory_by_site(int, "cuda").reason


def test_allocated_memory_of_blocks(tare_package, monkeypatch):
    """The counters are the program's and are not set back: a peak that was reached before says so."""
    from tare import _performance

    moments = iter([{}, {"cuda:0": {"allocated": 5 << 20, "peak": 9 << 20, "reserved": 0}}] + 2 * [{"cuda:0": {"allocated": 1, "peak": 9 << 20, "reserved": 0}}])
    monkeypatch.setattr(_performance, "memory_now", lambda: next(moments))
    profiler = tare_package.PerformanceProfiler(track_system=False)
    with profiler.profile("first"):
        pass
    assert profiler.get_metrics().memory.peak_gpu_allocated_mb == pytest.approx((9 << 20) / _performance.MB)
    with profiler.profile("second"):
        pass
    assert "earlier peak" in profiler.get_metrics().memory.peak_gpu_allocated_mb.reason
    blind = tare_package.PerformanceProfiler(track_system=False, track_gpu=False)
    with blind.profile("x"):
        pass
    assert "track_gpu" in blind.get_metrics().memory.peak_gpu_allocated_mb.reason
