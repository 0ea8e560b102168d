"""modern-fm: AdaGrad row by row (batch size 1), one thread."""

from __future__ import annotations

import importlib.util
from time import perf_counter

import numpy as np

from libraries import Run, Trainer, quality
from problems import Problem

name = "modern-fm"


def available() -> bool:
    return importlib.util.find_spec("modern_fm") is not None


def make(problem: Problem, rank: int, epochs: int, variant: str = "") -> Trainer:
    import modern_fm

    classify = problem.task == "classification"
    estimator = modern_fm.FMClassifier if classify else modern_fm.FMRegressor
    X = problem.X.astype(np.float64)  # it computes in float64; handed over, so not timed
    settings = {"optimizer": "adagrad", "batch_size": 1, "n_jobs": 1, "random_state": 0}

    def train() -> Run:
        model = estimator(n_factors=rank, max_iter=epochs, **settings)
        start = perf_counter()
        model.fit(X, problem.y)
        seconds = perf_counter() - start
        return Run(seconds, epochs * X.shape[0], quality(problem, model, X))

    return train
