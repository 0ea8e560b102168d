"""Ratings: MovieLens 100K and 1M."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from polyfm.datasets import fetch_movielens_1m, fetch_movielens_100k
from polyfm.datasets.bundle import DatasetBundle
from polyfm.estimators import FMRegressor
from polyfm.experiments.report import Report

_MODELS: dict[str, dict[str, Any]] = {
    "order 1": {"order": 1},
    "order 2": {},
    "order 2, 15 epochs on all training rows": {"early_stopping": False, "max_iter": 15},
}
_MORE_MODELS: dict[str, dict[str, Any]] = {
    "order 3": {"order": 3},
    "order 3, 15 epochs on all training rows": {
        "order": 3,
        "early_stopping": False,
        "max_iter": 15,
    },
}
_NOTE = (
    "FMRegressor(random_state=0) with rank 8 and its defaults where nothing else is said; the "
    "defaults hold out a tenth of the training rows to decide when to stop."
)


def movielens_100k() -> Report:
    """Mean RMSE over the five official splits, predictions clipped to 1..5."""
    report = Report(
        "MovieLens 100K: test RMSE, mean of u1..u5",
        ("columns", "model", "RMSE", "std", "epochs", "seconds"),
        notes=[_NOTE, "Predictions are clipped to 1..5. Seconds are for one split."],
    )
    splits = [f"u{k}" for k in range(1, 6)]
    _compare(report, "user, item", fetch_movielens_100k(), splits, _MODELS)
    bundle = fetch_movielens_100k(side_features=True)
    _compare(report, "and side features", bundle, splits, {**_MODELS, **_MORE_MODELS})
    return report


def movielens_1m() -> Report:
    """RMSE of one random 90/10 split, predictions clipped to 1..5."""
    report = Report(
        "MovieLens 1M (1,000,065 ratings): test RMSE, random 90/10",
        ("columns", "model", "RMSE", "std", "epochs", "seconds"),
        notes=[_NOTE, "Predictions are clipped to 1..5."],
    )
    _compare(report, "user, item", fetch_movielens_1m(), ["random"], _MODELS)
    bundle = fetch_movielens_1m(side_features=True)
    _compare(report, "and side features", bundle, ["random"], {**_MODELS, **_MORE_MODELS})
    return report


def _compare(
    report: Report,
    columns: str,
    bundle: DatasetBundle,
    splits: list[str],
    models: dict[str, dict[str, Any]],
) -> None:
    for name, settings in models.items():
        errors, epochs, started = [], [], perf_counter()
        for split in splits:
            X, X_test, y, y_test = bundle.split(split)
            model = FMRegressor(random_state=0, **settings).fit(X, y)
            errors.append(clipped_rmse(model, X_test, y_test))
            epochs.append(model.n_iter_)
        seconds = (perf_counter() - started) / len(splits)
        spread: object = float(np.std(errors)) if len(splits) > 1 else "-"
        mean, n_epochs = float(np.mean(errors)), f"{np.mean(epochs):.0f}"
        report.add(columns, name, mean, spread, n_epochs, f"{seconds:.1f}")


def clipped_rmse(model: FMRegressor, X: Any, y: Any) -> float:
    """Return the error of predictions clipped to the stars that ratings have."""
    predicted = np.clip(model.predict(X), 1.0, 5.0)
    return float(np.sqrt(np.mean((predicted - y) ** 2)))
