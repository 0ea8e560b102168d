"""Where learning starts: small random factors that depend on the seed and the feature alone.

A feature's start is drawn from a counter-based generator keyed by (seed, feature, basis), so it is
the same whether the feature is met in the first batch or the last, and whatever else is met.
"""

from __future__ import annotations

import numpy as np

from polyfm._jit import jit
from polyfm.solvers._epoch import OF_FACTORS, OF_LINEAR, share_and_unit
from polyfm.solvers._random import symmetric
from polyfm.updates import contract as updates


@jit
def start_features(rule, penalties, parameters, features, seed, scales, ahead, by_evidence):
    """Write the start of some rows of the table and of the linear term.

    ``scales`` holds the standard deviation of each basis for a feature whose typical value is 1.
    Rows beyond the features are those of the dummy features: they start in the table alone, as if
    there were ``ahead`` more features before them.

    Where ``by_evidence``, the random start is no more than the centre that factors are drawn to:
    a factor starts at what its penalty leaves of it, and dummy features, without one, at all of it.
    """
    linear, table = parameters.linear, parameters.table
    n_planes = updates.n_planes(rule)
    rank = table.shape[2]
    zero = linear.dtype.type(0.0)
    rate = linear.dtype.type(updates.rate(rule, 0.0))
    for i in range(features.size):
        j = features[i]
        share, unit, key = linear.dtype.type(1.0), 1.0, j
        if j >= linear.shape[0]:
            key = j + ahead
        else:
            share, own_unit = share_and_unit(rule, linear, j, OF_LINEAR)
            unit = np.float64(own_unit)
            place = j * linear.shape[1]
            updates.begin(rule, penalties.linear, linear, place, 1, 1, zero, unit, share)
            share, _ = share_and_unit(rule, linear, j, OF_FACTORS)
        for s in range(rank):
            weight = table.dtype.type(symmetric(seed, key, s) * scales[s] * unit)
            place = j * n_planes * rank + s
            if not by_evidence:
                updates.begin(rule, penalties.factors, table, place, rank, 1, weight, unit, share)
                continue
            updates.begin(rule, penalties.factors, table, place, rank, 1, weight, unit, zero)
            if j < linear.shape[0]:
                own_rate = rate * updates.unit_rate(rule, linear.dtype.type(unit))
                updates.step(rule, penalties.factors, table, place, rank, 1, zero, own_rate, share)


@jit
def start_block(rule, penalty, block, weights):
    """Write the start of a (planes, n) block of parameters."""
    for i in range(weights.size):
        weight = block.dtype.type(weights[i])
        updates.begin(rule, penalty, block, i, block.shape[1], 1, weight, 1.0, 1.0)
