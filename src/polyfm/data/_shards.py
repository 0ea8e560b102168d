"""Shards: the rows of a dataset that lie in one file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyfm.data._examine import is_canonical, look_at_values
from polyfm.data._sections import DatasetError, Numbers, SectionFile, SectionWriter
from polyfm.data._targets import first_bad
from polyfm.data.rows import read_only

LARGEST_INT32 = int(np.iinfo(np.int32).max)
_PIECE = 1 << 20


class Part(NamedTuple):
    """Rows next to each other, as a shard stores them."""

    indptr: NDArray[Any]
    """From 0, as wide as ``indices``."""
    indices: NDArray[Any]
    values: NDArray[Any]
    labels: NDArray[Any] | None
    """Targets, or codes of them."""
    weights: NDArray[np.float64] | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1


class Cut(NamedTuple):
    """Rows next to each other, as views of the shard that they lie in."""

    bounds: NDArray[np.int64]
    """Where each row starts, and the last ends, among the entries of the shard."""
    indices: NDArray[Any]
    values: NDArray[Any] | None
    """None where all are 1."""
    labels: NDArray[Any] | None
    weights: NDArray[np.float64] | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.bounds) - 1

    def part(self, dtype: Any) -> Part:
        """Return the rows by themselves: views but for ``indptr``; values are of ``dtype``."""
        n_entries = len(self.indices)
        width = self.indices.dtype if n_entries <= LARGEST_INT32 else np.dtype(np.int64)
        return Part(
            (self.bounds - self.bounds[0]).astype(width, copy=False),
            _window(self.indices),
            ones(n_entries, dtype) if self.values is None else _window(self.values),
            self.labels,
            self.weights,
        )


def matrix_of(part: Part, n_features: int) -> sp.csr_matrix:
    """Return rows as a canonical CSR matrix that shares their arrays.

    Where the matrix has more columns than 32 bits can number but the shard has not, SciPy wants
    the column numbers widened, which is a copy.
    """
    X = sp.csr_matrix((part.values, part.indices, part.indptr), shape=(part.n_rows, n_features))
    X.has_sorted_indices = True
    X.has_canonical_format = True
    return X


class _Window:
    """A piece of a large array that does not refer to the whole as its base.

    SciPy copies index and value arrays that are small views of large ones.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self.size = array.size
        self._kept = array
        self.__array_interface__ = array.__array_interface__


