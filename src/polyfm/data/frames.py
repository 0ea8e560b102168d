"""From anything that looks like a table to named one-dimensional columns.

Frames (pandas, polars, pyarrow, ... through narwhals), two-dimensional arrays, lists of rows,
lists of dictionaries and dictionaries of columns all become the same thing: a :class:`Table`
of :class:`Column`.  Everything after this file sees columns only.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyfm.data.texts import (
    NULL_TYPES,
    CodedTexts,
    PlainTexts,
    Texts,
    arrow_texts,
    is_null,
    text_of,
)

__all__ = ["Column", "Table", "as_number", "as_sets", "as_text", "read_table"]

BoolArray = NDArray[np.bool_]

_COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
        The column's name.
    kind : {"number", "text", "sets"}
        What the cells hold.
    values : ndarray or Texts
        ``number``: an array, 0 where missing.  ``text``: the cells.  ``sets``: the elements of all
        cells one after the other.
    missing : ndarray of bool
        Cells that are there but hold no value.
    absent : ndarray of bool or None
        Cells that do not exist at all (a key that a dictionary row lacks).
    lengths : ndarray of int or None
        ``sets`` only: the number of elements of each cell.
    """

    name: str
    kind: str
    values: Any
    missing: BoolArray
    absent: BoolArray | None = None
    lengths: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.missing)


@dataclass(frozen=True)
class Table:
    """Columns of equal length.

    Attributes
    ----------
    columns : list of Column
        In the order of the input.
    origin : {"frame", "rows", "array"}
        A frame (or a dictionary of columns), dictionary rows, or an array without names.
    n_rows : int
        Length of every column.
    """

    columns: list[Column]
    origin: str
    n_rows: int


def read_table(X: Any, least_rows: int = 1) -> Table:
    """Split any table-like input into columns.

    Parameters
    ----------
    X : frame, dict of columns, list of dict, 2-D array or list of rows
        The table.
    least_rows : {0, 1}
        0 takes tables without rows.

    Returns
    -------
    Table
        Its columns; those of an array are called ``x0``, ``x1``, ...

    Raises
    ------
    TypeError
        If the input is a sparse matrix or a cell holds something that is no value.
    ValueError
        If the input is not two-dimensional, is empty or has columns of unequal length.
    """
    if sp.issparse(X):
        raise TypeError(
            "Sparse input is already encoded: give it to the model itself; this needs a frame, "
            "a 2-D array, a list of rows or a list of dictionaries."
        )
    if least_rows == 0 and isinstance(X, (list, tuple)) and not X:
        return Table([], "rows", 0)
    return _checked(_read(X), least_rows)


def _read(X: Any) -> Table:
    if isinstance(X, Mapping):
        return _from_columns(X)
    if isinstance(X, (list, tuple)):
        return _from_list(X)
    frame = nw.from_native(X, pass_through=True, allow_series=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        columns = [_from_series(str(s.name), s) for s in frame.iter_columns()]
        return Table(columns, "frame", len(frame))
    if isinstance(frame, nw.Series):
        frame = frame.to_numpy()
    return _from_array(np.asarray(frame))


def _checked(table: Table, least_rows: int) -> Table:
    for is_bad, what in ((table.n_rows < least_rows, "sample"), (not table.columns, "feature")):
        if is_bad:
            found = f"0 {what}(s) (shape=({table.n_rows}, {len(table.columns)}))"
            raise ValueError(f"Found array with {found} while a minimum of 1 is required.")
    return table


def _from_columns(X: Mapping[Any, Any]) -> Table:
    columns = [_from_any(str(name), values) for name, values in X.items()]
    lengths = {column.name: len(column) for column in columns}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns have different lengths: {lengths}")
    return Table(columns, "frame", next(iter(lengths.values()), 0))


def _from_any(name: str, values: Any) -> Column:
    if isinstance(values, np.ndarray):
        return _from_vector(name, values)
    series = nw.from_native(values, pass_through=True, allow_series=True)
    if isinstance(series, nw.Series):
        return _from_series(name, series)
    return _from_objects(name, list(values))


def _from_list(X: Sequence[Any]) -> Table:
    if X and all(isinstance(row, Mapping) for row in X):
        return _from_dicts(X)
    if not X or not all(isinstance(row, (list, tuple)) for row in X):
        return _from_array(np.asarray(X))
    width = len(X[0])
    for number, row in enumerate(X):
        if len(row) != width:
            raise ValueError(f"row {number} has {len(row)} cells, row 0 has {width}")
    columns = [_from_objects(f"x{j}", list(cells)) for j, cells in enumerate(zip(*X, strict=True))]
    return Table(columns, "array", len(X))


def _from_dicts(rows: Sequence[Mapping[str, Any]]) -> Table:
    names = sorted(set(chain.from_iterable(rows)), key=str)
    columns = []
    for name in names:
        absent = np.fromiter((name not in row for row in rows), bool, len(rows))
        column = _from_objects(str(name), [row.get(name) for row in rows])
        columns.append(replace(column, absent=absent, missing=column.missing & ~absent))
    return Table(columns, "rows", len(rows))


def _from_array(X: NDArray[Any]) -> Table:
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead. Reshape your data using "
            "X.reshape(-1, 1) if it is a single column or X.reshape(1, -1) if it is a single row."
        )
    columns = [_from_vector(f"x{j}", X[:, j]) for j in range(X.shape[1])]
    return Table(columns, "array", X.shape[0])


