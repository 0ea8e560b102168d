"""``polyfm evaluate``."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.cli._files import add_source
from polyfm.cli._models import add_model, is_classifier, load, prepare
from sklearn import metrics

_EPILOG = """examples:
  polyfm evaluate test.csv --model income.polyfm
  polyfm evaluate test.svm --model clicks.polyfm --json
"""
_DIGITS = 5


def configure(parser: argparse.ArgumentParser) -> None:
    """Add description and arguments."""
    parser.description = (
        "Measure predictions of a file whose targets are known: log loss, AUC and accuracy for\n"
        "labels; RMSE, MAE and R2 for numbers."
    )
    parser.epilog = _EPILOG
    add_source(parser)
    add_model(parser)
    parser.add_argument(
        "--target", metavar="COLUMN", help="column of the target (default: that of the training)"
    )
    parser.add_argument("--json", action="store_true", help="write JSON instead of a table")


def run(args: argparse.Namespace) -> None:
    """Evaluate."""
    saved = load(args)
    X, target = prepare(args, saved, labels=True)
    assess = _assess_labels if is_classifier(saved.model) else _assess_numbers
    figures = {"rows": int(X.shape[0]), **assess(saved.model, X, target)}
    if args.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        shown = f"{value:,}" if isinstance(value, int) else _rounded(value)
        print(f"{name:<9} {shown:>10}")


def _rounded(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.{_DIGITS}f}"


def _assess_labels(model: Any, X: Any, y: Any) -> dict[str, float | None]:
    classes = model.classes_
    places = _places(classes, y)
    p = model.predict_proba(X).astype(np.float64)
    predicted = model.predict(X)
    return {
        "log loss": float(-np.mean(np.log(p[np.arange(len(places)), places]))),
        "AUC": _auc(places, p),
        "accuracy": float(np.mean(predicted == classes[places])),
    }


def _auc(places: NDArray[np.intp], p: NDArray[np.float64]) -> float | None:
    """Return the area under the ROC curve; the mean over the classes where there are several."""
    present = np.unique(places)
    if len(present) < p.shape[1]:
        return None
    if p.shape[1] == 2:
        return float(metrics.roc_auc_score(places, p[:, 1]))
    return float(np.mean([metrics.roc_auc_score(places == k, p[:, k]) for k in present]))


def _places(classes: NDArray[Any], y: NDArray[Any]) -> NDArray[np.intp]:
    """Return the place of each label among the classes.

    Raises
    ------
    ValueError
        For a label that the model does not know.
    """
    order = {label: place for place, label in enumerate(classes.tolist())}
    labels = y.tolist()
    for row, label in enumerate(labels, 1):
        if label not in order:
            raise ValueError(
                f"data row {row} has the label {label!r}, which the model does not know; it knows "
                f"{classes.tolist()}."
            )
    return np.array([order[label] for label in labels], dtype=np.intp)


def _assess_numbers(model: Any, X: Any, y: Any) -> dict[str, float | None]:
    try:
        y = np.asarray(y, dtype=np.float64)
    except ValueError:
        raise ValueError(f"the target is no number, but for example {y[0]!r}.") from None
    predicted = model.predict(X).astype(np.float64)
    return {
        "RMSE": float(metrics.root_mean_squared_error(y, predicted)),
        "MAE": float(metrics.mean_absolute_error(y, predicted)),
        "R2": float(metrics.r2_score(y, predicted)) if len(y) > 1 else None,
    }
