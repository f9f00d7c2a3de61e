# SPDX-License-Identifier: MIT
"""tare.IOOptimizer: how a file is best read, by what the kernel says of it and by what was measured on it, and data stored in the codec that
loads fastest from this disk. Every figure carries the share of the file that was in memory before and after."""

from __future__ import annotations

import concurrent.futures as futures
import dataclasses
import io
import itertools
import json
import os
import stat
import sys
import time
import zipfile
from typing import Any, Iterable, Iterator

from tare import _tare, _tune
from tare._tare import in_sentence
from tare._tune import Tuned, first_difference, setting
from tare._tune_memory import free_bytes
from tare._unknown import Unknown, known

MIB = 1 << 20
SMALL = 8 * MIB  # below it one read is as good as anything
COLD = 0.05  # less than that of a part in memory: it comes from the disk
PART = 8 * MIB  # of a file that is measured part by part: more than the kernel reads ahead
PROBE_S = 2.0  # for choosing
DEPTH, PIECE = 8, MIB
CHUNK = 8 * MIB
FILES_AHEAD, FILES_AT_A_TIME = 512, 128
BYTES_AHEAD, _LATER = 256 * MIB, -3
WAYS = {"threads": False, "direct": True, "uring": True}  # and whether it goes past the page cache
_proved: dict[int, tuple[str, str]] = {}  # by device: a way that was confirmed there, and how


# ---- reading ----


