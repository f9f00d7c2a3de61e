# SPDX-License-Identifier: MIT
"""tare.IOOptimizer: every way gives the same bytes, bad files are named, and what is stored comes back equal or not at all."""

import importlib.util
import io as streams
import os
import random
import subprocess
import threading

import numpy
import pytest

import tare
from tare import _tare as low
from tare import _tune_files as files
from tare._tune import first_difference

MIB = 1 << 20


@pytest.fixture
def io():
    return tare.IOOptimizer(tare.DataOptimizationConfig())


def write(path, n):
    path.write_bytes(random.Random(n).randbytes(n))
    return path


# ---- ways ----


@pytest.mark.parametrize("n", [1, 4095, 4096, 4097, MIB, 3 * MIB + 17])
def test_every_way_gives_the_same_bytes(tmp_path, n):
    path = write(tmp_path / "f", n)
    want = path.read_bytes()
    plain = os.open(path, os.O_RDONLY)
    try:
        direct = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        direct = None
    for way in ("read", "threads", "direct", "uring"):
        fd = plain if way in ("read", "threads") else direct
        if fd is None or (way == "uring" and low.uring_refused()):
            continue
        for depth, piece in ((1, 4096), (3, 8192), (8, MIB), (128, 4096)):
            assert low.file_read(fd, 0, n, way, "f", depth=depth, piece=piece) == want, (way, depth, piece)
        assert direct is None or low.file_read(direct, 0, n, "read", "f", piece=4096) == want  # whole blocks go beside, not past the end
        if n > 4096:
            assert low.file_read(fd, 4096, n - 4096, way, "f", depth=2, piece=4096) == want[4096:]
        with pytest.raises(OSError, match="f: became shorter while it was read"):
            low.file_read(fd, 0, n + 5000, way, "f", depth=2, piece=4096)
    with pytest.raises(ValueError, match="is no way to read"):
        low.file_read(plain, 0, 1, "magic", "f")
    with pytest.raises(ValueError, match="depth 1 to 128"):
        low.file_read(plain, 0, 1, "read", "f", depth=0)
    with pytest.raises(ValueError, match="multiples of 4096"):
        low.file_read(plain, 1, 1, "direct", "f")
    with pytest.raises(OSError, match="Bad file descriptor"):
        low.file_read(9999, 0, 1, "read", "f")


def test_a_reader_in_every_way(io, tmp_path):
    path = write(tmp_path / "f", 20 * MIB + 5)
    want = path.read_bytes()
    reader = io.optimize_file_reading(path)
    assert reader.plan["way"] in ("read", "threads") and reader() == want
    assert {"bytes", "bytes_per_s", "resident_before", "resident_after"} <= set(reader.last) and reader.last["bytes"] == len(want)
    for way in ("read", "threads", "direct", "uring"):
        reader.plan = {"way": way}
        assert reader.read() == want and b"".join(reader.iter_chunks(3 * MIB)) == want, way
        assert reader.as_array("u1").tobytes() == want


def test_a_way_that_is_refused_is_noted_and_read_otherwise(io, tmp_path, monkeypatch):
    path = write(tmp_path / "f", 10000)
    reader = io.optimize_file_reading(path)
    real = files._tare.file_read

    def refuse(fd, offset, n, way, name, **more):
        if way == "uring":
            raise OSError(38, "Function not implemented")
        return real(fd, offset, n, way, name, **more)

    monkeypatch.setattr(files._tare, "file_read", refuse)
    reader.plan = {"way": "uring"}
    assert reader.read() == path.read_bytes()
    assert reader.plan["way"] == "threads" and "uring was refused" in reader.notes[0] and "note" in str(reader)


