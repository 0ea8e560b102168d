"""Files that the command line takes and writes: where they are, and whether they may be."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyfm.data._sources import open_sources
from polyfm.data.source import is_pipe

TABLES = ("csv", "parquet")
STDIN = "-"


@contextlib.contextmanager
def on_disk(name: str) -> Iterator[str]:
    """Provide a path to a file; what comes from a pipe is kept in a temporary file meanwhile."""
    if not is_pipe(name):
        yield name
        return
    with tempfile.TemporaryDirectory(prefix="polyfm-") as folder:
        path = Path(folder) / "input"
        with path.open("wb") as copy:
            for opened in open_sources(name):
                shutil.copyfileobj(opened.stream, copy, 1 << 20)
        try:
            yield str(path)
        except ValueError as error:
            shown = "standard input" if name == STDIN else name
            raise ValueError(str(error).replace(str(path), shown)) from error


def whole_numbers(y: NDArray[Any]) -> NDArray[Any]:
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
