# SPDX-License-Identifier: MIT
"""tare.MemoryOptimizer: what is given back, data in smaller types without a bit lost, the refusals, and work under a cap."""

import importlib.util

import numpy
import pytest

import tare
from tare._tune_memory import free_bytes
from tare._tune_memory import smaller_type as smaller

MIB = 1 << 20


@pytest.fixture
def optimizer():
    return tare.MemoryOptimizer(tare.DataOptimizationConfig())


# ---- smaller types ----


@pytest.mark.parametrize(
    ("array", "becomes"),
    [
        (numpy.array([0, 1, 63, 63]), "int8"),
        (numpy.array([0, 1, 64, 64]), "int16"),  # 64 + 64 does not fit 8 bits
        (numpy.array([-64, -64, 3]), "int8"),
        (numpy.array([0, 20000, 20000]), "int32"),
        (numpy.array([1, 127, 127], numpy.uint64), "uint8"),
        (numpy.array([0.5, 0.5, -0.0, numpy.inf, numpy.nan]), "float32"),
        (numpy.array([1 + 2j, 1 + 2j]), "complex64"),
    ],
)
def test_the_smallest_type_that_holds_all_and_the_sum_of_two(optimizer, array, becomes):
    assert smaller(array)[0] == becomes
    out = optimizer.optimize_memory_usage(array)
    assert out.dtype == becomes and out.astype(array.dtype).tobytes() == array.tobytes()
    assert optimizer.last.before == array.nbytes and optimizer.last.after == out.nbytes and not optimizer.last.refused


@pytest.mark.parametrize(
    ("array", "name", "words"),
    [
        (numpy.array([0.1, 0.2]), "data", "do not come back exactly from float32"),
        (numpy.array([1.7e12 + i for i in range(8)]), "data", "do not come back exactly"),
        (numpy.array([1e300, 1e300]), "data", "do not come back exactly"),
        (numpy.array([2.0**127] * 4), "data", "its sum would overflow"),
        (numpy.arange(10), "data", "all its values are distinct: they may be keys or ids"),
        (numpy.array([2**62, 2**62]), "data", "its sum could overflow"),
        (numpy.array([2**31, 2**31]), "data", "do not fit a smaller type"),
        (numpy.array([1, 1]), "data['user_id']", "keys, ids, labels or times"),
        (numpy.array([1, 1]), "data['labels']", "keys, ids, labels or times"),
        (numpy.array([1, 1], numpy.int8), "data", "int8 is small already"),
        (numpy.array([], numpy.int64), "data", "nothing in it"),
        (numpy.array(["a", None], object), "data", "no smaller type"),
        (numpy.array(["2024-01-01"], "datetime64[ms]"), "data", "no smaller type"),
        (numpy.array([True]), "data", "no smaller type"),
    ],
)
def test_refusals(array, name, words):
    choice, why = smaller(array, name)
    assert choice is None and words in why


def test_a_tolerance_never_merges_values():
    stamps = numpy.array([1.7e12, 1.7e12 + 60_000.0, 1.7e12 + 120_000.0, 1.7e12 + 180_000.0])
    choice, why = smaller(stamps, tolerance=1e-6)  # 4e-8 of a value, and a minute is lost
    assert choice is None and "4 distinct values would become" in why
    assert smaller(numpy.array([0.1, 0.2]), tolerance=1e-6)[0] == "float32"
    assert "above the tolerance" in smaller(numpy.array([0.1]), tolerance=1e-12)[1]
    assert smaller(numpy.array([1e-60, 0.0]), tolerance=0.5)[0] is None  # it would become 0


def test_valid_in_containers_which_are_made_anew(optimizer):
    x = numpy.array([1.0, 1.0, 2.0])
    data = {"x": x, "again": x, "rows": [("a" * 50 + str(i % 3), i) for i in range(30)], "label": numpy.zeros(4, int), "n": None}
    out = optimizer.optimize_memory_usage(data)
    assert data["x"] is x and x.dtype == numpy.float64
    assert out["x"].dtype == numpy.float32 and out["again"] is out["x"] and out["n"] is None
    assert out["rows"] == data["rows"] and len({id(text) for text, _ in out["rows"]}) == 3
    assert out["label"] is data["label"]
    report = optimizer.last
    assert ("data['label']", "its name says keys, ids, labels or times: they are compared and used as indices, not computed with") in report.refused
    assert 0 < report.saved < 1 and "equal texts are one" in str(report) and "left as it is" in str(report)
    loop = []
    loop.append(loop)
    assert optimizer.optimize_memory_usage(loop)[0] is not loop  # and it ends


