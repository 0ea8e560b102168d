"""Stochastic learning of factorized models, row by row, for every update rule."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polyfm.data._examine import is_binary
from polyfm.data.rows import Rows, read_only
from polyfm.exceptions import DivergenceError
from polyfm.models._score import Parameters
from polyfm.models.factorized import aligned_zeros
from polyfm.models.layout import Layout
from polyfm.solvers._columns import (
    are_finite,
    count_visits,
    distinct,
    measure_units,
    renew_visits,
    set_units,
    weigh_columns,
)
from polyfm.solvers._epoch import learn_rows
from polyfm.solvers._growth import capacity_for, has_room, more_room, widened
from polyfm.solvers._random import random_order
from polyfm.solvers._shared_epoch import learn_shared_rows
from polyfm.solvers._start import start_features
from polyfm.solvers._threads import (
    LARGE_BLOCKS,
    SMALL_BLOCKS,
    Crew,
    HotRows,
    Pieces,
    merge_small_blocks,
    own_small_blocks,
    room_for_hot_rows,
)
from polyfm.solvers.learner import Learner, Report, Settings, allocate, new_model, start_bias
from polyfm.updates import contract as updates

if TYPE_CHECKING:
    from polyfm.solvers.training import Training

_SECONDS_PER_SLICE = 0.15
_FIRST_SLICE = 2048
_WORTH_A_THREAD = 10_000
"""Columns or non-zeros that are worth starting a thread for."""
_WITH_STRENGTHS = 4
"""Numbers behind the planes of a linear record: visits, unit, two strengths of penalties."""


class Work(NamedTuple):
    """Room for what a thread works out for a row."""

    cells: NDArray[Any]
    indices: NDArray[Any]


@dataclass
class StochasticLearner(Learner):
    r"""A factorized model in the making: parameters, what the rule remembers, and counters.

    It lowers :math:`\sum_i s_i \ell(y_i, f(x_i)) + \Omega(\theta)`. The penalty is proximal and
    lazy: a parameter pays it at the visits of its own column only, a :math:`1/n_j`-th part at each
    of the :math:`n_j` visits of an epoch, so no step is dense.
    """

    _mark: NDArray[np.uint8] = field(init=False, repr=False)
    _slice: int = field(init=False, repr=False, default=_FIRST_SLICE)
    _roomy: dict[str, NDArray[Any]] | None = field(init=False, repr=False, default=None)
    _hot: HotRows | None = field(init=False, repr=False, default=None)
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
        most_features: int = 0,
    ) -> StochasticLearner:
        """Allocate a model and start everything but the rows of its features.

        ``most_features`` is how many features there may come to be by :meth:`widen`, 0 for no more:
        dummy features start as they would behind so many.
        """
        rule = settings.rule
        n_planes = updates.n_planes(rule)
        shapes = {
            "linear": (
                n_features,
                n_planes + (_WITH_STRENGTHS if _differ(settings) else 1 + units),
            ),
            "table": (n_features + layout.n_dummies, n_planes, layout.rank),
        }
        roomy = allocate(shapes, dtype, layout.n_dummies + room_for_hot_rows(settings.n_jobs))
        blocks = {name: block[: shapes[name][0]] for name, block in roomy.items()}
        learner = cls(new_model(layout, settings, rule, blocks, n_features), settings)
        learner._roomy = roomy
        dummies = np.arange(n_features, n_features + layout.n_dummies)
        learner._start(dummies, max(most_features - n_features, 0))
        if start is not None:
            start_bias(learner.model, rule, settings.penalties.bias, start)
        return learner

    def set_rows(self, rows: Rows) -> None:
        """Make ``rows`` the whole objective, and start the features that are new in them."""
        self.set_parts([rows])

    def set_parts(self, parts: Iterable[Rows]) -> None:
        """Make the rows of all parts the whole objective, as if they were one."""
        if _differ(self.settings):
            self._make_room_for_strengths()
        d, linear, n_planes = self.model.n_features, self.model.parameters.linear, self.n_planes
        has_units = linear.shape[1] > n_planes + 1
        sizes = (np.zeros(d), np.zeros(d)) if has_units else ()
        # Counted as integers: adding ones in single precision ends at 2**24.
        own_counts, n_entries = [np.zeros(d, dtype=np.uint32)], 0
        self.n_rows, self._hot = 0, None
        with Crew(self.settings.n_jobs) as crew:
            for rows in parts:
                self.n_rows += rows.n_rows
                n_entries += len(rows.indices)
                # Each thread has counts of its own, which must be worth their memory.
                n_threads = self._n_threads(n_entries // max(d, _WORTH_A_THREAD))
                while len(own_counts) < n_threads:
                    own_counts.append(np.zeros(d, dtype=np.uint32))
                self._count(crew, rows, own_counts)
                if has_units:
                    weigh_columns(rows, *sizes)
        counts = own_counts[0]
        for more in own_counts[1:]:
            counts += more
        self._set_strengths(slice(None))
        new = np.flatnonzero((counts > 0) & (linear[:, n_planes] == 0))
        renew_visits(counts, linear, n_planes)
        if has_units:
            set_units(linear, n_planes + 1, new, *sizes)
        self._start(new)
        if self.settings.n_jobs > 1:
            self._share_among_threads()

    def add_rows(self, rows: Rows) -> NDArray[np.int64]:
        """Add ``rows`` to the objective, and start the features that are new in them.

        Returns the features of these rows.
        """
        self.n_rows += rows.n_rows
        if _differ(self.settings):
            self._make_room_for_strengths()
        linear, n_planes = self.model.parameters.linear, self.n_planes
        visits, features = linear[:, n_planes], distinct(rows, self._mark)
        self._set_strengths(features)
        new = features[visits[features] == 0]
        count_visits(rows, visits)
        if new.size and linear.shape[1] > n_planes + 1:
            if is_binary(rows.values):
                linear[new, n_planes + 1] = 1.0
            else:
                measure_units(rows, linear, n_planes + 1, new)
        self._start(new)
        return features

    def visit(self, rows: Rows, order: NDArray[Any], crew: Crew, *, is_first: bool) -> float:
        """Visit a part of the rows once; return their mean loss before each was learnt."""
        return self._learn(crew, rows, order, None)

    @staticmethod
    def end_pass(learners: Any) -> None:
        """Take in that all rows were visited."""

    def __getstate__(self) -> dict[str, Any]:
        # The threads' rows belong to a run, not to the model.
        return {**self.__dict__, "_hot": None, "_roomy": None, "_spare": None}

    def renewed(self, settings: Settings) -> Self:
        """Return a learner of the same model that goes on with other settings but its own seed."""
        learner = super().renewed(settings)
        if learner.model is self.model:
            learner._mark, learner._spare = self._mark, self._spare
            learner._roomy = self._roomy if self._is_front_of_roomy() else None
        return learner

    def _is_front_of_roomy(self) -> bool:
        """Say whether the model's large blocks still are the front of the roomier ones."""
        p = self.model.parameters
        return self._roomy is not None and all(
            self._roomy[name].ctypes.data == getattr(p, name).ctypes.data for name in LARGE_BLOCKS
        )

    def widen(self, n_features: int, most_features: int) -> Callable[[], None]:
        """Make room for more features; return a function that takes it back.

        A model that shares its numbers with this one is then as it was, too. Room doubles, so that
        features one by one take time in proportion to their number; but there is never room for
        more than ``most_features``.
        """
        model, table = self.model, self.model.parameters.table
        dummies = table[model.n_features :].copy()
        if not has_room(model, self._spare, n_features):
            capacity = capacity_for(n_features, model.n_features, most_features)
            self._spare = more_room(model, capacity)
            self._grow_marks(capacity)
        assert self._spare is not None
        self.model = widened(model, self._spare, n_features)

        def undo() -> None:
            table[model.n_features :] = dummies

        return undo

    def _grow_marks(self, capacity: int) -> None:
        """Lengthen what is kept for each feature besides its parameters."""
        self._mark = np.zeros(capacity, dtype=np.uint8)

    def add_and_learn(self, rows: Rows) -> None:
        """Add some rows to the objective and visit each once."""
        features = self.add_rows(rows)
        self.learn(rows)
        if not are_finite(self.model.parameters, features):
            self.check_finite(features)  # which finds words for it

    def checkpoint(self, rows: Rows) -> Callable[[], None]:
        """Return a function that undoes what learning ``rows`` will do to the parameters.

        It keeps a copy of the parameters that these rows can change, and no more.
        """
        p, features = self.model.parameters, distinct(rows, self._mark)
        small = {name: getattr(p, name).copy() for name in SMALL_BLOCKS}
        dummies = p.table[self.model.n_features :].copy()
        linear, table = p.linear[features], p.table[features]

        def undo() -> None:
            for name, saved in small.items():
                getattr(p, name)[...] = saved
            p.table[self.model.n_features :] = dummies
            p.linear[features], p.table[features] = linear, table

        return undo

    def learn(
        self, rows: Rows, order: NDArray[np.int64] | None = None, report: Report | None = None
    ) -> float:
        """Visit ``rows`` once, in the given or their own order.

        Returns
        -------
        float
            Mean over the rows of the weighted loss that each had before it was learnt.

        Raises
        ------
        DivergenceError
            When a prediction or its gradient is not a finite number.
        """
        with Crew(self.settings.n_jobs) as crew:
            return self._learn(crew, rows, rows.numbers if order is None else order, report)

    @staticmethod
    def train(training: Training) -> None:
        """Run epochs until the training ends, all with the same threads."""
        parts = list(zip(training.learners, training.rows, strict=True))
        with Crew(training.learners[0].settings.n_jobs) as crew:
            while True:
                losses = [
                    learner.epoch(
                        rows, shuffle=training.shuffle, report=training.report(k), crew=crew
                    )
                    for k, (learner, rows) in enumerate(parts)
                ]
                if training.end_epoch(losses):
                    return

    def epoch(
        self,
        rows: Rows,
        *,
        shuffle: bool = True,
        report: Report | None = None,
        crew: Crew | None = None,
    ) -> float:
        """Visit ``rows`` once, in an order that depends on the seed and the epoch's number."""
        if crew is None:
            with Crew(self.settings.n_jobs) as crew:
                return self.epoch(rows, shuffle=shuffle, report=report, crew=crew)
        n_jobs, order = self.settings.n_jobs, rows.numbers
        if shuffle:
            order = random_order(order, self.settings.seed, self.n_epochs, n_jobs, crew.run)
        loss = self._learn(crew, rows, order, report)
        self.n_epochs += 1
        return loss

    @property
    def n_planes(self) -> int:
        """How many numbers the update rule keeps for a coordinate."""
        return updates.n_planes(self.settings.rule)

    def _learn(self, crew: Crew, rows: Rows, order: NDArray[Any], report: Report | None) -> float:
        order = read_only(order)
        longest = rows.longest
        work = [
            Work(
                self.model.work_cells(longest),
                np.empty((2, longest), dtype=rows.indices.dtype),
            )
            for _ in range(self.settings.n_jobs)
        ]
        loss_sum, done, size, batch = 0.0, 0, self._slice, self.settings.batch_size
        while done < len(order):
            part = order[done : done + -(-size // batch) * batch]
            started = time.perf_counter()
            loss_sum = self._learn_slice(crew, work, rows, part, loss_sum)
            done += len(part)
            if report is not None:
                report(done, len(order))
            if self.n_visits == len(part):
                continue  # the first slice may have waited for the compiler
            elapsed = max(time.perf_counter() - started, 1e-6)
            size = max(min(int(len(part) * _SECONDS_PER_SLICE / elapsed), 4 * size), 64)
        self._slice = size
        return loss_sum / max(len(order), 1)

    def _share_among_threads(self) -> None:
        p = self.model.parameters
        counts = p.linear[:, self.n_planes]
        hot = HotRows.find(p, counts, self.n_rows, self.settings.n_jobs, self._roomy)
        if len(hot.features) == 0:
            return
        # The model's own blocks are the front of the longer ones: nothing is kept twice.
        front = {name: getattr(hot.blocks, name)[: len(getattr(p, name))] for name in LARGE_BLOCKS}
        self.model = replace(self.model, parameters=p._replace(**front))
        self._hot = hot

    def _learn_slice(
        self,
        crew: Crew,
        work: list[Work],
        rows: Rows,
        order: NDArray[np.int64],
        loss_sum: float,
    ) -> float:
        """Let the threads learn the rows of ``order`` into the same table.

        Returns ``loss_sum`` with the losses of these rows.
        """
        model, hot = self.model, self._hot
        if hot is not None and hot.n_threads != len(work):
            hot = None
        shared = model.parameters if hot is None else hot.blocks
        owned, pieces = own_small_blocks(shared, len(work)), Pieces(order, len(work))

        def learn(thread: int, loss: float) -> tuple[float, int | None]:
            """Learn pieces until none is left; return the losses, and the row that failed."""
            room = work[thread]
            own = () if hot is None else (hot.numbers, hot.first_row(thread), room.indices)
            for first, piece in pieces:
                start = float(self.n_visits + first)
                call = self._call(owned[thread], rows, piece, start, room, loss)
                n_done, loss = learn_shared_rows(*call, *own) if own else learn_rows(*call)
                if n_done < len(piece):
                    return loss, int(piece[n_done])
            return loss, None

        if hot is not None:
            hot.hand_out()
        results = crew.run(learn, [(k, 0.0 if k else loss_sum) for k in range(len(work))])
        if hot is not None:
            hot.collect(self.n_planes)
        merge_small_blocks(shared, owned)
        for _, failed in results:
            if failed is not None:
                raise self._divergence(rows, failed)
        self.n_visits += len(order)
        return float(sum(loss for loss, _ in results))

    def _call(
        self,
        parameters: Parameters,
        rows: Rows,
        part: NDArray[np.int64],
        t: float,
        room: Work,
        loss_sum: float,
    ) -> tuple[Any, ...]:
        s, model = self.settings, self.model
        share = 1.0 if updates.sums_gradients(s.rule) else 1.0 / self.n_rows
        return (
            model.kernel, s.loss, s.rule, s.penalties, s.switches, parameters, model.plan, rows,
            part, t, share, room.cells, loss_sum,
        )  # fmt: skip

    def _make_room_for_strengths(self) -> None:
        """Lengthen the linear records of a model that was started without strengths."""
        p, n_planes = self.model.parameters, self.n_planes
        n_kept, n_wanted = p.linear.shape[1], n_planes + _WITH_STRENGTHS
        if n_kept == n_wanted:
            return
        linear = aligned_zeros((len(p.linear), n_wanted), p.linear.dtype)
        linear[:, :n_kept] = p.linear
        # Columns that were met without a unit had values of 1.
        linear[:, n_kept:] = p.linear[:, n_planes, np.newaxis] > 0
        self.model = replace(self.model, parameters=p._replace(linear=linear))

    def _set_strengths(self, features: NDArray[np.int64] | slice) -> None:
        """Write into the records of some features what their penalties are multiplied by."""
        linear, s, first = self.model.parameters.linear, self.settings, self.n_planes + 2
        if linear.shape[1] > first:
            for place, strengths in enumerate((s.linear_strengths, s.factor_strengths)):
                linear[features, first + place] = 1.0 if strengths is None else strengths[features]

    @staticmethod
    def _count(crew: Crew, rows: Rows, own_counts: list[NDArray[np.uint32]]) -> None:
        """Add the number of rows that each column is in, each thread to counts of its own."""
        parts = np.array_split(rows.numbers, len(own_counts))
        calls = [
            (rows._replace(numbers=read_only(part)), own)
            for part, own in zip(parts, own_counts, strict=True)
        ]
        crew.run(count_visits, calls)

    def _start(self, features: NDArray[np.int64], ahead: int = 0) -> None:
        """Start some features, each of them as if it were the only one."""
        if features.size == 0:
            return
        s, n_threads = self.settings, self._n_threads(len(features) // _WORTH_A_THREAD)
        calls = [
            (
                s.rule, s.penalties, self.model.parameters, part, s.seed, s.start_scales, ahead,
                s.switches.by_evidence,
            )
            for part in np.array_split(features, n_threads)
        ]  # fmt: skip
        with Crew(n_threads) as crew:
            crew.run(start_features, calls)

    def _n_threads(self, useful: int) -> int:
        return int(np.clip(useful, 1, self.settings.n_jobs))

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
            f"The learning rate is {rate:.6g}: lower learning_rate, "
            "or scale columns with large values (for example with MaxAbsScaler)."
        )


def _differ(settings: Settings) -> bool:
    """Say whether columns have penalties of their own."""
    return settings.linear_strengths is not None or settings.factor_strengths is not None
