"""The rows that judge each epoch, and the metrics they are judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from polyfm.losses.averages import weighted_mean
from polyfm.losses.evaluate import mean_loss
from polyfm.solvers.training import Validation

ROWS_FOR_EARLY_STOPPING = 1_000
"""From so many rows on, ``early_stopping="auto"`` holds some out."""


class Labelled(NamedTuple):
    """Checked rows of a matrix: those that ``numbers`` names, so that parts share the matrix."""

    matrix: sp.csr_matrix
    """Canonical CSR."""
    all_targets: NDArray[np.float64]
    """Of every row of the matrix, (n, n_learners)."""
    all_weights: NDArray[np.float64]
    """Of every row of the matrix, (n,)."""
    numbers: NDArray[Any]
    """Of the rows that are meant, in increasing order."""

    @property
    def n_rows(self) -> int:
        """Number of the rows that are meant."""
        return len(self.numbers)

    @property
    def targets(self) -> NDArray[np.float64]:
        """Targets of the rows that are meant, (n_rows, n_learners)."""
        return self._chosen(self.all_targets)

    @property
    def weight(self) -> NDArray[np.float64]:
        """Weights of the rows that are meant, (n_rows,)."""
        return self._chosen(self.all_weights)

    @property
    def mean_terms(self) -> float:
        """Mean number of non-zeros of the rows that are meant, as their weights count them."""
        return weighted_mean(self._chosen(np.diff(self.matrix.indptr)), self.weight)

    def _chosen(self, of_all: NDArray[Any]) -> NDArray[Any]:
        return of_all if len(of_all) == len(self.numbers) else of_all[self.numbers]


@dataclass(frozen=True)
class Held:
    """Training rows and, where there are any, validation rows."""

    train: Labelled
    validation: Labelled | None = None

    @classmethod
    def split(
        cls, rows: Labelled, fraction: float, random: RandomState, stratify: NDArray[Any] | None
    ) -> Held:
        """Hold out a random share of the rows.

        Raises
        ------
        ValueError
            When there are too few rows for the share.
        """
        parts = train_test_split(
            rows.numbers,
            test_size=fraction,
            random_state=random,
            stratify=stratify if _can_stratify(stratify, fraction * rows.n_rows) else None,
        )
        train, held = (rows._replace(numbers=np.sort(part)) for part in parts)
        return cls(train, held)


def _can_stratify(labels: NDArray[Any] | None, n_held: float) -> bool:
    """Whether each class has a row for either side, and either side a row for each class."""
    if labels is None:
        return False
    counts = np.unique(labels, return_counts=True)[1]
    return bool(counts.min() >= 2 and len(counts) <= min(n_held, counts.sum() - n_held - 1))


class Metric(NamedTuple):
    """A function of targets, raw predictions and weights, and its direction."""

    value: Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], float]
    maximize: bool


def _auc(y: NDArray[Any], raw: NDArray[Any], weight: NDArray[Any]) -> float:
    return float(roc_auc_score(y[:, 0] > 0, raw[:, 0], sample_weight=weight))


def _accuracy(y: NDArray[Any], raw: NDArray[Any], weight: NDArray[Any]) -> float:
    right = (raw[:, 0] > 0) == (y[:, 0] > 0)
    if y.shape[1] > 1:
        right = raw.argmax(axis=1) == y.argmax(axis=1)
    return float(np.average(right, weights=weight))


def _rmse(y: NDArray[Any], raw: NDArray[Any], weight: NDArray[Any]) -> float:
    return float(np.sqrt(np.average((y[:, 0] - raw[:, 0]) ** 2, weights=weight)))


def _mae(y: NDArray[Any], raw: NDArray[Any], weight: NDArray[Any]) -> float:
    return float(np.average(np.abs(y[:, 0] - raw[:, 0]), weights=weight))


CLASSIFICATION_METRICS = {"roc_auc": Metric(_auc, True), "accuracy": Metric(_accuracy, True)}
REGRESSION_METRICS = {"rmse": Metric(_rmse, False), "mae": Metric(_mae, False)}


def _loss_metric(loss: Any) -> Metric:
    def total(y: NDArray[Any], raw: NDArray[Any], weight: NDArray[Any]) -> float:
        return sum(mean_loss(loss, y[:, k], raw[:, k], weight) for k in range(y.shape[1]))

    return Metric(total, False)


def find_metric(name: str, loss: Any, known: dict[str, Metric]) -> Metric:
    """Return the metric that ``scoring`` names.

    Raises
    ------
    ValueError
        For a name that is unknown or does not fit the task.
    """
    known = {"loss": _loss_metric(loss), **known}
    if name not in known:
        names = ", ".join(repr(n) for n in sorted(known))
        raise ValueError(f"scoring={name!r} is not known here; choose one of {names}.")
    return known[name]


def validation_of(
    name: str,
    metric: Metric,
    rows: Labelled,
    scores: Callable[[sp.csr_matrix, NDArray[Any]], NDArray[Any]],
    inverse_link: Callable[[NDArray[Any]], NDArray[Any]],
) -> Validation:
    """Judge what ``scores`` predicts for ``rows`` by a metric.

    Raises
    ------
    ValueError
        When the AUC is asked for and the rows are of one class.
    """
    targets, weight = rows.targets, rows.weight
    if name == "roc_auc" and (targets.shape[1] > 1 or len(np.unique(targets[weight > 0])) < 2):
        raise ValueError(
            "scoring='roc_auc' needs validation rows of exactly two classes: the AUC of "
            f"{'several' if targets.shape[1] > 1 else 'a single'} class is undefined."
        )

    def judge() -> float:
        raw = scores(rows.matrix, rows.numbers).astype(np.float64)
        if name in REGRESSION_METRICS:
            raw = inverse_link(raw)
        return metric.value(targets, raw, weight)

    return Validation(name, judge, metric.maximize)
