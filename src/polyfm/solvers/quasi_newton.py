"""Full-batch learning of factorized models: L-BFGS on the whole objective."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, OptimizeResult, minimize
from threadpoolctl import threadpool_limits

from polyfm.exceptions import DivergenceError
from polyfm.losses import Quantile
from polyfm.losses import contract as losses
from polyfm.penalties import L2
from polyfm.solvers._accumulate import Accumulator, NotFiniteError
from polyfm.solvers._columns import count_visits
from polyfm.solvers.learner import Settings
from polyfm.solvers.plain import PlainLearner

if TYPE_CHECKING:
    from polyfm.solvers.training import Training

_MEMORY = 10
"""Pairs of steps and changes of the gradient that L-BFGS builds its curvature from."""
_WALL = 10.0
"""How far above the last objective one counts that is not finite, as a multiple of it."""
_LEAST_CURVATURE = 1e-30
_TYPICAL_SLOPE = 0.03
"""Square of what an interaction adds to the prediction for a unit of one of its factors."""


@dataclass
class QuasiNewtonLearner(PlainLearner):
    r"""A factorized model in the making, learnt from all rows at once.

    It lowers :math:`F = \sum_i s_i \ell(y_i, f(x_i)) + \Omega(\theta)` for a smooth loss and a
    ridge penalty by L-BFGS-B; basis weights stay within their bounds. A pass over the rows gives
    F and its gradient; an iteration takes one pass, or a few where the step has to be shortened,
    and never raises F. Columns in no row keep the weights they have.

    Besides data and model it keeps, in double precision, some 45 numbers for each parameter, two
    more for each further thread, and a copy of the data's values if they are single.

    References
    ----------
    Zhu, Byrd, Lu, Nocedal, "Algorithm 778: L-BFGS-B", ACM TOMS 1997.
    """

    def __post_init__(self) -> None:
        _check_smooth(self.settings)

    @staticmethod
    def train(training: Training) -> None:
        """Iterate until the training ends, or until no step lowers the objective."""
        learner, rows = training.learners[0], training.rows[0]
        counts = np.zeros(learner.model.n_features, dtype=rows.numbers.dtype)
        count_visits(rows, counts)
        accumulator = Accumulator(
            learner.model,
            learner.settings.switches,
            rows,
            np.flatnonzero(counts),
            learner.settings.n_jobs,
        )
        # The vectors are too short for the threads of BLAS, which wait for each other for longer
        # than they work where other processes want the cores, too.
        with accumulator, threadpool_limits(1, user_api="blas"):
            _Descent(training, accumulator).run()
        learner.tell_collapse()

    def advice(self) -> str:
        """Say in words what helps against divergence."""
        return "Scale columns with large values (for example with MaxAbsScaler)."


def _check_smooth(settings: Settings) -> None:
    if isinstance(settings.loss, Quantile):
        raise ValueError(
            "solver='lbfgs' needs a loss without corners, which loss='quantile' has: choose "
            "loss='huber' or another solver."
        )
    penalties = settings.penalties
    if not (isinstance(penalties.linear, L2) and isinstance(penalties.factors, L2)):
        raise ValueError(
            "solver='lbfgs' needs a penalty without corners, penalty='l2': 'l1' and 'elasticnet' "
            "are for other solvers."
        )


class _Descent:
    """L-BFGS on the sum of all learners' objectives.

    One iteration moves all learners, so that an epoch has one line in the history. The variables
    are the weights divided by what brings the curvature along each to about 1: frequent and rare
    features, large and small columns are learnt alike.
    """

    def __init__(self, training: Training, accumulator: Accumulator) -> None:
        self._training, self._accumulator = training, accumulator
        self._learners = training.learners
        self._targets = [rows.target.astype(np.float64) for rows in training.rows]
        first = self._learners[0]
        self._strength = _strengths(first, accumulator)
        self._scale = _scales(self._strength + _curvatures(first, accumulator))
        self._value = np.inf
        """The least objective so far, that of the last iteration or below."""
        self._losses: list[float] = []
        self._objectives: list[float] = []

    def run(self) -> None:
        """Iterate; the learners have the weights of the last iteration when this ends or fails."""
        start = [self._accumulator.read(learner.model) / self._scale for learner in self._learners]
        variables = np.concatenate(start)
        if variables.size:
            minimize(
                self._evaluate,
                variables,
                jac=True,
                method="L-BFGS-B",
                bounds=self._bounds(),
                callback=self._end_iteration,
                options={
                    "maxcor": _MEMORY,
                    "maxiter": self._training.max_iter,
                    "maxfun": sys.maxsize,
                    # Training decides; these end what cannot go on.
                    "ftol": 0.0,
                    "gtol": 0.0,
                },
            )
        if self._training.n_epochs == 0:
            # Already at the optimum: an epoch that has changed nothing.
            self._evaluate(variables)
            self._training.end_epoch(self._losses, self._objectives)

    def _evaluate(self, variables: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return objective and gradient, or a wall where a step has gone too far."""
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                value, gradient = self._objective(variables)
            except NotFiniteError as error:
                row = error.row
            else:
                row = -1
                if np.isfinite(value) and np.isfinite(gradient).all():
                    self._value = min(self._value, value)
                    return value, gradient
        if not np.isfinite(self._value):
            raise self._divergence(row)
        wall = self._value + _WALL * (abs(self._value) + 1.0)
        return wall, np.zeros_like(variables)

    def _objective(self, variables: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        losses, objectives, gradients = [], [], []
        for k, part in enumerate(np.split(variables, len(self._learners))):
            learner, weights = self._learners[k], part * self._scale
            loss, gradient = self._accumulator.loss_and_gradient(
                weights, learner.settings.loss, self._targets[k], self._training.report(k)
            )
            learner.n_visits += learner.n_rows
            pull = self._strength * weights
            losses.append(loss / learner.n_rows)
            objectives.append((loss + 0.5 * float(pull @ weights)) / learner.n_rows)
            gradients.append((gradient + pull) * self._scale)
        self._losses, self._objectives = losses, objectives
        return sum(objectives) * self._learners[0].n_rows, np.concatenate(gradients)

    def _end_iteration(self, intermediate_result: OptimizeResult) -> None:
        """Take in an iterate, which is always what was evaluated last."""
        parts = np.split(intermediate_result.x, len(self._learners))
        for learner, part in zip(self._learners, parts, strict=True):
            self._accumulator.write(part * self._scale, learner.model)
            learner.n_epochs += 1
        if self._training.end_epoch(self._losses, self._objectives):
            raise StopIteration

    def _bounds(self) -> Bounds | None:
        settings = self._learners[0].settings
        if not settings.switches.weights:
            return None
        free = dict.fromkeys(("bias", "linear", "theta", "table"), np.inf)
        bound = self._accumulator.spread(weights=settings.penalties.weights.bound, **free)
        bounds = np.tile(bound / self._scale, len(self._learners))
        return Bounds(-bounds, bounds)

    def _divergence(self, row: int) -> DivergenceError:
        where = f" of row {row}" if row >= 0 else ""
        learner = self._learners[0]
        return DivergenceError(
            f"training diverged in epoch {learner.n_epochs + 1}: the prediction or the gradient"
            f"{where} is not a finite number at the start. {learner.advice()}"
        )


def _strengths(learner: QuasiNewtonLearner, accumulator: Accumulator) -> NDArray[np.float64]:
    """Return the strength of the ridge penalty of each weight."""
    s = learner.settings
    linear = accumulator.of_features(s.linear_strengths)
    factors = accumulator.of_features(s.factor_strengths)
    return accumulator.spread(
        bias=s.penalties.bias.strength,
        linear=s.penalties.linear.strength * linear,
        weights=0.0,
        theta=s.penalties.theta.strength,
        table=s.penalties.factors.strength * accumulator.rows_of_table(factors, 1.0),
    )


def _curvatures(learner: QuasiNewtonLearner, accumulator: Accumulator) -> NDArray[np.float64]:
    """Return about the second derivative of the sum of losses by each weight.

    For linear weights it is at most the sum of squares of the column times the curvature of the
    loss. For all else it depends on the other parameters, and this is a guess.
    """
    curvature = float(losses.curvature(learner.settings.loss))
    if not np.isfinite(curvature):
        curvature = 1.0
    every_row = curvature * accumulator.weight
    columns = curvature * accumulator.squares
    return accumulator.spread(
        bias=every_row,
        linear=columns,
        weights=_TYPICAL_SLOPE * every_row,
        theta=_TYPICAL_SLOPE * every_row,
        table=_TYPICAL_SLOPE * accumulator.rows_of_table(columns, every_row),
    )


def _scales(curvatures: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return about one over the root of each curvature, as a power of two: exact to multiply by."""
    exponents = -0.5 * np.log2(np.maximum(curvatures, _LEAST_CURVATURE))
    return np.asarray(np.exp2(np.round(exponents)))
