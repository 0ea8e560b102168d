"""polyfm: its estimators with their defaults, AdaGrad, stopping only after the last epoch."""

from __future__ import annotations

import importlib.util
from time import perf_counter
from typing import Any

from libraries import Run, Trainer, quality
from problems import Problem

name = "polyfm"
variants = ("", "order 3", "2 threads", "predict")
WARM_UP_ROWS = 200


def available() -> bool:
    if importlib.util.find_spec("polyfm") is None:
        return False
    import polyfm

    return hasattr(polyfm, "FMClassifier")


def make(problem: Problem, rank: int, epochs: int, variant: str = "") -> Trainer:
    settings = {"rank": rank, "max_iter": epochs, **_settings(rank, variant)}
    _new_model(problem.task, **settings | {"max_iter": 1}).fit(*_few_rows(problem))
    if variant == "predict":
        return _predicting(problem, settings)

    def train() -> Run:
        model = _new_model(problem.task, **settings)
        start = perf_counter()
        model.fit(problem.X, problem.y)
        seconds = perf_counter() - start
        return Run(seconds, epochs * problem.X.shape[0], quality(problem, model, problem.X))

    return train


def _settings(rank: int, variant: str) -> dict[str, Any]:
    if variant == "order 3":  # two matrices of half the rank: as many parameters as order 2
        return {"order": 3, "rank": rank // 2, "fit_lower": "explicit"}
    return {"order": 2, "n_jobs": 2 if variant == "2 threads" else 1}


def _new_model(task: str, **settings: Any) -> Any:
    import polyfm

    estimator = polyfm.FMClassifier if task == "classification" else polyfm.FMRegressor
    return estimator(tol=0.0, early_stopping=False, random_state=0, **settings)


def _few_rows(problem: Problem) -> tuple[Any, Any]:
    few = problem.head(WARM_UP_ROWS)
    return few.X, few.y


def _predicting(problem: Problem, settings: dict[str, Any]) -> Trainer:
    model = _new_model(problem.task, **settings | {"max_iter": 1}).fit(problem.X, problem.y)
    predict = model.decision_function if problem.task == "classification" else model.predict
    predict(problem.X[:WARM_UP_ROWS])

    def run() -> Run:
        start = perf_counter()
        predict(problem.X)
        seconds = perf_counter() - start
        return Run(seconds, problem.X.shape[0], quality(problem, model, problem.X))

    return run
