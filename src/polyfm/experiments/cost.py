"""Cost of models of higher order: time of predictions, numbers stored."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyfm.estimators import FMRegressor
from polyfm.experiments.figures import cells
from polyfm.experiments.report import Report

_N_FEATURES, _RANK, _N_NONZERO = 5_000, 16, 40
_N_ROWS, _N_ROWS_FULL = 50_000, 500_000
_ROUNDS = 15

_MODELS: dict[str, dict[str, Any]] = {
    "separate": {"fit_lower": "explicit"},
    "shared, augmented": {"fit_lower": "augment"},
    "shared, inhomogeneous": {"kernel": "inhomogeneous-anova"},
    "all-subsets": {"kernel": "all-subsets"},
}


def hofm_cost(full: bool = False) -> Report:
    """Time of predictions and size of separate, shared and all-subsets models, orders 2 to 6.

    Parameters
    ----------
    full : bool, default=False
        Ten times the rows.
    """
    n_rows = _N_ROWS_FULL if full else _N_ROWS
    report = Report(
        f"Predicting {n_rows:,} rows of {_N_NONZERO} non-zeros, {_N_FEATURES:,} features, rank "
        f"{_RANK}",
        (
            *("model", "order", "seconds", "time ratio", "predicted time"),
            *("numbers", "size ratio", "predicted size"),
        ),
        notes=[
            f"Best of {_ROUNDS} interleaved rounds, one thread, single precision; a whole call of "
            "predict, checks of the input included.",
            "Ratios are those to order 2 of the same model; predicted are those of the paper's "
            "operation counts: k d (2 + ... + m) for separate matrices, k d m for shared ones, "
            "k d for all-subsets. The order plays no part in all-subsets.",
            "Numbers are those of bias, linear term and factors. The paper's own timings are not "
            "known.",
        ],
    )
    X, y = _rows(n_rows)
    models = {
        (name, order): _fitted(X[:500], y[:500], order, settings)
        for name, settings in _MODELS.items()
        for order in range(2, 7)
    }
    seconds = _times(models, X)
    for (name, order), model in models.items():
        time, size = seconds[name, order], _size(model)
        ratio, size_ratio = time / seconds[name, 2], size / _size(models[name, 2])
        costs = _predicted(name, order)
        report.add(name, order, time, ratio, costs[0], size, size_ratio, costs[1])
    report.draw = _drawing(report)
    return report


def _drawing(report: Report) -> Any:
    """Return a drawing of the ratios, measured as lines and predicted as dashes."""

    def draw(figure: Any) -> None:
        rows = cells(report)
        for panel, kind in zip(figure.subplots(1, 2), ("time", "size"), strict=True):
            for colour, name in enumerate(_MODELS):
                mine = [row for row in rows if row["model"] == name]
                orders = [row["order"] for row in mine]
                look = {"color": f"C{colour}", "label": name}
                panel.plot(orders, [row[f"{kind} ratio"] for row in mine], marker=".", **look)
                look = {"color": f"C{colour}", "linestyle": ":"}
                panel.plot(orders, [row[f"predicted {kind}"] for row in mine], **look)
            panel.set(xlabel="order", ylabel=f"{kind}, in units of that of order 2")
        panel.legend(fontsize=8, title="dots: predicted")

    return draw


def _rows(n_rows: int) -> tuple[sp.csr_matrix, Any]:
    random = np.random.default_rng(0)
    columns = random.integers(0, _N_FEATURES, (n_rows, _N_NONZERO))
    indptr = np.arange(0, columns.size + 1, _N_NONZERO)
    values = random.standard_normal(columns.size).astype(np.float32)
    X = sp.csr_matrix((values, columns.ravel(), indptr), shape=(n_rows, _N_FEATURES))
    X.sum_duplicates()
    return X, random.standard_normal(n_rows)


def _fitted(X: Any, y: Any, order: int, settings: dict[str, Any]) -> FMRegressor:
    """Return a model of the size asked for; what it has learnt plays no part."""
    fixed: dict[str, Any] = {
        "rank": _RANK,
        "max_iter": 1,
        "early_stopping": False,
        "random_state": 0,
    }
    return FMRegressor(order=order, **fixed, **settings).fit(X, y)


def _times(models: dict[tuple[str, int], FMRegressor], X: Any) -> dict[tuple[str, int], float]:
    for model in models.values():
        model.predict(X[:10])  # compiles
    best = dict.fromkeys(models, float("inf"))
    for _ in range(_ROUNDS):
        for key, model in models.items():
            started = perf_counter()
            model.predict(X)
            best[key] = min(best[key], perf_counter() - started)
    return best


def _size(model: FMRegressor) -> int:
    tables = [*model.factors_.values(), *model.dummy_factors_.values()]
    return 1 + model.coef_.size + sum(table.size for table in tables)


def _predicted(name: str, order: int) -> tuple[float, float]:
    """Return the ratios to order 2 of operations and of numbers, by the leading terms."""
    if name == "all-subsets":
        return 1.0, 1.0
    if name == "separate":
        return sum(range(2, order + 1)) / 2, (1 + _RANK * (order - 1)) / (1 + _RANK)
    return order / 2, 1.0
