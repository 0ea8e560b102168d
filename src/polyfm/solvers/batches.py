"""Stochastic learning in mini-batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polyfm.data.rows import Rows
from polyfm.models._score import Parameters, Plan
from polyfm.models.factorized import aligned_zeros
from polyfm.solvers._accumulate import Accumulate
from polyfm.solvers._batch_epoch import Bench, learn_batches
from polyfm.solvers._threads import Crew
from polyfm.solvers.learner import Settings
from polyfm.solvers.stochastic import StochasticLearner, Work
from polyfm.updates import contract as updates


@dataclass
class BatchLearner(StochasticLearner):
    """Learns some rows at a time: their gradients are those of the same weights.

    What the rule is given is their sum or mean over the rows of a batch, so what it remembers of
    squared gradients are the squares of that. The last batch of an epoch, or of a call of
    ``learn``, may be smaller. Learning takes one thread.
    """

    _numbers: NDArray[np.int32] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._numbers = np.full(self.model.n_features, -1, dtype=np.int32)

    def renewed(self, settings: Settings) -> Self:
        """Return a learner of the same model that goes on with other settings but its own seed."""
        learner = super().renewed(settings)
        if learner.model is self.model:
            learner._numbers = self._numbers
        return learner

    def _grow_marks(self, capacity: int) -> None:
        super()._grow_marks(capacity)
        self._numbers = np.full(capacity, -1, dtype=np.int32)

    def _learn_slice(
        self, crew: Crew, work: list[Work], rows: Rows, order: NDArray[Any], loss_sum: float
    ) -> float:
        s, model = self.settings, self.model
        share = 1.0 if updates.sums_gradients(s.rule) else 1.0 / self.n_rows
        n_done, loss_sum = learn_batches(
            model.kernel, s.loss, s.rule, Accumulate(), s.penalties, s.switches, model.parameters,
            model.plan, self._bench(rows, order), rows, order, s.batch_size, s.batch_mean,
            float(self.n_visits), share, work[0].cells, loss_sum,
        )  # fmt: skip
        if n_done < len(order):
            raise self._divergence(rows, int(order[n_done]))
        self.n_visits += len(order)
        return float(loss_sum)

    def _bench(self, rows: Rows, order: NDArray[Any]) -> Bench:
        """Allocate room for the features that a batch can have."""
        model, p = self.model, self.model.parameters
        room = min(model.n_features, min(self.settings.batch_size, len(order)) * rows.longest)
        linear = np.zeros((room, 3), p.linear.dtype)
        linear[:, 2] = 1.0
        blocks = {
            name: np.zeros((2, getattr(p, name).shape[1]), p.linear.dtype)
            for name in ("bias", "weights", "theta")
        }
        table = aligned_zeros((room + model.n_dummies, 2, model.rank), p.table.dtype)
        return Bench(
            Parameters(linear=linear, table=table, degrees=p.degrees, **blocks),
            Plan(model.plan.chunks, model.n_dummies, room),
            self._numbers,
            np.empty(room, dtype=np.int64),
            np.empty(rows.longest, dtype=rows.indices.dtype),
        )
