"""Weights of pairs of features that no training row has together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.kernel_ridge import KernelRidge

from polyfm.estimators import FMRegressor
from polyfm.experiments.figures import cells
from polyfm.experiments.report import Report

SOLVER = "cd"
_N_FEATURES, _RANK, _N_ROWS, _NOISE = 40, 2, 4000, 0.1
_SEEDS = range(5)

Matrix = NDArray[np.float64]


class _Data(NamedTuple):
    """Rows of four features each; ``unseen`` are the pairs that no training row has."""

    X: sp.csr_matrix
    y: Matrix
    X_test: sp.csr_matrix
    y_test: Matrix
    weights: Matrix
    unseen: NDArray[np.intp]


def unseen_interactions() -> Report:
    """Weights of pairs never seen together: a low-rank model infers them, a kernel says zero."""
    report = Report(
        f"Weights of unseen pairs, {_N_FEATURES} features, planted rank {_RANK}, mean of "
        f"{len(_SEEDS)} seeds",
        ("unseen", "model", "correlation", "largest weight", "RMSE, unseen", "RMSE, seen"),
        notes=[
            f"{_N_ROWS:,} rows with four of the features each, y is the sum of the planted weights "
            f"of their pairs and noise of {_NOISE} standard deviations. 'unseen' is the share of "
            "pairs that no training row has. RMSE, on new rows that have unseen pairs and on those "
            "that have none, in standard deviations of y.",
            "Correlation is between learnt and planted weights of the unseen pairs; '-' where all "
            "learnt weights are equal. The largest weight is the largest in modulus.",
            f"FMRegressor(order=2, rank={_RANK}, solver='{SOLVER}', beta=0.1, alpha=0.1) and "
            "KernelRidge(kernel='poly', degree=2, gamma=1, coef0=1, alpha=0.1); the weight a "
            "polynomial kernel of degree 2 gives a pair is twice the sum of its dual "
            "coefficients over the rows that have both features.",
            "The papers state this without figures.",
        ],
    )
    for share in (0.1, 0.3, 0.5):
        found = [_measured(_draw(share, seed)) for seed in _SEEDS]
        for k, name in enumerate(("factorization machine", "polynomial kernel")):
            mean = np.mean([each[k] for each in found], axis=0)
            correlation = "-" if np.isnan(mean[0]) else float(mean[0])
            report.add(f"{share:.0%}", name, correlation, *map(float, mean[1:]))
    report.draw = _draw_weights(report)
    return report


def _draw(share: float, seed: int) -> _Data:
    random = np.random.default_rng(seed)
    P = random.standard_normal((_N_FEATURES, _RANK))
    weights = P @ P.T
    unseen = np.triu(random.random(weights.shape) < share, 1)
    forbidden = unseen | unseen.T
    train = list(_rows(random, forbidden, _N_ROWS))
    test = [random.choice(_N_FEATURES, 4, replace=False) for _ in range(_N_ROWS)]
    X, X_test = _one_hot(train), _one_hot(test)
    y, y_test = _pairs_of(X, weights), _pairs_of(X_test, weights)
    spread = y.std()
    y = y / spread + _NOISE * random.standard_normal(len(y))
    return _Data(X, y, X_test, y_test / spread, weights / spread, np.argwhere(unseen))


def _rows(
    random: np.random.Generator, forbidden: NDArray[np.bool_], n: int
) -> Iterator[NDArray[np.intp]]:
    """Yield rows of four features, any two of which may meet."""
    while n:
        row: list[int] = []
        for j in random.permutation(len(forbidden)):
            if not forbidden[j, row].any():
                row.append(int(j))
            if len(row) == 4:
                yield np.array(row)
                n -= 1
                break


def _one_hot(rows: list[NDArray[np.intp]]) -> sp.csr_matrix:
    at = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    ones = np.ones(len(at))
    return sp.csr_matrix((ones, (at, np.concatenate(rows))), shape=(len(rows), _N_FEATURES))


def _pairs_of(X: sp.csr_matrix, weights: Matrix) -> Matrix:
    """Return the sum of the weights of each row's pairs."""
    off = weights - np.diag(np.diag(weights))
    return np.asarray(X.multiply(X @ off).sum(axis=1)).ravel() / 2


def _measured(data: _Data) -> list[list[float]]:
    machine = FMRegressor(
        order=2,
        rank=_RANK,
        solver=SOLVER,
        alpha=0.1,
        beta=0.1,
        early_stopping=False,
        tol=1e-8,
        max_iter=300,
        random_state=0,
    ).fit(data.X, data.y)
    kernel = KernelRidge(kernel="poly", degree=2, gamma=1.0, coef0=1.0, alpha=0.1)
    kernel.fit(data.X, data.y)
    P = machine.factors_[2]
    return [
        _judged(data, machine, P @ P.T),
        _judged(data, kernel, 2.0 * (data.X.T @ sp.diags_array(kernel.dual_coef_) @ data.X)),
    ]


def _judged(data: _Data, model: Any, weights: Any) -> list[float]:
    left, right = data.unseen.T
    learnt = np.asarray(weights[left, right]).ravel()
    planted = data.weights[left, right]
    varies = learnt.std() > 0
    correlation = float(np.corrcoef(learnt, planted)[0, 1]) if varies else float("nan")
    error = np.asarray(model.predict(data.X_test)) - data.y_test
    mask = np.zeros_like(data.weights)
    mask[left, right] = mask[right, left] = 1
    has_unseen = _pairs_of(data.X_test, mask) > 0
    return [
        correlation,
        float(np.abs(learnt).max()),
        float(np.sqrt(np.mean(error[has_unseen] ** 2))),
        float(np.sqrt(np.mean(error[~has_unseen] ** 2))),
    ]


def _draw_weights(report: Report) -> Any:
    def draw(figure: Any) -> None:
        panel = figure.subplots()
        rows = cells(report)
        for offset, name in ((-0.2, "factorization machine"), (0.2, "polynomial kernel")):
            mine = [row for row in rows if row["model"] == name]
            at = [k + offset for k in range(len(mine))]
            panel.bar(at, [row["RMSE, unseen"] for row in mine], 0.18, label=f"{name}, unseen")
            seen = [row["RMSE, seen"] for row in mine]
            panel.bar([x + 0.18 for x in at], seen, 0.18, label=f"{name}, seen")
        panel.set_xticks(range(3), [row["unseen"] for row in rows[::2]])
        panel.set(xlabel="share of pairs never seen together", ylabel="RMSE")
        panel.legend(fontsize=8)

    return draw
