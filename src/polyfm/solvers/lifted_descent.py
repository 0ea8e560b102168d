"""Coordinate descent on lifted models: factor after factor, without a learning rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from polyfm.data.rows import Rows, as_rows, read_only
from polyfm.kernels import lifted
from polyfm.losses import contract as losses
from polyfm.models._lifted_score import LiftedParameters
from polyfm.models.layout import Layout
from polyfm.models.lifted import Lifted
from polyfm.solvers import _lifted_sweep as sweep
from polyfm.solvers._by_column import Columns, columns_of
from polyfm.solvers._columns import count_visits, measure_units
from polyfm.solvers._lifted_sweep import Samples
from polyfm.solvers.learner import Learner, Report, Settings, allocate

if TYPE_CHECKING:
    from polyfm.solvers.training import Training

_ENTRIES_PER_CALL = 500_000
"""Non-zeros that a compiled call works on at most, unless a column has more: some 10 ms."""


@dataclass
class LiftedLearner(Learner):
    r"""A lifted model in the making.

    It lowers :math:`\sum_i s_i \ell(y_i, f(x_i)) + \frac{\alpha}{2} \|w\|^2
    + \frac{\beta}{2} \sum_t \|U^t\|^2`, which is convex in each coordinate. With the curvature
    bound :math:`\mu` of the loss and :math:`g_i = \partial f(x_i) / \partial u_{js}^t`, an epoch
    takes the steps

    .. math:: u_{js}^t \leftarrow u_{js}^t - \frac{\sum_i s_i \ell'_i g_i + \beta u_{js}^t}
        {\mu \sum_i s_i g_i^2 + \beta}

    one after the other over bias, linear term, bases, slots and features. Each minimises an upper
    bound of the objective that touches it (the objective itself for the squared loss), so the
    objective never rises.

    An epoch takes O(m r nnz) time for the polynomial and O(2^m m r nnz) for the ANOVA kernel.
    Besides data and parameters a training holds a copy of the data by columns, and for each row
    five numbers and the cells of one basis: m + 1 or 2^m numbers.
    """

    model: Lifted  # type: ignore[assignment]

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
        """Allocate a model in double precision, whatever ``dtype`` is, and start its dummies.

        Raises
        ------
        MemoryError
            When the factors take more memory than there is.
        """
        shape = (n_features + layout.n_dummies, layout.rank, len(layout.degrees))
        blocks = allocate({"linear": (n_features,), "table": shape}, np.float64, 0)
        met = np.zeros(n_features, dtype=np.uint8)
        parameters = LiftedParameters(np.zeros(1), **blocks, met=met)
        learner = cls(Lifted(layout.kernel, parameters, layout.n_dummies), settings)
        learner._start(np.arange(n_features, shape[0]), np.ones(layout.n_dummies))
        if start is not None:
            # Dummy features may predict something of an empty row themselves.
            own = float(learner.model.scores(as_rows(sp.csr_matrix((1, n_features))))[0])
            parameters.bias[0] = start - own
        return learner

    def set_rows(self, rows: Rows) -> None:
        """Make ``rows`` the whole objective, and start the features that are new in them."""
        self.n_rows = rows.n_rows
        met = self.model.parameters.met
        counts = np.zeros(len(met), dtype=rows.numbers.dtype)
        count_visits(rows, counts)
        new = np.flatnonzero((counts > 0) & (met == 0))
        units = np.ones((len(met), 1))
        measure_units(rows, units, 0, new)
        self._start(new, units[new, 0])
        met[new] = 1

    def _start(self, features: NDArray[np.int64], units: NDArray[np.float64]) -> None:
        """Start some features at random factors that depend on the seed and the feature alone."""
        table = self.model.parameters.table
        _, rank, m = table.shape
        scales = np.repeat(self.settings.start_scales, m)
        drawn = np.empty((len(features), rank * m))
        sweep.draw(self.settings.seed, features, drawn)
        table[features] = (drawn * scales * units[:, None]).reshape(len(features), rank, m)

    @staticmethod
    def train(training: Training) -> None:
        """Run epochs until the training ends. Classes share the columns and the cells."""
        columns = columns_of(training.rows[0], training.learners[0].model.n_features, ones=True)
        cells = np.empty((len(columns.values) - columns.indptr[-2], training.learners[0].n_cells))
        descents = [
            Descent(learner, rows, columns, cells)
            for learner, rows in zip(training.learners, training.rows, strict=True)
        ]
        while True:
            results = [d.epoch(training.report(k)) for k, d in enumerate(descents)]
            if training.end_epoch([r[0] for r in results], [r[1] for r in results]):
                return

    @property
    def n_cells(self) -> int:
        """How many numbers the state of a row takes."""
        return int(lifted.n_cells(self.model.kernel))

    def copy(self) -> Self:
        """Return a learner that may change without changing this one."""
        return replace(self, model=self.model.weights_only())

    def best_weights(self) -> Any:
        """Return room for a copy of the weights, which can be written back."""
        return _Kept(self.model.parameters)

    def advice(self) -> str:
        """Say in words what helps against divergence."""
        return "Scale columns with large values down (for example with MaxAbsScaler)."

    @property
    def n_planes(self) -> int:
        """One: the weight itself."""
        return 1


class _Kept:
    """A copy of the weights."""

    def __init__(self, parameters: LiftedParameters) -> None:
        self._parameters = parameters
        self._blocks = [np.empty_like(block) for block in parameters]

    def take(self) -> None:
        for block, kept in zip(self._parameters, self._blocks, strict=True):
            kept[...] = block

    def put_back(self) -> None:
        for block, kept in zip(self._parameters, self._blocks, strict=True):
            block[...] = kept


class Descent:
    """Coordinate descent of one learner on its rows."""

    def __init__(
        self, learner: LiftedLearner, rows: Rows, columns: Columns, cells: NDArray[np.float64]
    ) -> None:
        self._learner, self._rows, self._columns = learner, rows, columns
        target, weight = (
            read_only(a[rows.numbers].astype(np.float64)) for a in (rows.target, rows.weight)
        )
        score = learner.model.scores(rows)
        self._samples = Samples(
            target, weight, score, np.empty_like(score), cells, np.empty((2, cells.shape[1]))
        )
        self._parts = _parts_of(columns.indptr, len(learner.model.parameters.table))
        self._alphas, self._betas = _strengths(learner)
        sweep.begin_descent(learner.settings.loss, self._samples)

    def epoch(self, report: Report | None = None) -> tuple[float, float]:
        """Visit every coordinate once; return mean loss and mean objective afterwards."""
        learner = self._learner
        calls = list(self._calls())
        for i, call in enumerate(calls):
            call()
            if report is not None:
                report(self._rows.n_rows * (i + 1) // len(calls), self._rows.n_rows)
        learner.n_epochs += 1
        learner.n_visits += self._rows.n_rows
        loss = sweep.begin_descent(learner.settings.loss, self._samples)
        return loss / self._rows.n_rows, (loss + self._penalty()) / self._rows.n_rows

    def _calls(self) -> Iterator[Callable[[], None]]:
        """Return the parts of an epoch, each short enough for Ctrl-C to wait for."""
        switches, p = self._learner.settings.switches, self._learner.model.parameters
        d = len(p.linear)
        if switches.bias:
            yield partial(self._descend_linear, d, p.bias, np.zeros(1), (0, 1))
        if switches.linear:
            for part in self._parts:
                within = (part[0], min(part[1], d))
                yield partial(self._descend_linear, 0, p.linear, self._alphas, within)
        for basis in range(p.table.shape[1]):
            yield from self._calls_of_basis(basis)

    def _calls_of_basis(self, basis: int) -> Iterator[Callable[[], None]]:
        kernel = self._learner.model.kernel
        yield partial(sweep.begin_basis, kernel, self._samples)
        for part in self._parts:
            yield partial(self._absorb, basis, part)
        for slot in range(self._learner.model.degree):
            yield partial(sweep.focus_rows, kernel, self._samples, slot)
            for part in self._parts:
                yield partial(self._descend_slot, basis, slot, part)

    def _descend_linear(
        self, offset: int, weights: NDArray[Any], strengths: NDArray[Any], part: tuple[int, int]
    ) -> None:
        loss = self._learner.settings.loss
        sweep.descend_linear(
            loss, self._columns, offset, self._samples, weights, strengths, part[0], part[1]
        )

    def _absorb(self, basis: int, part: tuple[int, int]) -> None:
        model = self._learner.model
        sweep.absorb_columns(
            model.kernel, self._columns, model.parameters.table, basis, self._samples, *part
        )

    def _descend_slot(self, basis: int, slot: int, part: tuple[int, int]) -> None:
        model, loss = self._learner.model, self._learner.settings.loss
        sweep.descend_slot(
            model.kernel, loss, self._columns, self._rows, self._samples, model.parameters.table,
            basis, slot, self._betas, part[0], part[1],
        )  # fmt: skip

    def _penalty(self) -> float:
        p = self._learner.model.parameters
        squares = np.einsum("jst,jst->j", p.table, p.table)
        return 0.5 * float((self._alphas * p.linear**2).sum() + (self._betas * squares).sum())


def _strengths(learner: LiftedLearner) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the penalty of each column's linear weight, and that of each table row's factors."""
    s, d = learner.settings, learner.model.n_features
    alphas = np.full(d, float(s.penalties.linear.strength))
    betas = np.full(d + learner.model.n_dummies, float(s.penalties.factors.strength))
    if s.linear_strengths is not None:
        alphas *= s.linear_strengths
    if s.factor_strengths is not None:
        betas[:d] *= s.factor_strengths
    return alphas, betas


def _parts_of(indptr: NDArray[np.int64], n_rows_of_table: int) -> list[tuple[int, int]]:
    """Cut features and dummy features into ranges of about as many non-zeros as a call takes."""
    ends = np.concatenate([indptr[1:-1], indptr[-2] + (indptr[-1] - indptr[-2]) * np.arange(
        1, n_rows_of_table - len(indptr) + 3)])  # fmt: skip
    parts, first = [], 0
    while first < n_rows_of_table:
        before = ends[first - 1] if first else 0
        last = int(np.searchsorted(ends, before + _ENTRIES_PER_CALL, side="right"))
        parts.append((first, max(last, first + 1)))
        first = parts[-1][1]
    return parts


def refuse_unbounded(loss: Any, name: Any) -> None:
    """Raise a ValueError for a loss without a bound on its curvature."""
    if not np.isfinite(losses.curvature(loss)):
        raise ValueError(
            f"loss={name!r} has no bounded curvature, which coordinate descent needs: choose "
            "squared, huber, logistic or squared_hinge, or learn the direct form with lifted=False."
        )
