# SPDX-License-Identifier: MIT
"""`tare run --gpu`: the injected library in a program that loads it as the CUDA driver would, with a libcupti of known
behaviour (tests/fake_cupti). What real GPUs gave is in bench/results.md: there is none where these tests run."""

import json
import re
import subprocess
import time

import made
import pytest
from test_export import export, one, parse, strict


@pytest.fixture(scope="session")
def fakes():
    return made.make("build/tests/libfake-cupti.so", "build/tests/cuda-program")


@pytest.fixture
def recorded(tare, fakes, tmp_path):
    """recorded("exit", fault="busy"): run the program, give its GPU profile."""

    def call(how="exit", *options, fault="", status=7, env=None):
        library, program = fakes
        trace = tmp_path / "gpu.tare"
        done = tare("run", "--gpu", *options, "--no-save", "-q", "--trace", trace, "--", program, how, status=status,
                    env={"TARE_CUPTI": str(library), "FAKE_CUPTI": fault, **(env or {})})
        assert done.stdout == "output of the program\n" and done.stderr == ""
        return json.loads(tare("report", "--gpu", "--json", trace).stdout)

    return call


def notes(profile):
    return " ".join(n["text"] for n in profile["notes"])


def test_known_program(recorded):
    p = recorded()
    assert "has no end" not in notes(p)
    (device,) = p["devices"]
    assert device["name"] == "Made-up GPU" and device["multiprocessors"] == 100
    assert device["operations"] == 101
    assert device["busy_ns"] == pytest.approx(100 * 30_000 + 100_000, rel=1e-3)
    assert device["wall_ns"] == pytest.approx(100_000_000 + 80_000, rel=1e-3)
    (kernel,) = p["kernels"]
    assert kernel["count"] == 100 and kernel["total_ns"] == 3_000_000 and kernel["blocks"] == 64 and kernel["threads"] == 512
    assert [(c["direction"], c["host_memory"], c["bytes"]) for c in p["copies"]] == [("to-device", "pinned", 1 << 20)]
    assert [(c["name"], c["count"]) for c in p["calls"]] == [("cudaLaunchKernel", 100)]
    assert device["launch_ns"]["p50"] == pytest.approx(20_000, rel=1e-3)
    assert not any(p["lost"].values())
    idle = {i["cause"]: i["ns"] for i in device["idle"]}
    assert idle["launch"] == pytest.approx(99 * 20_000, rel=1e-3)
    assert idle["unknown"] == pytest.approx(950_000, rel=1e-3), "the copy has no call"
    assert idle["host"] == pytest.approx(99 * 950_000, rel=1e-3)
    assert sum(idle.values()) + device["busy_ns"] == pytest.approx(device["wall_ns"], abs=10)
    steps = device["steps"]
    assert steps["found_by"] == "kernels" and steps["count"] == 99 and steps["operations"] == 1
    assert steps["step_ns"]["p50"] == pytest.approx(1_000_000, rel=1e-3) and steps["busy"] == pytest.approx(0.03, abs=1e-3)


def test_ranges_of_nvtx(recorded):
    p = recorded()
    (named,) = p["ranges"]
    assert named["name"].startswith("my range") and named["count"] == 1
    # the records are made at the end, when no range is open any more; those of a running program join: test_killed


def test_killed(recorded):
    """What was flushed is there, ranges joined by CUPTI's own numbers; the end is told to be missing."""
    p = recorded("kill", status=137)
    assert "has no end" in notes(p)
    assert p["devices"][0]["operations"] == 101
    assert p["ranges"][0]["operations"] == 100 and p["ranges"][0]["gpu_ns"] == 3_000_000


@pytest.mark.parametrize("how", ["_exit", "fork"])
def test_other_ends(recorded, how):
    assert recorded(how)["devices"][0]["operations"] == 101


def test_kernels_only(recorded):
    p = recorded("exit", "--no-gpu-calls")
    assert p["calls"] == [] and p["kernels"][0]["count"] == 100
    assert {i["cause"] for i in p["devices"][0]["idle"]} == {"unknown"}


