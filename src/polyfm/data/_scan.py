"""The rows of svmlight and libffm text, from bytes to arrays, compiled.

A line is either taken whole or refused; what is wrong with it, or how else it can be read, is for
the caller to find out.
"""

from __future__ import annotations

import numpy as np

from polyfm._jit import jit, load_word
from polyfm.data._numbers import EXACT, TENS, byte_at, digits_at, is_space, parse_number

_NEWLINE, _COMMENT, _COLON = 10, 35, 58
_QUERY = np.uint32(int.from_bytes(b"qid:", "little"))
_LARGEST = np.uint64(2**63 - 1)


@jit
def last_line_end(buffer, stop):
    """Return where the last line that ends before ``stop`` ends; 0 if none does."""
    while stop > 0 and byte_at(buffer, stop - 1) != _NEWLINE:
        stop -= 1
    return stop


@jit
def line_end(buffer, at):
    """Return the place behind the line that ``at`` is in."""
    while byte_at(buffer, at) != _NEWLINE:
        at += 1
    return at + 1


@jit
def skip_spaces(buffer, at):
    """Return the place of what comes next in the line, or of its end."""
    if byte_at(buffer, at) == 32 and byte_at(buffer, at + 1) > 32:
        return at + 1
    while is_space(byte_at(buffer, at)) and byte_at(buffer, at) != _NEWLINE:
        at += 1
    return at


@jit
def _ends_token(c):
    return is_space(c) or c == _COMMENT


@jit
def _long_id(buffer, at):
    """Read a whole number of up to 19 digits: how many they are, or 0 for none of 63 bits."""
    total, number, n = 0, np.uint64(0), 8
    while n == 8 and total <= 16:
        n, more = digits_at(buffer, at + total)
        number = number * TENS[n] + more
        total += n
    return (total if total <= 19 and number <= _LARGEST else 0), number


@jit
def _id_at(buffer, at):
    """Read a whole number: how many digits, 0 where there is none that fits, and what it is."""
    n, number = digits_at(buffer, at)
    if n == 8:
        n, number = _long_id(buffer, at)
    return n, number


@jit
def _parse_label(buffer, at):
    """Read a number that stands alone: where it ends, and what it is; or ``at`` and NaN."""
    outcome, end, label = parse_number(buffer, at)
    if outcome == EXACT and _ends_token(byte_at(buffer, end)):
        return end, label
    return at, np.nan


@jit
def _skip_query(buffer, at):
    """Return the place behind a ``qid:7``, or ``at``."""
    if np.uint32(load_word(buffer, at)) != _QUERY:
        return at
    end = at + 4
    while np.uint8(byte_at(buffer, end) - np.uint8(48)) < 10:
        end += 1
    return end if end > at + 4 and _ends_token(byte_at(buffer, end)) else at


@jit
def scan(buffer, at, stop, with_fields, labelled, limits, largest_value, out):
    """Read the lines of ``buffer[at:stop]`` until one is refused.

    Parameters
    ----------
    buffer : ndarray of uint8
        Text whose last byte before ``stop`` ends a line.
    with_fields : bool
        Whether entries are field:index:value.
    labelled : bool
        Whether every line must have a label, which must be finite.
    limits : ndarray of int64 of shape (2,)
        The least and the largest index that is not refused.
    largest_value : float
        The size above which a value is refused.
    out : Arrays
        What is written into, from the front.

    Returns
    -------
    at : int
        Start of the line that is refused, or ``stop``.
    n_lines, n_rows, n_entries : int
        What was read; lines with and without rows.
    in_order : bool
        Whether the indices of each row increase.
    same_fields : bool
        Whether each row has the fields of the first, in the same order; true if there are none.
    """
    n_lines, n_rows, n_entries = 0, 0, 0
    n_behind, n_others = np.int64(0), np.int64(0)
    least = np.uint64(limits[0])
    span = np.uint64(limits[1]) - least
    out.indptr[0] = 0
    while at < stop:
        start = at
        at = skip_spaces(buffer, at)
        if byte_at(buffer, at) == _NEWLINE or byte_at(buffer, at) == _COMMENT:
            at = line_end(buffer, at)
            n_lines += 1
            continue
        at, label = _parse_label(buffer, at)
        fine = not labelled or abs(label) < np.inf
        at = skip_spaces(buffer, at)
        at = skip_spaces(buffer, _skip_query(buffer, at))
        n = n_entries
        before = np.int64(-1)
        while fine:
            n_digits, number = _id_at(buffer, at)
            if n_digits == 0:
                fine = byte_at(buffer, at) == _NEWLINE or byte_at(buffer, at) == _COMMENT
                break
            at += n_digits
            if with_fields:
                out.fields[np.uintp(n)] = np.int64(number)
                n_others += out.fields[np.uintp(n - n_entries)] != np.int64(number)
                if byte_at(buffer, at) != _COLON:
                    fine = False
                    break
                n_digits, number = _id_at(buffer, at + 1)
                at += 1 + n_digits
            if n_digits == 0 or byte_at(buffer, at) != _COLON or number - least > span:
                fine = False
                break
            outcome, at, value = parse_number(buffer, at + 1)
            fine = outcome == EXACT and abs(value) <= largest_value
            fine = fine and _ends_token(byte_at(buffer, at))
            j = np.int64(number)
            out.ids[np.uintp(n)] = j
            out.values[np.uintp(n)] = value
            n += 1
            n_behind += j <= before
            before = j
            at = skip_spaces(buffer, at)
        if not fine:
            return start, n_lines, n_rows, n_entries, n_behind == 0, n_others == 0
        at = line_end(buffer, at)
        n_others += with_fields and n_rows > 0 and n - n_entries != out.indptr[1]
        n_entries = n
        out.labels[n_rows] = label
        out.lines[n_rows] = n_lines
        out.starts[n_rows] = start
        n_rows += 1
        n_lines += 1
        out.indptr[n_rows] = n_entries
    return at, n_lines, n_rows, n_entries, n_behind == 0, n_others == 0
