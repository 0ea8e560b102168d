"""What the two strongly hierarchical factorization machines have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.estimators._numbers import check_number
from polyfm.estimators._streamed import Streamed
from polyfm.solvers.batches import BatchLearner
from polyfm.solvers.learner import Learner, Settings
from polyfm.solvers.stochastic import StochasticLearner
from polyfm.updates import FTRLPower, FTRLProximal

_STARTS = ("auto", "exact", "evidence")
_ORTHOGONAL = 1e-10
"""Cosine below which two vectors count as orthogonal."""


@dataclass(frozen=True)
class Hierarchy:
    r"""What strong hierarchy rests on, and how sparse the factors are; of one output.

    A feature with :math:`v_i \neq 0` has interactions. That it then has a main effect, too, takes
    a context :math:`v_0 \neq 0` that is not orthogonal to :math:`v_i`.
    """

    context_norm: float
    """Length of :math:`v_0`."""
    cosines: NDArray[np.float64]
    r"""(n_features,): cosine of :math:`v_i \circ \lambda` and :math:`v_0`, 0 where one is 0."""
    zero_factors: NDArray[np.int64]
    """(n_features,): how many of a feature's factors are exactly 0."""
    zero_share: float
    """Share of features with :math:`v_i = 0` among those that were in some row."""
    orthogonal_share: float
    r"""Share of features with :math:`v_i \neq 0` orthogonal to :math:`v_0`, among the same."""

    @property
    def holds(self) -> bool:
        """Whether all features with interactions have main effects."""
        return self.orthogonal_share == 0.0


class Hierarchical(Streamed):
    """Base of the models in which main effects are interactions with a context."""

    rank: int
    init_scale: Any
    initial: float
    power: float
    batch_size: int
    batch_gradient: str
    start: str
    # What the model of degree 2 with a context leaves to the others.
    order = 2
    kernel = "anova"
    fit_lower: str | None = "augment"
    fit_linear = False
    alpha: Any = 0.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("initial", self.initial, Real, above=0)
        check_number("power", self.power, Real, above=0, most=1)
        check_number("batch_size", self.batch_size, Integral, least=1)
        if self.batch_gradient not in ("sum", "mean"):
            raise ValueError(
                f"batch_gradient must be 'sum' or 'mean', got {self.batch_gradient!r}."
            )
        if self.start not in _STARTS:
            raise ValueError(f"start must be one of {_STARTS}, got {self.start!r}.")

    @property
    def _starts_by_evidence(self) -> bool:
        """Whether features start at 0 where the penalty is stronger than their random start."""
        return self.start == "evidence" or (self.start == "auto" and self._has_l1)

    @property
    def _has_l1(self) -> bool:
        """Whether a part of the penalty is L1."""
        return self.penalty == "l1" or (self.penalty == "elasticnet" and float(self.l1_ratio) > 0)

    def _find_learner(self) -> type[Learner]:
        return BatchLearner if self.batch_size > 1 else StochasticLearner

    def _settings(self, loss: Any, n_rows: int, seed: int) -> Settings:
        settings = super()._settings(loss, n_rows, seed)
        rate, initial, power = float(self.learning_rate), float(self.initial), float(self.power)
        proximal = power == 0.5
        return replace(
            settings,
            switches=settings.switches._replace(by_evidence=self._starts_by_evidence),
            rule=FTRLProximal(rate, 0.0, initial) if proximal else FTRLPower(rate, initial, power),
            batch_size=int(self.batch_size),
            batch_mean=self.batch_gradient == "mean",
        )

    def _go_on(self, loss: Any, n_rows: int) -> None:
        super()._go_on(loss, n_rows)
        kind: Any = self._find_learner()
        self._learners = [
            learner
            if type(learner) is kind
            else kind(
                learner.model, learner.settings, learner.n_visits, learner.n_rows, learner.n_epochs
            )
            for learner in self._learners
        ]

    @property
    def context_(self) -> NDArray[Any]:
        """Factors :math:`v_0` of the context, (rank,) or (n_classes, rank)."""
        return np.asarray(self.dummy_factors_[2][..., 0, :])

    @property
    def main_effects_(self) -> NDArray[Any]:
        r"""Main effects :math:`\langle v_i \circ \lambda, v_0 \rangle`.

        Of shape (n_features,) or (n_classes, n_features).
        """
        weighted = self.weights_[2] * self.context_
        return np.asarray(np.einsum("...dk,...k->...d", self.factors_[2], weighted))

    @property
    def learning_rates_(self) -> NDArray[np.float64]:
        """Present learning rate of each factor, (n_features, rank), classes first if several.

        In the unit of the standardised target and column, if ``fit`` came first.
        """
        self._exported  # noqa: B018  # says that there is none before fit
        return self._rates_of("table")

    def check_assumptions(self) -> Any:
        r"""Report whether strong hierarchy holds, and how sparse the factors are.

        An interaction :math:`\langle v_i \circ \lambda, v_j \rangle \neq 0` takes
        :math:`v_i \neq 0` and :math:`v_j \neq 0`. Both features then have main effects, unless
        :math:`v_0 = 0` or :math:`v_i \circ \lambda` is orthogonal to it.

        Returns
        -------
        Hierarchy, or a list of them where there are more than two classes

        Raises
        ------
        NotFittedError
            Before fit or partial_fit.
        """
        self._check_is_fitted()
        several = len(self._learners) > 1
        v, v0, weights = self.factors_[2], self.context_, self.weights_[2]
        if not several:
            return _report(v, v0, weights, self.counts_ > 0)
        return [_report(*parts, self.counts_ > 0) for parts in zip(v, v0, weights, strict=True)]


def _report(
    v: NDArray[Any], v0: NDArray[Any], weights: NDArray[Any], seen: NDArray[np.bool_]
) -> Hierarchy:
    weighted = (v * weights).astype(np.float64)
    sizes = np.linalg.norm(weighted, axis=1) * np.linalg.norm(v0)
    products = weighted @ v0
    cosines = np.divide(products, sizes, out=np.zeros(len(v)), where=sizes > 0)
    present = v.any(axis=1)
    n_seen = max(int(seen.sum()), 1)
    orthogonal = seen & present & (np.abs(cosines) < _ORTHOGONAL)
    return Hierarchy(
        context_norm=float(np.linalg.norm(v0)),
        cosines=cosines,
        zero_factors=np.count_nonzero(v == 0, axis=1),
        zero_share=int((seen & ~present).sum()) / n_seen,
        orthogonal_share=int(orthogonal.sum()) / n_seen,
    )
