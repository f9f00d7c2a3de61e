# SPDX-License-Identifier: MIT
"""`tare run --gpu`: the injected library in a program that loads it as the CUDA driver would, with a libcupti of known
behaviour (tests/fake_cupti). What real GPUs gave is in bench/results.md: there is none where these tests run."""

import json
import re
import subprocess

import pytest


@pytest.fixture(scope="session")
def fakes(root):
    made = ["build/tests/libfake-cupti.so", "build/tests/cuda-program"]
    done = subprocess.run(["make", "-s", "--no-print-directory", *made], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [root / path for path in made]


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
    assert steps["step_ns"]["p50"] == pytest.approx(1_000_000, abs=50) and steps["busy"] == pytest.approx(0.03, abs=1e-3)


def test_ranges_of_nvtx(recorded):
    p = recorded()
    (named,) = p["ranges"]
    assert named["name"].startswith("my range") and named["count"] == 1
    # the records are made at the end, when no range is open any more; those of a running program join: test_killed


def test_killed(recorded):
    """What was flushed is there, ranges joined by CUPTI's own numbers; the end is told to be missing."""
    p = recorded("kill", status=137)
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
    assert len(rows) == 19
