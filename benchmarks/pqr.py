"""Projective quadratic regression beside the linear model: ``python benchmarks/run.py pqr``.

Rows like Avazu's: 22 one-hot fields of a million features with skewed counts, in their order,
single precision, one thread. A pass takes what a run of several takes longer than a run of one,
over the passes between, in processor time, so that a busy machine disturbs less; the contestants
take turns, three a round, as they are short, and the best counts. Counting features, allocating and
compiling are apart.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

from problems import Problem, synthetic_ctr
from report import verdict

SHORT, LONG, _TURNS = 1, 5, 3
ORDER = 2000
LINEAR, ORDER_0, CROSSED = "linear FTRL", "PQR, order 0", f"PQR, order {ORDER}"
Passes = Callable[[int], object]
"""Learns a new model in so many passes."""


def run(rounds: int, quick: bool) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Return rows per second of each contestant, and the verdicts on their ratios."""
    n_rows, n_features = (20_000, 100_000) if quick else (200_000, 1_000_000)
    problem = synthetic_ctr(n_rows=n_rows, n_fields=22, n_features=n_features)
    contestants = _contestants(problem)
    times = _best_times(contestants, _TURNS * rounds)
    figures = {f"{name}, rows a second": n_rows / seconds for name, seconds in times.items()}
    figures["pairs a row"] = _pairs_per_row(problem)
    verdicts = [
        verdict(f"pass, {CROSSED} / {LINEAR}", times[CROSSED] / times[LINEAR], "<=", 3.0),
        verdict(f"pass, {ORDER_0} / {LINEAR}", times[ORDER_0] / times[LINEAR], "<=", 1.0),
    ]
    return figures, verdicts


def _contestants(problem: Problem) -> dict[str, Passes]:
    from polyfm import FTRLClassifier, PQRClassifier

    common = {"tol": 0.0, "early_stopping": False, "shuffle": False}

    def learner(kind: Any, **settings: Any) -> Passes:
        return lambda n: kind(max_iter=n, **settings, **common).fit(problem.X, problem.y)

    return {
        LINEAR: learner(FTRLClassifier),
        ORDER_0: learner(PQRClassifier, order=0),
        CROSSED: learner(PQRClassifier, order=ORDER),
    }


def _pairs_per_row(problem: Problem) -> float:
    """Return how many pairs of frequent features a row has on average."""
    indices = problem.X.indices.reshape(len(problem.y), -1)
    counts = np.bincount(indices.ravel(), minlength=problem.X.shape[1])
    is_frequent = np.zeros(len(counts), dtype=bool)
    is_frequent[np.argsort(-counts, kind="stable")[:ORDER]] = True
    m = is_frequent[indices].sum(axis=1)
    return float(np.mean(m * (m - 1) / 2))


def _best_times(contestants: dict[str, Passes], turns: int) -> dict[str, float]:
    """Return the seconds of a pass."""
    for passes in contestants.values():
        passes(1)  # what has to be compiled
    best = dict.fromkeys(contestants, np.inf)
    for turn in range(1, turns + 1):
        for name, passes in contestants.items():
            print(f"turn {turn}/{turns}: {name}", file=sys.stderr)
            seconds = _seconds(passes, LONG) - _seconds(passes, SHORT)
            best[name] = min(best[name], seconds / (LONG - SHORT))
    return best


def _seconds(passes: Passes, n: int) -> float:
    start = process_time()
    passes(n)
    return process_time() - start
