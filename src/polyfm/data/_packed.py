"""Compiled passes that bring the entries of a table's columns into the rows of a CSR matrix."""

from __future__ import annotations

import numpy as np

from polyfm._jit import jit


@jit
def count(cols, rows, counts):
    """Add to ``counts`` how many entries each row has; ``rows`` of size 0: entry i is of row i."""
    every = rows.size == 0
    for i in range(cols.size):
        if cols[i] >= 0:
            counts[i if every else rows[i]] += 1


@jit
def place(cols, rows, values, cursor, indices, data):
    """Append entries to their rows; ``values`` of size 0 stands for ones."""
    every = rows.size == 0
    ones = values.size == 0
    for i in range(cols.size):
        if cols[i] >= 0:
            row = i if every else rows[i]
            at = cursor[row]
            indices[at] = cols[i]
            data[at] = 1.0 if ones else values[i]
            cursor[row] = at + 1


@jit
def sort_rows(indptr, indices, data):
    """Sort each row by insertion, which is fast for short rows and for nearly sorted ones."""
    for row in range(indptr.size - 1):
        for t in range(indptr[row] + 1, indptr[row + 1]):
            j, value = indices[t], data[t]
            s = t
            while s > indptr[row] and indices[s - 1] > j:
                indices[s] = indices[s - 1]
                data[s] = data[s - 1]
                s -= 1
            indices[s] = j
            data[s] = value


@jit
def merge(indptr, indices, data, n_columns):
    """Add up equal columns of sorted rows, drop zeros and columns beyond the matrix, in place."""
    end = indptr[0]
    start = end
    for row in range(indptr.size - 1):
        stop = indptr[row + 1]
        first = end
        for t in range(start, stop):
            j = indices[t]
            if j >= n_columns:
                break
            if end > first and indices[end - 1] == j:
                data[end - 1] += data[t]
                continue
            if end > first and data[end - 1] == 0.0:
                end -= 1
            indices[end] = j
            data[end] = data[t]
            end += 1
        if end > first and data[end - 1] == 0.0:
            end -= 1
        start = stop
        indptr[row + 1] = end


@jit
def merge_ones(indices, width, start, n_columns, indptr, data):
    """Do what :func:`merge` does for the next rows of a matrix of ones.

    Parameters
    ----------
    indices : ndarray
        Sorted rows of as many entries each; entries of row ``start`` and of those that follow are
        moved to where the rows before them end.
    width : int
        Entries of a row, before those beyond the matrix are dropped.
    start : int
        The first row to be dealt with.
    n_columns : int
        Of the matrix.
    indptr : ndarray of int64
        Of the rows up to the last one to be dealt with; is filled from ``start`` on.
    data : ndarray
        Ones; those that were added up are replaced.
    """
    end = indptr[start]
    for row in range(start, indptr.size - 1):
        at = row * width
        n_odd = indices[at + width - 1] >= n_columns
        for t in range(at + 1, at + width):
            n_odd += indices[t] == indices[t - 1]
        if n_odd == 0:
            if end < at:
                for t in range(width):
                    indices[end + t] = indices[at + t]
            end += width
        else:
            first = end
            for t in range(at, at + width):
                j = indices[t]
                if j >= n_columns:
                    break
                if end > first and indices[end - 1] == j:
                    data[end - 1] += 1.0
                else:
                    indices[end] = j
                    end += 1
        indptr[row + 1] = end


@jit
def unpack(keys, values, n_columns, start, indptr, indices, data):
    """Append sorted rows of entries whose keys hold the column above, and the place below.

    Parameters
    ----------
    keys : ndarray of uint64 of shape (n_rows, width)
        The column times 2^32, and the place of the entry's value in the row of ``values``.
    values : ndarray of shape (n_rows, width)
        Equal columns are added up, zeros are dropped.
    n_columns : int
        Of the matrix; columns beyond are dropped.
    start : int
        The row of the matrix that the first of these is.
    indptr, indices, data : ndarray
        Of the matrix; are filled from that row on.
    """
    end = indptr[start]
    shift, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    for row in range(keys.shape[0]):
        first = end
        for t in range(keys.shape[1]):
            j = np.int64(keys[row, t] >> shift)
            if j >= n_columns:
                break
            value = values[row, np.int64(keys[row, t] & low)]
            if end > first and indices[end - 1] == j:
                data[end - 1] += value
                continue
            if end > first and data[end - 1] == 0.0:
                end -= 1
            indices[end] = j
            data[end] = value
            end += 1
        if end > first and data[end - 1] == 0.0:
            end -= 1
        indptr[start + row + 1] = end