def test_hostile_names_reach_no_terminal(recorded, tare, tmp_path):
    recorded()
    text = tare("report", "--gpu", tmp_path / "gpu.tare").stdout
    assert "\x1b" not in text and "\\x1b[31m" in text


@pytest.mark.parametrize("fault, words", [("busy", "another tool has CUPTI: Some Profiler"), ("nodriver", "no CUDA driver")])
def test_cupti_that_cannot_be_had(recorded, fault, words):
    p = recorded(fault=fault)
    assert words in notes(p) and p["devices"] == []


def test_no_cupti(recorded):
    p = recorded(env={"TARE_CUPTI": "/nowhere/libcupti.so"})
    assert "/nowhere/libcupti.so" in notes(p) and p["devices"] == []


def test_records_without_times_are_counted_not_booked(recorded):
    p = recorded(fault="untimed")
    assert p["lost"]["untimed"] == 100 and p["lost"]["dropped"] == 3
    assert p["kernels"] == [] and p["devices"][0]["operations"] == 1


def test_garbage_in_a_buffer(recorded):
    p = recorded(fault="garbage")
    assert p["lost"]["unread"] == 1 and p["kernels"][0]["count"] == 100


def test_more_than_a_chunk(recorded):
    p = recorded(fault="many")
    assert p["kernels"][0]["count"] == 6000 and p["ranges"] and not any(p["lost"].values())


def test_no_room_on_the_disk(tare, fakes, tmp_path):
    """Nothing can be written while names are told: the program does not notice."""
    library, program = fakes
    full = f'trap "" XFSZ; ulimit -f 1; exec {program} exit'
    done = tare("run", "--gpu", "--no-save", "-q", "--trace", tmp_path / "x.tare", "--", "sh", "-c", full, status=7,
                env={"TARE_CUPTI": str(library), "FAKE_CUPTI": "many", "MALLOC_PERTURB_": "165"})
    assert done.stdout == "output of the program\n"


def test_more_buffers_than_there_are(recorded):
    """A CUPTI that must not get NULL gets a buffer that is thrown away, and counted."""
    p = recorded(fault="greedy")
    assert p["lost"]["unread"] == 1 and p["kernels"][0]["count"] == 100


def test_more_ranges_than_there_is_room_for(recorded):
    """Those left out are counted; of the others every one has its end, so that none is within a wrong one."""
    p = recorded("ranges")
    count = {r["name"]: r["count"] for r in p["ranges"]}
    assert sum(count.values()) + p["lost"]["ranges"] == 4 * (2 * 10_000 + 70) + 1
    longest = sum(r["total_ns"] for r in p["ranges"] if r["name"] in ("outer", "inner"))
    assert longest < 4 * 60e9, "no range stayed open"


def test_another_tool_wants_in(tare, fakes, tmp_path):
    done = tare("run", "--gpu", "--trace", tmp_path / "x.tare", "--", fakes[1], status=2, env={"CUDA_INJECTION64_PATH": "/other.so"})
    assert "CUDA_INJECTION64_PATH" in done.stderr and "/other.so" in done.stderr
    assert not (tmp_path / "x.tare").exists()


def test_a_program_without_cuda(tare, tmp_path):
    tare("run", "--gpu", "-q", "--no-save", "--trace", tmp_path / "x.tare", "--", "true")
    done = tare("report", "--gpu", tmp_path / "x.tare", status=2)
    assert "nothing of a GPU" in done.stderr


TRACKS = ["CUDA calls of thread 4711", "GPU 0 stream 0", "GPU 0 stream 7", "NVTX ranges of thread ", "GPU 0 idle, by cause"]