class Reader:
    """One file, read in the way that was chosen. read() and reader() give all of it, iter_chunks() piece by piece, as_array() numbers,
    prefetch(paths) many files. `.plan` says how and `.tuned` why; `.last` is the latest read with the resident share before and after."""

    def __init__(self, path: Any, config: Any = None, *, once: bool = False, mmap: bool = False, encoding: str | None = None) -> None:
        self.path, self.config, self.encoding = os.fspath(path), config, encoding
        self.name = os.fsdecode(self.path)
        self.once, self.mmap = once, mmap
        self.last: dict[str, Any] = {}
        self.notes: list[str] = []
        with self._open() as file:
            self.facts = _tare.file_facts(file.fd, self.name)
            self.tuned = self._choose(file)
        self.plan = dict(self.tuned.plan)

    def _open(self) -> _Open:
        return _Open(self.path, self.name)

    # -- which way --

    def _choose(self, file: _Open) -> Tuned:
        """The kernel's facts first; a cold file that is large enough is then measured, part by part."""
        size, (share, by) = self.facts["size"], self.facts["resident"]
        known_share = f"{share:.0%} in memory" if share is not None else "share in memory unknown"
        said = f"{in_sentence(size, 'B')} on {self.facts['file_system']}, {known_share} ({by})"
        plain = Tuned("reading", {"way": "read"}, "no_gain", reasons=[said])
        if self.facts["packed"]:
            plain.reasons.append(f"packed with {self.facts['packed']}: it is read as it is")
        if self.mmap:
            if not self.facts["local"]:
                plain.verdict = "refused"
                plain.reasons.append(f"mmap was asked for and is not used on {self.facts['file_system']}: a file that becomes shorter there "
                                     "ends the program (SIGBUS)")  # fmt: skip
            else:
                plain.plan = {"way": "mmap"}
                plain.reasons.append("mmap as asked for: a file that becomes shorter ends the program (SIGBUS)")
            return plain
        if not setting(self.config, "optimize_io") or size < SMALL:
            plain.reasons.append("one read is as good as anything" if size < SMALL else "optimize_io is off")
            return plain
        if share is None or share > 1 - COLD:
            plain.reasons.append("it is in memory already" if share is not None else "what is in memory is not known: nothing can be measured")
            return plain
        return self._measure(file, plain)

    def _ways(self, plain: Tuned) -> list[str]:
        """What may be tried. Past the page cache only where the file would not stay in it, or is read once."""
        past = self.once or self.facts["size"] > free_bytes() / 2
        out = ["threads"]
        for way in ("direct", "uring"):
            why = None if past else "it would be read from the disk again next time; once=True says that there is none"
            if why is None:
                why = self._direct_refused() or (_tare.uring_refused() if way == "uring" else None)
            if why is None:
                out.append(way)
            else:
                plain.rejected.append(({"way": way}, why))
        return out

    def _direct_refused(self) -> str | None:
        try:
            with _Open(self.path, self.name, direct=True) as file:
                _tare.file_read(file.fd, 0, 4096, "direct", self.name, depth=1, piece=4096)
        except (OSError, ValueError) as refused:
            return f"O_DIRECT: {refused}"
        return None

    def _measure(self, file: _Open, plain: Tuned) -> Tuned:
        size, device = self.facts["size"], os.fstat(file.fd).st_dev
        part = min(4 * PART, size // 16 // 4096 * 4096)
        if part < PART:
            way, how = _proved.get(device, (None, ""))
            if way is not None and way in self._ways(plain):
                plain.plan = {"way": way, "depth": DEPTH, "piece": PIECE}
                plain.verdict, plain.applied = "likely", True
                plain.reasons.append(f"confirmed on another file of this disk: {how}")
            else:
                plain.reasons.append("too small to be measured in parts, and nothing was confirmed on this disk before")
            return plain
        parts = self._cold_parts(file, part)
        try:
            with _Open(self.path, self.name, direct=True) if not self._direct_refused() else self._open() as direct:
                return self._race(file, direct, parts, part, plain, device)
        except _NoParts:
            plain.reasons.append("it ran out of parts that are not in memory before it was clear")
            return plain

    def _cold_parts(self, file: _Open, part: int) -> Iterator[int]:
        """Offsets of parts of which nothing is in memory, not beside each other: the kernel reads ahead. Of a file that was cold, what was
        read in the round before is taken out of memory again; of another only parts that nobody has read."""
        while True:
            some = False
            for at in range(0, self.facts["size"] - part, 2 * part):
                share, _ = _tare.file_resident(file.fd, at, part)
                if share is not None and share < COLD:
                    some = True
                    yield at
            if not some or self.facts["resident"][0] > COLD:
                raise _NoParts
            os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def _race(self, file: _Open, direct: _Open, parts: Iterator[int], part: int, plain: Tuned, device: int) -> Tuned:
        def take(way: str) -> float:
            at, begun = next(parts), time.perf_counter()
            _tare.file_read((direct if WAYS.get(way) else file).fd, at, part, way, self.name, depth=DEPTH, piece=PIECE)
            return time.perf_counter() - begun

        ways = self._ways(plain)
        at = next(parts)
        for way in ways:  # the same bytes, before anything else
            reads = [_tare.file_read((direct if WAYS.get(w) else file).fd, at, part, w, self.name, depth=DEPTH, piece=PIECE) for w in (way, "read")]
            if reads[0] != reads[1]:
                raise OSError(f"{self.name}: {way} gave other bytes than read: it is being changed")
        times = {way: take(way) + take(way) if len(ways) > 1 else 0.0 for way in ways}
        best = min(times, key=times.get)  # type: ignore[arg-type]
        threshold, before = setting(self.config, "optimization_threshold"), _tare.file_resident(file.fd, 0, self.facts["size"])[0]
        tuned = _tune.confirm(lambda: take("read"), lambda: take(best), what="reading", plan={"way": best, "depth": DEPTH, "piece": PIECE},
                              threshold=threshold, unit_s=0, most=14, budget_s=PROBE_S)  # fmt: skip
        after = _tare.file_resident(file.fd, 0, self.facts["size"])[0]
        tuned.rejected = plain.rejected + [({"way": way}, "another way looked faster") for way in ways if way != best]
        tuned.reasons = plain.reasons + tuned.reasons
        tuned.reasons.append(f"parts of {in_sentence(part, 'B')}; of the file {before:.0%} in memory before, {after:.0%} after")
        tuned.applied = tuned.worth(setting(self.config, "apply"))
        if tuned.applied:
            _proved[device] = (best, f"{tuned.gain:.2f}x on {self.name}")
        else:
            tuned.rejected.append((tuned.plan, tuned.verdict))
            tuned.plan = {"way": "read"}
        return tuned

    # -- reading --

    def _range(self, file: _Open, offset: int, n: int) -> bytes:
        """Some of the file, in the way of the plan; when that is refused after all, by threads, and it is noted."""
        way = self.plan["way"]
        if way in ("read", "mmap") or not WAYS[way]:
            return _tare.file_read(file.fd, offset, n, "read" if way == "mmap" else way, self.name, depth=DEPTH, piece=PIECE)
        try:
            with _Open(self.path, self.name, direct=True) as direct:
                if direct.same(file):
                    return _tare.file_read(direct.fd, offset, n, way, self.name, depth=DEPTH, piece=PIECE)
        except OSError as refused:
            self.notes.append(f"{way} was refused: {refused}; read by threads")
            self.plan = {"way": "threads", "depth": DEPTH, "piece": PIECE}
        return _tare.file_read(file.fd, offset, n, "threads", self.name, depth=DEPTH, piece=PIECE)

    def read(self) -> Any:
        """The whole file: bytes, or text where an encoding was given."""
        with self._open() as file:
            size = os.fstat(file.fd).st_size
            before, begun = _tare.file_resident(file.fd, 0, size)[0], time.perf_counter()
            if size == 0:  # of the kernel's own files nothing is known before they are read
                with open(self.path, "rb") as kernel:
                    data = kernel.read()
            else:
                data = self._range(file, 0, size)
            self._stamp(file, len(data), begun, before)
        return data.decode(self.encoding) if self.encoding else data

    def __call__(self) -> Any:
        """As read(); of a file that optimize_data_storage() wrote, the data."""
        with self._open() as file:
            stored = os.pread(file.fd, len(MAGIC), 0) == MAGIC
        return self.load() if stored else self.read()

    def load(self) -> Any:
        """The data of a file that optimize_data_storage() wrote, its checksums compared. ValueError when it is none or is damaged."""
        encoding, self.encoding = self.encoding, None
        try:
            return _decode(self.read(), self.name)
        finally:
            self.encoding = encoding

    def iter_chunks(self, size: int = CHUNK) -> Iterator[bytes]:
        """The file in pieces of `size` bytes, the next one read while this one is used. OSError where it has become shorter."""
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"a chunk has 1 byte or more, not {size!r}")
        if WAYS.get(self.plan["way"]):
            size = (size + 4095) // 4096 * 4096
        with self._open() as file, futures.ThreadPoolExecutor(1, "tare-read") as ahead:
            whole = os.fstat(file.fd).st_size
            before, begun = _tare.file_resident(file.fd, 0, whole)[0], time.perf_counter()
            following = None
            for at in range(0, whole, size):
                chunk = following.result() if following else self._range(file, at, min(size, whole - at))
                rest = min(size, whole - at - size)
                following = ahead.submit(self._range, file, at + size, rest) if rest > 0 else None
                yield chunk
            self._stamp(file, whole, begun, before)

    def as_array(self, dtype: Any = None, shape: Any = None) -> Any:
        """A .npy file, or the bytes as numbers of `dtype`. Read-only; mapped where mmap was asked for."""
        import numpy

        with self._open() as file:
            is_npy = os.pread(file.fd, 6, 0) == b"\x93NUMPY"
        if is_npy:
            if self.plan["way"] == "mmap":
                return numpy.load(self.path, mmap_mode="r", allow_pickle=False)
            array = numpy.load(io.BytesIO(self._bytes()), allow_pickle=False)
            array.flags.writeable = False
        elif dtype is None:
            raise ValueError(f"{self.name}: is no .npy file: of what dtype are its numbers?")
        elif self.plan["way"] == "mmap":
            array = numpy.memmap(self.path, dtype=dtype, mode="r")
        else:
            data, item = self._bytes(), numpy.dtype(dtype).itemsize
            if len(data) % item:
                raise ValueError(f"{self.name}: {len(data)} bytes are not whole numbers of {item}")
            array = numpy.frombuffer(data, dtype=dtype)
        return array if shape is None else array.reshape(shape)

    def _bytes(self) -> bytes:
        data = self.read()
        return data.encode(self.encoding) if self.encoding else data

    def prefetch(self, paths: Iterable[Any], threads: int | None = None) -> Iterator[tuple[Any, bytes]]:
        """(path, its bytes) in order, `threads` of them read at a time and ahead of their use. What cannot be read is raised in its place."""
        left, total, begun = iter(paths), 0, time.perf_counter()
        seen = list(itertools.islice(left, 32))
        before = resident_share(seen)
        if threads is None:
            threads = FILES_AT_A_TIME if before is None or before < 0.9 else min(4, len(os.sched_getaffinity(0)))
        windows = in_windows(itertools.chain(seen, left), FILES_AHEAD)
        with futures.ThreadPoolExecutor(2, "tare-read") as ahead:  # two, so that there is no pause between windows
            waiting: list[tuple[list, futures.Future]] = []
            while True:
                while len(waiting) < 2 and (window := next(windows, None)) is not None:
                    waiting.append((window, ahead.submit(_tare.files_read, [os.fsencode(p) for p in window], threads, BYTES_AHEAD)))
                if not waiting:
                    break
                window, done = waiting.pop(0)
                for path, data in zip(window, done.result()):
                    if data == _LATER:
                        data = _tare.files_read([os.fsencode(path)], 1)[0]
                    if isinstance(data, int):
                        raise _small_error(data, path)
                    total += len(data)
                    yield path, data
        self.last = _stamp(total, time.perf_counter() - begun, f"{threads} files at a time", before, resident_share(seen))

    def _stamp(self, file: _Open, n: int, begun: float, before: float | None) -> None:
        took = time.perf_counter() - begun
        self.last = _stamp(n, took, self.plan["way"], before, _tare.file_resident(file.fd, 0, n)[0])

    def __str__(self) -> str:
        return str(self.tuned) + "".join(f"\n  note      {note}" for note in self.notes)


