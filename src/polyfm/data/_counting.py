"""Passes over rows that count what there is in them."""

from __future__ import annotations

import numpy as np

from polyfm._jit import jit

_MIX_ONE = np.uint64(0xBF58476D1CE4E5B9)
_MIX_TWO = np.uint64(0x94D049BB133111EB)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FAR, _NEAR = np.uint64(31), np.uint64(29)


@jit
def _mixed(word):
    """Return a number in which every bit depends on every bit of ``word`` (SplitMix64)."""
    word = (word ^ (word >> _NEAR)) * _MIX_ONE
    word = (word ^ (word >> _FAR)) * _MIX_TWO
    return word ^ (word >> _FAR)


@jit
def count_columns(indices, counts, folded):
    """Count the entries of each column; those beyond ``counts`` by a hash of their number.

    The length of ``folded`` is a power of two. Returns the smallest and the largest number.
    """
    smallest, largest = np.int64(9223372036854775807), np.int64(-1)
    mask = np.uint64(folded.size - 1)
    for t in range(indices.size):
        j = np.int64(indices[t])
        smallest, largest = min(smallest, j), max(largest, j)
        if j < counts.size:
            counts[j] += 1
        else:
            folded[np.int64(_mixed(np.uint64(j) + _STEP) & mask)] += 1
    return smallest, largest


@jit
def hash_rows(indptr, indices, words, hashes):
    """Give each row a number that rows of the same entries share; ``words`` are bits of values."""
    for i in range(hashes.size):
        total = _STEP
        for t in range(indptr[i], indptr[i + 1]):
            total = _mixed(total + _mixed(np.uint64(indices[t]) + _STEP) + np.uint64(words[t]))
        hashes[i] = total


@jit
def count_fields(indptr, indices, fields, last_row, first_row, n_rows_with, n_entries):
    """Count rows and entries of each field; ``last_row`` is where a field was seen last."""
    for i in range(indptr.size - 1):
        for t in range(indptr[i], indptr[i + 1]):
            j = indices[t]
            if j >= fields.size or fields[j] < 0:
                continue
            f = fields[j]
            n_entries[f] += 1
            if last_row[f] != first_row + i:
                last_row[f] = first_row + i
                n_rows_with[f] += 1
