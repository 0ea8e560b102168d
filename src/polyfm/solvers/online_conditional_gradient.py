r"""Online conditional gradient: a convex model of degree 2 learnt row by row.

The whole model is one symmetric matrix C of :math:`\hat{x} = (x, 1)`,

.. math:: f(x) = \tfrac12 \hat{x}^T C \hat{x}, \qquad
    C = \begin{pmatrix} Z & w \\ w^T & 2 b \end{pmatrix}, \qquad \|C\|_* \le \delta,

and each row's gradient by it is :math:`\ell' A(x)` with
:math:`A = \tfrac12 (\hat{x} \hat{x}^T - \mathrm{diag}(e))`. Without the diagonal of Z,
:math:`e_j = x_j^2`; without a bias, e is 1 for the last coordinate; without a linear term the 1 of
:math:`\hat{x}` is a 0, and e is -1 there if there is a bias.

After the t-th round of rows, C moves to :math:`(1 - s) C + s V`, :math:`s = \min(1, 2 / \sqrt t)`,
towards the V of the ball that is the least in :math:`\langle V, F \rangle`,

.. math:: F = \eta \sum_{s \le t} G_s + 2 C, \qquad V = -\delta \, \mathrm{sgn}(\lambda) u u^T,
    \qquad \eta = \frac{\gamma \delta}{t^{1/4} \bigl( \sum_{s \le t} g_s^2 \bigr)^{1/2}},

with the eigenpair of the largest :math:`|\lambda|` of F, the gradients :math:`G_s` of the rounds
and their Frobenius norms :math:`g_s`. A ball of diameter :math:`2 \delta` and a common bound g of
the norms would make it :math:`\eta = 2 \delta / 2 g t^{3/4}`; the root mean square serves where
none is known, and :math:`\gamma` is 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyfm._jit import jit
from polyfm.data.rows import Rows, read_only
from polyfm.exceptions import DivergenceError
from polyfm.losses import contract as losses
from polyfm.models.factorized import Factorized
from polyfm.solvers._convex import Floats, Point, diagonalised
from polyfm.solvers._low_rank import LowRank, extreme_eigenpair
from polyfm.solvers._random import symmetric
from polyfm.solvers.convex_learner import ConvexLearner, layout_of

_AUTO_TRACE = 5.0
_SMALLEST_TRACE = 1e-12
_LARGEST = 1e300
_ROUNDING = 1e-12


class Form(NamedTuple):
    """Which entries of the matrix C there are."""

    diagonal: bool
    linear: bool
    bias: bool


class OnlineSettings(NamedTuple):
    """What is learnt, and how."""

    loss: Any
    form: Form
    batch_size: int
    """Rows of a round."""
    max_rank: int
    """Of C and of the sum of gradients, when they are cut; they may be twice as large before."""
    learning_rate: float
    """The factor gamma of eta."""


class GradientSum(NamedTuple):
    r"""The sum :math:`\sum_i \ell'_i A(x_i)`, in bounded memory and without a matrix.

    The diagonal part is kept exactly. The other is the latest rows as they are, and for all rows
    before them the nearest matrix of low rank.
    """

    former: LowRank
    indptr: NDArray[np.int64]
    """The latest rows with one more column, that of the constant, in the CSR format."""
    indices: NDArray[np.int64]
    values: Floats
    slopes: Floats
    """Their derivatives of the loss."""
    diagonal: Floats
    r"""(d + 1,): :math:`\sum_i \ell'_i e_i` over all rows."""

    @classmethod
    def zero(cls, size: int) -> Self:
        """Return the sum over no rows."""
        none = np.zeros(0, dtype=np.int64)
        start = np.zeros(1, dtype=np.int64)
        return cls(LowRank.zero(size), start, none, np.zeros(0), np.zeros(0), np.zeros(size))

    @property
    def latest(self) -> sp.csr_matrix:
        """The latest rows."""
        shape = (len(self.slopes), len(self.diagonal))
        return sp.csr_matrix((self.values, self.indices, self.indptr), shape=shape)

    def operator(self) -> Callable[[Floats], Floats]:
        """Return the function that multiplies by a vector or by columns."""
        latest = self.latest
        columns = latest.T

        def times(vector: Floats) -> Floats:
            slopes, diagonal = self.slopes, self.diagonal
            if vector.ndim == 2:
                slopes, diagonal = slopes[:, np.newaxis], diagonal[:, np.newaxis]
            rows = columns @ (slopes * (latest @ vector))
            product: Floats = self.former.times(vector) + 0.5 * (rows - diagonal * vector)
            return product

        return times

    def plus(self, rows: tuple[Any, ...], slopes: Floats, diagonal: Floats) -> Self:
        """Return the sum with some more rows (CSR arrays) and, with them, another diagonal part."""
        indptr, indices, values = rows
        return self._replace(
            indptr=np.concatenate([self.indptr, self.indptr[-1] + indptr[1:]]),
            indices=np.concatenate([self.indices, indices]),
            values=np.concatenate([self.values, values]),
            slopes=np.concatenate([self.slopes, slopes]),
            diagonal=diagonal,
        )

    def square_of_latest(self, n: int, form: Form) -> float:
        """Return the squared Frobenius norm of the part of the n latest rows."""
        rows, slopes = self.latest[-n:], self.slopes[-n:]
        products = (rows @ rows.T).toarray()
        corner = float(slopes.sum()) if form.bias else 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            whole = float(slopes @ (products * products) @ slopes)
            own = rows.multiply(rows).T @ slopes
            left_out = own if not form.diagonal else own[-1:]
            square = whole - float(left_out @ left_out) + corner * corner
        if not np.isfinite(square):
            return np.inf
        # Where nothing but rounding is left, there is nothing.
        return 0.25 * square if square > _ROUNDING * (whole + corner * corner) else 0.0

    def cut(self, rank: int) -> Self:
        """Return the sum with low rank for the latest rows, too."""
        weights = np.concatenate([self.former.weights, 0.5 * self.slopes])
        bases = np.concatenate([self.former.bases, self.latest.toarray()])
        former = LowRank(weights, bases).truncated(rank)
        return self.zero(len(self.diagonal))._replace(former=former, diagonal=self.diagonal)


@dataclass
class OnlineConvexLearner:
    """A convex model of degree 2 in the making; arrays are replaced, never changed in place.

    Parameters
    ----------
    model : Factorized
        What predictions are made with, as :meth:`finish` has left it.
    size : float
        The bound delta on the trace norm of C.
    settings : OnlineSettings
    matrix : LowRank
        C, of d + 1 rows.
    gradient : GradientSum
        Of all rows.
    start : ndarray of shape (d + 1,)
        Where the search for the next eigenvector starts: the one before.
    unit : float
        What the values of rows are divided by before all else.
    squares : float
        Sum of the squared norms of the rounds' gradients.
    """

    model: Factorized
    size: float
    settings: OnlineSettings
    matrix: LowRank
    gradient: GradientSum
    start: Floats
    unit: float = 1.0
    squares: float = 0.0
    n_rounds: int = 0
    n_waiting: int = 0
    """Rows of the present round so far."""
    n_visits: int = 0
    n_rows: int = 0
    n_epochs: int = 0

    @classmethod
    def create(
        cls, n_features: int, size: float, settings: OnlineSettings, unit: float = 1.0
    ) -> Self:
        """Return a learner that predicts 0."""
        n = n_features + 1
        point = Point.zero(n_features)
        layout = layout_of(0, diagonal=settings.form.diagonal)
        return cls(
            ConvexLearner.of(point, size, layout).model,
            size,
            settings,
            LowRank.zero(n),
            GradientSum.zero(n),
            np.zeros(n),
            unit,
        )

    def learn(self, rows: Rows) -> float:
        """Visit rows once, in their order; return the mean of their losses before each.

        Raises
        ------
        DivergenceError
            When a gradient is not a finite number.
        """
        total, done, numbers = 0.0, 0, rows.numbers
        if self.unit != 1.0:
            rows = rows._replace(values=read_only(rows.values / self.unit))
        while done < len(numbers):
            n = min(self.settings.batch_size - self.n_waiting, len(numbers) - done)
            total += self._take(rows, numbers[done : done + n])
            done += n
            if self.n_waiting == self.settings.batch_size:
                self._end_round()
        return total / max(len(numbers), 1)

    def epoch(self, rows: Rows) -> float:
        """Visit rows once more; return the mean of their losses before each."""
        loss = self.learn(rows)
        self.n_epochs += 1
        return loss

    def _take(self, rows: Rows, numbers: NDArray[Any]) -> float:
        """Add the gradients of some rows of one round; return the sum of their losses."""
        form, size = self.settings.form, len(self.start)
        slopes, diagonal = np.empty(len(numbers)), self.gradient.diagonal.copy()
        total = _look_at(
            self.settings.loss, form, self.matrix, rows, read_only(numbers), slopes, diagonal
        )
        if not np.isfinite(slopes).all():
            raise _divergence(rows.values)
        hats = _with_ones(rows, numbers, size, 1.0 if form.linear else 0.0)
        self.gradient = self.gradient.plus(hats, slopes, diagonal)
        self.n_waiting += len(numbers)
        self.n_visits += len(numbers)
        return float(total)

    def _end_round(self) -> None:
        self.n_waiting, self.n_rounds = 0, self.n_rounds + 1
        square = self.gradient.square_of_latest(self.settings.batch_size, self.settings.form)
        if not square < _LARGEST:
            raise _divergence(self.gradient.values)
        self.squares += square
        if len(self.gradient.slopes) >= self.settings.max_rank:
            self.gradient = self.gradient.cut(self.settings.max_rank)
        if self.squares == 0.0:  # nothing has had a gradient
            return
        t = self.n_rounds
        scale, times = self.settings.learning_rate * self.size, self.gradient.operator()
        eta = scale / (t**0.25 * np.sqrt(self.squares))

        def objective(vector: Floats) -> Floats:
            product: Floats = eta * times(vector) + 2.0 * self.matrix.times(vector)
            return product

        value, self.start = _extreme(objective, self.start)
        self._move(min(1.0, 2.0 / np.sqrt(t)), -self.size * np.sign(value), self.start)

    def _move(self, step: float, weight: float, vector: Floats) -> None:
        """Let C go some of the way to a matrix of rank 1."""
        kept = (1.0 - step) * self.matrix.weights
        matrix = LowRank(np.append(kept, step * weight), np.vstack([self.matrix.bases, vector]))
        used = matrix.weights != 0
        matrix = LowRank(matrix.weights[used], matrix.bases[used])
        if len(matrix.weights) >= 2 * self.settings.max_rank:
            matrix = matrix.truncated(self.settings.max_rank)
        self.matrix = matrix

    def add_and_learn(self, rows: Rows) -> None:
        """Add some rows to the stream and visit each once."""
        self.n_rows += rows.n_rows
        self.learn(rows)

    def checkpoint(self, rows: Rows) -> Callable[[], None]:
        """Return what undoes learning ``rows``: nothing, as it changes no array in place."""
        return lambda: None

    def renewed(self, settings: OnlineSettings, size: float) -> Self:
        """Return a learner that goes on from this one, which stays as it is."""
        weights = self.matrix.weights
        norm = float(np.abs(weights).sum())
        matrix = self.matrix._replace(weights=weights * min(1.0, size / norm if norm else 1.0))
        return replace(self, settings=settings, size=size, matrix=matrix)

    @property
    def point(self) -> Point:
        """The model of rows as they come, with orthonormal bases; as other solvers see it."""
        form, (weights, bases) = self.settings.form, self.matrix
        parts, last = bases[:, :-1], bases[:, -1]
        bias = 0.5 * float(weights @ (last * last)) if form.bias else 0.0
        linear = (weights * last) @ parts if form.linear else np.zeros(parts.shape[1])
        if len(weights):
            weights, vectors = diagonalised(weights, np.ascontiguousarray(parts.T))
        else:
            vectors = parts.T
        point = Point(bias, linear, 0.5 * weights if form.diagonal else weights, vectors)
        return point.in_unit(self.unit)


def finish(learners: list[OnlineConvexLearner]) -> Any:
    """Make the models that predict of what has been learnt; return their layout."""
    points = [learner.point for learner in learners]
    diagonal = learners[0].settings.form.diagonal
    layout = layout_of(max(point.rank for point in points), diagonal=diagonal)
    for learner, point in zip(learners, points, strict=True):
        learner.model = ConvexLearner.of(point, learner.size, layout).model
    return layout


def measured_size(
    rows: Rows, n_features: int, settings: OnlineSettings, unit: float = 1.0
) -> float:
    """Return five times the size of the best matrix of rank 1 for some rows, starting from 0."""
    everything = settings._replace(batch_size=rows.n_rows + 1)
    learner = OnlineConvexLearner.create(n_features, 1.0, everything, unit)
    learner.learn(rows)
    rows = rows._replace(values=read_only(rows.values / unit))
    value, vector = _extreme(learner.gradient.operator(), learner.start)
    scores = np.empty(rows.n_rows)
    _score(settings.form, LowRank(np.ones(1), vector[np.newaxis]), rows, rows.numbers, scores)
    curvature = losses.curvature(settings.loss) * float(rows.weight[rows.numbers] @ scores**2)
    return max(_AUTO_TRACE * abs(value) / curvature, _SMALLEST_TRACE) if curvature > 0 else 1.0


def _extreme(times: Callable[[Floats], Floats], near: Floats) -> tuple[float, Floats]:
    """Return the eigenpair of largest modulus, searched for near a vector.

    Coordinates of features without a row are 0 in the matrix, and in the result.
    """
    noise = np.empty(len(near))
    _fill_noise(noise)
    absent = times(noise) == 0
    if absent.all():
        return 0.0, near
    # The vector alone may lie in a space that the matrix does not lead out of.
    noise[absent] = 0.0
    value, vector = extreme_eigenpair(times, near + 0.1 * noise / np.linalg.norm(noise))
    vector[absent] = 0.0
    return value, vector


def _divergence(values: Floats) -> DivergenceError:
    largest = float(np.abs(values).max(initial=0.0))
    return DivergenceError(
        "training diverged: a gradient is not a finite number among rows whose largest value "
        f"is {largest:.6g}. Bring the columns of X to a common scale (for example with "
        "MaxAbsScaler), or lower trace."
    )


@jit
def _fill_noise(out):
    for j in range(out.size):
        out[j] = symmetric(0, j, 0)


def _with_ones(rows: Rows, numbers: NDArray[Any], size: int, last: float) -> tuple[Any, ...]:
    """Return CSR arrays of some rows with one more column, of a constant."""
    lengths = rows.indptr[numbers + 1] - rows.indptr[numbers] + 1
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.full(indptr[-1], size - 1, dtype=np.int64)
    values = np.full(indptr[-1], last)
    for i, row in enumerate(numbers):
        place, first, n = indptr[i], rows.indptr[row], lengths[i] - 1
        indices[place : place + n] = rows.indices[first : first + n]
        values[place : place + n] = rows.values[first : first + n]
    return indptr, indices, values


@jit
def _score_row(form, matrix, indices, values):
    """Return f(x) of one row."""
    weights, bases = matrix.weights, matrix.bases
    last = bases.shape[1] - 1
    total = 0.0
    for s in range(weights.size):
        product, squares = 0.0, 0.0
        for t in range(indices.size):
            term = bases[s, indices[t]] * values[t]
            product += term
            squares += term * term
        own = bases[s, last]
        form_value = product * product
        if not form.diagonal:
            form_value -= squares
        if form.linear:
            form_value += 2.0 * product * own
        if form.bias:
            form_value += own * own
        total += 0.5 * weights[s] * form_value
    return total


@jit
def _score(form, matrix, rows, numbers, out):
    for i in range(numbers.size):
        first, last = rows.indptr[numbers[i]], rows.indptr[numbers[i] + 1]
        out[i] = _score_row(form, matrix, rows.indices[first:last], rows.values[first:last])


@jit
def _look_at(loss, form, matrix, rows, numbers, slopes, diagonal):
    """Write the slopes of some rows, add their diagonal part, and return the sum of the losses."""
    corner = diagonal.size - 1
    total = 0.0
    for i in range(numbers.size):
        row = numbers[i]
        first, last = rows.indptr[row], rows.indptr[row + 1]
        indices, values = rows.indices[first:last], rows.values[first:last]
        score = _score_row(form, matrix, indices, values)
        weight, target = rows.weight[row], rows.target[row]
        slope = weight * losses.gradient(loss, target, score)
        slopes[i] = slope
        if not form.diagonal:
            for t in range(indices.size):
                diagonal[indices[t]] += slope * values[t] * values[t]
        if form.linear and not form.bias:
            diagonal[corner] += slope
        if form.bias and not form.linear:
            diagonal[corner] -= slope
        total += weight * losses.value(loss, target, score)
    return total
