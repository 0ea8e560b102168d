"""Tables as streams of batches, encoded as they come."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polyfm.cli._files import on_disk
from polyfm.cli._progress import Progress
from polyfm.cli._reading import BATCH_ROWS, Reading, size_of, unchanged
from polyfm.data import (
    Batch,
    HashingEncoder,
    TextFormatError,
    iter_csv,
    iter_parquet,
    load_csv,
)
from polyfm.data._arrow import pyarrow_or_none
from polyfm.data.frames import read_table
from polyfm.data.source import is_pipe, separator_by_ending
from polyfm.online.streams import iter_events

_COLUMN_BITS = 22
EVENT_ROWS = 8_192


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
    columns : list of str, optional
        The columns that are needed besides the target; all if None.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        names: Sequence[str],
        layout: str,
        encoding: Encoding,
        columns: list[str] | None = None,
    ) -> None:
        self.columns = columns
        self.format, self._args, self._names, self._encoding = layout, args, list(names), encoding
        self.n_bytes, self.is_repeatable = size_of(names), not any(map(is_pipe, names))
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
            encoded = batch._replace(X=self._encoding.encode(batch.X))
            yield encoded
            progress.add_rows(encoded.n_rows)

    def _open(self, progress: Progress) -> Iterator[Batch]:
        common: dict[str, Any] = {
            "target": self._args.target, "batch_rows": BATCH_ROWS, "progress": progress.add_bytes,
            "columns": self.columns,
        }  # fmt: skip
        if self.format == "parquet":
            return unchanged(self._names, iter_parquet(self._names, **common))
        separator = separator_of(self._args.separator, self._names[0])
        if pyarrow_or_none() is None:
            return _whole(self._names, self._args.target, separator)
        on_error, types = getattr(self._args, "on_error", "raise"), types_of(self._args)
        batches = iter_csv(
            self._names, separator=separator, types=types, on_error=on_error, **common
        )
        return unchanged(self._names, in_flags(batches))

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


class EventReading(Reading):
    """Rows of tables as names and values, for a model that hashes them.

    Parameters
    ----------
    args : argparse.Namespace
        With ``separator``.
    names : sequence of str
        The files.
    layout : {"csv", "parquet"}
        Their format.
    target : str or None
        The column of the target, which is no feature.
    labels : bool
        Whether to read it.
    numbers : list of str or None
        The columns of numbers of a model from ``polyfm online``, which takes other cells of CSV
        files for text. If None, cells that look like numbers are numbers.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        names: Sequence[str],
        layout: str,
        target: str | None,
        labels: bool,
        numbers: list[str] | None,
    ) -> None:
        self.format, self._args, self._names = layout, args, list(names)
        self._target, self._labels, self._numbers = target, labels, numbers
        self.n_bytes, self.is_repeatable = size_of(names), not any(map(is_pipe, names))

    def batches(self, progress: Progress) -> Iterator[Batch]:
        """Read the cells."""
        if self._numbers is None:
            yield from self._typed().batches(progress)
            return
        separator = separator_of(self._args.separator, self._names[0])
        events = iter_events(
            self._names, EVENT_ROWS, self.format, target=self._target, labelled=self._labels,
            numbers=self._numbers, separator=separator, progress=progress.add_bytes,
        )  # fmt: skip
        for batch in unchanged(self._names, events):
            yield batch
            progress.add_rows(batch.n_rows)

    def _typed(self) -> TableReading:
        options = argparse.Namespace(**vars(self._args))
        options.target = self._target if self._labels else None
        as_it_is = Known(_WithoutTarget(self._target))
        return TableReading(options, self._names, self.format, as_it_is)


class _WithoutTarget:
    """Takes tables as they are, without the target."""

    def __init__(self, target: str | None) -> None:
        self._target = target

    def transform(self, rows: Any) -> Any:
        """Return the table."""
        has_target = self._target in getattr(rows, "column_names", ())
        return rows.drop_columns([self._target]) if has_target else rows


class Known:
    """An encoder that has learnt what it needs.

    Parameters
    ----------
    encoder : transformer
        The encoder.
    """

    is_counted = False

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder

    def learn(self, rows: Any) -> None:
        """Learn nothing."""

    def encode(self, rows: Any) -> Any:
        """Return a matrix."""
        return self.encoder.transform(rows)


def separator_of(given: str | None, name: str) -> str:
    """Return what stands between the cells of a CSV file: as said, or by its ending.

    Raises
    ------
    ValueError
        If it is not one character.
    """
    if given is not None and len(given) != 1:
        raise ValueError(f"--separator must be one character, got {given!r}.")
    return given or separator_by_ending(name)


def types_of(args: argparse.Namespace) -> dict[str, str]:
    """Return what columns of CSV files hold, as the flags say."""
    return {
        **dict.fromkeys(args.number_columns, "number"),
        **dict.fromkeys(args.text_columns, "text"),
    }


def in_flags(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yield batches; where an error tells of ``types``, name the flag instead."""
    try:
        yield from batches
    except TextFormatError as error:
        told = re.sub(r"say types=\{'(.*?)': '(\w+)'\}", r"say --\2 '\1'", str(error))
        raise (error if told == str(error) else ValueError(told)) from None


def _whole(names: Sequence[str], target: str | None, separator: str) -> Iterator[Batch]:
    """Read CSV files one by one, for want of pyarrow, which reads them in batches."""
    for name in names:
        with on_disk(name) as path:
            rows, y, _ = load_csv(path, target=target, separator=separator)
            yield Batch(rows, y)
