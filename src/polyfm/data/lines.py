"""Lines of svmlight and libffm files: reading them fast, and saying what is wrong with bad ones.

One regular expression per format accepts a whole line; only a line that it refuses is taken
apart token by token, to find the words for the error.
"""

from __future__ import annotations

import gzip
import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

__all__ = ["LIBFFM", "SVMLIGHT", "Format", "Rows", "TextFormatError", "parse", "parse_pieces"]

_BOM = b"\xef\xbb\xbf"
LARGEST = 2**63 - 1
# Possessive quantifiers: a bad token far to the right must not re-open all those before it.
_NUMBER = rb"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?"


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

    Attributes
    ----------
    path, line, problem, text
        The same.
    """

    def __init__(self, path: str, line: int | None, problem: str, text: str = "") -> None:
        self.path, self.line, self.problem, self.text = path, line, problem, text
        place = path if line is None else f"{path}, line {line}"
        super().__init__(f"{place}: {problem}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.line, self.problem, self.text)


class Format(NamedTuple):
    """A text format: how many numbers a token has, and what a whole line looks like."""

    name: str
    parts: int
    line: re.Pattern[bytes]


def _format(name: str, parts: int, token: bytes) -> Format:
    label = rb"\s*(?:(" + _NUMBER + rb")(?=\s|$))?"
    query = rb"(?:\s*qid:\d+(?=\s|$))?"
    tokens = rb"((?:\s*+(?<!\S)" + token + rb")*+)\s*"
    return Format(name, parts, re.compile(label + query + tokens))


SVMLIGHT = _format("svmlight", 2, rb"\d++:" + _NUMBER)
LIBFFM = _format("libffm", 3, rb"\d++:\d++:" + _NUMBER)


class Rows(NamedTuple):
    """What a file says, before anything is decided about indices."""

    path: str
    labels: NDArray[np.float64]
    indptr: NDArray[np.int64]
    fields: NDArray[np.int64]
    ids: NDArray[np.int64]
    values: NDArray[np.float64]
    lines: NDArray[np.int64]

    def line_of(self, entry: int) -> int:
        """Line number of an entry."""
        return int(self.lines[np.searchsorted(self.indptr, entry, side="right") - 1])


def _open(path: Path) -> IO[bytes]:
    stream = path.open("rb")
    if stream.peek(2)[:2] != b"\x1f\x8b":
        return stream
    stream.close()
    return cast(IO[bytes], gzip.open(path, "rb"))


class _Collector:
    """Growing compact arrays: 8 bytes per number read."""

    def __init__(self, layout: Format) -> None:
        self.parts = layout.parts
        self.labels, self.values = array("d"), array("d")
        self.lines, self.indptr = array("q"), array("q", [0])
        self.columns = [array("q") for _ in range(layout.parts - 1)]

    def add(self, number: int, match: re.Match[bytes]) -> None:
        """Take in one line; OverflowError or ValueError if an index is too long."""
        tokens = match[2].replace(b":", b" ").split()
        for part, column in enumerate(self.columns):
            column.extend(map(int, tokens[part :: self.parts]))
        self.values.extend(map(float, tokens[self.parts - 1 :: self.parts]))
        self.labels.append(float(match[1] or "nan"))
        self.lines.append(number)
        self.indptr.append(len(self.values))

    def rows(self, path: str) -> Rows:
        """The arrays, without a copy."""
        whole = (self.indptr, self.columns[0], self.columns[-1], self.lines)
        indptr, fields, ids, lines = (np.frombuffer(part, np.int64) for part in whole)
        labels, values = (np.frombuffer(part, np.float64) for part in (self.labels, self.values))
        return Rows(path, labels, indptr, fields, ids, values, lines)


def parse(path: Path, layout: Format, labelled: bool) -> Rows:
    """Read a plain or gzip-compressed file; ``labelled`` demands a label on every line."""
    rows = next(parse_pieces(path, layout, labelled), None)
    if rows is None:
        empty = path.stat().st_size == 0
        raise TextFormatError(str(path), None, "the file is empty" if empty else "no rows in it")
    return rows


def parse_pieces(
    path: Path, layout: Format, labelled: bool, n_rows: int | None = None, skip: int = 0
) -> Iterator[Rows]:
    """Read a file piece by piece, of ``n_rows`` each, without the first ``skip`` rows."""
    collector, to_skip = _Collector(layout), skip
    with _open(path) as stream:
        for number, line in enumerate(stream, 1):
            text = _without_comment(line, number)
            if not text.strip():
                continue
            if to_skip:
                to_skip -= 1
                continue
            match = layout.line.fullmatch(text)
            if match is None or (labelled and match[1] is None):
                _explain(str(path), number, text, layout, labelled)
            try:
                collector.add(number, match)
            except (OverflowError, ValueError):
                _explain(str(path), number, text, layout, labelled)
            if len(collector.lines) == n_rows:
                yield _checked(collector, path, labelled)
                collector = _Collector(layout)
    if collector.lines:
        yield _checked(collector, path, labelled)


def _checked(collector: _Collector, path: Path, labelled: bool) -> Rows:
    rows = collector.rows(str(path))
    return _with_finite_labels(rows) if labelled else rows


def _without_comment(line: bytes, number: int) -> bytes:
    if number == 1:
        line = line.removeprefix(_BOM)
    return line.partition(b"#")[0] if b"#" in line else line


def _with_finite_labels(rows: Rows) -> Rows:
    bad = np.flatnonzero(~np.isfinite(rows.labels))
    if len(bad):
        raise TextFormatError(rows.path, int(rows.lines[bad[0]]), "the label is too large")
    return rows


def _explain(path: str, line: int, text: bytes, layout: Format, labelled: bool) -> NoReturn:
    """Find out what is wrong with a line and say so."""
    tokens = [token.decode("utf-8", "replace") for token in text.split()]
    problem = _label_problem(tokens[0], labelled)
    bad = tokens[0]
    if problem is None:
        has_label = ":" not in tokens[0]
        skip = int(has_label)
        skip += len(tokens) > skip and tokens[skip].startswith("qid:")
        found = ((t, p) for t in tokens[skip:] if (p := _token_problem(t, layout)) is not None)
        bad, problem = next(found, (text.decode("utf-8", "replace").strip(), "cannot be read"))
    shown = bad if len(bad) <= 60 else bad[:57] + "..."
    raise TextFormatError(path, line, f"{shown!r}: {problem}", bad)


def _is_number(text: str) -> bool:
    return re.fullmatch(_NUMBER, text.encode()) is not None


def _label_problem(token: str, labelled: bool) -> str | None:
    if ":" in token:
        return "the label is missing; every line starts with one" if labelled else None
    if _is_number(token):
        return None
    return f"the label is {_kind_of_bad_number(token)}"


def _kind_of_bad_number(text: str) -> str:
    try:
        finite = np.isfinite(float(text))
    except ValueError:
        return "not a number"
    return "not a plain decimal number" if finite else "not finite; NaN and infinity are refused"


def _token_problem(token: str, layout: Format) -> str | None:
    parts = token.split(":")
    if len(parts) != layout.parts:
        return _colon_problem(len(parts), layout)
    *ids, value = parts
    for name, text in zip(("index", "field"), reversed(ids), strict=False):
        if problem := _id_problem(name, text):
            return problem
    if not value:
        return "missing value after the last colon"
    return None if _is_number(value) else f"the value is {_kind_of_bad_number(value)}"


def _colon_problem(parts: int, layout: Format) -> str:
    shape = "index:value" if layout.parts == 2 else "field:index:value"
    if parts == 1:
        return f"no colon; entries are written {shape}, a value of 1 must be written out"
    if (parts, layout.parts) == (3, 2):
        return "two colons: this looks like a libffm file; read it with load_libffm"
    if (parts, layout.parts) == (2, 3):
        return "one colon: this looks like a svmlight file; read it with load_svmlight"
    return f"{parts - 1} colons; entries are written {shape}"


def _id_problem(name: str, text: str) -> str | None:
    if re.fullmatch(r"-\d+", text, re.ASCII):
        return f"negative {name}"
    if not re.fullmatch(r"\d+", text, re.ASCII):
        return f"the {name} is not a whole number"
    digits = text.lstrip("0")
    if len(digits) > 19 or int(digits or "0") > LARGEST:
        return f"{name} above 2**63 - 1; hash such ids to a smaller range"
    return None
