"""Rows as they were written to rows in canonical order, compiled: sorted, repeated ones summed."""

from __future__ import annotations

import numpy as np

from polyfm._jit import jit, prefetch

_PLACE_BITS = 6
SHORT = 1 << _PLACE_BITS
"""Entries of rows that are sorted by counting."""
SMALL = 1 << (63 - _PLACE_BITS)
"""Indices below leave room for a place in the row."""
_AHEAD = 24


@jit
def _is_increasing(ids, start, stop):
    n_behind = 0
    for t in range(start + 1, stop):
        n_behind += ids[t] <= ids[t - 1]
    return n_behind == 0


@jit
def _sort_by_counting(ids, values, start, n, keys, to_ids, to_values):
    """Put each entry where as many are less; an index and its place in the row make a key.

    There is no branch to guess and counting is done by vector instructions: for rows of some
    dozens, faster than sorting. Unsigned places need no look at their sign.
    """
    for t in range(n):
        keys[np.uintp(t)] = (ids[start + t] << _PLACE_BITS) | t
    last = np.uintp(n)
    for t in range(n):
        key = keys[np.uintp(t)]
        place = np.int64(0)
        for s in range(last):
            place += keys[s] < key
        to_ids[np.uintp(place)] = key >> _PLACE_BITS
        to_values[np.uintp(place)] = values[start + t]


@jit
def _merge(ids, values, start, middle, stop, to_ids, to_values):
    left, right = start, middle
    for t in range(start, stop):
        if right == stop or (left < middle and ids[left] <= ids[right]):
            to_ids[t], to_values[t] = ids[left], values[left]
            left += 1
        else:
            to_ids[t], to_values[t] = ids[right], values[right]
            right += 1


@jit
def _sort_by_merging(ids, values, n, other_ids, other_values):
    """Sort the first n entries of ``ids``, from runs of 1, 4, 16 and so on."""
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            _merge(ids, values, start, middle, stop, other_ids, other_values)
        width *= 2
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            _merge(other_ids, other_values, start, middle, stop, ids, values)
        width *= 2


@jit
def copy_entries(ids, values, first, to_indices, to_values):
    """Copy entries, with indices from 0 for ``first``, into narrower types."""
    for t in range(ids.size):
        to_indices[t] = ids[t] - first
    for t in range(ids.size):
        to_values[t] = values[t]


@jit
def copy_in_order(indptr, ids, values, first, small, to_indices, to_values, work):
    """Copy entries, each row sorted and what is repeated summed; return their number.

    Parameters
    ----------
    indptr : ndarray of int64
        Where rows begin; afterwards, where they begin in the copy.
    ids, values : ndarray of int64 and float64
        The entries. Equal indices are summed in the order in which they stand.
    first : int
        The index of the first column.
    small : bool
        Whether all indices are below ``SMALL``.
    to_indices, to_values : ndarray
        The copy.
    work : Work
        Room for twice the longest row.
    """
    start, to = 0, 0
    for row in range(indptr.size - 1):
        stop = indptr[row + 1]
        n = stop - start
        if _is_increasing(ids, start, stop):
            for t in range(start, stop):
                to_indices[to + t - start] = ids[t] - first
                to_values[to + t - start] = values[t]
            to += n
        else:
            if n <= SHORT and small:
                _sort_by_counting(ids, values, start, n, work.keys, work.ids, work.values)
            else:
                for t in range(n):
                    work.ids[t], work.values[t] = ids[start + t], values[start + t]
                _sort_by_merging(work.ids, work.values, n, work.ids[n:], work.values[n:])
            t = 0
            while t < n:
                j, total = work.ids[t], work.values[t]
                t += 1
                while t < n and work.ids[t] == j:
                    total += work.values[t]
                    t += 1
                to_indices[to], to_values[to] = j - first, total
                to += 1
        start = stop
        indptr[row + 1] = to
    return to


@jit
def note_fields(ids, fields, n, shared, table):
    """Note in ``table[id]`` the field of each entry: -2 for none so far, -1 for several.

    Returns the first entry whose index had another field before, if ``shared`` does not allow
    that, else n.
    """
    for t in range(n):
        prefetch(table, ids[min(t + _AHEAD, n - 1)])
        known = table[ids[t]]
        if known == -2:
            table[ids[t]] = fields[t]
        elif known != fields[t]:
            if not shared:
                return t
            table[ids[t]] = -1
    return n
