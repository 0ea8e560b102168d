"""What the two estimators of factorization machines with factors on demand have in common."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from polyfm.data._examine import is_binary
from polyfm.data.rows import as_rows, read_only
from polyfm.estimators import _parts
from polyfm.estimators._exports import Exported
from polyfm.estimators._numbers import check_number
from polyfm.estimators._streamed import Streamed
from polyfm.estimators._target import TargetScale
from polyfm.estimators._validation import Labelled
from polyfm.kernels import ANOVA
from polyfm.models.difacto import Groups
from polyfm.models.layout import lay_out
from polyfm.models.pqr import unit_of
from polyfm.penalties import L2, Box, ElasticNet
from polyfm.solvers._columns import weigh_columns
from polyfm.solvers._epoch import Penalties, Switches
from polyfm.solvers.learner import Settings
from polyfm.solvers.memory_adaptive import DiFactoLearner, FactorSteps
from polyfm.updates import FTRLProximal
from polyfm.updates.ftrl import learning_rates

_STRUCTURE = ("ranks", "thresholds", "fit_intercept", "loss")
_PENALTIES = ("l2", "l1", "elasticnet")


class MemoryAdaptive(Streamed):
    """Base of the estimators that give factors to features as they prove to be worth it."""

    ranks: Any
    thresholds: Any
    damping: float
    factor_learning_rate: float
    factor_damping: float
    n_jobs: Any
    order = 2
    kernel = "anova"

    def _check_parameters(self) -> None:
        p: Any = self
        _check_rising("ranks", p.ranks, least=1)
        _check_rising("thresholds", p.thresholds, least=0)
        if len(p.ranks) != len(p.thresholds):
            raise ValueError(
                f"ranks and thresholds go together, got {len(p.ranks)} and {len(p.thresholds)}."
            )
        if not (isinstance(p.max_iter, str) and p.max_iter == "auto"):
            check_number("max_iter", p.max_iter, Integral, least=1)
        check_number("n_iter_no_change", p.n_iter_no_change, Integral, least=1)
        for name in ("learning_rate", "damping", "factor_learning_rate", "factor_damping"):
            check_number(name, getattr(p, name), Real, above=0)
        check_number("init_scale", p.init_scale, Real, above=0)
        for name in ("alpha", "beta", "tol", "verbose"):
            check_number(name, getattr(p, name), Real, least=0)
        check_number("l1_ratio", p.l1_ratio, Real, least=0, most=1)
        check_number("validation_fraction", p.validation_fraction, Real, above=0, below=1)
        if not isinstance(p.penalty, str) or p.penalty not in _PENALTIES:
            raise ValueError(f"penalty must be one of {_PENALTIES}, got {p.penalty!r}.")
        _parts.check_early_stopping(p.early_stopping)

    @property
    def _groups(self) -> Groups:
        return Groups(tuple(map(int, self.ranks)), tuple(map(int, self.thresholds)))

    def _create(self, loss: Any, rows: Labelled, *, streaming: bool) -> None:
        """Make fresh learners, one per column of targets."""
        measured = self._measures(streaming)
        self._scale = TargetScale()
        if measured:
            intercept = bool(self.fit_intercept)
            self._scale = TargetScale.of(loss, rows.targets[:, 0], rows.weight, intercept)
        self._loss, self._structure = loss, self._shape()
        self._layout = lay_out(
            ANOVA(2), 2, self._groups.ranks[-1], lower="explicit", linear=True, inhomogeneous=False
        )
        self.history_: dict[str, list[float]] = {}
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        settings, units = self._settings(loss, rows.n_rows, seed), None
        if measured and not is_binary(read_only(rows.matrix.data)):
            units = _units_of(rows)
        self._learners = [
            DiFactoLearner.of_groups(
                self._groups,
                replace(settings, seed=seed + k),
                self._steps(),
                n_features=rows.matrix.shape[1],
                dtype=rows.matrix.dtype,
                units=units,
                start=self._start(loss, rows.targets[:, k], rows.weight, measured),
            )
            for k in range(rows.targets.shape[1])
        ]

    def _settings(self, loss: Any, n_rows: int, seed: int) -> Settings:
        rate, damping = float(self.learning_rate), float(self.damping)
        return Settings(
            loss=self._scale.scaled(loss),
            rule=FTRLProximal(rate, damping, 0.0),
            penalties=Penalties(
                L2(0.0), ElasticNet(float(self.alpha) * self._l1_share, 0.0), L2(0.0), Box(1.0),
                L2(0.0),
            ),
            switches=Switches(bool(self.fit_intercept), True, False, 2),
            start_scales=np.empty(0),
            seed=seed,
        )  # fmt: skip

    @property
    def _l1_share(self) -> float:
        return {"l2": 0.0, "l1": 1.0}.get(str(self.penalty), float(self.l1_ratio))

    def _steps(self) -> FactorSteps:
        return FactorSteps(
            learning_rate=float(self.factor_learning_rate),
            damping=float(self.factor_damping),
            linear_penalty=float(self.alpha) * (1.0 - self._l1_share),
            factor_penalty=float(self.beta),
            init_scale=float(self.init_scale),
        )

    def _shape(self) -> dict[str, Any]:
        """Return what shapes a model, so that training cannot go on when it changes."""
        shape = {name: getattr(self, name) for name in _STRUCTURE}
        return {**shape, "ranks": self._groups.ranks, "thresholds": self._groups.thresholds}

    def _go_on(self, loss: Any, n_rows: int) -> None:
        _parts.check_unchanged(self._structure, self._shape())
        settings, steps = self._settings(loss, n_rows, seed=0), self._steps()
        self._learners = [learner.renewed(settings) for learner in self._learners]
        for learner in self._learners:
            learner.steps = steps

    def _fitted(self) -> list[DiFactoLearner]:
        if not self.__sklearn_is_fitted__():
            # So that hasattr answers False, as for any attribute that fit will set.
            raise AttributeError(f"{type(self).__name__} has no fitted attributes before fit.")
        return self._learners

    @property
    def _exported(self) -> Exported:
        models, scale = [learner.model for learner in self._fitted()], self._scale.scale
        bias = np.array([model.bias[0] for model in models], dtype=np.float64)
        intercept = self._scale.from_scaled(bias)
        rank, n = models[0].rank, len(models)
        return Exported(
            float(intercept[0]) if n == 1 else intercept,
            _stacked([model.linear_weights() * scale for model in models]),
            # Two factors make a weight, so each has the root of the unit.
            {2: _stacked([model.factors() * scale**0.5 for model in models])},
            {2: _stacked([np.empty((0, rank))] * n)},
            {2: _stacked([np.ones(rank)] * n)},
            _stacked([np.array([0.0, 1.0])] * n),
        )

    @property
    def intercept_(self) -> Any:
        """Bias: a float, or an array of shape (n_classes,)."""
        bias = [learner.model.bias[0] for learner in self._fitted()]
        intercept = self._scale.from_scaled(np.array(bias, dtype=np.float64))
        return float(intercept[0]) if len(bias) == 1 else intercept

    @property
    def coef_(self) -> NDArray[Any]:
        """Linear weights, (n_features,) or (n_classes, n_features)."""
        scale = self._scale.scale if self.__sklearn_is_fitted__() else 1.0
        return _stacked([learner.model.linear_weights() * scale for learner in self._fitted()])

    @property
    def ranks_(self) -> NDArray[np.int64]:
        """Number of factors of each feature, (n_features,) or (n_classes, n_features)."""
        return _stacked([learner.model.ranks() for learner in self._fitted()])

    @property
    def learning_rates_(self) -> NDArray[np.float64]:
        """Present learning rate of each linear weight, (n_features,) or (n_classes, n_features).

        In the unit of the standardised target and column, if ``fit`` came first.
        """
        rates = []
        for learner in self._fitted():
            rule = learner.settings.rule
            rates.append(learning_rates(rule, learner.model.linear[:, 2], rule.learning_rate))
        return _stacked(rates)

    @property
    def counts_(self) -> NDArray[np.int64]:
        """In how many rows each feature was, (n_features,): in first epochs and in streams."""
        return self._fitted()[0].model.counts.copy()

    @property
    def n_factors_(self) -> int:
        """How many factors have been allocated, over all features and outputs."""
        return sum(int(learner.model.used[0]) for learner in self._fitted())

    def count_nonzero(self) -> int:
        """Return the number of weights and factors that are not 0, over all outputs."""
        self._check_is_fitted()
        return sum(learner.model.count_nonzero() for learner in self._learners)


def _check_rising(name: str, values: Any, least: int) -> None:
    """Raise a TypeError or ValueError for what is no rising sequence of whole numbers."""
    if not isinstance(values, list | tuple | np.ndarray) or len(values) == 0:
        raise TypeError(f"{name} must be a tuple with a number for each group, got {values!r}.")
    for value in values:
        check_number(f"each of {name}", value, Integral, least=least)
    if any(one >= other for one, other in pairwise(values)):
        raise ValueError(f"{name} must rise from group to group, got {values!r}.")


def _stacked(blocks: list[NDArray[Any]]) -> NDArray[Any]:
    return blocks[0] if len(blocks) == 1 else np.stack(blocks)


def _units_of(rows: Labelled) -> NDArray[np.float64]:
    """Return one over the root mean square of each column's non-zeros."""
    d = rows.matrix.shape[1]
    weights, squares = np.zeros(d), np.zeros(d)
    weigh_columns(as_rows(rows.matrix, None, rows.all_weights, rows.numbers), weights, squares)
    return np.asarray(unit_of(weights, squares))
