"""Metrics that are added up as a stream goes by, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_STEPS_PER_UNIT = 2048
_LARGEST_LOGIT = 24.0
METRICS = {"regression": ("rmse", "mae"), "classification": ("log_loss", "auc", "accuracy")}


class Sums:
    """Sums over the rows of a window or of the whole stream, and the metrics they give.

    Sums are of the weights and the weighted errors. For the AUC, rows are counted by class in bins
    of the logit of their probability, each 1/2048 wide; rows in one bin count as ties. So it needs
    no more memory for more rows, and differs from the exact one by less than half the share of
    pairs that meet in a bin.
    """

    def __init__(self, metrics: Sequence[str]) -> None:
        self.metrics = tuple(metrics)
        self.n_rows = 0
        self.weight = 0.0
        self.errors = dict.fromkeys(self.metrics, 0.0)
        self.bins: dict[int, list[float]] = {}

    def add(self, y: NDArray[Any], output: NDArray[Any], weight: NDArray[np.float64]) -> None:
        """Take in some rows.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Targets, or places of the labels among the classes.
        output : ndarray of shape (n,) or (n, n_classes)
            Predictions, or probabilities.
        weight : ndarray of shape (n,)
            Weights of the rows.
        """
        self.n_rows += len(y)
        self.weight += float(weight.sum())
        for name in self.metrics:
            if name == "auc":
                self._count(y, output[:, 1], weight)
            else:
                self.errors[name] += float(np.dot(weight, _ERRORS[name](y, output)))

    def _count(self, y: NDArray[Any], p: NDArray[Any], weight: NDArray[np.float64]) -> None:
        logit = np.clip(np.log(p) - np.log1p(-p), -_LARGEST_LOGIT, _LARGEST_LOGIT)
        places = np.round(logit * _STEPS_PER_UNIT).astype(np.int64)
        for place, label, w in zip(places.tolist(), y.tolist(), weight.tolist(), strict=True):
            self.bins.setdefault(place, [0.0, 0.0])[label] += w

    def values(self) -> dict[str, float]:
        """Return the metrics; NaN where they are undefined."""
        return {name: self._value(name) for name in self.metrics}

    def _value(self, name: str) -> float:
        if name == "auc":
            return _area(self.bins)
        if self.weight == 0.0:
            return float("nan")
        mean = self.errors[name] / self.weight
        return float(np.sqrt(mean)) if name == "rmse" else mean

    def state(self) -> dict[str, Any]:
        """Return all numbers as JSON can hold them."""
        bins = [[place, *counts] for place, counts in self.bins.items()]
        return {
            "metrics": list(self.metrics), "n_rows": self.n_rows, "weight": self.weight,
            "errors": self.errors, "bins": bins,
        }  # fmt: skip

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Sums:
        """Return the sums that :meth:`state` has told."""
        sums = cls(state["metrics"])
        sums.n_rows, sums.weight = int(state["n_rows"]), float(state["weight"])
        sums.errors = dict(state["errors"])
        sums.bins = {int(place): [neg, pos] for place, neg, pos in state["bins"]}
        return sums


def _log_loss(y: NDArray[Any], p: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(-np.log(np.maximum(p[np.arange(len(y)), y], np.finfo(np.float64).tiny)))


_ERRORS: dict[str, Any] = {
    "rmse": lambda y, f: (y - f) ** 2,
    "mae": lambda y, f: np.abs(y - f),
    "log_loss": _log_loss,
    "accuracy": lambda y, p: p.argmax(axis=1) == y,
}


def _area(bins: dict[int, list[float]]) -> float:
    """Return the area under the curve; NaN without rows of both classes."""
    counts = np.array([bins[place] for place in sorted(bins)]).reshape(-1, 2)
    negatives, positives = counts.sum(axis=0)
    if not negatives or not positives:
        return float("nan")
    below = np.cumsum(counts[:, 0]) - 0.5 * counts[:, 0]
    return float(np.dot(counts[:, 1], below) / (negatives * positives))
