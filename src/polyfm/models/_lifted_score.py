"""The compiled score of a lifted model."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from polyfm._jit import jit
from polyfm.kernels import lifted


class LiftedParameters(NamedTuple):
    """All numbers of a lifted model: ``d`` features, ``q`` dummy features, ``r`` bases, degree m.

    All but ``met`` are in double precision.
    """

    bias: NDArray[Any]
    """(1,)."""
    linear: NDArray[Any]
    """(d,)."""
    table: NDArray[Any]
    """(d + q, r, m): for each basis one factor per slot; those of the dummy features last."""
    met: NDArray[Any]
    """(d,): 1 for a feature that was in a training row, whose factors have been started."""


@jit
def score_lifted_rows(kernel, parameters, n_dummies, rows, numbers, cells, out):
    """Write f(x) of the rows with the given numbers into ``out``.

    ``cells`` has a row for each basis.
    """
    linear, table = parameters.linear, parameters.table
    for i in range(numbers.size):
        first, last = rows.indptr[numbers[i]], rows.indptr[numbers[i] + 1]
        score = parameters.bias[0]
        for basis in range(table.shape[1]):
            lifted.begin(kernel, cells, basis)
            for q in range(linear.size, linear.size + n_dummies):
                lifted.absorb(kernel, cells, basis, table[q, basis], 1.0)
        for e in range(first, last):
            j, x = rows.indices[e], rows.values[e]
            score += linear[j] * x
            for basis in range(table.shape[1]):
                lifted.absorb(kernel, cells, basis, table[j, basis], x)
        for basis in range(table.shape[1]):
            score += lifted.value(kernel, cells, basis)
        out[i] = score
