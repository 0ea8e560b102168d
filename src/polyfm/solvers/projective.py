"""Online learning of projective quadratic regression, of one order or of several side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polyfm.data.rows import Rows, read_only
from polyfm.exceptions import DivergenceError
from polyfm.models._pqr_score import PAGE, Room
from polyfm.models.factorized import aligned_zeros
from polyfm.models.pqr import PQR, Sizes, longer_places, places_of
from polyfm.solvers import _projective_epoch as epoch
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
_NO_PLACES = places_of(np.empty(0, dtype=np.int64), 0)


@dataclass
class PQRLearner(Learner):
    r"""A projective quadratic regression in the making.

    A row is a linear model's on its expansion: its features, the products of its frequent ones, and
    these times the sum of its infrequent ones. All weights start at 0; those of pairs get a record
    when a row first holds the pair. With ``rivals``, models of several orders learn the same rows
    side by side; their losses say which is the best, and :meth:`choose` lets it go on alone.
    """

    model: PQR  # type: ignore[assignment]
    rivals: list[PQR] = field(default_factory=list)
    """Models of all orders that are learnt; empty if that is ``model`` alone."""
    losses: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """Sum of the losses that rows had before they were learnt, of each rival."""
    judged_from: int = 0
    """Rows whose losses are forgotten once they are learnt: those of beginners."""
    _slice: int = field(init=False, repr=False, default=_FIRST_SLICE)
    _mark: NDArray[np.uint8] = field(init=False, repr=False)
    _spare: list[NDArray[Any]] = field(init=False, repr=False, default_factory=list)
    _spare_places: NDArray[np.int32] = field(
        init=False, repr=False, default_factory=lambda: _NO_PLACES
    )

    def __post_init__(self) -> None:
        self._mark = np.zeros(self.model.n_features, dtype=np.uint8)
        if self.rivals:
            self.model = self.rivals[self._best]

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
        """Allocate a model without frequent features, which is linear."""
        nothing = np.empty(0, dtype=np.int64)
        return cls.of_orders([nothing], settings, n_features=n_features, dtype=dtype, start=start)

    @classmethod
    def of_orders(
        cls,
        frequent: list[NDArray[np.int64]],
        settings: Settings,
        *,
        n_features: int,
        dtype: DTypeLike,
        judged_from: int = 0,
        sizes: Sizes | None = None,
        start: float | None = None,
    ) -> Self:
        """Allocate a model of 0 for each set of frequent features.

        Parameters
        ----------
        frequent : list of ndarray
            One set, or several that compete, each the front of the longest.
        settings : Settings
            What is to be learnt, and how.
        n_features : int
            Number of columns.
        dtype : dtype
            Precision.
        judged_from : int
            After how many rows the comparison of several begins anew.
        sizes : Sizes, optional
            Of the columns' values, where these are not all 1.
        start : float, optional
            Where the bias starts.
        """
        rule, penalty = settings.rule, settings.penalties.factors
        places = places_of(max(frequent, key=len), n_features)
        models = [
            PQR.zeros(n_features, features, places, rule, penalty, dtype, sizes)
            for features in frequent
        ]
        if start:
            for model in models:
                block = model.bias[:, np.newaxis]
                start_block(settings.rule, settings.penalties.bias, block, np.array([start]))
        if len(models) == 1:
            return cls(models[0], settings)
        losses = np.zeros(len(models))
        return cls(models[0], settings, rivals=models, losses=losses, judged_from=judged_from)

    def set_rows(self, rows: Rows) -> None:
        """Make ``rows`` the whole objective."""
        self.n_rows = rows.n_rows

    def set_parts(self, parts: Iterable[Rows]) -> None:
        """Make the rows of all parts the whole objective."""
        self.n_rows = sum(rows.n_rows for rows in parts)

    def visit(self, rows: Rows, order: NDArray[Any], crew: Crew, *, is_first: bool) -> float:
        """Visit a part of the rows once; return their mean loss before each was learnt."""
        return self.learn(self.model.scaled(rows), order)

    @staticmethod
    def end_pass(learners: Any) -> None:
        """Let the best of the rivals go on alone."""
        choose_together(learners)

    def add_and_learn(self, rows: Rows) -> None:
        """Add some rows to the objective and visit each once."""
        self.n_rows += rows.n_rows
        self.learn(self.model.scaled(rows))

    def learn(
        self,
        rows: Rows,
        order: NDArray[Any] | None = None,
        report: Report | None = None,
        *,
        placed: bool = False,
    ) -> float:
        """Visit ``rows`` once, in the given or their own order; they are in the columns' units.

        ``placed`` says whether they name records, see :meth:`polyfm.models.pqr.PQR.placed`.

        Returns
        -------
        float
            Mean over the rows of the weighted loss that each had before it was learnt, by the
            model that is the best so far.

        Raises
        ------
        DivergenceError
            When a prediction, a gradient or a weight is not a finite number.
        """
        order = read_only(rows.numbers if order is None else order)
        for k, model in enumerate(self._models):
            self._replace(k, model.opened())
        rooms = [model.room(rows, placed=placed) for model in self._models]
        sums, done = np.zeros(len(rooms)), 0
        while done < len(order):
            part = order[done : done + self._next_size()]
            started = time.perf_counter()
            for k, room in enumerate(rooms):
                self._learn_part(k, rows, part, room, sums[k : k + 1], placed=placed)
            done += len(part)
            self.n_visits += len(part)
            if report is not None:
                report(done, len(order))
            elapsed = max(time.perf_counter() - started, 1e-6)
            rate = len(part) * _SECONDS_PER_SLICE / elapsed
            self._slice = int(np.clip(rate, 64, 4 * self._slice))
        best = self._best
        self.model = self.rivals[best] if self.rivals else self.model
        return float(sums[best]) / max(len(order), 1)

    def _next_size(self) -> int:
        """Return how many rows to learn next, and forget what beginners' losses were."""
        if not self.rivals or self.n_visits > self.judged_from:
            return self._slice
        if self.n_visits == self.judged_from:
            self.losses[:] = 0.0
            return self._slice
        return min(self._slice, self.judged_from - self.n_visits)

    def _learn_part(
        self,
        k: int,
        rows: Rows,
        part: NDArray[Any],
        room: Room,
        loss_sum: NDArray[np.float64],
        *,
        placed: bool,
    ) -> None:
        """Let one of the models learn some rows, and give it more room when it needs some."""
        s, done, judged = self.settings, 0, self.losses[k : k + 1]
        while True:
            model = self.rivals[k] if self.rivals else self.model
            n, reason = epoch.learn_rows(
                s.loss, s.penalties, s.switches.bias, model.parameters_for(placed=placed), rows,
                part[done:], float(self.n_visits + done), room, loss_sum, judged,
            )  # fmt: skip
            done += n
            if reason == epoch.DONE:
                return
            if reason == epoch.NOT_FINITE:
                raise self._divergence(rows, int(part[done]), placed=placed)
            self._replace(k, model.with_more_room())

    @property
    def _best(self) -> int:
        """The rival with the least loss; among equals the one of the lowest order."""
        return int(np.argmin(self.losses)) if self.rivals else 0

    def _replace(self, k: int, model: PQR) -> None:
        if not self.rivals:
            self.model = model
            return
        if self.model is self.rivals[k]:
            self.model = model
        self.rivals = [*self.rivals[:k], model, *self.rivals[k + 1 :]]

    def choose(self, k: int | None = None) -> None:
        """Let one of the rivals, or the best of them, go on alone."""
        if self.rivals:
            self.model = self.rivals[self._best if k is None else k]
            self.rivals, self.losses = [], np.zeros(0)

    @staticmethod
    def train(training: Training) -> None:
        """Run epochs until the training ends; the best of the rivals goes on from the second."""
        # Learners differ in their targets alone: features, places and units are those of all.
        model, rows_of = training.learners[0].model, training.rows
        first = model.placed(model.scaled(rows_of[0]))
        shared = {"indices": first.indices, "values": first.values}
        parts = [
            (learner, rows._replace(**shared))
            for learner, rows in zip(training.learners, rows_of, strict=True)
        ]
        while True:
            losses = [
                learner.epoch(rows, shuffle=training.shuffle, report=training.report(k))
                for k, (learner, rows) in enumerate(parts)
            ]
            choose_together(training.learners)
            if training.end_epoch(losses):
                return

    def epoch(self, rows: Rows, *, shuffle: bool, report: Report | None = None) -> float:
        """Visit ``rows``, which name records, once, in an order of the seed and the epoch."""
        order = rows.numbers
        if shuffle:
            order = random_order(order, self.settings.seed, self.n_epochs)
        loss = self.learn(rows, order, report, placed=True)
        self.n_epochs += 1
        return loss

    def checkpoint(self, rows: Rows) -> Callable[[], None]:
        """Return a function that undoes what learning ``rows`` will do to the parameters.

        It keeps a copy of the parameters that these rows can change, and no more.
        """
        features = distinct(rows, self._mark)
        undos = [_checkpoint(model, rows, features) for model in self.rivals or [self.model]]
        losses, kept = self.losses, self.losses.copy()

        def undo() -> None:
            losses[...] = kept
            for one in undos:
                one()

        return undo

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_spare": [], "_spare_places": _NO_PLACES}

    def widen(self, n_features: int, most_features: int) -> Callable[[], None]:
        """Make room for more features, of the infrequent ones; see the stochastic learner.

        What is returned takes nothing back: the numbers of earlier features stay where they are.
        """
        blocks = [self._longer(model, n_features, most_features) for model in self._models]
        places = self._longer_places(n_features, len(blocks[0]))
        models = [
            model.widened(n_features, block, places)
            for model, block in zip(self._models, blocks, strict=True)
        ]
        self.rivals = models if self.rivals else []
        self.model = models[self._best]
        self._spare, self._spare_places = blocks, places
        return lambda: None

    def _longer_places(self, n_features: int, capacity: int) -> NDArray[np.int32]:
        """Return places whose front is the models'."""
        own, spare = self.model.places, self._spare_places
        if spare.ctypes.data == own.ctypes.data and len(spare) >= n_features:
            return spare
        return longer_places(own, capacity)

    def _longer(self, model: PQR, n_features: int, most_features: int) -> NDArray[Any]:
        """Return a block of linear weights whose front is the model's."""
        own = model.linear
        for block in self._spare:
            if block.ctypes.data == own.ctypes.data and len(block) >= n_features:
                return block
        capacity = capacity_for(n_features, model.n_features, most_features)
        block = aligned_zeros((capacity, *own.shape[1:]), own.dtype)
        block[: len(own)] = own
        self._mark = np.zeros(capacity, dtype=np.uint8)
        return block

    @property
    def _models(self) -> list[PQR]:
        return self.rivals or [self.model]

    def copy(self) -> Self:
        """Return a learner that may change without changing this one."""
        if not self.rivals:
            return replace(self, model=self.model.copy())
        rivals = [model.copy() for model in self.rivals]
        return replace(self, rivals=rivals, losses=self.losses.copy())

    def renewed(self, settings: Settings) -> Self:
        """Return a learner of the same model that goes on with other settings but its own seed."""
        rule, penalty = settings.rule, settings.penalties.factors
        learner = replace(
            self,
            model=self.model.of_settings(rule, penalty),
            rivals=[rival.of_settings(rule, penalty) for rival in self.rivals],
            settings=replace(settings, seed=self.settings.seed),
        )
        learner._slice = self._slice
        if not self.model.linear.flags.writeable:  # as that of a memory-mapped model
            return learner.copy()
        learner._mark, learner._spare = self._mark, self._spare
        learner._spare_places = self._spare_places
        return learner

    def best_weights(self) -> Any:
        """Return room for a copy of the model, which can be written back."""
        return BestModel(self)

    def check_finite(self, features: NDArray[np.int64] | None = None) -> None:
        """Return: learning stops at the first row that leaves a parameter which is not finite."""

    def _divergence(self, rows: Rows, row: int, *, placed: bool) -> DivergenceError:
        first, last = rows.indptr[row], rows.indptr[row + 1]
        columns, values = rows.indices[first:last], np.abs(rows.values[first:last])
        if placed:
            columns = self.model.features_of(columns)
        if self.model.units.size:
            values = values / self.model.units[columns]
        where = "a row without non-zeros"
        if values.size:
            k = int(values.argmax())
            where = f"a row whose largest value is {values[k]:.6g} in column {columns[k]}"
        return DivergenceError(
            f"training diverged in epoch {self.n_epochs + 1}: predictions or weights are not "
            f"finite numbers at {where}. {self.advice()}"
        )

    def advice(self) -> str:
        """Say in words what helps against divergence."""
        rate = updates.rate(self.settings.rule, float(self.n_visits))
        return (
            f"The learning rate is {rate:.6g}: lower learning_rate, "
            "or scale columns with large values (for example with MaxAbsScaler)."
        )

    @property
    def n_planes(self) -> int:
        """How many numbers the update rule keeps for a coordinate."""
        return int(updates.n_planes(self.settings.rule))


