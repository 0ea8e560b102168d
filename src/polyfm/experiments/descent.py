"""Ratings by coordinate descent, with penalties chosen on held-out training rows."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from polyfm.datasets import fetch_movielens_1m, fetch_movielens_100k
from polyfm.datasets.bundle import DatasetBundle
from polyfm.estimators import FMRegressor
from polyfm.experiments.figures import dots
from polyfm.experiments.ratings import clipped_rmse
from polyfm.experiments.report import Report

_SWEEPS = 20
_ALPHA = 4.0
_BETAS = (6.0, 8.0, 11.0, 16.0)
_BETAS_BY_COUNT = (9.0, 12.0, 15.0, 18.0)
_SIDE_BETAS = (30.0, 100.0, 300.0)
_IDS = ("user", "item")

Choices = list[tuple[str, dict[str, Any]]]
"""Descriptions of penalties and the parameters that set them."""


def ratings_descent() -> Report:
    """RMSE of block coordinate descent on MovieLens 100K and 1M, predictions clipped to 1..5."""
    report = Report(
        "MovieLens by coordinate descent: test RMSE",
        ("data", "model", "penalties chosen", "RMSE", "seconds a fit"),
        notes=[
            f"FMRegressor(solver='cd', max_iter={_SWEEPS}, tol=0, early_stopping=False, "
            f"alpha={_ALPHA:g}, random_state=0); beta is chosen on a tenth of the training rows of "
            "the first split, and the model then learnt on all of them.",
            "100K: mean of the official splits u1..u5. 1M: one random 90/10 split. Predictions "
            "are clipped to 1..5. With side features, those share one beta and the ids another.",
            "Beta by rows: one for each column, which grows with the root of its number of "
            "training rows; 'at the mean' is that of a column with the mean number. Only the "
            "products of users' and films' penalties matter, so one for each field is no choice.",
            "libFM on 100K, rank 8, ALS: 0.9125 with ids, 0.9175 with side features.",
        ],
    )
    five = [f"u{k}" for k in range(1, 6)]
    ids, side = fetch_movielens_100k(), fetch_movielens_100k(side_features=True)
    _add(report, "100K", "user, item", ids, five, 8, _one_beta())
    _add(report, "100K", "and side features", side, five, 8, _beta_by_field(side))
    million = fetch_movielens_1m()
    _add(report, "1M", "user, item", million, ["random"], 8, _one_beta())
    _add(report, "1M", "user, item", million, ["random"], 32, _one_beta(32))
    by_count = _beta_by_count(million, "random")
    _add(report, "1M", "user, item, beta by rows", million, ["random"], 32, by_count)
    report.draw = dots(report, group="data", label="model", value="RMSE")
    return report


def _beta_by_count(bundle: DatasetBundle, split: str) -> Choices:
    """Return choices of a penalty per column that grows with the root of its training rows."""
    rows = np.maximum(bundle.split(split)[0].getnnz(axis=0), 1)
    shape = np.sqrt(rows / rows.mean())
    return [(f"{beta:g} at the mean", {"beta": beta * shape}) for beta in _BETAS_BY_COUNT]


def _one_beta(rank: int = 8) -> Choices:
    """Return choices of one penalty, stronger for more factors."""
    betas = [beta * np.sqrt(rank / 8) for beta in _BETAS]
    return [(f"beta {beta:g}", {"beta": beta}) for beta in betas]


def _beta_by_field(bundle: DatasetBundle) -> Choices:
    """Return choices of one penalty for the ids' factors and one for all others."""
    return [
        (
            f"beta {own:g} (ids), {other:g} (others)",
            {
                "fields": bundle.fields,
                "beta": [own if name in _IDS else other for name in bundle.field_names],
            },
        )
        for own in _BETAS[1:3]
        for other in _SIDE_BETAS
    ]


def _add(
    report: Report,
    data: str,
    columns: str,
    bundle: DatasetBundle,
    splits: list[str],
    rank: int,
    choices: Choices,
) -> None:
    name, settings = _chosen(bundle, splits[0], rank, choices)
    started = perf_counter()
    errors = [_error(*bundle.split(split), rank, settings) for split in splits]
    seconds = (perf_counter() - started) / len(splits)
    report.add(data, f"{columns}, rank {rank}", name, float(np.mean(errors)), f"{seconds:.1f}")


def _chosen(
    bundle: DatasetBundle, split: str, rank: int, choices: Choices
) -> tuple[str, dict[str, Any]]:
    """Return the choice with the least error on a tenth of the training rows."""
    X, _, y, _ = bundle.split(split)
    train, held = train_test_split(np.arange(len(y)), test_size=0.1, random_state=0)
    parts = (X[train], X[held], y[train], y[held])
    return min(choices, key=lambda choice: _error(*parts, rank, choice[1]))


def _error(X: Any, X_test: Any, y: Any, y_test: Any, rank: int, settings: dict[str, Any]) -> float:
    model = FMRegressor(
        solver="cd",
        rank=rank,
        alpha=_ALPHA,
        max_iter=_SWEEPS,
        tol=0,
        early_stopping=False,
        random_state=0,
        **settings,
    ).fit(X, y)
    return clipped_rmse(model, X_test, y_test)
