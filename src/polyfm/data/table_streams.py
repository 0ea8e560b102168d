"""Tables in files as streams of batches: CSV and Parquet."""

from __future__ import annotations

import glob
import io
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm.data._arguments import whole_number
from polyfm.data._arrow import pyarrow_or_none
from polyfm.data._csv_blocks import CsvReader, check_kinds, first_gap
from polyfm.data._sources import Progress, members, open_sources
from polyfm.data.batches import Batch
from polyfm.data.lines import TextFormatError
from polyfm.data.report import ReadReport
from polyfm.data.tabular import damaged

__all__ = ["iter_csv", "iter_parquet"]

_BLOCK = 1 << 22  # bytes of CSV text at once


def iter_csv(
    source: Any,
    *,
    target: str | None = None,
    weight: str | None = None,
    separator: str = ",",
    header: bool = True,
    types: Mapping[str, str] | None = None,
    columns: Collection[str] | None = None,
    batch_rows: int = 65_536,
    batch_bytes: int | None = None,
    on_error: str = "raise",
    report: ReadReport | None = None,
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """Read CSV files batch by batch; needs pyarrow.

    Parameters
    ----------
    source : path, address, binary file object, or list of these
        gzip and Zstandard files are known by their content; a path may hold wildcards; ``"-"`` is
        standard input. All files have the same columns.
    target : str, default=None
        Column to be split off as y.
    weight : str, default=None
        Column to be split off as weights of the rows.
    separator : str, default=","
        One character between two cells.
    header : bool, default=True
        Whether the first line of each file holds the names; without it they are ``x0``, ``x1``,
        ...
    types : dict of str to {"number", "text"}, optional
        What columns hold. Of others the first 4 MB decide: whole numbers, numbers or text. Name
        those here that change later in the file, and identifiers that look like numbers.
    columns : collection of str, optional
        The columns that X has besides; what others hold plays no part. All if None.
    batch_rows : int, default=65_536
        Rows of a batch.
    batch_bytes : int, optional
        Bytes of text after which a batch ends, if it has not as many rows; a batch ends with a
        block of so many bytes or less.
    on_error : {"raise", "skip"}, default="raise"
        What to do with a record that cannot be read: "skip" leaves it out and warns, once for a
        file, of how many there were and what was wrong with the first.
    report : ReadReport, optional
        Is told how many rows were read and records left out.
    progress : callable, optional
        Called with the number of bytes read since the last call, counted as they lie, compressed
        or not.

    Yields
    ------
    Batch
        X is a ``pyarrow.Table``, which every encoder takes. Empty cells are missing.

    Raises
    ------
    TextFormatError
        A ValueError that names file, line and the offending text: for records of another length,
        cells that are no numbers in a column of numbers, a target or weight that is missing or
        not finite, a weight below 0, text that is not UTF-8.
    ValueError
        If there is no column `target` or `weight`, or they are the same.
    ImportError
        If pyarrow is not installed.
    OSError
        If a file cannot be opened.

    Examples
    --------
    >>> import io
    >>> from polyfm.data import iter_csv
    >>> text = io.BytesIO(b"click,user,hour\\n1,u7,3\\n0,u9,\\n")
    >>> [batch] = iter_csv(text, target="click")
    >>> batch.X.to_pydict(), batch.y.tolist()
    ({'user': ['u7', 'u9'], 'hour': [3, None]}, [1, 0])
    """
    _check(batch_rows, batch_bytes, "CSV")
    if on_error not in ("raise", "skip"):
        raise ValueError(f"on_error must be 'raise' or 'skip', got {on_error!r}")
    if not isinstance(separator, str) or len(separator) != 1:
        raise ValueError(f"separator must be one character, got {separator!r}")
    kinds = dict(types or {})
    check_kinds(kinds)
    if weight is not None and kinds.setdefault(weight, "number") != "number":
        raise ValueError(f"weight={weight!r} must be a column of numbers, but types says text")
    apart, wanted = _apart(target, weight, columns)
    reader = CsvReader(separator, header, kinds, apart, on_error, report, wanted, weight)
    size = min(_BLOCK, batch_bytes or _BLOCK)
    tables = _csv_tables(source, reader, size, progress)
    return _batches(tables, batch_rows, batch_bytes, target, weight, report)


def iter_parquet(
    source: Any,
    *,
    target: str | None = None,
    weight: str | None = None,
    columns: Collection[str] | None = None,
    batch_rows: int = 65_536,
    batch_bytes: int | None = None,
    report: ReadReport | None = None,
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """Read Parquet files batch by batch; needs pyarrow.

    Parameters
    ----------
    source : path, address, binary file object, or list of these
        A path may hold wildcards. Whatever is no file on disk is read as a whole first, since the
        format has its index at the end. All files have the same columns.
    target : str, default=None
        Column to be split off as y.
    weight : str, default=None
        Column to be split off as weights of the rows.
    columns : collection of str, optional
        The columns that X has besides; others are not read. All if None.
    batch_rows : int, default=65_536
        Rows of a batch.
    batch_bytes : int, optional
        Bytes in memory after which a batch ends, if it has not as many rows; a batch ends with a
        piece of at most 4096 rows.
    report : ReadReport, optional
        Is told how many rows were read.
    progress : callable, optional
        Called with the number of bytes read since the last call: the share of the file that the
        rows are.

    Yields
    ------
    Batch
        X is a ``pyarrow.Table``, which every encoder takes.

    Raises
    ------
    TextFormatError
        A ValueError that names the file: if it is no Parquet file, has other columns than the
        first, is damaged, or a target or weight is missing or not finite; with the row.
    ValueError
        If there is no column `target` or `weight`, or they are the same.
    ImportError
        If pyarrow is not installed.
    OSError
        If a file cannot be opened.
    """
    _check(batch_rows, batch_bytes, "Parquet")
    apart, wanted = _apart(target, weight, columns)
    rows = batch_rows if batch_bytes is None else min(batch_rows, 4096)
    tables = _parquet_tables(_Parquet(rows, apart, weight, wanted), source, progress)
    return _batches(tables, batch_rows, batch_bytes, target, weight, report)


def _check(batch_rows: int, batch_bytes: int | None, layout: str) -> None:
    whole_number("batch_rows", batch_rows, 1)
    if batch_bytes is not None:
        whole_number("batch_bytes", batch_bytes, 1)
    if pyarrow_or_none() is None:
        raise ImportError(
            f"reading {layout} files batch by batch needs pyarrow: pip install 'polyfm[arrow]'"
        )


def _apart(
    target: str | None, weight: str | None, columns: Collection[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Return the columns to be split off, and all that are wanted."""
    if target is not None and target == weight:
        raise ValueError(f"target and weight are the same column, {target!r}")
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, got {columns!r}; write [{columns!r}]")
    apart = tuple(name for name in (target, weight) if name is not None)
    return apart, None if columns is None else (*columns, *apart)


def _csv_tables(
    source: Any, reader: CsvReader, size: int, progress: Progress | None
) -> Iterator[tuple[Any, int]]:
    for opened in open_sources(source, progress):
        yield from reader.tables(opened.name, opened.stream, size)


class _Parquet(NamedTuple):
    """What is asked of Parquet files."""

    n_rows: int
    """Of a piece."""
    apart: tuple[str, ...]
    weight: str | None
    wanted: tuple[str, ...] | None

    def pieces(self, name: str, file: Any) -> Iterator[Any]:
        """Yield the rows of a file that is open as tables, checked."""
        import pyarrow as pa

        names = file.schema_arrow.names
        columns = None if self.wanted is None else [n for n in names if n in self.wanted]
        done = 0
        try:
            for piece in file.iter_batches(self.n_rows, columns=columns):
                table = pa.Table.from_batches([piece])
                self._refuse_gaps(name, table, done)
                done += len(table)
                yield table
        except (pa.ArrowException, OSError) as error:
            raise damaged(name, error, f"cannot be read after data row {done}") from error

    def _refuse_gaps(self, name: str, table: Any, before: int) -> None:
        for column in self.apart:
            cells, is_weight = table.column(column), column == self.weight
            if is_weight:
                _check_numeric(name, column, cells.type)
            place = first_gap(cells, is_weight)
            if place is not None:
                cell = cells[place].as_py()
                wanted = "finite and not negative" if is_weight else "finite"
                found = "missing" if cell is None else f"{cell}; it must be {wanted}"
                problem = f"data row {before + place + 1}: {column!r} is {found}"
                raise TextFormatError(name, None, problem)


def _check_numeric(name: str, column: str, kind: Any) -> None:
    import pyarrow as pa

    of_numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if not (any(is_kind(kind) for is_kind in of_numbers) or pa.types.is_boolean(kind)):
        raise TextFormatError(name, None, f"the weight {column!r} holds {kind}, not numbers")


def _parquet_tables(
    asked: _Parquet, source: Any, progress: Progress | None
) -> Iterator[tuple[Any, int]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = None
    for name, stream, size in _seekable(source):
        try:
            file = pq.ParquetFile(stream)
        except (pa.ArrowException, OSError) as error:
            raise damaged(name, error, "not a Parquet file") from None
        schema = _checked(name, file.schema_arrow, schema, asked.wanted or asked.apart)
        done, n_all = 0, file.metadata.num_rows
        for table in asked.pieces(name, file):
            told, done = size * done // n_all, done + len(table)
            if progress is not None:
                progress(size * done // n_all - told)
            yield table, table.nbytes


def _seekable(source: Any) -> Iterator[tuple[str, Any, int]]:
    """Open files on disk as they are, and anything else as a copy in memory."""
    for member in members(source):
        on_disk = isinstance(member, str | os.PathLike) and os.fspath(member) != "-"
        if on_disk and "://" not in os.fspath(member):
            pattern = os.fspath(member)
            plain = os.path.exists(pattern) or not glob.has_magic(pattern)
            found = [pattern] if plain else sorted(glob.glob(pattern, recursive=True))
            if not found:
                raise FileNotFoundError(f"no file matches {pattern}")
            for path in found:
                with Path(path).open("rb") as file:
                    yield path, file, os.path.getsize(path)
        else:
            for opened in open_sources(member):
                content = opened.stream.read()
                yield opened.name, io.BytesIO(content), len(content)


def _checked(name: str, schema: Any, first: Any, apart: tuple[str, ...]) -> Any:
    for column in apart:
        if column not in schema.names:
            raise ValueError(f"{name}: no column {column!r}; the columns are {schema.names}")
    if first is not None and not schema.equals(first):
        raise TextFormatError(
            name, None, f"the columns are\n{schema}\nbut those of the files before\n{first}"
        )
    return schema


def _batches(
    tables: Iterator[tuple[Any, int]],
    batch_rows: int,
    batch_bytes: int | None,
    target: str | None,
    weight: str | None,
    report: ReadReport | None,
) -> Iterator[Batch]:
    for table in _cut(tables, batch_rows, batch_bytes):
        if report is not None:
            report.n_rows += len(table)
        y = None if target is None else _array(table.column(target))
        w = None if weight is None else _array(table.column(weight)).astype(np.float64)
        apart = [name for name in (target, weight) if name is not None]
        yield Batch(table.drop_columns(apart) if apart else table, y, w)


def _cut(
    tables: Iterator[tuple[Any, int]], batch_rows: int, batch_bytes: int | None
) -> Iterator[Any]:
    """Tables of ``batch_rows`` rows, or fewer where the bytes are enough."""
    import pyarrow as pa

    waiting: list[Any] = []
    n_rows = n_bytes = 0
    for table, size in tables:
        waiting.append(table)
        n_rows, n_bytes = n_rows + len(table), n_bytes + size
        full = batch_bytes is not None and n_bytes >= batch_bytes
        if n_rows < batch_rows and not full:
            continue
        whole = pa.concat_tables(waiting)
        stop = n_rows if full else n_rows - n_rows % batch_rows
        for start in range(0, stop, batch_rows):
            yield whole.slice(start, min(batch_rows, stop - start))
        waiting = [whole.slice(stop)]
        n_rows, n_bytes = n_rows - stop, 0 if full else size * (n_rows - stop) // max(len(table), 1)
    if n_rows:
        yield pa.concat_tables(waiting)


def _array(column: Any) -> NDArray[Any]:
    """A column without gaps as an array: numbers, or texts as objects."""
    array: NDArray[Any] = column.to_numpy()
    return array
