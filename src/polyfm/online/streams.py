"""Streams: labelled rows in batches, from arrays, from files, or from anything that yields them."""

from __future__ import annotations

import csv
import io
import itertools
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.data._sources import Progress, StrPath, open_sources
from polyfm.data.batches import Batch
from polyfm.data.dataset import Dataset
from polyfm.data.lines import TextFormatError
from polyfm.data.source import after, as_batch, layout_of, separator_by_ending
from polyfm.data.table_streams import iter_parquet
from polyfm.data.text import iter_libffm, iter_svmlight
from polyfm.data.vw import iter_vw


def iter_batches(
    stream: Any,
    batch_size: int = 1000,
    *,
    target: str | None = None,
    numbers: Collection[str] = (),
    layout: str = "auto",
    separator: str | None = None,
    zero_based: bool = False,
    skip: int = 0,
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """Cut a stream into batches.

    Parameters
    ----------
    stream : path, Dataset, tuple of arrays, or iterable of batches
        A svmlight, libffm, Vowpal Wabbit, CSV or Parquet file, read piece by piece; a
        :class:`polyfm.data.Dataset`; rows (X, y) or (X, y, weight) at once; or anything that
        yields such batches, which are then taken as they are.
    batch_size : int, default=1000
        Rows of a batch.
    target : str, optional
        The column of a table to predict.
    numbers : collection of str, default=()
        Columns of a CSV file that are numbers. All other cells are categories, ``name=cell``; an
        empty cell is nothing.
    layout : {"auto", "svmlight", "libffm", "vw", "csv", "parquet"}, default="auto"
        Format of a file; "auto" goes by its ending.
    separator : str, optional
        Between the cells of a CSV file; a comma, or a tab for ``.tsv``, if None.
    zero_based : bool, default=False
        Whether the first column of a svmlight or libffm file is written 0 or 1.
    skip : int, default=0
        Rows to leave out at the start.
    progress : callable, optional
        Called with the number of bytes of a file read since the last call.

    Yields
    ------
    Batch
        Rows of tables as dictionaries, which estimators with ``max_features`` hash.

    Raises
    ------
    ValueError
        For a file that cannot be read, with the line, or a batch that is none.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
    if isinstance(stream, str | os.PathLike):
        yield from _from_file(
            Path(stream), batch_size, target, numbers, layout, separator, zero_based, skip, progress
        )
    elif isinstance(stream, Dataset):
        yield from stream.iter_batches(batch_size, skip)
    elif isinstance(stream, tuple):
        yield from _from_arrays(as_batch(stream), batch_size, skip)
    else:
        yield from after(map(as_batch, stream), skip)


def _from_arrays(rows: Batch, batch_size: int, skip: int) -> Iterator[Batch]:
    X = rows.X.tocsr() if hasattr(rows.X, "tocsr") else rows.X
    take = X.iloc if hasattr(X, "iloc") else X
    for start in range(skip, rows.n_rows, batch_size):
        part = slice(start, start + batch_size)
        weight = None if rows.weight is None else rows.weight[part]
        yield Batch(take[part], rows.targets[part], weight)


def _from_file(
    path: Path,
    batch_size: int,
    target: str | None,
    numbers: Collection[str],
    layout: str,
    separator: str | None,
    zero_based: bool,
    skip: int,
    progress: Progress | None,
) -> Iterator[Batch]:
    layout = layout_of(path, layout)
    common: dict[str, Any] = {
        "batch_rows": batch_size, "dtype": np.float64, "skip": skip, "progress": progress,
    }  # fmt: skip
    if layout == "vw":
        yield from iter_vw(path, **common)
        return
    if layout in ("svmlight", "libffm"):
        read = iter_svmlight if layout == "svmlight" else iter_libffm
        yield from read(path, zero_based=zero_based, **common)
        return
    if target is None:
        raise ValueError(f"{path} is a table: name the column to predict by target.")
    yield from iter_events(
        [path], batch_size, layout, target=target, numbers=numbers, separator=separator, skip=skip,
        progress=progress,
    )  # fmt: skip


def iter_events(
    paths: Sequence[StrPath],
    batch_size: int,
    layout: str,
    *,
    target: str | None = None,
    labelled: bool = True,
    numbers: Collection[str] = (),
    separator: str | None = None,
    skip: int = 0,
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """Read tables as rows that are dictionaries.

    Parameters
    ----------
    paths : sequence of path
        The files, "-" for standard input.
    batch_size : int
        Rows of a batch.
    layout : {"csv", "parquet"}
        Their format.
    target : str, optional
        The column of the targets.
    labelled : bool, default=True
        Whether that is to be read; if not it is left out, and may be absent.
    numbers, separator, skip
        As for :func:`iter_batches`.
    progress : callable, optional
        Called with the number of bytes read since the last call.

    Yields
    ------
    Batch
        The rows.
    """
    if layout == "parquet":
        rows = _parquet_rows(paths, batch_size, target if labelled else None, progress)
    else:
        separator = separator or separator_by_ending(str(paths[0]))
        wanted = {target, *numbers} if labelled and target is not None else set(numbers)
        rows = _csv_rows(paths, separator, wanted, target, set(numbers), progress)
    rows = itertools.islice(rows, skip, None)
    while piece := list(itertools.islice(rows, batch_size)):
        labels = [None if target is None else row.pop(target, None) for row in piece]
        y = _targets(labels) if labelled and target is not None else None
        yield Batch(piece, y)


def _csv_rows(
    paths: Sequence[StrPath],
    separator: str,
    wanted: set[str],
    target: str | None,
    numbers: set[str],
    progress: Progress | None,
) -> Iterator[dict[str, Any]]:
    for opened in open_sources(paths, progress):
        stream = io.TextIOWrapper(opened.stream, encoding="utf-8-sig", newline="")
        reader = csv.reader(stream, delimiter=separator)
        names = next(reader, [])
        _check_columns(opened.name, names, wanted)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(names):
                problem = f"{len(cells)} cells, but the first line has {len(names)}"
                raise TextFormatError(opened.name, reader.line_num, problem)
            event = _event(dict(zip(names, cells, strict=True)), numbers, opened.name, reader)
            if target in wanted and target not in event:
                raise TextFormatError(opened.name, reader.line_num, f"{target!r} is missing")
            yield event


def _check_columns(path: str, names: list[str], wanted: set[str]) -> None:
    missing = sorted(wanted - set(names))
    if missing:
        raise ValueError(f"{path}: no column {missing[0]!r}; the columns are {names}.")


def _event(cells: Mapping[str, str], numbers: set[str], path: str, reader: Any) -> dict[str, Any]:
    event: dict[str, Any] = {}
    for name, cell in cells.items():
        if not cell.strip():
            continue
        event[name] = cell
        if name in numbers:
            try:
                event[name] = float(cell)
            except ValueError:
                problem = f"{name} is {cell!r}, not a number"
                raise TextFormatError(path, reader.line_num, problem) from None
    return event


def _targets(labels: list[Any]) -> NDArray[Any]:
    """Return numbers if all are, or else texts."""
    if not all(isinstance(label, str) for label in labels):
        return np.asarray(labels)
    try:
        y = np.array([float(label) for label in labels])
    except ValueError:
        return np.array(labels, dtype=object)
    return y


def _parquet_rows(
    paths: Sequence[StrPath], batch_size: int, target: str | None, progress: Progress | None
) -> Iterator[dict[str, Any]]:
    for batch in iter_parquet(paths, batch_rows=batch_size, progress=progress):
        if target is not None:
            _check_columns(str(paths[0]), batch.X.column_names, {target})
        yield from batch.X.to_pylist()
