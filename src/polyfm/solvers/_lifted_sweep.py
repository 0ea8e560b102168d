"""The compiled steps of coordinate descent on a lifted model."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from polyfm._jit import jit
from polyfm.kernels import lifted
from polyfm.losses import contract as losses
from polyfm.solvers._random import symmetric


class Samples(NamedTuple):
    """What is known of each training row while a model moves."""

    target: NDArray[Any]
    weight: NDArray[Any]
    score: NDArray[Any]
    """The present prediction."""
    pull: NDArray[Any]
    """Weight times the gradient of the loss at the present prediction."""
    cells: NDArray[Any]
    """(n, cells): the state of the present basis, see :mod:`polyfm.kernels.lifted`."""
    rest: NDArray[Any]
    """(2, cells): room for the state of one row without a feature."""


@jit
def draw(seed, features, out):
    """Write random numbers of mean 0 and variance 1: a row for each feature."""
    for i in range(features.size):
        for k in range(out.shape[1]):
            out[i, k] = symmetric(seed, features[i], k)


@jit
def begin_descent(loss, samples):
    """Work out every row's pull and return the sum of the losses."""
    total = 0.0
    for i in range(samples.score.size):
        y, p, weight = samples.target[i], samples.score[i], samples.weight[i]
        samples.pull[i] = weight * losses.gradient(loss, y, p)
        total += weight * losses.value(loss, y, p)
    return total


@jit
def _newton_step(curvature, gradient, squares, strength, weight):
    """Return the change that minimises the bound on the objective along one coordinate."""
    bend = curvature * squares + strength
    if bend > 0.0:
        return -(gradient + strength * weight) / bend
    return 0.0


@jit
def descend_linear(loss, columns, offset, samples, weights, strengths, first, last):
    """Step along some coordinates of a linear term; coordinate j has the column offset + j."""
    curvature = losses.curvature(loss)
    for j in range(first, last):
        start, stop = columns.indptr[offset + j], columns.indptr[offset + j + 1]
        gradient, squares = 0.0, 0.0
        for e in range(start, stop):
            i, x = columns.rows[e], columns.values[e]
            gradient += samples.pull[i] * x
            squares += samples.weight[i] * x * x
        if squares == 0.0:
            continue
        change = _newton_step(curvature, gradient, squares, strengths[j], weights[j])
        weights[j] += change
        for e in range(start, stop):
            i = columns.rows[e]
            _move(loss, samples, i, change * columns.values[e])


@jit
def _move(loss, samples, i, change):
    samples.score[i] += change
    gradient = losses.gradient(loss, samples.target[i], samples.score[i])
    samples.pull[i] = samples.weight[i] * gradient


@jit
def begin_basis(kernel, samples):
    """Clear the state of all rows."""
    for i in range(samples.score.size):
        lifted.begin(kernel, samples.cells, i)


@jit
def absorb_columns(kernel, columns, table, basis, samples, first, last):
    """Add some features to the state of the rows they are in."""
    n_columns = columns.indptr.size - 1
    for j in range(first, last):
        column = min(j, n_columns - 1)
        for e in range(columns.indptr[column], columns.indptr[column + 1]):
            i = columns.rows[e]
            lifted.absorb(kernel, samples.cells, i, table[j, basis], columns.values[e])


@jit
def focus_rows(kernel, samples, slot):
    """Get all rows ready for changes of factors of one slot."""
    for i in range(samples.score.size):
        lifted.focus(kernel, samples.cells, i, slot)


@jit
def descend_slot(kernel, loss, columns, rows, samples, table, basis, slot, strengths, first, last):
    """Step along the factors that some features have in one slot of one basis.

    Features from ``columns``' last one on are dummy features. ``rows`` are those of the columns.
    """
    curvature = losses.curvature(loss)
    n_columns = columns.indptr.size - 1
    rest = samples.rest
    for j in range(first, last):
        column = min(j, n_columns - 1)
        start, stop = columns.indptr[column], columns.indptr[column + 1]
        if start == stop:
            continue
        gradient, squares = 0.0, 0.0
        for e in range(start, stop):
            i, x = columns.rows[e], columns.values[e]
            _set_apart(kernel, columns, rows, samples, table, basis, slot, j, i, x)
            slope = lifted.slope(kernel, samples.cells, i, slot, x, rest)
            gradient += samples.pull[i] * slope
            squares += samples.weight[i] * slope * slope
        weight = table[j, basis, slot]
        change = _newton_step(curvature, gradient, squares, strengths[j], weight)
        if change == 0.0:
            continue
        for e in range(start, stop):
            i, x = columns.rows[e], columns.values[e]
            _set_apart(kernel, columns, rows, samples, table, basis, slot, j, i, x)
            _move(loss, samples, i, change * lifted.slope(kernel, samples.cells, i, slot, x, rest))
            lifted.shift(kernel, samples.cells, i, slot, change * x, rest)
        # Last, as the state of each row is still that of the former factor.
        table[j, basis, slot] = weight + change


@jit
def _set_apart(kernel, columns, rows, samples, table, basis, slot, j, i, x):
    """Write the state of row ``i`` without feature ``j``, by its other features if need be."""
    rest = samples.rest
    if lifted.set_apart(kernel, samples.cells, i, slot, table[j, basis], x, rest):
        return
    lifted.begin(kernel, rest, 0)
    row = rows.numbers[i]
    for e in range(rows.indptr[row], rows.indptr[row + 1]):
        other = rows.indices[e]
        if other != j:
            lifted.absorb(kernel, rest, 0, table[other, basis], rows.values[e])
    for other in range(columns.indptr.size - 2, table.shape[0]):
        if other != j:
            lifted.absorb(kernel, rest, 0, table[other, basis], 1.0)
