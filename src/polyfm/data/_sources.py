"""Where the bytes of data come from: files, compressed or not, streams and addresses."""

from __future__ import annotations

import glob
import gzip
import importlib
import importlib.util
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, NamedTuple

from polyfm.data.lines import TextFormatError

__all__ = ["Opened", "Progress", "StrPath", "is_single", "members", "open_sources"]

StrPath = str | os.PathLike[str]
Progress = Callable[[int], None]
"""Is told how many more bytes, of those that lie compressed, have been read."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_STDIN = "-"
_BUFFER = 1 << 16


class Opened(NamedTuple):
    """A source that is open."""

    name: str
    stream: IO[bytes]
    """Its bytes, uncompressed."""
    size: int | None
    """In bytes, as they lie, compressed or not; None where it is not known."""


class _Counted(io.RawIOBase):
    """A stream that tells of the bytes that are read from it."""

    def __init__(self, stream: Any, progress: Progress | None) -> None:
        self._stream, self._progress = stream, progress
        self._kept = b""

    def readable(self) -> bool:
        return True

    def start(self, n: int) -> bytes:
        """Return the first n bytes, fewer where there are no more; they will be read again."""
        while len(self._kept) < n:
            more = bytearray(n - len(self._kept))
            n_read = self._read_on(more)
            if n_read == 0:
                break
            self._kept += more[:n_read]
        return self._kept

    def readinto(self, buffer: Any) -> int:
        if self._kept:
            n = min(len(buffer), len(self._kept))
            buffer[:n], self._kept = self._kept[:n], self._kept[n:]
            return n
        return self._read_on(buffer)

    def _read_on(self, buffer: Any) -> int:
        if hasattr(self._stream, "readinto"):
            n = int(self._stream.readinto(buffer) or 0)
        else:
            data = self._stream.read(len(buffer))
            _check_bytes(data)
            n = len(data)
            buffer[:n] = data
        if n and self._progress is not None:
            self._progress(n)
        return n


class _Unpacked(io.RawIOBase):
    """What a decompressor gives, with words for what is wrong with the data."""

    def __init__(self, name: str, stream: Any) -> None:
        self._name, self._stream = name, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return int(self._stream.readinto(buffer))
        except (EOFError, zlib.error, OSError) as error:
            if getattr(error, "errno", None) is not None:  # of the file, not of what is in it
                raise
            problem = f"the compressed data are damaged or cut off ({error})"
            raise TextFormatError(self._name, None, problem) from error


def is_single(source: Any) -> bool:
    """Say whether a source is one thing, and not a list of them."""
    return isinstance(source, str | os.PathLike) or hasattr(source, "read")


def members(source: Any) -> list[Any]:
    """Return what a source consists of: itself, or what is in the list.

    Raises
    ------
    TypeError
        For anything that no file can be.
    ValueError
        For a list of nothing.
    """
    if is_single(source):
        return [source]
    if isinstance(source, bytes | bytearray | memoryview) or not isinstance(source, Iterable):
        raise TypeError(_no_source(source))
    found = list(source)
    if not found:
        raise ValueError("no file given: the list of paths is empty")
    for member in found:
        if not is_single(member) and not isinstance(member, list | tuple):
            raise TypeError(_no_source(member))
    return found


def _no_source(found: Any) -> str:
    shown = repr(found)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    wanted = "a path (str or os.PathLike), a binary file object, or a list of these"
    if isinstance(found, bytes):
        wanted += "; wrap data in io.BytesIO, and decode a path by os.fsdecode"
    return f"the source must be {wanted}; got {shown} of type {type(found).__name__}"


def open_sources(source: Any, progress: Progress | None = None) -> Iterator[Opened]:
    """Open what a source stands for, one after the other; each is closed before the next.

    Parameters
    ----------
    source : path, address, binary file object, or list of these
        A path may hold wildcards; the files are taken in the order of their names. ``"-"`` is
        standard input, which is left open, as a file object is. What has ``://`` in it is an
        address, which fsspec opens. gzip and Zstandard are known by the first bytes.
    progress : callable, optional
        Told how many more bytes have been read, counted as they lie.

    Yields
    ------
    Opened
        Name, stream and size.

    Raises
    ------
    OSError
        If something cannot be opened; FileNotFoundError for wildcards that nothing matches.
    TypeError
        For anything that no file can be.
    ImportError
        If fsspec, or a decompressor, is needed and not installed.
    TextFormatError
        While reading, for compressed data that are damaged or cut off.
    """
    if not is_single(source):
        for member in members(source):
            yield from open_sources(member, progress)
    elif hasattr(source, "read"):
        yield from _of_stream(source, progress)
    elif os.fspath(source) == _STDIN:
        stdin = sys.stdin.buffer
        yield from _decompressed("standard input", stdin, _size_of(stdin), progress)
    elif "://" in os.fspath(source):
        yield from _of_address(os.fspath(source), progress)
    else:
        for path in _paths(os.fspath(source)):
            with open(path, "rb", buffering=0) as file:
                yield from _decompressed(path, file, _size_of(file), progress)


def _paths(path: str) -> list[str]:
    if not glob.has_magic(path) or os.path.exists(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise FileNotFoundError(f"no file matches {path}")
    return found


def _of_stream(stream: Any, progress: Progress | None) -> Iterator[Opened]:
    if isinstance(stream, io.TextIOBase):
        raise ValueError("The file object gives text, not bytes: open it in the mode 'rb'.")
    name = getattr(stream, "name", None)
    name = name if isinstance(name, str) else f"<{type(stream).__name__}>"
    yield from _decompressed(name, stream, None, progress)


def _check_bytes(data: Any) -> None:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ValueError(
            f"The file object gives {type(data).__name__}, not bytes: open it in the mode 'rb'."
        )


def _of_address(address: str, progress: Progress | None) -> Iterator[Opened]:
    try:
        import fsspec
    except ImportError:
        raise ImportError(
            f"{address} is an address; reading it needs fsspec: pip install 'polyfm[remote]'"
        ) from None
    system, path = fsspec.core.url_to_fs(address)
    paths = sorted(system.glob(path)) if glob.has_magic(path) else [path]
    if not paths:
        raise FileNotFoundError(f"no file matches {address}")
    for found in paths:
        with system.open(found, "rb") as file:
            size = getattr(file, "size", None)
            yield from _decompressed(str(system.unstrip_protocol(found)), file, size, progress)


def _size_of(file: IO[bytes] | io.RawIOBase) -> int | None:
    try:
        status = os.fstat(file.fileno())
    except (OSError, ValueError):
        return None
    return status.st_size if os.path.isfile(file.fileno()) else None


def _decompressed(
    name: str, stream: Any, size: int | None, progress: Progress | None
) -> Iterator[Opened]:
    """Yield a stream once, without its compression."""
    counted = _Counted(stream, progress)
    start = counted.start(4)
    plain = io.BufferedReader(counted, _BUFFER)
    if start.startswith(_GZIP):
        unpacked = gzip.GzipFile(fileobj=plain)
        yield Opened(name, io.BufferedReader(_Unpacked(name, unpacked), _BUFFER), size)
    elif start == _ZSTD:
        unpacked = _zstd(name, plain)
        yield Opened(name, io.BufferedReader(_Unpacked(name, unpacked), _BUFFER), size)
    else:
        yield Opened(name, plain, size)


def _zstd(name: str, stream: IO[bytes]) -> Any:
    if importlib.util.find_spec("compression") is not None:  # from Python 3.14 on
        return importlib.import_module("compression.zstd").ZstdFile(stream)
    try:
        import pyarrow
    except ImportError:
        raise ImportError(
            f"{name} is compressed by Zstandard; reading it needs Python 3.14 or pyarrow: "
            "pip install 'polyfm[arrow]'"
        ) from None
    return pyarrow.CompressedInputStream(pyarrow.PythonFile(stream, mode="r"), "zstd")
