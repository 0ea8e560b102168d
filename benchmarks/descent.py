"""Times sweeps of coordinate descent beside Gibbs sweeps of myfm: ``python benchmarks/descent.py``.

MovieLens 1M by user and item id, 900,000 rows, double precision, one thread. A sweep's time is that
of a long fit minus that of a short one, over the sweeps between; the contestants take turns and the
best of the rounds counts. It is processor time, so that a busy machine disturbs less.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from problems import movielens_1m

N_ROWS = 900_000
SHORT, LONG = 2, 6
Sweep = Callable[[int], object]
"""Runs a fit of so many sweeps."""


def main() -> int:
    """Run all contestants in turns and print times and ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contestant")
    parser.add_argument("--quick", action="store_true", help="few rows, to see that all works")
    arguments = parser.parse_args()
    problem = movielens_1m(20_000 if arguments.quick else None)
    X = sparse.csr_array(problem.X, dtype=np.float64)[:N_ROWS]
    contestants = _contestants(X, problem.y[:N_ROWS])
    with threadpool_limits(1):
        times = _best_times(contestants, arguments.rounds)
    for name, seconds in times.items():
        print(f"{name:32s} {seconds * 1e3:9.1f} ms a sweep")
    _print_ratios(times)
    return 0


def _contestants(X: sparse.csr_array, y: NDArray[np.float64]) -> dict[str, Sweep]:
    tenth = len(y) // 10
    contestants = {
        "default block, rank 8": _descent(X, y),
        "blocks of 1, rank 8": _descent(X, y, block_size=1),
        "order 3 only, rank 8": _descent(X, y, order=3, fit_lower=None),
        "rank 80": _descent(X, y, rank=80),
        "default block, a tenth of the rows": _descent(X[:tenth], y[:tenth]),
    }
    if importlib.util.find_spec("myfm"):
        contestants["myfm, rank 8"] = _gibbs(X, y)
    return contestants


def _descent(X: Any, y: NDArray[np.float64], **settings: Any) -> Sweep:
    from polyfm import FMRegressor

    fixed = {"solver": "cd", "rank": 8, "beta": 8.0, "tol": 0, "early_stopping": False}
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
    for run in contestants.values():
        run(1)  # what has to be compiled
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            times[name].append((_seconds(run, LONG) - _seconds(run, SHORT)) / (LONG - SHORT))
    return {name: min(seconds) for name, seconds in times.items()}


def _seconds(run: Sweep, n: int) -> float:
    start = process_time()
    run(n)
    return process_time() - start


def _print_ratios(times: dict[str, float]) -> None:
    default = times["default block, rank 8"]
    if "myfm, rank 8" in times:
        gibbs = times["myfm, rank 8"]
        print(f"myfm / default block                 {gibbs / default:6.2f} x   bar >= 2.5")
        single = times["blocks of 1, rank 8"]
        print(f"myfm / blocks of 1                   {gibbs / single:6.2f} x   bar >= 1.8")
    third = times["order 3 only, rank 8"] / default
    print(f"order 3 / order 2, equal rank        {third:6.2f} x   bar <= 3")
    print(f"rank 80 / rank 8                     {times['rank 80'] / default:6.2f} x   linear: 10")
    tenth = default / times["default block, a tenth of the rows"]
    print(f"all rows / a tenth                   {tenth:6.2f} x   linear: 10")


if __name__ == "__main__":
    raise SystemExit(main())