def test_layout_and_views(optimizer):
    whole = numpy.zeros((1000, 1000), numpy.float32)
    view = whole[:, ::500]
    out = optimizer.optimize_memory_usage(view)
    assert out.flags.c_contiguous and out.tobytes() == view.tobytes()
    assert optimizer.last.before == whole.nbytes and optimizer.last.after == out.nbytes
    turned = numpy.asfortranarray(numpy.ones((3, 4), numpy.float32))
    assert optimizer.optimize_memory_usage(turned) is turned


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch in this environment (make deps)")
def test_tensors(python):
    python("""
        import tare, torch
        optimizer = tare.MemoryOptimizer()
        halves = torch.tensor([0.5, 0.25], dtype=torch.float64)
        out = optimizer.optimize_memory_usage({"x": halves, "tenths": torch.tensor([0.1], dtype=torch.float64), "y": torch.tensor([0, 1]),
                                               "w": torch.ones(2, dtype=torch.float64, requires_grad=True), "t": torch.zeros(4, 6).T})
        assert out["x"].dtype == torch.float32 and torch.equal(out["x"].double(), halves)
        assert out["tenths"].dtype == torch.float64 and out["y"].dtype == torch.int64 and out["w"].requires_grad
        assert out["t"].is_contiguous()
        reasons = dict(optimizer.last.refused)
        assert "losses and embeddings" in reasons["data['y']"] and "gradient" in reasons["data['w']"]
    """)


def test_bad_tolerance(optimizer):
    with pytest.raises(ValueError, match="tolerance is a share"):
        optimizer.optimize_memory_usage([], tolerance=2)


# ---- blocks ----


def test_a_block_gives_back_what_was_freed_and_restores_the_allocator(python):
    done = python("""
        import ctypes, tare
        from tare import _tare
        from tare._unknown import known
        class Info(ctypes.Structure):
            _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]
        mallinfo = ctypes.CDLL(None).mallinfo2
        mallinfo.restype = Info
        def mapped(n):
            before = mallinfo().hblks
            block = bytearray(n)
            return mallinfo().hblks > before
        def big():
            return [bytearray(5000) for _ in range(20000)]
        before = bytearray(20 << 20); del before          # moves the threshold up
        assert not mapped(3 << 20)
        with tare.MemoryOptimizer().memory_context() as m:
            assert mapped(1_200_000) and not mapped(500_000)
            some = big()
            last = some[-1]
            del some
        assert m.policy["mmap_threshold"] == 1 << 20
        assert 20 << 20 <= m.policy["restored"] <= 23 << 20, m.policy
        assert _tare.malloc_threshold() == m.policy["restored"]
        if known(m.peak) and known(m.returned):
            assert m.peak >= 20000 * 5000, m
            assert m.kept <= m.after and m.returned == m.after - m.kept
        print(m)
        try:
            with tare.memory_optimization_context(tare.DataOptimizationConfig(memory_efficient=False)) as m:
                raise KeyError("x")
        except KeyError:
            assert known(m.after) or m.after.reason
            assert any("is off" in line for line in m.findings) and not m.policy
    """)
    assert "at most" in done.stdout and "given back" in done.stdout


# ---- chunks ----


def test_chunks_cover_everything_in_order_and_grow(optimizer):
    data, sizes = list(range(5000)), []

    def note(chunk):
        sizes.append(len(chunk))
        return chunk

    assert [x for chunk in optimizer.process_in_chunks(note, data) for x in chunk] == data
    assert sizes[:4] == [1, 2, 4, 8] and max(sizes) == 1000
    assert list(optimizer.process_in_chunks(note, [])) == []


