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
def are_finite(parameters, features):
    """Say whether the parameters of some features, and those of all rows, are finite numbers."""
    p = parameters
    for block in (p.bias, p.weights, p.theta):
        for number in block.flat:
            if not np.isfinite(number):
                return False
    for j in features:
        for number in p.linear[j]:
            if not np.isfinite(number):
                return False
        for number in p.table[j].flat:
            if not np.isfinite(number):
                return False
    for number in p.table[p.linear.shape[0] :].flat:
        if not np.isfinite(number):
            return False
    return True


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

    Rows count with their weights. It takes time and room for these rows and columns alone.
    """
    order = np.sort(features)
    weights, squares = np.zeros(order.size), np.zeros(order.size)
    for row in rows.numbers:
        weight = np.float64(rows.weight[row])
        for t in range(rows.indptr[row], rows.indptr[row + 1]):
            place = np.searchsorted(order, rows.indices[t])
            if place < order.size and order[place] == rows.indices[t]:
                value = np.float64(rows.values[t])
                weights[place] += weight
                squares[place] += weight * value * value
    for k in range(order.size):
        linear[order[k], column] = unit_of(weights[k], squares[k])


@jit
def unit_of(weight, square):
    """Return one over the root mean square of a column.

    Units stay between 1e-15 and 1e15, whose squares single precision can hold.
    """
    unit = np.sqrt(weight / square) if square > 0.0 else _LARGEST_UNIT
    return min(max(unit, 1.0 / _LARGEST_UNIT), _LARGEST_UNIT)


@jit
def set_units(linear, column, features, weights, squares):
    """Set the units of some columns from what :func:`weigh_columns` has added up."""
    for i in range(features.size):
        j = features[i]
        linear[j, column] = unit_of(weights[j], squares[j])
