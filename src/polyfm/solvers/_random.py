"""A counter-based random generator: numbers that depend on a key and a counter alone."""

from __future__ import annotations

import numpy as np

from polyfm._jit import jit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53
_ROOT_12 = 12.0**0.5
_HALF = np.uint64(32)

BLOCK = 16
"""Rows in a block: their targets fill a cache line."""
WINDOW = 128
"""Blocks in a window: their rows fit in the second-level cache."""


@jit
def random_bits(key, counter):
    """Return 64 bits: the ``counter``-th number of SplitMix64 started at ``key``.

    Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
    """
    state = np.uint64(key) + (np.uint64(counter) + np.uint64(1)) * _GOLDEN
    state = (state ^ (state >> np.uint64(30))) * _MIX_1
    state = (state ^ (state >> np.uint64(27))) * _MIX_2
    return state ^ (state >> np.uint64(31))


@jit
def symmetric(seed, row, column):
    """Return a uniform number of mean 0 and variance 1 that depends on three integers alone."""
    bits = random_bits(random_bits(seed, row), column)
    return (np.float64(bits >> np.uint64(11)) * _TO_UNIT - 0.5) * _ROOT_12


@jit
def _below(bound, key, counter):
    """Return a random integer in [0, bound), by Lemire's multiplication in place of a division."""
    bits = random_bits(key, counter)
    if bound <= 0xFFFFFFFF:
        return np.int64(((bits >> _HALF) * np.uint64(bound)) >> _HALF)
    return np.int64(bits % np.uint64(bound))


@jit
def _shuffle(order, key):
    """Shuffle an array in place (Fisher and Yates)."""
    for i in range(order.size - 1, 0, -1):
        j = _below(i + 1, key, i)
        order[i], order[j] = order[j], order[i]


@jit
def random_order(order, numbers, blocks, seed, epoch):
    """Write a random order of some row numbers, made to be walked fast.

    The rows are cut into blocks of a few; the blocks are shuffled, and then the rows within each
    window of many blocks. Neighbours in the data stay in one window, where they are a thousand
    rows apart on average, so nothing is left of an order by user or by time; but each cache line
    and page of the data is fetched once for all of its rows.
    """
    n_blocks = blocks.size
    for b in range(n_blocks):
        blocks[b] = b
    key = random_bits(seed, epoch)
    _shuffle(blocks, key)
    done = 0
    for first in range(0, n_blocks, WINDOW):
        start = done
        for b in range(first, min(first + WINDOW, n_blocks)):
            for row in range(blocks[b] * BLOCK, min((blocks[b] + 1) * BLOCK, order.size)):
                order[done] = numbers[row]
                done += 1
        _shuffle(order[start:done], random_bits(key, n_blocks + first))
