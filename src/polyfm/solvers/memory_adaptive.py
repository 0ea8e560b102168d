"""Online learning of a factorization machine that allocates factors as features prove worth it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polyfm.data.rows import Rows, read_only
from polyfm.exceptions import DivergenceError
from polyfm.models._difacto_score import Room
from polyfm.models.difacto import NONE, OF_FEATURES, DiFacto, Groups
from polyfm.models.factorized import aligned_zeros
from polyfm.solvers import _memory_adaptive_epoch as epoch
from polyfm.solvers._best import BestModel
from polyfm.solvers._columns import distinct
from polyfm.solvers._growth import capacity_for
from polyfm.solvers._random import random_order
from polyfm.solvers._start import start_block
from polyfm.solvers._threads import Crew
from polyfm.solvers.learner import Learner, Report, Settings
from polyfm.updates import contract as updates

if TYPE_CHECKING:
    from polyfm.models.layout import Layout
    from polyfm.solvers.training import Training

_SECONDS_PER_SLICE = 0.15
_FIRST_SLICE = 2048
_SMALLEST_SLICE = 64


class FactorSteps(NamedTuple):
    r"""How factors start and move, and what a row costs.

    .. math:: n \leftarrow n + h^2, \quad v \leftarrow v - \frac{\eta}{c + \sqrt n} \, h

    with the gradient h of the row's loss and :math:`\frac12 \beta v^2`.

    Parameters
    ----------
    learning_rate, damping : float
        :math:`\eta` and c, both > 0.
    linear_penalty, factor_penalty : float
        Strengths of the squares of linear weights and of factors, paid for each row with the
        feature.
    init_scale : float
        Factors start uniformly distributed between minus and plus this number.
    """

    learning_rate: float
    damping: float
    linear_penalty: float
    factor_penalty: float
    init_scale: float


_USUAL_STEPS = FactorSteps(0.1, 1.0, 0.0, 0.0, 0.05)


@dataclass
class DiFactoLearner(Learner):
    r"""A factorization machine in the making, with factors for features that deserve them.

    A row counts its features, moves their weights by FTRL-Proximal and the factors of those with a
    weight other than 0 by AdaGrad. After it, each of its features whose weight is not 0 has the
    groups of factors that its count entitles it to. They stay, but while the weight is 0 they have
    no part in predictions and do not move.
    """

    model: DiFacto  # type: ignore[assignment]
    steps: FactorSteps = _USUAL_STEPS
    _slice: int = field(init=False, repr=False, default=_FIRST_SLICE)
    _mark: NDArray[np.uint8] = field(init=False, repr=False)
    _spare: dict[str, NDArray[Any]] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        self._mark = np.zeros(self.model.n_features, dtype=np.uint8)

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
        """Allocate a model with factors for features from their first row on."""
        groups = Groups((layout.rank,), (0,))
        return cls.of_groups(
            groups, settings, _USUAL_STEPS, n_features=n_features, dtype=dtype, start=start
        )

    @classmethod
    def of_groups(
        cls,
        groups: Groups,
        settings: Settings,
        steps: FactorSteps,
        *,
        n_features: int,
        dtype: DTypeLike,
        units: NDArray[np.float64] | None = None,
        start: float | None = None,
    ) -> Self:
        """Allocate a model without factors.

        Parameters
        ----------
        groups : Groups
            Which features are to have how many factors.
        settings : Settings
            What is to be learnt, and how.
        steps : FactorSteps
            The same of factors.
        n_features : int
            Number of columns.
        dtype : dtype
            Precision.
        units : ndarray, optional
            Of the columns, where values are not all 1.
        start : float, optional
            Where the bias starts.
        """
        n_planes = int(updates.n_planes(settings.rule))
        model = DiFacto.zeros(n_features, groups, n_planes, dtype, units)
        if start is not None:
            block = model.bias[:, np.newaxis]
            start_block(settings.rule, settings.penalties.bias, block, np.array([start]))
        return cls(model, settings, steps=steps)

    def set_rows(self, rows: Rows) -> None:
        """Make ``rows`` the whole objective."""
        self.n_rows = rows.n_rows

    def set_parts(self, parts: Iterable[Rows]) -> None:
        """Make the rows of all parts the whole objective."""
        self.n_rows = sum(rows.n_rows for rows in parts)

    def visit(self, rows: Rows, order: NDArray[Any], crew: Crew, *, is_first: bool) -> float:
        """Visit a part of the rows once; the first time their features are counted."""
        return self.learn(self.model.scaled(rows), order, counts_rows=is_first)

    @staticmethod
    def end_pass(learners: Any) -> None:
        """Take in that all rows were visited."""

    def add_and_learn(self, rows: Rows) -> None:
        """Add some rows to the objective and visit each once."""
        self.n_rows += rows.n_rows
        rows = self.model.scaled(rows)
        self.learn(rows, rows.numbers, counts_rows=True)
        self.check_finite(distinct(rows, self._mark))

    def learn(
        self,
        rows: Rows,
        order: NDArray[Any],
        report: Report | None = None,
        *,
        counts_rows: bool,
    ) -> float:
        """Visit ``rows``, which are in the columns' units, once in the given order.

        Returns
        -------
        float
            Mean over the rows of the weighted loss that each had before it was learnt.

        Raises
        ------
        DivergenceError
            When a prediction or its gradient is not a finite number.
        """
        order = read_only(order)
        room, loss_sum, done = self.model.room(rows), np.zeros(1), 0
        while done < len(order):
            part = order[done : done + self._slice]
            started = time.perf_counter()
            self._learn_part(rows, part, room, loss_sum, counts_rows)
            done += len(part)
            self.n_visits += len(part)
            if report is not None:
                report(done, len(order))
            rate = len(part) * _SECONDS_PER_SLICE / max(time.perf_counter() - started, 1e-6)
            self._slice = int(np.clip(rate, _SMALLEST_SLICE, 4 * self._slice))
        return float(loss_sum[0]) / max(len(order), 1)

    def _learn_part(
        self,
        rows: Rows,
        part: NDArray[Any],
        room: Room,
        loss_sum: NDArray[np.float64],
        counts_rows: bool,
    ) -> None:
        """Learn some rows, with more room for factors whenever they need it."""
        s, done = self.settings, 0
        while True:
            n, reason = epoch.learn_rows(
                s.loss, s.rule, self.steps, s.penalties, s.switches.bias, counts_rows, s.seed,
                self.model.parameters, rows, part[done:], room, loss_sum,
            )  # fmt: skip
            done += n
            if reason == epoch.DONE:
                return
            if reason == epoch.NOT_FINITE:
                raise self._divergence(rows, int(part[done]))
            self.model = self.model.with_more_room()

    @staticmethod
    def train(training: Training) -> None:
        """Run epochs until the training ends; the first counts features."""
        parts = [
            (learner, learner.model.scaled(rows))
            for learner, rows in zip(training.learners, training.rows, strict=True)
        ]
        first = True
        while True:
            losses = [
                learner.epoch(
                    rows, shuffle=training.shuffle, report=training.report(k), counts_rows=first
                )
                for k, (learner, rows) in enumerate(parts)
            ]
            first = False
            if training.end_epoch(losses):
                return

    def epoch(
        self, rows: Rows, *, shuffle: bool, report: Report | None = None, counts_rows: bool
    ) -> float:
        """Visit ``rows`` once, in an order that depends on the seed and the epoch's number."""
        order = rows.numbers
        if shuffle:
            order = random_order(order, self.settings.seed, self.n_epochs)
        loss = self.learn(rows, order, report, counts_rows=counts_rows)
        self.n_epochs += 1
        return loss

    def checkpoint(self, rows: Rows) -> Callable[[], None]:
        """Return a function that undoes what learning ``rows`` will do to the parameters.

        It keeps a copy of the parameters that these rows can change, and no more.
        """
        model, features = self.model, distinct(rows, self._mark)
        blocks = {name: getattr(model, name)[features] for name in OF_FEATURES}
        bias, used = model.bias.copy(), model.used.copy()
        held = _coordinates(model, features)
        factors = model.pool[:, held]

        def undo() -> None:
            for name, saved in blocks.items():
                getattr(model, name)[features] = saved
            model.bias[...], model.used[...] = bias, used
            model.pool[:, held] = factors

        return undo

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_spare": None}

    def widen(self, n_features: int, most_features: int) -> Callable[[], None]:
        """Make room for more features, which start without factors; see the stochastic learner.

        What is returned takes nothing back: the numbers of earlier features stay where they are.
        """
        model = self.model
        if not self._has_room(n_features):
            capacity = capacity_for(n_features, model.n_features, most_features)
            self._spare = {}
            for name in OF_FEATURES:
                own = getattr(model, name)
                self._spare[name] = aligned_zeros((capacity, *own.shape[1:]), own.dtype)
                self._spare[name][: len(own)] = own
            self._mark = np.zeros(capacity, dtype=np.uint8)
        assert self._spare is not None
        self.model = model.widened(n_features, self._spare)
        return lambda: None

    def _has_room(self, n_features: int) -> bool:
        """Say whether the model's blocks are the front of some that are long enough."""
        spare = self._spare
        if spare is None or len(spare["linear"]) < n_features:
            return False
        return spare["linear"].ctypes.data == self.model.linear.ctypes.data

    def copy(self) -> Self:
        """Return a learner that may change without changing this one."""
        return replace(self, model=self.model.copy())

    def renewed(self, settings: Settings) -> Self:
        """Return a learner of the same model that goes on with other settings but its own seed."""
        learner = replace(self, settings=replace(settings, seed=self.settings.seed))
        learner._slice = self._slice
        if not self.model.linear.flags.writeable:  # as that of a memory-mapped model
            return learner.copy()
        learner._mark, learner._spare = self._mark, self._spare
        return learner

    def best_weights(self) -> Any:
        """Return room for a copy of the model, which can be written back."""
        return BestModel(self)

    def check_finite(self, features: NDArray[np.int64] | None = None) -> None:
        """Raise a DivergenceError if a parameter, of the given features or at all, is not finite.

        Learning stops at the first prediction that is not finite. This finds what the last rows
        did to parameters that no later row has used.
        """
        if features is None:
            features = np.arange(self.model.n_features)
        if not epoch.are_finite(self.model.parameters, features):
            raise DivergenceError(
                f"training diverged in epoch {self.n_epochs + 1}: weights or factors are no longer "
                f"finite. {self.advice()}"
            )

    def _divergence(self, rows: Rows, row: int) -> DivergenceError:
        first, last = rows.indptr[row], rows.indptr[row + 1]
        values = np.abs(rows.values[first:last])
        where = "a row without non-zeros"
        if values.size:
            j = int(rows.indices[first + int(values.argmax())])
            where = f"a row whose largest value is {values.max():.6g} in column {j}"
        return DivergenceError(
            f"training diverged in epoch {self.n_epochs + 1}: the prediction is not a finite "
            f"number at {where}. {self.advice()}"
        )

    def advice(self) -> str:
        """Say in words what helps against divergence."""
        rate = updates.rate(self.settings.rule, float(self.n_visits))
        return (
            f"The learning rates are {rate:.6g} and, of factors, {self.steps.learning_rate:.6g}: "
            "lower learning_rate or factor_learning_rate, or scale columns with large values (for "
            "example with MaxAbsScaler)."
        )

    @property
    def n_planes(self) -> int:
        """How many numbers are kept for a linear weight."""
        return int(updates.n_planes(self.settings.rule))


def _coordinates(model: DiFacto, features: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where in the pool the factors of some features are."""
    held = []
    for g, width in enumerate(model.widths):
        places = model.places[features, g]
        places = places[places != NONE]
        held.append((places[:, np.newaxis] + np.arange(width)).ravel())
    return np.concatenate(held)
