"""The rows of Vowpal Wabbit text, from bytes to hashed columns, compiled.

As :mod:`polyfm.data._scan` does it: a line is taken whole or refused.
"""

from __future__ import annotations

import numpy as np

from polyfm._jit import jit, load_word, zeros_behind
from polyfm.data._murmur import hash_bytes
from polyfm.data._numbers import EXACT, TENS, byte_at, digits_at, is_space, parse_number
from polyfm.data._scan import line_end, skip_spaces

_NEWLINE, _COLON, _BAR, _QUOTE = 10, 58, 124, 39
_HIGH_BITS = np.uint64(0x8080808080808080)
_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_COLONS = np.uint64(0x3A3A3A3A3A3A3A3A)
_BARS = np.uint64(0x7C7C7C7C7C7C7C7C)
_UP_TO_SPACE = np.uint64(0x5F5F5F5F5F5F5F5F)


@jit
def _zero_bytes(word):
    """Return the highest bit of each byte that is 0."""
    return ~(((word & _LOW_BITS) + _LOW_BITS) | word | _LOW_BITS)


@jit
def _name_end(buffer, at):
    """Return where a name ends: at white space, a colon, a bar or another byte up to 32."""
    while True:
        word = load_word(buffer, at)
        low = ~(((word & _LOW_BITS) + _UP_TO_SPACE) | word) & _HIGH_BITS
        ends = low | _zero_bytes(word ^ _COLONS) | _zero_bytes(word ^ _BARS)
        if ends != 0:
            return at + (zeros_behind(ends) >> 3)
        at += 8


@jit
def _ends_value(c):
    return is_space(c) or c == _BAR


@jit
def hash_name(buffer, start, stop, seed):
    """Return Vowpal Wabbit's hash of a name: of whole numbers, the number itself and the seed.

    ``seed`` and the result are ``uint64``.
    """
    total, number = digits_at(buffer, start)
    n = total
    while n == 8 and start + total < stop:
        n, more = digits_at(buffer, start + total)
        number = number * TENS[n] + more
        total += n
    if total == stop - start and total > 0:
        return number + seed
    return np.uint64(hash_bytes(buffer, start, stop, np.uint32(seed)))


@jit
def _parse_head(buffer, at):
    """Read what stands before the first bar.

    Returns its place, or -1 for a head that is refused; how many numbers there are; the label,
    the importance, and the base.
    """
    n_numbers = 0
    label, weight, base = np.nan, 1.0, 0.0
    while byte_at(buffer, at) != _BAR:
        outcome, end, number = parse_number(buffer, at)
        if outcome == EXACT and is_space(byte_at(buffer, end)) and n_numbers < 3:
            if n_numbers == 0:
                label = number
            elif n_numbers == 1:
                weight = number
            else:
                base = number
            n_numbers += 1
            at = skip_spaces(buffer, end)
        else:  # a tag: it touches the bar or begins with a quote
            quoted = byte_at(buffer, at) == _QUOTE
            while not _ends_value(byte_at(buffer, at)):
                at += 1
            if quoted:
                at = skip_spaces(buffer, at)
            if byte_at(buffer, at) != _BAR:
                return np.int64(-1), n_numbers, label, weight, base
    return at, n_numbers, label, weight, base


@jit
def _space_number(spaces, n_spaces, hint, name_hash):
    """Return the number of a namespace, looked for from ``hint`` on; ``n_spaces`` if it is new."""
    if hint < n_spaces and spaces.hashes[hint] == name_hash:
        return hint
    for k in range(n_spaces):
        if spaces.hashes[k] == name_hash:
            return k
    return n_spaces


@jit
def scan_vw(buffer, at, stop, labelled, mask, largest_value, spaces, n_spaces, out):
    """Read the lines of ``buffer[at:stop]`` until one is refused.

    Parameters
    ----------
    buffer : ndarray of uint8
        Text whose last byte before ``stop`` ends a line.
    labelled : bool
        Whether every line must have a label.
    mask : uint64
        The bits of a hash that make the column.
    largest_value : float
        The size above which a value is refused.
    spaces : Spaces
        The namespaces known so far; those found are added, up to its length.
    n_spaces : int
        Their number.
    out : Arrays
        What is written into, from the front.

    Returns
    -------
    at, n_lines, n_rows, n_entries, in_order, same_fields
        As of :func:`polyfm.data._scan.scan`.
    n_spaces : int
        The number of namespaces; above the length of ``spaces`` where there was no room.
    """
    n_lines, n_rows, n_entries = 0, 0, 0
    n_behind, n_others = np.int64(0), np.int64(0)
    out.indptr[0] = 0
    while at < stop:
        start = at
        at = skip_spaces(buffer, at)
        if byte_at(buffer, at) == _NEWLINE:
            at += 1
            n_lines += 1
            continue
        at, n_numbers, label, weight, base = _parse_head(buffer, at)
        fine = at >= 0 and (n_numbers > 0 or not labelled)
        fine = fine and weight >= 0.0 and weight < np.inf and abs(base) < np.inf
        fine = fine and (n_numbers == 0 or abs(label) < np.inf)
        n, hint, n_before = n_entries, 0, n_spaces
        before = np.int64(-1)
        while fine and byte_at(buffer, at) == _BAR:
            at += 1
            end = _name_end(buffer, at)
            seed, scale = np.uint64(0), 1.0
            if end > at:
                seed = hash_name(buffer, at, end, seed) & np.uint64(0xFFFFFFFF)
            space = _space_number(spaces, n_spaces, hint, seed)
            if space == n_spaces:
                n_spaces += 1
                if n_spaces > spaces.hashes.size:
                    return start, n_lines, n_rows, n_entries, n_behind == 0, n_others == 0, n_spaces
                spaces.hashes[space] = seed
                spaces.starts[space], spaces.stops[space] = at, end
            hint = space + 1
            if byte_at(buffer, end) == _COLON:
                outcome, last, scale = parse_number(buffer, end + 1)
                fine = outcome == EXACT and abs(scale) < np.inf and end > at
                end = last
            fine = fine and _ends_value(byte_at(buffer, end))
            at = skip_spaces(buffer, end) if fine else at
            n_nameless = np.uint64(0)
            while fine and byte_at(buffer, at) != _NEWLINE and byte_at(buffer, at) != _BAR:
                end = _name_end(buffer, at)
                if end > at:
                    feature = hash_name(buffer, at, end, seed)
                else:
                    feature = seed + n_nameless
                    n_nameless += np.uint64(1)
                value = scale
                if byte_at(buffer, end) == _COLON:
                    outcome, end, number = parse_number(buffer, end + 1)
                    value = number * scale
                    fine = outcome == EXACT and abs(value) <= largest_value
                fine = fine and _ends_value(byte_at(buffer, end))
                j = np.int64(feature & mask)
                out.fields[n] = space
                n_others += out.fields[n - n_entries] != space
                out.ids[n] = j
                out.values[n] = value
                n += 1
                n_behind += j <= before
                before = j
                at = skip_spaces(buffer, end) if fine else at
        if not fine:
            return start, n_lines, n_rows, n_entries, n_behind == 0, n_others == 0, n_before
        at = line_end(buffer, at)
        n_others += n_rows > 0 and n - n_entries != out.indptr[1]
        n_entries = n
        out.labels[n_rows] = label
        out.weights[n_rows] = weight
        out.lines[n_rows] = n_lines
        out.starts[n_rows] = start
        n_rows += 1
        n_lines += 1
        out.indptr[n_rows] = n_entries
    return at, n_lines, n_rows, n_entries, n_behind == 0, n_others == 0, n_spaces