def test_the_plan_and_its_reasons(io, tmp_path, monkeypatch):
    small = io.optimize_file_reading(write(tmp_path / "small", 100))
    assert small.plan == {"way": "read"} and "one read is as good as anything" in small.tuned.reasons
    warm = write(tmp_path / "warm", 9 * MIB)
    warm.read_bytes()
    if io.optimize_file_reading(warm).facts["resident"][0] == 1:
        assert "it is in memory already" in io.optimize_file_reading(warm).tuned.reasons
    packed = tmp_path / "x.gz"
    packed.write_bytes(b"\x1f\x8b\x08" + bytes(20))
    reader = io.optimize_file_reading(packed)
    assert reader.facts["packed"] == "gzip" and reader.read() == packed.read_bytes()
    network = dict(small.facts, local=False, file_system="nfs")
    monkeypatch.setattr(files._tare, "file_facts", lambda fd, name: network)
    reader = io.optimize_file_reading(tmp_path / "small", mmap=True)
    assert reader.plan == {"way": "read"} and reader.tuned.verdict == "refused" and "not used on nfs" in reader.tuned.reasons[-1]


def test_a_cold_file_is_measured_and_the_judge_decides(io, tmp_path, monkeypatch):
    path = write(tmp_path / "cold", 3 * MIB)
    monkeypatch.setattr(files, "SMALL", 0)
    monkeypatch.setattr(files, "PART", 64 * 1024)
    monkeypatch.setattr(files._tare, "file_resident", lambda fd, at, n: (0.0, "made up"))
    facts = files._tare.file_facts
    monkeypatch.setattr(files._tare, "file_facts", lambda fd, name: dict(facts(fd, name), resident=(0.0, "made up")))
    monkeypatch.setattr(files, "_proved", {})
    for verdict, way in (("no_gain", "read"), ("confirmed", "threads")):

        def judge(base, candidate, *, plan, **_):
            assert base() > 0 and candidate() > 0
            return tare.Tuned("reading", plan, verdict, gain=1.5)

        monkeypatch.setattr(files._tune, "confirm", judge)
        reader = io.optimize_file_reading(path)
        assert reader.plan["way"] == way and reader.tuned.verdict == verdict and reader() == path.read_bytes()
        assert "0% in memory before" in reader.tuned.reasons[-1]
        assert {"way": "direct"} in [plan for plan, _ in reader.tuned.rejected]  # it may be read again
    small = write(tmp_path / "small", 100_000)
    assert io.optimize_file_reading(small).plan["way"] == "threads"  # confirmed on this disk


# ---- bad files ----


def test_bad_files(io, tmp_path):
    with pytest.raises(FileNotFoundError):
        io.optimize_file_reading(tmp_path / "missing")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        io.optimize_file_reading(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe: is a pipe, no regular file"):
        io.optimize_file_reading(tmp_path / "pipe")
    with pytest.raises(ValueError, match="device or socket"):
        io.optimize_file_reading("/dev/null")
    assert io.optimize_file_reading("/proc/self/comm").read().strip()  # 0 bytes long, as the kernel tells
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    reader = io.optimize_file_reading(empty)
    assert reader() == b"" and list(reader.iter_chunks()) == [] and reader.as_array("u1").size == 0


def test_no_permission(python, tmp_path):
    path = write(tmp_path / "secret", 10)
    path.chmod(0)
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    python("import tare, sys\ntry: tare.IOOptimizer().optimize_file_reading(sys.argv[1])\nexcept PermissionError: pass\nelse: raise SystemExit(1)", path)


def test_cut_while_it_is_read(io, tmp_path):
    path = write(tmp_path / "f", 4 * MIB)
    chunks = io.optimize_file_reading(path).iter_chunks(MIB)
    assert len(next(chunks)) == MIB
    os.truncate(path, MIB)
    with pytest.raises(OSError, match="became shorter while it was read"):
        list(chunks) and list(chunks)


def test_chunks_and_numbers_of_bad_sizes(io, tmp_path):
    reader = io.optimize_file_reading(write(tmp_path / "f", 10))
    with pytest.raises(ValueError, match="1 byte or more"):
        next(reader.iter_chunks(0))
    with pytest.raises(ValueError, match="not whole numbers of 4"):
        reader.as_array("f4")
    with pytest.raises(ValueError, match="of what dtype"):
        reader.as_array()
    numpy.save(tmp_path / "a.npy", numpy.arange(12).reshape(3, 4))
    for mmap in (False, True):
        array = io.optimize_file_reading(tmp_path / "a.npy", mmap=mmap).as_array()
        assert array.tolist() == numpy.arange(12).reshape(3, 4).tolist() and not array.flags.writeable


def test_text(io, tmp_path):
    (tmp_path / "t").write_text("grün\n", encoding="utf-8")
    assert io.optimize_file_reading(tmp_path / "t", encoding="utf-8")() == "grün\n"


# ---- many files ----


def test_prefetch_gives_all_in_order_and_errors_in_their_place(io, tmp_path):
    paths = [write(tmp_path / f"{i}", i * 7 % 300) for i in range(1100)]
    reader = io.optimize_file_reading(paths[0])
    assert [(path, data) for path, data in reader.prefetch(paths)] == [(path, path.read_bytes()) for path in paths]
    assert reader.last["bytes"] == sum(path.stat().st_size for path in paths)
    os.unlink(paths[600])
    seen = []
    with pytest.raises(FileNotFoundError) as missing:
        for path, _ in reader.prefetch(paths):
            seen.append(path)
    assert seen == paths[:600] and missing.value.filename == str(paths[600])
    with pytest.raises(IsADirectoryError):
        list(reader.prefetch([tmp_path]))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="no regular file"):
        list(reader.prefetch([tmp_path / "pipe"]))
    assert list(reader.prefetch([])) == []


