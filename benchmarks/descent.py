"""Sweeps of coordinate descent beside Gibbs sweeps of myfm: ``python benchmarks/run.py descent``.

MovieLens 1M by user and item id, 900,000 rows, double precision, one thread. A sweep's time is that
of the best long fit minus that of the best short one, over the sweeps between; the contestants take
turns. It is processor time, so that a busy machine disturbs less.

That a sweep's cost is linear in the non-zeros is seen on 90,000 rows of 6 and of 60 of them, which
take the same room. A tenth of MovieLens takes less than a tenth of the time, as what is kept of its
rows stays in the core's cache: a figure without a bar.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import process
from problems import movielens_1m
from report import verdict

N_ROWS = 900_000
SHORT, LONG = 2, 10
Sweep = Callable[[int], object]
"""Runs a fit of so many sweeps."""
BLOCKS, SINGLE, GIBBS = "blocks of 8", "blocks of 1", "myfm"
ORDER_3, RANK_80, TENTH = "order 3 alone", "rank 80", "a tenth of the rows"
SHORT_ROWS, LONG_ROWS = "6 non-zeros a row", "60 non-zeros a row"
RATIOS = (
    ("sweep, myfm / blocks of 8", GIBBS, BLOCKS, ">=", 2.5),
    ("sweep, myfm / blocks of 1", GIBBS, SINGLE, ">=", 1.8),
    ("sweep, order 3 / order 2, equal rank", ORDER_3, BLOCKS, "<=", 3.0),
    ("sweep, rank 80 / rank 8 (linear: 10)", RANK_80, BLOCKS, "<=", 12.0),
    ("sweep, 60 non-zeros a row / 6 (linear: 10)", LONG_ROWS, SHORT_ROWS, "<=", 12.0),
)


def run(rounds: int, quick: bool) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Return the milliseconds of a sweep of each contestant, and the verdicts on their ratios."""
    problem = movielens_1m(20_000 if quick else None)
    X = sparse.csr_array(problem.X, dtype=np.float64)[:N_ROWS]
    times = _best_times(_contestants(X, problem.y[:N_ROWS]), rounds)
    verdicts = [
        verdict(label, times[slow] / times[fast], sense, bound)
        for label, slow, fast, sense, bound in RATIOS
        if slow in times
    ]
    memory = process.measure("descent-memory", quick)
    verdicts.append(verdict("memory, peak / what the docstring names", memory, "<=", 1.1))
    return {f"{name}, ms a sweep": 1e3 * seconds for name, seconds in times.items()}, verdicts


def _contestants(X: sparse.csr_array, y: NDArray[np.float64]) -> dict[str, Sweep]:
    tenth = len(y) // 10
    beta = 8.0 * len(y) / N_ROWS  # fewer rows bear less penalty, or all factors vanish
    contestants = {
        BLOCKS: _descent(X, y, beta=beta),
        SINGLE: _descent(X, y, beta=beta, block_size=1),
        ORDER_3: _descent(X, y, order=3, fit_lower=None, beta=beta / 100),
        RANK_80: _descent(X, y, beta=beta, rank=80),
        TENTH: _descent(X[:tenth], y[:tenth], beta=beta / 10),
        SHORT_ROWS: _descent(*_rows_of(6, tenth), beta=0.05),
        LONG_ROWS: _descent(*_rows_of(60, tenth), beta=0.05),
    }
    if importlib.util.find_spec("myfm"):
        contestants[GIBBS] = _gibbs(X, y)
    else:
        print("myfm is not installed and left out", file=sys.stderr)
    return contestants


def _rows_of(n_fields: int, n_rows: int) -> tuple[sparse.csr_array, NDArray[np.float64]]:
    """Return one-hot rows of so many fields of 2,000 features, and targets without a pattern."""
    random = np.random.default_rng(0)
    features = random.integers(0, 2000, (n_rows, n_fields)) + 2000 * np.arange(n_fields)
    ends = np.arange(0, features.size + 1, n_fields)
    X = sparse.csr_array((np.ones(features.size), features.ravel(), ends))
    return X, random.normal(size=n_rows)


def _descent(X: Any, y: NDArray[np.float64], **settings: Any) -> Sweep:
    from polyfm import FMRegressor

    fixed = {"solver": "cd", "rank": 8, "tol": 0, "early_stopping": False}
    return lambda n: FMRegressor(**{**fixed, **settings}, max_iter=n, random_state=0).fit(X, y)


def _gibbs(X: Any, y: NDArray[np.float64]) -> Sweep:
    import myfm

    matrix = sparse.csr_matrix(X)

    def run(n: int) -> object:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            model = myfm.MyFMRegressor(rank=8, random_seed=0)
            return model.fit(matrix, y, n_iter=n, n_kept_samples=1)

    return run


def _best_times(contestants: dict[str, Sweep], rounds: int) -> dict[str, float]:
    for run_sweeps in contestants.values():
        run_sweeps(1)  # what has to be compiled
    best = {name: {SHORT: np.inf, LONG: np.inf} for name in contestants}
    for turn in range(1, rounds + 1):
        for name, run_sweeps in contestants.items():
            print(f"round {turn}/{rounds}: {name}", file=sys.stderr)
            for n, least in best[name].items():
                best[name][n] = min(least, _seconds(run_sweeps, n))
    return {name: (each[LONG] - each[SHORT]) / (LONG - SHORT) for name, each in best.items()}


def _seconds(run_sweeps: Sweep, n: int) -> float:
    start = process_time()
    run_sweeps(n)
    return process_time() - start
