"""Text files piece by piece: blocks of whole lines through a compiled parser."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from polyfm.data._scan import last_line_end, line_end, scan
from polyfm.data._sources import Opened
from polyfm.data.lines import Demands, Row, TextFormatError, read_line
from polyfm.data.report import ReadReport

__all__ = ["Arrays", "Layout", "Piece", "Scanned", "TextLayout", "TextReader"]

BLOCK = 1 << 20
_BEHIND = 64
"""Bytes behind the text: the parsers load whole words, and end the last line."""
_BOM = b"\xef\xbb\xbf"


class Arrays(NamedTuple):
    """What parsers write into, with room for all that a block may hold."""

    labels: NDArray[np.float64]
    weights: NDArray[np.float64]
    indptr: NDArray[np.int64]
    fields: NDArray[np.int64]
    ids: NDArray[np.int64]
    values: NDArray[np.float64]
    lines: NDArray[np.int64]
    """Of each row, counted from the start of the block."""
    starts: NDArray[np.int64]
    """Of each row, its place in the block."""

    @classmethod
    def empty(cls, n: int) -> Arrays:
        """Return arrays of n entries; memory is taken only as they are written."""
        numbers = [np.empty(n) for _ in range(3)]
        places = [np.empty(n, dtype=np.int64) for _ in range(5)]
        labels, weights, values = numbers
        indptr, fields, ids, lines, starts = places
        return cls(labels, weights, indptr, fields, ids, values, lines, starts)


class Scanned(NamedTuple):
    """How far a parser came."""

    at: int
    n_lines: int
    n_rows: int
    n_entries: int
    in_order: bool


class Piece(NamedTuple):
    """Some rows as they were written; views of arrays that the next piece overwrites."""

    name: str
    labels: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    indptr: NDArray[np.int64]
    fields: NDArray[np.int64]
    ids: NDArray[np.int64]
    values: NDArray[np.float64]
    lines: NDArray[np.int64]
    """Numbers of the lines, from 1."""
    starts: NDArray[np.int64]
    text: NDArray[np.uint8]
    """The block that ``starts`` points into."""
    ends: NDArray[np.int64]
    """Bytes of the file up to the end of each row."""
    in_order: bool

    def rows(self, start: int, stop: int) -> Piece:
        """Return some of the rows."""
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        rows, entries = slice(start, stop), slice(first, last)
        return self._replace(
            labels=self.labels[rows],
            weights=None if self.weights is None else self.weights[rows],
            indptr=self.indptr[start : stop + 1] - first,
            fields=self.fields[entries],
            ids=self.ids[entries],
            values=self.values[entries],
            lines=self.lines[rows],
            starts=self.starts[rows],
            ends=self.ends[rows],
        )

    def line_of(self, row: int) -> bytes:
        """Return the text of a row."""
        start = self.starts[row]
        return bytes(self.text[start : line_end(self.text, start) - 1])

    def row_of(self, entry: int) -> int:
        """Return the row that an entry is in."""
        return int(np.searchsorted(self.indptr, entry, side="right")) - 1


class Layout(Protocol):
    """A text format."""

    with_fields: bool
    with_weights: bool

    def scan(
        self, buffer: NDArray[np.uint8], at: int, stop: int, demands: Demands, out: Arrays
    ) -> Scanned:
        """Read lines from a block, up to one that the compiled parser refuses."""

    def read_line(self, path: str, line: int, text: bytes, demands: Demands) -> Row:
        """Read a line that was refused, or raise an error."""


class TextLayout:
    """The layout of svmlight and libffm files."""

    with_weights = False

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self.with_fields = parts == 3

    def scan(
        self, buffer: NDArray[np.uint8], at: int, stop: int, demands: Demands, out: Arrays
    ) -> Scanned:
        """Read lines from a block."""
        limits = np.array([demands.least, demands.largest])
        more = (self.with_fields, demands.labelled, limits, demands.largest_value)
        return Scanned(*scan(buffer, at, stop, *more, out))

    def read_line(self, path: str, line: int, text: bytes, demands: Demands) -> Row:
        """Read a line slowly."""
        return read_line(path, line, text, self.parts, demands)


class _Block(NamedTuple):
    text: NDArray[np.uint8]
    stop: int
    before: int
    """Bytes of the file before it."""


class TextReader:
    """Reads open files in a layout, piece by piece."""

    def __init__(
        self,
        layout: Layout,
        demands: Demands,
        on_error: str = "raise",
        report: ReadReport | None = None,
        block: int = BLOCK,
    ) -> None:
        self.layout, self.demands, self.on_error = layout, demands, on_error
        self.report = ReadReport() if report is None else report
        self._block = block
        self._out = Arrays.empty(0)

    def pieces(self, source: Opened) -> Iterator[Piece]:
        """Read a file; warns, at its end, of lines that were left out."""
        line, before = 0, self.report.n_skipped
        first: TextFormatError | None = None
        for block in _blocks(source, self._block):
            if len(self._out.ids) < len(block.text) // 2 + 2:
                self._out = Arrays.empty(len(block.text) // 2 + 2)
            at = 0
            while at < block.stop:
                done = self.layout.scan(block.text, at, block.stop, self.demands, self._out)
                if done.n_rows:
                    yield self._piece(source.name, block, done, line)
                line, at = line + done.n_lines, done.at
                if at < block.stop:
                    line += 1
                    end = line_end(block.text, at)
                    row, error = self._slowly(source.name, line, bytes(block.text[at:end]))
                    first = first or error
                    if row is not None:
                        yield _piece_of(row, source.name, block, at, end, line)
                    at = end
        if first is not None:
            n = self.report.n_skipped - before
            lines = "line was" if n == 1 else "lines were"
            warnings.warn(f"{n} {lines} left out, the first: {first}", stacklevel=2)

    def _slowly(
        self, name: str, line: int, text: bytes
    ) -> tuple[Row | None, TextFormatError | None]:
        try:
            row = self.layout.read_line(name, line, text, self.demands)
        except TextFormatError as error:
            if self.on_error == "raise":
                raise
            self.report.skip(error)
            return None, error
        self.report.n_rows += 1
        return row, None

    def _piece(self, name: str, block: _Block, done: Scanned, line: int) -> Piece:
        out, rows, entries = self._out, slice(done.n_rows), slice(done.n_entries)
        self.report.n_rows += done.n_rows
        starts = out.starts[rows]
        return Piece(
            name,
            out.labels[rows],
            out.weights[rows] if self.layout.with_weights else None,
            out.indptr[: done.n_rows + 1],
            out.fields[entries] if self.layout.with_fields else out.fields[:0],
            out.ids[entries],
            out.values[entries],
            out.lines[rows] + (line + 1),
            starts,
            block.text,
            np.append(starts[1:], done.at) + block.before,
            done.in_order,
        )


def _piece_of(row: Row, name: str, block: _Block, start: int, end: int, line: int) -> Piece:
    n = len(row.ids)
    return Piece(
        name,
        np.array([row.label]),
        np.array([row.weight]),
        np.array([0, n]),
        np.array(row.fields, dtype=np.int64),
        np.array(row.ids, dtype=np.int64),
        np.array(row.values, dtype=np.float64),
        np.array([line]),
        np.array([start]),
        block.text,
        np.array([end + block.before]),
        False,
    )


def _blocks(source: Opened, size: int) -> Iterator[_Block]:
    """Cut a stream into blocks of whole lines, one buffer for all; the last line ends, too."""
    stream: Any = source.stream
    read = stream.readinto1 if isinstance(stream, io.BufferedReader) else stream.readinto
    buffer = np.empty(size + _BEHIND, dtype=np.uint8)
    kept, before, at_start = 0, 0, True
    while True:
        n = read(buffer[kept : len(buffer) - _BEHIND].data)
        filled = kept + n
        if at_start and (filled >= len(_BOM) or n == 0):
            at_start = False
            if bytes(buffer[: min(filled, 3)]) == _BOM:
                filled -= len(_BOM)
                buffer[:filled] = buffer[len(_BOM) : filled + len(_BOM)]
                before = len(_BOM)
        if n == 0:
            if filled:
                buffer[filled] = ord("\n")
                yield _Block(buffer, filled + 1, before)
            return
        stop = 0 if at_start else int(last_line_end(buffer, filled))
        if stop:
            yield _Block(buffer, stop, before)
            before += stop
            buffer[: filled - stop] = buffer[stop:filled]
        elif filled == len(buffer) - _BEHIND:
            longer = np.empty(2 * len(buffer), dtype=np.uint8)
            longer[:filled] = buffer[:filled]
            buffer = longer
        kept = filled - stop
