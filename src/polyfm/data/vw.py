"""Readers of Vowpal Wabbit's text format.

Notes
-----
One row per line, ``label importance base 'tag|space name name:value |other:scale name ...``;
what stands before the first bar may be missing. A feature is the column to which its name is
hashed, with the hash of its namespace as the seed; a name of digits alone is that number plus the
seed, as with Vowpal Wabbit's own ``--hash strings``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from polyfm.data._arguments import whole_number
from polyfm.data._collect import FieldTable
from polyfm.data._murmur import murmur3_32
from polyfm.data._pieces import Arrays, Scanned
from polyfm.data._reading import Cut, Reading, demands, iterate, load
from polyfm.data._scan_vw import scan_vw
from polyfm.data._sources import Progress
from polyfm.data.batches import Batch
from polyfm.data.lines import (
    Demands,
    Row,
    TextFormatError,
    Token,
    check_value,
    checked_number,
    is_number,
    tokens_of,
)
from polyfm.data.report import ReadReport

__all__ = ["VWRows", "iter_vw", "load_vw"]

_NO_ROOM = "use fewer bits, or iter_vw without a report, which keeps no fields"
_NAMESPACE = re.compile(rb"\|([^|\s]*)([^|]*)")


class VWRows(NamedTuple):
    """What :func:`load_vw` returns."""

    X: sp.csr_matrix
    """The rows, of shape (n_samples, 2**n_bits)."""
    y: NDArray[np.float64] | None
    """The labels; None if they are not wanted."""
    weight: NDArray[np.float64] | None
    """The importance of each row; None if it is 1 everywhere."""
    fields: NDArray[np.int64]
    """The namespace of each column; -1 for columns of several or none."""
    namespaces: list[str]
    """The names of the namespaces, in the order of their numbers."""


class Spaces(NamedTuple):
    """Namespaces that the compiled parser knows."""

    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]
    """Where in the block the name of a new one is."""
    stops: NDArray[np.int64]

    @classmethod
    def room_for(cls, n: int) -> Spaces:
        """Return room for n namespaces."""
        places = np.zeros((2, n), dtype=np.int64)
        return cls(np.zeros(n, dtype=np.uint64), places[0], places[1])


class VWLayout:
    """The layout of Vowpal Wabbit's files; keeps the namespaces it has met."""

    with_fields = True
    with_weights = True
    n_threads = 1

    def __init__(self, n_bits: int) -> None:
        self.mask = 2**n_bits - 1
        self.names: list[str] = []
        self._spaces = Spaces.room_for(64)

    def scan(
        self, buffer: NDArray[np.uint8], at: int, stop: int, demands: Demands, out: Arrays
    ) -> Scanned:
        """Read lines from a block."""
        settings = (demands.labelled, np.uint64(self.mask), demands.largest_value)
        n_known = len(self.names)
        *done, n_spaces = scan_vw(buffer, at, stop, *settings, self._spaces, n_known, out)
        if n_spaces > len(self._spaces.hashes):
            self._make_room()
            return self.scan(buffer, at, stop, demands, out)
        for k in range(n_known, n_spaces):
            name = bytes(buffer[self._spaces.starts[k] : self._spaces.stops[k]])
            self.names.append(name.decode("utf-8", "replace"))
        return Scanned(*done)

    def _make_room(self) -> None:
        old = self._spaces
        self._spaces = Spaces.room_for(2 * len(old.hashes))
        self._spaces.hashes[: len(old.hashes)] = old.hashes

    def read_line(self, path: str, line: int, text: bytes, demands: Demands) -> Row:
        """Read a line slowly."""
        return _Line(self, path, line, demands).read(text)

    def space_number(self, name: bytes, name_hash: int) -> int:
        """Return the number of a namespace, which is added where it is new."""
        n = len(self.names)
        known = np.flatnonzero(self._spaces.hashes[:n] == np.uint64(name_hash))
        if len(known):
            return int(known[0])
        if n == len(self._spaces.hashes):
            self._make_room()
        self._spaces.hashes[n] = name_hash
        self.names.append(name.decode("utf-8", "replace"))
        return n


