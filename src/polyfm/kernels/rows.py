"""Running a kernel over the terms of one row, for up to eight bases at once.

A row's terms are those of the dummy features, whose value is 1 and whose rows of the table follow
those of the features, and then those of its non-zeros.
"""

from __future__ import annotations

from polyfm._jit import jit, load
from polyfm.kernels import contract


@jit
def fold(kernel, table, column, count, dummies, indices, values, cells, at):
    """Write the cells before every term and after the last, and return the place of the last.

    ``dummies`` bound the rows of the table for the dummy features.
    """
    row_size = table.shape[1] * table.shape[2]
    room = contract.n_cells(kernel)
    contract.start(kernel, cells, at)
    for r in range(dummies[0], dummies[1]):
        z = load(table, r * row_size + column, count)
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
