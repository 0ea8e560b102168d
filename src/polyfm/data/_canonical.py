"""Rows as they were written to rows in canonical order, compiled: sorted, repeated ones summed."""

from __future__ import annotations

from polyfm._jit import jit

_SHORT = 64


@jit
def _is_increasing(ids, start, stop):
    n_behind = 0
    for t in range(start + 1, stop):
        n_behind += ids[t] <= ids[t - 1]
    return n_behind == 0


@jit
def _sort_by_counting(ids, values, start, stop, to_ids, to_values):
    """Put each entry behind those that are less, or equal and before it: no branch to guess."""
    for t in range(start, stop):
        j = ids[t]
        place = 0
        for s in range(start, t):
            place += ids[s] <= j
        for s in range(t, stop):
            place += ids[s] < j
        to_ids[place] = j
        to_values[place] = values[t]


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
def make_canonical(indptr, n_rows, ids, values, work_ids, work_values):
    """Sort each row, in place, sum what is repeated, and return the number of entries.

    Equal indices are summed in the order in which they stand. ``work_ids`` and ``work_values``
    have a row of twice as many entries as the longest has.
    """
    start, to = 0, 0
    for row in range(n_rows):
        stop = indptr[row + 1]
        n = stop - start
        if _is_increasing(ids, start, stop):
            for t in range(start, stop):
                ids[to + t - start], values[to + t - start] = ids[t], values[t]
            to += n
        else:
            if n <= _SHORT:
                _sort_by_counting(ids, values, start, stop, work_ids, work_values)
            else:
                for t in range(n):
                    work_ids[t], work_values[t] = ids[start + t], values[start + t]
                _sort_by_merging(work_ids, work_values, n, work_ids[n:], work_values[n:])
            first = to
            for t in range(n):
                if to > first and work_ids[t] == ids[to - 1]:
                    values[to - 1] += work_values[t]
                else:
                    ids[to], values[to] = work_ids[t], work_values[t]
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
        known = table[ids[t]]
        if known == -2:
            table[ids[t]] = fields[t]
        elif known != fields[t]:
            if not shared:
                return t
            table[ids[t]] = -1
    return n
