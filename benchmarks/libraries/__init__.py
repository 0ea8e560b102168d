"""One file per contestant, ``bench_<name>.py``; `load_libraries` finds them.

A contestant module has

``name``
    what the table calls it;
``variants``
    optional; labels of further ways to run it, the first being ``""``;
``available()``
    whether its package can be imported;
``make(problem, rank, epochs, variant="")``
    converts the data, compiles or warms up what it must, and returns a callable that trains a new
    model and returns a `Run`. What happens inside ``make`` is not timed.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from problems import Problem


@dataclass(frozen=True)
class Run:
    """One timed training.

    ``quality`` is the mean log loss (classification) or the RMSE (regression) on the rows trained
    on, NaN where the contestant learns nothing.
    """

    seconds: float
    rows_visited: int
    quality: float


Trainer = Callable[[], Run]


def load_libraries() -> list[ModuleType]:
    """The contestant modules of this folder, in alphabetical order."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name.startswith("bench_"))
    return [importlib.import_module(f"{__name__}.{name}") for name in names]


def quality(problem: Problem, model: Any, X: Any) -> float:
    """Judge a model with scikit-learn's methods on the rows it was trained on."""
    if problem.task == "classification":
        return log_loss(problem.y, model.predict_proba(X)[:, 1])
    return rmse(problem.y, model.predict(X))


def log_loss(y: NDArray[np.float64], probability: NDArray[np.float64]) -> float:
    """Mean log loss of P(y = +1) against labels -1, +1."""
    of_truth = np.where(y > 0, probability, 1.0 - probability)
    return float(-np.log(np.maximum(of_truth, 1e-15)).mean())


def rmse(y: NDArray[np.float64], prediction: NDArray[np.float64]) -> float:
    """Root of the mean squared error."""
    return float(np.sqrt(np.mean((y - prediction) ** 2)))
