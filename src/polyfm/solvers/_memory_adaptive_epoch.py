"""The compiled heart of learning factors on demand: one pass over some rows."""

from __future__ import annotations

import numpy as np

from polyfm._jit import jit, square_root
from polyfm.losses import contract as losses
from polyfm.models._difacto_score import score_row
from polyfm.solvers._random import symmetric
from polyfm.updates import contract as updates

DONE, POOL_IS_FULL, NOT_FINITE = 0, 1, 2
_ROOT_3 = 3.0**0.5


@jit
def learn_rows(
    loss, rule, steps, penalties, learns_bias, counts_rows, seed, parameters, rows, order, room,
    loss_sum,
):  # fmt: skip
    """Visit the rows named by ``order``; stop before a row whose factors may not find room.

    Each row's weighted loss before its update is added to ``loss_sum``. Returns the number of rows
    learnt and why it has stopped.
    """
    for i in range(order.size):
        row = order[i]
        first, last = rows.indptr[row], rows.indptr[row + 1]
        indices, values = rows.indices[first:last], rows.values[first:last]
        if parameters.used[0] + _most_new(parameters, indices) > parameters.pool.shape[1]:
            return i, POOL_IS_FULL
        is_finite, loss_of_row = _learn_row(
            loss, rule, steps, penalties, learns_bias, counts_rows, seed, parameters, indices,
            values, rows.target[row], rows.weight[row], room,
        )  # fmt: skip
        if not is_finite:
            return i, NOT_FINITE
        loss_sum[0] += loss_of_row
    return order.size, DONE


@jit
def _most_new(parameters, indices):
    """Return how many coordinates a row's features may get from this visit."""
    p, n = parameters, 0
    for j in indices:
        for g in range(p.widths.size):
            # The visit itself may count.
            if p.places[j, g] < 0 and p.counts[j] + 1 > p.thresholds[g]:
                n += p.widths[g]
    return n


@jit
def _learn_row(
    loss, rule, steps, penalties, learns_bias, counts_rows, seed, parameters, indices, values,
    target, weight, room,
):  # fmt: skip
    """Learn one row; return whether its gradient is finite and its loss before the update."""
    bias, linear = parameters.bias, parameters.linear
    dtype = bias.dtype.type
    score = score_row(parameters, indices, values, room)
    g = dtype(weight * losses.gradient(loss, target, score))
    if not np.isfinite(g):
        return False, 0.0
    rate, one = dtype(updates.rate(rule, 0.0)), dtype(1.0)
    if learns_bias:
        updates.step(rule, penalties.bias, bias, 0, 1, 1, g, rate, one)
    own_share = dtype(weight * steps.linear_penalty)
    for t in range(indices.size):
        j = indices[t]
        if room.active[t]:
            _step_factors(steps, parameters, j, values[t], g, weight, room)
        slope = g * values[t] + own_share * linear[j, 0]
        updates.step(rule, penalties.linear, linear, j * linear.shape[1], 1, 1, slope, rate, one)
        if counts_rows:
            parameters.counts[j] += 1
        if linear[j, 0] != 0.0:
            _allocate(steps, seed, parameters, j)
    return True, np.float64(weight * losses.value(loss, target, score))


@jit
def _step_factors(steps, parameters, j, x, g, weight, room):
    """Move the factors of a feature by AdaGrad; they pay their penalty for this row."""
    p, first = parameters, 0
    dtype = p.pool.dtype.type
    rate, damping = dtype(steps.learning_rate), dtype(steps.damping)
    share, slope = dtype(weight * steps.factor_penalty), g * x
    for group in range(p.widths.size):
        place, width = p.places[j, group], p.widths[group]
        if place < 0:
            break
        for f in range(width):
            v = p.pool[0, place + f]
            h = slope * (room.sums[first + f] - v * x) + share * v
            n = p.pool[1, place + f] + h * h
            p.pool[1, place + f] = n
            p.pool[0, place + f] = v - rate * h / (damping + square_root(n))
        first += width


@jit
def _allocate(steps, seed, parameters, j):
    """Give a feature the coordinates that its count entitles it to, with random numbers in them.

    They depend on the seed, the feature and the coordinate alone.
    """
    p, first = parameters, 0
    for g in range(p.widths.size):
        width = p.widths[g]
        if p.counts[j] <= p.thresholds[g]:
            return
        if p.places[j, g] < 0:
            place = p.used[0]
            for f in range(width):
                start = symmetric(seed, j, first + f) * (steps.init_scale / _ROOT_3)
                p.pool[0, place + f] = start
                p.pool[1, place + f] = 0.0
            p.used[0] = place + width
            p.places[j, g] = place
        first += width


@jit
def are_finite(parameters, features):
    """Say whether the parameters of some features, and the bias, are finite numbers."""
    p = parameters
    for number in p.bias:
        if not np.isfinite(number):
            return False
    for j in features:
        for number in p.linear[j]:
            if not np.isfinite(number):
                return False
        for g in range(p.widths.size):
            place = p.places[j, g]
            if place < 0:
                break
            for f in range(p.widths[g]):
                if not (np.isfinite(p.pool[0, place + f]) and np.isfinite(p.pool[1, place + f])):
                    return False
    return True
