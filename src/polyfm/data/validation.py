"""Checks of what users hand to an estimator, with errors that point at the cell."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data

from polyfm.data.rows import examined_csr, largest_value

_FORMATS = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
_LEAST_WEIGHT = 1e-15


def check_matrix(estimator: Any, X: Any, *, reset: bool, any_width: bool = False) -> sp.csr_matrix:
    """Return the features as canonical CSR of single or double precision.

    Parameters
    ----------
    estimator : BaseEstimator
        Gets ``n_features_in_`` and ``feature_names_in_``, or is checked against them.
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        Numbers of any type. float32 stays; everything else but float64 becomes float64.
    reset : bool
        Whether this is training data.
    any_width : bool, default=False
        Whether the number of columns is free; the estimator is then neither checked nor changed.

    Raises
    ------
    ValueError
        For text, missing and infinite values, with the row and the column of the first; for values
        whose square would overflow; for indices outside the matrix.
    """
    if isinstance(X, str | os.PathLike):
        raise ValueError(
            f"X is a path, {os.fspath(X)!r}: read the file first, for example with "
            "polyfm.data.load_svmlight, load_libffm, load_csv or load_parquet."
        )
    options: dict[str, Any] = {
        "accept_sparse": _FORMATS,
        "accept_large_sparse": True,
        "dtype": [np.float64, np.float32],
        "ensure_all_finite": False,
    }
    try:
        if any_width:
            X = check_array(X, estimator=estimator, input_name="X", **options)
        else:
            X = validate_data(estimator, X, reset=reset, **options)
    except ValueError as error:
        raise _explained(error) from None
    matrix, is_bounded = examined_csr(X)
    if not is_bounded:
        raise _bad_value(matrix, getattr(estimator, "feature_names_in_", None))
    return matrix


def _explained(error: ValueError) -> ValueError:
    """Add to scikit-learn's message about text what to do with text here."""
    message = str(error)
    if "could not convert string" not in message:
        return error
    return ValueError(
        f"{message}. Columns of text or categories have to be encoded first: put "
        "polyfm.data.OneHotFieldEncoder() before this estimator, for example with make_pipeline."
    )


def _bad_value(matrix: sp.csr_matrix, names: NDArray[Any] | None) -> ValueError:
    """Return an error that names the first value which is no number or too large."""
    values, limit = matrix.data, largest_value(matrix.dtype)
    bad = int(np.flatnonzero(~(np.abs(values) < limit))[0])
    row = int(np.searchsorted(matrix.indptr, bad, side="right")) - 1
    column = int(matrix.indices[bad])
    label = f"column {column}" if names is None else f"column {names[column]!r}"
    where = f"in row {row}, {label}"
    if np.isnan(values[bad]):
        return ValueError(
            f"Input X contains NaN {where}: fill in missing values (SimpleImputer) or encode "
            "them as a category of their own (polyfm.data.OneHotFieldEncoder)."
        )
    if np.isinf(values[bad]):
        return ValueError(f"Input X contains infinity {where}: infinite values cannot be learnt.")
    return ValueError(
        f"Input X has the value {values[bad]:.6g} {where}, whose square is too large for "
        f"{values.dtype}: scale the column down (for example with MaxAbsScaler)."
    )


def check_real_target(y: Any, n_rows: int) -> NDArray[np.float64]:
    """Return the target of a regression as a vector of doubles.

    Raises
    ------
    ValueError
        Where it is not one finite number per row; the message names the first bad row.
    """
    y = check_array(y, ensure_2d=False, ensure_all_finite=False, dtype=None, input_name="y")
    if y.ndim == 2 and y.shape[1] == 1:
        y = _ravelled(y)
    if y.ndim != 1:
        raise ValueError(f"y must be one number per row, got an array of shape {y.shape}.")
    try:
        y = y.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"y must hold numbers for a regression, got values like {y[0]!r}: unknown label type. "
            "For classes use a classifier."
        ) from None
    check_length("y", len(y), n_rows)
    bad = np.flatnonzero(~np.isfinite(y))
    if bad.size:
        kind = "NaN" if np.isnan(y[bad[0]]) else "infinity"
        raise ValueError(f"Input y contains {kind} in row {bad[0]}: every target must be finite.")
    return np.asarray(y)


def _ravelled(y: NDArray[Any]) -> NDArray[Any]:
    import warnings

    from sklearn.exceptions import DataConversionWarning

    warnings.warn(
        "A column-vector y was passed when a 1d array was expected; its only column is used.",
        DataConversionWarning,
        stacklevel=4,
    )
    return y.ravel()


def check_length(name: str, length: int, n_rows: int) -> None:
    """Raise a ValueError that names the argument whose length differs from the number of rows."""
    if length != n_rows:
        raise ValueError(
            f"Found inconsistent lengths: {name} has {length} entries but X has {n_rows} rows."
        )


def check_weights(sample_weight: Any, X: Any) -> NDArray[np.float64]:
    """Return one finite weight >= 0 per row; 1 where none are given.

    Raises
    ------
    ValueError
        Where a weight is negative or not finite, or the number of weights is wrong.
    """
    n_rows = X.shape[0]
    if sample_weight is None:
        return np.ones(n_rows)
    sample_weight = np.asarray(sample_weight)
    if sample_weight.ndim == 0:
        sample_weight = np.full(n_rows, sample_weight)
    weight = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weight.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    check_length("sample_weight", len(weight), n_rows)
    if weight.min(initial=0.0) < 0:
        row = int(np.flatnonzero(weight < 0)[0])
        raise ValueError(
            f"Negative values in data passed to `sample_weight`: row {row} has {weight[row]:.6g}."
        )
    live = weight[weight > 0]
    if live.size and not (live.min() > _LEAST_WEIGHT and live.max() < 1.0 / _LEAST_WEIGHT):
        raise ValueError(
            f"sample_weight goes from {live.min():.6g} to {live.max():.6g} where it is not 0, "
            f"beyond {_LEAST_WEIGHT:g} to {1.0 / _LEAST_WEIGHT:g}: divide it by its mean."
        )
    return np.asarray(weight)
