"""Single lines of text files, read slowly: rare numbers, and what is wrong with bad lines.

Whole files go through the compiled parsers of :mod:`polyfm.data._scan` and
:mod:`polyfm.data._scan_vw`. A line that they refuse comes here and is taken apart token by token:
it is either a row after all, or an error in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

__all__ = ["LARGEST", "Demands", "Row", "TextFormatError", "Token", "read_line", "starts_at_zero"]

LARGEST = 2**63 - 1
_TOKEN = re.compile(rb"\S+")
_NUMBER = re.compile(rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


class TextFormatError(ValueError):
    """A line of a text file that cannot be read.

    Parameters
    ----------
    path : str
        The file.
    line : int or None
        Number of the line, from 1; None if the file as a whole is at fault.
    problem : str
        What was found, and what to do.
    text : str, default=""
        The offending piece of the line.
    column : int, optional
        Where in the line that begins, in characters from 1.

    Attributes
    ----------
    path, line, problem, text, column
        The same.
    """

    def __init__(
        self,
        path: str,
        line: int | None,
        problem: str,
        text: str = "",
        column: int | None = None,
    ) -> None:
        self.path, self.line, self.problem, self.text = path, line, problem, text
        self.column = column
        place = path if line is None else f"{path}, line {line}"
        column_too = "" if column is None else f" (column {column})"
        super().__init__(f"{place}: {problem}{column_too}")

    def moved_by(self, n: int) -> TextFormatError:
        """Return the same error so many lines further down."""
        line = None if self.line is None else self.line + n
        return TextFormatError(self.path, line, self.problem, self.text, self.column)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.line, self.problem, self.text, self.column)


def starts_at_zero(error: TextFormatError) -> bool:
    """Whether a file was refused for an index 0, which says that its indices start there."""
    return error.text == "0"


class Demands(NamedTuple):
    """What a file has to keep to."""

    labelled: bool
    """Whether every line has a label."""
    first: int | None
    """The index of the first column, 0 or 1; None where the files are to tell."""
    n_features: int | None
    dtype: np.dtype[Any]
    """Of the values."""

    @property
    def least(self) -> int:
        """The least index."""
        return 1 if self.first == 1 else 0

    @property
    def largest(self) -> int:
        """The largest index, or what may be it if the first is not known."""
        width = LARGEST if self.n_features is None else self.n_features
        return width - 1 if self.first == 0 else width

    @property
    def largest_value(self) -> float:
        """The largest double that is a number of the type of the values."""
        largest = np.finfo(self.dtype).max
        if self.dtype == np.float64:
            return float(largest)
        step = float(largest) - float(np.nextafter(largest, np.zeros_like(largest)))
        return float(np.nextafter(float(largest) + step / 2, 0))  # halfway rounds to infinity


class Row(NamedTuple):
    """What a line says."""

    label: float
    weight: float
    fields: list[int]
    ids: list[int]
    values: list[float]


class Token(NamedTuple):
    """Something between blanks."""

    text: bytes
    line: bytes
    """What it stands in."""
    start: int

    @property
    def column(self) -> int:
        """Its place in the line, in characters from 1."""
        return len(self.line[: self.start].decode("utf-8", "replace")) + 1

    def rest(self, n: int) -> Token:
        """Return the token without its first n bytes."""
        return Token(self.text[n:], self.line, self.start + n)

    def error(
        self, path: str, line: int, problem: str, found: str | None = None
    ) -> TextFormatError:
        """Return an error that shows the token, unless told what was found."""
        text = self.text.decode("utf-8", "replace")
        if found is not None:
            return TextFormatError(path, line, problem, found, self.column)
        shown = text if len(text) <= 60 else text[:57] + "..."
        return TextFormatError(path, line, f"{shown!r}: {problem}", text, self.column)


def tokens_of(line: bytes, start: int = 0, stop: int | None = None) -> list[Token]:
    """Split a line, or a part of it, at white space."""
    places = _TOKEN.finditer(line, start, len(line) if stop is None else stop)
    return [Token(m[0], line, m.start()) for m in places]


def is_number(text: bytes) -> bool:
    """Say whether a text is a decimal number."""
    return _NUMBER.fullmatch(text) is not None


def kind_of_bad_number(text: bytes) -> str:
    """Say in words what a text is that is no decimal number."""
    try:
        finite = np.isfinite(float(text))
    except ValueError:
        return "not a number"
    return "not a plain decimal number" if finite else "not finite; NaN and infinity are refused"


def checked_number(path: str, line: int, token: Token, name: str) -> float:
    """Return a finite number, or raise an error that says what else it is."""
    if not is_number(token.text):
        raise token.error(path, line, f"the {name} is {kind_of_bad_number(token.text)}")
    if not np.isfinite(float(token.text)):
        raise token.error(path, line, f"the {name} is too large")
    return float(token.text)


def check_value(path: str, line: int, token: Token, value: float, demands: Demands) -> None:
    """Raise an error where a value is infinite in the type of the values."""
    if not abs(value) <= demands.largest_value:
        problem = f"value {value!r} is too large for {demands.dtype.name}"
        raise token.error(path, line, problem, repr(value))


def read_line(path: str, line: int, text: bytes, parts: int, demands: Demands) -> Row:
    """Read one line of a file of entries ``index:value`` or, of 3 parts, ``field:index:value``.

    Parameters
    ----------
    path, line : str and int
        For errors.
    text : bytes
        The line, which is not blank.
    parts : {2, 3}
        Of an entry.
    demands : Demands
        What it has to keep to.

    Raises
    ------
    TextFormatError
        Naming the first token that is wrong.
    """
    tokens = tokens_of(text.partition(b"#")[0])
    label = np.nan
    if is_number(tokens[0].text) and not demands.labelled:
        label = float(tokens.pop(0).text)
    elif demands.labelled and b":" in tokens[0].text:
        raise tokens[0].error(path, line, "the label is missing; every line starts with one")
    elif b":" not in tokens[0].text:
        label = checked_number(path, line, tokens.pop(0), "label")
    if tokens and re.fullmatch(rb"qid:\d+", tokens[0].text):
        tokens.pop(0)
    entries = [_entry(path, line, token, parts, demands) for token in tokens]
    fields, ids = [field for field, _, _ in entries], [index for _, index, _ in entries]
    return Row(label, 1.0, fields, ids, [value for _, _, value in entries])


def _entry(
    path: str, line: int, token: Token, parts: int, demands: Demands
) -> tuple[int, int, float]:
    if problem := next(_problems(token.text.split(b":"), parts), None):
        raise token.error(path, line, problem)
    *numbers, value = token.text.split(b":")
    *first, index = (int(digits.lstrip(b"0") or b"0") for digits in numbers)
    field = first[0] if first else 0
    if index < demands.least:
        problem = "index 0 in a file said to start at 1"
        raise token.error(path, line, problem, "0")
    if index > demands.largest:
        raise token.error(path, line, _beyond(index, demands), str(index))
    check_value(path, line, token, float(value), demands)
    return field, index, float(value)


def _beyond(index: int, demands: Demands) -> str:
    if demands.n_features is None:
        return f"index {index} leaves no room for the column count"
    last = demands.largest
    return f"index {index} is beyond n_features={demands.n_features}; the last index is {last}"


def _problems(pieces: list[bytes], parts: int) -> Iterator[str]:
    """Yield what is wrong with the pieces of an entry."""
    if len(pieces) != parts:
        yield _colon_problem(len(pieces), parts)
        return
    *numbers, value = pieces
    for name, text in zip(("index", "field"), reversed(numbers), strict=False):
        yield from _id_problems(name, text)
    if not value:
        yield "missing value after the last colon"
    elif not is_number(value):
        yield f"the value is {kind_of_bad_number(value)}"


def _colon_problem(found: int, parts: int) -> str:
    shape = "index:value" if parts == 2 else "field:index:value"
    if found == 1:
        return f"no colon; entries are written {shape}, a value of 1 must be written out"
    if (found, parts) == (3, 2):
        return "two colons: this looks like a libffm file; read it with load_libffm"
    if (found, parts) == (2, 3):
        return "one colon: this looks like a svmlight file; read it with load_svmlight"
    return f"{found - 1} colons; entries are written {shape}"


def _id_problems(name: str, text: bytes) -> Iterator[str]:
    digits = text.lstrip(b"0")
    if re.fullmatch(rb"-\d+", text):
        yield f"negative {name}"
    elif not re.fullmatch(rb"\d+", text):
        yield f"the {name} is not a whole number"
    elif len(digits) > 19 or int(digits or b"0") > LARGEST:
        yield f"{name} above 2**63 - 1; hash such ids to a smaller range"
