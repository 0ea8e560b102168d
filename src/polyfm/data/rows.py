"""The rows that solvers see: CSR arrays of one precision, in one canonical form."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyfm.data._examine import is_canonical, longest_row, look_at_values

_LARGEST_INT32 = np.iinfo(np.int32).max


class Rows(NamedTuple):
    """Labelled rows of a CSR matrix: those that ``numbers`` names, with targets and weights.

    So the rows held out for validation and those learnt from share one matrix. All arrays are
    read-only views; ``target`` and ``weight`` have an entry for each row of the matrix.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    values: NDArray[Any]
    target: NDArray[Any]
    weight: NDArray[Any]
    numbers: NDArray[Any]

    @property
    def n_rows(self) -> int:
        """Number of the rows that are named."""
        return len(self.numbers)

    @property
    def longest(self) -> int:
        """Number of non-zeros of the fullest row of the matrix."""
        return int(longest_row(self.indptr))

    def with_target(self, target: NDArray[Any]) -> Rows:
        """Return the same rows with other targets."""
        return self._replace(target=read_only(target.astype(self.values.dtype)))


def row_numbers(n_rows: int) -> NDArray[Any]:
    """Return the numbers of all rows, in the narrowest type that solvers are compiled for."""
    return np.arange(n_rows, dtype=np.int32 if n_rows <= _LARGEST_INT32 else np.int64)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous read-only view.

    Compiled code tells writable arrays from read-only ones; one kind for all inputs means one
    compilation, and no copy of a caller's read-only buffer.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def canonical_csr(X: Any) -> sp.csr_matrix:
    """Return ``X`` as :func:`examined_csr` does, whatever its values."""
    return examined_csr(X)[0]


def largest_value(dtype: Any) -> float:
    """Return the size below which values must stay, for their squares not to overflow."""
    return float(np.sqrt(np.finfo(dtype).max) * 1e-3)


def examined_csr(X: Any) -> tuple[sp.csr_matrix, bool]:
    """Return ``X`` as CSR with sorted indices, no duplicates and no stored zeros.

    The second result is whether all values are numbers below :func:`largest_value`.

    The arrays of ``X`` are shared where they are in that form already and never changed.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features)

    Raises
    ------
    ValueError
        Where index arrays are inconsistent or point outside the matrix.
    """
    if not sp.issparse(X):
        X = sp.csr_matrix(X)
    if X.format != "csr":
        _check_structure(X)
        X = X.tocsr()
    # A new object: the flags that SciPy keeps on the caller's matrix may be out of date.
    matrix = sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape, copy=False)
    if not _is_canonical(matrix):
        _check_structure(matrix)
        matrix = matrix.copy()
        matrix.sum_duplicates()
    values = read_only(matrix.data)
    limit = largest_value(values.dtype) if values.dtype.kind == "f" else np.inf
    n_zeros, n_beyond = look_at_values(values, limit)
    if n_zeros > 0:
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    return matrix, n_beyond == 0


def _is_canonical(matrix: sp.csr_matrix) -> bool:
    if np.any(np.diff(matrix.indptr) < 0):
        return False
    indptr, indices = read_only(matrix.indptr), read_only(matrix.indices)
    return bool(is_canonical(indptr, indices, matrix.shape[1]))


def _check_structure(X: Any) -> None:
    """Raise a ValueError for index arrays that compiled conversions would follow out of bounds."""
    if X.format in ("csr", "csc", "bsr"):
        # On a shallow copy, as the check may put index arrays of another width into its object.
        copy.copy(X).check_format(full_check=True)
    elif X.format == "coo" and X.nnz:
        for name, index, size in (("row", X.row, X.shape[0]), ("column", X.col, X.shape[1])):
            if index.min() < 0 or index.max() >= size:
                raise ValueError(
                    f"X has {name} indices from {index.min()} to {index.max()}, outside 0 to "
                    f"{size - 1}."
                )


def as_rows(
    X: sp.csr_matrix,
    target: NDArray[Any] | None = None,
    weight: NDArray[Any] | None = None,
    numbers: NDArray[Any] | None = None,
) -> Rows:
    """Wrap a canonical CSR matrix, with targets and weights of 1, and all rows, if none are given.

    ``numbers`` has the type that :func:`row_numbers` gives.
    """
    n_rows, n_features = X.shape
    narrow = n_features <= _LARGEST_INT32
    dtype = X.data.dtype
    target = np.ones(n_rows) if target is None else target
    weight = np.ones(n_rows) if weight is None else weight
    return Rows(
        read_only(X.indptr.astype(np.int64, copy=False)),
        read_only(X.indices.astype(np.int32 if narrow else np.int64, copy=False)),
        read_only(X.data),
        read_only(target.astype(dtype, copy=False)),
        read_only(weight.astype(dtype, copy=False)),
        read_only(row_numbers(n_rows) if numbers is None else numbers),
    )
