"""The rows that a solver learns from, column by column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm._jit import jit
from polyfm.data.rows import Rows, read_only, row_numbers


class Columns(NamedTuple):
    """The rows' matrix by columns; rows are numbered as the solver's, from 0."""

    indptr: NDArray[Any]
    rows: NDArray[Any]
    values: NDArray[Any]


def columns_of(rows: Rows, n_features: int, *, ones: bool = False) -> Columns:
    """Return the rows by columns; ``ones`` asks for a last column that holds a 1 in every row."""
    indptr = np.zeros(n_features + 1 + ones, dtype=np.int64)
    _count(rows, indptr)
    if ones:
        indptr[-1] = rows.n_rows
    np.cumsum(indptr, out=indptr)
    places = np.empty(indptr[-1], dtype=rows.numbers.dtype)
    values = np.empty(indptr[-1], dtype=rows.values.dtype)
    _fill(rows, indptr[:-1].copy(), places, values)
    if ones:
        places[indptr[-2] :] = np.arange(rows.n_rows)
        values[indptr[-2] :] = 1.0
    return Columns(indptr, places, values)


def side_by_side(parts: list[Rows]) -> list[Rows]:
    """Return rows in the order of their first column, copied unless they already lie so.

    What a solver keeps of the rows of such a column then lies side by side, and a step of that
    column reads memory in sequence: half of all steps where rows are pairs.

    Parameters
    ----------
    parts : list of Rows
        The same rows with the targets and weights of each learner.
    """
    rows = parts[0]
    numbers = rows.numbers[np.argsort(_first_columns(rows), kind="stable")]
    if rows.n_rows == len(rows.indptr) - 1 and np.array_equal(numbers, rows.numbers):
        return parts
    indptr, indices, values = _copies(rows, numbers)
    return [
        Rows(
            indptr, indices, values,
            target=read_only(part.target[numbers]),
            weight=read_only(part.weight[numbers]),
            numbers=row_numbers(len(numbers)),
        )
        for part in parts
    ]  # fmt: skip


def _copies(rows: Rows, numbers: NDArray[Any]) -> list[NDArray[Any]]:
    """Return CSR arrays of the rows of these numbers, in their order."""
    indptr = np.zeros(len(numbers) + 1, dtype=rows.indptr.dtype)
    np.cumsum(rows.indptr[numbers + 1] - rows.indptr[numbers], out=indptr[1:])
    indices = np.empty(indptr[-1], dtype=rows.indices.dtype)
    values = np.empty(indptr[-1], dtype=rows.values.dtype)
    _copy_rows(rows, numbers, indices, values)
    return [read_only(array) for array in (indptr, indices, values)]


def _first_columns(rows: Rows) -> NDArray[Any]:
    """Return the first column of each row, and a number beyond all for a row without any."""
    begin, end = rows.indptr[rows.numbers], rows.indptr[rows.numbers + 1]
    if rows.indices.size == 0:
        return np.zeros(rows.n_rows, dtype=np.int32)
    first = rows.indices[np.minimum(begin, rows.indices.size - 1)]
    return np.where(begin < end, first, np.iinfo(first.dtype).max)


@jit
def _count(rows, counts):
    """Add up the entries of column j in ``counts[j + 1]``."""
    for row in rows.numbers:
        for e in range(rows.indptr[row], rows.indptr[row + 1]):
            counts[rows.indices[e] + 1] += 1


@jit
def _fill(rows, next_place, places, values):
    """Write each entry to the next free place of its column."""
    for i in range(rows.numbers.size):
        row = rows.numbers[i]
        for e in range(rows.indptr[row], rows.indptr[row + 1]):
            j = rows.indices[e]
            places[next_place[j]] = i
            values[next_place[j]] = rows.values[e]
            next_place[j] += 1


@jit
def _copy_rows(rows, numbers, indices, values):
    place = 0
    for row in numbers:
        for e in range(rows.indptr[row], rows.indptr[row + 1]):
            indices[place] = rows.indices[e]
            values[place] = rows.values[e]
            place += 1
