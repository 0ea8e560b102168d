"""The compiled heart of stochastic learning: one pass over some rows, for every update rule."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from polyfm._jit import flush_subnormals, horizontal_sum, jit, load, prefetch, restore_mode
from polyfm.kernels import contract as kernels
from polyfm.kernels.rows import places
from polyfm.losses import contract as losses
from polyfm.models._score import (
    first_state,
    load_degree_weights,
    prefetch_parameters,
    score_row,
)
from polyfm.updates import contract as updates

_LINE_OF_INDICES = 16
_PREFETCHED_LINES = 8
_TERMS_AHEAD = 4
OF_LINEAR, OF_FACTORS = 0, 1
"""Places of the strengths of a column among the last two numbers of its linear record."""


class Penalties(NamedTuple):
    """Penalty specs of the kinds of parameters."""

    bias: Any
    linear: Any
    factors: Any
    weights: Any
    theta: Any


class Switches(NamedTuple):
    """What is learnt besides the table, and how the table starts."""

    bias: bool
    linear: bool
    weights: bool
    theta_from: int
    """Index of the first degree weight that is learnt; the number of degrees if none is."""
    by_evidence: bool = False
    """Whether features start at what their penalty leaves of the random start.

    Dummy features then pay no penalty: they must stay for others to leave zero."""


@jit
def learn_rows(
    kernel, loss, rule, penalties, switches, parameters, plan, rows, order, t, share, cells,
    loss_sum,
):  # fmt: skip
    """Visit the rows named by ``order``; stop before the first whose gradient is not finite.

    Returns the number of rows learnt and ``loss_sum`` with their weighted losses, each before its
    update: added one by one, so that a sum does not depend on where an epoch is cut into calls.
    ``t`` is the number of rows visited before; ``share`` is the share of its penalty that a
    parameter pays at a visit which every row visits. A feature's parameters pay the same in all,
    in as many shares as there are rows with the feature.
    """
    mode = flush_subnormals()
    result = _learn_rows(
        kernel, loss, rule, penalties, switches, parameters, plan, rows, order, t, share, cells,
        loss_sum,
    )  # fmt: skip
    restore_mode(mode)
    return result


@jit
def _learn_rows(
    kernel, loss, rule, penalties, switches, parameters, plan, rows, order, t, share, cells,
    loss_sum,
):  # fmt: skip
    load_degree_weights(parameters, plan.chunks, cells)
    ahead = rows_ahead(rows)
    for i in range(order.size):
        prefetch_rows(rows, order, i, ahead)
        if i + ahead < order.size:
            row = order[i + ahead]
            first, last = rows.indptr[row], rows.indptr[row + 1]
            prefetch_parameters(parameters, rows.indices, first, last)
        row = order[i]
        first, last = rows.indptr[row], rows.indptr[row + 1]
        is_finite, loss_of_row = learn_row(
            kernel, loss, rule, penalties, switches, parameters, plan,
            rows.indices[first:last], rows.values[first:last],
            rows.target[row], rows.weight[row], t + i, share, cells,
        )  # fmt: skip
        if not is_finite:
            return i, loss_sum
        loss_sum += loss_of_row
    return order.size, loss_sum


@jit
def learn_row(
    kernel, loss, rule, penalties, switches, parameters, plan,
    indices, values, target, weight, t, share, cells,
):  # fmt: skip
    """Learn one row; return whether its gradient is finite and its loss before the update."""
    dtype = parameters.bias.dtype.type
    score = score_row(kernel, parameters, plan, indices, values, cells)
    g = dtype(weight * losses.gradient(loss, target, score))
    if not np.isfinite(g):
        return False, 0.0
    rate, share = dtype(updates.rate(rule, t)), dtype(share)
    if switches.bias:
        updates.step(rule, penalties.bias, parameters.bias, 0, 1, 1, g, rate, share)
    if switches.linear:
        _learn_linear(rule, penalties.linear, parameters.linear, indices, values, g, rate)
    _learn_bases(
        kernel, rule, penalties, switches, parameters, plan, indices, values, g, rate, share, cells
    )
    return True, np.float64(weight * losses.value(loss, target, score))


@jit
def rows_ahead(rows):
    """Return how many rows before its use a row's parameters are asked for.

    That long before, they are there in time, and not that long that they are gone again.
    """
    mean_terms = rows.indices.size // max(rows.indptr.size - 1, 1)
    return max(_TERMS_AHEAD // max(mean_terms, 1), 1)


@jit
def prefetch_rows(rows, order, i, ahead):
    """Prefetch what the row ``2 ahead`` places on holds, and where the one ``4 ahead`` on is."""
    n = order.size
    if i + 4 * ahead < n:
        row = order[i + 4 * ahead]
        prefetch(rows.indptr, row)
        prefetch(rows.target, row)
        prefetch(rows.weight, row)
    if i + 2 * ahead < n:
        row = order[i + 2 * ahead]
        first, last = rows.indptr[row], rows.indptr[row + 1]
        last = min(last, first + _LINE_OF_INDICES * _PREFETCHED_LINES)
        for place in range(first, last, _LINE_OF_INDICES):
            prefetch(rows.indices, place)
            prefetch(rows.values, place)


@jit
def share_and_unit(rule, linear, j, kind):
    """Return the share of the penalty that feature j pays at a visit, and its weights' unit.

    Where columns have strengths of their own, the share of column j is that of its strength for
    this ``kind`` of parameters.
    """
    n_planes = updates.n_planes(rule)
    one = linear.dtype.type(1.0)
    has_unit = linear.shape[1] > n_planes + 1
    unit = linear[j, n_planes + 1] if has_unit else one
    has_strengths = linear.shape[1] > n_planes + 2
    strength = linear[j, n_planes + 2 + kind] if has_strengths else one
    return share_of(rule, strength, linear[j, n_planes]), unit


@jit
def share_of(rule, strength, n_visits):
    """Return the share of a penalty that is due at each of some visits."""
    if updates.sums_gradients(rule):
        return strength
    return strength / n_visits


@jit
def share_of_dummies(switches, share):
    """Return the share of the penalty that dummy features pay, of that which every row pays."""
    return share * 0 if switches.by_evidence else share


@jit
def _learn_linear(rule, penalty, linear, indices, values, g, rate):
    size = linear.shape[1]
    for t in range(indices.size):
        j = indices[t]
        share, unit = share_and_unit(rule, linear, j, OF_LINEAR)
        unit_rate = rate * updates.unit_rate(rule, unit)
        updates.step(rule, penalty, linear, j * size, 1, 1, g * values[t], unit_rate, share)


@jit
def _learn_bases(
    kernel, rule, penalties, switches, parameters, plan, indices, values, g, rate, share, cells
):
    """Step lambda, theta and the table, all from the parameters that gave the score."""
    chunks = plan.chunks
    learns_theta = switches.theta_from < parameters.theta.shape[1]
    if learns_theta:
        _learn_theta(
            kernel, rule, penalties.theta, switches.theta_from, parameters, plan, indices.size,
            g, rate, share, cells,
        )  # fmt: skip
    at = first_state(kernel, parameters, chunks)
    for c in range(chunks.shape[0]):
        local = kernels.at_degree(kernel, chunks[c, 0])
        place = (chunks[c, 1], chunks[c, 2], c * parameters.degrees.shape[0])
        scale = load(parameters.weights, chunks[c, 1], chunks[c, 2]) * g
        at += places(local, plan.n_dummies + indices.size)
        last = at - kernels.n_cells(local)
        if switches.weights:
            _learn_weights(
                local, rule, penalties.weights, parameters, place, g, rate, share, cells, last
            )
        _learn_table(
            local, rule, penalties.factors, parameters, plan, place, indices, values,
            scale, rate, share_of_dummies(switches, share), cells, last,
        )  # fmt: skip
    if learns_theta:
        load_degree_weights(parameters, chunks, cells)


@jit
def _learn_weights(local, rule, penalty, parameters, place, g, rate, share, cells, last):
    column, count, degree_weights = place
    weights = parameters.weights
    slope = kernels.value(local, cells, last, degree_weights) * g
    updates.step(rule, penalty, weights, column, weights.shape[1], count, slope, rate, share)


@jit
def _learn_theta(kernel, rule, penalty, first, parameters, plan, n_terms, g, rate, share, cells):
    theta = parameters.theta
    for t in range(first, theta.shape[1]):
        at = first_state(kernel, parameters, plan.chunks)
        slope = parameters.bias.dtype.type(0.0)
        for c in range(plan.chunks.shape[0]):
            local = kernels.at_degree(kernel, plan.chunks[c, 0])
            at += places(local, plan.n_dummies + n_terms)
            last = at - kernels.n_cells(local)
            weight = load(parameters.weights, plan.chunks[c, 1], plan.chunks[c, 2])
            slope += horizontal_sum(weight * kernels.degree_value(local, cells, last, t))
        updates.step(rule, penalty, theta, t, theta.shape[1], 1, g * slope, rate, share)


@jit
def _learn_table(
    local, rule, penalty, parameters, plan, place, indices, values, scale, rate, share, cells, last
):
    """Go back over the terms of a row: slope, adjoint, and the step of each row of the table.

    ``share`` is that of the dummy features.
    """
    column, count, degree_weights = place
    table, linear = parameters.table, parameters.linear
    rank = table.shape[2]
    row_size = table.shape[1] * rank
    room = kernels.n_cells(local)
    adjoint = plan.chunks.shape[0] * parameters.degrees.shape[0]
    kernels.seed(local, cells, last, adjoint, degree_weights)
    before = last
    for t in range(indices.size - 1, -1, -1):
        before -= room
        j, x = indices[t], values[t]
        at = j * row_size + column
        slope = kernels.slope(local, cells, before, adjoint) * scale * x
        kernels.retreat(local, cells, adjoint, load(table, at, count) * x)
        own_share, unit = share_and_unit(rule, linear, j, OF_FACTORS)
        unit_rate = rate * updates.unit_rate(rule, unit)
        updates.step(rule, penalty, table, at, rank, count, slope, unit_rate, own_share)
    for r in range(plan.n_dummies - 1, -1, -1):
        before -= room
        at = (plan.first_dummy + r) * row_size + column
        slope = kernels.slope(local, cells, before, adjoint) * scale
        kernels.retreat(local, cells, adjoint, load(table, at, count))
        updates.step(rule, penalty, table, at, rank, count, slope, rate, share)
