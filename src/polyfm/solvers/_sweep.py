"""The compiled heart of coordinate descent: passes over the columns of the data.

The objective is a sum of losses, convex in the prediction with a curvature of at most c, plus
penalties. The prediction is affine in any few factors of one feature, so the sum of
:math:`\\ell(f_i) + \\ell'(f_i) \\langle g_i, u \\rangle + \\frac{c}{2} \\langle g_i, u \\rangle^2`
is an upper bound that touches it at u = 0, and equals it for the squared loss. Its minimum, with
the penalty, is one small linear system for each feature.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm._jit import (
    LANES,
    absolute,
    broadcast,
    horizontal_sum,
    jit,
    load,
    load_like,
    maximum,
    minimum,
    prefetch,
    store,
)
from polyfm.kernels import columns as column_kernels
from polyfm.kernels import contract as kernels
from polyfm.losses import contract as losses
from polyfm.penalties import contract as penalties

SCORE, TARGET, WEIGHT = 0, 1, 2
"""Where a head holds the prediction, the target and the weight of its row."""
_AHEAD = 16
_LINE = 8
"""Numbers of a cache line."""
_GRADIENT = LANES * LANES
_SCALES, _START, _CHANGE = _GRADIENT + LANES, _GRADIENT + 2 * LANES, _GRADIENT + 3 * LANES
SMALL_ROOM = _GRADIENT + 4 * LANES
_TRUST = 1e-10
_NEGLIGIBLE = 1e-13


class Records(NamedTuple):
    """What is kept of each row: a head, and for the present block the kernel's state.

    A single basis has its state in the head, so that a step of a column fetches one record; the
    states of a larger block are cache lines of their own, which passes that do not need them spare.
    """

    heads: NDArray[Any]
    """(n * head,): prediction, target, weight, and the state of a single basis."""
    head: int
    """Numbers of a head."""
    states: NDArray[Any]
    """The array that holds the states: ``heads``, or one of their own."""
    stride: int
    """Numbers between the states of two rows."""
    offset: int
    """Where the first row's state begins."""


class Block(NamedTuple):
    """Some bases that are learnt together."""

    column: int
    """First column of the table."""
    size: int
    """Number of bases, at most eight."""
    theta: int
    """Place of the degree weights among the cells."""


class Room(NamedTuple):
    """Arrays to work in, of double precision."""

    cells: NDArray[Any]
    """Degree weights of every group of eight bases, then cells for folding one row."""
    planes: NDArray[Any]
    """(cells * LANES * n,): the state of every row for a group of bases, one basis after the other;
    empty if whole groups are learnt together."""
    slopes: NDArray[Any]
    """(longest column * count,): derivatives of the rows' predictions."""
    hard: NDArray[Any]
    """(longest column,): entries of the column whose slope could not be read off the state."""
    small: NDArray[Any]
    """(SMALL_ROOM,): Hessian, gradient, scales, start and change of a block."""


@jit
def n_rows(records):
    """Return the number of records."""
    return records.heads.size // records.head


@jit
def fold_rows(kernel, table, group, rows, plan, records, room):
    """Work out the state of every row for a group of bases, into the states or the planes."""
    n, n_cells = rows.numbers.size, column_kernels.n_row_cells(kernel)
    for i in range(n):
        last = _fold_row(kernel, table, group, rows, plan, room, i, -1)
        if room.planes.size == 0:
            _keep_state(kernel, records, room, i, group.size, last)
            continue
        for t in range(n_cells):
            for r in range(group.size):
                state = load_like(0.0, room.cells, (last + t) * LANES + r, 1)
                store(room.planes, (t * LANES + r) * n + i, 1, state)


@jit
def load_state(kernel, first, count, records, room):
    """Copy the state of some bases of the group into the records."""
    n = n_rows(records)
    for t in range(column_kernels.n_row_cells(kernel)):
        for r in range(count):
            plane, place = (t * LANES + first + r) * n, records.offset + t * count + r
            for i in range(n):
                state = load_like(0.0, room.planes, plane + i, 1)
                store(records.states, i * records.stride + place, 1, state)


