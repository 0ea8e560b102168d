"""What the two estimators of projective quadratic regression have in common."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from polyfm._jit.records import RECORD
from polyfm.data._examine import is_binary
from polyfm.data.rows import as_rows, read_only
from polyfm.estimators import _parts
from polyfm.estimators._exports import Exported
from polyfm.estimators._numbers import check_number
from polyfm.estimators._streamed import Streamed
from polyfm.estimators._target import TargetScale
from polyfm.estimators._validation import Labelled
from polyfm.estimators._waiting import WaitingRows
from polyfm.kernels import ANOVA
from polyfm.models.layout import lay_out
from polyfm.models.pqr import MOST_FREQUENT, Sizes
from polyfm.penalties import L2, Box, ElasticNet
from polyfm.solvers._columns import count_visits, weigh_columns
from polyfm.solvers._epoch import Penalties, Switches
from polyfm.solvers.learner import Settings
from polyfm.solvers.projective import PQRLearner, choose_together
from polyfm.updates import SGD, FTRLProximal
from polyfm.updates import contract as updates
from polyfm.updates.ftrl import learning_rates

_LARGEST_CANDIDATE = 4000
_N_HALVINGS = 5
_WARMUPS_TO_DECIDE = 10
_STRUCTURE = ("order", "frequent", "fit_intercept", "loss", "solver")
_PENALTIES = ("l2", "l1", "elasticnet")


class ProjectiveQuadratic(Streamed):
    """Base of the estimators whose model is linear in features and some of their products."""

    order: Any
    frequent: Any
    warmup: int
    n_sample: int | None
    damping: float
    n_jobs: Any = None
    _waiting: WaitingRows | None
    # Any feature that is not frequent takes part in the crosses of those that are.
    _shares_weights = True

    def _check_parameters(self) -> None:
        p: Any = self
        if isinstance(p.order, str) and p.order != "auto":
            raise ValueError(f"order must be 'auto' or a number of features, got {p.order!r}.")
        if p.order != "auto":
            check_number("order", p.order, Integral, least=0, most=MOST_FREQUENT)
        for name in ("warmup", "n_iter_no_change"):
            check_number(name, getattr(p, name), Integral, least=1)
        if p.n_sample is not None:
            check_number("n_sample", p.n_sample, Integral, least=1)
        if not (isinstance(p.max_iter, str) and p.max_iter == "auto"):
            check_number("max_iter", p.max_iter, Integral, least=1)
        for name in ("learning_rate", "damping"):
            check_number(name, getattr(p, name), Real, above=0)
        for name in ("alpha", "beta", "tol", "verbose", "power_t"):
            check_number(name, getattr(p, name), Real, least=0)
        check_number("l1_ratio", p.l1_ratio, Real, least=0, most=1)
        check_number("validation_fraction", p.validation_fraction, Real, above=0, below=1)
        for name, choices in (("solver", ("ftrl", "sgd")), ("penalty", _PENALTIES)):
            if not isinstance(getattr(p, name), str) or getattr(p, name) not in choices:
                raise ValueError(f"{name} must be one of {choices}, got {getattr(p, name)!r}.")
        _parts.check_early_stopping(p.early_stopping)

    def _create(self, loss: Any, rows: Labelled, *, streaming: bool) -> None:
        """Make fresh learners, one per column of targets.

        Those of a stream are linear until the frequent features can be told.
        """
        measured = self._measures(streaming)
        self._scale = self._measured(loss, rows) if measured else TargetScale()
        self._loss, self._structure = loss, self._shape()
        self._layout = lay_out(ANOVA(2), 2, 0, lower=None, linear=True, inhomogeneous=False)
        self.history_: dict[str, list[float]] = {}
        self._waiting = None
        if not measured and self.frequent is None and self.order != 0:
            self._waiting = WaitingRows()
            self._make_learners(loss, rows, [np.empty(0, dtype=np.int64)], 0, measured=False)
        else:
            judged_from = (self._decided_at if streaming else rows.n_rows) // 2
            self._make_learners(loss, rows, self._candidates(rows), judged_from, measured=measured)

    def _measured(self, loss: Any, rows: Labelled) -> TargetScale:
        intercept = bool(self.fit_intercept)
        return TargetScale.of(loss, rows.targets[:, 0], rows.weight, intercept)

    def _make_learners(
        self,
        loss: Any,
        rows: Labelled,
        frequent: list[NDArray[np.int64]],
        judged_from: int,
        *,
        measured: bool,
    ) -> None:
        """Make learners; ``measured`` says whether biases start and columns scale by the rows."""
        sizes = _sizes(rows) if measured else None
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        settings = self._settings(loss, rows.n_rows, seed)
        self._learners = [
            PQRLearner.of_orders(
                frequent,
                replace(settings, seed=seed + k),
                n_features=rows.matrix.shape[1],
                dtype=rows.matrix.dtype,
                judged_from=judged_from,
                sizes=sizes,
                start=self._start(loss, rows.targets[:, k], rows.weight, measured),
            )
            for k in range(rows.targets.shape[1])
        ]

    def _candidates(self, rows: Labelled) -> list[NDArray[np.int64]]:
        """Return the frequent features by falling frequency, or several such sets to try."""
        d = rows.matrix.shape[1]
        order = min(_LARGEST_CANDIDATE, d) if self.order == "auto" else int(self.order)
        features = self._count(rows) if self.frequent is None else self._given(d)
        features = features[:order]
        if self.order != "auto":
            return [features]
        sizes = {0} | {len(features) >> halving for halving in range(_N_HALVINGS + 1)}
        return [features[:size] for size in sorted(sizes)]

    def _given(self, n_features: int) -> NDArray[np.int64]:
        given = np.asarray(self.frequent)
        if given.ndim != 1 or given.dtype.kind not in "iu":
            raise ValueError(f"frequent must be an array of column numbers, got {self.frequent!r}.")
        outside = given[(given < 0) | (given >= n_features)]
        if outside.size:
            raise ValueError(
                f"frequent names the column {outside[0]}, but X has {n_features} columns."
            )
        if len(np.unique(given)) < len(given):
            raise ValueError("frequent names a column twice.")
        return given.astype(np.int64)

    def _count(self, rows: Labelled) -> NDArray[np.int64]:
        """Return the features of some rows by falling count, those of equal count by number."""
        numbers = rows.numbers
        if self.n_sample is not None and self.n_sample < len(numbers):
            random = check_random_state(self.random_state)
            numbers = np.sort(random.choice(numbers, self.n_sample, replace=False))
        counts = np.zeros(rows.matrix.shape[1], dtype=np.int64)
        count_visits(as_rows(rows.matrix, numbers=numbers), counts)
        present = np.flatnonzero(counts)
        return present[np.argsort(-counts[present], kind="stable")]

    def _settings(self, loss: Any, n_rows: int, seed: int) -> Settings:
        p: Any = self
        rate = float(p.learning_rate)
        if p.solver == "ftrl":
            rule: Any = FTRLProximal(rate, float(p.damping), 0.0)
        else:
            rule = SGD(rate, 1.0, float(p.power_t))
        return Settings(
            loss=self._scale.scaled(loss),
            rule=rule,
            penalties=Penalties(
                L2(0.0), self._penalty(p.alpha), self._penalty(p.beta), Box(1.0), L2(0.0)
            ),
            switches=Switches(bool(p.fit_intercept), True, False, len(self._layout.degrees)),
            start_scales=np.empty(0),
            seed=seed,
        )

    def _penalty(self, strength: float) -> ElasticNet:
        ratio = {"l2": 0.0, "l1": 1.0}.get(str(self.penalty), float(self.l1_ratio))
        return ElasticNet(float(strength) * ratio, float(strength) * (1.0 - ratio))

    def _shape(self) -> dict[str, Any]:
        """Return what shapes a model, so that training cannot go on when it changes."""
        shape = {name: getattr(self, name) for name in _STRUCTURE}
        if self.frequent is not None:
            shape["frequent"] = np.asarray(self.frequent).tolist()
        return shape

    def _go_on(self, loss: Any, n_rows: int) -> None:
        _parts.check_unchanged(self._structure, self._shape())
        settings = self._settings(loss, n_rows, seed=0)
        self._learners = [learner.renewed(settings) for learner in self._learners]

    def _train(self, loss: Any, *args: Any, **kwargs: Any) -> None:
        self._end_waiting()
        super()._train(loss, *args, **kwargs)

    def _end_waiting(self) -> None:
        if self._waiting is not None:
            self._end_warmup()

    def _learn_streamed(self, rows: Labelled) -> None:
        """Learn rows in parts that end where features or an order are chosen."""
        while rows.n_rows:
            n = self._rows_until_choice(rows.n_rows)
            part = rows._replace(numbers=rows.numbers[:n])
            rows = rows._replace(numbers=rows.numbers[n:])
            super()._learn_streamed(part)
            if self._waiting is not None:
                self._waiting = self._waiting.with_rows(part)
                if self._waiting.n_rows >= self.warmup:
                    self._end_warmup()
            if self._learners[0].n_visits >= self._decided_at:
                choose_together(self._learners)

    @property
    def _decided_at(self) -> int:
        """Rows of a stream after which the best of several orders goes on alone."""
        return _WARMUPS_TO_DECIDE * int(self.warmup)

    def _rows_until_choice(self, n_rows: int) -> int:
        """Return how many of some rows to learn before something is chosen: all, if nothing is."""
        if self._waiting is not None:
            return max(int(self.warmup) - self._waiting.n_rows, 1)
        if self._learners[0].rivals:
            return max(self._decided_at - int(self._learners[0].n_visits), 1)
        return n_rows

    def _end_warmup(self) -> None:
        """Choose the frequent features and learn the waiting rows anew, now with their crosses."""
        waiting, loss = self._waiting or WaitingRows(), self._loss
        rows = waiting.labelled(int(self.n_features_in_))
        self._scale = self._measured(loss, rows)
        self._make_learners(
            loss, rows, self._candidates(rows), self._decided_at // 2, measured=True
        )
        self._waiting = None
        super()._learn_streamed(rows)

    def _warmed_up(self) -> list[PQRLearner]:
        if not self.__sklearn_is_fitted__():
            # So that hasattr answers False, as for any attribute that fit will set.
            raise AttributeError(f"{type(self).__name__} has no fitted attributes before fit.")
        return self._learners

    @property
    def _exported(self) -> Exported:
        raise AttributeError(
            f"{type(self).__name__} has no factors: its interactions are pair_weights_ and "
            "shared_weights_."
        )

    def count_nonzero(self) -> int:
        """Return the number of weights that are not 0, over all outputs, biases among them."""
        self._check_is_fitted()
        return sum(learner.model.count_nonzero() for learner in self._learners)

    @property
    def counts_(self) -> NDArray[np.int64]:
        """There are none: features are counted to choose the frequent ones, and not kept."""
        raise AttributeError(f"{type(self).__name__} does not keep how often features occurred.")

    @property
    def intercept_(self) -> Any:
        """Bias: a float, or an array of shape (n_classes,)."""
        bias = np.array([learner.model.bias[0] for learner in self._warmed_up()], dtype=float)
        intercept = self._scale.from_scaled(bias)
        return float(intercept[0]) if len(intercept) == 1 else intercept

    def _stacked(self, blocks: list[NDArray[Any]]) -> NDArray[Any]:
        weights = np.stack(blocks) * self._scale.scale
        return np.asarray(weights[0] if len(weights) == 1 else weights)

    @property
    def coef_(self) -> NDArray[Any]:
        """Linear weights w, (n_features,) or (n_classes, n_features)."""
        return self._stacked([learner.model.linear_weights() for learner in self._warmed_up()])

    @property
    def learning_rates_(self) -> NDArray[np.float64]:
        """Present learning rate of each linear weight, (n_features,) or (n_classes, n_features).

        In the unit of the standardised target and column, if ``fit`` came first.
        """
        rates = []
        for learner in self._warmed_up():
            rule, linear = learner.settings.rule, learner.model.records()
            if linear.shape[1] < RECORD:
                raise AttributeError("there are no learning rates in a model saved without state.")
            if isinstance(rule, SGD):
                rates.append(np.full(len(linear), updates.rate(rule, float(learner.n_visits))))
            else:
                rates.append(learning_rates(rule, linear[:, 2], rule.learning_rate))
        return np.asarray(rates[0] if len(rates) == 1 else np.stack(rates))

    @property
    def shared_weights_(self) -> NDArray[Any]:
        """Weights q of the frequent features' crosses with all others, in the order of these."""
        return self._stacked([learner.model.shared_weights() for learner in self._warmed_up()])

    @property
    def frequent_features_(self) -> NDArray[np.int64]:
        """Columns of the frequent features, (order_,), the most frequent first."""
        frequent: NDArray[np.int64] = self._warmed_up()[0].model.frequent
        return frequent

    @property
    def order_(self) -> int:
        """Number of the frequent features."""
        return self._warmed_up()[0].model.order

    @property
    def pair_weights_(self) -> Any:
        """Weights p of pairs of frequent features that are not 0: p_ij at (i, j) with i < j."""
        matrices = []
        for learner in self._warmed_up():
            i, j, weights = learner.model.pair_weights()
            shape = (learner.model.n_features,) * 2
            matrices.append(sp.coo_array((weights * self._scale.scale, (i, j)), shape=shape))
        return matrices[0] if len(matrices) == 1 else matrices


def _sizes(rows: Labelled) -> Sizes | None:
    """Measure the values of each column; None where all are 1."""
    if is_binary(read_only(rows.matrix.data)):
        return None
    d = rows.matrix.shape[1]
    sizes = Sizes(np.zeros(d), np.zeros(d))
    weigh_columns(as_rows(rows.matrix, None, rows.all_weights, rows.numbers), *sizes)
    return sizes
