"""The convex problem of degree 2: what is minimised, its gradients and bounds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from scipy.special import xlogy

from polyfm._jit import jit
from polyfm.losses import Huber, Logistic, Squared, SquaredHinge, contract

_DENSE = 64
"""Features up to which the gradient matrix is formed."""
_SOLVED = 1e-9
"""Size of a gradient, as a share of its terms', below which it counts as zero."""
_KRYLOV_SIZES = (20, 60, 180)
_RESTARTS = 300
LARGEST = 1e150
"""Penalties and bounds beyond are as good as infinite, and their squares would be."""

Floats = NDArray[np.float64]


class Point(NamedTuple):
    r"""A model of degree 2: :math:`b, w` and :math:`Z = \sum_s \lambda_s p_s p_s^T`."""

    bias: float
    linear: Floats
    """(d,)."""
    weights: Floats
    """(k,): lambda."""
    bases: Floats
    """(d, k): columns of length 1."""

    @classmethod
    def zero(cls, n_features: int) -> Point:
        """Return the model that predicts 0."""
        return cls(0.0, np.zeros(n_features), np.zeros(0), np.zeros((n_features, 0)))

    @property
    def rank(self) -> int:
        """Number of bases."""
        return len(self.weights)

    def in_unit(self, unit: float) -> Point:
        """Return the model of features that are multiplied by ``unit``."""
        return self._replace(linear=self.linear / unit, weights=self.weights / unit / unit)


@dataclass(frozen=True)
class Problem:
    r"""The smooth part of the objective.

    .. math:: \sum_i s_i \ell(y_i, b + \langle w, x_i \rangle + q(x_i)) + \frac{\alpha}{2} \|w\|^2,
        \qquad q(x) = \sum_s \lambda_s K(p_s, x)

    with :math:`K(p, x) = \langle p, x \rangle^2` with the ``diagonal`` of Z and
    :math:`\tfrac12 (\langle p, x \rangle^2 - \langle p \circ p, x \circ x \rangle)`, the ANOVA
    kernel, without it.
    """

    X: sp.csr_matrix
    """(n, d), divided by ``unit``."""
    squares: sp.csr_matrix
    """The squares of its entries."""
    target: Floats
    weight: Floats
    loss: Any
    alpha: float
    """In the unit of X, as is every penalty here."""
    diagonal: bool
    fit_linear: bool
    fit_intercept: bool
    unit: float
    """Root mean square length of a row: rows of length 1 keep powers of their entries finite."""

    @classmethod
    def of(
        cls,
        X: sp.csr_matrix,
        target: Floats,
        weight: Floats,
        loss: Any,
        alpha: float,
        *,
        diagonal: bool,
        fit_linear: bool,
        fit_intercept: bool,
    ) -> Self:
        """Bring rows of a canonical CSR matrix to the unit in which they are learnt."""
        unit = root_mean_square_length(X, weight)
        scaled = sp.csr_matrix((X.data / unit, X.indices, X.indptr), shape=X.shape)
        squares = sp.csr_matrix((scaled.data**2, X.indices, X.indptr), shape=X.shape)
        problem = cls(
            scaled, squares, target, weight, loss, 0.0, diagonal, fit_linear, fit_intercept, unit
        )
        return replace(problem, alpha=problem.penalty(alpha))

    def penalty(self, strength: float) -> float:
        """Bring a penalty of squared linear weights, or of the size of Z, to the unit of X."""
        return min(strength / self.unit / self.unit, LARGEST)

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return int(self.X.shape[1])

    def atoms(self, bases: Floats) -> Floats:
        """Return K(p_s, x_i), (n, k)."""
        products = self.X @ bases
        if self.diagonal:
            return products**2
        return 0.5 * (products**2 - self.squares @ bases**2)

    def linear_scores(self, point: Point) -> Floats:
        """Return b + <w, x_i>."""
        return self.X @ point.linear + point.bias

    def scores(self, point: Point) -> Floats:
        """Return f(x_i)."""
        return self.linear_scores(point) + self.atoms(point.bases) @ point.weights

    def loss_and_slopes(self, scores: Floats) -> tuple[float, Floats]:
        """Return the weighted sum of the losses and its derivatives by the scores."""
        slopes = np.empty(len(scores))
        total = _loss_and_slopes(self.loss, self.target, scores, self.weight, slopes)
        return float(total), slopes

    def loss_at(self, scores: Floats) -> float:
        """Return the weighted sum of the losses."""
        return self.loss_and_slopes(scores)[0]

    def ridge(self, point: Point) -> float:
        """Return the penalty of the linear weights."""
        return 0.5 * self.alpha * float(point.linear @ point.linear)

    @functools.cached_property
    def met(self) -> NDArray[np.bool_]:
        """Which features have a row, (d,)."""
        return np.asarray(np.diff(self.X.tocsc().indptr) > 0)

    @property
    def curvature(self) -> float:
        """A bound on the second derivative of the loss."""
        return float(contract.curvature(self.loss))

    def gradient(self, slopes: Floats) -> Gradient:
        """Return the derivative of the loss by Z."""
        return Gradient(self, slopes, self.squares.T @ slopes)


