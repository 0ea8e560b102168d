"""Refitting Z in the span of its bases: only their weights, or all of it."""

from __future__ import annotations

import numpy as np

from polyfm._jit import jit
from polyfm.solvers._convex import Floats, Problem, rotated

_SWEEPS = 200
_MAJORISATIONS = 10
_PROXIMAL_STEPS = 50
_PRECISION = 1e-9
"""Relative change of Z below which a refit has arrived."""


class DiagonalRefit:
    r"""Refit of the weights, :math:`Z = \sum_s \lambda_s p_s p_s^T` with the bases as they are.

    The loss is majorised by its curvature bound, a quadratic function of :math:`\lambda` (for
    squared loss it is that function); with the penalty :math:`\beta \|\lambda\|_1` it is minimised
    by coordinate descent, a soft threshold for each weight.
    """

    n_new = 1
    """Bases that Z is to grow by at a time."""

    def __init__(self, problem: Problem, weights: Floats, bases: Floats) -> None:
        self._problem, self._bases = problem, bases
        self.weights = weights
        self._atoms = problem.atoms(bases)
        self._gram = problem.curvature * (self._atoms.T @ (problem.weight[:, None] * self._atoms))

    def scores(self) -> Floats:
        """Return q(x_i)."""
        return self._atoms @ self.weights

    def norm(self) -> float:
        """Return the norm of Z."""
        return float(np.abs(self.weights).sum())

    def improve(self, offset: Floats, beta: float) -> None:
        """Lower the objective, given the scores of bias and linear weights."""
        for _ in range(_MAJORISATIONS):
            _, slopes = self._problem.loss_and_slopes(offset + self.scores())
            weights = self.weights.copy()
            _soft_threshold_descent(
                self._gram, self._atoms.T @ slopes, weights, beta, _SWEEPS, _PRECISION
            )
            change = np.abs(weights - self.weights).max()
            self.weights = weights
            if change <= _PRECISION * np.abs(weights).max():
                break

    def result(self) -> tuple[Floats, Floats]:
        """Return the bases that have a weight, and their weights."""
        kept = self.weights != 0.0
        return self.weights[kept], self._bases[:, kept]


@jit
def _soft_threshold_descent(gram, gradient, weights, beta, n_sweeps, precision):
    """Minimise g.(v - w) + (v - w).H.(v - w) / 2 + beta |v|_1 over v, from v = w in place.

    ``gradient`` is changed to that at the result.
    """
    n = weights.size
    for _ in range(n_sweeps):
        change, size = 0.0, 0.0
        for s in range(n):
            curvature = gram[s, s]
            if curvature <= 0.0:
                continue
            goal = weights[s] - gradient[s] / curvature
            threshold = beta / curvature
            new = max(goal - threshold, 0.0) + min(goal + threshold, 0.0)
            step = new - weights[s]
            if step != 0.0:
                weights[s] = new
                for t in range(n):
                    gradient[t] += step * gram[t, s]
            change = max(change, abs(step))
            size = max(size, abs(new))
        if change <= precision * size:
            break


class FullRefit:
    r"""Fully corrective refit, :math:`Z = Q B Q^T` over all symmetric B with Q orthonormal.

    After a first diagonal refit, accelerated proximal gradient steps, of which none raises the
    objective: the proximal map of :math:`\beta \|B\|_*` shrinks the eigenvalues of B. Everything
    is of the size of the rank.
    """

    n_new = 4
    """Bases that Z is to grow by at a time: with several, Z turns towards them all at once."""

    def __init__(self, problem: Problem, weights: Floats, bases: Floats) -> None:
        self._problem = problem
        self._diagonal: DiagonalRefit | None = DiagonalRefit(problem, weights, bases)
        self._basis, self._triangular = np.linalg.qr(bases)
        self._products = problem.X @ self._basis
        self._core = (self._triangular * weights) @ self._triangular.T
        self._curvature = 0.0

    def scores(self) -> Floats:
        """Return q(x_i)."""
        return self._scores_of(self._core)

    def norm(self) -> float:
        """Return the nuclear norm of Z."""
        return _nuclear_norm(self._core)

    def result(self) -> tuple[Floats, Floats]:
        """Return eigenvalues and eigenvectors of Z."""
        return rotated(self._core, self._basis)

    def improve(self, offset: Floats, beta: float) -> None:
        """Lower the objective, given the scores of bias and linear weights."""
        if self._diagonal is not None:
            self._diagonal.improve(offset, beta)
            weights, self._diagonal = self._diagonal.weights, None
            self._core = (self._triangular * weights) @ self._triangular.T
            self._curvature = self._largest_curvature()
        core, ahead, momentum = self._core, self._core, 1.0
        best = self._problem.loss_at(offset + self._scores_of(core)) + beta * _nuclear_norm(core)
        for _ in range(_PROXIMAL_STEPS):
            _, slopes = self._problem.loss_and_slopes(offset + self._scores_of(ahead))
            step = 1.0 / self._curvature
            new, norm = _shrunk(ahead - step * self._gradient(slopes), step * beta)
            value = self._problem.loss_at(offset + self._scores_of(new)) + beta * norm
            if value > best:
                if momentum == 1.0:
                    break
                ahead, momentum = core, 1.0
                continue
            change = float(np.abs(new - core).max())
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
            ahead = new + (momentum - 1.0) / following * (new - core)
            core, best, momentum = new, value, following
            if change <= _PRECISION * float(np.abs(core).max()):
                break
        self._core = core

    def _scores_of(self, core: Floats) -> Floats:
        products, basis = self._products, self._basis
        whole = np.einsum("ir,ir->i", products @ core, products)
        if self._problem.diagonal:
            return whole
        diagonal = np.einsum("jr,jr->j", basis @ core, basis)
        return 0.5 * (whole - self._problem.squares @ diagonal)

    def _gradient(self, slopes: Floats) -> Floats:
        whole = self._products.T @ (slopes[:, None] * self._products)
        if self._problem.diagonal:
            return whole
        diagonal = self._problem.squares.T @ slopes
        return 0.5 * (whole - self._basis.T @ (diagonal[:, None] * self._basis))

    def _largest_curvature(self) -> float:
        """Return the largest eigenvalue of the second derivative's bound, by the power method."""
        bound = self._problem.curvature * self._problem.weight
        core = np.eye(len(self._core)) + 0.1
        size = 1.0
        for _ in range(30):
            core = self._gradient(bound * self._scores_of(core / np.linalg.norm(core)))
            size, before = float(np.linalg.norm(core)), size
            if size == 0.0 or abs(size - before) < 1e-3 * size:
                break
        # The method comes from below.
        return 1.05 * size if size > 0.0 else 1.0


def _shrunk(core: Floats, threshold: float) -> tuple[Floats, float]:
    """Return the matrix with its eigenvalues shrunk, and its nuclear norm."""
    values, vectors = np.linalg.eigh(core)
    values = np.sign(values) * np.maximum(np.abs(values) - threshold, 0.0)
    return (vectors * values) @ vectors.T, float(np.abs(values).sum())


def _nuclear_norm(core: Floats) -> float:
    return float(np.abs(np.linalg.eigvalsh(core)).sum())
