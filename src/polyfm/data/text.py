"""Readers of svmlight (libsvm) and libffm text files.

Notes
-----
One row per line, ``label index:value index:value ...`` in svmlight, ``label
field:index:value ...`` in libffm.  ``#`` starts a comment, ``qid:7`` after the label is skipped,
blank lines do not count, a label alone is a row of zeros.  An index without a value is an error,
never a silent 1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from polyfm.data.lines import (
    LARGEST,
    LIBFFM,
    SVMLIGHT,
    Format,
    Rows,
    TextFormatError,
    parse,
    parse_pieces,
)

__all__ = ["TextFormatError", "load_libffm", "load_svmlight"]

StrPath = str | os.PathLike[str]
Paths = list[Any] | tuple[Any, ...]  # not Sequence: a str is a sequence of str
Labelled = tuple[sp.csr_matrix, NDArray[np.float64] | None]
WithFields = tuple[sp.csr_matrix, NDArray[np.float64] | None, NDArray[np.int64]]


@overload
def load_svmlight(
    path: StrPath,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    labels: bool = True,
    dtype: DTypeLike = np.float32,
) -> Labelled: ...
@overload
def load_svmlight(
    path: Paths,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    labels: bool = True,
    dtype: DTypeLike = np.float32,
) -> list[Labelled]: ...
def load_svmlight(
    path: StrPath | Paths,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    labels: bool = True,
    dtype: DTypeLike = np.float32,
) -> Labelled | list[Labelled]:
    """Read svmlight (libsvm) files.

    Parameters
    ----------
    path : path or list of paths
        Plain or gzip-compressed files.  Files of one list share the number of columns and the
        decision of ``zero_based="auto"``, so give train and test together.
    n_features : int, default=None
        Number of columns.  A larger index is an error; columns without entries are empty.  None
        takes the largest index found in all the files.
    zero_based : bool or "auto", default="auto"
        Whether the first column is written 0 or 1.  "auto" says 0 if any file holds an index 0.
    labels : bool, default=True
        False makes the label optional and ignores it: y is None.
    dtype : dtype, default=numpy.float32
        Type of the values, ``float32`` or ``float64``.

    Returns
    -------
    X : scipy.sparse.csr_matrix of shape (n_samples, n_features)
        Sorted indices; repeated indices of a row are summed.
    y : ndarray of float64 of shape (n_samples,) or None
        The labels.  For a list of paths, a list of (X, y) is returned.

    Raises
    ------
    TextFormatError
        A ValueError that names file, line and the offending text.
    OSError
        If a file cannot be opened.
    """
    files = _parse_all(path, SVMLIGHT, labels)
    matrices, _ = _matrices(files, n_features, zero_based, dtype)
    pairs = [(X, rows.labels if labels else None) for X, rows in zip(matrices, files, strict=True)]
    return pairs[0] if _is_path(path) else pairs


@overload
def load_libffm(
    path: StrPath,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    labels: bool = True,
    shared_ids: str = "error",
    dtype: DTypeLike = np.float32,
) -> WithFields: ...
@overload
def load_libffm(
    path: Paths,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    labels: bool = True,
    shared_ids: str = "error",
    dtype: DTypeLike = np.float32,
) -> list[WithFields]: ...
def load_libffm(
    path: StrPath | Paths,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    labels: bool = True,
    shared_ids: str = "error",
    dtype: DTypeLike = np.float32,
) -> WithFields | list[WithFields]:
    """Read libffm files, whose indices carry a field.

    Parameters
    ----------
    path : path or list of paths
        Plain or gzip-compressed files; those of one list are read jointly.
    n_features : int, default=None
        Number of columns; None takes the largest index found.
    zero_based : bool or "auto", default="auto"
        Whether the first column is written 0 or 1.  Fields are kept as they are written.
    labels : bool, default=True
        False makes the label optional and ignores it: y is None.
    shared_ids : {"error", "mark"}, default="error"
        What to do if an index occurs in several fields (hashed indices do): refuse, or read it
        as one column all the same and give it the field -1.
    dtype : dtype, default=numpy.float32
        Type of the values, ``float32`` or ``float64``.

    Returns
    -------
    X : scipy.sparse.csr_matrix of shape (n_samples, n_features)
        Sorted indices; repeated indices of a row are summed.
    y : ndarray of float64 of shape (n_samples,) or None
        The labels.
    fields : ndarray of int64 of shape (n_features,)
        Field of each column, -1 for columns that no file uses.  For a list of paths, a list of
        (X, y, fields) is returned, with the same fields.

    Raises
    ------
    TextFormatError
        A ValueError that names file, line and the offending text.
    OSError
        If a file cannot be opened.
    """
    if shared_ids not in ("error", "mark"):
        raise ValueError(f"shared_ids must be 'error' or 'mark', got {shared_ids!r}")
    files = _parse_all(path, LIBFFM, labels)
    matrices, base = _matrices(files, n_features, zero_based, dtype)
    fields = _fields_of_columns(files, base, matrices[0].shape[1], shared_ids)
    triples = [
        (X, rows.labels if labels else None, fields)
        for X, rows in zip(matrices, files, strict=True)
    ]
    return triples[0] if _is_path(path) else triples


def iter_text(
    path: StrPath, layout: str, n_rows: int, *, zero_based: bool = False, skip: int = 0
) -> Iterator[tuple[sp.csr_matrix, NDArray[np.float64]]]:
    """Read a labelled svmlight or libffm file in pieces, each as wide as its largest index.

    Parameters
    ----------
    path : path
        A plain or gzip-compressed file.
    layout : {"svmlight", "libffm"}
        Its format.
    n_rows : int
        Rows of a piece.
    zero_based : bool, default=False
        Whether the first column is written 0 or 1.
    skip : int, default=0
        Rows to leave out at the start.
    """
    for rows in parse_pieces(Path(path), _LAYOUTS[layout], True, n_rows, skip):
        matrices, _ = _matrices([rows], None, zero_based, np.float64)
        yield matrices[0], rows.labels


_LAYOUTS = {"svmlight": SVMLIGHT, "libffm": LIBFFM}


def _is_path(path: StrPath | Paths) -> bool:
    return isinstance(path, (str, os.PathLike))


def _parse_all(path: StrPath | Paths, layout: Format, labelled: bool) -> list[Rows]:
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    if not paths:
        raise ValueError("no file given: the list of paths is empty")
    return [parse(Path(p), layout, labelled) for p in paths]


def _matrices(
    files: list[Rows], n_features: int | None, zero_based: bool | str, dtype: DTypeLike
) -> tuple[list[sp.csr_matrix], int]:
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features must be at least 1, got {n_features}")
    base = _first_index(files, zero_based)
    largest = max((int(rows.ids.max()) for rows in files if len(rows.ids)), default=base - 1)
    width = largest - base + 1 if n_features is None else int(n_features)
    if width > LARGEST:
        raise _at_entry(files, largest, f"index {largest} leaves no room for the column count")
    if largest - base >= width:
        raise _at_entry(
            files,
            width + base,
            f"index {{id}} is beyond n_features={width}; the last index is {width + base - 1}",
        )
    return [_matrix(rows, base, width, np.dtype(dtype)) for rows in files], base


def _first_index(files: list[Rows], zero_based: bool | str) -> int:
    smallest = min((int(rows.ids.min()) for rows in files if len(rows.ids)), default=1)
    if zero_based == "auto":
        return min(smallest, 1)
    if not isinstance(zero_based, (bool, np.bool_)):
        raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}")
    if not zero_based and smallest == 0:
        rows = next(rows for rows in files if len(rows.ids) and rows.ids.min() == 0)
        line = rows.line_of(int(np.argmin(rows.ids)))
        raise TextFormatError(rows.path, line, "index 0 in a file said to start at 1", "0")
    return 0 if zero_based else 1


def _at_entry(files: list[Rows], least: int, problem: str) -> TextFormatError:
    """An error about the first index of at least ``least``."""
    rows = next(rows for rows in files if (rows.ids >= least).any())
    entry = int(np.argmax(rows.ids >= least))
    found = str(rows.ids[entry])
    return TextFormatError(rows.path, rows.line_of(entry), problem.replace("{id}", found), found)


def _matrix(rows: Rows, base: int, width: int, dtype: np.dtype[Any]) -> sp.csr_matrix:
    with np.errstate(over="ignore"):
        values = rows.values.astype(dtype)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        text = repr(float(rows.values[bad[0]]))
        line = rows.line_of(int(bad[0]))
        raise TextFormatError(rows.path, line, f"value {text} is too large for {dtype.name}", text)
    shape = (len(rows.labels), width)
    X = sp.csr_matrix((values, rows.ids - base, rows.indptr.copy()), shape=shape)
    X.sum_duplicates()
    return X


def _fields_of_columns(
    files: list[Rows], base: int, width: int, shared_ids: str
) -> NDArray[np.int64]:
    fields = np.full(width, -1, dtype=np.int64)
    for rows in files:
        fields[rows.ids - base] = rows.fields
    for rows in files:
        differs = np.flatnonzero(fields[rows.ids - base] != rows.fields)
        if len(differs) and shared_ids == "error":
            raise _shared(rows, int(differs[0]), int(fields[rows.ids[differs[0]] - base]))
        fields[rows.ids[differs] - base] = -1
    return fields


def _shared(rows: Rows, entry: int, other: int) -> TextFormatError:
    found = f"{rows.fields[entry]}:{rows.ids[entry]}"
    return TextFormatError(
        rows.path,
        rows.line_of(entry),
        f"index {rows.ids[entry]} occurs in field {rows.fields[entry]} and in field {other}, so "
        "that its column has no single field; use shared_ids='mark' to read it all the same, or "
        "make the indices unique per field",
        found,
    )
