"""A counter-based random generator: numbers that depend on a key and a counter alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
def mark_share(numbers, seed, share, out):
    """Say of each number whether it belongs to a random share of all, by itself alone."""
    for i in range(numbers.size):
        out[i] = np.float64(random_bits(seed, numbers[i]) >> np.uint64(11)) * _TO_UNIT < share


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


def random_order(
    numbers: NDArray[Any], seed: int, epoch: int, n_threads: int = 1, run: Any = None
) -> NDArray[Any]:
    """Return some row numbers in a random order, made to be walked fast.

    The rows are cut into blocks of a few; the blocks are shuffled, and then the rows within each
    window of many blocks. Neighbours in the data stay in one window, where they are a thousand
    rows apart on average, so nothing is left of an order by user or by time; but each cache line
    and page of the data is fetched once for all of its rows.

    Parameters
    ----------
    numbers : ndarray of shape (n,)
    seed, epoch : int
        What the order depends on.
    n_threads : int
        In how many parts windows are filled; the order does not depend on it.
    run : callable, optional
        Calls a function with each of a list of arguments: ``Crew.run``.
    """
    order = np.empty_like(numbers)
    blocks = np.empty(-(-len(numbers) // BLOCK), dtype=np.int64)
    shuffle_blocks(blocks, seed, epoch)
    n_windows = -(-len(blocks) // WINDOW)
    bounds = np.linspace(0, n_windows, n_threads + 1).astype(np.int64)
    calls = [
        (order, numbers, blocks, seed, epoch, first, last)
        for first, last in itertools.pairwise(bounds)
    ]
    if run is None:
        for call in calls:
            fill_windows(*call)
    else:
        run(fill_windows, calls)
    return order


@jit
def shuffle_blocks(blocks, seed, epoch):
    """Write the numbers of all blocks in a random order."""
    for b in range(blocks.size):
        blocks[b] = b
    _shuffle(blocks, random_bits(seed, epoch))


@jit
def fill_windows(order, numbers, blocks, seed, epoch, first_window, last_window):
    """Write the row numbers of some windows, each in a random order."""
    n_blocks = blocks.size
    key = random_bits(seed, epoch)
    done = first_window * WINDOW * BLOCK
    for b in range(min(first_window * WINDOW, n_blocks)):
        if blocks[b] == n_blocks - 1:  # the only block that may be shorter
            done -= n_blocks * BLOCK - order.size
    for window in range(first_window, last_window):
        first = window * WINDOW
        start = done
        for b in range(first, min(first + WINDOW, n_blocks)):
            for place in range(blocks[b] * BLOCK, min((blocks[b] + 1) * BLOCK, order.size)):
                order[done] = numbers[place]
                done += 1
        _shuffle(order[start:done], random_bits(key, n_blocks + first))
