"""What all readers of text share: sources to matrices, or to batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from polyfm.data._arguments import float_type, whole_number
from polyfm.data._collect import Collector, FieldTable
from polyfm.data._pieces import BLOCK, Layout, Piece, TextReader
from polyfm.data._sources import Progress, members, open_sources
from polyfm.data.batches import Batch
from polyfm.data.lines import Demands, TextFormatError
from polyfm.data.report import ReadReport

__all__ = ["Cut", "Loaded", "Reading", "demands", "iterate", "load", "read_as_written"]


class Reading(NamedTuple):
    """How text is read: what the readers' arguments come to."""

    layout: Layout
    demands: Demands
    on_error: str = "raise"
    report: ReadReport | None = None
    progress: Progress | None = None
    block: int = BLOCK

    def checked(self) -> Reading:
        """Return itself, or raise a ValueError."""
        if self.on_error not in ("raise", "skip"):
            raise ValueError(f"on_error must be 'raise' or 'skip', got {self.on_error!r}")
        return self

    def reader(self) -> TextReader:
        """Return a reader."""
        return TextReader(self.layout, self.demands, self.on_error, self.report, self.block)


class Loaded(NamedTuple):
    """A source that has been read."""

    X: sp.csr_matrix
    y: NDArray[np.float64] | None
    weight: NDArray[np.float64] | None


def demands(
    labels: bool, zero_based: Any, n_features: int | None, dtype: DTypeLike, *, auto: bool
) -> Demands:
    """Check what users demand of a file; ``auto`` allows ``zero_based="auto"``.

    Raises
    ------
    ValueError, TypeError
        Naming the argument.
    """
    width = None if n_features is None else whole_number("n_features", n_features, 1)
    kind = float_type(dtype)
    if isinstance(zero_based, bool | np.bool_):
        first = 0 if zero_based else 1
    elif auto and isinstance(zero_based, str) and zero_based == "auto":
        first = None
    else:
        choices = "True, False or 'auto'" if auto else "True or False"
        raise ValueError(f"zero_based must be {choices}, got {zero_based!r}")
    return Demands(labels, first, width, kind)


class AsWritten(NamedTuple):
    """Entries in the order in which they stand in a file, repeated ones and all."""

    labels: NDArray[np.float64]
    ids: NDArray[np.int64]
    values: NDArray[np.float64]


