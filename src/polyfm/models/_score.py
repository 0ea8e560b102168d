"""The compiled score of a row: one function for learning and for prediction."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm._jit import (
    LANES,
    flush_subnormals,
    horizontal_sum,
    jit,
    load,
    prefetch,
    restore_mode,
    store,
)
from polyfm.kernels import contract
from polyfm.kernels.rows import fold, places

CACHE_LINE = 64


class Parameters(NamedTuple):
    """All numbers of a model, as compiled code sees them.

    *Planes* are what the update rule keeps for a coordinate, the weight first; a model that only
    predicts has one plane. ``d`` features, ``r`` dummy features, ``k`` bases, ``m`` degrees.
    """

    bias: NDArray[Any]
    """(planes, 1)."""
    linear: NDArray[Any]
    """(d, planes + extras): weight, other planes, and while learning also the number of rows seen
    with the feature. In the next column, if there is one, stands the unit of its weights, and in
    two more, if there are these, what the penalties of its weight and of its factors are
    multiplied by."""
    table: NDArray[Any]
    """(d + r, planes, k): one row of factors per feature, those of the dummy features last."""
    weights: NDArray[Any]
    """(planes, k): lambda, the weight of each basis."""
    theta: NDArray[Any]
    """(planes, m): weight of each degree."""
    degrees: NDArray[Any]
    """(m, k): 1 where a basis takes part in a degree."""


class Plan(NamedTuple):
    """How compiled code walks through the bases."""

    chunks: NDArray[np.int64]
    """(n, 3): highest degree, first column and number of columns of up to eight bases each."""
    n_dummies: int
    first_dummy: int
    """Row of the table where those of the dummy features begin."""


@jit
def load_degree_weights(parameters, chunks, cells):
    """Copy theta into the first cells: m for each chunk of bases."""
    m, rank = parameters.degrees.shape
    for c in range(chunks.shape[0]):
        for t in range(m):
            taking_part = load(parameters.degrees, t * rank + chunks[c, 1], chunks[c, 2])
            store(cells, (c * m + t) * LANES, LANES, taking_part * parameters.theta[0, t])


@jit
def score_row(kernel, parameters, plan, indices, values, cells):
    """Return f(x) of one row and leave the state of every chunk of bases in the cells."""
    linear = parameters.linear
    score = linear.dtype.type(0.0)
    for t in range(indices.size):
        score += linear[indices[t], 0] * values[t]
    chunks = plan.chunks
    m = parameters.degrees.shape[0]
    dummies = (plan.first_dummy, plan.first_dummy + plan.n_dummies)
    at = first_state(kernel, parameters, chunks)
    for c in range(chunks.shape[0]):
        local = contract.at_degree(kernel, chunks[c, 0])
        column, count = chunks[c, 1], chunks[c, 2]
        last = fold(local, parameters.table, column, count, dummies, indices, values, cells, at)
        kernels = contract.value(local, cells, last, c * m)
        score += horizontal_sum(kernels * load(parameters.weights, column, count))
        at += places(local, plan.n_dummies + indices.size)
    # Last, as the row before has only just changed it: all else need not wait for it.
    return score + parameters.bias[0, 0]


@jit
def first_state(kernel, parameters, chunks):
    """Return the place where the state of the first chunk starts: after weights and adjoint."""
    return chunks.shape[0] * parameters.degrees.shape[0] + contract.n_cells(kernel)


@jit
def prefetch_parameters(parameters, indices, first, last):
    """Ask for the parameters of one row's features, which are scattered over memory."""
    linear, table = parameters.linear, parameters.table
    row_size = table.shape[1] * table.shape[2]
    line = CACHE_LINE // table.itemsize
    for t in range(first, last):
        j = indices[t]
        prefetch(linear, j * linear.shape[1])
        for k in range(0, row_size, line):
            prefetch(table, j * row_size + k)


@jit
def score_rows(kernel, parameters, plan, rows, numbers, cells, out):
    """Write f(x) of the rows with the given numbers into ``out``."""
    mode = flush_subnormals()
    load_degree_weights(parameters, plan.chunks, cells)
    indptr = rows.indptr
    for i in range(numbers.size):
        if i + 1 < numbers.size:
            following = numbers[i + 1]
            prefetch_parameters(parameters, rows.indices, indptr[following], indptr[following + 1])
        first, last = indptr[numbers[i]], indptr[numbers[i] + 1]
        out[i] = score_row(
            kernel, parameters, plan, rows.indices[first:last], rows.values[first:last], cells
        )
    restore_mode(mode)
