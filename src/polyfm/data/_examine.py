"""Passes over a CSR matrix that find whether it is what solvers need."""

from __future__ import annotations

from polyfm._jit import jit


@jit
def is_canonical(indptr, indices, n_columns):
    """Say whether column numbers are inside the matrix and increase along each row.

    ``indptr`` must be valid.
    """
    n_bad = 0
    for row in range(indptr.size - 1):
        before = -1
        for t in range(indptr[row], indptr[row + 1]):
            j = indices[t]
            n_bad += j <= before
            before = j
        n_bad += before >= n_columns
    return n_bad == 0


@jit
def look_at_values(values, limit):
    """Return the number of zeros, and of values that are no numbers of a size below the limit."""
    n_zeros, n_beyond = 0, 0
    for t in range(values.size):
        size = abs(values[t])
        n_zeros += size == 0.0
        n_beyond += not size < limit
    return n_zeros, n_beyond


@jit
def is_binary(values):
    """Say whether every value is 1 or -1."""
    n_other = 0
    for t in range(values.size):
        n_other += abs(values[t]) != 1.0
    return n_other == 0


@jit
def longest_row(indptr):
    """Return the number of non-zeros of the fullest row."""
    longest = 0
    for i in range(indptr.size - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    return longest
