# SPDX-License-Identifier: MIT
"""What can go wrong while a GPU is recorded, each with the libcupti of tests/fake_cupti: what the program says and how it ends never
changes, and the trace says what it does not hold."""

import ctypes
import json
import os
import shutil
import subprocess

import made
import pytest
from test_gpu import fakes, notes, recorded  # noqa: F401  (fixtures)


def test_a_libcupti_that_is_too_old(recorded, fakes):
    old, = made.make("build/tests/libfake-cupti-old.so")
    p = recorded(env={"TARE_CUPTI": old})
    assert "cuptiActivityRegisterCallbacks" in notes(p) and "too old" in notes(p) and p["devices"] == []


def test_a_file_that_is_no_library(recorded, tmp_path):
    (tmp_path / "libcupti.so").write_text("not ELF")
    p = recorded(env={"TARE_CUPTI": str(tmp_path / "libcupti.so")})
    assert "cannot be loaded" in notes(p) and p["devices"] == []


def test_terminated(recorded):
    """SIGTERM is the program's: nobody catches it in its place. What was flushed is there."""
    p = recorded("term", status=143)
    assert p["devices"][0]["operations"] == 101


def test_a_child_that_ends_as_programs_do(recorded, tare, tmp_path):
    """Its exit handlers are the parent's, its ranges nobody's: nothing comes twice, and nothing ends too early."""
    p = recorded("fork-exit")
    assert p["devices"][0]["operations"] == 101 and len(p["devices"]) == 1
    assert {r["name"][:8] for r in p["ranges"]} == {"my range"}
    assert "incomplete" not in tare("report", "--gpu", tmp_path / "gpu.tare").stdout


def test_spawned(recorded):
    """Each process that uses CUDA has its part in the trace."""
    p = recorded("spawn")
    assert [d["operations"] for d in p["devices"]] == [101, 101]
    assert len({n["pid"] for n in p["notes"]}) == 2


def test_forked_before_it_uses_cuda(recorded):
    """What the parent had open when it forked is not the child's."""
    p = recorded("nvtx-first")
    assert p["devices"][0]["operations"] == 101
    assert [(r["name"][:8], r["count"], r["open"]) for r in p["ranges"]] == [("my range", 1, 0)]


def test_unloaded_by_the_program(recorded):
    assert recorded("dlclose")["devices"][0]["operations"] == 101


def test_two_copies_of_nvtx(recorded):
    assert {r["name"][:8]: r["count"] for r in recorded("two")["ranges"]} == {"my range": 1, "of the o": 1}


def test_a_thread_that_ends_within_a_range(recorded):
    """It has no end, so its time is not known: it is counted as open, not as one of no length."""
    ranges = {r["name"][:8]: r for r in recorded("left-open")["ranges"]}
    assert ranges["left ope"]["open"] == 1 and ranges["left ope"]["count"] == 1 and ranges["left ope"]["total_ns"] == 0
    assert ranges["my range"]["open"] == 0 and ranges["my range"]["total_ns"] > 0


@pytest.mark.parametrize("fault, word", [("forward", "forward"), ("back", "back")])
def test_the_clock_is_set(recorded, fault, word):
    """By an hour, while the program runs: times go on as if it had not been."""
    p = recorded("_exit", fault=fault)
    assert f"the clock was set {word} by 3600.000 s" in notes(p)
    (device,) = p["devices"]
    assert device["operations"] == 102 and device["wall_ns"] < 60e9 and device["busy_ns"] == 101 * 30_000 + 100_000


def test_a_clock_that_answers_late(recorded):
    """A look at the clock that took long is not a clock that was set: neither it, nor the next one."""
    assert "the clock was set" not in notes(recorded("_exit", fault="slow"))


def test_more_names_than_are_kept(recorded):
    p = recorded(fault="names")
    assert p["devices"][0]["operations"] == 150_000
    assert not any(p["lost"][what] for what in ("dropped", "untimed", "unread", "unwritten", "ranges"))
    assert {k["count"] for k in p["kernels"]} == {1}, "no two went by one name"


