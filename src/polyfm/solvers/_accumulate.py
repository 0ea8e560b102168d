"""Loss and gradient of all rows: a pass of the stochastic solver in which no weight moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm._jit import LANES, load_like, store
from polyfm.data.rows import Rows, read_only
from polyfm.kernels import contract as kernels
from polyfm.models._score import Parameters
from polyfm.models.factorized import Factorized, aligned_zeros
from polyfm.penalties import L2
from polyfm.solvers._columns import weigh_columns
from polyfm.solvers._epoch import Penalties, Switches, learn_rows
from polyfm.solvers._threads import Crew
from polyfm.solvers.learner import Report
from polyfm.updates import contract

_ROWS_PER_THREAD = 1024
_CELLS_PER_SLICE = 4_000_000
"""Take about a tenth of a second."""
_LEAST_SLICE = 64
_NO_PENALTIES = Penalties(L2(0.0), L2(0.0), L2(0.0), L2(0.0), L2(0.0))


class Accumulate(NamedTuple):
    """A rule that does not learn: it adds the gradient to the second plane.

    Rate, share of the penalty and unit play no part. Its blocks are filled by NumPy, so it has no
    ``begin``.
    """


@contract.n_planes.implements(Accumulate)
def _n_planes(rule):
    return 2


@contract.sums_gradients.implements(Accumulate)
def _sums_gradients(rule):
    return False


@contract.rate.implements(Accumulate)
def _rate(rule, t):
    return 1.0


@contract.unit_rate.implements(Accumulate)
def _unit_rate(rule, unit):
    return unit


@contract.step.implements(Accumulate)
def _step(rule, penalty, memory, at, stride, count, g, rate, share):
    store(memory, at + stride, count, load_like(g, memory, at + stride, count) + g)


class NotFiniteError(ArithmeticError):
    """A row whose prediction or gradient is no finite number."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


