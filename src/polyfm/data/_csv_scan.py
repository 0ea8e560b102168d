"""Where records of CSV text end."""

from __future__ import annotations

from polyfm._jit import jit

_QUOTE, _NEWLINE, _RETURN = 34, 10, 13


@jit
def _is_end(text, i):
    """Say whether a return ends a line by itself; what follows the last byte is not known yet."""
    return text[i] == _RETURN and i + 1 < text.size and text[i + 1] != _NEWLINE


@jit
def last_record(text, separator):
    """Return where the last whole record ends, and where the quote begins that is open at the end.

    A quote counts at the start of a cell; inside one that is quoted, separators and line ends are
    text and two quotes are one. The second place is -1 if no quote is open.
    """
    end, opened, at_start = 0, -1, True
    for i in range(text.size):
        c = text[i]
        if opened >= 0:
            if c == _QUOTE:
                opened = -1
                at_start = True  # a second quote opens the same cell again
            continue
        if c == _QUOTE and at_start:
            opened = i
        elif c == _NEWLINE or _is_end(text, i):
            end = i + 1
        at_start = c in (separator, _NEWLINE, _RETURN)
    return end, opened
