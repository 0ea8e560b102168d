"""Reading the files that the command line takes: svmlight, libffm, CSV, Parquet."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyfm.data import TextFormatError, load_csv, load_libffm, load_parquet, load_svmlight

FORMATS = ("auto", "svmlight", "libffm", "csv", "parquet")
TABLES = ("csv", "parquet")
STDIN = "-"
_ENDINGS = {
    "svmlight": (".svm", ".svmlight", ".libsvm"),
    "libffm": (".ffm", ".libffm"),
    "csv": (".csv", ".tsv"),
    "parquet": (".parquet", ".pq"),
}


class Source(NamedTuple):
    """A file and how to read it."""

    path: Path
    format: str
    separator: str
    zero_based: bool | str = "auto"


class Content(NamedTuple):
    """Rows of a file: a frame of columns, or a matrix."""

    rows: Any
    target: NDArray[Any] | None
    fields: NDArray[np.int64] | None = None
    """Of each column of a matrix, where the file tells it."""


def add_source(parser: Any) -> None:
    """Add the arguments that name a file and its format."""
    parser.add_argument("file", metavar="FILE", help="the rows; - reads standard input")
    add_format(parser)


def add_format(parser: Any) -> None:
    """Add the arguments that tell the format of a file."""
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="auto",
        help="of FILE; auto goes by its ending, else by its first line (default: auto)",
    )
    parser.add_argument(
        "--separator",
        metavar="CHARACTER",
        help="between the cells of a CSV file (default: a comma; a tab in .tsv files)",
    )


@contextlib.contextmanager
def opened(name: str, layout: str, separator: str | None) -> Iterator[Source]:
    """Find out how to read a file; standard input is kept in a temporary file meanwhile.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If its format is not known.
    """
    if name != STDIN:
        path = Path(name)
        yield Source(path, _format(path, layout), _separator(path, separator))
        return
    with tempfile.TemporaryDirectory(prefix="polyfm-") as folder:
        path = Path(folder) / "input"
        path.write_bytes(sys.stdin.buffer.read())
        try:
            yield Source(path, _format(path, layout), _separator(path, separator))
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), "standard input")) from error


def _separator(path: Path, separator: str | None) -> str:
    if separator is not None:
        if len(separator) != 1:
            raise ValueError(f"--separator must be one character, got {separator!r}.")
        return separator
    return "\t" if _ending(path) == ".tsv" else ","


def _ending(path: Path) -> str:
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()


def _format(path: Path, layout: str) -> str:
    if layout != "auto":
        return layout
    for name, endings in _ENDINGS.items():
        if _ending(path) in endings:
            return name
    with _unpacked(path) as stream:
        start = stream.read(1 << 16)
    if start.startswith(b"PAR1"):
        return "parquet"
    lines = [line.split(b"#")[0] for line in start.splitlines()]
    return _format_of(str(path), next((line for line in lines if line.strip()), b""))


def _format_of(path: str, line: bytes) -> str:
    words = line.split()
    colons = {word.count(b":") for word in words if not word.startswith(b"qid:")} - {0}
    if colons in ({1}, {2}) and b"," not in line:
        return "svmlight" if colons == {1} else "libffm"
    if b"," in line or b";" in line or b"\t" in line:
        return "csv"
    raise ValueError(f"{path}: cannot tell the format; name it with --format.")


def _unpacked(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def read_table(source: Source, target: str | None) -> Content:
    """Read a CSV or Parquet file.

    Raises
    ------
    ValueError
        If the file cannot be read as such or lacks the target.
    """
    if source.format == "parquet":
        frame, y, _ = load_parquet(source.path, target=target)
    else:
        frame, y, _ = load_csv(source.path, target=target, separator=source.separator)
    return Content(frame, None if y is None else _target(y))


def read_sparse(source: Source, *, labels: bool) -> tuple[Content, bool]:
    """Read an svmlight or libffm file; return also whether its first column is 0.

    Raises
    ------
    TextFormatError
        A ValueError that names file, line and the offending text.
    """
    base = source.zero_based
    if base == "auto":
        try:
            return _load(source, False, labels), False
        except TextFormatError as error:
            if error.text != "0":  # an index of 0 is what tells the two apart
                raise
            base = True
    return _load(source, base, labels), base is True


def _load(source: Source, zero_based: bool | str, labels: bool) -> Content:
    fields = None
    if source.format == "svmlight":
        X, y = load_svmlight(source.path, zero_based=zero_based, labels=labels)
    else:
        X, y, fields = load_libffm(
            source.path, zero_based=zero_based, labels=labels, shared_ids="mark"
        )
    return Content(X, None if y is None else _target(y), fields)


def _target(y: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers as integers, so that labels print as they were written."""
    if y.dtype.kind == "f" and np.all(y == np.floor(y)) and np.abs(y).max(initial=0) < 2**53:
        return y.astype(np.int64)
    return y


def as_wide_as(X: sp.csr_matrix, n_features: int) -> tuple[sp.csr_matrix, int]:
    """Bring a matrix to a model's width; return also how many entries had no place in it."""
    if X.shape[1] <= n_features:
        return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features)), 0
    kept = X[:, :n_features]
    return kept, X.nnz - kept.nnz


def write_to(name: str | None) -> contextlib.AbstractContextManager[Any]:
    """Open a text file for writing; None and ``-`` are standard output."""
    if name is None or name == STDIN:
        return contextlib.nullcontext(sys.stdout)
    return open(name, "w", encoding="utf-8", newline="")


def check_writable(name: str, *inputs: str | None) -> None:
    """Raise an error where a file could not or should not be written, before work is put into it.

    Raises
    ------
    OSError
        Where it cannot be written.
    ValueError
        Where it is one of the input files, which it would replace.
    """
    path = Path(name)
    if path.exists():
        for given in inputs:
            if given is not None and Path(given).exists() and path.samefile(given):
                raise ValueError(f"{name} is read by this command: write to another file.")
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder, not a file to write", name)
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(errno.EACCES, "the folder cannot be written to", str(path.parent))


def size_of(path: str | os.PathLike[str]) -> str:
    """Return the size of a file in words."""
    n = os.path.getsize(path)
    return f"{n / 1e6:.1f} MB" if n >= 1e5 else f"{n / 1e3:.1f} kB"
