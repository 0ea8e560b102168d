"""Tables as streams of batches, encoded as they come."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polyfm.cli._files import STDIN
from polyfm.cli._progress import Progress
from polyfm.cli._reading import BATCH_ROWS, Reading, size_of
from polyfm.data import Batch, HashingEncoder, iter_csv, iter_parquet
from polyfm.data.frames import read_table

_COLUMN_BITS = 22


class Encoding(Protocol):
    """Turns the tables of batches into matrices."""

    encoder: Any
    """None before the first batch."""
    is_counted: bool
    """Whether all batches have to be learnt before the first can be encoded."""

    def learn(self, rows: Any) -> None:
        """Learn from a batch."""

    def encode(self, rows: Any) -> Any:
        """Return a matrix."""


class Counting:
    """Gives each value a column, by a hash of 22 bits less those that tell the fields apart."""

    is_counted = False

    def __init__(self) -> None:
        self.encoder: Any = None

    def learn(self, rows: Any) -> None:
        """Count the distinct values."""
        if self.encoder is None:
            columns = read_table(rows).columns
            bits = _COLUMN_BITS - max(len(columns) - 1, 1).bit_length()
            numbers = {column.name: "category" for column in columns if column.kind == "number"}
            self.encoder = HashingEncoder(
                n_bits=max(bits, 1), per_field=True, numeric=numbers, missing="ignore"
            )
        self.encoder.partial_fit(rows)

    def encode(self, rows: Any) -> Any:
        """Return a matrix whose fields are the columns of the table."""
        self.learn(rows)
        return self.encoder.transform(rows)


class TableReading(Reading):
    """Rows of CSV or Parquet files.

    Parameters
    ----------
    args : argparse.Namespace
        With ``target`` and ``separator``.
    names : sequence of str
        The files.
    layout : {"csv", "parquet"}
        Their format.
    encoding : Encoding
        Makes matrices of the tables.
    """

    def __init__(
        self, args: argparse.Namespace, names: Sequence[str], layout: str, encoding: Encoding
    ) -> None:
        self.format, self._args, self._names, self._encoding = layout, args, list(names), encoding
        self.n_bytes, self.is_repeatable = size_of(names), STDIN not in names
        if encoding.is_counted and not self.is_repeatable:
            raise ValueError("counting values takes a pass more, and standard input is read once.")

    def batches(self, progress: Progress) -> Iterator[Batch]:
        """Read, and encode."""
        if self._encoding.is_counted:
            for batch in self._open(progress):
                self._encoding.learn(batch.X)
                progress.add_rows(batch.n_rows)
            progress.restart()
        for batch in self._open(progress):
            yield batch._replace(X=self._encoding.encode(batch.X))
            progress.add_rows(batch.n_rows)

    def _open(self, progress: Progress) -> Iterator[Batch]:
        common: dict[str, Any] = {
            "target": self._args.target, "batch_rows": BATCH_ROWS, "progress": progress.add_bytes,
        }  # fmt: skip
        if self.format == "parquet":
            return iter_parquet(self._names, **common)
        return iter_csv(self._names, separator=self._separator, **common)

    @property
    def _separator(self) -> str:
        if self._args.separator is not None:
            return str(self._args.separator)
        return "\t" if ".tsv" in Path(self._names[0]).suffixes else ","

    @property
    def fields(self) -> NDArray[np.int64] | None:
        """The field of each column, where the encoder tells it."""
        encoder = self._encoding.encoder
        fields: NDArray[np.int64] | None = None if encoder is None else encoder.fields_
        return fields

    @property
    def field_names(self) -> list[str] | None:
        """Names of the columns of the table."""
        encoder = self._encoding.encoder
        return None if encoder is None else list(encoder.field_names_)

    @property
    def distinct(self) -> NDArray[np.int64] | None:
        """Estimates of the different values of each column of the table."""
        encoder = self._encoding.encoder
        if not isinstance(encoder, HashingEncoder):
            return None
        return np.asarray(np.rint(encoder.n_distinct_), dtype=np.int64)

    @property
    def notes(self) -> dict[str, Any]:
        """Format and target."""
        return {"format": self.format, "target": self._args.target}

    def kept(self) -> dict[str, Any]:
        """Return the fields and names of the columns, and the encoder."""
        encoder = self._encoding.encoder
        hashed = isinstance(encoder, HashingEncoder)
        return {
            "fields": encoder.fields_,
            "feature_names": None if hashed else encoder.get_feature_names_out(),
            "attachments": {"encoder.json": encoder.to_json().encode()},
        }
