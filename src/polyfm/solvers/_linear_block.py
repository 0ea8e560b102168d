"""The block of bias and linear weights, solved for when the interactions are given."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg

from polyfm.losses import Squared
from polyfm.solvers._convex import Floats, Point, Problem

_SMALL, _MEDIUM = 256, 4096
"""Weights up to which the bound on the second derivative is decomposed, and factorised at least."""
_MOST_PRODUCTS = 1e9
"""Products of two entries of a row that the bound may take."""
_STEPS = 300
_POLISHING_STEPS = 30
_ROUNDING = 1e-6
_ACCURACY_OF_CG = 1e-11
_ACCURACY_OF_LBFGS = 1e-7


class _Whitener(Protocol):
    """A W with W W' = H^-1."""

    @property
    def size(self) -> int:
        """Number of columns of W."""

    def whiten(self, gradient: Floats) -> Floats:
        """Return W' g, the gradient by u."""

    def move(self, u: Floats) -> Floats:
        """Return W u."""


class _Dense(NamedTuple):
    matrix: Floats

    @property
    def size(self) -> int:
        return int(self.matrix.shape[1])

    def whiten(self, gradient: Floats) -> Floats:
        return gradient @ self.matrix

    def move(self, u: Floats) -> Floats:
        return self.matrix @ u


class _Cholesky(NamedTuple):
    """The transposed inverse of the lower factor of H."""

    factor: Floats

    @property
    def size(self) -> int:
        return len(self.factor)

    def whiten(self, gradient: Floats) -> Floats:
        return np.asarray(solve_triangular(self.factor, gradient, lower=True))

    def move(self, u: Floats) -> Floats:
        return np.asarray(solve_triangular(self.factor, u, lower=True, trans="T"))


class _Diagonal(NamedTuple):
    scales: Floats

    @property
    def size(self) -> int:
        return len(self.scales)

    def whiten(self, gradient: Floats) -> Floats:
        return gradient * self.scales

    def move(self, u: Floats) -> Floats:
        return u * self.scales


