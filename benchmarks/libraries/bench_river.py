"""river: one dict at a time, with its default optimizer (SGD, its fastest), one thread.

At milliseconds a row it only sees a share of the rows; its rate does not depend on how many.
"""

from __future__ import annotations

import importlib.util
from itertools import pairwise
from time import perf_counter

import numpy as np

from libraries import Run, Trainer, log_loss, rmse
from problems import Problem

name = "river"
NONZEROS_SEEN = 20_000


def available() -> bool:
    return importlib.util.find_spec("river") is not None


def make(problem: Problem, rank: int, epochs: int, variant: str = "") -> Trainer:
    from river import facto

    classify = problem.task == "classification"
    per_row = problem.X.nnz / problem.X.shape[0]
    part = problem.head(int(NONZEROS_SEEN / per_row))
    rows = _as_dicts(part)
    targets = (part.y > 0).tolist() if classify else part.y.tolist()

    def train() -> Run:
        estimator = facto.FMClassifier if classify else facto.FMRegressor
        model = estimator(n_factors=rank, seed=0)
        start = perf_counter()
        for x, y in zip(rows, targets, strict=True):
            model.learn_one(x, y)
        seconds = perf_counter() - start
        return Run(seconds, len(rows), _quality(model, rows, part, classify))

    return train


def _as_dicts(problem: Problem) -> list[dict[int, float]]:
    X = problem.X
    pairs = list(zip(X.indices.tolist(), X.data.tolist(), strict=True))
    return [dict(pairs[a:b]) for a, b in pairwise(X.indptr.tolist())]


def _quality(model: object, rows: list[dict[int, float]], part: Problem, classify: bool) -> float:
    if classify:
        return log_loss(part.y, np.array([model.predict_proba_one(x)[True] for x in rows]))
    return rmse(part.y, np.array([model.predict_one(x) for x in rows]))