def test_a_name_that_grows_without_end(recorded, build, tmp_path):
    """600 bytes that mean 2^60: the report comes with the name as it was, and the demangler's child has no more memory than 16 MiB."""

    def most_memory():
        child = subprocess.Popen([os.environ.get("TARE", str(build / "tare")), "report", "--gpu", tmp_path / "gpu.tare"], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = status
        assert status == 0
        return used.ru_maxrss

    recorded()
    usual = most_memory()
    (kernel,) = recorded(fault="grow")["kernels"]
    assert kernel["full"].startswith("_Z1f1AIiiES_IS0_S0_E") and kernel["count"] == 100
    assert most_memory() < usual + 17 * 1024, "KiB"


def test_launches_of_many_threads(recorded):
    p = recorded("launches", fault="threads")
    assert sum(k["count"] for k in p["kernels"]) + p["lost"]["dropped"] == 8 * 5000, "what there was no buffer for is counted"
    assert p["lost"]["unread"] == p["lost"]["unwritten"] == 0 and p["kernels"][0]["count"] > 5000


def test_the_program_ends_while_threads_launch(recorded):
    p = recorded("racing", fault="threads")
    assert p["kernels"][0]["count"] > 0 and p["lost"]["unread"] == 0


@pytest.mark.parametrize("flavor", ["asan", "tsan"])
@pytest.mark.parametrize("how", ["launches", "racing", "ranges", "fork-exit"])
def test_under_sanitizers(tmp_path, flavor, how):
    """Nothing that the sanitizers know of: threads that launch, our own that collects, the end."""
    names = ("libtare-gpu.so", "tests/libfake-cupti.so", "tests/cuda-program")
    library, cupti, program = map(str, made.make("FLAVOR=" + flavor, *(f"build/{flavor}/{name}" for name in names)))
    env = dict(os.environ, CUDA_INJECTION64_PATH=library, TARE_GPU_TRACE=str(tmp_path / "x.tare"), TARE_CUPTI=cupti, FAKE_CUPTI="threads",
               ASAN_OPTIONS="detect_leaks=0", TSAN_OPTIONS="halt_on_error=1 exitcode=66")
    done = subprocess.run([program, how], env=env, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (7, ""), done.stderr[-3000:]


def test_a_full_disk(tare, fakes, build, tmp_path):
    """A real one: a small tmpfs. The program goes on; the trace can be read and says what is missing."""
    library, program = fakes
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "none", folder], check=False,
                                           capture_output=True).returncode != 0:
        pytest.skip("test_a_full_disk: a tmpfs cannot be mounted here")
    try:
        done = tare("run", "--gpu", "--no-save", "-q", "--trace", folder / "x.tare", "--", program, "_exit", status=7,
                    env={"TARE_CUPTI": str(library), "FAKE_CUPTI": "many"})
        assert done.stdout == "output of the program\n"
        shutil.copy(folder / "x.tare", tmp_path / "x.tare")
    finally:
        subprocess.run(["umount", folder], check=True)
    p = json.loads(tare("report", "--gpu", "--json", tmp_path / "x.tare").stdout)
    seen = sum(k["count"] for k in p["kernels"])
    assert seen < 6000, "the disk was not full"


def is_secure(path):
    """Whether the kernel would run this set-user-id program with AT_SECURE."""
    libc = ctypes.CDLL(None)
    return os.geteuid() == 0 and libc.getuid() == 0 and not os.statvfs(path).f_flag & os.ST_NOSUID


def test_a_program_with_other_rights(fakes, build, tmp_path):
    """Who may not be told where to write by its caller's environment is not: nothing is recorded."""
    library, program = fakes
    if not is_secure(tmp_path):
        pytest.skip("test_a_program_with_other_rights: needs root and a file system with set-user-id")
    tmp_path.chmod(0o777)
    for parent in list(tmp_path.parents)[:2]:
        parent.chmod(0o755)
    for name, path in (("prog", program), ("libtare-gpu.so", build / "libtare-gpu.so"), ("libcupti.so", library)):
        shutil.copy(path, tmp_path / name)
        os.chmod(tmp_path / name, 0o755)
    env = {"CUDA_INJECTION64_PATH": str(tmp_path / "libtare-gpu.so"), "TARE_GPU_TRACE": str(tmp_path / "x.tare"),
           "TARE_CUPTI": str(tmp_path / "libcupti.so")}
    assert subprocess.run([tmp_path / "prog"], env=env, capture_output=True, check=False).returncode == 7
    assert (tmp_path / "x.tare").exists(), "with its own rights it records"
    (tmp_path / "x.tare").unlink()
    os.chown(tmp_path / "prog", 65534, 65534)
    os.chmod(tmp_path / "prog", 0o4755)
    done = subprocess.run([tmp_path / "prog"], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "output of the program\n", "")
    assert not (tmp_path / "x.tare").exists()


@pytest.mark.parametrize("variable", ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"])
def test_a_variable_that_is_set_is_not_overwritten(tare, fakes, tmp_path, variable):
    done = tare("run", "--gpu", "--trace", tmp_path / "x.tare", "--", fakes[1], status=2, env={variable: "/other.so"})
    assert variable in done.stderr and "/other.so" in done.stderr and done.stdout == ""
    assert not (tmp_path / "x.tare").exists()