def check_bars(bars, starts, ends):
    """bars: (track, name, start us, duration us); starts, ends: arrow -> (track, at us). The program of tests/fake_cupti."""
    by_track = {t: sorted(b[1:] for b in bars if b[0].startswith(t)) for t in TRACKS}
    assert sum(map(len, by_track.values())) == len(bars)
    calls, copies, kernels, ranges, idle = by_track.values()
    assert [(n, round(d / 10)) for n, _, d in idle] == [("host", 97)] * 99 + [("unknown", 95)], "the copy has no call"
    ends_of = sorted(k[1] + k[2] for k in kernels)
    assert all(i[1] == pytest.approx(end, abs=0.1) for i, end in zip(idle, ends_of)), "from the end of a kernel to the next"
    assert len(calls) == len(kernels) == 100 and len(copies) == len(ranges) == 1
    assert {c[0] for c in calls} == {"cudaLaunchKernel"} and len({k[0] for k in kernels}) == 1 and copies[0][0] == "copy to-device"
    assert all(c[2] == pytest.approx(10, abs=0.1) for c in calls) and all(k[2] == pytest.approx(30, abs=0.1) for k in kernels)
    assert all(k[1] - c[1] == pytest.approx(20, abs=0.1) for c, k in zip(calls, kernels))
    assert ranges[0][0].startswith("my range") and ranges[0][2] > 0
    assert len(starts) == 100 and len(ends) == 101, "the copy has no call"
    for arrow, (track, at) in starts.items():
        assert track == TRACKS[0] and ends[arrow][0] == TRACKS[2] and ends[arrow][1] - at == pytest.approx(20, abs=0.1)


