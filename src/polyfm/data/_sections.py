"""A file of numbered arrays that is read by mapping it into memory.

Notes
-----
All numbers are little-endian. A file is a header of 1024 bytes and sections, each at a multiple of
64 bytes and followed by zeros up to the next one::

    0     8  magic, 8f 70 66 6d 0d 0a 1a 0a, which a conversion of line ends would change
    8     4  version of the format
    12    4  number of sections
    16    8  size of the file in bytes
    24   24  rows, entries, largest column number (-1 if there is none)
    64  64n  sections: name (16), type (8), offset (8), bytes (8), CRC-32 with the zeros (4)
    1020  4  CRC-32 of all before

The header is checked when the file is opened, sections when someone asks for it: CRC-32 takes half
a second per gigabyte.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAGIC = b"\x8fpfm\r\n\x1a\n"
VERSION = 1
HEADER_SIZE = 1024
ALIGNMENT = 64
_HEAD = struct.Struct("<8sIIQqqq16x")
_ENTRY = struct.Struct("<16s8sQQI20x")
_CHECKSUM = struct.Struct("<I")
_COPIED_AT_ONCE = 1 << 20
_TYPES = ("<f4", "<f8", "<i4", "<i8", "|u1")


class DatasetError(ValueError):
    """A dataset that cannot be read: cut off, damaged, of another format or of a newer polyfm.

    Parameters
    ----------
    path : str
        The file or folder.
    problem : str
        What was found, and what to do.

    Attributes
    ----------
    path, problem
        The same.
    """

    def __init__(self, path: str | os.PathLike[str], problem: str) -> None:
        self.path, self.problem = os.fspath(path), problem
        super().__init__(f"{self.path}: {problem}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.problem)


class Numbers(NamedTuple):
    """What the header of a file says of its content."""

    n_rows: int = 0
    nnz: int = 0
    largest: int = -1


class Entry(NamedTuple):
    """Where a section lies."""

    dtype: str
    offset: int
    size: int
    checksum: int


def open_for_writing(path: Path) -> IO[bytes]:
    """Open a new file that can be read back."""
    return path.open("x+b")


class _Section:
    """A section that is being written, to the end of a file that nobody else writes to."""

    def __init__(self, dtype: str, stream: IO[bytes]) -> None:
        self.dtype, self.stream = dtype, stream
        self.size, self.checksum = 0, 0

    def append(self, array: NDArray[Any]) -> None:
        data = np.ascontiguousarray(array, dtype=self.dtype).view(np.uint8).data
        self.stream.write(data)
        self.size += len(data)
        self.checksum = zlib.crc32(data, self.checksum)


class SectionWriter:
    """Writes a file of sections piece by piece, in memory of one piece.

    The section that is begun first is written in place; the others, into files beside it, follow
    when the file is closed. Only then does the header, and with it the file, become valid.

    Parameters
    ----------
    path : Path
        The file, which must not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._draft = path, path.with_name(path.name + ".tmp")
        self._sections: dict[str, _Section] = {}
        self._stream = open_for_writing(self._draft)
        self._stream.seek(HEADER_SIZE)

    def append(self, name: str, array: NDArray[Any], dtype: str) -> None:
        """Add numbers at the end of a section; the first call decides its type."""
        if name not in self._sections:
            self._begin(name, dtype)
        self._sections[name].append(array)

    def _begin(self, name: str, dtype: str) -> None:
        stream = self._stream
        if self._sections:
            stream = open_for_writing(self._spool(name))
        self._sections[name] = _Section(dtype, stream)

    def _spool(self, name: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{name}.tmp")

    def close(self, numbers: Numbers) -> int:
        """Put the file together and give it its name.

        Returns
        -------
        int
            The checksum of its header, which covers those of the sections.
        """
        offset, entries = HEADER_SIZE, []
        for name, section in self._sections.items():
            if section.stream is not self._stream:
                self._take_in(name, section)
            padding = bytes(-section.size % ALIGNMENT)
            self._stream.write(padding)
            checksum = zlib.crc32(padding, section.checksum)
            entries.append(
                _ENTRY.pack(name.encode(), section.dtype.encode(), offset, section.size, checksum)
            )
            offset += section.size + len(padding)
        head = _HEAD.pack(MAGIC, VERSION, len(entries), offset, *numbers) + b"".join(entries)
        head = head.ljust(HEADER_SIZE - _CHECKSUM.size, b"\0")
        checksum = zlib.crc32(head)
        self._stream.seek(0)
        self._stream.write(head + _CHECKSUM.pack(checksum))
        finish(self._stream)
        os.replace(self._draft, self._path)
        return checksum

    def _take_in(self, name: str, section: _Section) -> None:
        section.stream.seek(0)
        shutil.copyfileobj(section.stream, self._stream, _COPIED_AT_ONCE)
        section.stream.close()
        self._spool(name).unlink()

    def abandon(self) -> None:
        """Close what is open; the caller removes the files."""
        for stream in [self._stream, *(section.stream for section in self._sections.values())]:
            # A full disk refuses the rest of the buffer once more.
            with contextlib.suppress(OSError):
                stream.close()


def finish(stream: IO[bytes]) -> None:
    """Close a file after all of it has reached the disk."""
    stream.flush()
    os.fsync(stream.fileno())
    stream.close()


class SectionFile:
    """A file of sections, mapped read-only.

    Parameters
    ----------
    path : Path
        The file.

    Attributes
    ----------
    numbers : Numbers
        What the header says.
    checksum : int
        Of the header.

    Raises
    ------
    DatasetError
        If the header is not that of a whole file.
    OSError
        If the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        size = path.stat().st_size
        if size < HEADER_SIZE:
            raise DatasetError(
                path, f"{size} bytes are no file of a dataset: it is cut off; write it again."
            )
        self._map: NDArray[np.uint8] = np.memmap(path, dtype=np.uint8, mode="r")
        self.numbers, self.checksum, self._entries = _header(path, self._map)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self._map)

    def section(self, name: str, dtype: str | None = None) -> NDArray[Any]:
        """Return a section as a read-only view of the map; ``dtype`` is what it must be.

        Raises
        ------
        DatasetError
            If there is none of that name and type.
        """
        entry = self._entries.get(name)
        if entry is None or dtype not in (None, entry.dtype):
            found = "is missing" if entry is None else f"holds {entry.dtype}, not {dtype}"
            raise DatasetError(self.path, f"the section {name!r} {found}; write the dataset again.")
        part = np.asarray(self._map[entry.offset : entry.offset + entry.size])
        return part.view(entry.dtype)

    def verify(self) -> None:
        """Compare checksums.

        Raises
        ------
        DatasetError
            For a section whose bytes have changed.
        """
        for name, entry in self._entries.items():
            end = entry.offset + entry.size + -entry.size % ALIGNMENT
            checksum = 0
            # In pieces, so that Ctrl-C gets a turn.
            for start in range(entry.offset, end, 1 << 26):
                checksum = zlib.crc32(self._map[start : min(start + (1 << 26), end)].data, checksum)
            if checksum != entry.checksum:
                raise DatasetError(
                    self.path,
                    f"the section {name!r} is damaged (its checksum is {checksum:08x}, not "
                    f"{entry.checksum:08x}); write the dataset again.",
                )


def _header(path: Path, data: NDArray[np.uint8]) -> tuple[Numbers, int, dict[str, Entry]]:
    head = data[:HEADER_SIZE].tobytes()
    magic, version, n_sections, size, *numbers = _HEAD.unpack_from(head)
    if magic != MAGIC:
        raise DatasetError(path, "this is no file of a polyfm dataset.")
    (checksum,) = _CHECKSUM.unpack_from(head, HEADER_SIZE - _CHECKSUM.size)
    if zlib.crc32(head[: -_CHECKSUM.size]) != checksum:
        raise DatasetError(path, "the header is damaged; write the dataset again.")
    if version > VERSION:
        raise DatasetError(
            path,
            f"format version {version} is newer than this polyfm, which reads {VERSION}: "
            "pip install -U polyfm",
        )
    if size != len(data):
        raise DatasetError(
            path, f"{len(data)} bytes instead of {size}: the file is cut off; write it again."
        )
    return Numbers(*numbers), checksum, dict(_entries(path, head, n_sections, size))


def _entries(path: Path, head: bytes, n_sections: int, size: int) -> Iterator[tuple[str, Entry]]:
    if n_sections > (HEADER_SIZE - _HEAD.size) // _ENTRY.size:
        raise DatasetError(path, "the header lists too many sections; write the dataset again.")
    place = HEADER_SIZE
    for k in range(n_sections):
        name, dtype, offset, n_bytes, checksum = _ENTRY.unpack_from(
            head, _HEAD.size + k * _ENTRY.size
        )
        entry = Entry(dtype.rstrip(b"\0").decode("ascii", "replace"), offset, n_bytes, checksum)
        fits = offset == place and entry.dtype in _TYPES
        if not fits or n_bytes % np.dtype(entry.dtype).itemsize or offset + n_bytes > size:
            raise DatasetError(path, f"section {k} lies outside the file; write the dataset again.")
        place = offset + n_bytes + -n_bytes % ALIGNMENT
        yield name.rstrip(b"\0").decode("ascii", "replace"), entry
