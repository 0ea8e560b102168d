"""Coordinate descent for factorized models: no learning rate, and an objective that only falls."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from polyfm.data.rows import Rows
from polyfm.models.layout import Layout
from polyfm.solvers._columns import count_visits, measure_units
from polyfm.solvers._descent import Descent
from polyfm.solvers._start import start_features
from polyfm.solvers.learner import Learner, Report, Settings, allocate, new_model, start_bias
from polyfm.updates import SGD

if TYPE_CHECKING:
    from polyfm.solvers.training import Training

_PLAIN = SGD(0.0, 0.0, 0.0)
"""A rule that keeps nothing but the weight: how parameters start."""
_COLLAPSED = 1e-6
"""Factors this small make interactions that no prediction shows."""


@dataclass
class CoordinateLearner(Learner):
    r"""Minimises :math:`\sum_i s_i \ell(y_i, f(x_i)) + \Omega(\theta)` by a few coordinates.

    A sweep goes over the bias, the linear weights, the factors, the weights of the bases or of the
    degrees. The factors of one feature are learnt ``settings.block_size`` at a time, from the exact
    minimum of a quadratic that equals the objective (squared loss) or lies above it (other losses).
    So the objective never rises.

    Besides the data and the parameters it keeps, in double precision: the data by columns; three
    numbers for each row; for each row as many numbers as the kernel's cells (degree - 1) times the
    block size; and, if the model is of single precision, a copy of the parameters.

    References
    ----------
    Blondel, Fujino, Ueda, Ishihata, "Higher-Order Factorization Machines", NIPS 2016, section 4.2.
    """

    _run: Descent | None = field(init=False, repr=False, default=None)

    @classmethod
    def create(
        cls,
        layout: Layout,
        settings: Settings,
        *,
        n_features: int,
        start: float | None,
        units: bool,
        dtype: DTypeLike,
    ) -> CoordinateLearner:
        """Allocate a model and start everything but the rows of its features."""
        shapes = {
            "linear": (n_features, 2 + units),
            "table": (n_features + layout.n_dummies, 1, layout.rank),
        }
        blocks = allocate(shapes, dtype, 0)
        learner = cls(new_model(layout, settings, _PLAIN, blocks, n_features), settings)
        learner._start(np.arange(n_features, n_features + layout.n_dummies))
        if start is not None:
            start_bias(learner.model, _PLAIN, settings.penalties.bias, start)
        return learner

    def set_rows(self, rows: Rows) -> None:
        """Make ``rows`` the whole objective, and start the features that are new in them."""
        self.n_rows = rows.n_rows
        self._meet(rows)
        self._run = Descent(self.model, self.settings, rows)

    @staticmethod
    def train(training: Training) -> None:
        """Run sweeps until the training ends."""
        while True:
            sweeps = [
                learner.epoch(report=training.report(k))
                for k, learner in enumerate(training.learners)
            ]
            losses_of, objectives = zip(*sweeps, strict=True)
            if training.end_epoch(list(losses_of), list(objectives)):
                break
        for learner in training.learners:
            learner.tell_collapse()

    def epoch(self, *, report: Report | None = None) -> tuple[float, float]:
        """Go once over all parameters; return the mean loss and the mean objective after it."""
        if self._run is None:
            raise RuntimeError("set_rows has to be called before epoch.")
        result = self._run.sweep(report)
        self.n_visits += self.n_rows
        self.n_epochs += 1
        return result

    def tell_collapse(self) -> None:
        """Warn if the penalty has taken all factors to zero, where the objective is flat."""
        table = self.model.parameters.table
        if table.size and np.abs(table).max() < _COLLAPSED:
            warnings.warn(
                "All factors have shrunk to zero, so the model has no interactions: lower beta, or "
                "raise init_scale if they did so from the start.",
                ConvergenceWarning,
                stacklevel=2,
            )

    def advice(self) -> str:
        """Say in words what helps against divergence."""
        return "Raise beta, or scale columns with large values (for example with MaxAbsScaler)."

    @property
    def n_planes(self) -> int:
        """How many numbers are kept for a coordinate: its weight."""
        return 1

    def __getstate__(self) -> dict[str, Any]:
        # The rows belong to a run, not to the model.
        return {**self.__dict__, "_run": None}

    def _meet(self, rows: Rows) -> None:
        linear = self.model.parameters.linear
        counts = np.zeros(len(linear), dtype=rows.numbers.dtype)
        count_visits(rows, counts)
        new = np.flatnonzero((counts > 0) & (linear[:, 1] == 0))
        met = counts > 0
        linear[met, 1] = counts[met]
        if new.size and linear.shape[1] > 2:
            measure_units(rows, linear, 2, new)
        self._start(new)

    def _start(self, features: NDArray[np.int64]) -> None:
        s = self.settings
        start_features(_PLAIN, s.penalties, self.model.parameters, features, s.seed, s.start_scales)