@pytest.mark.parametrize("at_a_time", [0, 1, 8, 16, 17, 128, 1000])
def test_many_files_in_every_way(tmp_path, at_a_time):
    os.mkfifo(tmp_path / "pipe")
    paths = [write(tmp_path / f"{i}", i * 977 % 9001) for i in range(300)] + [tmp_path, tmp_path / "missing", tmp_path / "pipe", write(tmp_path / "big", 3 * MIB)]
    random.Random(at_a_time).shuffle(paths)
    want = [path.read_bytes() if path.is_file() else {"missing": 2, "pipe": -1}.get(path.name, 21) for path in paths]
    for path in paths:
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(2):  # cold, where the file system lets it, and warm
        assert low.files_read([os.fsencode(path) for path in paths], at_a_time) == want
    assert len(os.listdir("/proc/self/fd")) == before
    assert low.files_read([], at_a_time) == [] and low.files_read([os.fsencode(paths[want.index(2)])] * 40, at_a_time) == [2] * 40


def test_large_files_are_not_all_read_ahead(io, tmp_path, monkeypatch):
    paths = [write(tmp_path / f"{i}", MIB + i) for i in range(40)] + [write(tmp_path / "small", 10)]
    for at_a_time in (1, 4, 64):
        got = low.files_read([os.fsencode(path) for path in paths], at_a_time, 5 * MIB)
        there = [i for i, data in enumerate(got) if data != -3]
        assert 4 <= len(there) <= 5 and all(got[i] == paths[i].read_bytes() for i in there)
        assert low.files_read([os.fsencode(paths[0])], at_a_time, 1) == [paths[0].read_bytes()]  # one at least
    monkeypatch.setattr(files, "BYTES_AHEAD", 3 * MIB)
    assert [data for _, data in io.optimize_file_reading(paths[0]).prefetch(paths)] == [path.read_bytes() for path in paths]


# ---- storing ----

DATA = [
    b"", b"abc" * 5000, bytearray(b"xyz"), "text \ud800 with a lone half", "grün" * 3000, numpy.arange(5000, dtype="i2").reshape(50, 100),
    numpy.array(["a", "bc"]), numpy.zeros((0, 3)), numpy.asfortranarray(numpy.ones((2, 3))), {"a": numpy.arange(3), "names": numpy.array([numpy.nan])},
    [1, 2.5, None, True, "x", {"k": [float("inf")]}], {"rows": [["a", 1]] * 100}, -0.0, None,
]  # fmt: skip


