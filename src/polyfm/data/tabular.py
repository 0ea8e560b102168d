"""Readers of tables in files: CSV and Parquet."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from polyfm.data.lines import TextFormatError

__all__ = ["damaged", "load_csv", "load_parquet"]

Loaded = tuple[Any, NDArray[Any] | None, list[str]]


def load_csv(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    separator: str = ",",
    header: bool = True,
) -> Loaded:
    """Read a CSV file; numbers are recognised, empty cells are missing.

    Parameters
    ----------
    path : path
        The file, UTF-8.
    target : str, default=None
        Column to be split off as y.
    separator : str, default=","
        One character between two cells.
    header : bool, default=True
        Whether the first line holds the names; without it they are ``x0``, ``x1``, ...

    Returns
    -------
    frame : narwhals.DataFrame or dict of columns
        The columns other than the target: a frame where pyarrow is installed, else a dictionary
        of arrays and lists.  :class:`~polyfm.data.OneHotFieldEncoder` takes both.
    y : ndarray of shape (n_samples,) or None
        The target.
    names : list of str
        Names of the columns of `frame`.

    Raises
    ------
    TextFormatError
        A ValueError that names the file, and the line if a row has too many or too few cells.
    ValueError
        If there is no column `target`, or it has missing cells.
    OSError
        If the file cannot be opened.
    """
    names, cells = _read_csv(Path(path), separator, header)
    columns = {name: _typed(column) for name, column in zip(names, cells, strict=True)}
    return _split(_as_frame(columns), target, str(path))


def load_parquet(path: str | os.PathLike[str], *, target: str | None = None) -> Loaded:
    """Read a Parquet file; needs pyarrow.

    Parameters
    ----------
    path : path
        The file.
    target : str, default=None
        Column to be split off as y.

    Returns
    -------
    frame : narwhals.DataFrame
        The columns other than the target.
    y : ndarray of shape (n_samples,) or None
        The target.
    names : list of str
        Names of the columns of `frame`.

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    ValueError
        If the file is no Parquet file, there is no column `target`, or it has missing cells.
    OSError
        If the file cannot be opened.
    """
    if _pyarrow() is None:
        raise ImportError("reading Parquet files needs pyarrow: pip install 'polyfm[arrow]'")
    import pyarrow as pa
    import pyarrow.parquet as pq

    with Path(path).open("rb") as stream:
        try:
            table = pq.read_table(stream)
        except (pa.ArrowException, OSError) as error:
            raise damaged(str(path), error, "not a Parquet file, or a damaged one") from None
    return _split(nw.from_native(table, eager_only=True), target, str(path))


def damaged(name: str, error: Exception, problem: str) -> Exception:
    """Return the error of a file that cannot be read; that of the system, where it is one."""
    if getattr(error, "errno", None) is not None:
        return error
    return TextFormatError(name, None, f"{problem} ({error})")


def _pyarrow() -> ModuleType | None:
    try:
        import pyarrow
    except ImportError:
        return None
    module: ModuleType = pyarrow
    return module


def _read_csv(path: Path, separator: str, header: bool) -> tuple[list[str], list[tuple[str, ...]]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=separator)
        rows: list[list[str]] = []
        try:
            for row in reader:
                if row:
                    _check_width(path, reader.line_num, row, rows)
                    rows.append(row)
        except csv.Error as error:
            raise TextFormatError(str(path), reader.line_num, str(error)) from None
        except UnicodeDecodeError as error:  # decoded in blocks: the line is not known
            raise TextFormatError(str(path), None, f"not UTF-8 text ({error})") from None
    if not rows:
        raise TextFormatError(str(path), None, "the file is empty")
    names = rows.pop(0) if header else [f"x{j}" for j in range(len(rows[0]))]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise TextFormatError(str(path), 1, f"column names occur twice: {twice}")
    if not rows:
        raise TextFormatError(str(path), None, "there is a header but no rows")
    return names, list(zip(*rows, strict=True))


def _check_width(path: Path, line: int, row: list[str], rows: list[list[str]]) -> None:
    if rows and len(row) != len(rows[0]):
        problem = f"{len(row)} cells, but the first line has {len(rows[0])}"
        raise TextFormatError(str(path), line, problem, ",".join(row)[:60])


def _typed(cells: tuple[str, ...]) -> NDArray[Any] | list[str | None]:
    """Integers if all cells are, else floats (NaN where empty), else text (None where empty)."""
    distinct = dict.fromkeys(cells)
    filled = [cell for cell in distinct if cell.strip()]
    whole = _parsed(filled, int) if len(filled) == len(distinct) else None
    if whole and all(-(2**63) <= value < 2**63 for value in whole.values()):
        return np.fromiter(map(whole.__getitem__, cells), np.int64, len(cells))
    numbers = _parsed(filled, float)
    if numbers:
        numbers = dict.fromkeys(distinct, np.nan) | numbers
        return np.fromiter(map(numbers.__getitem__, cells), np.float64, len(cells))
    texts: dict[str, str | None] = {cell: cell if cell.strip() else None for cell in distinct}
    return list(map(texts.__getitem__, cells))


def _parsed(cells: list[str], parse: Callable[[str], float]) -> dict[str, float] | None:
    """Numbers of distinct cells, or None if one of them is no number."""
    if any("_" in cell for cell in cells):  # Python would read 1_000, other programs do not
        return None
    try:
        return {cell: parse(cell) for cell in cells}
    except ValueError:
        return None


def _as_frame(columns: dict[str, Any]) -> Any:
    pyarrow = _pyarrow()
    if pyarrow is None:
        return columns
    return nw.from_native(pyarrow.table(columns), eager_only=True)


def _split(frame: Any, target: str | None, path: str) -> Loaded:
    names = list(frame) if isinstance(frame, dict) else list(frame.columns)
    if target is None:
        return frame, None, names
    if target not in names:
        raise ValueError(f"{path}: no column {target!r} to predict; the columns are {names}")
    y = _target(frame[target], target, path)
    names.remove(target)
    rest = {n: frame[n] for n in names} if isinstance(frame, dict) else frame.select(names)
    return rest, y, names


def _target(column: Any, name: str, path: str) -> NDArray[Any]:
    values = column.to_list() if isinstance(column, nw.Series) else list(column)
    for row, value in enumerate(values, 1):
        if value is None or value != value:
            raise ValueError(f"{path}, data row {row}: the target {name!r} is missing")
    y = np.array(values)
    return y.astype(object) if y.dtype.kind == "U" else y
