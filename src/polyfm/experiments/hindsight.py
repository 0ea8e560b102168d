"""What linear models and projective quadratic regression lose against hindsight, row by row."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from polyfm.datasets import fetch_avazu_mini, fetch_movielens_demographics, load_adult
from polyfm.estimators import FTRLClassifier, FTRLRegressor, PQRClassifier, PQRRegressor
from polyfm.experiments.figures import cells
from polyfm.experiments.report import Report
from polyfm.online import regret

_CHECKPOINTS = [100, 500, 1_000, 5_000, 10_000]
_ORDER = 200
_RATE = 0.1


def regret_curves() -> Report:
    """Regret per row of LR and PQR on ratings, incomes and clicks, with Theorem 1's bound."""
    report = Report(
        "Regret against the best fixed parameters in hindsight",
        ("data", "model", "rows", "regret / rows", "bound / rows", "best norm"),
        notes=[
            f"Rows in a random order, one at a time; LR and PQR of order {_ORDER} (the most "
            f"frequent features of all rows) by FTRL-Proximal, learning rate {_RATE}, no penalty "
            "to speak of (1e-3). The best parameters of the first t rows by L-BFGS, without "
            "penalty. 'bound' is 2 D G sqrt(2 t) of the theorem, D and G taken from the data; it "
            "is of follow-the-regularised-leader with one rate, and drawn for comparison.",
        ],
    )
    for name, X, y, is_label in _sets():
        for label, model in _models(X, is_label).items():
            points = [t for t in _CHECKPOINTS if t <= len(y)]
            found = regret(model, (X, y), checkpoints=points, classes=[0, 1] if is_label else None)
            for t, mean, bound, norm in zip(
                found.rows, found.mean, found.bound / found.rows, found.norm, strict=True
            ):
                report.add(name, label, int(t), float(mean), float(bound), float(norm))
    report.notes.append(_in_words(report))
    report.draw = _drawing(report)
    return report


def _sets() -> list[tuple[str, Any, Any, bool]]:
    ratings, incomes, clicks = (
        fetch_movielens_demographics("100k"), load_adult(), fetch_avazu_mini(),
    )  # fmt: skip
    return [
        _shuffled("MovieLens 100K", ratings.X, ratings.y - ratings.y.mean(), False),
        _shuffled("Adult", incomes.X, _second_class(incomes.y), True),
        _shuffled("Avazu", clicks.X, _second_class(clicks.y), True),
    ]


def _second_class(y: Any) -> Any:
    return (y == np.unique(y)[1]).astype(np.int64)


def _shuffled(name: str, X: Any, y: Any, is_label: bool) -> tuple[str, Any, Any, bool]:
    order = np.random.default_rng(0).permutation(len(y))[: _CHECKPOINTS[-1]]
    return name, X[order], y[order], is_label


def _models(X: Any, is_label: bool) -> dict[str, Any]:
    counts = np.bincount(X.indices, minlength=X.shape[1])
    frequent = np.argsort(-counts, kind="stable")[:_ORDER]
    linear, projective = (
        (FTRLClassifier, PQRClassifier) if is_label else (FTRLRegressor, PQRRegressor)
    )
    settings: dict[str, Any] = {"learning_rate": _RATE, "alpha": 1e-3}
    return {
        "LR": linear(**settings),
        f"PQR {_ORDER}": projective(order=len(frequent), frequent=frequent, beta=1e-3, **settings),
    }


def _in_words(report: Report) -> str:
    """Say whether the regret per row falls, in each case, from checkpoint to checkpoint."""
    said = []
    rows = cells(report)
    for data, model in dict.fromkeys((row["data"], row["model"]) for row in rows):
        curve = [r["regret / rows"] for r in rows if (r["data"], r["model"]) == (data, model)]
        falls = all(b < a for a, b in pairwise(curve))
        said.append(
            f"{data}, {model}: {curve[0]:.4f} to {curve[-1]:.4f}"
            f"{'' if falls else ', not falling throughout'}"
        )
    return "Regret per row, first to last: " + "; ".join(said) + "."


def _drawing(report: Report) -> Callable[[Any], None]:
    def draw(figure: Any) -> None:
        rows = cells(report)
        names = list(dict.fromkeys(row["data"] for row in rows))
        figure.set_size_inches(3.6 * len(names), 3.6)
        for panel, name in zip(figure.subplots(1, len(names)), names, strict=True):
            mine = [row for row in rows if row["data"] == name]
            for label in dict.fromkeys(row["model"] for row in mine):
                curve = [row for row in mine if row["model"] == label]
                at = [row["rows"] for row in curve]
                (line,) = panel.plot(at, [row["regret / rows"] for row in curve], "o-", label=label)
                panel.plot(at, [row["bound / rows"] for row in curve], "--", color=line.get_color())
            panel.set(title=name, xscale="log", yscale="log", xlabel="rows", ylabel="per row")
            panel.grid(alpha=0.3)
        figure.axes[0].legend(title="dashed: bound", fontsize=7, title_fontsize=7)

    return draw