class _NoParts(Exception):
    pass


def in_windows(items: Iterable, size: int) -> Iterator[list]:
    left = iter(items)
    while window := list(itertools.islice(left, size)):
        yield window


class _Open:
    """An open regular file. What is none is named before anything waits for it."""

    def __init__(self, path: Any, name: str, direct: bool = False) -> None:
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_DIRECT if direct else 0))
        mode = os.fstat(self.fd).st_mode
        if not stat.S_ISREG(mode):
            os.close(self.fd)
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(21, "is a folder", name)
            raise ValueError(f"{name}: is a {'pipe' if stat.S_ISFIFO(mode) else 'device or socket'}, no regular file: read it with open()")

    def same(self, other: _Open) -> bool:
        """Whether the name still leads to the file that the other has open."""
        return os.path.samestat(os.fstat(self.fd), os.fstat(other.fd))

    def __enter__(self) -> _Open:
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self.fd)


def _stamp(n: int, took: float, way: str, before: float | None, after: float | None) -> dict[str, Any]:
    unknown = Unknown("the kernel does not say what is in memory")
    return {"bytes": n, "seconds": took, "bytes_per_s": n / took if took > 0 else Unknown("no time passed"), "way": way,
            "resident_before": unknown if before is None else before, "resident_after": unknown if after is None else after}  # fmt: skip


