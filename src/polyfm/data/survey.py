"""What rows are like, found in one pass in memory that does not grow with their number."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyfm.data._counting import count_columns, count_fields, hash_rows
from polyfm.data.batches import Batch
from polyfm.data.rows import canonical_csr, read_only

COUNTED_COLUMNS = 1 << 24
"""Columns up to this number are counted one by one, in 8 bytes each."""
COMPARED_ROWS = 1 << 20
"""Rows that are compared for being the same."""
SAMPLED_ROWS, _SAMPLED_ENTRIES = 20_000, 4_000_000
_FOLDED = 1 << 20
_LISTED_LABELS = 1000
_QUANTILES_OF = 100_000


class FieldSurvey(NamedTuple):
    """What the fields are like, an entry for each."""

    columns: NDArray[np.int64]
    """Distinct columns that occur."""
    rows: NDArray[np.int64]
    """Rows with an entry."""
    entries: NDArray[np.int64]


class LabelSurvey:
    """Counts of up to 1000 different targets; quantiles from 100,000 drawn at random.

    Attributes
    ----------
    n : int
        Number of targets.
    counts : dict or None
        How often each occurs; None if there are more than 1000.
    are_texts : bool
        Whether they are texts, which have no quantiles.
    """

    def __init__(self) -> None:
        self.n, self.are_texts = 0, False
        self.counts: dict[Any, int] | None = {}
        self._kept: NDArray[np.float64] = np.empty(_QUANTILES_OF)
        self._random = np.random.default_rng(0)

    def add(self, y: NDArray[Any]) -> None:
        """Take in the targets of a batch."""
        if y.dtype.kind == "O":
            y = y.astype(str)
        self.are_texts = y.dtype.kind not in "biuf"
        if self.counts is not None:
            for label, n in zip(*np.unique(y, return_counts=True), strict=True):
                self.counts[label.item()] = self.counts.get(label.item(), 0) + int(n)
            if len(self.counts) > _LISTED_LABELS:
                self.counts = None
        if not self.are_texts:
            self._draw(y.astype(np.float64))
        self.n += len(y)

    def _draw(self, y: NDArray[np.float64]) -> None:
        """Keep each number with the same probability: the k-th replaces one of those kept."""
        free = max(_QUANTILES_OF - self.n, 0)
        self._kept[self.n : self.n + free][: len(y)] = y[:free]
        late = y[free:]
        places = self._random.integers(0, self.n + free + 1 + np.arange(len(late)))
        inside = places < _QUANTILES_OF
        self._kept[places[inside]] = late[inside]

    def quantiles(self, at: Any) -> NDArray[np.float64]:
        """Return quantiles of the targets, which must be numbers."""
        return np.asarray(np.quantile(self._kept[: min(self.n, _QUANTILES_OF)], at))


class Survey:
    """Counts of rows, columns, values and labels.

    Memory is 8 bytes for each column up to number 2**24 (those beyond are counted together, by a
    hash of 20 bits), 8 for each of the first 2**20 rows, and a sample of rows.

    Parameters
    ----------
    fields : ndarray of int64, optional
        The field of each column, -1 for none.

    Attributes
    ----------
    n_rows, nnz, n_empty : int
        Numbers of rows, of entries, and of rows without any.
    shortest, longest : int
        Entries of the emptiest and of the fullest row.
    smallest_column, largest_column : int
        Numbers of columns that occur; -1 if there are none.
    least, most : float
        The range of the values.
    all_ones, all_whole : bool
        Whether each value is 1, and is a whole number.
    labels : LabelSurvey or None
        The targets; None if there are none.
    """

    def __init__(self, fields: NDArray[np.int64] | None = None) -> None:
        self.n_rows = self.nnz = self.n_empty = 0
        self.shortest, self.longest = -1, 0
        self.smallest_column = self.largest_column = -1
        self.least, self.most = np.inf, -np.inf
        self.all_ones = self.all_whole = True
        self.labels: LabelSurvey | None = None
        self._counts = np.zeros(1 << 12, dtype=np.int64)
        self._folded: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self._hashes: list[NDArray[np.uint64]] = []
        self._sampled: list[sp.csr_matrix] = []
        self._field_of = np.empty(0, dtype=np.int64)
        self._field_counts = np.zeros((3, 0), dtype=np.int64)
        if fields is not None:
            self.tell_fields(fields)

    def tell_fields(self, fields: NDArray[np.int64]) -> None:
        """Tell the field of each column, of as many columns as are known by now."""
        n = int(fields.max(initial=-1)) + 1
        grown = np.zeros((3, max(n, self._field_counts.shape[1])), dtype=np.int64)
        grown[0] = -1
        grown[:, : self._field_counts.shape[1]] = self._field_counts
        self._field_of, self._field_counts = read_only(fields), grown

    def add(self, batch: Batch) -> None:
        """Take in rows."""
        X = canonical_csr(batch.X)
        indptr, indices = read_only(X.indptr), read_only(X.indices)
        self._add_lengths(np.diff(indptr))
        self._add_columns(indices)
        self._add_values(X.data)
        last, with_, entries = self._field_counts
        count_fields(indptr, indices, self._field_of, last, self.n_rows, with_, entries)
        if batch.y is not None:
            self.labels = self.labels or LabelSurvey()
            self.labels.add(np.asarray(batch.y))
        self._compare(X, indptr, indices)
        self._sample(X)
        self.n_rows += X.shape[0]
        self.nnz += X.nnz

    def _add_lengths(self, lengths: NDArray[Any]) -> None:
        if len(lengths) == 0:
            return
        least = int(lengths.min())
        self.shortest = least if self.shortest < 0 else min(self.shortest, least)
        self.longest = max(self.longest, int(lengths.max()))
        self.n_empty += int(np.count_nonzero(lengths == 0))

    def _add_columns(self, indices: NDArray[Any]) -> None:
        if len(indices) == 0:
            return
        needed = int(indices.max()) + 1
        if len(self._counts) < min(needed, COUNTED_COLUMNS):
            grown = np.zeros(min(max(needed, 2 * len(self._counts)), COUNTED_COLUMNS), np.int64)
            grown[: len(self._counts)] = self._counts
            self._counts = grown
        if needed > COUNTED_COLUMNS and len(self._folded) < _FOLDED:
            self._folded = np.zeros(_FOLDED, dtype=np.int64)
        smallest, largest = count_columns(indices, self._counts, self._folded)
        before = self.smallest_column
        self.smallest_column = int(smallest if before < 0 else min(before, smallest))
        self.largest_column = max(self.largest_column, int(largest))

    def _add_values(self, values: NDArray[Any]) -> None:
        if len(values) == 0:
            return
        least, most = float(values.min()), float(values.max())
        self.least, self.most = min(self.least, least), max(self.most, most)
        if not least == most == 1:
            self.all_ones = False
            self.all_whole = self.all_whole and bool(np.all(values == np.floor(values)))

    def _compare(self, X: sp.csr_matrix, indptr: Any, indices: Any) -> None:
        n = min(X.shape[0], COMPARED_ROWS - self.n_compared)
        if n > 0:
            hashes = np.empty(n, dtype=np.uint64)
            words = read_only(X.data).view(f"u{X.data.itemsize}")
            hash_rows(indptr, indices, words, hashes)
            self._hashes.append(hashes)

    def _sample(self, X: sp.csr_matrix) -> None:
        taken = sum(part.shape[0] for part in self._sampled)
        room = _SAMPLED_ENTRIES - sum(part.nnz for part in self._sampled)
        n = min(SAMPLED_ROWS - taken, int(np.searchsorted(X.indptr, room, side="right")) - 1)
        if n > 0 and len(self._sampled) < SAMPLED_ROWS and taken == self.n_rows:
            self._sampled.append(X[:n].copy())

    @property
    def n_compared(self) -> int:
        """Number of rows that were compared."""
        return sum(map(len, self._hashes))

    @property
    def n_duplicates(self) -> int:
        """Number of those rows that were there before, whatever their targets."""
        if not self._hashes:
            return 0
        return self.n_compared - len(np.unique(np.concatenate(self._hashes)))

    @property
    def sample(self) -> sp.csr_matrix:
        """The first rows, 20,000 at most."""
        width = max((part.shape[1] for part in self._sampled), default=0)
        for part in self._sampled:
            part.resize(part.shape[0], width)
        return sp.vstack(self._sampled, "csr").copy() if self._sampled else sp.csr_matrix((0, 0))

    @property
    def is_folded(self) -> bool:
        """Whether some columns were counted together."""
        return len(self._folded) > 1

    @property
    def used_columns(self) -> NDArray[np.int64]:
        """Numbers of the columns that occur, below 2**24."""
        return np.flatnonzero(self._counts)

    @property
    def n_used(self) -> int:
        """Number of columns that occur; a lower bound if :attr:`is_folded`."""
        return int(np.count_nonzero(self._counts) + np.count_nonzero(self._folded))

    def frequencies(self) -> NDArray[np.int64]:
        """Return in how many rows each column occurs, the most frequent first."""
        counts = np.concatenate([self._counts[self._counts > 0], self._folded[self._folded > 0]])
        return np.sort(counts)[::-1]

    def fields(self) -> FieldSurvey | None:
        """Return what the fields are like; None if there are none."""
        n = self._field_counts.shape[1]
        if n == 0:
            return None
        known = min(len(self._field_of), len(self._counts))
        of_used = self._field_of[:known][self._counts[:known] > 0]
        columns = np.bincount(of_used[of_used >= 0], minlength=n)
        return FieldSurvey(columns, self._field_counts[1], self._field_counts[2])