class _Line:
    """A line taken apart token by token."""

    def __init__(self, layout: VWLayout, path: str, line: int, demands: Demands) -> None:
        self._layout, self._path, self._line, self._demands = layout, path, line, demands
        self._row = Row(np.nan, 1.0, [], [], [])

    def read(self, text: bytes) -> Row:
        """Return the row, or raise an error that names the first token that is wrong."""
        bar = text.find(b"|")
        if bar < 0:
            problem = "no bar; features are written after a |"
            raise tokens_of(text)[0].error(self._path, self._line, problem)
        label, weight = self._head(text, bar)
        for name, tokens in _namespaces(text, bar):
            self._namespace(name, tokens)
        return self._row._replace(label=label, weight=weight)

    def _error(self, token: Token, problem: str) -> TextFormatError:
        return token.error(self._path, self._line, problem)

    def _head(self, text: bytes, bar: int) -> tuple[float, float]:
        tokens = tokens_of(text, 0, bar)
        tag = None
        if tokens and (tokens[-1].text.startswith(b"'") or not text[bar - 1 : bar].isspace()):
            tag = tokens.pop()
        if not tokens and self._demands.labelled:
            found = Token(b"|", text, bar) if tag is None else tag
            problem = "the label is missing; labels=False reads rows without"
            if tag is not None and is_number(tag.text):
                problem = "this is a tag, as it touches the bar; write a blank before the |"
            raise self._error(found, problem)
        if len(tokens) > 3:
            raise self._error(tokens[3], "a fourth number before the bar")
        names = ("label", "importance", "base")
        numbers = [
            checked_number(self._path, self._line, token, name)
            for token, name in zip(tokens, names, strict=False)
        ]
        if len(numbers) > 1 and numbers[1] < 0:
            raise self._error(tokens[1], "the importance is negative")
        return (numbers[0] if numbers else np.nan), (numbers[1] if len(numbers) > 1 else 1.0)

    def _namespace(self, name: Token, features: list[Token]) -> None:
        text, colon, number = name.text.partition(b":")
        if colon and not text:
            raise self._error(name, "a scale without the name of a namespace")
        scale = self._number(name, number, "scale") if colon else 1.0
        seed = hash_name(text, 0) & 0xFFFFFFFF if text else 0
        space = self._layout.space_number(text, seed)
        n_nameless = 0
        for feature in features:
            text, colon, number = feature.text.partition(b":")
            value = scale * (self._number(feature, number, "value") if colon else 1.0)
            check_value(self._path, self._line, feature, value, self._demands)
            if text:
                hashed = hash_name(text, seed)
            else:
                hashed, n_nameless = seed + n_nameless, n_nameless + 1
            self._row.fields.append(space)
            self._row.ids.append(hashed & self._layout.mask)
            self._row.values.append(value)

    def _number(self, token: Token, text: bytes, name: str) -> float:
        if not text:
            raise self._error(token, f"missing {name} after the colon")
        number = token.rest(len(token.text) - len(text))
        return checked_number(self._path, self._line, number, name)


def _namespaces(text: bytes, start: int) -> Iterator[tuple[Token, list[Token]]]:
    """Yield the name of each namespace, with its scale, and the features of it."""
    for part in _NAMESPACE.finditer(text, start):
        name = Token(part[1], text, part.start(1))
        yield name, tokens_of(text, part.start(2), part.end(2))


def hash_name(name: bytes, seed: int) -> int:
    """Return Vowpal Wabbit's hash of a name, by its definition."""
    if re.fullmatch(rb"\d+", name):
        return (int(name[-64:]) + seed) % 2**64
    buffer = np.frombuffer(name, dtype=np.uint8)
    return int(murmur3_32(buffer, np.array([0, len(buffer)]), seed & 0xFFFFFFFF)[0])