def resident_share(paths: Iterable[Any]) -> float | None:
    """Of several files, by bytes; those that cannot be opened are left out. None: unknown."""
    whole, held = 0, 0.0
    for path in paths:
        try:
            with _Open(path, os.fsdecode(path)) as file:
                size = os.fstat(file.fd).st_size
                share, _ = _tare.file_resident(file.fd, 0, size)
        except (OSError, ValueError):
            continue
        whole, held = whole + (size if share is not None else 0), held + size * (share or 0)
    return held / whole if whole else None


def _small_error(code: int, path: Any) -> Exception:
    name = os.fsdecode(path)
    if code == -1:
        return ValueError(f"{name}: is no regular file")
    if code == -2:
        return OSError(f"{name}: became shorter while it was read")
    return OSError(code, os.strerror(code), name)


# ---- storing ----

MAGIC = b"TAREDATA"  # src/core/stored.h has the rest
CODECS = {"zstd": 1, "lz4": 1, "zlib": 6}  # and the level
_ASKED = {"auto": None, "gzip": "zlib", "none": "none", **{name: name for name in CODECS}}
LEAST_RATIO = 1.1


@dataclasses.dataclass
class Stored:
    """What optimize_data_storage() wrote, and what was measured to choose."""

    path: str
    codec: str
    kind: str
    raw: int
    stored: int
    tried: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    reasons: list[str] = dataclasses.field(default_factory=list)

    @property
    def ratio(self) -> float:
        return self.raw / self.stored if self.stored else 1.0

    def __str__(self) -> str:
        sizes = f"{in_sentence(self.raw, 'B')} stored as {in_sentence(self.stored, 'B')} ({self.codec}, {self.ratio:.2f}x)"
        lines = [f"{self.path}: {sizes}: {'; '.join(self.reasons)}"]
        for t in self.tried:
            rates = t.get("why") or "{:.2f}x, packs {}/s, unpacks {}/s".format(
                t["ratio"], in_sentence(t["pack_bytes_per_s"], "B"), in_sentence(t["unpack_bytes_per_s"], "B"))  # fmt: skip
            lines.append(f"  {t['codec']}: {rates}")
        return "\n".join(lines)