@jit
def _keep_state(kernel, records, room, i, width, last):
    at = i * records.stride + records.offset
    for t in range(column_kernels.n_row_cells(kernel)):
        store(records.states, at + t * width, width, kernels.cell(room.cells, last + t))


@jit
def _fold_row(kernel, table, block, rows, plan, room, i, left_out):
    """Fold one row, but for one row of the table; return the place of the last cells."""
    rank, at = table.shape[2], room.cells.size // LANES - kernels.n_cells(kernel)
    kernels.start(kernel, room.cells, at)
    for j in range(plan.first_dummy, plan.first_dummy + plan.n_dummies):
        if j != left_out:
            z = load(table, j * rank + block.column, block.size)
            kernels.absorb(kernel, room.cells, at, at, z)
    row = rows.numbers[i]
    for t in range(rows.indptr[row], rows.indptr[row + 1]):
        j = rows.indices[t]
        if j != left_out:
            z = load(table, j * rank + block.column, block.size) * float(rows.values[t])
            kernels.absorb(kernel, room.cells, at, at, z)
    return at


@jit
def sweep_factors(
    kernel, loss, penalty, block, first, last, columns, rows, plan, parameters, strengths, records,
    room,
):  # fmt: skip
    """Minimise over the factors of the block's bases, one row of the table after the other."""
    _sweep(
        broadcast(room.small, 0.0), kernel, loss, penalty, block, first, last, columns, rows, plan,
        parameters, strengths, records, room,
    )  # fmt: skip


@jit
def sweep_basis(
    kernel, loss, penalty, block, first, last, columns, rows, plan, parameters, strengths, records,
    room,
):  # fmt: skip
    """Do what :func:`sweep_factors` does for a block of a single basis, without lanes."""
    _sweep(
        0.0, kernel, loss, penalty, block, first, last, columns, rows, plan, parameters, strengths,
        records, room,
    )  # fmt: skip


@jit
def _sweep(
    zero, kernel, loss, penalty, block, first, last, columns, rows, plan, parameters, strengths,
    records, room,
):  # fmt: skip
    """Sweep with numbers of the type of ``zero``: lanes or scalars."""
    table = parameters.table
    weights = load_like(zero, parameters.weights, block.column, block.size)
    for j in range(first, last):
        begin, n = _extent(columns, plan, records, j)
        if n == 0:
            continue
        place = j * table.shape[2] + block.column
        p = load_like(zero, table, place, block.size)
        n_hard = _collect(
            kernel, loss, block, columns, rows, plan, table, weights, p, j, begin, n, records, room
        )
        store(room.small, _START, LANES, p)
        for r in range(block.size):
            room.small[_SCALES + r] = strengths[j] * abs(parameters.weights[0, block.column + r])
        _solve(penalty, room.small, block.size)
        for r in range(block.size, LANES):
            room.small[_CHANGE + r] = 0.0
        change = load_like(zero, room.small, _CHANGE, LANES)
        store(table, place, block.size, p + change)
        _spread(
            kernel, block, columns, rows, plan, table, p, change, begin, n, records, room, n_hard
        )


@jit
def _extent(columns, plan, records, j):
    """Return where a column's entries begin and how many there are; a dummy is in every row."""
    if j >= plan.first_dummy:
        return -1, n_rows(records)
    return columns.indptr[j], columns.indptr[j + 1] - columns.indptr[j]


@jit
def _entry(columns, begin, t):
    """Return the row and the value of a column's t-th entry."""
    if begin < 0:
        return t, 1.0
    return np.int64(columns.rows[begin + t]), np.float64(columns.values[begin + t])


