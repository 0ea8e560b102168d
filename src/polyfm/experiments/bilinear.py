"""Bilinear regression, a baseline for pairs of nodes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, lsqr

Matrix = NDArray[np.float64]


class BilinearRegressor:
    r"""Low-rank bilinear regression by alternating least squares.

    .. math:: f(a, b) = (a; 1)^\top U V^\top (b; 1), \qquad
        \min_{U, V} \sum_i (y_i - f(a_i, b_i))^2
        + \beta \left(\lVert U \rVert_F^2 + \lVert V \rVert_F^2\right)

    Given V the problem in U is a ridge regression on the features
    :math:`(a; 1) \otimes V^\top (b; 1)`, which are never formed: ten steps of LSQR from the last
    U go towards its solution.

    Parameters
    ----------
    n_left : int
        How many of the first columns are a; the others are b.
    rank : int
        Columns of U and V.
    beta : float
        Penalty, >= 0.
    max_iter : int, default=6
        Rounds of both halves.
    random_state : int, default=0
        Seed of the start.
    """

    def __init__(
        self, n_left: int, rank: int, beta: float, max_iter: int = 6, random_state: int = 0
    ) -> None:
        self.n_left = n_left
        self.rank = rank
        self.beta = beta
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: NDArray[Any]) -> Self:
        """Learn U and V from rows ``[a, b]`` and targets."""
        left, right = self._sides(X)
        random = np.random.default_rng(self.random_state)
        U = 0.1 * random.standard_normal((left.shape[1], self.rank))
        V = 0.1 * random.standard_normal((right.shape[1], self.rank))
        for _ in range(self.max_iter):
            U = self._half(left, right @ V, y, U)
            V = self._half(right, left @ U, y, V)
        self.U_, self.V_ = U, V
        return self

    def decision_function(self, X: Any) -> Matrix:
        """Return f of each row."""
        left, right = self._sides(X)
        return np.asarray(((left @ self.U_) * (right @ self.V_)).sum(axis=1))

    def _sides(self, X: Any) -> tuple[Any, Any]:
        X = sp.csr_matrix(X, dtype=np.float64)
        one = np.ones((X.shape[0], 1))
        a, b = X[:, : self.n_left], X[:, self.n_left :]
        return sp.hstack([a, one], format="csr"), sp.hstack([b, one], format="csr")

    def _half(self, A: Any, other: Matrix, y: NDArray[Any], start: Matrix) -> Matrix:
        """Return the U that is best for rows whose right side is ``other``."""
        shape = (A.shape[0], start.size)
        T = A.T.tocsr()

        def forward(u: Matrix) -> Matrix:
            return np.asarray(((A @ u.reshape(start.shape)) * other).sum(axis=1))

        def backward(r: Matrix) -> Matrix:
            return np.asarray(T @ (np.ravel(r)[:, None] * other)).ravel()

        features = LinearOperator(shape, matvec=forward, rmatvec=backward, dtype=np.float64)
        solved = lsqr(features, y, damp=np.sqrt(self.beta), iter_lim=10, x0=start.ravel())
        return np.asarray(solved[0]).reshape(start.shape)
