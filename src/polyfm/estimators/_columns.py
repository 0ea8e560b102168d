"""Which columns a model has: as many as its first rows, or a space that a stream fills."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyfm.data.dataset import Dataset
from polyfm.data.hashing import as_dicts, hash_rows
from polyfm.data.validation import check_matrix
from polyfm.estimators import _parts
from polyfm.estimators._numbers import check_number

LARGEST_SPACE = 2**31 - 1


def check_space(estimator: Any) -> None:
    """Raise a ValueError or TypeError where ``max_features`` does not go with other parameters."""
    most = estimator.max_features
    if most is None:
        return
    check_number("max_features", most, Integral, least=1, most=LARGEST_SPACE)
    if not _parts.learns_row_by_row(estimator):
        raise ValueError(
            f"max_features is for solvers that learn row by row, not for {estimator.solver!r}."
        )
    for name in ("alpha", "beta"):
        value = getattr(estimator, name, 0.0)
        if not isinstance(value, Real | str):
            raise ValueError(
                f"with max_features, columns to come have no field yet: {name} must be one "
                f"number, got {value!r}."
            )
    hashed = getattr(estimator, "_hashed_into", most)
    if hashed != most:
        raise ValueError(
            f"max_features was {hashed} when the first names were hashed and is {most} now, which "
            "would give them other columns: set it back, or fit a new estimator."
        )


def columns_of(estimator: Any, X: Any, *, reset: bool, learning: bool) -> sp.csr_matrix:
    """Return the features of rows as a canonical CSR matrix that fits the estimator.

    Without ``max_features`` it has the columns of the first rows. With it, rows to learn from may
    bring more, which ``n_features_in_`` then counts; of rows to predict, columns that the model
    does not have are left out, as they have no weight.

    Raises
    ------
    ValueError
        For input that is no matrix of finite numbers, or has more columns than there may be.
    TypeError
        For entries of dictionaries that cannot be hashed.
    """
    check_space(estimator)
    X = X.rows(0, X.n_rows).X if isinstance(X, Dataset) else X
    most = estimator.max_features
    if most is None:
        _refuse_dicts(estimator, X)
        return check_matrix(estimator, X, reset=reset)
    matrix = _hashed(estimator, X, learning)
    if matrix is None:
        matrix = check_matrix(estimator, X, reset=reset, any_width=True)
    n_present = 0 if reset else int(estimator.n_features_in_)
    if not learning:
        return first_columns(matrix, n_present)
    n_columns = matrix.shape[1]
    if n_columns > most:
        raise ValueError(
            f"X has {n_columns:,} columns, but max_features={most:,}: raise max_features, or give "
            "rows as dictionaries, whose names are hashed to so many columns."
        )
    estimator.n_features_in_ = max(n_present, n_columns)
    return matrix


def _hashed(estimator: Any, X: Any, learning: bool) -> sp.csr_matrix | None:
    """Return the matrix of rows that have names, None for others."""
    rows = as_dicts(X)
    if rows is None:
        return None
    if learning:
        estimator._hashed_into = int(estimator.max_features)
    return hash_rows(rows, int(estimator.max_features))


def _refuse_dicts(estimator: Any, X: Any) -> None:
    if isinstance(X, list | tuple) and len(X) and isinstance(X[0], Mapping):
        raise ValueError(
            f"X holds dictionaries, which {type(estimator).__name__} takes with max_features "
            "only: their names are hashed to so many columns, for example max_features=2**20."
        )


def first_columns(matrix: sp.csr_matrix, n_columns: int) -> sp.csr_matrix:
    """Return a matrix without the columns from the given one on."""
    if matrix.shape[1] <= n_columns or matrix.indices.max(initial=-1) < n_columns:
        return matrix
    known = matrix.indices < n_columns
    counts = np.concatenate([[0], np.cumsum(known)])
    parts = (matrix.data[known], matrix.indices[known], counts[matrix.indptr])
    return sp.csr_matrix(parts, shape=(matrix.shape[0], n_columns))
