"""The epoch of mini-batches: the gradients of some rows first, then one step for all of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm._jit import jit, load
from polyfm.models._score import load_degree_weights
from polyfm.solvers._epoch import (
    OF_FACTORS,
    OF_LINEAR,
    learn_row,
    share_and_unit,
    share_of_dummies,
)
from polyfm.updates import contract as updates


class Bench(NamedTuple):
    """Room to work out the gradient of a batch: a small model of the features in it.

    Its parameters have two planes, the weights of the batch's start and their gradients.
    """

    parameters: Any
    """Feature k of the batch is row k; dummy features are behind the room for features."""
    plan: Any
    numbers: NDArray[np.int32]
    """(d,): the number of each feature in the batch; -1 for all others, and between batches."""
    features: NDArray[np.int64]
    """Of each number, its feature."""
    indices: NDArray[Any]
    """Room for the numbers of a row's features."""


@jit
def learn_batches(
    kernel, loss, rule, gather, penalties, switches, parameters, plan, bench, rows, order, batch,
    is_mean, t, share, cells, loss_sum,
):  # fmt: skip
    """Visit rows in batches of ``batch``; stop before the first whose gradient is not finite.

    ``gather`` is the rule that adds up gradients. Returns the number of rows learnt, or the place
    of the first one that cannot be, and ``loss_sum`` with the weighted losses before the updates.
    """
    load_degree_weights(parameters, plan.chunks, cells)
    for first in range(0, order.size, batch):
        last = min(first + batch, order.size)
        n = _lay_out(parameters, bench, rows, order[first:last])
        n_done = 0
        for i in range(first, last):
            row = order[i]
            start, end = rows.indptr[row], rows.indptr[row + 1]
            for place in range(start, end):
                bench.indices[place - start] = bench.numbers[rows.indices[place]]
            is_finite, loss_of_row = learn_row(
                kernel, loss, gather, penalties, switches, bench.parameters, bench.plan,
                bench.indices[: end - start], rows.values[start:end],
                rows.target[row], rows.weight[row], t + i, share, cells,
            )  # fmt: skip
            if not is_finite:
                break
            loss_sum += loss_of_row
            n_done += 1
        _clear(bench, n)
        if n_done < last - first:
            return first + n_done, loss_sum
        size = parameters.bias.dtype.type(n_done if is_mean else 1)
        rate = parameters.bias.dtype.type(updates.rate(rule, t + first))
        _step_features(rule, penalties, switches, parameters, plan, bench, n, rate, size)
        _step_others(rule, penalties, switches, parameters, plan, bench, rate, share, size)
        load_degree_weights(parameters, plan.chunks, cells)
    return order.size, loss_sum


@jit
def _lay_out(parameters, bench, rows, order):
    """Copy the weights that a batch needs to the bench; return how many features it has."""
    own, n = bench.parameters, 0
    rank = parameters.table.shape[2]
    for row in order:
        for place in range(rows.indptr[row], rows.indptr[row + 1]):
            j = rows.indices[place]
            if bench.numbers[j] < 0:
                bench.numbers[j] = n
                bench.features[n] = j
                own.linear[n, 0] = parameters.linear[j, 0]
                own.linear[n, 1] = 0.0
                for s in range(rank):
                    own.table[n, 0, s] = parameters.table[j, 0, s]
                    own.table[n, 1, s] = 0.0
                n += 1
    for r in range(bench.plan.n_dummies):
        dummy = bench.plan.first_dummy + r
        for s in range(rank):
            own.table[dummy, 0, s] = parameters.table[parameters.linear.shape[0] + r, 0, s]
            own.table[dummy, 1, s] = 0.0
    own.bias[0, 0], own.bias[1, 0] = parameters.bias[0, 0], 0.0
    for s in range(rank):
        own.weights[0, s], own.weights[1, s] = parameters.weights[0, s], 0.0
    for m in range(own.theta.shape[1]):
        own.theta[0, m], own.theta[1, m] = parameters.theta[0, m], 0.0
    return n


@jit
def _clear(bench, n):
    for k in range(n):
        bench.numbers[bench.features[k]] = -1


@jit
def _step_features(rule, penalties, switches, parameters, plan, bench, n, rate, size):
    """Step the parameters of the batch's features along their gradient, divided by ``size``."""
    linear, table, own = parameters.linear, parameters.table, bench.parameters
    rank = table.shape[2]
    for k in range(n):
        j = bench.features[k]
        if switches.linear:
            share, unit = share_and_unit(rule, linear, j, OF_LINEAR)
            unit_rate = rate * updates.unit_rate(rule, unit)
            g = own.linear[k, 1] / size
            at = j * linear.shape[1]
            updates.step(rule, penalties.linear, linear, at, 1, 1, g, unit_rate, share)
        share, unit = share_and_unit(rule, linear, j, OF_FACTORS)
        unit_rate = rate * updates.unit_rate(rule, unit)
        for c in range(plan.chunks.shape[0]):
            column, count = plan.chunks[c, 1], plan.chunks[c, 2]
            slope = load(own.table, (k * 2 + 1) * rank + column, count) / size
            at = j * table.shape[1] * rank + column
            updates.step(rule, penalties.factors, table, at, rank, count, slope, unit_rate, share)


@jit
def _step_others(rule, penalties, switches, parameters, plan, bench, rate, share, size):
    """Step what all rows have in common."""
    own, table, weights, theta = (
        bench.parameters, parameters.table, parameters.weights, parameters.theta,
    )  # fmt: skip
    rank, share = table.shape[2], parameters.bias.dtype.type(share)
    if switches.bias:
        slope = own.bias[1, 0] / size
        updates.step(rule, penalties.bias, parameters.bias, 0, 1, 1, slope, rate, share)
    for m in range(switches.theta_from, theta.shape[1]):
        slope = own.theta[1, m] / size
        updates.step(rule, penalties.theta, theta, m, theta.shape[1], 1, slope, rate, share)
    for c in range(plan.chunks.shape[0]):
        column, count = plan.chunks[c, 1], plan.chunks[c, 2]
        if switches.weights:
            g = load(own.weights, rank + column, count) / size
            updates.step(rule, penalties.weights, weights, column, rank, count, g, rate, share)
        dummies_share = share_of_dummies(switches, share)
        for r in range(plan.n_dummies):
            g = (
                load(own.table, ((bench.plan.first_dummy + r) * 2 + 1) * rank + column, count)
                / size
            )
            at = (plan.first_dummy + r) * table.shape[1] * rank + column
            updates.step(rule, penalties.factors, table, at, rank, count, g, rate, dummies_share)
