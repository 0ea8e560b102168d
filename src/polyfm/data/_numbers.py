"""Decimal numbers in text to doubles, correctly rounded, compiled.

Up to 15 digits and a small power of ten take one multiplication or division of exact numbers
(W. D. Clinger, "How to read floating point numbers accurately", 1990). All others multiply the
digits by a 128-bit approximation of the power of five, which tells the rounding of nearly every
number (D. Lemire, "Number parsing at a gigabyte per second", 2021, arXiv:2101.11408). The few that
it leaves open are handed back to the caller as ``UNSURE``.
"""

from __future__ import annotations

import numpy as np

from polyfm._jit import jit, load_word, zeros_before, zeros_behind

BAD, EXACT, UNSURE = 0, 1, 2
"""No number here; a number, correctly rounded; a number to be read by other means."""

_LEAST, _MOST = -342, 308
_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_NINE = np.uint64(9)
_TEN = np.uint64(10)
TENS = np.array([10**e for e in range(9)], dtype=np.uint64)
_DIGIT_ZEROS = np.uint64(0x3030303030303030)
_TO_HIGH_BIT = np.uint64(0x7676767676767676)
_BYTE = np.uint64(0xFF)
_SECOND, _SECOND_IS_SPACE = np.uint64(0xFF00), np.uint64(0x20FF)
_MINUS, _PLUS = np.uint64(2**64 - 3), np.uint64(2**64 - 5)  # less 48
_POINT, _POWER, _LOWER = np.uint64(0x1E), np.uint64(0x75), np.uint64(0x20)  # ^ 48: . E and e
_HIGH_BITS = np.uint64(0x8080808080808080)
_HIDDEN = np.uint64(1 << 52)
_EXACT_TENS = np.array([float(10**e) for e in range(23)])


def _powers_of_five():
    """128 leading bits of 5^q, cut off for q >= 0, rounded up for q < 0; high and low halves."""
    table = np.empty((_MOST - _LEAST + 1, 2), dtype=np.uint64)
    for q in range(_LEAST, _MOST + 1):
        power = 5 ** abs(q)
        bits = power.bit_length()
        if q >= 0:
            wide = power << (128 - bits) if bits <= 128 else power >> (bits - 128)
        else:
            wide = (1 << (bits + 127)) // power + 1
        table[q - _LEAST] = wide >> 64, wide & (2**64 - 1)
    return table


_FIVES = _powers_of_five()


@jit
def byte_at(buffer, at):
    """Return ``buffer[at]``; an unsigned index spares the question whether it is negative."""
    return buffer[np.uintp(at)]


@jit
def is_space(c):
    """Say whether a byte is white space; the end of a line is."""
    return c == 32 or (c >= 9 and c <= 13)


@jit
def _product(a, b):
    """Return the high and the low half of the product of two ``uint64``."""
    a1, a0 = a >> _HALF, a & _MASK
    b1, b0 = b >> _HALF, b & _MASK
    low, left, right = a0 * b0, a1 * b0, a0 * b1
    middle = (low >> _HALF) + (left & _MASK) + (right & _MASK)
    high = a1 * b1 + (left >> _HALF) + (right >> _HALF) + (middle >> _HALF)
    return high, (middle << _HALF) | (low & _MASK)


@jit
def _scaled(w, q):
    """Return ``w * 10**q``, correctly rounded, and whether it is: w is a ``uint64``, not 0."""
    if q < _LEAST:
        return True, 0.0
    if q > _MOST:
        return True, np.inf
    zeros = zeros_before(w)
    w = w << np.uint64(zeros)
    high, low = _product(w, _FIVES[q - _LEAST, 0])
    if (high & np.uint64(0x1FF)) == np.uint64(0x1FF):
        more, _ = _product(w, _FIVES[q - _LEAST, 1])
        low = low + more
        if low < more:
            high = high + _ONE
    if low == _ALL and (q < -27 or q > 55):
        return False, 0.0
    upper = high >> np.uint64(63)
    mantissa = high >> (upper + _NINE)
    power = ((217706 * q) >> 16) + 63 + np.int64(upper) - zeros
    if power < -1021:  # a subnormal number
        return False, 0.0
    halfway = (mantissa & np.uint64(3)) == _ONE and (mantissa << (upper + _NINE)) == high
    if low <= _ONE and q >= -4 and q <= 23 and halfway:
        mantissa = mantissa - _ONE
    mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
    if mantissa >= _HIDDEN << _ONE:
        mantissa = _HIDDEN
        power += 1
    if power > 1023:
        return True, np.inf
    bits = (mantissa - _HIDDEN) | (np.uint64(power + 1023) << np.uint64(52))
    return True, np.uint64(bits).view(np.float64)


@jit
def _rounded(digits, n_digits, power):
    """Return how a number of at most 19 significant digits reads, and what it is."""
    if digits <= (_HIDDEN << _ONE) and power >= -22 and power <= 22:
        if power < 0:
            return EXACT, np.float64(digits) / _EXACT_TENS[-power]
        return EXACT, np.float64(digits) * _EXACT_TENS[power]
    if digits == 0:
        return EXACT, 0.0
    sure, value = _scaled(digits, power)
    if n_digits > 19:  # more follow: the number lies between this one and the next
        sure_next, following = _scaled(digits + _ONE, power)
        sure = sure and sure_next and value == following
    return (EXACT if sure else UNSURE), value


@jit
def _places(word):
    """Mark the bytes that are no digits by their highest bit, up to a first that is no point.

    ``word`` is text after ``^ _DIGIT_ZEROS``. A byte above 137 may carry into those behind it.
    """
    return (word | (word + _TO_HIGH_BIT)) & _HIGH_BITS


