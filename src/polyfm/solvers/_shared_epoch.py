"""The epoch of one of several threads that share the table.

Threads share rows of the table without locks. Where most rows have a feature in common, they would
spend their time handing its cache line to each other, so each thread has rows of its own for such
hot features, behind those of the model; between slices the copies are merged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm._jit import flush_subnormals, jit, restore_mode
from polyfm.models._score import load_degree_weights, prefetch_parameters
from polyfm.solvers._epoch import learn_row, prefetch_rows

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_BITS = 16
_WORD = np.uint64(64)


class HotNumbers(NamedTuple):
    """The number of each hot feature among the hot ones.

    Nearly all features that a row has are not hot. Few bits, which stay in the first-level cache,
    tell that of most of them; an array as long as there are features, looked into for each, took a
    fifth of the time of learning.
    """

    bits: NDArray[np.uint64]
    """A bit for each hash of a feature: whether some hot feature has that hash."""
    numbers: NDArray[np.int16]
    """Of each feature, from 1; 0 for those that are not hot."""

    @classmethod
    def of(cls, features: NDArray[np.int64], n_features: int) -> HotNumbers:
        """Number some features in their order."""
        numbers = np.zeros(n_features, dtype=np.int16)
        numbers[features] = np.arange(1, len(features) + 1)
        bits = np.zeros((1 << _BITS) // 64, dtype=np.uint64)
        set_bits(features, bits)
        return cls(bits, numbers)


@jit
def set_bits(features, bits):
    """Set the bit of each feature."""
    for j in features:
        word, place = _place(j)
        bits[word] |= np.uint64(1) << place


@jit
def _place(j):
    """Return the word and the place in it of a feature's bit."""
    place = (np.uint64(j) * _SPREAD) >> np.uint64(64 - _BITS)
    return place // _WORD, place % _WORD


@jit
def learn_shared_rows(
    kernel, loss, rule, penalties, switches, parameters, plan, rows, order, t, share, cells,
    loss_sum, hot, first_own, own_indices,
):  # fmt: skip
    """Visit rows as :func:`polyfm.solvers._epoch.learn_rows` does, hot features in rows of its own.

    ``hot`` are the numbers of the hot features; ``first_own`` is the thread's first row for them.
    ``own_indices``, of shape (2, longest row), is room for two rows' indices.
    """
    mode = flush_subnormals()
    result = _learn_shared_rows(
        kernel, loss, rule, penalties, switches, parameters, plan, rows, order, t, share, cells,
        loss_sum, hot, first_own, own_indices,
    )  # fmt: skip
    restore_mode(mode)
    return result


@jit
def _learn_shared_rows(
    kernel, loss, rule, penalties, switches, parameters, plan, rows, order, t, share, cells,
    loss_sum, hot, first_own, own_indices,
):  # fmt: skip
    load_degree_weights(parameters, plan.chunks, cells)
    if order.size:
        _redirect(rows, order[0], hot, first_own, own_indices[0])
    for i in range(order.size):
        prefetch_rows(rows, order, i, 1)
        if i + 1 < order.size:
            following = own_indices[(i + 1) % 2]
            n = _redirect(rows, order[i + 1], hot, first_own, following)
            prefetch_parameters(parameters, following, 0, n)
        row = order[i]
        first, last = rows.indptr[row], rows.indptr[row + 1]
        is_finite, loss_of_row = learn_row(
            kernel, loss, rule, penalties, switches, parameters, plan,
            own_indices[i % 2][: last - first], rows.values[first:last],
            rows.target[row], rows.weight[row], t + i, share, cells,
        )  # fmt: skip
        if not is_finite:
            return i, loss_sum
        loss_sum += loss_of_row
    return order.size, loss_sum


@jit
def _redirect(rows, row, hot, first_own, out):
    """Write where the thread keeps each feature of a row; return how many there are."""
    first, last = rows.indptr[row], rows.indptr[row + 1]
    for t in range(first, last):
        j = rows.indices[t]
        word, place = _place(j)
        out[t - first] = j
        if (hot.bits[word] >> place) & np.uint64(1) and hot.numbers[j] > 0:
            out[t - first] = first_own + hot.numbers[j] - 1
    return last - first
