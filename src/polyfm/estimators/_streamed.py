"""What the estimators that learn by FTRL-Proximal have in common: a stream is a stream to them."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.estimators import _parts
from polyfm.estimators._base import BaseFM
from polyfm.estimators._numbers import check_number
from polyfm.estimators._validation import Held, Labelled
from polyfm.updates import contract as updates
from polyfm.updates.ftrl import learning_rates

_VISITS = 100_000
_MOST_EPOCHS = 100


class Streamed(BaseFM):
    """Base of the estimators for which rows one by one and rows at once are the same stream.

    ``partial_fit`` reads nothing off its first batch. ``fit``, which has all rows, brings target
    and columns to unit size, and goes over few rows more often than over many.
    """

    max_iter: Any
    solver = "ftrl"
    # What FTRL-Proximal leaves to the other solvers.
    schedule = "constant"
    power_t = 0.25
    block_size = 8

    def _check_parameters(self) -> None:
        if self.max_iter != "auto":
            check_number("max_iter", self.max_iter, Integral, least=1)
        _parts.check_parameters(self, besides=("max_iter",))

    def _measures(self, streaming: bool) -> bool:
        return self._measures_stream or not streaming

    def _find_max_iter(self, n_rows: int) -> int:
        if self.max_iter != "auto":
            return int(self.max_iter)
        return int(np.clip(_VISITS // n_rows, 1, _MOST_EPOCHS))

    def _hold_out(self, rows: Labelled, X_val: Any, y_val: Any, sample_weight_val: Any) -> Held:
        once = self._find_max_iter(rows.n_rows) == 1
        given = (X_val, y_val, sample_weight_val)
        if self.early_stopping == "auto" and once and all(part is None for part in given):
            # There is no epoch to choose, and every row tells something.
            return Held(rows)
        return super()._hold_out(rows, X_val, y_val, sample_weight_val)

    def count_nonzero(self) -> int:
        """Return the number of weights that are not 0, over all outputs, biases among them."""
        self._check_is_fitted()
        total = 0
        for learner in self._learners:
            p = learner.model.parameters
            blocks = (p.bias[0], p.linear[:, 0], p.table[:, 0])
            total += sum(int(np.count_nonzero(block)) for block in blocks)
        return total

    @property
    def counts_(self) -> NDArray[np.int64]:
        """In how many rows each column was, (n_features,): of ``fit`` and of the stream after it.

        Columns that were in none of the rows of a ``fit`` that went on from an earlier one count 1.
        """
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__} has no fitted attributes before fit.")
        learner = self._learners[0]
        return np.asarray(learner.model.parameters.linear[:, learner.n_planes], dtype=np.int64)

    def _rates_of(self, block: str) -> NDArray[np.float64]:
        """Return the present learning rate of each weight of a block, in the learners' units."""
        rates = []
        for learner in self._learners:
            p, rule = learner.model.parameters, learner.settings.rule
            planes = getattr(p, block)[: learner.model.n_features]
            linear, n_planes = p.linear, learner.n_planes
            has_unit = linear.shape[1] > n_planes + 1
            units = linear[:, n_planes + 1] if has_unit else np.ones(len(linear))
            units = np.where(units > 0, units, 1.0).reshape(-1, *[1] * (planes.ndim - 2))
            size = rule.learning_rate * updates.unit_rate(rule, units)
            rates.append(learning_rates(rule, planes[:, 2], size))
        return rates[0] if len(rates) == 1 else np.stack(rates)
