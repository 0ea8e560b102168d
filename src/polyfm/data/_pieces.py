"""Text files piece by piece: blocks of whole lines through a compiled parser."""

from __future__ import annotations

import functools
import io
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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

    def behind(self, done: Scanned) -> Arrays:
        """Return what is left when some rows and entries have been written."""
        n, m = done.n_rows + 1, done.n_entries
        return Arrays(
            self.labels[n:],
            self.weights[n:],
            self.indptr[n:],
            self.fields[m:],
            self.ids[m:],
            self.values[m:],
            self.lines[n:],
            self.starts[n:],
        )


class Scanned(NamedTuple):
    """How far a parser came."""

    at: int
    n_lines: int
    n_rows: int
    n_entries: int
    in_order: bool
    same_fields: bool


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
    same_fields: bool
    """Whether each row has the fields of the first, in the same order."""

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

    @property
    def least(self) -> int:
        """The least index, -1 if there is none."""
        if not self.in_order or len(self.ids) == 0:
            return int(self.ids.min()) if len(self.ids) else -1
        # The first of each row; of rows without entries, another's.
        return int(self.ids[np.minimum(self.indptr[:-1], len(self.ids) - 1)].min())

    @property
    def largest(self) -> int:
        """The largest index, -1 if there is none."""
        if not self.in_order or len(self.ids) == 0:
            return int(self.ids.max(initial=-1))
        return int(self.ids[np.maximum(self.indptr[1:] - 1, 0)].max())

    @property
    def cycle(self) -> NDArray[np.int64]:
        """The fields of the entries, or those of the first row if they begin anew in each."""
        return self.fields[: int(self.indptr[1])] if self.same_fields else self.fields

    def row_of(self, entry: int) -> int:
        """Return the row that an entry is in."""
        return int(np.searchsorted(self.indptr, entry, side="right")) - 1


class Layout(Protocol):
    """A text format."""

    with_fields: bool
    with_weights: bool
    n_threads: int
    """How many blocks may be scanned at a time: 1 where something is kept from one to another."""

    def scan(
        self, buffer: NDArray[np.uint8], at: int, stop: int, demands: Demands, out: Arrays
    ) -> Scanned:
        """Read lines from a block, up to one that the compiled parser refuses."""

    def read_line(self, path: str, line: int, text: bytes, demands: Demands) -> Row:
        """Read a line that was refused, or raise an error."""


class TextLayout:
    """The layout of svmlight and libffm files."""

    with_weights = False

    n_threads = 2

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


