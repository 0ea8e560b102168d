"""Rows as they were written to rows in canonical order, compiled: sorted, repeated ones summed."""

from __future__ import annotations

import numpy as np

from polyfm._jit import jit, prefetch

_PLACE_BITS = 6
SHORT = 1 << _PLACE_BITS
"""Entries of rows that are sorted by counting."""
SMALL, SMALLER = 1 << (63 - _PLACE_BITS), 1 << (31 - _PLACE_BITS)
"""Indices below leave room for a place in the row, in 64 and in 32 bits."""
_AT_ONCE = 4
ROOM_FOR_KEYS = SHORT + _AT_ONCE
_AHEAD = 24


@jit
def _is_increasing(ids, start, stop):
    n_behind = 0
    for t in range(start + 1, stop):
        n_behind += ids[t] <= ids[t - 1]
    return n_behind == 0


@jit
def _copy_by_counting(ids, values, start, n, first, to_indices, to_values, to, work):
    """Copy each entry to where as many are less; an index and its place in the row make a key.

    There is no branch to guess, and vector instructions count how many of four keys are less than
    each key: for rows of some dozens, faster than sorting. Unsigned places need no look at their
    sign.
    """
    keys, places = work.keys, work.places
    for t in range(n):
        keys[np.uintp(t)] = (ids[start + t] << _PLACE_BITS) | t
    for t in range(n, n + _AT_ONCE):
        keys[np.uintp(t)] = work.no_key
    width = (n + 7) // 8 * 8  # the places behind n are never looked at
    for t in range(width):
        places[np.uintp(t)] = 0
    for s in range(0, n, _AT_ONCE):
        a, b = keys[np.uintp(s)], keys[np.uintp(s + 1)]
        c, d = keys[np.uintp(s + 2)], keys[np.uintp(s + 3)]
        for t in range(width):
            key = keys[np.uintp(t)]
            n_less = np.int32(a < key) + np.int32(b < key) + np.int32(c < key) + np.int32(d < key)
            places[np.uintp(t)] += n_less
    for t in range(n):
        place = np.uintp(to + places[np.uintp(t)])
        to_indices[place] = (keys[np.uintp(t)] >> _PLACE_BITS) - first
        to_values[place] = values[start + t]


@jit
def _repeats(indices, start, stop):
    """Say whether one is equal to the one before it.

    Looked at one by one: vectors would wait for those that have just been written.
    """
    before = indices[np.uintp(start)]
    for t in range(start + 1, stop):
        index = indices[np.uintp(t)]
        if index == before:
            return True
        before = index
    return False


@jit
def _sum_repeated(ids, values, n, first, to_indices, to_values, to):
    """Copy the first n entries, which are sorted, and sum repeated ones; return where they end."""
    t = 0
    while t < n:
        j, total = ids[t], values[t]
        t += 1
        while t < n and ids[t] == j:
            total += values[t]
            t += 1
        to_indices[to], to_values[to] = j - first, total
        to += 1
    return to


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
            short = n <= SHORT and small
            if short:
                _copy_by_counting(ids, values, start, n, first, to_indices, to_values, to, work)
            if short and not _repeats(to_indices, to, to + n):
                to += n
            else:
                for t in range(n):
                    work.ids[t], work.values[t] = ids[start + t], values[start + t]
                _sort_by_merging(work.ids, work.values, n, work.ids[n:], work.values[n:])
                to = _sum_repeated(work.ids, work.values, n, first, to_indices, to_values, to)
        start = stop
        indptr[row + 1] = to
    return to


@jit
def note_fields(ids, fields, shared, table):
    """Note in ``table[id]`` the field of each entry: -2 for none so far, -1 for several.

    ``fields`` begins anew behind its end. Returns the first entry whose index had another field
    before, if ``shared`` does not allow that, else their number.
    """
    n, k = ids.size, 0
    for t in range(n):
        prefetch(table, ids[min(t + _AHEAD, n - 1)])
        j, field = np.uintp(ids[np.uintp(t)]), fields[np.uintp(k)]
        known = table[j]
        if known == -2:
            table[j] = field
        elif known != field:
            if not shared:
                return t
            table[j] = -1
        k += 1
        if k == fields.size:
            k = 0
    return n
