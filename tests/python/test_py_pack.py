# SPDX-License-Identifier: MIT
"""tare.Pack: many files in one come back byte by byte, from threads and forked processes; what is damaged, cut or made up is named."""

import concurrent.futures
import json
import os
import pickle
import random
import zipfile

import pytest

import tare
from tare._tune_pack import _STAMPS

SIZES = {"a": 0, "b/c.bin": 1, "b/d": 4096, "b/e/f": 70000, "ü": 17}


@pytest.fixture
def some(tmp_path):
    for name, n in SIZES.items():
        path = tmp_path / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(random.Random(name).randbytes(n))
    return tmp_path / "files"


def pack(some, name="x.zip", **more):
    return tare.IOOptimizer().pack_files([some / n for n in SIZES], some.parent / name, **more)


def want(name):
    return random.Random(name).randbytes(SIZES[name])


def test_files_come_back(some):
    with pack(some) as made:
        assert list(made) == list(SIZES) and len(made) == 5 and made.root == str(some)
        assert all(made[name] == want(name) for name in SIZES)
        assert pickle.loads(pickle.dumps(made))["b/d"] == want("b/d")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            names = list(SIZES) * 50
            assert list(pool.map(made.__getitem__, names)) == [want(n) for n in names]
        child = os.fork()
        if child == 0:
            os._exit(0 if made["b/e/f"] == want("b/e/f") else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with pytest.raises(KeyError):
            made["nope"]
    with zipfile.ZipFile(some.parent / "x.zip") as plain:  # any other tool reads it
        assert plain.testzip() is None and plain.read("b/d") == want("b/d")


def test_files_that_changed_are_stale(some):
    with pack(some) as made:
        assert made.stale() == []
        (some / "b/d").write_bytes(b"other")
        (some / "ü").unlink()
        assert made.stale() == ["b/d", "ü"] and made["ü"] == want("ü")


def test_what_cannot_be_packed_is_named_and_nothing_is_written(some):
    (some / "pipe").parent.mkdir(exist_ok=True)
    os.mkfifo(some / "pipe")
    (some / _STAMPS).write_text("{}")
    for paths, more, why in (
        ([], {}, "no files"), ([some / "a", some / "a"], {}, "a: is to be packed twice"), ([some / "pipe"], {}, "pipe: is no file"),
        ([some], {}, "is no file"), ([some / "a"], {"root": some / "b"}, "is no file below"), ([some / "nope"], {}, "nope: is no file"),
        ([some / _STAMPS], {}, "the pack's own"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=why):
            tare.IOOptimizer().pack_files(paths, some.parent / "y.zip", **more)
    assert sorted(os.listdir(some.parent)) == ["files"]


def test_the_old_pack_stays_where_a_new_one_fails(some, monkeypatch):
    pack(some).close()
    monkeypatch.setattr(os, "replace", lambda *a: (_ for _ in ()).throw(OSError(28, "no space")))
    with pytest.raises(OSError, match="no space"):
        pack(some)
    assert sorted(os.listdir(some.parent)) == ["files", "x.zip"] and tare.Pack(some.parent / "x.zip")["a"] == b""


def test_a_pack_that_is_damaged_is_named(some):
    pack(some).close()
    path = some.parent / "x.zip"
    good = path.read_bytes()
    at = good.index(want("b/d"))
    path.write_bytes(good[:at] + b"\0\0" + good[at + 2 :])
    with tare.Pack(path) as made, pytest.raises(ValueError, match="x.zip: b/d is damaged in it"):
        made["b/d"]
    for bad in (b"", b"PK", good[: len(good) // 2], good[100:]):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match="x.zip: "):
            tare.Pack(path)["b/d"]
    for seed in range(300):  # whatever is changed: the right bytes, or a clear error
        rng, bad = random.Random(seed), bytearray(good)
        for _ in range(rng.randint(1, 4)):
            bad[rng.randrange(len(good) - 700, len(good))] = rng.randrange(256)
        path.write_bytes(bad)
        try:
            with tare.Pack(path) as made:
                assert all(made[name] == want(name) for name in made)
        except ValueError as said:
            assert "x.zip: " in str(said)


def test_a_zip_that_was_made_up_is_refused(some):
    path = some.parent / "z.zip"
    for compression, stamps, why in (
        (zipfile.ZIP_DEFLATED, {"schema": "tare.pack/1", "root": "/", "files": {"a": [1, 2, 3]}}, "are not those"),
        (zipfile.ZIP_STORED, {"schema": "tare.pack/1", "root": "/", "files": {"b": [1, 2, 3]}}, "are not those"),
        (zipfile.ZIP_STORED, {"schema": "other"}, "is no tare.pack/1"), (zipfile.ZIP_STORED, None, "is no pack of files"),
    ):  # fmt: skip
        with zipfile.ZipFile(path, "w", compression) as made:
            made.writestr("a", b"a" * 1000)
            if stamps is not None:
                made.writestr(_STAMPS, json.dumps(stamps))
        with pytest.raises(ValueError, match=why):
            tare.Pack(path)