class Accumulator:
    """Works out losses and gradients of models of one shape, in double precision.

    The parameters that are learnt make one vector: bias, linear weights, basis weights, degree
    weights, table. Features that are in no row have no part in it.

    Parameters
    ----------
    model : Factorized
        Gives kernel and shape.
    switches : Switches
        What is learnt.
    rows : Rows
        The rows, with the targets of any learner.
    features : ndarray
        The columns that are in some row, in increasing order.
    n_jobs : int
        Threads at most. Each has weights and gradients of its own and always the same rows, so
        results depend on their number by rounding alone, and not on chance.
    """

    def __init__(
        self,
        model: Factorized,
        switches: Switches,
        rows: Rows,
        features: NDArray[np.int64],
        n_jobs: int,
    ) -> None:
        self._switches = switches
        self._features = features
        self._rows = _double(rows, features, model.n_features)
        n_threads = int(np.clip(rows.n_rows // _ROWS_PER_THREAD, 1, n_jobs))
        self._numbers = np.array_split(rows.numbers, n_threads)
        self._models = [_blank(model, len(features)) for _ in range(n_threads)]
        self._cells = [own.work_cells(rows.longest) for own in self._models]
        self._blocks = [_learnt(own.parameters, switches) for own in self._models]
        self._crew = Crew(n_threads)
        self._slice = _rows_per_slice(self._models[0], rows)
        self.weight = float(rows.weight[rows.numbers].sum(dtype=np.float64))
        """Sum of the weights of the rows."""
        self.squares = np.zeros(len(features))
        """Weighted sum of squares of each feature's values."""
        weigh_columns(self._rows, np.zeros(len(features)), self.squares)

    def __enter__(self) -> Accumulator:
        return self

    def __exit__(self, *exc: object) -> None:
        self._crew.__exit__(*exc)

    def spread(self, **of_blocks: Any) -> NDArray[np.float64]:
        """Return the vector that holds a given number, or array, for each block that is learnt."""
        blocks = self._blocks[0]
        parts = [np.broadcast_to(of_blocks[name], block[0].shape) for name, block in blocks.items()]
        return np.concatenate([np.empty(0), *(part.ravel() for part in parts)])

    def of_features(self, numbers: NDArray[Any] | None) -> NDArray[Any]:
        """Return those numbers of all columns that belong to linear weights; ones for None."""
        return np.ones(len(self._features)) if numbers is None else numbers[self._features]

    def rows_of_table(self, of_features: NDArray[Any], of_dummies: float) -> NDArray[np.float64]:
        """Return numbers of features and of dummy features as a column, for the table."""
        dummies = np.full(self._models[0].n_dummies, of_dummies)
        return np.concatenate([of_features, dummies])[:, np.newaxis]

    def read(self, model: Factorized) -> NDArray[np.float64]:
        """Return the vector of a model's weights; those that stay fixed are kept for the passes."""
        p = model.parameters
        for own in self._models:
            mine = own.parameters
            for name in ("bias", "weights", "theta"):
                getattr(mine, name)[0] = getattr(p, name)[0]
            mine.linear[:, 0] = p.linear[self._features, 0]
            mine.table[:, 0] = p.table[self._in_table(model), 0]
        weights = {name: block[0] for name, block in self._blocks[0].items()}
        return self.spread(**weights)

    def write(self, vector: NDArray[np.float64], model: Factorized) -> None:
        """Write a vector into a model."""
        p = model.parameters
        for name, weights in self._pieces(vector):
            if name == "linear":
                p.linear[self._features, 0] = weights
            elif name == "table":
                p.table[self._in_table(model), 0] = weights
            else:
                block = getattr(p, name)[0]
                block[len(block) - len(weights) :] = weights

    def loss_and_gradient(
        self,
        vector: NDArray[np.float64],
        loss: Any,
        target: NDArray[Any],
        report: Report | None = None,
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the sum of the weighted losses and its gradient.

        Raises
        ------
        NotFiniteError
            Where a prediction or the gradient is not finite.
        """
        rows = self._rows.with_target(target)
        self._set(vector)
        total, done = 0.0, 0
        for numbers in self._slices():
            calls = self._calls(loss, rows, numbers)
            for (n_done, part), own in zip(self._crew.run(learn_rows, calls), numbers, strict=True):
                if n_done < len(own):
                    raise NotFiniteError(int(own[n_done]))
                total += part
            done += sum(map(len, numbers))
            if report is not None:
                report(done, rows.n_rows)
        return float(total), self._gradient()

    def _slices(self) -> Iterator[list[NDArray[Any]]]:
        """Yield some rows of each thread, always the same: so sums come out the same."""
        longest = max(map(len, self._numbers))
        for first in range(0, longest, self._slice):
            yield [numbers[first : first + self._slice] for numbers in self._numbers]

    def _calls(self, loss: Any, rows: Rows, numbers: list[NDArray[Any]]) -> list[tuple[Any, ...]]:
        return [
            (
                model.kernel, loss, Accumulate(), _NO_PENALTIES, self._switches, model.parameters,
                model.plan, rows, own, 0.0, 0.0, cells, 0.0,
            )
            for model, own, cells in zip(self._models, numbers, self._cells, strict=True)
        ]  # fmt: skip

    def _set(self, vector: NDArray[np.float64]) -> None:
        for blocks in self._blocks:
            for name, weights in self._pieces(vector):
                blocks[name][0] = weights
                blocks[name][1] = 0.0

    def _gradient(self) -> NDArray[np.float64]:
        sums = {name: sum(blocks[name][1] for blocks in self._blocks) for name in self._blocks[0]}
        return self.spread(**sums)

    def _pieces(self, vector: NDArray[np.float64]) -> Iterator[tuple[str, NDArray[np.float64]]]:
        first = 0
        for name, block in self._blocks[0].items():
            shape = block[0].shape
            last = first + int(np.prod(shape))
            yield name, vector[first:last].reshape(shape)
            first = last

    def _in_table(self, model: Factorized) -> NDArray[np.int64]:
        d = model.n_features
        return np.concatenate([self._features, np.arange(d, d + model.n_dummies)])


def _double(rows: Rows, features: NDArray[np.int64], n_features: int) -> Rows:
    """Return the rows in double precision, their columns numbered by place in ``features``."""
    indices = rows.indices
    if len(features) < n_features:
        places = np.zeros(n_features, dtype=indices.dtype)
        places[features] = np.arange(len(features))
        indices = read_only(places[indices])
    values, target, weight = (
        read_only(array.astype(np.float64, copy=False))
        for array in (rows.values, rows.target, rows.weight)
    )
    return rows._replace(indices=indices, values=values, target=target, weight=weight)


def _blank(model: Factorized, n_features: int) -> Factorized:
    """Return a model of the same shape on other features, with room for gradients."""
    k, m = model.rank, model.parameters.degrees.shape[0]
    parameters = Parameters(
        bias=np.zeros((2, 1)),
        # The third column is the number of rows with the feature, of which nothing depends here.
        linear=aligned_zeros((n_features, 3), np.float64),
        table=aligned_zeros((n_features + model.n_dummies, 2, k), np.float64),
        weights=np.zeros((2, k)),
        theta=np.zeros((2, m)),
        degrees=model.parameters.degrees.astype(np.float64),
    )
    parameters.linear[:, 2] = 1.0
    return Factorized(model.kernel, model.columns, parameters, model.n_dummies)


def _learnt(p: Parameters, switches: Switches) -> dict[str, NDArray[np.float64]]:
    """Return views of the blocks that are learnt; their first axis is weight and gradient."""
    blocks = {
        "bias": p.bias if switches.bias else None,
        "linear": p.linear[:, :2].T if switches.linear else None,
        "weights": p.weights if switches.weights else None,
        "theta": p.theta[:, switches.theta_from :],
        "table": p.table.transpose(1, 0, 2),
    }
    return {name: block for name, block in blocks.items() if block is not None}


def _rows_per_slice(model: Factorized, rows: Rows) -> int:
    mean_terms = len(rows.indices) / max(len(rows.indptr) - 1, 1)
    n_chunks = -(-model.rank // LANES)
    cells = (mean_terms + model.n_dummies + 1) * (n_chunks * kernels.n_cells(model.kernel) + 1)
    return max(int(_CELLS_PER_SLICE / cells), _LEAST_SLICE)
