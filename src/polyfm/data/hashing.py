"""Rows as dictionaries, hashed to a fixed number of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from sklearn.utils import murmurhash3_32

__all__ = ["hash_rows"]

_LOWEST_HASH = -(2**31)


def hash_rows(
    rows: Iterable[Mapping[str, Any]], n_features: int, dtype: DTypeLike = np.float64
) -> sp.csr_matrix:
    """Turn rows ``{name: number or text}`` into a matrix with a fixed number of columns.

    A number is the value of the column that its name is hashed to; a text t of the name n is the
    number 1 of the name ``"n=t"``. ``None``, like a name that is not there, is nothing.

    Parameters
    ----------
    rows : iterable of dict
        None of them is changed; the order of their entries plays no part.
    n_features : int
        Number of columns. The fewer, the more names share one.
    dtype : dtype, default=numpy.float64
        Type of the values.

    Returns
    -------
    scipy.sparse.csr_matrix of shape (n_rows, n_features)
        In canonical form. Values of names that share a column are added up.

    Raises
    ------
    TypeError, ValueError
        For an entry that is no such thing; the message names row and entry.

    Notes
    -----
    Columns and values are those of scikit-learn's ``FeatureHasher(n_features,
    alternate_sign=False)``.

    Examples
    --------
    >>> from polyfm.data.hashing import hash_rows
    >>> X = hash_rows([{"age": 31, "town": "Turin"}, {"town": "Turin"}], 1024)
    >>> X.sum(axis=1).ravel().tolist()
    [[32.0, 1.0]]
    """
    indptr, indices, values = [0], [], []
    for number, row in enumerate(rows):
        for column, value in sorted(_entries(row, n_features, number).items()):
            if value != 0.0:
                indices.append(column)
                values.append(value)
        indptr.append(len(indices))
    return sp.csr_matrix(
        (
            np.array(values, dtype=dtype),
            np.array(indices, dtype=np.int32),
            np.array(indptr, dtype=np.int32 if len(indices) < 2**31 else np.int64),
        ),
        shape=(len(indptr) - 1, n_features),
    )


def _entries(row: Any, n_features: int, number: int) -> dict[int, float]:
    """Return the values of a row by column."""
    entries: dict[int, float] = {}
    if not isinstance(row, Mapping):
        raise TypeError(
            f"row {number} must be a dict of names and values, got {type(row).__name__}."
        )
    for name, value in row.items():
        if value is None:
            continue
        if not isinstance(name, str):
            raise TypeError(f"row {number}: names must be text, got {name!r}.")
        if isinstance(value, str):
            name, value = f"{name}={value}", 1.0
        else:
            value = _number(value, name, number)
        column = _column(name, n_features)
        entries[column] = entries.get(column, 0.0) + value
    return entries


def _number(value: Any, name: str, number: int) -> float:
    if type(value) is not float and not isinstance(value, int | float | Real | np.bool_):
        raise TypeError(
            f"row {number}: the value of {name!r} must be a number, a text or None, got {value!r}."
        )
    size = float(value)
    if not -1e150 < size < 1e150:  # which is false for NaN, too
        raise ValueError(
            f"row {number}: the value of {name!r} must be finite and of a size whose square is, "
            f"got {value!r}. Give None, or leave the name out, where a value is missing."
        )
    return size


def _column(name: str, n_features: int) -> int:
    hashed: int = murmurhash3_32(name)
    if hashed == _LOWEST_HASH:  # whose absolute value is no 32-bit integer
        return (2**31 - 1 - (n_features - 1)) % n_features
    return abs(hashed) % n_features


def as_dicts(X: Any) -> Sequence[Mapping[str, Any]] | None:
    """Return rows that have names: dictionaries, or those of a frame; None for anything else."""
    if isinstance(X, list | tuple):
        return list(X) if len(X) and all(isinstance(row, Mapping) for row in X) else None
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    if not all(isinstance(name, str) for name in frame.columns):
        return None
    rows = frame.rows(named=True)
    return [{name: _present(value) for name, value in row.items()} for row in rows]


def _present(value: Any) -> Any:
    """Return None for a missing cell, and text for one of another kind than text or number."""
    if value is None or value != value:
        return None
    return value if isinstance(value, Real | np.bool_ | str) else str(value)