class LinearBlock:
    r"""Minimises over bias and linear weights; the objective never rises.

    The second derivative is bounded by :math:`H = \\mu A^T \\mathrm{diag}(s) A + \\alpha I`, with
    A = [1, X] and no penalty of the bias. In the coordinates u of :math:`(b, w) = W u`, with
    :math:`W W^T = H^{-1}`, squared loss takes a single step. Other losses take those of L-BFGS.
    W is worked out once: from the eigenvectors of H for few features, which finds the directions
    that H leaves open, from its Cholesky factor for more. For many W is only the diagonal one of H
    and squared loss is solved by conjugate gradients, the bias eliminated.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._n_biases = int(problem.fit_intercept)
        self._d = problem.n_features if problem.fit_linear else 0
        self._whitener = self._find_whitener()

    def solve(self, point: Point, quadratic: Floats) -> Point:
        """Return the point with the best bias and weights, given q(x_i)."""
        if self._d + self._n_biases == 0:
            return point
        if not isinstance(self._problem.loss, Squared):
            return self._by_quasi_newton(point, quadratic)
        if isinstance(self._whitener, _Diagonal):
            return self._by_conjugate_gradients(point, quadratic, self._whitener.scales)
        for _ in range(2):  # the second one takes back what the first one rounds
            _, gradient = self._objective(point, quadratic)
            point = self._moved(point, -self._whitener.whiten(gradient))
        return point

    def _find_whitener(self) -> _Whitener:
        problem, n = self._problem, self._n_biases + self._d
        if self._d:
            per_row = np.diff(problem.X.indptr).astype(np.float64)
            if n > _MEDIUM or per_row @ per_row > _MOST_PRODUCTS:
                return self._diagonal()
        bound = self._bound()
        if n <= _SMALL:
            return self._of_eigenvectors(bound)
        try:
            return _Cholesky(np.asarray(np.linalg.cholesky(bound)))
        except np.linalg.LinAlgError:  # H leaves a direction open.
            return self._diagonal()

    def _bound(self) -> Floats:
        """Return H."""
        problem, first = self._problem, self._n_biases
        bound = np.zeros((first + self._d, first + self._d))
        if self._d:
            weighted = sp.csr_matrix(problem.X.multiply(problem.weight[:, None]))
            bound[first:, first:] = (problem.X.T @ weighted).toarray()
        if first:
            bound[0, 0] = problem.weight.sum()
            bound[0, first:] = bound[first:, 0] = (problem.X.T @ problem.weight)[: self._d]
        bound *= problem.curvature
        own = np.arange(first, len(bound))
        bound[own, own] += problem.alpha
        return bound

    def _of_eigenvectors(self, bound: Floats) -> _Dense:
        """Return the W whose columns are for the directions that the objective depends on."""
        values, vectors = np.linalg.eigh(bound)
        kept = values > len(values) * np.finfo(np.float64).eps * values.max(initial=0.0)
        if self._d:
            vectors[self._n_biases :][~self._problem.met] = 0.0
        return _Dense(vectors[:, kept] / np.sqrt(values[kept]))

    def _diagonal(self) -> _Diagonal:
        problem = self._problem
        own = problem.curvature * (problem.squares.T @ problem.weight)[: self._d] + problem.alpha
        own[own == 0] = 1.0
        biases = np.full(self._n_biases, problem.curvature * problem.weight.sum())
        return _Diagonal(np.asarray(1.0 / np.sqrt(np.concatenate([biases, own]))))

    def _moved(self, point: Point, u: Floats) -> Point:
        """Return the point that is u away."""
        move = self._whitener.move(u)
        bias = point.bias + float(move[0]) if self._n_biases else point.bias
        linear = point.linear + move[self._n_biases :] if self._d else point.linear
        return point._replace(bias=bias, linear=linear)

    def _objective(self, point: Point, quadratic: Floats) -> tuple[float, Floats]:
        """Return the objective and its gradient by bias and weights."""
        problem = self._problem
        loss, slopes = problem.loss_and_slopes(problem.linear_scores(point) + quadratic)
        gradient = np.full(self._n_biases, slopes.sum())
        if self._d:
            own = problem.X.T @ slopes + problem.alpha * point.linear
            gradient = np.concatenate([gradient, own])
        return loss + problem.ridge(point), gradient

    def _by_quasi_newton(self, point: Point, quadratic: Floats) -> Point:
        def objective(u: Floats) -> tuple[float, Floats]:
            value, gradient = self._objective(self._moved(point, u), quadratic)
            return value, self._whitener.whiten(gradient)

        start = np.zeros(self._whitener.size)
        before, _ = objective(start)
        gtol = _ACCURACY_OF_LBFGS * np.sqrt(before)
        found = minimize(
            objective, start, jac=True, method="L-BFGS-B",
            options={"maxiter": _STEPS, "ftol": 1e-15, "gtol": gtol},
        )  # fmt: skip
        if found.fun >= before:
            return point
        return self._polished(self._moved(point, found.x), quadratic)

    def _polished(self, point: Point, quadratic: Floats) -> Point:
        """Go on by gradients alone (Barzilai and Borwein's steps) while these shrink.

        Values of the objective tell two points apart only as long as their gradients exceed the
        square root of rounding; the rest would be noise that every later step builds on.
        """
        _, gradient = self._objective(point, quadratic)
        gradient = self._whitener.whiten(gradient)
        best, move = point, -gradient
        least = first = float(np.linalg.norm(gradient))
        for _ in range(_POLISHING_STEPS):
            if least <= _ROUNDING * first:
                break
            point = self._moved(point, move)
            _, raw = self._objective(point, quadratic)
            following = self._whitener.whiten(raw)
            change = following - gradient
            gradient, size = following, float(np.linalg.norm(following))
            if size < least:
                best, least = point, size
            curvature = float(change @ change)
            if curvature == 0.0 or size > 10.0 * least:
                break
            move = -abs(float(move @ change)) / curvature * gradient
        return best

    def _by_conjugate_gradients(self, point: Point, quadratic: Floats, scales: Floats) -> Point:
        problem, X, weight = self._problem, self._problem.X, self._problem.weight
        share = weight / weight.sum()

        def centred(values: Floats) -> Floats:
            return values - share @ values if self._n_biases else values

        def apply(v: Any) -> Floats:
            return X.T @ (weight * centred(X @ v.ravel())) + problem.alpha * v.ravel()

        inverse = scales[self._n_biases :] ** 2
        residual = problem.target - quadratic
        square = (self._d, self._d)
        linear, _ = cg(
            LinearOperator(square, matvec=apply, dtype=np.float64),
            X.T @ (weight * centred(residual)),
            x0=point.linear, rtol=_ACCURACY_OF_CG, maxiter=_STEPS,
            M=LinearOperator(square, matvec=lambda v: inverse * v.ravel(), dtype=np.float64),
        )  # fmt: skip
        bias = float(share @ (residual - X @ linear)) if self._n_biases else point.bias
        return point._replace(bias=bias, linear=linear)
