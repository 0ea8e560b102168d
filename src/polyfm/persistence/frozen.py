"""A learner that has forgotten how to learn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

from polyfm.data.rows import Rows
from polyfm.solvers.convex_learner import ConvexLearner
from polyfm.solvers.memory_adaptive import DiFactoLearner
from polyfm.solvers.online_conditional_gradient import OnlineConvexLearner
from polyfm.solvers.projective import PQRLearner
from polyfm.solvers.stochastic import StochasticLearner


class FrozenLearner(StochasticLearner):
    """A learner without what the update rule remembers: it predicts, and refuses to go on."""

    @classmethod
    def of(cls, learner: StochasticLearner) -> FrozenLearner:
        """Keep of a learner what predictions need."""
        return cls(
            learner.model.weights_only(),
            replace(learner.settings, linear_strengths=None, factor_strengths=None),
            learner.n_visits,
            learner.n_rows,
            learner.n_epochs,
        )

    def set_rows(self, rows: Rows) -> NoReturn:
        """Refuse."""
        self._refuse()

    def add_and_learn(self, rows: Rows) -> NoReturn:
        """Refuse."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        _refuse()


class FrozenPQRLearner(PQRLearner):
    """The same of a projective quadratic regression."""

    @classmethod
    def of(cls, learner: PQRLearner) -> FrozenPQRLearner:
        """Keep of a learner what predictions need: the best model so far."""
        model = learner.model.weights_only()
        return cls(model, learner.settings, learner.n_visits, learner.n_rows, learner.n_epochs)

    def set_rows(self, rows: Rows) -> NoReturn:
        """Refuse."""
        _refuse()

    def checkpoint(self, rows: Rows) -> NoReturn:
        """Refuse."""
        _refuse()


class FrozenDiFactoLearner(DiFactoLearner):
    """The same of a factorization machine with factors on demand."""

    @classmethod
    def of(cls, learner: DiFactoLearner) -> FrozenDiFactoLearner:
        """Keep of a learner what predictions need."""
        return cls(
            learner.model.weights_only(),
            learner.settings,
            learner.n_visits,
            learner.n_rows,
            learner.n_epochs,
            learner.steps,
        )

    def set_rows(self, rows: Rows) -> NoReturn:
        """Refuse."""
        _refuse()

    def checkpoint(self, rows: Rows) -> NoReturn:
        """Refuse."""
        _refuse()


def frozen(learner: Any) -> Any:
    """Return what predictions need of a learner of any kind."""
    if isinstance(learner, ConvexLearner):
        # It remembers nothing else.
        return learner
    if isinstance(learner, OnlineConvexLearner):
        return ConvexLearner(learner.model, learner.size)
    if isinstance(learner, DiFactoLearner):
        return FrozenDiFactoLearner.of(learner)
    kind = FrozenPQRLearner if isinstance(learner, PQRLearner) else FrozenLearner
    return kind.of(learner)


def _refuse() -> NoReturn:
    raise ValueError(
        "this model was saved with include_state=False, so it can predict but not be trained "
        "further: call fit with warm_start=False to train it anew, or save the trained model "
        "with include_state=True."
    )