class _Part(NamedTuple):
    """What has been read from a block up to a line that was refused, and that line."""

    out: Arrays
    done: Scanned
    row: Row | None
    error: TextFormatError | None
    end: int
    """Where the line ends in the block."""
    line: int
    """Its number, counted from the start of the block."""


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
        self.n_bytes = 0
        """Of text that have been read of the file, some of them ahead of its pieces."""

    def pieces(self, source: Opened) -> Iterator[Piece]:
        """Read a file; warns, at its end, of lines that were left out."""
        line, before = 0, self.report.n_skipped
        first: TextFormatError | None = None
        for block, parts in self._scanned(source):
            for part in parts:
                done = part.done
                if done.n_rows:
                    yield self._piece(source.name, block, part, line)
                if part.error is not None:
                    error = part.error.moved_by(line)
                    if self.on_error == "raise":
                        raise error
                    first = first or error
                    self.report.skip(error)
                elif part.row is not None:
                    self.report.n_rows += 1
                    number = line + part.line
                    yield _piece_of(part.row, source.name, block, done.at, part.end, number)
            line += part.line
        if first is not None:
            n = self.report.n_skipped - before
            lines = "line was" if n == 1 else "lines were"
            warnings.warn(f"{n} {lines} left out, the first: {first}", stacklevel=2)

    def _scanned(self, source: Opened) -> Iterator[tuple[_Block, list[_Part]]]:
        """Give blocks with what has been read from them.

        Files are read ahead and scanned by other threads meanwhile. What has no size may be
        written by someone just now, whose rows are not to wait for more.
        """
        n_threads = 0 if source.size is None or source.size <= self._block else _threads()
        n_ahead = n_threads and n_threads + 2
        blocks = _blocks(source, self._block, n_ahead + 2)
        outs = [Arrays.empty(0) for _ in range(n_ahead + 1)]
        turns = self._tasks(source.name, blocks, outs)
        if not n_threads:
            yield from ((block, task()) for block, task in turns)
            return
        waiting: deque[tuple[_Block, Future[list[_Part]]]] = deque()
        with ThreadPoolExecutor(min(n_threads, self.layout.n_threads), "polyfm-reader") as pool:
            try:
                for block, task in turns:
                    waiting.append((block, pool.submit(task)))
                    if len(waiting) == n_ahead:
                        block, future = waiting.popleft()
                        yield block, future.result()
                for block, future in waiting:
                    yield block, future.result()
            finally:
                pool.shutdown(cancel_futures=True)

    def _tasks(
        self, name: str, blocks: Iterator[_Block], outs: list[Arrays]
    ) -> Iterator[tuple[_Block, Callable[[], list[_Part]]]]:
        """Give blocks with what there is to be done to them, in arrays taken in turns."""
        for k, block in enumerate(blocks):
            self.n_bytes = block.before + block.stop
            turn = k % len(outs)
            if len(outs[turn].ids) < block.stop // 2 + 2:
                outs[turn] = Arrays.empty(len(block.text) // 2 + 2)
            yield block, functools.partial(self._scan, name, block, outs[turn])

    def _scan(self, name: str, block: _Block, out: Arrays) -> list[_Part]:
        """Read all lines of a block, up to the first bad one if that is an error."""
        parts: list[_Part] = []
        end, line = 0, 0
        while end < block.stop:
            done = self.layout.scan(block.text, end, block.stop, self.demands, out)
            row, error, end, lines = None, None, done.at, out.lines[: done.n_rows]
            lines += line + 1
            line += done.n_lines
            if end < block.stop:
                line += 1
                end = int(line_end(block.text, end))
                try:
                    text = bytes(block.text[done.at : end])
                    row = self.layout.read_line(name, line, text, self.demands)
                except TextFormatError as problem:
                    error = problem
            parts.append(_Part(out, done, row, error, end, line))
            if error is not None and self.on_error == "raise":
                break
            out = out.behind(done)
        return parts

    def _piece(self, name: str, block: _Block, part: _Part, line: int) -> Piece:
        out, done = part.out, part.done
        rows, entries = slice(done.n_rows), slice(done.n_entries)
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
            out.lines[rows] + line,
            starts,
            block.text,
            np.append(starts[1:], done.at) + block.before,
            done.in_order,
            done.same_fields,
        )


def _threads() -> int:
    """Return how many threads scan beside the one that reads and collects, a core for each."""
    from joblib import cpu_count

    return min(int(cpu_count()) - 1, 2)


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
        in_order=False,
        same_fields=True,
    )


def _blocks(source: Opened, size: int, n_buffers: int) -> Iterator[_Block]:
    """Cut a stream into blocks of whole lines, in buffers taken in turns; the last line ends, too.

    A block stays as it is until ``n_buffers - 1`` others have been made.
    """
    stream: Any = source.stream
    read = stream.readinto1 if isinstance(stream, io.BufferedReader) else stream.readinto
    buffers = deque(np.empty(size + _BEHIND, dtype=np.uint8) for _ in range(n_buffers))
    kept, before, at_start = 0, 0, True
    while True:
        buffer = buffers[0]
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
        kept = filled - stop
        if stop:
            buffers.rotate(-1)
            if len(buffers[0]) < len(buffer):
                buffers[0] = np.empty_like(buffer)
            buffers[0][:kept] = buffer[stop:filled]
            yield _Block(buffer, stop, before)
            before += stop
        elif filled == len(buffer) - _BEHIND:
            buffers[0] = np.empty(2 * len(buffer), dtype=np.uint8)
            buffers[0][:filled] = buffer[:filled]
