"""The compiled score of a row: one function for learning and for prediction."""

from __future__ import annotations

from polyfm._jit import LANES, horizontal_sum, jit, load, prefetch, store
from polyfm.kernels import contract
from polyfm.kernels.rows import fold, places

CACHE_LINE = 64


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
    score = parameters.bias[0, 0]
    for t in range(indices.size):
        score += linear[indices[t], 0] * values[t]
    chunks = plan.chunks
    m = parameters.degrees.shape[0]
    at = first_state(kernel, parameters, chunks)
    for c in range(chunks.shape[0]):
        local = contract.at_degree(kernel, chunks[c, 0])
        column, count = chunks[c, 1], chunks[c, 2]
        last = fold(
            local, parameters.table, column, count, plan.n_dummies, indices, values, cells, at
        )
        kernels = contract.value(local, cells, last, c * m)
        score += horizontal_sum(kernels * load(parameters.weights, column, count))
        at += places(local, plan.n_dummies + indices.size)
    return score


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
def score_rows(kernel, parameters, plan, indptr, indices, values, cells, out):
    """Write f(x) of all rows of a CSR matrix into ``out``."""
    load_degree_weights(parameters, plan.chunks, cells)
    for i in range(out.size):
        if i + 1 < out.size:
            prefetch_parameters(parameters, indices, indptr[i + 1], indptr[i + 2])
        first, last = indptr[i], indptr[i + 1]
        out[i] = score_row(kernel, parameters, plan, indices[first:last], values[first:last], cells)
