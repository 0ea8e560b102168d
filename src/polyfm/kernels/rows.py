"""Running a kernel over the terms of one row, for up to eight bases at once.

A row's terms are those of the dummy features, whose value is 1 and whose rows of the table follow
those of the features, and then those of its non-zeros.
"""

from __future__ import annotations

from polyfm._jit import jit, load
from polyfm.kernels import contract


@jit
def fold(kernel, table, column, count, n_dummies, indices, values, cells, at):
    """Write the cells before every term and after the last, and return the place of the last."""
    row_size = table.shape[1] * table.shape[2]
    room = contract.n_cells(kernel)
    first_dummy = table.shape[0] - n_dummies
    contract.start(kernel, cells, at)
    for r in range(n_dummies):
        z = load(table, (first_dummy + r) * row_size + column, count)
        contract.absorb(kernel, cells, at, at + room, z)
        at += room
    for t in range(indices.size):
        z = load(table, indices[t] * row_size + column, count) * values[t]
        contract.absorb(kernel, cells, at, at + room, z)
        at += room
    return at


@jit
def places(kernel, n_terms):
    """Return how many cells :func:`fold` writes for a row of ``n_terms`` terms."""
    return (n_terms + 1) * contract.n_cells(kernel)
