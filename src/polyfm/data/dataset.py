"""Rows in a folder that is mapped into memory instead of being read."""

from __future__ import annotations

import os
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polyfm.data import _manifest
from polyfm.data._arguments import whole_number
from polyfm.data._opening import file_of, open_files
from polyfm.data._sections import DatasetError, SectionFile
from polyfm.data._shards import Cut, gathered, matrix_of, no_rows
from polyfm.data._targets import decoded
from polyfm.data._writing import SHARD_ROWS, DatasetWriter
from polyfm.data.batches import Batch, checked_batches

__all__ = ["Dataset", "DatasetError", "DatasetWriter"]


class Dataset:
    """Labelled rows in files that are mapped into memory: opened at once, whatever their size.

    A dataset is a folder, written once by :meth:`write`, :class:`DatasetWriter` or ``polyfm
    convert``, and never changed afterwards. Its rows are those of a CSR matrix in canonical form:
    column numbers sorted in each row, none twice, no stored zeros. Opening it looks at names,
    sizes and headers; the rows come from the disk as they are used, and the operating system keeps
    them in its cache for as long as there is room. Processes that open the same dataset share it.

    Parameters
    ----------
    path : path
        The folder.

    Attributes
    ----------
    path : Path
        The folder.
    n_rows, n_features, nnz : int
        Numbers of rows, columns and entries.
    dtype : numpy.dtype
        Of the values, float32 or float64.
    shards : tuple
        The files of rows, each with ``n_rows``, ``nnz``, ``path`` and ``all_ones``.
    has_targets, has_weights : bool
        Whether the rows have targets, and weights other than 1.
    label_names : ndarray of str or None
        The labels, where targets are texts.
    notes : dict
        What was noted when it was written.
    fingerprint : str
        The same for datasets of the same rows.

    Raises
    ------
    DatasetError
        A ValueError: if the folder is no dataset, is damaged or comes from a newer polyfm.
    OSError
        If a file cannot be read.

    Notes
    -----
    An object of this class is pickled as its path. :meth:`verify` reads every byte; opening does
    not. What a disk has changed is found by ``verify``, and where rows come out that cannot have
    been written, when they are taken.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from polyfm.data import Dataset
    >>> path = os.path.join(tempfile.mkdtemp(), "clicks.data")
    >>> dataset = Dataset.write(path, [(np.eye(3), np.array([1, 0, 1]))])
    >>> dataset.shape
    (3, 3)
    >>> [batch.y.tolist() for batch in dataset.iter_batches(2)]
    [[1, 0], [1]]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))
        content, self.shards, self._columns = open_files(self.path)
        self.n_rows, self.n_features = int(content["rows"]), int(content["features"])
        self.nnz, self.dtype = int(content["nnz"]), np.dtype(content["dtype"])
        self.notes: dict[str, Any] = content["notes"]
        self._kind: str | None = content["targets"]
        labels = content["labels"]
        self.label_names: NDArray[Any] | None = None if labels is None else np.array(labels, str)
        self.has_weights = bool(content["weighted"])
        self.fingerprint = _manifest.fingerprint(content)
        self._attachments: dict[str, dict[str, Any]] = content["attachments"]
        self._starts = [0, *accumulate(shard.n_rows for shard in self.shards)]
        self._columns_are_checked = False

    @classmethod
    def write(
        cls,
        path: str | os.PathLike[str],
        batches: Iterable[Any],
        *,
        fields: Any = None,
        feature_names: Sequence[str] | NDArray[Any] | None = None,
        n_features: int | None = None,
        shard_rows: int = SHARD_ROWS,
        dtype: DTypeLike | None = None,
        overwrite: bool = False,
        notes: Mapping[str, Any] | None = None,
        attachments: Mapping[str, bytes] | None = None,
    ) -> Dataset:
        """Write a dataset, in memory of one batch.

        Parameters
        ----------
        path : path
            The folder to write.
        batches : iterable of Batch, (X, y) or (X, y, weight)
            Rows; X is a matrix of numbers, and the widest gives the number of columns. Targets are
            numbers or texts of one kind throughout, or None.
        fields : array-like of int of shape (n_features,), optional
            The field of each column, -1 for none.
        feature_names : sequence of str of length n_features, optional
            Names of the columns.
        n_features : int, optional
            Number of columns, if more than the widest batch has; a wider batch is an error.
        shard_rows : int, default=4194304
            Rows of a shard.
        dtype : dtype, optional
            Of the values, float32 or float64. By default that of the first batch.
        overwrite : bool, default=False
            Whether to replace a dataset of that name. It stays until the new one is whole.
        notes : dict of str, optional
            Anything of yours that JSON can hold.
        attachments : dict of str to bytes, optional
            Small files to keep with the rows, such as an encoder; see :meth:`attachment`.

        Returns
        -------
        Dataset
            The dataset, opened.

        Raises
        ------
        FileExistsError
            If there is something of that name, unless it is a dataset and ``overwrite`` is true.
        TypeError
            If ``batches`` is one batch or a matrix; if X is a frame or a list of dictionaries,
            which have to be encoded first.
        ValueError
            For rows that cannot be stored, with their place.
        OSError
            If the folder cannot be written. All that was written is removed then.
        """
        with DatasetWriter(
            path, n_features=n_features, shard_rows=shard_rows, dtype=dtype, overwrite=overwrite
        ) as writer:
            for batch in checked_batches(batches):
                writer.add(batch)
            writer.finish(
                fields=fields, feature_names=feature_names, notes=notes, attachments=attachments
            )
        return cls(path)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.n_rows, self.n_features

    @property
    def has_targets(self) -> bool:
        """Whether the rows have targets."""
        return self._kind is not None

    @property
    def n_bytes(self) -> int:
        """Size of all mapped files."""
        columns = 0 if self._columns is None else self._columns.size
        return columns + sum(shard.file.size for shard in self.shards)

    @property
    def fields(self) -> NDArray[np.int64] | None:
        """The field of each column, -1 for none; None if there are no fields."""
        columns = self._checked_columns()
        return columns.section("fields", "<i8") if columns and "fields" in columns else None

    def _checked_columns(self) -> SectionFile | None:
        """Return the file about columns; the first time with a look at every byte."""
        if self._columns is not None and not self._columns_are_checked:
            self._columns.verify()
            self._columns_are_checked = True
        return self._columns

    @cached_property
    def feature_names(self) -> NDArray[Any] | None:
        """Names of the columns, an object array; None if they have none."""
        columns = self._checked_columns()
        if columns is None or "names" not in columns:
            return None
        text = columns.section("names", "|u1").tobytes()
        ends = columns.section("name_ends", "<i8").tolist()
        names = np.empty(len(ends), dtype=object)
        names[:] = [text[a:b].decode() for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        return names

    @property
    def targets(self) -> NDArray[Any] | None:
        """The targets of all rows; None if there are none."""
        if self._kind is None:
            return None
        parts = []
        for shard in self.shards:
            if shard.labels is not None:
                shard.check_labels(shard.labels, 0)
                parts.append(shard.labels)
        return self._decoded(_concatenated(parts))

    def _decoded(self, stored: NDArray[Any]) -> NDArray[Any]:
        return decoded(stored, str(self._kind), self.label_names)

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """The weights of all rows; None if all are 1."""
        if not self.has_weights:
            return None
        parts = []
        for shard in self.shards:
            if shard.weights is not None:
                shard.check_weights(shard.weights, 0)
            parts.append(np.ones(shard.n_rows) if shard.weights is None else shard.weights)
        return _concatenated(parts)

    def rows(self, start: int, stop: int) -> Batch:
        """Return rows next to each other.

        Parameters
        ----------
        start, stop : int
            From row ``start`` to before row ``stop``.

        Returns
        -------
        Batch
            A CSR matrix, targets and weights. Within one shard its entries are read-only views of
            the files; rows of several shards are copied together.

        Raises
        ------
        IndexError
            For rows that do not exist.
        DatasetError
            If the shard turns out to be damaged.
        """
        return self.take([(start, stop)])

    def _batch(self, cuts: list[Cut]) -> Batch:
        if not cuts:
            part = no_rows(self.dtype, self.has_targets)
        else:
            part = cuts[0].part(self.dtype) if len(cuts) == 1 else gathered(cuts, self.dtype)
        y = None if part.labels is None else self._decoded(part.labels)
        return Batch(matrix_of(part, self.n_features), y, part.weights)

    def _cuts(self, start: int, stop: int) -> Iterator[Cut]:
        """Yield rows next to each other, those of each shard by themselves."""
        for k in range(bisect_right(self._starts, start) - 1, len(self.shards)):
            before = self._starts[k]
            if stop <= before:
                return
            a, b = max(start - before, 0), min(stop - before, self.shards[k].n_rows)
            if a < b:
                yield self.shards[k].cut(a, b)

    def take(self, ranges: Iterable[tuple[int, int]]) -> Batch:
        """Return the rows of several ranges, one range after the other.

        Parameters
        ----------
        ranges : iterable of (int, int)
            Each from a row to before another, as for :meth:`rows`.

        Returns
        -------
        Batch
            Copies, unless there is one range within one shard.
        """
        cuts: list[Cut] = []
        for start, stop in ranges:
            if not 0 <= start <= stop <= self.n_rows:
                raise IndexError(f"rows {start} to {stop} of a dataset of {self.n_rows} rows.")
            cuts += self._cuts(start, stop)
        return self._batch(cuts)

    def iter_batches(self, batch_rows: int, start: int = 0) -> Iterator[Batch]:
        """Go through the rows in their order.

        Parameters
        ----------
        batch_rows : int
            Rows of a batch; the last may have fewer.
        start : int, default=0
            The first row.

        Yields
        ------
        Batch
            As :meth:`rows` gives it.

        Raises
        ------
        ValueError
            If ``batch_rows`` is not positive, or ``start`` is negative.
        """
        batch_rows, start = (
            whole_number("batch_rows", batch_rows, 1),
            whole_number("start", start, 0),
        )
        return self._iter_batches(batch_rows, start)

    def _iter_batches(self, batch_rows: int, start: int) -> Iterator[Batch]:
        for first in range(start, self.n_rows, batch_rows):
            yield self.rows(first, min(first + batch_rows, self.n_rows))

    @property
    def attachments(self) -> tuple[str, ...]:
        """Names of the files that are kept with the rows."""
        return tuple(self._attachments)

    def attachment(self, name: str) -> bytes:
        """Return the content of a file that is kept with the rows.

        Raises
        ------
        KeyError
            If there is none of that name.
        DatasetError
            If it is damaged.
        """
        entry = self._attachments[name]
        path = file_of(self.path, entry["file"])
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise DatasetError(path, "is gone; write the dataset again.") from None
        if len(data) != entry["size"] or f"{zlib.crc32(data):08x}" != entry["checksum"]:
            raise DatasetError(path, "is damaged; write the dataset again.")
        return data

    def verify(self) -> None:
        """Read every byte: checksums, and that rows are in canonical form.

        Raises
        ------
        DatasetError
            Naming the file that is damaged.
        """
        for shard in self.shards:
            shard.verify()
        if self._columns is not None:
            self._columns.verify()
        for name in self.attachments:
            self.attachment(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self.path),)

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        ones = ", all 1" if all(shard.all_ones for shard in self.shards) else ""
        fields = self.fields
        words = [
            f"{self.n_rows:,} rows x {self.n_features:,} columns",
            f"{self.nnz:,} entries ({self.dtype.name}{ones})",
            "no targets" if self._kind is None else "targets",
            f"{len(self.label_names)} labels" if self.label_names is not None else "",
            "weights" if self.has_weights else "",
            "" if fields is None else f"{int(fields.max(initial=-1)) + 1} fields",
            f"{len(self.shards)} shard{'s' * (len(self.shards) != 1)}",
            f"{self.n_bytes / 1e6:,.1f} MB",
        ]
        return f"Dataset({str(self.path)!r}: {', '.join(filter(None, words))})"


def _concatenated(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
