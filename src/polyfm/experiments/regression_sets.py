"""Regression sets of the polynomial-network paper, scaled and split."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from polyfm.datasets import fetch_abalone, fetch_california_housing, fetch_cpu_small
from polyfm.datasets.bundle import DatasetBundle

__all__ = ["Parts", "held_out", "regression_sets", "rmse", "side_by_side", "tuned"]


class Parts(NamedTuple):
    """Rows to train and to test."""

    X: Any
    y: NDArray[np.float64]
    X_test: Any
    y_test: NDArray[np.float64]


def regression_sets() -> dict[str, Parts]:
    """Return abalone, cadata, cpusmall and diabetes: dense, 80 to 20, features from -1 to 1."""
    bundles = {
        "abalone": fetch_abalone(numeric="passthrough", dtype=np.float64),
        "cadata": fetch_california_housing(numeric="passthrough", dtype=np.float64),
        "cpusmall": fetch_cpu_small(numeric="passthrough", dtype=np.float64),
    }
    diabetes = train_test_split(*load_diabetes(return_X_y=True), test_size=0.2, random_state=0)
    return {
        **{name: _dense(each) for name, each in bundles.items()},
        "diabetes": _scaled(*diabetes),
    }


def _dense(bundle: DatasetBundle) -> Parts:
    X, X_test, y, y_test = bundle.split("random")
    return _scaled(X.toarray(), X_test.toarray(), y, y_test)


def _scaled(X: Any, X_test: Any, y: Any, y_test: Any) -> Parts:
    """Map the training values of each column to -1 to 1; products of outliers would be huge."""
    scaler = MinMaxScaler((-1, 1), clip=True).fit(X)
    return Parts(scaler.transform(X), y, scaler.transform(X_test), y_test)


def held_out(parts: Parts) -> Parts:
    """Return a split of the training rows alone, four fifths to one."""
    X, X_held, y, y_held = train_test_split(parts.X, parts.y, test_size=0.2, random_state=0)
    return Parts(X, y, X_held, y_held)


def rmse(model: Any, parts: Parts) -> float:
    """Fit a model and return its root mean squared error on the test rows."""
    error = model.fit(parts.X, parts.y).predict(parts.X_test) - parts.y_test
    return float(np.sqrt(np.mean(error**2)))


def tuned(make: Any, strengths: tuple[float, ...], parts: Parts) -> float:
    """Return the penalty with the least error on a fifth of the training rows."""
    inner = held_out(parts)
    errors = side_by_side(lambda strength: rmse(make(strength), inner), strengths)
    return strengths[int(np.argmin(errors))]


def side_by_side(run: Callable[[Any], float], values: Iterable[Any]) -> list[float]:
    """Return the error that each value leads to; compiled learning lets others run meanwhile."""
    with ThreadPoolExecutor(cpu_count()) as threads:
        return list(threads.map(run, values))
