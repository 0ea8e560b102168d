"""Numbers in text: to the last bit what Python's float() says."""

import math
import re
import struct

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polyfm.data._numbers import BAD, EXACT, parse_number

NUMBER = re.compile(rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


def parsed(text):
    """Outcome, number of bytes, value; of text before a line end and what may be in memory."""
    buffer = np.frombuffer(text + b"\n" + b"9" * 64, dtype=np.uint8).copy()
    outcome, end, value = parse_number(buffer, 0)
    return outcome, end, value


def bits(value):
    return struct.pack("d", value)


def check(text):
    outcome, end, value = parsed(text)
    assert outcome != BAD
    assert end == len(text)
    if outcome == EXACT:
        assert bits(value) == bits(float(text)), text
    return outcome


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["r", ".17g", ".16e"]))
@example(5e-324, "r")
@example(2.2250738585072011e-308, "r")
@example(1.7976931348623157e308, ".17g")
@example(-0.0, "r")
def test_doubles_as_they_are_printed(number, form):
    text = repr(number) if form == "r" else format(number, form)
    outcome = check(text.encode())
    if abs(number) > 2.3e-308:
        assert outcome == EXACT


@settings(max_examples=300, deadline=None)
@given(st.from_regex(r"[+-]?[0-9]{0,25}(\.[0-9]{0,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True))
@example("00000000000000000000000000000000000001")
@example("9007199254740993")
@example("9007199254740993.000000000000000000000000000001")
@example("1e999999999999999999999")
@example("0.1234567")
@example("-1234567")
@example("12345678")
def test_any_decimal_number(text):
    whole = NUMBER.match(text.encode())
    outcome, end, _ = parsed(text.encode())
    if whole is None:
        assert outcome == BAD
        return
    if whole.end() < len(text):  # such as 1e without a power
        assert outcome == BAD or end < len(text)
        return
    check(text.encode())


@settings(max_examples=200, deadline=None)
@given(st.integers(2**52, 2**53 - 1), st.integers(-30, 30))
def test_halfway_between_two_doubles(mantissa, power):
    """The hardest to round: never wrong, at most left to others."""
    numerator = 2 * mantissa + 1
    text = f"{numerator * 5**-power}e{power}" if power < 0 else str(numerator * 2**power)
    check(text.encode())


@given(st.integers(0, 10**17 - 1), st.integers(-320, 300))
@settings(max_examples=300, deadline=None)
def test_seventeen_digits_are_sure(digits, power):
    text = f"{digits}e{power}".encode()
    outcome = check(text)
    value = float(text)
    if value == 0.0 or value > 2.3e-308 or math.isinf(value):
        assert outcome == EXACT


def test_no_numbers():
    for text in (b"", b"-", b".", b"e5", b"1e", b"1e+", b"+-1", b"nan", b"inf", b"x"):
        outcome, end, _ = parsed(text)
        assert outcome == BAD or end < len(text)