def _encode(data: Any) -> tuple[str, bytes]:
    """(kind, bytes) that _decode() makes equal data of."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if isinstance(data, (bytes, bytearray, memoryview)):
        return "bytes", bytes(data)
    if type(data) is str:
        return "text", data.encode("utf-8", "surrogatepass")
    if torch is not None and type(data) is torch.Tensor:
        try:
            return "tensor", _npy(data.detach().cpu().numpy())
        except TypeError as cannot:
            raise TypeError(f"a tensor of {data.dtype} cannot be stored: {cannot}") from None
    if numpy is not None and type(data) is numpy.ndarray:
        return "array", _npy(data)
    if numpy is not None and type(data) is dict and data and all(type(k) is str and type(v) is numpy.ndarray for k, v in data.items()):
        out = io.BytesIO()
        numpy.savez(out, **{f"{i}": _whole(v) for i, v in enumerate(data.values())}, names=numpy.array(list(data)))
        return "arrays", out.getvalue()
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=True)
        difference = first_difference(data, json.loads(text), "data")
    except (TypeError, ValueError, RecursionError) as cannot:
        difference = str(cannot)
    if difference is not None:
        raise TypeError(f"{type(data).__name__} cannot be stored so that it comes back equal: {difference}; store bytes, text, arrays, tensors, "
                        "or lists and dicts of plain values")  # fmt: skip
    return "json", text.encode("utf-8", "surrogatepass")


def _whole(array: Any) -> Any:
    if array.dtype.hasobject:
        raise TypeError("an array of Python objects cannot be stored: only numbers, texts and records of them")
    return array


def _npy(array: Any) -> bytes:
    import numpy

    out = io.BytesIO()
    numpy.save(out, _whole(array), allow_pickle=False)
    return out.getvalue()


def _decode(stored: bytes, name: str) -> Any:
    """The data, or ValueError that names what is wrong and where."""
    kind, raw = _tare.stored_data(stored, name, int(free_bytes()))
    if kind not in _KINDS:
        raise ValueError(f"{name}: holds data of the kind {kind!r}, which this tare does not know")
    try:
        return _KINDS[kind](raw)
    except MemoryError:
        raise
    except Exception as bad:  # its sums are right: somebody made it up
        raise ValueError(f"{name}: is no {kind} as optimize_data_storage() writes it: {bad or type(bad).__name__}") from None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


def _array(raw: bytes) -> Any:
    import numpy

    return numpy.lib.format.read_array(io.BytesIO(raw), allow_pickle=False)


def _tensor(raw: bytes) -> Any:
    import torch

    return torch.from_numpy(_array(raw))


def _arrays(raw: bytes) -> dict[str, Any]:
    import numpy

    if any(part.compress_type for part in zipfile.ZipFile(io.BytesIO(raw)).infolist()):
        raise ValueError("its parts are packed")
    loaded = numpy.load(io.BytesIO(raw), allow_pickle=False)
    return {str(key): loaded[str(i)] for i, key in enumerate(loaded["names"])}


_KINDS = {"bytes": lambda raw: raw, "text": _text, "json": lambda raw: json.loads(_text(raw)), "array": _array, "tensor": _tensor, "arrays": _arrays}


def _excerpt(data: bytes) -> bytes:
    """At most 6 MiB: from the start, the middle and the end."""
    n = 2 * MIB
    if len(data) <= 3 * n:
        return data
    middle = len(data) // 2
    return data[:n] + data[middle : middle + n] + data[-n:]


def _try_codec(codec: str, excerpt: bytes, whole: int) -> dict[str, Any]:
    """Ratio, and bytes per second of processor time; the better of two. whole: bytes that it will have to pack."""
    try:
        if not _tare.pack_room(codec, whole):
            return {"codec": codec, "why": f"{whole} bytes are more than it packs at a time"}
        times = []
        for _ in range(2):
            begun = time.thread_time()
            packed = _tare.pack(codec, CODECS[codec], excerpt)
            middle = time.thread_time()
            if _tare.unpack(codec, packed, len(excerpt)) != excerpt:
                return {"codec": codec, "why": "does not give back what was packed"}
            times.append((middle - begun, time.thread_time() - middle))
    except NotImplementedError as missing:
        return {"codec": codec, "why": str(missing)}
    pack, unpack = (max(min(t), 1e-6) for t in zip(*times))
    return {"codec": codec, "ratio": len(excerpt) / len(packed), "pack_bytes_per_s": len(excerpt) / pack, "unpack_bytes_per_s": len(excerpt) / unpack}


def _disk_rate(folder: str, excerpt: bytes) -> Any:
    """Bytes per second that this disk reads: of a file without a name, written, taken out of memory and read back; by what it was measured."""
    try:
        fd = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as refused:
        return Unknown(f"no file without a name there: {refused.strerror}")
    try:
        left = memoryview(excerpt)
        while left:
            left = left[os.write(fd, left) :]
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        share, _ = _tare.file_resident(fd, 0, len(excerpt))
        if share is None or share > COLD:
            return Unknown("what is written there stays in memory")
        begun = time.perf_counter()
        _tare.file_read(fd, 0, len(excerpt), "read", folder)
        return len(excerpt) / (time.perf_counter() - begun)
    except OSError as failed:
        return Unknown(str(failed))
    finally:
        os.close(fd)


class IOOptimizer:
    """IOOptimizer(config): optimize_file_reading(path) -> Reader, optimize_data_storage(data, path) -> Stored, pack_files(paths, path) -> Pack."""

    def __init__(self, config: Any = None) -> None:
        setting(config, "optimize_io")  # a configuration, or an error
        self.config = config

    def optimize_file_reading(self, path: Any, *, once: bool = False, mmap: bool = False, encoding: str | None = None) -> Reader:
        """How this file is best read. once: it will not be read again, so that it need not stay in memory. mmap: as_array() maps it; never
        on network file systems. encoding: read() gives text."""
        return Reader(path, self.config, once=once, mmap=mmap, encoding=encoding)

    def optimize_data_storage(self, data: Any, path: Any) -> Stored:
        """The data as a file that IOOptimizer.load(path) gives back equal, in the codec that loads fastest (config.compression names one
        instead). The file is there as a whole or the old one stays. TypeError for data that would not come back equal."""
        name = os.fsdecode(path)
        asked = setting(self.config, "compression")
        asked = "none" if asked is None else asked
        if asked not in _ASKED:
            raise ValueError(f"compression is one of {', '.join(_ASKED)}, not {asked!r}")
        kind, raw = _encode(data)
        stored = Stored(name, _ASKED[asked] or "none", kind, len(raw), len(raw))
        if asked == "auto":
            self._choose_codec(stored, raw, os.path.dirname(os.path.abspath(name)) or "/")
        else:
            stored.reasons.append("as asked for")
        body = raw if stored.codec == "none" else _tare.pack(stored.codec, CODECS[stored.codec], raw)
        stored.stored = len(body)
        head = _tare.stored_head(stored.codec, kind, raw, body)
        if first_difference(_decode(head + body, name), _as_stored(data, kind), "data"):
            raise ValueError(f"{name}: the data does not come back equal; nothing was written")
        _tare.file_store(path, head, body)
        return stored

    def pack_files(self, paths: Iterable[Any], path: Any, root: Any = None) -> Any:
        """Many small files as one; see Pack."""
        from tare._tune_pack import pack_files

        return pack_files(paths, path, root)

    def load(self, path: Any) -> Any:
        """The data that optimize_data_storage() wrote there."""
        return self.optimize_file_reading(path).load()

    def _choose_codec(self, stored: Stored, raw: bytes, folder: str) -> None:
        """The codec with which loading takes least: reading from this disk, then unpacking. None unless it gains a tenth."""
        if len(raw) < 4096:
            stored.reasons.append("too small to pack")
            return
        excerpt = _excerpt(raw)
        stored.tried = [_try_codec(codec, excerpt, len(raw)) for codec in CODECS]
        rate = _disk_rate(folder, excerpt)
        useful = [t for t in stored.tried if "ratio" in t and t["ratio"] >= LEAST_RATIO]
        if not useful:
            stored.reasons.append(f"no codec makes it {LEAST_RATIO:g} times smaller")
            return
        if not known(rate):
            best = max(useful, key=lambda t: t["unpack_bytes_per_s"])
            stored.reasons.append(f"the disk's rate is unknown ({getattr(rate, 'reason', '')}): the one that unpacks fastest")
        else:
            best = min(useful, key=lambda t: 1 / (t["ratio"] * rate) + 1 / t["unpack_bytes_per_s"])
            gain = (1 / rate) / (1 / (best["ratio"] * rate) + 1 / best["unpack_bytes_per_s"])
            stored.reasons.append(f"the disk reads {in_sentence(rate, 'B')}/s (0% in memory before): "
                                  f"loading is {gain:.2f} times as fast with {best['codec']}")  # fmt: skip
            if gain < 1 + setting(self.config, "optimization_threshold"):
                stored.reasons.append("not worth it")
                return
        stored.codec = best["codec"]


def _as_stored(data: Any, kind: str) -> Any:
    """What comes back: other kinds of buffers as bytes, tensors on the CPU."""
    if kind == "bytes":
        return bytes(data)
    return data.detach().cpu() if kind == "tensor" else data