def test_chunks_stay_under_the_cap(python):
    python("""
        import tare, numpy
        from tare import _memory, _tare
        numpy.ones(10).sum()
        opt = tare.MemoryOptimizer(tare.DataOptimizationConfig(chunk_size=10_000))
        item = 1 << 20
        cap = _memory.resident() + 64 * item
        sizes = []
        def work(chunk):
            block = numpy.ones(len(chunk) * item, numpy.uint8)
            sizes.append(len(chunk))
            return int(block[-1])
        _tare.memory_peak(True)
        done = list(opt.process_in_chunks(work, range(400), cap))
        assert sum(sizes) == 400 and max(sizes) >= 8, sizes
        assert max(sizes) * item <= 64 * item, sizes
        try:
            list(opt.process_in_chunks(work, range(10), _memory.resident() + item // 2))
        except MemoryError as no:
            assert "the cap is" in str(no)
        else:
            raise AssertionError("no MemoryError")
    """)


def test_caps_that_are_none(optimizer):
    with pytest.raises(ValueError, match="is no size above 0"):
        list(optimizer.process_in_chunks(len, [1], "much"))


def test_what_a_control_group_leaves(tmp_path):
    for name, text in (("memory.max", "1000000"), ("memory.current", "900000"), ("memory.stat", "anon 5\nactive_file 300000\ninactive_file 20000\nshmem 7\n")):
        (tmp_path / name).write_text(text)
    assert free_bytes(str(tmp_path)) == 420_000  # files in memory give way
    (tmp_path / "memory.max").write_text("max")
    assert free_bytes(str(tmp_path)) > 1_000_000


# ---- less, shown by a whole program ----


def table(optimizer=None):
    """Numbers of 64 bits that were measured with 32; normalised, and something computed of them."""
    data = {"x": numpy.arange(1 << 20, dtype=numpy.float32).astype(numpy.float64).reshape(-1, 16)}
    if optimizer is not None:
        data = optimizer.optimize_memory_usage(data)
    x = (data["x"] - data["x"].mean(0)) / data["x"].std(0)
    return round(float(x.max()), 3)


def test_a_program_with_half_of_its_memory_gone(tare_package):
    config = tare_package.DataOptimizationConfig(budget_s=120, timeout_s=300)
    optimizer = tare_package.MemoryOptimizer(config)
    table(optimizer)
    assert optimizer.last.before == 2 * optimizer.last.after
    same = lambda a, b: None if a == b else f"{a}, then {b}"  # noqa: E731
    tuned = optimizer.confirm(table, lambda: table(tare_package.MemoryOptimizer(config)), plan={"types": "float32"}, same=same, bound=2.0)
    assert tuned.verdict == "confirmed" and 1 / 0.75 < tuned.ci[0] <= tuned.gain <= tuned.ci[1] < 2.05, str(tuned)  # 25 to 50 % less
    assert "% less (" in str(tuned) and "bound on this run at most 50% less; target 30-50% less" in str(tuned) and "the time" in tuned.reasons[0]
    other = optimizer.confirm(table, lambda: 0.0, same=same)
    assert other.verdict == "different_data" and "then 0.0" in other.reasons[0]
    more = optimizer.confirm(lambda: bytearray(b"x") * (8 * MIB), lambda: bytearray(b"x") * (64 * MIB))
    assert more.verdict == "no_gain" and "% more" in more.gain_text(), str(more)

    def fails():
        raise KeyError("mine")

    failed = optimizer.confirm(fails, table)
    assert failed.verdict == "refused" and "the base ended as failed: KeyError: 'mine'" in failed.reasons[0]


def test_looking_takes_little_memory(tare_package):
    from tare._tune_child import in_child
    from tare._tune_memory import smaller_type, weighed

    data = numpy.arange(1 << 22, dtype=numpy.float64)  # 32 MiB
    ran = in_child(lambda: weighed(lambda: smaller_type(data), True), 120)
    assert ran.outcome == "done" and ran.value[1][0] == "float32" and ran.value[0].memory < 16 * MIB, ran
    for array in (data.reshape(1024, -1), data.reshape(1024, -1).T, data.reshape(1024, -1)[:, ::3], data[::-2]):
        assert smaller_type(array)[0] == "float32"
        array = array + 0.1
        assert smaller_type(array)[0] is None


def test_blocks_are_given_back_from_the_first_use_on(python):
    """glibc raises a low threshold with the first larger block that is freed."""
    done = python(
        """
        import tare
        from tare import _tare
        with tare.memory_optimization_context() as m:
            bytearray(8 << 20)
            print(_tare.malloc_threshold() == 1 << 20 == m.policy["mmap_threshold"])
        print(m.policy["restored"], m.findings)
        """
    )
    assert done.stdout.startswith("True\n") and "moves it no more" in done.stdout, done.stdout
