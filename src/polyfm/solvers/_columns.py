"""What stochastic learning has to know of each column: how often it is seen and how large it is."""

from __future__ import annotations

import numpy as np

from polyfm._jit import jit, jit_allocating, prefetch

_LARGEST_UNIT = 1e15
_AHEAD, _LINE = 16, 64
"""Features to ask for ahead of time, and bytes that come together."""
_MANY = 16
"""One of so many columns is much: to look at all of them takes less time than at these in turn."""
_LARGEST_PLACE = 1 << 23
"""Whole numbers that single precision can hold, with room to spare."""


@jit_allocating
def distinct(rows, mark):
    """Return the distinct column numbers: in increasing order if they are many of all columns.

    Their parameters then lie in the order in which they will be visited. Otherwise, numbers are in
    the order of their first use, and nothing takes time in proportion to all columns. ``mark``
    holds one byte of 0 for each column, and does so again afterwards.
    """
    found = np.empty(min(rows.indices.size, mark.size) + 1, dtype=np.int64)
    n = 0
    for row in rows.numbers:
        for t in range(rows.indptr[row], rows.indptr[row + 1]):
            j = rows.indices[t]
            if mark[j] == 0:
                mark[j] = 1
                found[n] = j
                n += 1
    if n > mark.size // _MANY:
        place = 0
        for j in range(mark.size):
            found[place] = j
            place += mark[j]
            mark[j] = 0
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
    # A sum of zero times a number is 0 unless some number is not finite.
    total = 0.0
    size = p.table.shape[1] * p.table.shape[2]
    for i in range(features.size):
        j, later = features[i], features[min(i + _AHEAD, features.size - 1)]
        prefetch(p.linear, later * p.linear.shape[1])
        for place in range(later * size, (later + 1) * size, _LINE // p.table.itemsize):
            prefetch(p.table, place)
        for t in range(p.linear.shape[1]):
            total += p.linear[j, t] * 0.0
        total += _zero_times(p.table, j)
    for j in range(p.linear.shape[0], p.table.shape[0]):
        total += _zero_times(p.table, j)
    return total == 0.0


@jit
def _zero_times(table, j):
    total = 0.0
    for plane in range(table.shape[1]):
        for s in range(table.shape[2]):
            total += table[j, plane, s] * 0.0
    return total


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

    Rows count with their weights. It takes time and room for these rows and columns alone: where
    the units are to stand, a number below 0 tells each feature's place among them meanwhile.
    """
    for first in range(0, features.size, _LARGEST_PLACE):
        some = features[first : first + _LARGEST_PLACE]
        weights, squares = np.zeros(some.size), np.zeros(some.size)
        for k in range(some.size):
            linear[some[k], column] = -k - 1
        for row in rows.numbers:
            weight = np.float64(rows.weight[row])
            for t in range(rows.indptr[row], rows.indptr[row + 1]):
                mark = linear[rows.indices[t], column]
                if mark < 0.0:
                    place, value = np.int64(-mark) - 1, np.float64(rows.values[t])
                    weights[place] += weight
                    squares[place] += weight * value * value
        for k in range(some.size):
            linear[some[k], column] = unit_of(weights[k], squares[k])


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