@pytest.mark.parametrize("asked", ["auto", "none", "zstd", "lz4", "gzip", None])
def test_what_is_stored_comes_back_equal(tmp_path, asked):
    try:
        low.pack(files._ASKED.get(asked) or "zlib", 1, b"") if asked in ("zstd", "lz4", "gzip") else None
    except NotImplementedError as missing:
        pytest.skip(str(missing))
    io = tare.IOOptimizer(tare.DataOptimizationConfig(compression=asked))
    for data in DATA:
        stored = io.optimize_data_storage(data, tmp_path / "out")
        want = bytes(data) if isinstance(data, bytearray) else data
        assert first_difference(io.load(tmp_path / "out"), want) is None
        assert first_difference(io.optimize_file_reading(tmp_path / "out")(), want) is None
        assert (tmp_path / "out").stat().st_size == stored.stored + 56 and str(stored)
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch in this environment (make deps)")
def test_a_tensor_comes_back_equal(python):
    python("""
        import tare, torch
        io, data = tare.IOOptimizer(), torch.arange(6.0).reshape(2, 3)
        io.optimize_data_storage(data, "out")
        assert torch.equal(io.load("out"), data) and io.load("out").dtype == data.dtype
        try:
            io.optimize_data_storage(data.bfloat16(), "other")
        except TypeError as no:
            assert "bfloat16 cannot be stored" in str(no)
        else:
            raise AssertionError("no error")
    """)


def test_the_codec_is_chosen_by_ratio_and_speed(io, tmp_path, monkeypatch):
    stored = io.optimize_data_storage(random.Random(1).randbytes(100_000), tmp_path / "noise")
    assert stored.codec == "none" and "no codec makes it 1.1 times smaller" in stored.reasons
    speeds = {"zstd": (4.0, 1e9), "lz4": (3.0, 4e9), "zlib": (5.0, 1e8)}
    monkeypatch.setattr(files, "_try_codec", lambda c, *_: {"codec": c, "ratio": speeds[c][0], "pack_bytes_per_s": 1e8, "unpack_bytes_per_s": speeds[c][1]})
    for rate, codec in ((1e6, "zlib"), (1e8, "zstd"), (2e9, "lz4"), (1e11, "none")):
        monkeypatch.setattr(files, "_disk_rate", lambda folder, excerpt, rate=rate: rate)
        stored = io.optimize_data_storage(b"abcd" * 10_000, tmp_path / "x")
        assert stored.codec == codec, rate
    assert io.load(tmp_path / "x") == b"abcd" * 10_000


def test_a_codec_that_packs_less_is_not_chosen():
    tried = files._try_codec("lz4", b"abcd" * 2000, 0x7E000001)
    assert tried.get("why", "").startswith(("2113929217 bytes are more than it packs", "lz4: ")), tried
    assert low.pack_room("zlib", 2**40) > 2**40


def test_what_would_not_come_back_equal_is_refused(io, tmp_path):
    for data in ({1: 2}, (1, 2), object(), {"a", "b"}, numpy.array([None]), [b"x"], {"a": numpy.array([None])}):
        with pytest.raises(TypeError, match="cannot be stored"):
            io.optimize_data_storage(data, tmp_path / "x")
    with pytest.raises(ValueError, match="compression is one of"):
        io.config.compression = "rar"
        io.optimize_data_storage(b"", tmp_path / "x")
    assert os.listdir(tmp_path) == []


def test_damage_is_found_wherever_it_is(io, tmp_path):
    path = tmp_path / "x"
    for codec in ("none", "zlib"):
        io.config.compression = codec
        io.optimize_data_storage("some text, " * 40, path)
        good = path.read_bytes()
        rng = random.Random(3)
        for at in [*range(min(120, len(good))), *(rng.randrange(len(good)) for _ in range(100))]:
            path.write_bytes(good[:at] + bytes([good[at] ^ (1 << rng.randrange(8))]) + good[at + 1 :])
            with pytest.raises(ValueError, match="x: "):
                io.load(path)
        for n in range(0, len(good), 7):
            path.write_bytes(good[:n])
            with pytest.raises(ValueError, match="x: "):
                io.load(path)
        path.write_bytes(good + b"more")
        with pytest.raises(ValueError, match="cut or was added to"):
            io.load(path)