@jit
def _collect(
    kernel, loss, block, columns, rows, plan, table, weights, p, j, begin, n, records, room
):
    """Sum up gradient and Hessian over a column; return the number of rows that had to be folded.

    Leaves the derivatives of the rows' predictions in ``room.slopes``.
    """
    count = block.size
    gradient, diagonal = p * 0.0, p * 0.0
    for r in range(count):
        store(room.small, r * LANES, LANES, gradient)
    n_hard = 0
    for t in range(n):
        i, x = _entry(columns, begin, t)
        if t + _AHEAD < n:
            _prefetch(columns, begin, t + _AHEAD, records)
        z, at = p * x, i * records.stride + records.offset
        slope, bound = column_kernels.row_slope(
            kernel, records.states, at, count, z, room.cells, block.theta
        )
        if _is_hard(slope, bound, z):
            room.hard[n_hard] = t
            n_hard += 1
            continue
        g = slope * weights * x
        gradient, diagonal = _add_row(loss, records, i, room, t, count, g, gradient, diagonal)
    # Apart, so that the loop above, which most rows are done with, stays small.
    for h in range(n_hard):
        t = room.hard[h]
        i, x = _entry(columns, begin, t)
        cells = _fold_row(kernel, table, block, rows, plan, room, i, j) * LANES
        slope, _ = column_kernels.row_slope(
            kernel, room.cells, cells, LANES, p * 0.0, room.cells, block.theta
        )
        g = slope * weights * x
        gradient, diagonal = _add_row(loss, records, i, room, t, count, g, gradient, diagonal)
    store(room.small, _GRADIENT, LANES, gradient)
    if count == 1:
        store(room.small, 0, 1, diagonal)
    return n_hard


@jit
def _add_row(loss, records, i, room, t, count, g, gradient, diagonal):
    """Add to gradient and Hessian what a row contributes whose prediction has derivative ``g``."""
    at = i * records.head
    store(room.slopes, t * count, count, g)
    bend = load_like(0.0, records.heads, at + WEIGHT, 1) * losses.curvature(loss)
    gradient = gradient + g * _pull(loss, records.heads, at)
    if count == 1:
        return gradient, diagonal + g * g * bend
    for r in range(count):
        scale = load_like(0.0, room.slopes, t * count + r, 1) * bend
        sums = load_like(g, room.small, r * LANES, LANES)
        store(room.small, r * LANES, LANES, sums + g * scale)
    return gradient, diagonal


@jit
def _is_hard(slope, bound, z):
    """Say whether a lane's rounding error is large beside its slope, and large at all."""
    large = bound * (absolute(z) + 1.0) - _NEGLIGIBLE
    if horizontal_sum(maximum(large, 0.0)) == 0.0:  # as nearly always
        return False
    excess = minimum(large, bound - absolute(slope) * _TRUST)
    return horizontal_sum(maximum(excess, 0.0)) > 0.0


@jit
def _prefetch(columns, begin, t, records):
    i, _ = _entry(columns, begin, t)
    prefetch(records.heads, i * records.head)
    if records.offset == 0:
        for place in range(0, records.stride, _LINE):
            prefetch(records.states, i * records.stride + place)


@jit
def _solve(penalty, small, count):
    penalties.block_step(
        penalty, small[:_GRADIENT], small[_GRADIENT:_SCALES], small[_SCALES:_START],
        small[_START:_CHANGE], small[_CHANGE:], count, LANES,
    )  # fmt: skip


@jit
def _spread(kernel, block, columns, rows, plan, table, p, change, begin, n, records, room, n_hard):
    """Bring predictions and states up to date after a row of the table has changed."""
    count = block.size
    for t in range(n):
        i, x = _entry(columns, begin, t)
        g = load_like(p, room.slopes, t * count, count)
        at = i * records.head + SCORE
        score = load_like(0.0, records.heads, at, 1) + horizontal_sum(g * change)
        store(records.heads, at, 1, score)
        at = i * records.stride + records.offset
        column_kernels.move_term(kernel, records.states, at, count, p * x, change * x)
    for h in range(n_hard):
        i, _ = _entry(columns, begin, room.hard[h])
        last = _fold_row(kernel, table, block, rows, plan, room, i, -1)
        _keep_state(kernel, records, room, i, count, last)


