"""Rows of pieces put together: arrays that grow in place, and the matrix they end as."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyfm.data._canonical import (
    ROOM_FOR_KEYS,
    SMALL,
    SMALLER,
    copy_entries,
    copy_in_order,
    note_fields,
)
from polyfm.data._memory import has_room
from polyfm.data._pieces import Piece
from polyfm.data.lines import TextFormatError, tokens_of

__all__ = ["Collector", "FieldTable"]

_LARGEST_INT32 = np.iinfo(np.int32).max
_PER_COLUMN = 24
"""Bytes for its field: twice while the table grows, and once in the array that is given away."""


class _Growing:
    """An array that grows at its end, in place as far as the system can."""

    def __init__(self, dtype: Any) -> None:
        self._array: NDArray[Any] = np.empty(1024, dtype=dtype)
        self.n = 0

    def extend(self, values: Any, share: float) -> NDArray[Any]:
        """Make room for values and return it; ``share`` of all that is to come has come."""
        n = self.n + len(values)
        if n > len(self._array):
            self._grow(n, int(1.02 * n / share) if share > 0 else 0)
        room = self._array[self.n : n]
        self.n = n
        return room

    def _grow(self, n: int, expected: int) -> None:
        if expected > 4 * n:  # memory that is not touched yet is not taken yet
            array = np.empty(expected, dtype=self._array.dtype)
            array[: self.n] = self._array[: self.n]
            self._array = array
        else:  # in place where the system can; no view of it is kept anywhere
            self._array.resize(max(expected, n + n // 8), refcheck=False)

    def to(self, dtype: Any) -> None:
        """Change the type."""
        self._array = self._array[: self.n].astype(dtype)

    def add(self, shift: int) -> None:
        """Add a number to all."""
        self._array[: self.n] += shift

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self._array.dtype

    def finish(self) -> NDArray[Any]:
        """Give the array away, cut to its length."""
        self._array.resize(self.n, refcheck=False)
        return self._array


class Work(NamedTuple):
    """Arrays to sort a row in."""

    keys: NDArray[np.signedinteger[Any]]
    no_key: np.signedinteger[Any]
    """Larger than all keys."""
    places: NDArray[np.int32]
    ids: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def for_keys_of(cls, dtype: type[np.int32] | type[np.int64]) -> Work:
        """Return room for short rows."""
        keys, no_key = np.zeros(ROOM_FOR_KEYS, dtype=dtype), dtype(np.iinfo(dtype).max)
        places = np.zeros(ROOM_FOR_KEYS, dtype=np.int32)
        return cls(keys, no_key, places, np.empty(0, dtype=np.int64), np.empty(0))


class FieldTable:
    """The field of each index, as files tell it: -2 for none, -1 for several.

    Numbers are as short as fields allow: the table is looked into for each entry that is read, and
    is to stay in the processor's cache.
    """

    def __init__(self, shared: bool) -> None:
        self._shared = shared
        self._table: NDArray[np.signedinteger[Any]] = np.full(1024, -2, dtype=np.int8)
        self._largest = -1

    def note(self, piece: Piece, largest: int) -> None:
        """Take in a piece, whose largest index is given.

        Raises
        ------
        TextFormatError
            Where an index has several fields and may not, or the table would be too long.
        """
        if largest >= len(self._table):
            self._grow(piece, largest)
        self._largest = max(self._largest, largest)
        self._make_wide_for(int(piece.cycle.max(initial=0)))
        entry = note_fields(piece.ids, piece.cycle, self._shared, self._table)
        if entry < len(piece.ids):
            raise self._in_two_fields(piece, int(entry))

    def _make_wide_for(self, field: int) -> None:
        """Let the table hold a field."""
        if field > np.iinfo(self._table.dtype).max:
            kinds = (kind for kind in (np.int16, np.int32, np.int64) if field <= np.iinfo(kind).max)
            self._table = self._table.astype(next(kinds))

    def check_room(self, n_features: int, remedy: str) -> None:
        """Raise a ValueError where fields of so many columns, here and given away, do not fit.

        Raises
        ------
        ValueError
            With what to do.
        """
        n_bytes = _PER_COLUMN * n_features
        if not has_room(n_bytes):
            raise ValueError(
                f"a table of the fields of all {n_features:,} columns takes "
                f"{n_bytes / 2**30:,.0f} GiB, more memory than is free; {remedy}"
            )

    def _grow(self, piece: Piece, largest: int) -> None:
        try:
            if not has_room(_PER_COLUMN * (largest + 1)):
                raise MemoryError
            n = max(largest + 1, 2 * len(self._table))
            table = np.full(n, -2, dtype=self._table.dtype)
        except (MemoryError, ValueError):
            problem = (
                f"a table of the fields of all columns up to index {largest} does not fit into "
                "memory; hash the indices to a smaller range"
            )
            entry = int(np.argmax(piece.ids))
            raise _at_entry(piece, entry, problem, str(largest)) from None
        table[: len(self._table)] = self._table
        self._table = table

    def _in_two_fields(self, piece: Piece, entry: int) -> TextFormatError:
        index, field = int(piece.ids[entry]), int(piece.fields[entry])
        problem = (
            f"index {index} occurs in field {field} and in field {self._table[index]}, so that "
            "its column has no single field; use shared_ids='mark' to read it all the same, or "
            "make the indices unique per field"
        )
        return _at_entry(piece, entry, problem, f"{field}:{index}")

    def fields(self, first: int, n_features: int | None = None) -> NDArray[np.int64]:
        """Return the fields of the columns, -1 for those without a single one."""
        n_features = self._largest - first + 1 if n_features is None else n_features
        fields = np.full(n_features, -1, dtype=np.int64)
        known = self._table[first : first + n_features]
        fields[: len(known)] = np.maximum(known, -1)
        return fields


def _at_entry(piece: Piece, entry: int, problem: str, found: str) -> TextFormatError:
    row = piece.row_of(entry)
    tokens = tokens_of(piece.line_of(row).partition(b"#")[0])
    n_entries = int(piece.indptr[row + 1] - piece.indptr[row])
    token = tokens[len(tokens) - n_entries + entry - int(piece.indptr[row])]
    return token.error(piece.name, int(piece.lines[row]), problem, found)


class Collector:
    """Rows of a file, or of a batch.

    ``first`` is the index of the first column; None takes 1 until an index 0 comes.
    """

    def __init__(self, dtype: np.dtype[Any], first: int | None, table: FieldTable | None) -> None:
        self._given_first, self._table = first, table
        self.first = 1 if first is None else first
        self.largest = -1
        self.share = 0.0
        self._labels, self._weights = _Growing(np.float64), _Growing(np.float64)
        self._lengths = _Growing(np.int64)
        self._indices, self._values = _Growing(np.int32), _Growing(dtype)
        self._work = Work.for_keys_of(np.int32)

    @property
    def n_rows(self) -> int:
        """Number of rows so far."""
        return self._labels.n

    def add(self, piece: Piece) -> None:
        """Take in all rows of a piece, whose arrays are brought into order.

        Raises
        ------
        TextFormatError
            Where the fields do not fit, or a sum of repeated entries is too large.
        """
        largest = piece.largest
        if self._table is not None and largest >= 0:
            self._table.note(piece, largest)
        self.largest = max(self.largest, largest)
        if self._given_first is None and self.first == 1 and piece.least == 0:
            self.start_at(0)
        self._widen()
        self._add_entries(piece)
        self._labels.extend(piece.labels, self.share)[:] = piece.labels
        np.subtract(
            piece.indptr[1:],
            piece.indptr[:-1],
            out=self._lengths.extend(piece.labels, self.share),
        )
        if piece.weights is not None:
            self._weights.extend(piece.weights, self.share)[:] = piece.weights

    def _add_entries(self, piece: Piece) -> None:
        rooms = (
            self._indices.extend(piece.ids, self.share),
            self._values.extend(piece.values, self.share),
        )
        if piece.in_order:
            copy_entries(piece.ids, piece.values, self.first, *rooms)
            return
        small = self.largest < SMALL
        work = self._work_for(piece)
        entries = (piece.ids, piece.values, self.first, small)
        n = int(copy_in_order(piece.indptr, *entries, *rooms, work))
        n_summed = len(piece.ids) - n
        self._indices.n -= n_summed
        self._values.n -= n_summed
        if n_summed and not np.isfinite(rooms[1][:n]).all():
            self._raise_for_sum(piece, rooms[0], rooms[1][:n])

    def start_at(self, first: int) -> None:
        """Let the first column have another index."""
        shift, self.first = self.first - first, first
        if shift:
            self._widen()
            self._indices.add(shift)

    def _widen(self) -> None:
        if self._indices.dtype == np.int32 and self.largest - self.first > _LARGEST_INT32:
            self._indices.to(np.int64)

    def _work_for(self, piece: Piece) -> Work:
        if self.largest >= SMALLER and self._work.keys.dtype == np.int32:
            self._work = Work.for_keys_of(np.int64)
        needed = 2 * int(np.diff(piece.indptr).max())
        if needed > len(self._work.ids):
            ids, values = np.empty(needed, dtype=np.int64), np.empty(needed)
            self._work = self._work._replace(ids=ids, values=values)
        return self._work

    def _raise_for_sum(self, piece: Piece, indices: NDArray[Any], values: NDArray[Any]) -> None:
        bad = int(np.argmin(np.isfinite(values)))
        index = int(indices[bad]) + self.first
        problem = f"the values of index {index} add up to more than a {values.dtype} holds"
        raise TextFormatError(piece.name, int(piece.lines[piece.row_of(bad)]), problem, str(index))

    @property
    def labels(self) -> NDArray[np.float64]:
        """The labels, which are given away."""
        return self._labels.finish()

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """The weights, which are given away; None where all are 1."""
        weights = self._weights.finish()
        return None if bool(np.all(weights == 1.0)) else weights  # so it is if there are none

    def matrix(self, n_features: int | None) -> sp.csr_matrix:
        """Return the rows as a matrix, which takes over the arrays."""
        width = max(self.largest - self.first + 1, 0) if n_features is None else n_features
        indptr = np.zeros(self.n_rows + 1, dtype=np.int64)
        np.cumsum(self._lengths.finish(), out=indptr[1:])
        indices, values = self._indices.finish(), self._values.finish()
        narrow = max(width, len(indices)) <= _LARGEST_INT32
        kind = np.int32 if narrow else np.int64
        arrays = (values, indices.astype(kind, copy=False), indptr.astype(kind, copy=False))
        X = sp.csr_matrix(arrays, shape=(len(indptr) - 1, width), copy=False)
        X.has_sorted_indices = X.has_canonical_format = True
        return X
