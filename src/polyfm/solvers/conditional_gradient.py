"""Convex factorization machines: a matrix Z under a nuclear norm, grown basis by basis."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyfm.exceptions import DivergenceError
from polyfm.solvers._convex import (
    LARGEST,
    Floats,
    Gradient,
    Point,
    Problem,
    diagonalised,
    dual_value,
)
from polyfm.solvers._linear_block import LinearBlock
from polyfm.solvers._refit import DiagonalRefit, FullRefit

_ROUNDS = 6
"""Times at most that the two blocks are solved for in turn before the rank grows again."""
_ROUNDING = 1e-14
"""Share of the objective below which a gain is none."""
_ENOUGH = 0.01
"""Share of the tolerance below which another round is not worth while."""
_AUTO_BETA = 0.25
_AUTO_TRACE = 5.0
REFITS: dict[str, Any] = {"diagonal": DiagonalRefit, "full": FullRefit}


@dataclass
class ConvexFit(ABC):
    """A convex model in the making.

    Parameters
    ----------
    problem : Problem
        Data, loss and the penalty of the linear weights.
    size : float or None
        What bounds Z, in the unit of the problem: the penalty of its nuclear norm, or its trace.
        None asks for a value measured on the data.
    max_rank : int
        Bases at most.
    tol : float
        Training ends when the duality gap is at most ``tol`` times the objective.
    eigenvectors : ndarray of shape (d, n)
        Where the search for the first bases starts; later ones start from those before.
    refit : {"diagonal", "full"}
        How greedy coordinate descent refits Z.
    point : Point
        The model, to start from and as it is; replaced as a whole by each step.
    """

    problem: Problem
    size: float | None
    max_rank: int
    tol: float
    eigenvectors: Floats
    refit: str
    point: Point
    objective: float = field(init=False, default=np.inf)
    loss: float = field(init=False, default=np.inf)
    eigenvalues: Floats = field(init=False, default_factory=lambda: np.zeros(1))
    done: bool = field(init=False, default=False)
    _bound: float = field(init=False, default=-np.inf)
    _linear: LinearBlock = field(init=False)

    def __post_init__(self) -> None:
        self._linear = LinearBlock(self.problem)

    def step(self) -> None:
        """Grow Z and solve for everything else; the first step solves for all but Z.

        Raises
        ------
        DivergenceError
            When the objective is no longer a finite number.
        """
        before = self.objective
        if np.isfinite(before):
            self._improve()
        else:
            self.point = self._linear.solve(self.point, self._quadratic())
        self._certify()
        arrived = self.gap <= self.tol * self.objective
        self.done = arrived or (np.isfinite(before) and self._is_stuck(before))

    def _is_stuck(self, before: float) -> bool:
        """Whether a step has gained so little that further ones are not worth while."""
        full = self.point.rank >= self.max_rank
        return before - self.objective <= (_ENOUGH * self.tol if full else _ROUNDING) * before

    def result(self) -> Point:
        """Return the model with orthonormal bases, in the unit of the features."""
        weights, bases = diagonalised(self.point.weights, self.point.bases)
        return self.point._replace(weights=weights, bases=bases).in_unit(self.problem.unit)

    @staticmethod
    @abstractmethod
    def size_in_unit(problem: Problem, size: float | None) -> float | None:
        """Bring what bounds Z to the unit of the problem."""

    @abstractmethod
    def size_outside(self) -> float:
        """Return what bounds Z in the unit of the features."""

    @abstractmethod
    def _new_bases(self, gradient: Gradient) -> tuple[Floats, Floats]:
        """Return eigenvalues and eigenvectors of the bases that would lower the loss most."""

    @abstractmethod
    def _measured_size(self, slopes: Floats) -> float:
        """Return the size that the data ask for."""

    @abstractmethod
    def _improve(self) -> None:
        """Replace the point by a better one."""

    @abstractmethod
    def _size_penalty(self, point: Point) -> float:
        """Return the penalty of Z."""

    @abstractmethod
    def _dual(self, scores: Floats, gradient: Gradient) -> float:
        """Return a lower bound on the least objective."""

    def _quadratic(self) -> Floats:
        return self.problem.atoms(self.point.bases) @ self.point.weights

    def _certify(self) -> None:
        """Measure objective and duality gap, and find the next bases."""
        problem, point = self.problem, self.point
        scores = problem.scores(point)
        self.loss, slopes = problem.loss_and_slopes(scores)
        gradient = problem.gradient(slopes)
        self.eigenvalues, self.eigenvectors = self._new_bases(gradient)
        if self.size is None:
            self.size = self._measured_size(slopes)
        self.objective = self.loss + problem.ridge(point) + self._size_penalty(point)
        if not np.isfinite(self.objective):
            raise DivergenceError(
                "training diverged: the objective is no longer finite. Bring the columns of X to "
                "a common scale (for example with MaxAbsScaler), or raise alpha and beta."
            )
        self._bound = max(self._bound, self._dual(scores, gradient))

    @property
    def _accuracy(self) -> float:
        """Relative accuracy of eigenvalues."""
        return min(max(0.1 * self.tol, 1e-12), 1e-3)

    @property
    def gap(self) -> float:
        """The duality gap: a bound on the objective minus its least value."""
        return max(self.objective - self._bound, 0.0)


class Greedy(ConvexFit):
    r"""Two-block descent with greedy coordinate descent on Z.

    .. math:: \min_{b, w, Z} L(b, w, Z) + \frac{\alpha}{2} \|w\|^2 + \beta \|Z\|_*

    In turn bias and linear weights are solved for, the eigenvector of the largest eigenvalue in
    modulus of the gradient G by Z becomes a basis of weight 0, and Z is refitted with its bases.
    Those without a weight are dropped; when there are as many as there may be, Z is diagonalised.
    The objective counts :math:`\sum_s |\lambda_s|`, which is :math:`\|Z\|_*` for orthonormal bases
    and no less for others.

    The least objective is bounded from below by its dual at :math:`c \, \ell'`, where
    :math:`c = \min(1, \beta / \|G\|_2)` makes that point feasible.

    References
    ----------
    Blondel, Fujino, Ueda, "Convex Factorization Machines", ECML PKDD 2015.
    """

    def _new_bases(self, gradient: Gradient) -> tuple[Floats, Floats]:
        start = self.eigenvectors.sum(axis=1)
        return gradient.extreme("LM", REFITS[self.refit].n_new, start, self._accuracy)

    @staticmethod
    def size_in_unit(problem: Problem, size: float | None) -> float | None:
        """Bring a penalty to the unit of the problem."""
        return None if size is None else problem.penalty(size)

    def size_outside(self) -> float:
        """Return the penalty in the unit of the features."""
        return self.beta * self.problem.unit * self.problem.unit

    @property
    def beta(self) -> float:
        """The penalty of the nuclear norm."""
        return float(self.size or 0.0)

    def _measured_size(self, slopes: Floats) -> float:
        return _AUTO_BETA * noise_level(self.problem, slopes)

    def _size_penalty(self, point: Point) -> float:
        return self.beta * float(np.abs(point.weights).sum())

    def _dual(self, scores: Floats, gradient: Gradient) -> float:
        size = abs(float(self.eigenvalues[0])) * (1.0 + self._accuracy)
        share = min(1.0, self.beta / size) if size > 0 else 1.0
        return dual_value(self.problem, self.point, scores, gradient.slopes, share)

    def _improve(self) -> None:
        point = self.point
        if point.rank == self.max_rank:
            weights, bases = diagonalised(point.weights, point.bases)
            point = point._replace(weights=weights, bases=bases)
        worth = np.flatnonzero(np.abs(self.eigenvalues) > self.beta)[: self.max_rank - point.rank]
        if len(worth):
            point = point._replace(
                weights=np.append(point.weights, np.zeros(len(worth))),
                bases=np.column_stack([point.bases, self.eigenvectors[:, worth]]),
            )
        if point.rank == 0:
            self.point = self._linear.solve(point, np.zeros(len(self.problem.target)))
            return
        subspace = REFITS[self.refit](self.problem, point.weights, point.bases)
        self._descend(point, subspace)

    def _descend(self, point: Point, subspace: Any) -> None:
        """Solve for Z and for the linear weights in turn, as long as that gains something."""
        problem, objective = self.problem, self.objective
        for _ in range(_ROUNDS):
            subspace.improve(problem.linear_scores(point), self.beta)
            quadratic = subspace.scores()
            point = self._linear.solve(point, quadratic)
            before = objective
            objective = problem.loss_at(problem.linear_scores(point) + quadratic)
            objective += problem.ridge(point) + self.beta * subspace.norm()
            if objective >= before - _ENOUGH * self.tol * objective:
                break
        weights, bases = subspace.result()
        self.point = point._replace(weights=weights, bases=bases)


class Hazan(ConvexFit):
    r"""Conditional gradient over the positive semidefinite matrices of bounded trace.

    .. math:: \min_{b, w, Z} L(b, w, Z) + \frac{\alpha}{2} \|w\|^2 \quad
        \text{subject to } Z \succeq 0,\; \mathrm{tr} Z \le \eta

    for squared loss. In turn bias and linear weights are solved for and Z moves towards
    :math:`\eta p p^T`, with p the eigenvector of the largest eigenvalue :math:`\mu` of -G (towards
    0 if there is no positive one), by the best step in [0, 1]. The least objective is bounded from
    below by its dual at :math:`\ell'`, from which :math:`\eta \mu_+` is taken off.

    References
    ----------
    Yamada, Lian, Goyal, Chen, Wimalawarne, Khan, Kaski, Mamitsuka, Chang, "Convex Factorization
    Machine for Toxicogenomics Prediction", KDD 2017.
    """

    @staticmethod
    def size_in_unit(problem: Problem, size: float | None) -> float | None:
        """Bring a trace to the unit of the problem."""
        return None if size is None else min(size * problem.unit * problem.unit, LARGEST)

    def size_outside(self) -> float:
        """Return the trace in the unit of the features."""
        return self.trace / self.problem.unit / self.problem.unit

    @property
    def trace(self) -> float:
        """The bound on the trace."""
        return float(self.size or 0.0)

    def _new_bases(self, gradient: Gradient) -> tuple[Floats, Floats]:
        downwards = gradient.problem.gradient(-gradient.slopes)
        return downwards.extreme("LA", 1, self.eigenvectors[:, 0], self._accuracy)

    def _is_stuck(self, before: float) -> bool:
        return self.point.rank >= self.max_rank or super()._is_stuck(before)

    def _measured_size(self, slopes: Floats) -> float:
        return _AUTO_TRACE * best_weight(self.problem, self.eigenvalues[0], self.eigenvectors)

    def _size_penalty(self, point: Point) -> float:
        return 0.0

    def _dual(self, scores: Floats, gradient: Gradient) -> float:
        reach = self.trace * max(float(self.eigenvalues[0]), 0.0) * (1.0 + self._accuracy)
        return dual_value(self.problem, self.point, scores, gradient.slopes, 1.0) - reach

    def _improve(self) -> None:
        problem, point = self.problem, self.point
        quadratic = self._quadratic()
        goal = np.zeros_like(quadratic)
        if self.eigenvalues[0] > 0:
            goal = self.trace * problem.atoms(self.eigenvectors)[:, 0]
        direction = goal - quadratic
        _, slopes = problem.loss_and_slopes(problem.linear_scores(point) + quadratic)
        curvature = float(problem.weight @ direction**2)
        step = -float(slopes @ direction) / curvature if curvature > 0 else 0.0
        step = min(max(step, 0.0), 1.0)
        weights, bases = (1.0 - step) * point.weights, point.bases
        if self.eigenvalues[0] > 0:
            weights = np.append(weights, step * self.trace)
            bases = np.column_stack([bases, self.eigenvectors])
        weights, bases = _positive(*diagonalised(weights, bases))
        point = point._replace(weights=weights, bases=bases)
        self.point = self._linear.solve(point, problem.atoms(bases) @ weights)


def _positive(weights: Floats, bases: Floats) -> tuple[Floats, Floats]:
    """Drop what rounding has made negative."""
    kept = weights > 0
    return weights[kept], bases[:, kept]


def noise_level(problem: Problem, slopes: Floats) -> float:
    r"""Return the spectral norm that G is likely to have if there are no interactions.

    Slopes of random sign and mean square :math:`\sigma^2` make G a random symmetric matrix with
    entries of variance :math:`v_{jk} = \sigma^2 \sum_i s_i x_{ij}^2 x_{ik}^2` (a quarter without
    the diagonal of Z), whose norm is about :math:`2 \max_j \sqrt{\sum_k v_{jk}}`.
    """
    weight = problem.weight
    variance = float((slopes**2 / weight).sum() / weight.sum())
    squares = problem.squares
    lengths = squares @ np.ones(problem.n_features)
    sums = squares.T @ (weight * lengths)
    if not problem.diagonal:
        sums = 0.25 * (sums - squares.power(2).T @ weight)
    return 2.0 * float(np.sqrt(max(variance * sums.max(initial=0.0), 0.0)))


def best_weight(problem: Problem, eigenvalue: float, basis: Floats) -> float:
    """Return the weight that a first basis (d, 1), all alone, would like to have."""
    atom = problem.atoms(basis)[:, 0]
    curvature = float(problem.weight @ atom**2)
    return max(eigenvalue, 0.0) / curvature if curvature > 0 else 0.0


METHODS: dict[str, type[ConvexFit]] = {"greedy": Greedy, "hazan": Hazan}