def choose_together(learners: Any) -> None:
    """Let the order with the least loss in all, over learners, go on alone."""
    if learners[0].rivals:
        best = int(np.argmin(np.sum([learner.losses for learner in learners], axis=0)))
        for learner in learners:
            learner.choose(best)


def _checkpoint(model: PQR, rows: Rows, features: NDArray[np.int64]) -> Callable[[], None]:
    small = [(block, block.copy()) for block in (model.bias, model.used)]
    records = model.places[features] if model.places.size else features
    linear = model.linear[records]
    undo_pairs = _checkpoint_pairs(model, rows)

    def undo() -> None:
        for block, saved in small:
            block[...] = saved
        model.linear[records] = linear
        undo_pairs()

    return undo


def _checkpoint_pairs(model: PQR, rows: Rows) -> Callable[[], None]:
    """Keep the records of the rows' pairs, or all pages where that is less."""
    pages, n_pages = model.pages, int(model.used[0])
    room = model.room(rows)
    n_pairs = int(epoch.count_pairs(model.parameters, rows, room))
    if n_pairs > n_pages * PAGE:
        places = np.arange(n_pages * PAGE)
    else:
        places = np.empty(n_pairs, dtype=np.int64)
        epoch.find_pairs(model.parameters, rows, room, places)
    records = pages.reshape(-1, pages.shape[2])[places]

    def undo() -> None:
        n_new = np.count_nonzero(model.blocks[n_pages:])
        model.directory[model.blocks[n_pages : n_pages + n_new]] = 0
        pages[n_pages:] = 0.0
        pages.reshape(-1, pages.shape[2])[places] = records

    return undo
