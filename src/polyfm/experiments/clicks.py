"""Two classes: Adult incomes, Frappe app usage, Criteo clicks."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from polyfm.datasets import fetch_criteo_mini, fetch_frappe, load_adult
from polyfm.datasets.bundle import DatasetBundle
from polyfm.estimators import FMClassifier
from polyfm.experiments.report import Report

_NOTE = (
    "FMClassifier(random_state=0) with rank 8 per degree and its defaults where nothing else is "
    "said; logistic regression is scikit-learn's, on the same columns, C=1."
)
_FIXED: dict[str, Any] = {"early_stopping": False, "max_iter": 15}


def adult() -> Report:
    """Log loss and AUC on the official test rows."""
    return _compare("Adult: official test rows", load_adult(), "test")


def frappe() -> Report:
    """RMSE of p(1) - p(-1) against the labels -1 and 1, log loss and AUC on the test file."""
    report = _compare("Frappe (rebuilt training file): test file", fetch_frappe(), "test")
    report.notes.append(
        "RMSE is that of 2 p - 1 against labels -1 and 1. The negatives of the training file are "
        "drawn anew, so figures are near published ones, not equal."
    )
    return report


def criteo() -> Report:
    """Log loss and AUC on the second piece of 10,000 rows, trained on the first."""
    return _compare("Criteo, first 20,000 rows: tr -> va", fetch_criteo_mini(), None)


def _compare(title: str, bundle: DatasetBundle, split: str | None) -> Report:
    report = Report(title, ("model", "log loss", "AUC", "RMSE", "epochs", "seconds"), notes=[_NOTE])
    split = next(iter(bundle.splits)) if split not in bundle.splits else split
    data = bundle.split(split)
    _judge(report, "logistic regression", LogisticRegression(max_iter=1000), data)
    for order in (1, 2, 3):
        _judge(report, f"order {order}", FMClassifier(order=order, random_state=0), data)
    for order in (2, 3):
        model = FMClassifier(order=order, random_state=0, **_FIXED)
        _judge(report, f"order {order}, 15 epochs on all training rows", model, data)
    return report


def _judge(report: Report, name: str, model: Any, data: tuple[Any, Any, Any, Any]) -> None:
    X, X_test, y, y_test = data
    started = perf_counter()
    model.fit(X, y)
    seconds = perf_counter() - started
    p = model.predict_proba(X_test)[:, 1]
    positive = y_test == model.classes_[1]
    rmse = float(np.sqrt(np.mean((2.0 * p - np.where(positive, 2.0, 0.0)) ** 2)))
    loss, auc = float(log_loss(positive, p)), float(roc_auc_score(positive, p))
    report.add(name, loss, auc, rmse, f"{int(np.max(model.n_iter_))}", f"{seconds:.1f}")
