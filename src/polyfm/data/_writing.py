"""Writing a dataset batch by batch."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from polyfm.data import _manifest
from polyfm.data._arguments import float_type, whole_number
from polyfm.data._examine import look_at_values
from polyfm.data._folders import Draft
from polyfm.data._sections import Numbers, SectionWriter, finish, open_for_writing
from polyfm.data._shards import LARGEST_INT32, Part, ShardWriter
from polyfm.data._targets import TargetEncoder
from polyfm.data.batches import Batch, as_batch
from polyfm.data.rows import examined_csr, read_only

SHARD_ROWS = 1 << 22
_MOST_ENTRIES = 1 << 30
"""Of a shard, so that its whole is a matrix with column numbers of 32 bits."""
_NAMES_AT_ONCE = 1 << 16


class DatasetWriter:
    """Writes a dataset batch by batch, in memory of one batch.

    The folder gets its name when all of it is on the disk: whatever happens before, there is the
    former dataset of that name, or none. Use it as a context manager; when the block is left
    without :meth:`finish`, all is removed.

    Parameters
    ----------
    path : path
        The folder to write.
    n_features : int, optional
        Number of columns, if more than the widest batch has; a wider batch is an error.
    shard_rows : int, default=4194304
        Rows of a shard. A shard ends before 2**30 entries, too.
    dtype : dtype, optional
        Of the values, float32 or float64. By default that of the first batch.
    overwrite : bool, default=False
        Whether to replace a dataset of that name.

    Raises
    ------
    FileExistsError
        If there is something of that name, unless it is a dataset and ``overwrite`` is true.
    OSError
        If the folder cannot be written.
    ValueError
        For a parameter out of its range.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        n_features: int | None = None,
        shard_rows: int = SHARD_ROWS,
        dtype: DTypeLike | None = None,
        overwrite: bool = False,
    ) -> None:
        shard_rows = whole_number("shard_rows", shard_rows, 1)
        if n_features is not None:
            n_features = whole_number("n_features", n_features, 0)
        self._dtype = None if dtype is None else float_type(dtype)
        self._is_told = dtype is not None
        self._given_width, self._shard_rows, self._overwrite = n_features, shard_rows, overwrite
        self._width = n_features or 0
        self._targets = TargetEncoder()
        self._shard: ShardWriter | None = None
        self._written: list[dict[str, Any]] = []
        self.n_rows, self._n_batches = 0, 0
        path = Path(os.path.abspath(path))
        check_place(path, overwrite)
        self._draft: Draft | None = Draft(path)

    def __enter__(self) -> DatasetWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.discard()

    @property
    def path(self) -> Path:
        """The folder to write."""
        return self._check_open().path

    def _check_open(self) -> Draft:
        if self._draft is None:
            raise ValueError("The dataset is finished.")
        return self._draft

    def add(self, batch: Batch | tuple[Any, ...]) -> None:
        """Append rows.

        Parameters
        ----------
        batch : Batch, or tuple (X, y) or (X, y, weight)
            X is a matrix of numbers, sparse or dense.

        Raises
        ------
        TypeError
            For anything else; if X is a frame or a list of dictionaries, which have to be encoded
            first.
        ValueError
            For rows that cannot be stored, with their place.
        """
        self._check_open()
        batch = as_batch(batch, self._n_batches)
        try:
            X = self._matrix(batch.X)
            labels = self._targets.encode(batch.y, X.shape[0])
            weights = _weights(batch.weight, X.shape[0])
        except (ValueError, TypeError) as error:
            raise type(error)(f"Batch {self._n_batches} of the dataset: {error}") from error
        self._width = max(self._width, X.shape[1])
        self._append(X, labels, weights)
        self._n_batches += 1

    def _matrix(self, X: Any) -> sp.csr_matrix:
        if isinstance(X, list) or hasattr(X, "columns") or hasattr(X, "column_names"):
            raise TypeError(
                f"X is a {type(X).__name__}; a dataset holds numbers: encode tables and "
                "dictionaries first, or let polyfm convert do it."
            )
        X = X if sp.issparse(X) else np.atleast_2d(np.asarray(X))
        if X.dtype.kind not in "biuf":
            raise TypeError(f"X is of type {X.dtype.name}, not of numbers.")
        limit = self._given_width
        if limit is not None and X.shape[1] > limit:
            raise ValueError(f"X has {X.shape[1]} columns, more than n_features={limit}.")
        return self._canonical(X)

    def _canonical(self, X: Any) -> sp.csr_matrix:
        dtype = self._settled(X.dtype)
        with np.errstate(over="ignore"):
            X, are_small = examined_csr(X.astype(dtype, copy=False))
        if not are_small and look_at_values(read_only(X.data), np.inf)[1]:
            raise _not_finite(X)
        return X

    def _settled(self, found: np.dtype[Any]) -> np.dtype[Any]:
        """Return the type of the dataset's values, which the first batch decides."""
        natural = np.dtype(min(np.result_type(found, np.float32), np.dtype(np.float64)))
        if self._dtype is None:
            self._dtype = natural
        elif not self._is_told and natural > self._dtype:
            raise ValueError(
                f"X is of type {found.name}, but the dataset of {self._dtype.name}, as its first "
                "batch; say dtype='float64', or 'float32' to have it rounded."
            )
        return self._dtype

    def _append(
        self, X: sp.csr_matrix, labels: NDArray[Any] | None, weights: NDArray[Any] | None
    ) -> None:
        start, n_rows = 0, X.shape[0]
        while start < n_rows:
            shard = self._shard_for(X)
            stop = self._stop(shard, X.indptr, start)
            if stop > start:
                shard.add(_part(X, labels, weights, start, stop))
            self.n_rows += stop - start
            start = stop
            if start < n_rows:
                self._close_shard()

    def _shard_for(self, X: sp.csr_matrix) -> ShardWriter:
        wide = int(X.indices.max(initial=0)) > LARGEST_INT32
        if self._shard is not None and wide and not self._shard.wide:
            self._close_shard()
        if self._shard is None:
            path = self._check_open().folder / _manifest.shard_name(len(self._written))
            self._shard = ShardWriter(path, _code(self._dtype), wide)
        return self._shard

    def _stop(self, shard: ShardWriter, indptr: NDArray[Any], start: int) -> int:
        """Return the row before which a shard is full; an empty shard takes one row at least."""
        room = _MOST_ENTRIES - shard.nnz
        by_entries = int(np.searchsorted(indptr, int(indptr[start]) + room, side="right")) - 1
        stop = min(len(indptr) - 1, start + self._shard_rows - shard.n_rows, by_entries)
        return max(stop, start + (shard.n_rows == 0))

    def _close_shard(self) -> None:
        if self._shard is not None:
            path = self._check_open().folder / _manifest.shard_name(len(self._written))
            entry = self._shard.close()
            self._written.append({"file": path.name, "size": path.stat().st_size, **entry})
            self._shard = None

    def finish(
        self,
        *,
        fields: Any = None,
        feature_names: Sequence[str] | NDArray[Any] | None = None,
        notes: Mapping[str, Any] | None = None,
        attachments: Mapping[str, bytes] | None = None,
    ) -> None:
        """Write the rest and give the folder its name.

        Parameters
        ----------
        fields : array-like of int of shape (n_features,), optional
            The field of each column, -1 for none.
        feature_names : sequence of str of length n_features, optional
            Names of the columns.
        notes : dict of str, optional
            Anything of yours that JSON can hold.
        attachments : dict of str to bytes, optional
            Small files to keep with the rows, such as an encoder.

        Raises
        ------
        ValueError
            For fields or names of another number than the columns.
        OSError
            If the folder cannot be written.
        """
        folder = self._check_open().folder
        self._close_shard()
        content = {
            "dtype": _code(self._dtype),
            "rows": self.n_rows,
            "features": self._width,
            "nnz": sum(shard["nnz"] for shard in self._written),
            "targets": self._targets.kind if self.n_rows else None,
            "labels": self._targets.names,
            "weighted": any(shard["weighted"] for shard in self._written),
            "columns": self._write_columns(fields, feature_names),
            "attachments": {
                name: _write_attachment(folder, name, data)
                for name, data in (attachments or {}).items()
            },
            "notes": dict(notes or {}),
            "shards": self._written,
        }
        _manifest.write_manifest(folder, content)
        self._check_open().publish(replace=self._overwrite)
        self._draft = None

    def _write_columns(self, fields: Any, names: Any) -> dict[str, Any] | None:
        if fields is None and names is None:
            return None
        path = self._check_open().folder / _manifest.COLUMNS
        writer = SectionWriter(path)
        try:
            if fields is not None:
                writer.append("fields", _checked_fields(fields, self._width), "<i8")
            if names is not None:
                _append_names(writer, names, self._width)
            checksum = writer.close(Numbers())
        except BaseException:
            writer.abandon()
            raise
        return {"file": path.name, "size": path.stat().st_size, "checksum": f"{checksum:08x}"}

    def discard(self) -> None:
        """Remove all that was written; nothing is done after :meth:`finish`."""
        if self._draft is None:
            return
        if self._shard is not None:
            self._shard.abandon()
            self._shard = None
        self._draft.discard()
        self._draft = None


