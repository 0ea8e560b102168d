"""Small models with given numbers, and the gradient read off one step of learning."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from polyfm.data.rows import Rows, as_rows, canonical_csr
from polyfm.kernels import contract, reference
from polyfm.losses import Squared
from polyfm.models._score import Parameters, score_rows
from polyfm.models.factorized import Factorized
from polyfm.penalties import L2
from polyfm.solvers._epoch import Penalties, Switches, learn_rows
from polyfm.testing._plain import plain
from polyfm.updates import SGD

NO_PENALTIES = Penalties(*[L2(0.0)] * len(Penalties._fields))


def model_of(
    kernel: Any,
    table: ArrayLike,
    *,
    bias: float = 0.0,
    linear: ArrayLike | None = None,
    lam: ArrayLike | None = None,
    theta: ArrayLike | None = None,
    degrees: ArrayLike | None = None,
    n_dummies: int = 0,
    dtype: DTypeLike = np.float64,
) -> Factorized:
    """Return a model with these numbers.

    Parameters
    ----------
    kernel : NamedTuple
        Its kernel.
    table : array of shape (d + n_dummies, k)
        Factors.
    bias, linear, lam, theta : optional
        Bias, (d,) linear weights, (k,) weights of bases and (m,) of degrees: 0, 0, 1 and 1.
    degrees : array of shape (m, k), optional
        1 where a basis takes part in a degree; all do by default.
    n_dummies : int
        Dummy features.
    dtype : dtype
        Precision.
    """
    table = np.asarray(table, dtype=np.float64)
    d, k = table.shape[0] - n_dummies, table.shape[1]
    m = contract.n_degree_weights(kernel)
    parameters = Parameters(
        bias=np.full((1, 1), bias),
        linear=np.reshape(np.zeros(d) if linear is None else np.asarray(linear), (d, 1)),
        table=table[:, None, :],
        weights=np.reshape(np.ones(k) if lam is None else np.asarray(lam), (1, k)),
        theta=np.reshape(np.ones(m) if theta is None else np.asarray(theta), (1, m)),
        degrees=np.ones((m, k)) if degrees is None else np.asarray(degrees),
    )
    # Prediction takes any memory; copies keep the caller's numbers out of it.
    arrays = (np.array(block, dtype=dtype, order="C") for block in parameters)
    return Factorized(kernel, {0: slice(0, k)}, Parameters(*arrays), n_dummies)


def rows_of(
    X: ArrayLike, y: ArrayLike | None = None, weight: ArrayLike | None = None, dtype: Any = float
) -> Rows:
    """Return dense rows as solvers see them."""
    matrix = canonical_csr(sp.csr_matrix(np.atleast_2d(np.asarray(X, dtype=dtype))))
    target = None if y is None else np.asarray(y, dtype=np.float64)
    return as_rows(matrix, target, None if weight is None else np.asarray(weight, np.float64))


def plain_scores(model: Factorized, rows: Rows) -> NDArray[Any]:
    """Return a model's predictions, computed in plain Python."""
    out = np.empty(rows.n_rows, model.parameters.table.dtype)
    cells = model.work_cells(rows.longest)
    plain(score_rows)(
        model.kernel, model.parameters, model.plan, rows, rows.numbers, cells, out,
    )  # fmt: skip
    return out


def enumerated_scores(model: Factorized, X: ArrayLike) -> NDArray[np.float64]:
    """Return a model's predictions for dense rows by the definition of its kernel."""
    p = Parameters(*(np.asarray(block, dtype=np.float64) for block in model.parameters))
    return np.array([_enumerated_score(model, p, x) for x in np.asarray(X, dtype=np.float64)])


def _enumerated_score(model: Factorized, p: Parameters, x: NDArray[np.float64]) -> float:
    inputs = np.append(x, np.ones(model.n_dummies))
    score = float(p.bias[0, 0] + p.linear[:, 0] @ x)
    for s in range(model.rank):
        terms = (p.table[:, 0, s] * inputs)[inputs != 0]
        theta = p.theta[0] * p.degrees[:, s]
        score += p.weights[0, s] * reference.value(model.kernel, list(terms), list(theta))
    return score


def first_shared_degree(model: Factorized) -> int:
    """Return the first degree, from 0, from which on all bases take part in all degrees.

    Weights of degrees are learnt for such degrees only.
    """
    apart = np.flatnonzero(~model.parameters.degrees.all(axis=1))
    return int(apart[-1]) + 1 if apart.size else 0


def read_gradient(
    model: Factorized,
    x: NDArray[Any],
    y: float = 1.0,
    *,
    loss: Any | None = None,
    interpreted: bool = False,
) -> Parameters:
    """Return d loss / d parameters at one row, as the solver's own step reveals it.

    A step of plain gradient descent with a learning rate of 1 changes each parameter by minus its
    derivative. That in a degree weight is 0 below :func:`first_shared_degree`.

    Parameters
    ----------
    model : Factorized
        Has one plane; it is not changed.
    x : ndarray of shape (d,)
        The row.
    y : float
        Its target.
    loss : NamedTuple, optional
        Squared loss by default.
    interpreted : bool
        Whether the step runs in plain Python.
    """
    loss = Squared() if loss is None else loss
    p = model.parameters
    visits = np.ones_like(p.linear)
    before = p._replace(linear=np.hstack([p.linear, visits]))
    after = Parameters(*(block.copy() for block in before))
    rows = rows_of(x, [y], dtype=p.table.dtype)
    switches = Switches(True, True, True, first_shared_degree(model))
    step = plain(learn_rows) if interpreted else learn_rows
    n_done, _ = step(
        model.kernel, loss, SGD(1.0, 0.0, 0.0), NO_PENALTIES, switches, after, model.plan,
        rows, np.arange(1), 0.0, 1.0, model.work_cells(rows.longest), 0.0,
    )  # fmt: skip
    if n_done != 1:
        raise AssertionError(f"the gradient of {loss} is not finite at x={x}, y={y}.")
    changes = Parameters(*(b - a for b, a in zip(before, after, strict=True)))
    return changes._replace(linear=changes.linear[:, :1])