@dataclass(frozen=True)
class Gradient:
    r"""The symmetric matrix :math:`G = X^T \mathrm{diag}(\ell') X`, never formed for many features.

    Without the diagonal of Z it is :math:`\tfrac12 (G - \mathrm{diag}((X \circ X)^T \ell'))`.
    """

    problem: Problem
    slopes: Floats
    diagonal: Floats
    """(d,): that of the matrix X^T diag(l') X."""

    def times(self, vectors: Floats) -> Floats:
        """Multiply the matrix by a vector or by columns."""
        X, slopes, diagonal = self.problem.X, self.slopes, self.diagonal
        if vectors.ndim == 2:
            slopes, diagonal = slopes[:, None], diagonal[:, None]
        product = X.T @ (slopes * (X @ vectors))
        return product if self.problem.diagonal else 0.5 * (product - diagonal * vectors)

    def extreme(self, which: str, n: int, start: Floats, tol: float) -> tuple[Floats, Floats]:
        """Return eigenvalues, the extreme one first, and eigenvectors of length 1 as columns.

        Parameters
        ----------
        which : {"LM", "LA"}
            The eigenvalues of largest modulus, or the largest ones.
        n : int
            How many, at most.
        start : ndarray of shape (d,)
            Where Lanczos' method starts.
        tol : float
            Relative accuracy.

        Raises
        ------
        ValueError
            When the method does not converge.
        """
        d = self.problem.n_features
        # So that features without a row get no part in any basis, not even one of rounding.
        met = self.problem.met
        if not (self.slopes.any() and met.any()):
            return np.zeros(1), (start / np.linalg.norm(start))[:, None]
        if d <= _DENSE:
            values, vectors = np.linalg.eigh(self.times(np.eye(d)))
        else:
            values, vectors = self._lanczos(which, n, start * met, tol)
        vectors[~met] = 0.0
        order = np.argsort(-(values if which == "LA" else np.abs(values)), kind="stable")[:n]
        return values[order], vectors[:, order]

    def _lanczos(self, which: str, n: int, start: Floats, tol: float) -> tuple[Floats, Floats]:
        d = self.problem.n_features
        operator = LinearOperator((d, d), matvec=lambda v: self.times(v.ravel()), dtype=np.float64)
        for size in _KRYLOV_SIZES:
            try:
                found = eigsh(
                    operator, n, which=which, v0=start, tol=tol,
                    ncv=min(size, d), maxiter=_RESTARTS,
                )  # fmt: skip
                return found[0], found[1]
            except ArpackNoConvergence:
                continue
        raise ValueError(
            "the eigenvectors of the gradient were not found: bring the columns of X to a common "
            "scale (for example with MaxAbsScaler)."
        )


@jit
def _loss_and_slopes(loss, y, p, weight, slopes):
    total = 0.0
    for i in range(y.size):
        total += weight[i] * contract.value(loss, y[i], p[i])
        slopes[i] = weight[i] * contract.gradient(loss, y[i], p[i])
    return total