def _from_vector(name: str, values: NDArray[Any]) -> Column:
    kind = values.dtype.kind
    if values.ndim != 1:
        raise ValueError(f"column {name!r} has {values.ndim} dimensions, expected 1")
    if kind in "biuf":
        return _from_numbers(name, values)
    if kind == "c":
        raise ValueError(f"Complex data not supported (column {name!r})")
    if kind in "Mm":
        pairs = zip(np.isnat(values), values.astype(str).tolist(), strict=True)
        return _from_text(name, [None if gone else text for gone, text in pairs])
    if kind == "S":
        values = np.char.decode(values, "utf-8")
    texts = arrow_texts(values)
    return _from_objects(name, values.tolist()) if texts is None else _text_column(name, texts)


def _from_series(name: str, series: nw.Series[Any]) -> Column:
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        null = np.asarray(series.is_null().to_numpy(), dtype=bool)
        filled = series.fill_null(False if dtype == nw.Boolean else 0) if null.any() else series
        numbers = _from_numbers(name, _plain_numbers(filled.to_numpy()))
        return replace(numbers, missing=numbers.missing | null)
    if dtype.is_temporal():
        null = np.asarray(series.is_null().to_numpy(), dtype=bool)
        text = [str(value) for value in series.to_list()]
        return _from_text(name, [None if gone else t for gone, t in zip(null, text, strict=True)])
    texts = _texts_of_series(series)
    if texts is not None:
        return _text_column(name, texts)
    if dtype in (nw.Categorical, nw.Enum):  # also where the categories are numbers
        return _from_text(name, _mixed_to_text(name, series.to_list()))
    return _from_objects(name, series.to_list())


def _texts_of_series(series: nw.Series[Any]) -> Texts | None:
    if series.dtype in (nw.Object, nw.Unknown):
        return arrow_texts(series.to_numpy())
    if series.dtype not in (nw.String, nw.Categorical, nw.Enum):
        return None
    try:
        return arrow_texts(series.to_arrow())
    except (ImportError, TypeError, ValueError):  # no pyarrow, or texts mixed with other things
        return None


