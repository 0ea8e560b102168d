"""Coordinate descent for factorized models: no learning rate, and an objective that only falls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polyfm.models.factorized import aligned_zeros
from polyfm.models.layout import Layout
from polyfm.solvers._by_column import columns_of, side_by_side
from polyfm.solvers._descent import Descent
from polyfm.solvers.plain import PlainLearner

if TYPE_CHECKING:
    from polyfm.solvers.training import Training


@dataclass
class CoordinateLearner(PlainLearner):
    r"""Minimises :math:`\sum_i s_i \ell(y_i, f(x_i)) + \Omega(\theta)` by a few coordinates.

    A sweep goes over the bias, the linear weights, the factors, the weights of the bases or of the
    degrees. The factors of one feature are learnt ``settings.block_size`` at a time, from the exact
    minimum of a quadratic that equals the objective (squared loss) or lies above it (other losses).
    So the objective never rises.

    Besides the data and the parameters it keeps: the rows again, unless they come in the order of
    their first column, and the rows by columns, both of the data's precision; and in double
    precision four numbers for each row; for each row as many numbers as the kernel's cells
    (degree - 1) times the block size, with a block size below the rank up to eight times that;
    nine numbers for each row of the longest column; and, if the model is of single precision, a
    copy of the parameters.

    References
    ----------
    Blondel, Fujino, Ueda, Ishihata, "Higher-Order Factorization Machines", NIPS 2016, section 4.2.
    """

    @staticmethod
    def train(training: Training) -> None:
        """Run sweeps until the training ends. Classes share the columns."""
        learners = training.learners
        parts = side_by_side(training.rows)
        columns = columns_of(parts[0], learners[0].model.n_features)
        descents = [
            Descent(learner.model, learner.settings, rows, columns)
            for learner, rows in zip(learners, parts, strict=True)
        ]
        while True:
            sweeps = [d.sweep(training.report(k)) for k, d in enumerate(descents)]
            for learner in learners:
                learner.n_visits += learner.n_rows
                learner.n_epochs += 1
            losses_of, objectives = zip(*sweeps, strict=True)
            if training.end_epoch(list(losses_of), list(objectives)):
                break
        for learner in learners:
            learner.tell_collapse()

    @staticmethod
    def tidied(learners: list[Any], layout: Layout) -> tuple[list[Any], Layout]:
        """Drop the bases whose learnt weight is 0, in all classes."""
        if not learners[0].settings.switches.weights:
            return learners, layout
        kept = np.any([learner.model.parameters.weights[0] != 0.0 for learner in learners], axis=0)
        if kept.all():
            return learners, layout
        layout = layout.keeping(kept)
        return [learner._keeping(kept, layout) for learner in learners], layout

    def _keeping(self, kept: NDArray[np.bool_], layout: Layout) -> CoordinateLearner:
        """Return the learner with some of its bases."""
        p, scales = self.model.parameters, self.settings.start_scales[kept]
        table = aligned_zeros((len(p.table), 1, layout.rank), p.table.dtype)
        table[...] = p.table[:, :, kept]
        parameters = p._replace(
            table=table,
            weights=np.ascontiguousarray(p.weights[:, kept]),
            degrees=layout.degrees.astype(p.degrees.dtype),
        )
        model = replace(self.model, columns=layout.columns, parameters=parameters)
        return replace(self, model=model, settings=replace(self.settings, start_scales=scales))

    def advice(self) -> str:
        """Say in words what helps against divergence."""
        return "Raise beta, or scale columns with large values (for example with MaxAbsScaler)."