@jit
def _number_of(word, n):
    """Return what the first n bytes of a word say, 1 to 8 digits after ``^ _DIGIT_ZEROS``.

    The digits are brought to the end of the word and added up in pairs, fours and eights.
    """
    word = word << np.uint64(64 - 8 * n)
    word = (word * np.uint64(2561)) >> np.uint64(8)
    word = ((word & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601)) >> np.uint64(16)
    return ((word & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001)) >> _HALF


@jit
def digits_at(buffer, at):
    """Return how many of the next eight bytes are digits before any that is not, and the number."""
    word = load_word(buffer, at) ^ _DIGIT_ZEROS
    n = zeros_behind(_places(word)) >> 3
    if n == 0:
        return 0, np.uint64(0)
    return n, _number_of(word, n)


@jit
def _mantissa_by_words(buffer, at):
    """Read up to 19 digits and the point: whether that is all, its end, digits, count, power."""
    digits, total, power = np.uint64(0), 0, 0
    for side in range(2):
        n = 8
        while n == 8 and total <= 11:
            n, more = digits_at(buffer, at)
            digits = digits * TENS[n] + more
            at += n
            total += n
            power -= n * side
        if n == 8:
            return False, at, digits, total, power
        if side == 0:
            if byte_at(buffer, at) != 46:
                break
            at += 1
    return True, at, digits, total, power


@jit
def _mantissa_by_digits(buffer, at):
    """Read digits and the point: the end, up to 19 significant digits, their count, the power.

    More digits are counted and left out. The count is -1 where there is no digit at all.
    """
    digits, power = np.uint64(0), 0
    n_digits, n_seen = np.int64(0), np.int64(0)
    for side in range(2):
        d = np.uint8(byte_at(buffer, at) - np.uint8(48))
        while d < 10:
            if n_digits < 19:
                digits = digits * _TEN + np.uint64(d)
                power -= side
            else:
                power += 1 - side
            n_digits += n_digits > 0 or d > 0
            n_seen += 1
            at += 1
            d = np.uint8(byte_at(buffer, at) - np.uint8(48))
        if side == 0:
            if byte_at(buffer, at) != 46:
                break
            at += 1
    return at, digits, n_digits if n_seen > 0 else -1, power


@jit
def _power(buffer, at):
    """Read what follows an e: where it ends, and what it is; the end is -1 for no number."""
    below = byte_at(buffer, at) == 45
    start = at + (below or byte_at(buffer, at) == 43)
    power, at = 0, start
    d = np.uint8(byte_at(buffer, at) - np.uint8(48))
    while d < 10:
        power = min(power * 10 + int(d), 1 << 40)
        at += 1
        d = np.uint8(byte_at(buffer, at) - np.uint8(48))
    if at == start:
        return -1, 0
    return at, -power if below else power


@jit
def _parse_any(buffer, start, negative):
    """Read a number of any length, without its sign."""
    fits, at, digits, n_digits, power = _mantissa_by_words(buffer, start)
    if not fits or n_digits == 0:
        at, digits, n_digits, power = _mantissa_by_digits(buffer, start)
    if n_digits < 0:
        return BAD, at, 0.0
    if byte_at(buffer, at) == 101 or byte_at(buffer, at) == 69:
        end, shift = _power(buffer, at + 1)
        if end < 0:
            return BAD, at, 0.0
        at = end
        power += shift
    outcome, value = _rounded(digits, n_digits, power)
    return outcome, at, -value if negative else value


@jit
def _parse_long(buffer, start, negative):
    """Read a number of up to 19 digits without a power, or let others read it."""
    before, digits = digits_at(buffer, start)
    end = start + before
    behind, n = 0, before
    if before < 8 and byte_at(buffer, end) == 46:
        end += 1
        n = 8
        while n == 8 and before + behind <= 11:
            n, more = digits_at(buffer, end + behind)
            digits = digits * TENS[n] + more
            behind += n
        end += behind
    if n == 8 or before + behind == 0 or (byte_at(buffer, end) | 32) == 101:
        return _parse_any(buffer, start, negative)
    outcome, value = _rounded(digits, before + behind, -behind)
    return outcome, end, -value if negative else value


@jit
def parse_number(buffer, at):
    """Read a decimal number, such as -1.5e3: how it went, where it ends, and what it is.

    The text from ``at`` on must hold a byte that no number has, such as the end of a line, and
    the buffer 16 bytes more. What fits into a word, with what follows it, is read from that: the
    place of the next number must not wait for one load after the other.
    """
    word = load_word(buffer, at)
    first = (word & _BYTE) - np.uint64(48)
    if (word & _SECOND) <= _SECOND_IS_SPACE and first < _TEN:  # above all the 1 of one-hot rows
        return EXACT, at + 1, np.float64(first)
    negative = first == _MINUS
    signed = np.int64(negative) + np.int64(first == _PLUS)
    word = (word >> np.uint64(8 * signed)) ^ _DIGIT_ZEROS
    places = _places(word)
    before = zeros_behind(places) >> 3
    if before == 0 or before == 8:
        return _parse_long(buffer, at + signed, negative)
    end, behind = before, 0
    digits = _number_of(word, before)
    if ((word >> np.uint64(8 * before)) & _BYTE) == _POINT:
        end = zeros_behind(places & (places - _ONE)) >> 3
        behind = end - before - 1
        if behind > 0:
            more = _number_of(word >> np.uint64(8 * before + 8), behind)
            digits = digits * TENS[behind] + more
    if end >= 8 - signed or ((word >> np.uint64(8 * end)) & _BYTE | _LOWER) == _POWER:
        return _parse_long(buffer, at + signed, negative)
    value = np.float64(digits) / _EXACT_TENS[behind]
    return EXACT, at + signed + end, -value if negative else value
