"""Where learning starts: small random factors that depend on the seed and the feature alone.

A feature's start is drawn from a counter-based generator keyed by (seed, feature, basis), so it is
the same whether the feature is met in the first batch or the last, and whatever else is met.
"""

from __future__ import annotations

import numpy as np

from polyfm._jit import jit
from polyfm.updates import contract as updates

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53


@jit
def _mixed(state):
    """Scramble 64 bits with the finaliser of SplitMix64 (Steele, Lea, Flood 2014)."""
    state = (state ^ (state >> np.uint64(30))) * _MIX_1
    state = (state ^ (state >> np.uint64(27))) * _MIX_2
    return state ^ (state >> np.uint64(31))


@jit
def _uniform(key, counter):
    bits = _mixed(key + (np.uint64(counter) + np.uint64(1)) * _GOLDEN)
    return (np.float64(bits >> np.uint64(11)) + 0.5) * _TO_UNIT


@jit
def normal(seed, row, column):
    """Return a standard normal number that depends on its three integer arguments alone."""
    key = _mixed(np.uint64(seed) + (np.uint64(row) + np.uint64(1)) * _GOLDEN)
    radius = np.sqrt(-2.0 * np.log(_uniform(key, 2 * (column // 2))))
    angle = 2.0 * np.pi * _uniform(key, 2 * (column // 2) + 1)
    return radius * (np.cos(angle) if column % 2 == 0 else np.sin(angle))


@jit
def start_features(rule, penalties, parameters, features, seed, scales):
    """Write the start of some rows of the table and of the linear term.

    ``scales`` holds the standard deviation of each basis for a feature whose typical value is 1.
    Rows beyond the features are those of the dummy features: they start in the table alone.
    """
    linear, table = parameters.linear, parameters.table
    n_planes = updates.n_planes(rule)
    rank = table.shape[2]
    zero = linear.dtype.type(0.0)
    for i in range(features.size):
        j = features[i]
        unit = 1.0
        if j < linear.shape[0]:
            if linear.shape[1] > n_planes + 1:
                unit = linear[j, n_planes + 1]
            place = j * linear.shape[1]
            updates.begin(rule, penalties.linear, linear, place, 1, 1, zero, unit)
        for s in range(rank):
            weight = table.dtype.type(normal(seed, j, s) * scales[s] * unit)
            place = j * n_planes * rank + s
            updates.begin(rule, penalties.factors, table, place, rank, 1, weight, unit)


@jit
def start_block(rule, penalty, block, weights):
    """Write the start of a (planes, n) block of parameters."""
    for i in range(weights.size):
        weight = block.dtype.type(weights[i])
        updates.begin(rule, penalty, block, i, block.shape[1], 1, weight, 1.0)