def read_as_written(source: Any, reading: Reading) -> AsWritten:
    """Read sources whose rows mean something by their order."""
    reader = reading.reader()
    parts = [
        (piece.labels.copy(), piece.ids.copy(), piece.values.copy())
        for opened in open_sources(source, reading.progress)
        for piece in reader.pieces(opened)
    ]
    return AsWritten(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def load(source: Any, reading: Reading, table: FieldTable | None) -> tuple[list[Loaded], int]:
    """Read each source of a list, or the only one; return also the index of the first column.

    Raises
    ------
    TextFormatError
        A ValueError that names file, line and the offending text.
    """
    sources = members(source)
    loads = [_Load(reading, table) for _ in sources]
    for one, each in zip(loads, sources, strict=True):
        one.read(each)
    first = min(one.rows.first for one in loads)
    width = reading.demands.n_features
    if first == 0:
        for one in loads:
            one.begin_at_zero()
    if width is None:
        width = max(max(one.rows.largest for one in loads) - first + 1, 0)
    labelled = reading.demands.labelled
    return [one.finish(width, labelled) for one in loads], first


class _Load:
    """The rows of one source, as they come in."""

    def __init__(self, reading: Reading, table: FieldTable | None) -> None:
        self._reading = reading
        self._n_read = 0
        self._too_large: TextFormatError | None = None
        asked = reading.demands
        self.rows = Collector(asked.dtype, asked.first, table)

    def read(self, source: Any) -> None:
        """Read all its files."""
        reader = self._reading.reader()
        name = ""
        for k, opened in enumerate(open_sources(source, self._told)):
            name = opened.name
            for piece in reader.pieces(opened):
                size = opened.size if k == 0 else None  # of the files after it nothing is known
                share_read = self._n_read / size if size else 0.0
                self.rows.share = share_read * int(piece.ends[-1]) / reader.n_bytes
                if self._reading.demands.first is None:
                    self._look_for_too_large(reader, piece)
                self.rows.add(piece)
        if self.rows.n_rows == 0:
            problem = "no rows in it" if self._n_read else "the file is empty"
            raise TextFormatError(name, None, problem)

    def _told(self, n: int) -> None:
        self._n_read += n
        if self._reading.progress is not None:
            self._reading.progress(n)

    def _look_for_too_large(self, reader: TextReader, piece: Piece) -> None:
        """Keep the error of an index that has a column only if the first is 1."""
        largest = reader.demands.largest
        if self._too_large is None and piece.largest == largest:
            row = piece.row_of(int(np.argmax(piece.ids)))
            from_zero = reader.demands._replace(first=0)
            place = (piece.name, int(piece.lines[row]), piece.line_of(row))
            try:
                reader.layout.read_line(*place, from_zero)
            except TextFormatError as error:
                self._too_large = error

    def begin_at_zero(self) -> None:
        """Take 0 for the first column."""
        if self._too_large is not None:
            raise self._too_large
        self.rows.start_at(0)

    def finish(self, n_features: int, labelled: bool) -> Loaded:
        """Return the matrix and what belongs to it."""
        X = self.rows.matrix(n_features)
        y = self.rows.labels if labelled else None
        return Loaded(X, y, self.rows.weights)


class Cut(NamedTuple):
    """Where batches end: what comes first counts."""

    rows: int
    bytes: int | None
    """Of text; a batch has a row, though, however long."""

    def checked(self) -> Cut:
        """Return itself, or raise a ValueError or TypeError."""
        n_bytes = None if self.bytes is None else whole_number("batch_bytes", self.bytes, 1)
        return Cut(whole_number("batch_rows", self.rows, 1), n_bytes)


class _Batches:
    """Pieces to batches."""

    def __init__(self, asked: Demands, table: FieldTable | None, cut: Cut, skip: int) -> None:
        self._asked, self._table, self._cut, self._skip = asked, table, cut, skip
        self._begin()

    def _begin(self) -> None:
        self._rows = Collector(self._asked.dtype, self._asked.first, self._table)
        self._n_bytes = 0

    def take(self, piece: Piece, before: int) -> Iterator[Batch]:
        """Take in a piece and give the batches that it fills; ``before`` bytes lie before it."""
        at = min(self._skip, len(piece.labels))
        self._skip -= at
        before = int(piece.ends[at - 1]) if at else before
        while at < len(piece.labels):
            stop = self._stop(piece, at, before)
            if stop > at:
                self._rows.add(piece.rows(at, stop))
                self._n_bytes += int(piece.ends[stop - 1]) - before
                at, before = stop, int(piece.ends[stop - 1])
            if at < len(piece.labels) or self._rows.n_rows == self._cut.rows:
                yield self.finish()

    def _stop(self, piece: Piece, at: int, before: int) -> int:
        """Return the row before which the batch ends, at the latest where the piece does."""
        stop = min(at + self._cut.rows - self._rows.n_rows, len(piece.labels))
        if self._cut.bytes is not None:
            room = before + self._cut.bytes - self._n_bytes
            least = at if self._rows.n_rows else at + 1
            stop = min(stop, max(int(np.searchsorted(piece.ends, room, side="right")), least))
        return stop

    @property
    def n_rows(self) -> int:
        """Rows of the batch that is not full."""
        return self._rows.n_rows

    def finish(self) -> Batch:
        """Return what there is and begin another batch."""
        rows = self._rows
        self._begin()
        X = rows.matrix(self._asked.n_features)
        return Batch(X, rows.labels if self._asked.labelled else None, rows.weights)


def iterate(
    source: Any, reading: Reading, table: FieldTable | None, cut: Cut, skip: int
) -> Iterator[Batch]:
    """Read sources, one after the other, in batches.

    Raises
    ------
    ValueError, TypeError
        At once, for a source or a number of rows that there cannot be.
    """
    return _iterate(members(source), reading, table, cut, whole_number("skip", skip, 0))


def _iterate(
    source: list[Any], reading: Reading, table: FieldTable | None, cut: Cut, skip: int
) -> Iterator[Batch]:
    reader = reading.reader()
    batches = _Batches(reading.demands, table, cut, skip)
    for opened in open_sources(source, reading.progress):
        before = 0
        for piece in reader.pieces(opened):
            end = int(piece.ends[-1])
            yield from batches.take(piece, before)
            before = end
    if batches.n_rows:
        yield batches.finish()
