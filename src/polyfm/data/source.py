"""Rows that do not lie in memory: where they are, and how to get them batch by batch."""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from polyfm.data import _manifest
from polyfm.data.batches import Batch
from polyfm.data.dataset import Dataset
from polyfm.data.encoding import encode
from polyfm.data.lines import TextFormatError, starts_at_zero
from polyfm.data.table_streams import iter_csv, iter_parquet
from polyfm.data.text import iter_libffm, iter_svmlight

__all__ = ["Batches", "Source", "as_source", "is_source"]

BATCH_ROWS = 65_536
ENDINGS = {
    "svmlight": (".svm", ".svmlight", ".libsvm"),
    "libffm": (".ffm", ".libffm"),
    "vw": (".vw",),
    "csv": (".csv", ".tsv"),
    "parquet": (".parquet", ".pq"),
}
_LOOK = 1 << 16
"""Bytes of either end of a file that tell it from others."""
COMPRESSED = (".gz", ".zst", ".zstd")


class Source:
    """Files of rows, and how to read them.

    Parameters
    ----------
    path : path, address, binary file object, or list of these
        svmlight, libffm, Vowpal Wabbit text, CSV or Parquet, compressed or not; files of a list
        are one file. Glob patterns are taken; "-" is standard input.
    layout : {"auto", "svmlight", "libffm", "vw", "csv", "parquet"}, default="auto"
        The format; "auto" goes by the ending.
    batch_rows : int, default=65536
        Rows that are read, and learnt, at a time.
    n_features : int, optional
        Number of columns, where it is known before all rows are read.
    zero_based : bool or "auto", default="auto"
        Whether the first column of a svmlight or libffm file is written 0 or 1. "auto" takes it
        for 1 until the first batch, or in a file that is read more than once any batch, holds a 0.
    target : str, optional
        The column of a table to predict.
    separator : str, optional
        Between the cells of a CSV file; by the ending if None.
    types : dict of str to {"number", "text"}, optional
        What columns of a CSV file hold, where its first 4 MB do not tell.
    encoder : transformer, optional
        A fitted encoder that turns a table into a matrix.
    n_bits : int, default=18
        Vowpal Wabbit text is hashed to ``2**n_bits`` columns.
    on_error : {"raise", "skip"}, default="raise"
        What to do with a line that cannot be read.

    Raises
    ------
    ValueError
        If the format cannot be told.

    Examples
    --------
    >>> import polyfm
    >>> source = polyfm.data.Source("clicks-*.svm.gz", n_features=2**20)
    >>> source.layout
    'svmlight'
    >>> polyfm.FMClassifier(max_iter=1).fit(source)  # doctest: +SKIP
    """

    is_repeatable = reads_ahead = True

    def __init__(
        self,
        path: Any,
        *,
        layout: str = "auto",
        batch_rows: int = BATCH_ROWS,
        n_features: int | None = None,
        zero_based: bool | str = "auto",
        target: str | None = None,
        separator: str | None = None,
        types: Mapping[str, str] | None = None,
        encoder: Any = None,
        n_bits: int = 18,
        on_error: str = "raise",
    ) -> None:
        if isinstance(path, list | tuple) and not path:
            raise ValueError("no file given: the list of paths is empty.")
        if zero_based not in (True, False, "auto"):
            raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}.")
        self.path, self.layout = path, layout_of(path, layout)
        self.batch_rows, self.n_features = int(batch_rows), n_features
        self.zero_based, self.target, self.separator = zero_based, target, separator
        self.types = types
        self.encoder, self.n_bits, self.on_error = encoder, n_bits, on_error
        if self.layout == "vw":
            self.n_features = 2**n_bits
        self.is_repeatable = not any(map(is_pipe, self._paths))
        if self.layout in ("csv", "parquet") and target is None:
            raise ValueError(f"{self.name} is a table: name the column to predict by target.")

    @property
    def _paths(self) -> list[Any]:
        return list(self.path) if isinstance(self.path, list | tuple) else [self.path]

    @property
    def name(self) -> str:
        """What to call it in messages."""
        first = self.path[0] if isinstance(self.path, list | tuple) else self.path
        return str(getattr(first, "name", first))

    def batches(
        self, skip: int = 0, progress: Callable[[int], None] | None = None
    ) -> Iterator[Batch]:
        """Read the rows after the first ``skip``."""
        if self.layout in ("csv", "parquet"):
            yield from self._of_table(skip, progress)
        elif self.layout == "vw":
            from polyfm.data.vw import iter_vw

            options = {**self._common(), "n_bits": self.n_bits, "progress": progress}
            yield from iter_vw(self.path, skip=skip, **options)
        else:
            yield from self._of_numbers(skip, progress)

    def _common(self) -> dict[str, Any]:
        return {"batch_rows": self.batch_rows, "on_error": self.on_error}

    def _of_numbers(self, skip: int, progress: Any) -> Iterator[Batch]:
        read = iter_svmlight if self.layout == "svmlight" else iter_libffm
        options = {**self._common(), "n_features": self.n_features, "progress": progress}
        if self.on_error == "skip" and self.zero_based == "auto":
            self.zero_based = self._holds_zero(read)
        base = self.zero_based is True
        batches = read(self.path, skip=skip, zero_based=base, **options)
        try:
            first = next(batches, None)
        except TextFormatError as error:
            if not starts_at_zero(error) or self.zero_based != "auto" or not self.is_repeatable:
                raise
            self.zero_based = True
            yield from self._of_numbers(skip, progress)
            return
        if first is not None:
            yield first
            yield from batches

    def _holds_zero(self, read: Any) -> bool:
        """Look whether a file that bad lines are left out of holds an index 0."""
        if not self.is_repeatable:
            raise ValueError(
                f"{self.name} is read once: with on_error='skip' say zero_based=True or False."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            batches = read(self.path, zero_based=True, on_error="skip")
            return any((batch.X.indices == 0).any() for batch in batches)

    def starts_like(self, zero_based: bool | None) -> None:
        """Count columns from where those of earlier rows were, unless it is said."""
        if self.zero_based == "auto" and self.has_base and zero_based is not None:
            self.zero_based = zero_based

    @property
    def has_base(self) -> bool:
        """Whether the files number their columns."""
        return self.layout in ("svmlight", "libffm")

    def _of_table(self, skip: int, progress: Any) -> Iterator[Batch]:
        options: dict[str, Any] = {
            "target": self.target, "batch_rows": self.batch_rows, "progress": progress,
            "columns": list(getattr(self.encoder, "feature_names_in_", ())) or None,
        }  # fmt: skip
        if self.layout == "parquet":
            tables = iter_parquet(self.path, **options)
        else:
            separator = self.separator or separator_by_ending(self.name)
            options |= {"types": self.types, "on_error": self.on_error}
            tables = iter_csv(self.path, separator=separator, **options)
        rest = after(tables, skip)
        yield from rest if self.encoder is None else encode(rest, self.encoder)

    def identity(self) -> dict[str, Any]:
        """Return what has to be the same when a training goes on."""
        options = ("layout", "batch_rows", "n_features", "target", "on_error", "n_bits")
        return {
            "files": [[str(path), *_look_of(path)] for path in self._paths],
            "encoder": zlib.crc32(self.encoder.to_json().encode()) if self.encoder else 0,
            **{name: getattr(self, name) for name in options},
        }

    def __repr__(self) -> str:
        return f"Source({self.path!r}, layout={self.layout!r})"


class Batches:
    """Anything that yields batches, once.

    Parameters
    ----------
    items : iterable of Batch, (X, y) or (X, y, weight)
    """

    is_repeatable = False
    reads_ahead = True
    """Whether another thread may ask for batches, which then cannot be interrupted as it waits."""
    has_base = False
    n_features: int | None = None
    zero_based = False
    name = "the stream"

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = items

    def batches(
        self, skip: int = 0, progress: Callable[[int], None] | None = None
    ) -> Iterator[Batch]:
        """Yield what comes after the first ``skip`` rows."""
        yield from after(map(as_batch, self._items), skip)

    def identity(self) -> dict[str, Any]:
        """Return what has to be the same when a training goes on: nothing that can be known."""
        return {}


def _look_of(path: Any) -> list[int]:
    """Return size and checksums of both ends of a file, -1 for what is none."""
    if not os.path.isfile(str(path)):
        return [-1]
    size = os.path.getsize(path)
    with open(path, "rb") as stream:
        first = zlib.crc32(stream.read(_LOOK))
        stream.seek(max(size - _LOOK, 0))
        return [size, first, zlib.crc32(stream.read(_LOOK))]


def after(batches: Iterable[Batch], skip: int) -> Iterator[Batch]:
    """Yield batches without the first ``skip`` rows, and without those that are empty then."""
    for batch in batches:
        rest = batch.without(skip) if skip else batch
        skip = max(skip - batch.n_rows, 0)
        if rest.n_rows:
            yield rest


def is_pipe(path: Any) -> bool:
    """Say whether what is read from there is gone then."""
    if hasattr(path, "read") or str(path) == "-":
        return True
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def as_batch(item: Any) -> Batch:
    """Return a batch of what a stream has yielded.

    Raises
    ------
    ValueError
        If it is none.
    """
    if isinstance(item, Batch):
        return item
    if not isinstance(item, tuple | list) or len(item) not in (2, 3):
        raise ValueError(
            "A stream yields (X, y) or (X, y, weight), got "
            f"{type(item).__name__}{f' of {len(item)}' if hasattr(item, '__len__') else ''}."
        )
    X, y, *weight = item
    X = X if hasattr(X, "shape") or isinstance(X, list) else list(X)
    batch = Batch(X, np.asarray(y), np.asarray(weight[0], dtype=np.float64) if weight else None)
    if batch.n_rows != len(batch.targets):
        raise ValueError(
            f"A batch of the stream has {batch.n_rows} rows but {len(batch.targets)} targets."
        )
    return batch


def is_source(X: Any) -> bool:
    """Say whether rows have to be fetched from where ``X`` says."""
    if isinstance(X, Dataset | Source | Batches | str | os.PathLike):
        return True
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(isinstance(path, str | os.PathLike) for path in X)
    return hasattr(X, "__next__")


def as_source(X: Any) -> Dataset | Source | Batches:
    """Return where rows come from.

    Raises
    ------
    ValueError, OSError
        If a path leads to no rows.
    """
    if isinstance(X, Dataset | Source | Batches):
        return X
    if isinstance(X, str | os.PathLike) and (Path(X) / _manifest.NAME).is_file():
        return Dataset(X)
    if isinstance(X, str | os.PathLike | list | tuple):
        return Source(X)
    return Batches(X)


def layout_of(path: Any, layout: str = "auto") -> str:
    """Return the format of files, by the ending of the first.

    Raises
    ------
    ValueError
        If it cannot be told.
    """
    if layout != "auto":
        if layout not in ENDINGS:
            raise ValueError(f"layout must be 'auto' or one of {list(ENDINGS)}, got {layout!r}.")
        return layout
    first = path[0] if isinstance(path, list | tuple) else path
    name = str(getattr(first, "name", first))
    known = layout_by_ending(name)
    if known is not None:
        return known
    if os.path.isdir(str(first)):
        raise ValueError(f"{first} is a folder, but no dataset: name its files, or a pattern.")
    raise ValueError(f"{first}: the ending tells no format; give layout, one of {list(ENDINGS)}.")


def layout_by_ending(name: str) -> str | None:
    """Return the format that the ending of a name tells, whether the file is packed or not."""
    name = name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    return next((known for known, ends in ENDINGS.items() if name.endswith(ends)), None)


def separator_by_ending(name: str) -> str:
    """Return what stands between the cells of a CSV file: a tab in ``.tsv`` files, or a comma."""
    return "\t" if ".tsv" in Path(name.lower()).suffixes else ","