@jit
def sweep_linear(loss, penalty, first, last, columns, linear, strengths, records, small):
    """Minimise over the linear weights, one after the other."""
    curvature = losses.curvature(loss)
    for j in range(first, last):
        gradient, hessian = 0.0, 0.0
        for t in range(columns.indptr[j], columns.indptr[j + 1]):
            i, x = _entry(columns, 0, t)
            if t + _AHEAD < columns.rows.size:
                prefetch(records.heads, columns.rows[t + _AHEAD] * records.head)
            at = i * records.head
            gradient += x * _pull(loss, records.heads, at)
            hessian += x * x * records.heads[at + WEIGHT]
        if hessian == 0.0:
            continue
        change = _scalar_step(
            penalty, gradient, curvature * hessian, strengths[j], linear[j, 0], small
        )
        linear[j, 0] += change
        for t in range(columns.indptr[j], columns.indptr[j + 1]):
            i, x = _entry(columns, 0, t)
            records.heads[i * records.head + SCORE] += change * x


@jit
def step_dense(loss, penalty, strength, start, values, stride, records, small):
    """Minimise over one parameter that every row's prediction is linear in; return its change.

    The derivative of row i is ``values[i * stride]``, or 1 where ``values`` is empty.
    """
    gradient, hessian = 0.0, 0.0
    n = n_rows(records)
    for i in range(n):
        g = values[i * stride] if values.size else 1.0
        at = i * records.head
        gradient += g * _pull(loss, records.heads, at)
        hessian += g * g * records.heads[at + WEIGHT]
    hessian *= losses.curvature(loss)
    change = _scalar_step(penalty, gradient, hessian, strength, start, small)
    for i in range(n):
        g = values[i * stride] if values.size else 1.0
        records.heads[i * records.head + SCORE] += change * g
    return change


@jit
def _scalar_step(penalty, gradient, hessian, strength, start, small):
    small[0], small[_GRADIENT], small[_SCALES], small[_START] = hessian, gradient, strength, start
    _solve(penalty, small, 1)
    return small[_CHANGE]


@jit
def kernel_values(kernel, block, rows, plan, table, room, out):
    """Write the kernel's value of every row and basis of a block into ``out``, LANES a row."""
    for i in range(rows.numbers.size):
        last = _fold_row(kernel, table, block, rows, plan, room, i, -1)
        store(out, i * LANES, LANES, kernels.value(kernel, room.cells, last, block.theta))


@jit
def add_degree_values(kernel, block, rows, plan, parameters, room, t, out):
    """Add to ``out`` what the weight of degree t + 1 is multiplied by in every row."""
    taking_part = load(
        parameters.degrees, t * parameters.degrees.shape[1] + block.column, block.size
    )
    scale = load(parameters.weights, block.column, block.size) * taking_part
    for i in range(rows.numbers.size):
        last = _fold_row(kernel, parameters.table, block, rows, plan, room, i, -1)
        out[i] += horizontal_sum(kernels.degree_value(kernel, room.cells, last, t) * scale)


@jit
def total_loss(loss, records):
    """Return the weighted sum of losses."""
    total, values = 0.0, records.heads
    for at in range(0, values.size, records.head):
        value = losses.value(loss, values[at + TARGET], values[at + SCORE])
        total += values[at + WEIGHT] * value
    return total


@jit
def _pull(loss, values, at):
    """Return the weighted derivative of a row's loss by its prediction."""
    score = load_like(0.0, values, at + SCORE, 1)
    target = load_like(0.0, values, at + TARGET, 1)
    return load_like(0.0, values, at + WEIGHT, 1) * losses.gradient(loss, target, score)
