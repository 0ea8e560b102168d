"""Regret: what an online learner has lost against the best fixed parameters in hindsight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone, is_classifier

from polyfm.data.hashing import as_dicts, hash_rows
from polyfm.inspection.plots import _axes
from polyfm.online.streams import iter_batches

_MOST_STEPS = 500
_HALVINGS = 30


@dataclass
class Regret:
    r"""The regret of an online learner at some points of a stream.

    Attributes
    ----------
    rows : ndarray of int
        t, the rows at each point.
    regret : ndarray
        :math:`\sum_{s \le t} f_s(\theta_s) - \min_\theta \sum_{s \le t} f_s(\theta)`.
    bound : ndarray
        :math:`2 D G \sqrt{2 t}`, see Notes of :func:`polyfm.online.regret`.
    norm : ndarray
        Length of the best fixed parameters of the first t rows.
    """

    rows: NDArray[np.int64]
    regret: NDArray[np.float64]
    bound: NDArray[np.float64]
    norm: NDArray[np.float64]

    @property
    def mean(self) -> NDArray[np.float64]:
        """Regret per row, which falls to 0 for a learner that learns."""
        return self.regret / self.rows

    def plot(self, ax: Any = None) -> Any:
        """Draw regret and bound per row; it needs matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure if None.

        Returns
        -------
        matplotlib.axes.Axes
        """
        ax = _axes(ax, (7.0, 4.0))
        ax.plot(self.rows, self.mean, "o-", label="regret per row")
        ax.plot(self.rows, self.bound / self.rows, "--", color="0.5", label="bound")
        ax.set(xscale="log", yscale="symlog", xlabel="rows", ylabel="per row")
        ax.set_yscale("symlog", linthresh=max(float(np.abs(self.mean).min()), 1e-6))
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
        return ax


class _Play(NamedTuple):
    """A stream as it was played: expanded rows, targets, weights, losses, sizes of gradients."""

    X: sp.csr_matrix
    y: NDArray[np.float64]
    weight: NDArray[np.float64]
    losses: NDArray[np.float64]
    gradients: NDArray[np.float64]


def regret(
    model: Any,
    stream: Any,
    *,
    checkpoints: int | list[int] = 10,
    batch_size: int = 1,
    radius: float | None = None,
    classes: Any = None,
    **reading: Any,
) -> Regret:
    r"""Measure the regret of a convex online learner on a stream.

    Parameters
    ----------
    model : FTRLRegressor, FTRLClassifier, PQRRegressor or PQRClassifier
        A clone of it learns the stream. Loss squared or logistic, the latter of two classes. H of a
        PQR must be given by ``frequent``.
    stream : path, tuple of arrays, or iterable of batches
        As :func:`polyfm.online.iter_batches` takes it. Its rows are kept in memory.
    checkpoints : int or list of int, default=10
        After how many rows to measure; a number of points, evenly spaced by their logarithm.
    batch_size : int, default=1
        Rows that are predicted by the same parameters. 1 is what regret means; more are faster.
    radius : float, optional
        Of the ball around 0 that the best fixed parameters are sought in; all of space if None.
    classes : sequence, optional
        Both labels, where the first batch may lack one.
    **reading
        How to read a file, see :func:`polyfm.online.iter_batches`.

    Returns
    -------
    Regret

    Raises
    ------
    ValueError
        For a model that is not convex, or another loss.

    Notes
    -----
    The losses are those of the rows, :math:`\frac12 (\hat y - y)^2` or
    :math:`\log(1 + e^{-y \hat y})`, without penalties. The best fixed parameters, the bias among
    them, are found by L-BFGS on the first t rows.

    Follow-the-regularised-leader with :math:`R(\theta) = \frac12 \lVert \theta \rVert^2` has a
    regret of at most :math:`2 D G \sqrt{2 T}` where :math:`D^2 = R(\theta^*)` and G is the length
    of the longest gradient: Theorem 1 of Ma (2020), after Hazan. Learners with rates per coordinate
    have bounds of their own; this one is drawn for comparison.

    References
    ----------
    Ma, "Projective Quadratic Regression for Online Learning", AAAI 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import FTRLRegressor
    >>> from polyfm.online import regret
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> found = regret(FTRLRegressor(learning_rate=0.5), (X, X[:, 0]))
    >>> bool(found.mean[-1] < 0.05 and (found.regret < found.bound).all())
    True
    """
    _check_convex(model)
    play = _play(clone(model), stream, batch_size, classes, reading)
    points = _points(checkpoints, len(play.y))
    totals = np.cumsum(play.losses)
    largest = np.maximum.accumulate(play.gradients)
    theta = np.zeros(play.X.shape[1])
    found: list[tuple[float, float, float]] = []
    for t in points:
        theta = _best(model, play, t, theta, radius)
        least = _value_and_slope(model, play, t, theta)[0]
        length = float(np.linalg.norm(theta))
        bound = 2.0 * length / np.sqrt(2.0) * largest[t - 1] * np.sqrt(2.0 * t)
        found.append((totals[t - 1] - least, bound, length))
    regrets, bounds, norms = np.array(found).T
    return Regret(points, regrets, bounds, norms)


def _check_convex(model: Any) -> None:
    from polyfm.estimators._pqr import ProjectiveQuadratic
    from polyfm.estimators.ftrl import FTRL

    if not isinstance(model, FTRL | ProjectiveQuadratic):
        raise ValueError(
            f"regret is for convex models, FTRL* and PQR*, not for {type(model).__name__}: nothing "
            "finds the best parameters of the others."
        )
    if isinstance(model, ProjectiveQuadratic) and model.order != 0 and model.frequent is None:
        raise ValueError("the frequent features must be given: frequent=, before regret.")
    wanted = "logistic" if is_classifier(model) else "squared"
    if model.loss != wanted:
        raise ValueError(f"regret is for loss={wanted!r} here, not for {model.loss!r}.")


def _points(checkpoints: int | list[int], n_rows: int) -> NDArray[np.int64]:
    if not isinstance(checkpoints, int):
        points = np.asarray(checkpoints, dtype=np.int64)
        if points.size == 0 or points.min() < 1 or points.max() > n_rows:
            raise ValueError(f"checkpoints must lie within 1 and the {n_rows} rows of the stream.")
        return points
    first = min(10, n_rows)
    return np.unique(np.geomspace(first, n_rows, checkpoints).round().astype(np.int64))


def _play(model: Any, stream: Any, batch_size: int, classes: Any, reading: Any) -> _Play:
    """Let a model learn a stream, and write down how it fared."""
    rows, targets, weights, scores = [], [], [], []
    for batch in iter_batches(stream, batch_size, **reading):
        y = batch.targets
        fitted = model.__sklearn_is_fitted__()
        scores.append(_raw(model, batch.X) if fitted else np.zeros(len(y)))
        more = {} if fitted or classes is None else {"classes": np.asarray(classes)}
        model.partial_fit(batch.X, y, sample_weight=batch.weight, **more)
        rows.append(_matrix(model, batch.X))
        weights.append(np.ones(len(y)) if batch.weight is None else batch.weight)
        targets.append(_numbers(model, y))
    width = max((part.shape[1] for part in rows), default=0)
    for part in rows:
        part.resize(part.shape[0], width)
    if not rows:
        raise ValueError("the stream has no rows.")
    X = _with_bias(model, _expanded(model, sp.vstack(rows, format="csr")))
    y, weight, score = (np.concatenate(parts) for parts in (targets, weights, scores))
    slope = np.abs(weight * _slopes(model, y, score))
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return _Play(X, y, weight, weight * _losses(model, y, score), slope * lengths)


def _raw(model: Any, X: Any) -> NDArray[np.float64]:
    raw = model.decision_function(X) if is_classifier(model) else model.predict(X)
    if np.ndim(raw) != 1:
        raise ValueError("regret is for two classes.")
    return np.asarray(raw, dtype=np.float64)


def _matrix(model: Any, X: Any) -> sp.csr_matrix:
    named = as_dicts(X)
    if named is not None and model.max_features is not None:
        return hash_rows(named, int(model.max_features))
    return sp.csr_matrix(X, dtype=np.float64, copy=True)


def _numbers(model: Any, y: NDArray[Any]) -> NDArray[np.float64]:
    """Return targets, or 1 and -1 for labels."""
    if is_classifier(model):
        return np.where(y == model.classes_[1], 1.0, -1.0)
    return np.asarray(y, dtype=np.float64)


def _with_bias(model: Any, X: sp.csr_matrix) -> sp.csr_matrix:
    if not model.fit_intercept:
        return X
    return sp.hstack([X, np.ones((X.shape[0], 1))], format="csr")


def _expanded(model: Any, X: sp.csr_matrix) -> sp.csr_matrix:
    r"""Return rows as a linear model sees them: for a PQR, with the products that it weighs."""
    frequent = getattr(model, "frequent_features_", None)
    if frequent is None or len(frequent) == 0:
        return X
    X = X.tocsc()
    high = X[:, frequent]
    rest = np.asarray(X.sum(axis=1)).ravel() - np.asarray(high.sum(axis=1)).ravel()
    blocks = [X, sp.diags(rest) @ high]
    for k in range(len(frequent) - 1):
        # The columns of pairs that no row has are empty: they would do no harm but take time.
        products = high[:, k + 1 :].multiply(high[:, [k]]).tocsc()
        blocks.append(products[:, np.diff(products.indptr) > 0])
    return sp.hstack(blocks, format="csr")


def _losses(model: Any, y: NDArray[Any], score: NDArray[Any]) -> NDArray[np.float64]:
    if is_classifier(model):
        return np.asarray(np.logaddexp(0.0, -y * score))
    return np.asarray(0.5 * (score - y) ** 2)


def _slopes(model: Any, y: NDArray[Any], score: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(-y * expit(-y * score) if is_classifier(model) else score - y)


def _value_and_slope(
    model: Any, play: _Play, t: int, theta: NDArray[np.float64], ridge: float = 0.0
) -> tuple[float, NDArray[np.float64]]:
    """Return the loss of the first t rows, and its gradient."""
    X, y, weight = play.X[:t], play.y[:t], play.weight[:t]
    score = X @ theta
    value = float(weight @ _losses(model, y, score)) + 0.5 * ridge * float(theta @ theta)
    return value, X.T @ (weight * _slopes(model, y, score)) + ridge * theta


def _best(
    model: Any, play: _Play, t: int, start: NDArray[np.float64], radius: float | None
) -> NDArray[np.float64]:
    """Return the parameters with the least loss on the first t rows, within a ball if asked."""

    def solve(ridge: float, start: NDArray[np.float64]) -> NDArray[np.float64]:
        found = minimize(
            lambda theta: _value_and_slope(model, play, t, theta, ridge), start, jac=True,
            method="L-BFGS-B", options={"maxiter": _MOST_STEPS, "ftol": 1e-12, "gtol": 1e-7},
        )  # fmt: skip
        return np.asarray(found.x)

    theta = solve(0.0, start)
    if radius is None or np.linalg.norm(theta) <= radius:
        return theta
    # On the sphere: the multiplier of its constraint is a ridge; more of it makes theta shorter.
    low, high = 0.0, 1.0
    while np.linalg.norm(solve(high, theta)) > radius:
        low, high = high, 4.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        theta = solve(middle, theta)
        low, high = (middle, high) if np.linalg.norm(theta) > radius else (low, middle)
    theta = solve(high, theta)
    return theta * min(1.0, radius / float(np.linalg.norm(theta)))