def root_mean_square_length(X: sp.csr_matrix, weight: Floats) -> float:
    """Return the weighted root mean square of the lengths of rows; 1 if all are 0."""
    largest = float(np.abs(X.data).max(initial=0.0))
    if largest == 0.0:
        return 1.0
    squares = sp.csr_matrix(((X.data / largest) ** 2, X.indices, X.indptr), shape=X.shape)
    mean = float(weight @ (squares @ np.ones(X.shape[1]))) / float(weight.sum())
    return max(largest * float(np.sqrt(mean)), 1.0 / LARGEST)


def dual_value(
    problem: Problem, point: Point, scores: Floats, slopes: Floats, share: float
) -> float:
    r"""Return a lower bound on the least value of loss and ridge, up to what bounds Z.

    With the conjugates :math:`\ell^*` and :math:`a = c\, \ell'`, c = ``share``, it is
    :math:`-\sum_i s_i \ell^*(a_i) - \|X^T (s \circ a)\|^2 / 2 \alpha`; what Z, times the gradient,
    adds to it is for the caller. The slopes must add up to 0 if there is a bias, and be orthogonal
    to the columns of X if their weights have no penalty: they are taken to be solved for. With a
    penalty, :math:`X^T (s \circ \ell') = -\alpha w` is taken to hold where rounding is all that
    tells the two sides apart, since a small alpha would blow that up.
    """
    slopes = share * slopes
    conjugate = _CONJUGATES.get(type(problem.loss))
    if conjugate is not None:
        per_weight = slopes / problem.weight
        value = float(problem.weight @ conjugate(problem.loss, problem.target, per_weight))
    else:
        # By convexity, for any loss >= 0.
        value = float(slopes @ scores) - share * problem.loss_at(scores)
    if problem.fit_linear and problem.alpha > 0:
        image, solved = problem.X.T @ slopes, -share * problem.alpha * point.linear
        rounding = _SOLVED * np.sqrt(problem.squares.data.sum()) * np.linalg.norm(slopes)
        if np.linalg.norm(image - solved) <= rounding:
            image = solved
        value += 0.5 * float(image @ image) / problem.alpha
    return -value


def _square_conjugate(loss: Any, y: Floats, slope: Floats) -> Floats:
    return slope * (y + 0.5 * slope)


def _logistic_conjugate(loss: Any, y: Floats, slope: Floats) -> Floats:
    t = np.clip(-y * slope, 0.0, 1.0)
    return np.asarray(xlogy(t, t) + xlogy(1.0 - t, 1.0 - t))


def _squared_hinge_conjugate(loss: Any, y: Floats, slope: Floats) -> Floats:
    t = -y * slope
    return t * (0.25 * t - 1.0)


# Of slopes that the loss can have.
_CONJUGATES: dict[type, Callable[[Any, Floats, Floats], Floats]] = {
    Squared: _square_conjugate,
    Huber: _square_conjugate,
    Logistic: _logistic_conjugate,
    SquaredHinge: _squared_hinge_conjugate,
}


def diagonalised(weights: Floats, bases: Floats) -> tuple[Floats, Floats]:
    r"""Return eigenvalues and eigenvectors of :math:`\sum_s \lambda_s p_s p_s^T`, without zeros.

    The matrix stays what it is and :math:`\sum_s |\lambda_s|` falls to its nuclear norm.
    """
    orthonormal, triangular = np.linalg.qr(bases)
    return rotated((triangular * weights) @ triangular.T, orthonormal)


def rotated(core: Floats, orthonormal: Floats) -> tuple[Floats, Floats]:
    """Return the non-zero eigenvalues of Q B Q^T and their eigenvectors, the largest first."""
    values, vectors = np.linalg.eigh(0.5 * (core + core.T))
    order = np.argsort(-np.abs(values), kind="stable")
    size = np.abs(values[order])
    order = order[size > 1e-13 * size.max(initial=0.0)]
    return values[order], orthonormal @ vectors[:, order]
