# SPDX-License-Identifier: MIT
"""Many small files in one, which a cold disk reads several times as fast: an ordinary zip archive whose entries are not compressed, so that
any other tool reads it too. Entries are found by name and read by position; their checksums are compared each time."""

from __future__ import annotations

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Iterable, Iterator

from tare._tune_files import Reader, free_bytes

_STAMPS, _SCHEMA = "tare-pack.json", "tare.pack/1"
_HEAD = struct.Struct("<4s22xHH")  # of an entry: its mark, and the lengths of name and extra field behind it
_ROOM = 1.02  # of the disk, beyond the files themselves


class Pack(Mapping):
    """Pack(path): the files that pack_files() put there, by name. May be read by threads and forked processes at once."""

    def __init__(self, path: Any) -> None:
        self.path = os.fsdecode(path)
        try:
            with zipfile.ZipFile(self.path) as archive:
                self._places = {e.filename: (e.header_offset, e.file_size, e.CRC, e.compress_type or e.flag_bits & 1) for e in archive.infolist()}
                stamps = json.loads(archive.read(_STAMPS))
        except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, RuntimeError) as why:
            raise ValueError(f"{self.path}: is no pack of files, or is damaged: {why}") from None
        if not isinstance(stamps, dict) or stamps.get("schema") != _SCHEMA or not isinstance(stamps.get("files"), dict) or not isinstance(stamps.get("root"), str):
            raise ValueError(f"{self.path}: {_STAMPS} in it is no {_SCHEMA}")
        del self._places[_STAMPS]
        self.root, self._stamps = stamps["root"], stamps["files"]
        if any(packed for *_, packed in self._places.values()) or set(self._places) != set(self._stamps):
            raise ValueError(f"{self.path}: its entries are not those that pack_files() wrote")
        self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        bytes_ = os.fstat(self._fd).st_size
        if any(at < 0 or at + size > bytes_ for at, size, *_ in self._places.values()):
            raise ValueError(f"{self.path}: an entry of it is not within the file: it is cut or made up")
        if bytes_ < free_bytes() / 2:  # asked for as a whole, as fast as the disk can: in any other order each is a request of its own
            os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_WILLNEED)

    def __getitem__(self, name: str) -> bytes:
        at, size, crc, _ = self._places[name]
        encoded = len(name.encode())
        got = os.pread(self._fd, _HEAD.size + encoded + size, at)
        mark, of_name, of_extra = _HEAD.unpack_from(got) if len(got) >= _HEAD.size else (b"", 0, 0)
        begins = _HEAD.size + of_name + of_extra
        if begins + size > len(got):  # an extra field stands between: files of 4 GiB and more have one
            got = os.pread(self._fd, begins + size, at)
        data = got[begins:] if begins + size == len(got) else got[begins : begins + size]
        if mark != b"PK\3\4" or len(data) != size or zlib.crc32(data) != crc:
            raise ValueError(f"{self.path}: {name} is damaged in it")
        return data

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def stale(self) -> list[str]:
        """Files that are not what was packed any more, or are gone: by size, time of change and number on the disk."""
        return [name for name, stamp in self._stamps.items() if _stamp(os.path.join(self.root, name)) != stamp]

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Pack:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["path"])


def _stamp(path: str) -> list[int] | None:
    try:
        s = os.stat(path)
    except OSError:
        return None
    return [s.st_size, s.st_mtime_ns, s.st_ino]


def pack_files(paths: Iterable[Any], path: Any, root: Any = None) -> Pack:
    """These files as one, named by their paths below `root` (that of all of them where none is given). The pack is there as a whole, read
    back and compared, or what was there stays."""
    files = [os.path.abspath(os.fsdecode(p)) for p in paths]
    if not files:
        raise ValueError("there are no files to pack")
    root = os.path.abspath(os.fsdecode(root)) if root is not None else os.path.commonpath([os.path.dirname(f) for f in files])
    names = [os.path.relpath(f, root) for f in files]
    for name, file in zip(names, files):
        if not name.isprintable():
            raise ValueError(f"{file!r}: its name cannot be written into a pack")
        if name.startswith(".." + os.sep) or name == _STAMPS or not os.path.isfile(file):
            raise ValueError(f"{file}: is no file below {root}" if name != _STAMPS else f"{file}: this name is the pack's own")
    if len(set(names)) < len(names):
        raise ValueError(f"{next(n for n in names if names.count(n) > 1)}: is to be packed twice")
    target, stamps = os.path.abspath(os.fsdecode(path)), dict(zip(names, map(_stamp, files)))
    free = os.statvfs(os.path.dirname(target))
    need = sum(s[0] for s in stamps.values()) * _ROOM + 512 * len(files)
    if need > free.f_bavail * free.f_frsize:
        raise OSError(28, f"the files take {need / 2**20:.0f} MiB, and {free.f_bavail * free.f_frsize / 2**20:.0f} MiB are free", target)
    part = f"{target}.{os.getpid()}.part"
    try:
        _write(part, root, dict(zip(names, files)), stamps)
        with Pack(part) as made:
            for _ in made.values():
                pass
        os.replace(part, target)
    finally:
        if os.path.exists(part):
            os.unlink(part)
    return Pack(target)


def _write(part: str, root: str, files: dict[str, str], stamps: dict[str, Any]) -> None:
    with open(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w+b") as out:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
            reader = Reader(next(iter(files.values())))
            for (name, file), (_, data) in zip(files.items(), reader.prefetch(files.values())):
                if _stamp(file) != stamps[name] or len(data) != stamps[name][0]:
                    raise OSError(5, "changed while it was packed", file)
                archive.writestr(zipfile.ZipInfo(name), data)
            archive.writestr(_STAMPS, json.dumps({"schema": _SCHEMA, "root": root, "files": stamps}))
        out.flush()
        os.fsync(out.fileno())
