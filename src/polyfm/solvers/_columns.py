"""What stochastic learning has to know of each column: how often it is seen and how large it is."""

from __future__ import annotations

import numpy as np

from polyfm._jit import jit, jit_allocating

_LARGEST_UNIT = 1e15


@jit_allocating
def distinct(rows, mark):
    """Return the distinct column numbers, in the order of their first use.

    ``mark`` holds one byte of 0 for each column, and does so again afterwards.
    """
    found = np.empty(min(rows.indices.size, mark.size), dtype=np.int64)
    n = 0
    for row in rows.numbers:
        for t in range(rows.indptr[row], rows.indptr[row + 1]):
            j = rows.indices[t]
            if mark[j] == 0:
                mark[j] = 1
                found[n] = j
                n += 1
    for i in range(n):
        mark[found[i]] = 0
    return found[:n].copy()


@jit
def count_visits(rows, counts):
    """Add to ``counts`` the number of rows that each column is in."""
    for row in rows.numbers:
        for t in range(rows.indptr[row], rows.indptr[row + 1]):
            counts[rows.indices[t]] += 1


@jit
def renew_visits(counts, linear, column):
    """Write the counts into a column of the linear records.

    A column that is not in these rows keeps a count of 1, so that it is not started again.
    """
    for j in range(counts.size):
        if counts[j] > 0:
            linear[j, column] = counts[j]
        elif linear[j, column] > 1.0:
            linear[j, column] = 1.0


@jit
def weigh_columns(rows, weights, squares):
    """Add up, for each column, the weights of its rows and its weighted squares."""
    for row in rows.numbers:
        weight = np.float64(rows.weight[row])
        for t in range(rows.indptr[row], rows.indptr[row + 1]):
            j, value = rows.indices[t], np.float64(rows.values[t])
            weights[j] += weight
            squares[j] += weight * value * value


@jit_allocating
def measure_units(rows, linear, column, features):
    """Set one over the root mean square of the non-zeros as the unit of some columns.

    Rows count with their weights.

    Units stay between 1e-15 and 1e15, whose squares single precision can hold.
    """
    n = np.zeros(linear.shape[0])
    total = np.zeros(linear.shape[0])
    weigh_columns(rows, n, total)
    for i in range(features.size):
        j = features[i]
        unit = np.sqrt(n[j] / total[j]) if total[j] > 0.0 else _LARGEST_UNIT
        linear[j, column] = min(max(unit, 1.0 / _LARGEST_UNIT), _LARGEST_UNIT)