def _plain_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Nullable and decimal columns arrive as objects."""
    return values if values.dtype.kind in "biuf" else values.astype(np.float64)


def _from_numbers(name: str, values: NDArray[Any]) -> Column:
    if values.dtype.kind != "f":
        return Column(name, "number", values, np.zeros(len(values), bool))
    missing = np.isnan(values)
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise ValueError(f"column {name!r}, row {row}: infinity; replace or clip such values")
    return Column(
        name, "number", np.where(missing, 0, values) if missing.any() else values, missing
    )


def _from_text(name: str, values: Sequence[str | None]) -> Column:
    return _text_column(name, PlainTexts(values))


def _text_column(name: str, texts: Texts) -> Column:
    return Column(name, "text", texts, texts.missing)


def _from_objects(name: str, values: list[Any]) -> Column:
    """Decide by the types of the cells; each distinct type is looked at once."""
    found = set(map(type, values))
    types = {t for t in found if t.__name__ not in NULL_TYPES}
    if any(issubclass(t, _COLLECTIONS) for t in types):
        return _from_collections(name, values)
    if types and all(issubclass(t, (bool, np.bool_)) for t in types):
        return _objects_to_numbers(name, values, np.dtype(bool))
    if types and all(_is_number_type(t) for t in types):
        return _objects_to_numbers(name, values, None)
    if any(issubclass(t, complex) for t in types):
        raise ValueError(f"Complex data not supported (column {name!r})")
    if found <= {str, type(None)}:
        return _from_text(name, values)
    return _from_text(name, _mixed_to_text(name, values))


def _is_number_type(t: type) -> bool:
    number = issubclass(t, (int, float, np.integer, np.floating))
    return number and not issubclass(t, (bool, np.bool_))


def _objects_to_numbers(name: str, values: list[Any], dtype: np.dtype[Any] | None) -> Column:
    missing = np.fromiter(map(is_null, values), bool, len(values))
    if missing.any():
        values = [0 if gone else v for gone, v in zip(missing, values, strict=True)]
    array = np.array(values, dtype=dtype)
    if array.dtype.kind == "O":  # integers beyond 64 bits
        array = array.astype(np.float64)
    column = _from_numbers(name, array)
    return replace(column, missing=column.missing | missing)


def _mixed_to_text(name: str, values: list[Any]) -> list[str | None]:
    """Text of every cell, worked out once per distinct (type, value)."""
    keys = list(zip(map(type, values), values, strict=True))
    try:
        distinct = dict.fromkeys(keys)
    except TypeError:
        row, cell = next((i, v) for i, v in enumerate(values) if not isinstance(v, Hashable))
        raise TypeError(
            f"column {name!r}, row {row}: the argument must be a string or a number (or a list or "
            f"set of them), got {type(cell).__name__}"
        ) from None
    texts = {key: text_of(key[1]) for key in distinct}
    return list(map(texts.__getitem__, keys))


def _from_collections(name: str, values: list[Any]) -> Column:
    missing = np.zeros(len(values), bool)
    cells: list[Any] = []
    for row, value in enumerate(values):
        if not isinstance(value, _COLLECTIONS) and text_of(value) is not None:
            raise TypeError(
                f"column {name!r}, row {row}: other cells hold lists or sets, this one holds "
                f"{value!r}"
            )
        missing[row] = not isinstance(value, _COLLECTIONS)
        cells.append(() if missing[row] else value)
    return _join_cells(name, cells, missing)


def _join_cells(name: str, cells: list[Any], missing: BoolArray) -> Column:
    lengths = np.fromiter(map(len, cells), np.int64, len(cells))
    flat = as_text(_from_objects(name, list(chain.from_iterable(cells))))
    if flat.missing.any():  # empty elements inside a cell are simply not there
        owner = np.repeat(np.arange(len(cells)), lengths)[~flat.missing]
        lengths = np.bincount(owner, minlength=len(cells)).astype(np.int64)
    return Column(name, "sets", flat.values.without_missing(), missing, lengths=lengths)


def as_text(column: Column) -> Column:
    """The same column with its numbers written as text."""
    if column.kind == "text":
        return column
    if column.kind == "sets":
        raise TypeError(
            f"column {column.name!r} holds lists or sets, but held single values in fit"
        )
    distinct, codes = np.unique(column.values, return_inverse=True)
    gone = column.missing if column.absent is None else column.missing | column.absent
    return replace(column, kind="text", values=CodedTexts(np.where(gone, -1, codes), distinct))


def as_number(column: Column) -> Column:
    """The same column with its text read as numbers.

    Raises
    ------
    ValueError
        If a cell is no number; the message names column, row and cell.
    """
    if column.kind == "number":
        return column
    if column.kind == "sets":
        raise TypeError(f"column {column.name!r} holds sets, but held numbers in fit")
    coded = column.values.coded
    distinct = np.zeros(len(coded.values))
    for code, text in enumerate(coded.values):
        try:
            distinct[code] = float(text)
        except ValueError:
            row = int(np.argmax(coded.codes == code))
            raise ValueError(
                f"column {column.name!r}, row {row}: {text!r} is not a number, but the column is "
                "numeric"
            ) from None
    read = _from_numbers(column.name, coded.take(distinct, 0.0))
    return replace(column, kind="number", values=read.values, missing=column.missing | read.missing)


def as_sets(column: Column, separator: str | None) -> Column:
    """The same column with each cell cut into a set.

    Parameters
    ----------
    column : Column
        Text (or numbers) to be cut, or a column that holds collections already.
    separator : str or None
        What stands between two elements.  None: a single value is a set of one element.
    """
    if column.kind == "sets":
        return column
    codes, values = as_text(column).values.coded
    parts = [_split(text, separator) for text in values]
    known = {element: place for place, element in enumerate(dict.fromkeys(chain(*parts)))}
    pieces = [np.array([known[element] for element in part], dtype=np.int64) for part in parts]
    pieces.append(np.zeros(0, dtype=np.int64))  # what the code -1 of missing cells finds
    lengths = np.array(list(map(len, pieces)))[codes]
    flat = np.concatenate([pieces[code] for code in codes])
    elements = CodedTexts(flat, list(known))
    return replace(column, kind="sets", values=elements, lengths=lengths)


def _split(text: str, separator: str | None) -> list[str]:
    pieces = [text] if separator is None else text.split(separator)
    return [piece.strip() for piece in pieces if piece.strip()]
