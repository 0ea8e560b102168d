"""Streams: labelled rows in batches, from arrays, from files, or from anything that yields them."""

from __future__ import annotations

import csv
import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.data.batches import Batch
from polyfm.data.lines import TextFormatError
from polyfm.data.text import iter_libffm, iter_svmlight

_ENDINGS = {
    "svmlight": (".svm", ".svmlight", ".libsvm"),
    "libffm": (".ffm", ".libffm"),
    "csv": (".csv", ".tsv"),
    "parquet": (".parquet", ".pq"),
}


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
) -> Iterator[Batch]:
    """Cut a stream into batches.

    Parameters
    ----------
    stream : path, tuple of arrays, or iterable of batches
        A svmlight, libffm, CSV or Parquet file, which is read piece by piece; rows (X, y) or
        (X, y, weight) at once; or anything that yields such batches, which are then taken as they
        are.
    batch_size : int, default=1000
        Rows of a batch.
    target : str, optional
        The column of a table to predict.
    numbers : collection of str, default=()
        Columns of a CSV file that are numbers. All other cells are categories, ``name=cell``; an
        empty cell is nothing.
    layout : {"auto", "svmlight", "libffm", "csv", "parquet"}, default="auto"
        Format of a file; "auto" goes by its ending.
    separator : str, optional
        Between the cells of a CSV file; a comma, or a tab for ``.tsv``, if None.
    zero_based : bool, default=False
        Whether the first column of a svmlight or libffm file is written 0 or 1.
    skip : int, default=0
        Rows to leave out at the start.

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
            Path(stream), batch_size, target, numbers, layout, separator, zero_based, skip
        )
    elif isinstance(stream, tuple):
        yield from _from_arrays(_batch(stream), batch_size, skip)
    else:
        yield from _skipping(map(_batch, stream), skip)


def _batch(parts: Any) -> Batch:
    if not isinstance(parts, tuple | list) or len(parts) not in (2, 3):
        raise ValueError(
            "A stream yields (X, y) or (X, y, weight), got "
            f"{type(parts).__name__}{f' of {len(parts)}' if hasattr(parts, '__len__') else ''}."
        )
    X, y, *weight = parts
    X = X if hasattr(X, "shape") or isinstance(X, list) else list(X)
    y = np.asarray(y)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows != len(y):
        raise ValueError(f"A batch of the stream has {n_rows} rows but {len(y)} targets.")
    return Batch(X, y, np.asarray(weight[0], dtype=np.float64) if weight else None)


def _from_arrays(rows: Batch, batch_size: int, skip: int) -> Iterator[Batch]:
    X = rows.X.tocsr() if hasattr(rows.X, "tocsr") else rows.X
    take = X.iloc if hasattr(X, "iloc") else X
    for start in range(skip, rows.n_rows, batch_size):
        part = slice(start, start + batch_size)
        weight = None if rows.weight is None else rows.weight[part]
        yield Batch(take[part], rows.targets[part], weight)


def _skipping(batches: Iterable[Batch], skip: int) -> Iterator[Batch]:
    for batch in batches:
        rest = batch.without(skip) if skip else batch
        skip = max(skip - batch.n_rows, 0)
        if rest.n_rows:
            yield rest


def format_of(path: Path, layout: str = "auto") -> str:
    """Return the format of a file, by its ending.

    Raises
    ------
    ValueError
        For an ending that is not known.
    """
    if layout != "auto":
        return layout
    ending = (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()
    for name, endings in _ENDINGS.items():
        if ending in endings:
            return name
    raise ValueError(f"{path}: the ending tells no format; name it, one of {list(_ENDINGS)}.")


def _from_file(
    path: Path,
    batch_size: int,
    target: str | None,
    numbers: Collection[str],
    layout: str,
    separator: str | None,
    zero_based: bool,
    skip: int,
) -> Iterator[Batch]:
    layout = format_of(path, layout)
    if layout in ("svmlight", "libffm"):
        read = iter_svmlight if layout == "svmlight" else iter_libffm
        yield from read(
            path, batch_rows=batch_size, zero_based=zero_based, dtype=np.float64, skip=skip
        )
        return
    if target is None:
        raise ValueError(f"{path} is a table: name the column to predict by target.")
    if layout == "parquet":
        yield from _from_parquet(path, batch_size, target, skip)
        return
    separator = separator or ("\t" if path.suffix.lower() == ".tsv" else ",")
    rows = itertools.islice(_csv_rows(path, separator, target, set(numbers)), skip, None)
    while piece := list(itertools.islice(rows, batch_size)):
        yield Batch([x for x, _ in piece], _targets([y for _, y in piece]))


def _csv_rows(
    path: Path, separator: str, target: str, numbers: set[str]
) -> Iterator[tuple[dict[str, Any], str]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=separator)
        names = next(reader, [])
        _check_columns(str(path), names, {target, *numbers})
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(names):
                problem = f"{len(cells)} cells, but the first line has {len(names)}"
                raise TextFormatError(str(path), reader.line_num, problem)
            event = dict(zip(names, cells, strict=True))
            label = event.pop(target)
            if not label.strip():
                raise TextFormatError(str(path), reader.line_num, f"{target!r} is missing")
            yield _event(event, numbers, str(path), reader.line_num), label


def _check_columns(path: str, names: list[str], wanted: set[str]) -> None:
    missing = sorted(wanted - set(names))
    if missing:
        raise ValueError(f"{path}: no column {missing[0]!r}; the columns are {names}.")


def _event(cells: Mapping[str, str], numbers: set[str], path: str, line: int) -> dict[str, Any]:
    event: dict[str, Any] = {}
    for name, cell in cells.items():
        if not cell.strip():
            continue
        event[name] = cell
        if name in numbers:
            try:
                event[name] = float(cell)
            except ValueError:
                raise TextFormatError(path, line, f"{name} is {cell!r}, not a number") from None
    return event


def _targets(labels: list[str]) -> NDArray[Any]:
    """Return numbers if all are, or else texts."""
    try:
        y = np.array([float(label) for label in labels])
    except ValueError:
        return np.array(labels, dtype=object)
    return y


def _from_parquet(path: Path, batch_size: int, target: str, skip: int) -> Iterator[Batch]:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError(
            "reading Parquet files needs pyarrow: pip install 'polyfm[arrow]'"
        ) from None
    with pq.ParquetFile(path) as file:
        _check_columns(str(path), file.schema_arrow.names, {target})
        events = (row for piece in file.iter_batches(batch_size) for row in piece.to_pylist())
        rows = itertools.islice(events, skip, None)
        while piece := list(itertools.islice(rows, batch_size)):
            labels = [row.pop(target) for row in piece]
            yield Batch(piece, np.asarray(labels))
