"""Symmetric matrices as a few weighted outer products, and eigenvectors without a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_DENSE = 64
"""Rows up to which a matrix is formed."""
_KRYLOV_SIZE = 30
_RESTARTS = 20
_ACCURACY = 1e-10
"""Residual of an eigenvector, as a share of its eigenvalue."""
_BREAKDOWN = 1e-13


class LowRank(NamedTuple):
    r"""The symmetric matrix :math:`\sum_s c_s u_s u_s^T`."""

    weights: Floats
    """(k,): c."""
    bases: Floats
    """(k, n): u, row by row."""

    @classmethod
    def zero(cls, size: int) -> Self:
        """Return the matrix of zeros."""
        return cls(np.zeros(0), np.zeros((0, size)))

    def times(self, vector: Floats) -> Floats:
        """Multiply by a vector or by columns."""
        weights = self.weights if vector.ndim == 1 else self.weights[:, np.newaxis]
        product: Floats = self.bases.T @ (weights * (self.bases @ vector))
        return product

    def truncated(self, rank: int) -> LowRank:
        """Return the nearest matrix of a rank, with orthonormal bases."""
        if len(self.weights) == 0:
            return self
        orthonormal, triangular = np.linalg.qr(self.bases.T)
        values, vectors = np.linalg.eigh((triangular * self.weights) @ triangular.T)
        kept = np.argsort(-np.abs(values), kind="stable")[:rank]
        return LowRank(values[kept], np.ascontiguousarray((orthonormal @ vectors[:, kept]).T))


def extreme_eigenpair(times: Callable[[Floats], Floats], start: Floats) -> tuple[float, Floats]:
    """Return the eigenvalue of largest modulus of a symmetric matrix and its eigenvector.

    Small matrices are formed. For others it is Lanczos' method with all vectors kept orthogonal,
    started anew from the best vector so far; the result depends on the arguments alone, to the last
    bit. It is an approximation if the method has not converged after some restarts.

    Parameters
    ----------
    times : callable
        Multiplies the matrix by a vector or by columns.
    start : ndarray of shape (n,)
        Not zero. Coordinates of the matrix that are 0 should be so here, too.
    """
    n = len(start)
    if n <= _DENSE:
        matrix = times(np.eye(n))
        values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        best = int(np.argmax(np.abs(values)))
        return float(values[best]), vectors[:, best]
    vector, value = start / np.linalg.norm(start), 0.0
    for _ in range(_RESTARTS):
        value, vector, residual = _krylov(times, vector)
        if residual <= _ACCURACY * abs(value):
            break
    return value, vector


def _krylov(times: Callable[[Floats], Floats], start: Floats) -> tuple[float, Floats, float]:
    """Return the best eigenpair in a Krylov space, and the length of its residual."""
    size = min(_KRYLOV_SIZE, len(start))
    Q, diagonal, beside = np.zeros((size, len(start))), np.zeros(size), np.zeros(size)
    Q[0], m = start, size
    for i in range(size):
        image = times(Q[i])
        diagonal[i] = image @ Q[i]
        for _ in range(2):  # once more, as rounding leaves something
            image -= Q[: i + 1].T @ (Q[: i + 1] @ image)
        beside[i] = np.linalg.norm(image)
        if beside[i] <= _BREAKDOWN * np.abs(diagonal[: i + 1]).max() or i + 1 == size:
            m = i + 1
            break
        Q[i + 1] = image / beside[i]
    core = np.diag(diagonal[:m]) + np.diag(beside[: m - 1], 1) + np.diag(beside[: m - 1], -1)
    values, vectors = np.linalg.eigh(core)
    best = int(np.argmax(np.abs(values)))
    found = vectors[:, best] @ Q[:m]
    residual = abs(beside[m - 1] * vectors[m - 1, best])
    return float(values[best]), found / np.linalg.norm(found), float(residual)