def check_place(path: Path, overwrite: bool) -> None:
    """Raise a FileExistsError where a dataset could not, or should not, be put."""
    if not os.path.lexists(path):
        return
    if not overwrite:
        raise FileExistsError(errno.EEXIST, "exists; ask for overwriting", str(path))
    if not path.is_dir() or path.is_symlink():
        raise FileExistsError(errno.EEXIST, "is no dataset, so it is not replaced", str(path))
    foreign = sorted(entry.name for entry in os.scandir(path) if not _manifest.is_own(entry.name))
    if foreign:
        problem = f"is not replaced, as it holds {foreign[0]!r}, which is of no dataset"
        raise FileExistsError(errno.EEXIST, problem, str(path))


def _code(dtype: np.dtype[Any] | None) -> str:
    return "<f8" if dtype == np.float64 else "<f4"


def _not_finite(X: sp.csr_matrix) -> ValueError:
    entry = int(np.argmin(np.isfinite(X.data)))
    row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
    return ValueError(
        f"X has {X.data[entry]} in row {row} of the batch, column {X.indices[entry]}; values must "
        f"be finite in {X.data.dtype.name}."
    )


def _weights(weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    if weight is None:
        return None
    weights = np.asarray(weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"weight has shape {weights.shape}, but the batch has {n_rows} rows.")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise ValueError(
            f"weight has {weights[bad[0]]} in row {bad[0]} of the batch; weights must be finite "
            "and not negative."
        )
    return weights


def _part(
    X: sp.csr_matrix,
    labels: NDArray[Any] | None,
    weights: NDArray[np.float64] | None,
    start: int,
    stop: int,
) -> Part:
    first, last = int(X.indptr[start]), int(X.indptr[stop])
    return Part(
        X.indptr[start : stop + 1] - first,
        X.indices[first:last],
        X.data[first:last],
        None if labels is None else labels[start:stop],
        None if weights is None else weights[start:stop],
    )


def _checked_fields(fields: Any, width: int) -> NDArray[np.int64]:
    found = np.asarray(fields)
    if found.shape != (width,) or found.dtype.kind not in "iu":
        raise ValueError(
            f"fields must be {width} whole numbers, one for each column; got shape {found.shape} "
            f"of {found.dtype.name}."
        )
    if found.min(initial=0) < -1:
        raise ValueError(f"fields must be at least -1 (none), got {found.min()}.")
    return found.astype(np.int64, copy=False)


def _append_names(writer: SectionWriter, names: Any, width: int) -> None:
    if len(names) != width:
        raise ValueError(f"feature_names has {len(names)} names, but there are {width} columns.")
    end = 0
    writer.append("name_ends", np.empty(0, dtype=np.int64), "<i8")
    for start in range(0, width, _NAMES_AT_ONCE):
        texts = [str(name).encode() for name in names[start : start + _NAMES_AT_ONCE]]
        ends = end + np.cumsum([len(text) for text in texts], dtype=np.int64)
        writer.append("name_ends", ends, "<i8")
        writer.append("names", np.frombuffer(b"".join(texts), dtype=np.uint8), "|u1")
        end = int(ends[-1])
    if not width:
        writer.append("names", np.empty(0, dtype=np.uint8), "|u1")


def _write_attachment(folder: Path, name: str, data: bytes) -> dict[str, Any]:
    if not name or not all(letter.isalnum() or letter in "-_." for letter in name):
        raise ValueError(f"an attachment is called by letters, digits, '-', '_', '.': {name!r}.")
    path = folder / _manifest.attachment_name(name)
    stream = open_for_writing(path)
    with stream:
        stream.write(data)
        finish(stream)
    return {"file": path.name, "size": len(data), "checksum": f"{zlib.crc32(data):08x}"}