def test_gpu_lanes_in_chrome(recorded, tare, tmp_path):
    recorded()
    events = strict(export(tare, tmp_path / "gpu.tare", "chrome"))["traceEvents"]
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    track = lambda e: tracks[e["pid"], e["tid"]]  # noqa: E731
    bars = [(track(e), e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
    arrows = [{e["id"]: (track(e), e["ts"]) for e in events if e["ph"] == ph} for ph in "sf"]
    check_bars(bars, *arrows)
    assert {e["args"]["detail"] for e in events if e.get("name") == "copy to-device"} == {"1048576 bytes"}
    assert {e["args"]["detail"] for e in events if e.get("name") == "host"} == {"97 % of it"}
    launched = {e["args"]["detail"].split(" registers")[0] for e in events if e["ph"] == "X" and track(e) == TRACKS[2]}
    assert len(launched) == 1 and re.match(r"grid \d+x\d+x\d+, block \d+x\d+x\d+, \d+$", *launched)


def test_full_names_stand_once_in_chrome(recorded, tare, tmp_path):
    """They were repeated with each of a hundred bars."""
    recorded(fault="template")
    events = strict(export(tare, tmp_path / "gpu.tare", "chrome"))["traceEvents"]
    full = [(e["name"], e["args"]["full"]) for e in events if e["ph"] == "X" and "full" in e.get("args", {})]
    assert full == [("kernel Functor", "void kernel<Functor>(int)")]
    assert sum(e["ph"] == "X" and e["name"] == "kernel Functor" for e in events) == 100


def test_gpu_lanes_in_perfetto(recorded, tare, tmp_path):
    recorded()
    packets = parse(export(tare, tmp_path / "gpu.tare", "perfetto").read_bytes(), "Trace")["packet"]
    tracks = {one(t, "uuid"): one(t, "name") for p in packets for t in p.get("track", []) if "name" in t}
    names = {one(n, "iid"): one(n, "name") for p in packets for d in p.get("interned", []) for n in d["name"]}
    bars, open_, arrows = [], {}, ({}, {})
    for p in sorted((p for p in packets if "event" in p), key=lambda p: one(p, "timestamp")):
        e, at = one(p, "event"), one(p, "timestamp") / 1e3
        if one(e, "type") >= 3:
            continue  # what probes sampled
        track = tracks[one(e, "track_uuid")]
        for found, field in zip(arrows, ("flow", "flow_end")):
            if field in e:
                found[one(e, field)] = (track, at)
        if one(e, "type") == 1:
            open_.setdefault(track, []).append((names[one(e, "name_iid")], at))
        else:
            name, begin = open_[track].pop()
            bars.append((track, name, begin, at - begin))
    assert not any(open_.values())
    check_bars(bars, *arrows)


HELD = [1 << 20, 4 << 20, 3 << 20, 2 << 20]  # what is given back twice counts once; what is taken again was given back


def test_memory_of_a_gpu_in_chrome(recorded, tare, tmp_path):
    p = recorded(fault="memory")
    events = strict(export(tare, tmp_path / "gpu.tare", "chrome"))["traceEvents"]
    held = [(e["ts"], e["args"]["B"]) for e in events if e["ph"] == "C" and e["name"] == "GPU 0 memory"]
    assert [size for _, size in held] == HELD and p["devices"][0]["memory_peak_bytes"] == max(HELD)
    assert [b[0] - a[0] for a, b in zip(held, held[1:])] == [pytest.approx(ms * 1000, abs=1) for ms in (1, 1, 2)]
    assert not any(e["ph"] == "X" and e["name"] == "GPU 0 memory" for e in events)


def test_memory_of_a_gpu_in_perfetto(recorded, tare, tmp_path):
    recorded(fault="memory")
    packets = parse(export(tare, tmp_path / "gpu.tare", "perfetto").read_bytes(), "Trace")["packet"]
    (track,) = [one(t, "uuid") for p in packets for t in p.get("track", []) if t.get("name") == ["GPU 0 memory"]]
    counts = [one(p, "event") for p in packets if "event" in p]
    assert [one(e, "counter") for e in counts if one(e, "track_uuid") == track] == HELD


def of_ranks(fakes, ranks):
    """A shell command: the program once for each of them, at once."""
    return " & ".join(f"RANK={r} LOCAL_RANK={r} WORLD_SIZE=2 {fakes[1]} exit" for r in ranks) + " & wait"


def check_ranks(p, traces):
    job = p["job"]
    assert [(r["rank"], r["local_rank"], r["world_size"]) for r in job["ranks"]] == [(0, 0, 2), (1, 1, 2)]
    assert job["world_size"] == 2 and job["hosts"] == 1 and job["collectives"] == 100 and job["unmatched"] == 0
    fast, slow = job["ranks"]
    assert [fast["trace"], slow["trace"]] == traces and fast["pid"] != slow["pid"] and fast["host"] == slow["host"]
    assert (fast["aligned_by"], slow["aligned_by"]) == ("reference", "one-clock")
    assert abs(slow["offset_ns"]["value"]) < 20_000_000, "one clock: two readings of it, at worst a turn of the scheduler apart"
    assert fast["transfer_ns"] == slow["transfer_ns"] == pytest.approx(100 * 100_000, rel=1e-2)
    assert fast["waiting_ns"] == pytest.approx(100 * 300_000, rel=1e-2) and slow["waiting_ns"] < 100 * 3000
    assert fast["step_ns"]["value"] == pytest.approx(1_000_000, rel=1e-2) and fast["steps"] >= 98
    assert slow["last"] > 98 and slow["last_share"]["lo"] > 0.9 and job["slowest"] == 1
    assert job["compute_skew"] == pytest.approx(2.5, rel=1e-2)
    assert "rank 1 came last into" in job["evidence"]
    assert sorted((d["rank"], d["pid"]) for d in p["devices"]) == [(0, fast["pid"]), (1, slow["pid"])]


def test_ranks_in_one_trace_and_in_two(tare, fakes, tmp_path, root):
    """Two processes of a job: `tare run` around both, or around each."""
    env = {"TARE_CUPTI": str(fakes[0]), "FAKE_CUPTI": "ranks", "FAKE_T0": str(time.time_ns() + 5_000_000_000)}
    run = lambda name, ranks: tare("run", "--gpu", "--no-save", "-q", "--trace", tmp_path / name, "--", "sh", "-c",  # noqa: E731
                                   of_ranks(fakes, ranks), env=env)
    run("both.tare", [0, 1])
    run("a.tare", [1])
    run("b.tare", [0])
    both, a, b = (str(tmp_path / n) for n in ("both.tare", "a.tare", "b.tare"))
    one = json.loads(tare("report", "--gpu", "--json", both).stdout)
    two = json.loads(tare("report", "--json", a, b).stdout)
    check_ranks(one, [both, both])
    check_ranks(two, [b, a])
    text = tare("report", a, b).stdout
    assert "ranks: 2 of 2 on 1 host" in text and "rank 1 came last into" in text and "one-clock" in text
    alone = json.loads(tare("report", "--gpu", "--json", a).stdout)["job"]
    assert "1 of 2 ranks" in alone["unknown"]["ranks"] and alone["ranks"][0]["waiting_ns"] is None
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(two, json.loads((root / "docs/schema/gpu-1.json").read_text()))


def test_several_traces_are_joined_by_their_gpus_alone(tare, tmp_path):
    tare("run", "--gpu", "-q", "--no-save", "--trace", tmp_path / "x.tare", "--", "true")
    done = tare("report", tmp_path / "x.tare", tmp_path / "x.tare", status=2)
    assert "nothing of a GPU" in done.stderr and "x.tare" in done.stderr
    done = tare("report", "--flat", tmp_path / "x.tare", tmp_path / "x.tare", status=2)
    assert "call tree" in done.stderr


def test_another_tool_takes_the_buffers(recorded):
    """What was launched meanwhile is unknown, not idle; the buffers are taken back."""
    p = recorded("stay", fault="taken")
    (device,) = p["devices"]
    assert p["kernels"][0]["count"] == 2, "before and after"
    assert p["lost"]["holes"] == 1 and "launches were seen" not in notes(p), "told by the hole, which a late record can undo"
    assert device["unrecorded_ns"] == pytest.approx(p["lost"]["hole_ns"], rel=0.05) and device["unrecorded_ns"] > 1e9
    idle = sum(i["ns"] for i in device["idle"])
    assert idle + device["busy_ns"] + device["unrecorded_ns"] == pytest.approx(device["wall_ns"], abs=20)
    assert device["busy"] == pytest.approx(device["busy_ns"] / (device["wall_ns"] - device["unrecorded_ns"]), rel=1e-6)


@pytest.mark.parametrize("how, kernels, whole", [("node", "short", False), ("graph", "short", True), ("auto", "short", True), ("auto", "long", False)])
def test_graphs_by_kernels_or_as_a_whole(recorded, how, kernels, whole):
    """auto: what ran before the first capture decides. Nothing is switched once there are graphs: the made-up CUPTI ends the program for
    that, as the real one crashes it."""
    p = recorded("stay", "--gpu-graphs", how, fault=kernels)
    count = {k["name"]: k["count"] for k in p["kernels"]}
    assert ("a CUDA graph" in count) == whole and (count["my_gemm"] < 300 if whole else count["my_gemm"] > 20 * 100)
    chosen = "are recorded as a whole: kernels before the first one took 1.0 us" if whole else "are recorded by their kernels: kernels before the first one took 50.0 us"
    assert (chosen in notes(p)) == (how == "auto")


def test_graphs_of_a_program_that_begins_with_one(recorded):
    p = recorded("exit", "--gpu-graphs", "auto")
    assert "CUDA graphs" not in notes(p), "it has none"


def test_the_schema_holds(recorded, root):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(recorded(), json.loads((root / "docs/schema/gpu-1.json").read_text()))


def test_the_page_lists_the_records_as_the_code_has_them(root):
    rows = re.findall(r"RECORD\((\d+), (\w+),((?:\s*F\(\w+, \w+\))+)\s*\)", (root / "src/trace/gpu_records.def").read_text())
    page = (root / "docs/trace-format.md").read_text()
    for number, name, fields in rows:
        told = re.search(rf"^\| {number} \| {name} \| (.*?) \| .+ \|$", page, re.M)
        assert told, name
        assert re.findall(r"`(\w+)`", told[1]) == re.findall(r"F\((\w+),", fields), name
    assert len(rows) == 24


def test_the_library_needs_no_room_set_aside_for_threads(build):
    """Static TLS is scarce in a program with many libraries: the driver could not load ours then, and nothing would be recorded."""
    told = subprocess.run(["readelf", "-d", build / "libtare-gpu.so"], capture_output=True, text=True, check=True).stdout
    assert "NEEDED" in told and "STATIC_TLS" not in told


def test_the_package_carries_the_library(package):
    assert (package / "tare" / "_lib" / "libtare-gpu.so").exists(), "`tare run --gpu` of an installed package needs it"