def load_vw(
    path: Any,
    *,
    n_bits: int = 18,
    labels: bool = True,
    dtype: DTypeLike = np.float32,
    on_error: str = "raise",
    report: ReadReport | None = None,
    progress: Progress | None = None,
) -> VWRows:
    """Read Vowpal Wabbit's text files.

    Parameters
    ----------
    path : path, address, binary file object, or list of these
        As of :func:`load_svmlight`, but all of a list are read as one file: the columns of
        hashed names are the same in every file.
    n_bits : int, default=18
        There are ``2**n_bits`` columns, at most ``2**32``.
    labels : bool, default=True
        False makes the label optional and ignores it: y is None.
    dtype : dtype, default=numpy.float32
        Type of the values, ``float32`` or ``float64``.
    on_error : {"raise", "skip"}, default="raise"
        What to do with a line that cannot be read: "skip" leaves it out and warns, once for a
        file.
    report : ReadReport, optional
        Is told how many rows were read and lines left out.
    progress : callable, optional
        Called with the number of bytes read since the last call.

    Returns
    -------
    VWRows
        X, y, weight, fields and namespaces. A field is a namespace.

    Raises
    ------
    TextFormatError
        A ValueError that names file, line, column and the offending text.
    ValueError
        If the table of the fields of ``2**n_bits`` columns, 24 bytes each, does not fit into
        memory.
    OSError
        If a file cannot be opened.

    Notes
    -----
    The column of a feature is the hash of its name, MurmurHash3 with the hash of the namespace's
    name as the seed, modulo ``2**n_bits``; of a name of digits, the number plus that seed. The
    scale of a namespace multiplies its values, a feature without a value has 1, and features of a
    row that meet in a column are summed. The base, a start for the prediction, must be a number
    and is left out, as is the tag. A word that touches the first bar is a tag, even a number. No
    constant is added: estimators have an intercept of their own. Labels of other kinds than one
    number are errors.

    Examples
    --------
    >>> import io
    >>> from polyfm.data import load_vw
    >>> rows = load_vw(io.BytesIO(b"1 2 |user tom |film:0.5 Alien year:1979"))
    >>> sorted(rows.X.data.tolist()), rows.y.tolist(), rows.weight.tolist(), rows.namespaces
    ([0.5, 1.0, 989.5], [1.0], [2.0], ['user', 'film'])
    """
    layout, reading = _reading(n_bits, labels, dtype, on_error, report, progress)
    table = FieldTable(shared=True)
    table.check_room(2**n_bits, _NO_ROOM)
    (loaded,), _ = load([path], reading, table)
    fields = table.fields(0, 2**n_bits)
    if report is not None:
        report.follow(lambda: fields, lambda: layout.names)
    return VWRows(loaded.X, loaded.y, loaded.weight, fields, layout.names)


def iter_vw(
    source: Any,
    *,
    batch_rows: int = 65_536,
    batch_bytes: int | None = None,
    n_bits: int = 18,
    labels: bool = True,
    dtype: DTypeLike = np.float32,
    skip: int = 0,
    on_error: str = "raise",
    report: ReadReport | None = None,
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """Read Vowpal Wabbit's text files in batches, without ever holding a whole file.

    Parameters
    ----------
    source : path, address, binary file object, or list of these
        As of :func:`load_svmlight`; all of a list are read one after the other, as one file.
    batch_rows, batch_bytes, skip
        As of :func:`iter_svmlight`.
    n_bits, labels, dtype, on_error, progress
        As of :func:`load_vw`.
    report : ReadReport, optional
        Is told how many rows were read and lines left out, and the namespace of each column:
        ``report.fields`` and ``report.field_names``.

    Yields
    ------
    Batch
        X of ``2**n_bits`` columns, y, and the importance as the weight.

    Raises
    ------
    TextFormatError
        A ValueError that names file, line, column and the offending text.
    OSError
        If a file cannot be opened.
    """
    layout, reading = _reading(n_bits, labels, dtype, on_error, report, progress)
    table = None if report is None else FieldTable(shared=True)
    if report is not None and table is not None:
        table.check_room(2**n_bits, _NO_ROOM)
        report.follow(lambda: table.fields(0, 2**n_bits), lambda: layout.names)
    return iterate(source, reading, table, Cut(batch_rows, batch_bytes).checked(), skip)


def _reading(
    n_bits: int,
    labels: bool,
    dtype: DTypeLike,
    on_error: str,
    report: ReadReport | None,
    progress: Progress | None,
) -> tuple[VWLayout, Reading]:
    n_bits = whole_number("n_bits", n_bits, -(2**63))
    if not 1 <= n_bits <= 32:
        raise ValueError(f"n_bits must be from 1 to 32, the bits of a hash, got {n_bits}")
    layout = VWLayout(n_bits)
    asked = demands(labels, True, 2**n_bits, dtype, auto=False)
    return layout, Reading(layout, asked, on_error, report, progress).checked()
