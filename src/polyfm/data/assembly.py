"""Entries of columns side by side, as a sparse matrix in canonical form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyfm.data import _packed

__all__ = ["Entries", "assemble"]

_ROWS_AT_ONCE = 4096  # so that a piece of the matrix stays in the processor's cache
_SHORT = 128
_WORTH_KEEPING = 0.9  # of an array's memory: below, what is used is copied
_LARGEST = 2**31 - 1


class Entries(NamedTuple):
    """Non-zero entries of one column of a table."""

    cols: NDArray[np.integer]
    """Their columns in the matrix; below 0 is no entry."""
    values: NDArray[np.floating] | None = None
    """None where all are 1."""
    rows: NDArray[np.int64] | None = None
    """None where entry i is of row i."""


def assemble(
    entries: Sequence[Entries], shape: tuple[int, int], dtype: np.dtype[Any]
) -> sp.csr_matrix:
    """Put entries into a matrix; those of one place are added up, zeros are not stored.

    Parameters
    ----------
    entries : list of Entries
        One for each column of the table, in any order.
    shape : tuple of int
        Of the matrix.
    dtype : dtype
        Of its values.

    Returns
    -------
    scipy.sparse.csr_matrix
        With indices of 32 bits where they suffice.
    """
    if any(e.rows is not None for e in entries) or shape[1] >= _LARGEST:
        build = _row_by_row
    else:
        build = _ones if all(e.values is None for e in entries) else _side_by_side
    indptr, indices, data = build(entries, shape, dtype)
    end, n_room = int(indptr[-1]), len(data)
    indices, data = indices[:end], data[:end]
    if end < _WORTH_KEEPING * n_room:
        indices, data = indices.copy(), data.copy()
    indices = indices.view(f"i{indices.itemsize}")
    matrix = sp.csr_matrix((data, indices, indptr.astype(indices.dtype)), shape=shape)
    matrix.has_canonical_format = True
    return matrix


def _index_type(n_columns: int, nnz: int) -> type[np.signedinteger[Any]]:
    return np.int32 if max(n_columns, nnz) < _LARGEST else np.int64


def _ones(
    entries: Sequence[Entries], shape: tuple[int, int], dtype: np.dtype[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows of at most one 1 from each column; no entry becomes a column beyond the matrix."""
    n_rows, width = shape[0], len(entries)
    wide = _index_type(shape[1], n_rows * width) is np.int64
    indices = np.empty((n_rows, width), dtype=np.uint64 if wide else np.uint32)
    flat, data = indices.ravel(), np.ones(n_rows * width, dtype=dtype)
    indptr = np.zeros(n_rows + 1, dtype=np.int64)
    for start in range(0, n_rows, _ROWS_AT_ONCE):
        piece = indices[start : start + _ROWS_AT_ONCE]
        for place, entry in enumerate(entries):
            # -1 becomes the largest number.
            piece[:, place] = entry.cols[start : start + _ROWS_AT_ONCE]
        piece.sort(axis=1)
        stop = start + len(piece)
        _packed.merge_ones(flat, width, start, shape[1], indptr[: stop + 1], data)
    return indptr, flat, data


def _side_by_side(
    entries: Sequence[Entries], shape: tuple[int, int], dtype: np.dtype[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows of at most one number from each column."""
    n_rows, width = shape[0], len(entries)
    indices = np.empty(n_rows * width, dtype=_index_type(shape[1], n_rows * width))
    data = np.empty(n_rows * width, dtype=dtype)
    indptr = np.zeros(n_rows + 1, dtype=np.int64)
    room = min(n_rows, _ROWS_AT_ONCE)
    keys, values = np.empty((room, width), dtype=np.uint64), np.ones((room, width), dtype=dtype)
    for start in range(0, n_rows, room):
        rows = slice(start, min(start + room, n_rows))
        some = slice(0, rows.stop - start)
        for place, entry in enumerate(entries):
            cols = entry.cols[rows].astype(np.uint32)  # -1 becomes the largest number
            keys[some, place] = (cols.astype(np.uint64) << np.uint64(32)) | np.uint64(place)
            if entry.values is not None:
                values[some, place] = entry.values[rows]
        keys[some].sort(axis=1)
        _packed.unpack(keys[some], values[some], shape[1], start, indptr, indices, data)
    return indptr, indices, data


def _row_by_row(
    entries: Sequence[Entries], shape: tuple[int, int], dtype: np.dtype[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    every, ones = np.zeros(0, dtype=np.int64), np.zeros(0)
    counts = np.zeros(shape[0], dtype=np.int64)
    for entry in entries:
        _packed.count(entry.cols, every if entry.rows is None else entry.rows, counts)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.empty(indptr[-1], dtype=_index_type(shape[1], int(indptr[-1])))
    data = np.empty(len(indices), dtype=dtype)
    cursor = indptr[:-1].copy()
    for cols, values, rows in entries:
        _packed.place(
            cols,
            every if rows is None else rows,
            ones if values is None else values,
            cursor,
            indices,
            data,
        )
    if counts.max(initial=0) <= _SHORT:
        _packed.sort_rows(indptr, indices, data)
    else:
        rows_of = sp.csr_matrix((data, indices, indptr), shape=shape)
        rows_of.sort_indices()
        indices, data = rows_of.indices, rows_of.data
    _packed.merge(indptr, indices, data, shape[1])
    return indptr, indices, data
