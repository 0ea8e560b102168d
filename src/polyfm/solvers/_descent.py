"""The sweeps of coordinate descent over one set of rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm._jit import LANES
from polyfm.data.rows import Rows, read_only
from polyfm.kernels import columns as column_kernels
from polyfm.kernels import contract as kernels
from polyfm.models._score import Parameters, load_degree_weights
from polyfm.models.factorized import Factorized, aligned_zeros
from polyfm.penalties import L2, ElasticNet
from polyfm.penalties import contract as penalties
from polyfm.solvers import _sweep
from polyfm.solvers._by_column import Columns
from polyfm.solvers._sweep import Block, Records, Room
from polyfm.solvers.learner import Report, Settings

_SECONDS_PER_SLICE = 0.15
_FIRST_SLICE = 200_000
"""Non-zeros of the first call of a pass; later ones are cut by the time they take."""

Sweep = Callable[[int, int], None]
"""Learns the columns from a first one to before a last one."""


class Descent:
    """The rows by columns, what is kept of each row, and the passes over them.

    Parameters
    ----------
    model : Factorized
        Changed in place, after each sweep.
    settings : Settings
    rows : Rows
    columns : Columns
        The same rows by columns.
    """

    def __init__(self, model: Factorized, settings: Settings, rows: Rows, columns: Columns) -> None:
        self.model, self.settings, self.rows = model, settings, rows
        self.work = _in_double(model)
        self.columns = columns
        self.groups = _groups(self.work)
        self.records = self._records()
        self.room = self._room()
        d, n_dummies = model.n_features, model.n_dummies
        self._linear_strengths = _or_ones(settings.linear_strengths, d, 0)
        self._factor_strengths = _or_ones(settings.factor_strengths, d, n_dummies)
        self._slices: dict[int, float] = {}

    def sweep(self, report: Report | None) -> tuple[float, float]:
        """Go once over all parameters; return the mean loss and the mean objective after it."""
        switches, p = self.settings.switches, self.work.parameters
        passes: list[tuple[Sweep, int]] = []
        if switches.linear:
            passes.append((self._linear_pass, self.model.n_features))
        passes += [
            (self._factor_pass(kernel, group, first), len(p.table))
            for kernel, group in self.groups
            for first in range(0, group.size, self.settings.block_size)
        ]
        if switches.bias:
            p.bias[0, 0] += self._step(L2(0.0), 0.0, p.bias[0, 0], np.empty(0))
        for number, (run, n_columns) in enumerate(passes):
            self._in_slices(run, n_columns, report, number, len(passes))
        if switches.weights:
            self._learn_weights()
        for t in range(switches.theta_from, p.theta.shape[1]):
            self._learn_theta(t)
        _copy(p, self.model.parameters)
        return self._loss_and_objective()

    def _linear_pass(self, first: int, last: int) -> None:
        s = self.settings
        _sweep.sweep_linear(
            s.loss, s.penalties.linear, first, last, self.columns, self.work.parameters.linear,
            self._linear_strengths, self.records, self.room.small,
        )  # fmt: skip

    def _factor_pass(self, kernel: Any, group: Block, first_basis: int) -> Sweep:
        """Return the pass over the block of a group that begins with a basis."""
        s, p, plan, room = self.settings, self.work.parameters, self.work.plan, self.room
        count = min(s.block_size, group.size - first_basis)
        # The state of a basis hangs on its own factors alone: one fold serves the group.
        block = Block(group.column + first_basis, count, group.theta)
        sweep = _sweep.sweep_basis if count == 1 else _sweep.sweep_factors

        def run(first: int, last: int) -> None:
            if first == 0 and first_basis == 0:
                self._load_degree_weights()
                _sweep.fold_rows(kernel, p.table, group, self.rows, plan, self.records, room)
            if first == 0 and room.planes.size:
                _sweep.load_state(kernel, first_basis, count, self.records, room)
            sweep(
                kernel, s.loss, s.penalties.factors, block, first, last, self.columns, self.rows,
                plan, p, self._factor_strengths, self.records, room,
            )  # fmt: skip

        return run

    def _in_slices(
        self, run: Sweep, n_columns: int, report: Report | None, number: int, n_passes: int
    ) -> None:
        """Run a pass in calls short enough for Ctrl-C."""
        ends = self.columns.indptr
        done = 0
        while done < n_columns:
            first = min(done, len(ends) - 1)
            size = self._slices.get(number, _FIRST_SLICE)
            last = int(np.searchsorted(ends, ends[first] + size))
            # Columns of dummy features hold all rows: one call for all of them.
            last = n_columns if last >= len(ends) - 1 else max(last, done + 1)
            started = time.perf_counter()
            run(done, last)
            seconds = max(time.perf_counter() - started, 1e-6)
            self._slices[number] = np.clip(size * _SECONDS_PER_SLICE / seconds, 1e4, 1e12)
            done = last
            if report is not None:
                report(number * n_columns + done, n_passes * n_columns)

    def _learn_weights(self) -> None:
        r"""Minimise over the weight of each basis, of penalty :math:`|\lambda_s| \Omega(p_s)`.

        In :math:`\lambda_s \Omega(p_s)` this is a lasso; the soft threshold is the same in
        :math:`\lambda_s`. A basis whose weight becomes 0 is gone: its factors become 0, too,
        and the end of the training drops it.
        """
        p, plan = self.work.parameters, self.work.plan
        values = np.empty(self.rows.n_rows * LANES)
        for kernel, block in self.groups:
            self._load_degree_weights()
            _sweep.kernel_values(kernel, block, self.rows, plan, p.table, self.room, values)
            for r in range(block.size):
                s = block.column + r
                threshold = ElasticNet(self._penalty_of_basis(s), 0.0)
                start = p.weights[0, s]
                change = self._step(threshold, 1.0, start, values[r:])
                p.weights[0, s] = start + change
                if p.weights[0, s] == 0.0:
                    p.table[:, 0, s] = 0.0

    def _penalty_of_basis(self, s: int) -> float:
        values = penalties.value(
            self.settings.penalties.factors, self.work.parameters.table[:, 0, s]
        )
        return float(np.sum(self._factor_strengths * values))

    def _learn_theta(self, t: int) -> None:
        p, plan = self.work.parameters, self.work.plan
        values = np.zeros(self.rows.n_rows)
        for kernel, block in self.groups:
            _sweep.add_degree_values(kernel, block, self.rows, plan, p, self.room, t, values)
        penalty = self.settings.penalties.theta
        p.theta[0, t] += self._step(penalty, 1.0, p.theta[0, t], values, 1)

    def _step(
        self,
        penalty: Any,
        strength: float,
        start: float,
        values: NDArray[Any],
        stride: int = LANES,
    ) -> float:
        """Minimise over the parameter whose derivatives are ``values``; return its change."""
        return float(
            _sweep.step_dense(
                self.settings.loss, penalty, strength, start, values, stride, self.records,
                self.room.small,
            )
        )  # fmt: skip

    def _load_degree_weights(self) -> None:
        chunks = np.array([(0, g.column, g.size) for _, g in self.groups], np.int64).reshape(-1, 3)
        load_degree_weights(self.work.parameters, chunks, self.room.cells)

    def _loss_and_objective(self) -> tuple[float, float]:
        s, p = self.settings, self.work.parameters
        loss = float(_sweep.total_loss(s.loss, self.records))
        linear = self._linear_strengths @ penalties.value(s.penalties.linear, p.linear[:, 0])
        of_bases = [
            abs(float(p.weights[0, basis])) * self._penalty_of_basis(basis)
            for basis in range(self.work.rank)
        ]
        theta = p.theta[0, s.switches.theta_from :]
        total = (
            loss + linear + sum(of_bases) + float(penalties.value(s.penalties.theta, theta).sum())
        )
        n = self.rows.n_rows
        return loss / n, float(total) / n

    def _records(self) -> Records:
        """Return the records of the rows, without the states of any basis."""
        n, rows = self.rows.n_rows, self.rows
        widest = max((group.size for _, group in self.groups), default=0)
        width = min(self.settings.block_size, widest)
        n_state = self._n_state * width
        head = _multiple(3 + n_state, 4) if width == 1 else 4
        heads = aligned_zeros((n, head), np.float64)
        doubled = rows._replace(values=read_only(rows.values.astype(np.float64, copy=False)))
        heads[:, _sweep.SCORE] = self.work.scores(doubled)
        heads[:, _sweep.TARGET] = rows.target[rows.numbers]
        heads[:, _sweep.WEIGHT] = rows.weight[rows.numbers]
        flat = heads.ravel()
        if width == 1:
            return Records(flat, head, flat, head, 3)
        stride = _multiple(n_state, LANES)
        # A full load of the last row's lanes may read beyond them.
        return Records(flat, head, aligned_zeros((n * stride + LANES,), np.float64), stride, 0)

    @property
    def _n_state(self) -> int:
        """Cells of state of a row and basis."""
        return max((column_kernels.n_row_cells(kernel) for kernel, _ in self.groups), default=0)

    def _room(self) -> Room:
        m, n = self.work.parameters.theta.shape[1], self.rows.n_rows
        widest = max((group.size for _, group in self.groups), default=0)
        longest = n if self.work.n_dummies else int(np.diff(self.columns.indptr).max(initial=0))
        n_folding = max((kernels.n_cells(kernel) for kernel, _ in self.groups), default=0)
        in_parts = self.settings.block_size < widest
        return Room(
            cells=aligned_zeros(((len(self.groups) * m + n_folding) * LANES,), np.float64),
            planes=np.empty(self._n_state * LANES * n if in_parts else 0),
            slopes=aligned_zeros((longest * LANES,), np.float64),
            hard=np.zeros(longest, dtype=np.int64),
            small=aligned_zeros((_sweep.SMALL_ROOM,), np.float64),
        )


def _in_double(model: Factorized) -> Factorized:
    """Return the model itself if it is of double precision, else a copy that is."""
    if model.parameters.table.dtype == np.float64:
        return model
    blocks = []
    for block in model.parameters:
        copy = aligned_zeros(block.shape, np.float64)
        copy[...] = block
        blocks.append(copy)
    return replace(model, parameters=Parameters(*blocks))


def _copy(source: Parameters, target: Parameters) -> None:
    for block, out in zip(source, target, strict=True):
        if out is not block:
            out[...] = block


def _groups(work: Factorized) -> list[tuple[Any, Block]]:
    """Cut the bases of each degree into groups of eight; return each with its kernel."""
    m = work.parameters.theta.shape[1]
    groups: list[tuple[Any, Block]] = []
    for degree, columns in work.columns.items():
        kernel = work.kernel
        if degree:
            kernel = column_kernels.alone(kernels.at_degree(kernel, degree))
        for first in range(columns.start, columns.stop, LANES):
            count = min(LANES, columns.stop - first)
            groups.append((kernel, Block(first, count, len(groups) * m)))
    return groups


def _or_ones(strengths: NDArray[np.float64] | None, d: int, n_more: int) -> NDArray[np.float64]:
    given = np.ones(d) if strengths is None else strengths
    return np.concatenate([given, np.ones(n_more)])


def _multiple(size: int, step: int) -> int:
    """Return the least multiple of ``step`` that is no less than ``size``."""
    return -(-size // step) * step