def made_up(kind, raw):
    """A file whose sums are right, whatever is in it."""
    return low.stored_head("none", kind, raw, raw) + raw


def test_files_that_somebody_made_up_are_named(io, tmp_path):
    path, npz = tmp_path / "x", streams.BytesIO()
    numpy.savez_compressed(npz, **{"0": numpy.zeros(10**6), "names": numpy.array(["a"])})
    head = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }"
    lies = [
        ("json", b"[" * 100_000), ("json", b"{"), ("json", b"\xff"), ("text", b"\xff"), ("array", b""), ("array", b"PK\3\4"), ("array", b"\x80\x04."),
        ("array", (head % 9).ljust(127) + b"\n" + bytes(8)), ("arrays", b"zip"), ("arrays", npz.getvalue()), ("tensor", b"x"), ("pickle", b"\x80\x04."),
    ]  # fmt: skip
    for kind, raw in lies:
        path.write_bytes(made_up(kind, raw))
        with pytest.raises(ValueError, match="x: (is no|holds data of the kind)"):
            io.load(path)


def test_a_file_that_would_not_fit_memory_is_refused_before_it_is_unpacked(io, files_free, tmp_path):
    io.config.compression = "gzip"
    io.optimize_data_storage(bytes(MIB), tmp_path / "x")
    files_free(MIB - 1)
    with pytest.raises(ValueError, match="x: is 1048576 bytes unpacked, more than the 1048575 that are free"):
        io.load(tmp_path / "x")
    files_free(MIB)
    assert io.load(tmp_path / "x") == bytes(MIB)


@pytest.fixture
def files_free(monkeypatch):
    return lambda n: monkeypatch.setattr(files, "free_bytes", lambda: n)


def test_writers_of_the_same_file_do_not_disturb_each_other(io, tmp_path):
    failed, path = [], tmp_path / "x"

    def write(mark):
        try:
            for _ in range(30):
                io.optimize_data_storage(mark * 20_000, path)
        except Exception as error:
            failed.append(error)

    io.config.compression = "none"
    writers = [threading.Thread(target=write, args=(mark,)) for mark in (b"a", b"b", b"c")]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        if path.exists():
            assert len(set(io.load(path))) == 1  # one of them, whole
    assert not failed and os.listdir(tmp_path) == ["x"]


def test_a_full_file_system_leaves_the_old_file(io, tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", place], capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here")
    try:
        io.config.compression = "none"
        io.optimize_data_storage(b"old", place / "x")
        with pytest.raises(OSError, match="x: cannot write: No space left on device"):
            io.optimize_data_storage(os.urandom(MIB), place / "x")
        assert io.load(place / "x") == b"old" and os.listdir(place) == ["x"]
        io.config.compression = "auto"
        assert io.optimize_data_storage(b"abcd" * MIB, place / "x").codec in ("zstd", "lz4", "zlib")  # fits once packed
        assert io.load(place / "x") == b"abcd" * MIB
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_full_disk_leaves_the_old_file(python, tmp_path):
    python("""
        import os, resource, signal, tare
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        io = tare.IOOptimizer(tare.DataOptimizationConfig(compression="none"))
        io.optimize_data_storage(b"old", "out")
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            io.optimize_data_storage(os.urandom(1_000_000), "out")
        except OSError as full:
            assert "out" in str(full), full
        else:
            raise AssertionError("no error")
        assert io.load("out") == b"old" and sorted(os.listdir(".")) == ["out", "script.py"], os.listdir(".")
        for path in ("no/such/folder/x", "."):
            try:
                io.optimize_data_storage(b"", path)
            except (OSError, ValueError) as bad:
                assert path in str(bad), bad
            else:
                raise AssertionError(path)
    """)
