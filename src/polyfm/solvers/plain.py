"""What solvers have in common that remember nothing of a parameter but its weight."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from polyfm.data.rows import Rows
from polyfm.models.layout import Layout
from polyfm.solvers._columns import count_visits, measure_units, renew_visits
from polyfm.solvers._start import start_features
from polyfm.solvers.learner import Learner, Settings, allocate, new_model, start_bias
from polyfm.updates import SGD

_PLAIN = SGD()
"""A rule that keeps nothing but the weight: how parameters start."""
_COLLAPSED = 1e-6
"""Factors this small make interactions that no prediction shows."""
_VISITS, _UNIT = 1, 2
"""Columns of the linear records behind the weight."""


@dataclass
class PlainLearner(Learner):
    """A factorized model in the making of which all rows are known when learning begins."""

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
    ) -> Self:
        """Allocate a model and start everything but the rows of its features."""
        shapes = {
            "linear": (n_features, _UNIT + units),
            "table": (n_features + layout.n_dummies, 1, layout.rank),
        }
        blocks = allocate(shapes, dtype, 0)
        learner = cls(new_model(layout, settings, _PLAIN, blocks, n_features), settings)
        learner._start(np.arange(n_features, n_features + layout.n_dummies))
        if start is not None:
            start_bias(learner.model, _PLAIN, settings.penalties.bias, start)
        return learner

    @property
    def n_planes(self) -> int:
        """One: the weight."""
        return 1

    def set_rows(self, rows: Rows) -> None:
        """Make ``rows`` the whole objective, and start the features that are new in them."""
        self.n_rows = rows.n_rows
        linear = self.model.parameters.linear
        counts = np.zeros(len(linear), dtype=rows.numbers.dtype)
        count_visits(rows, counts)
        new = np.flatnonzero((counts > 0) & (linear[:, _VISITS] == 0))
        renew_visits(counts, linear, _VISITS)
        if new.size and linear.shape[1] > _UNIT:
            measure_units(rows, linear, _UNIT, new)
        self._start(new)

    def _start(self, features: NDArray[np.int64]) -> None:
        s = self.settings
        start_features(
            _PLAIN, s.penalties, self.model.parameters, features, s.seed, s.start_scales, 0, False
        )

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