def _window(array: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(_Window(array))


class Ones:
    """One read-only array of ones for all rows whose values are ones."""

    def __init__(self) -> None:
        self._arrays: dict[Any, NDArray[Any]] = {}

    def __call__(self, n: int, dtype: Any) -> NDArray[Any]:
        """Return n ones, which share memory with those of other calls."""
        kept = self._arrays.get(dtype)
        if kept is None or len(kept) < n:
            size = n if kept is None else max(n, min(2 * len(kept), n + _PIECE))
            kept = read_only(np.ones(size, dtype=dtype))
            self._arrays[dtype] = kept
        return _window(kept[:n])


ones = Ones()


class ShardWriter:
    """Writes one shard, in memory of one batch.

    Values are stored from the first on that is not 1, weights likewise.

    Parameters
    ----------
    path : Path
        The file.
    dtype : str
        Of the values, ``"<f4"`` or ``"<f8"``.
    wide : bool
        Whether column numbers need 64 bits.
    """

    def __init__(self, path: Path, dtype: str, wide: bool) -> None:
        self.n_rows, self.nnz, self.largest, self.wide = 0, 0, -1, wide
        self._dtype = dtype
        self._plain_values, self._plain_weights = True, True
        self._file = SectionWriter(path)
        try:
            self._append_indices(np.empty(0, dtype=np.int32))
            self._file.append("indptr", np.zeros(1, dtype=np.int64), "<i8")
        except BaseException:
            self.abandon()
            raise

    def add(self, part: Part) -> None:
        """Append rows; ``labels`` are of float64, or codes of int32, or None, throughout."""
        self._append_indices(part.indices)
        ends = part.indptr[1:].astype(np.int64) + self.nnz
        self._file.append("indptr", ends, "<i8")
        self._plain_values = self._append_unless_ones(
            "values", part.values, self._dtype, self._plain_values, self.nnz
        )
        if part.weights is not None or not self._plain_weights:
            weights = np.ones(part.n_rows) if part.weights is None else part.weights
            self._plain_weights = self._append_unless_ones(
                "weights", weights, "<f8", self._plain_weights, self.n_rows
            )
        if part.labels is not None:
            self._file.append("labels", part.labels, "<f8" if part.labels.dtype == "f8" else "<i4")
        self.n_rows += part.n_rows
        self.nnz += len(part.indices)

    def _append_indices(self, indices: NDArray[Any]) -> None:
        self._file.append("indices", indices, "<i8" if self.wide else "<i4")
        self.largest = max(self.largest, int(indices.max(initial=-1)))

    def _append_unless_ones(
        self, name: str, numbers: NDArray[Any], dtype: str, plain: bool, n_before: int
    ) -> bool:
        """Append numbers unless all so far are 1; return whether they are."""
        if plain and bool(np.all(numbers == 1)):
            return True
        if plain:
            for size in _pieces(n_before):
                self._file.append(name, np.ones(size), dtype)
        self._file.append(name, numbers, dtype)
        return False

    def close(self) -> dict[str, Any]:
        """Finish the file; return what the manifest says of it."""
        checksum = self._file.close(Numbers(self.n_rows, self.nnz, self.largest))
        return {
            "rows": self.n_rows,
            "nnz": self.nnz,
            "all_ones": self._plain_values,
            "weighted": not self._plain_weights,
            "checksum": f"{checksum:08x}",
        }

    def abandon(self) -> None:
        """Close what is open."""
        self._file.abandon()


def _pieces(n: int) -> Iterator[int]:
    for start in range(0, n, _PIECE):
        yield min(_PIECE, n - start)


class Shard:
    """A shard, mapped read-only.

    Parameters
    ----------
    path : Path
        The file.
    dtype : str
        Of the values.
    kind : str or None
        Of the targets, as :class:`polyfm.data._targets.TargetEncoder` calls it.
    n_names : int or None
        How many labels in words there are, if targets are such.

    Attributes
    ----------
    n_rows, nnz : int
        Numbers of rows and of entries.
    largest : int
        The largest column number, -1 if there is none.
    """

    def __init__(
        self, path: Path, dtype: str, kind: str | None = None, n_names: int | None = None
    ) -> None:
        self._kind, self._n_names = kind, n_names
        self.file = SectionFile(path)
        self.n_rows, self.nnz, self.largest = self.file.numbers
        self.dtype = np.dtype(dtype)
        self._indptr = self.file.section("indptr", "<i8")
        self._indices = self.file.section("indices")
        self._values = self._optional("values", dtype)
        self._labels = self._optional("labels")
        self._weights = self._optional("weights", "<f8")
        self._is_monotone = False
        self._n_looked_at = 0
        self._check_sizes()

    def _optional(self, name: str, dtype: str | None = None) -> NDArray[Any] | None:
        return self.file.section(name, dtype) if name in self.file else None

    @property
    def path(self) -> Path:
        """The file."""
        return self.file.path

    @property
    def all_ones(self) -> bool:
        """Whether every entry is 1."""
        return self._values is None

    @property
    def labels(self) -> NDArray[Any] | None:
        """Targets, or codes of them."""
        return self._labels

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """Weights of the rows; None if all are 1."""
        return self._weights

    def _check_sizes(self) -> None:
        sizes = {
            "indptr": (self._indptr, self.n_rows + 1),
            "indices": (self._indices, self.nnz),
            "values": (self._values, self.nnz),
            "labels": (self._labels, self.n_rows),
            "weights": (self._weights, self.n_rows),
        }
        for name, (array, size) in sizes.items():
            if array is not None and len(array) != size:
                raise DatasetError(
                    self.path, f"the section {name!r} has {len(array)} numbers, not {size}."
                )
        first, last = int(self._indptr[0]), int(self._indptr[-1])
        if first != 0 or last != self.nnz:
            raise self._damaged(f"its rows end at entry {last} of {self.nnz}")

    def _damaged(self, problem: str) -> DatasetError:
        return DatasetError(
            self.path,
            f"is damaged ({problem}); write the dataset again. Its verify() looks at every byte.",
        )

    def check_labels(self, labels: NDArray[Any], start: int) -> None:
        """Raise a DatasetError for targets, from row ``start`` on, that are none."""
        bad = first_bad(labels, str(self._kind), self._n_names)
        if bad is not None:
            raise self._damaged(f"the target of row {start + bad} is {labels[bad]}")

    def check_weights(self, weights: NDArray[np.float64], start: int) -> None:
        """Raise a DatasetError for weights, from row ``start`` on, that are none."""
        bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if len(bad):
            raise self._damaged(f"the weight of row {start + bad[0]} is {weights[bad[0]]}")

    def _check_monotone(self) -> None:
        """Look once, before the first rows are taken, whether row ends can be followed."""
        if self._is_monotone:
            return
        for start in range(0, self.n_rows, _PIECE):
            if np.any(np.diff(self._indptr[start : start + _PIECE + 1]) < 0):
                raise self._damaged("a row ends before it starts")
        self._is_monotone = True

    def cut(self, start: int, stop: int) -> Cut:
        """Return some rows; those that come for the first time are looked at.

        Raises
        ------
        DatasetError
            For numbers that cannot have been written so.
        """
        self._check_monotone()
        cut = self._cut(start, stop)
        if stop > self._n_looked_at:
            self._check_rows(cut, start)
            if start <= self._n_looked_at:
                self._n_looked_at = stop
        return cut

    def _cut(self, start: int, stop: int) -> Cut:
        first, last = int(self._indptr[start]), int(self._indptr[stop])
        return Cut(
            self._indptr[start : stop + 1],
            self._indices[first:last],
            None if self._values is None else self._values[first:last],
            None if self._labels is None else self._labels[start:stop],
            None if self._weights is None else self._weights[start:stop],
        )

    def verify(self) -> None:
        """Check every byte: checksums, then the canonical form.

        Raises
        ------
        DatasetError
            Where something is wrong.
        """
        self.file.verify()
        self._check_monotone()
        for start in range(0, self.n_rows, 1 << 16):
            self._check_canonical(self._cut(start, min(start + (1 << 16), self.n_rows)), start)

    def _check_rows(self, cut: Cut, start: int) -> None:
        self._check_canonical(cut, start)
        if cut.labels is not None:
            self.check_labels(cut.labels, start)
        if cut.weights is not None:
            self.check_weights(cut.weights, start)

    def _check_canonical(self, cut: Cut, start: int) -> None:
        part = cut.part(self.dtype)
        place = f"in rows {start} to {start + part.n_rows - 1}"
        indptr, indices = read_only(part.indptr), read_only(part.indices)
        if not is_canonical(indptr, indices, self.largest + 1):
            raise self._damaged(f"column numbers {place} are not sorted, or too large")
        if self._values is not None:
            n_zeros, n_beyond = look_at_values(read_only(part.values), np.inf)
            if n_zeros or n_beyond:
                raise self._damaged(f"values {place} are zero or not finite")


def gathered(cuts: Sequence[Cut], dtype: Any) -> Part:
    """Return the rows of several cuts one after the other, as copies.

    Where column numbers are of two widths, the wider one is taken. Values are of ``dtype``.
    """
    indices = np.concatenate([cut.indices for cut in cuts])
    if len(indices) > LARGEST_INT32:
        indices = indices.astype(np.int64)
    starts = np.concatenate([cut.bounds[:-1] for cut in cuts])
    ends = np.concatenate([cut.bounds[1:] for cut in cuts])
    indptr = np.zeros(len(ends) + 1, dtype=indices.dtype)
    np.cumsum(ends - starts, dtype=indptr.dtype, out=indptr[1:])
    if all(cut.values is None for cut in cuts):
        values = ones(len(indices), dtype)
    else:
        values = np.concatenate([_or_ones(cut.values, len(cut.indices), dtype) for cut in cuts])
    labels = [cut.labels for cut in cuts if cut.labels is not None]
    weights = None
    if any(cut.weights is not None for cut in cuts):
        weights = np.concatenate([_or_ones(cut.weights, cut.n_rows, np.float64) for cut in cuts])
    return Part(indptr, indices, values, np.concatenate(labels) if labels else None, weights)


def _or_ones(numbers: NDArray[Any] | None, n: int, dtype: Any) -> NDArray[Any]:
    return np.ones(n, dtype=dtype) if numbers is None else numbers


def no_rows(dtype: np.dtype[Any], labelled: bool) -> Part:
    """Return the part of no rows; labels are codes only where there are shards to have some."""
    return Part(
        np.zeros(1, dtype=np.int32),
        np.empty(0, dtype=np.int32),
        np.empty(0, dtype=dtype),
        np.empty(0, dtype=np.int32) if labelled else None,
        None,
    )
