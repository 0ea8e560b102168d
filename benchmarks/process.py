"""What only a new process can tell: import time, first fit, peak memory.

``python benchmarks/process.py import|first-fit|memory|descent-memory [--quick]`` prints one number
(seconds, or the memory of a training beyond its data in multiples of what is expected); `measure`
runs it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # numpy loaded here would make the import of polyfm look cheap
    from problems import Problem

REPEATS = 5
FIRST_FIT_ROWS = 2000


def measure(what: str, quick: bool) -> float:
    """The smallest of a few measurements, each in a process of its own.

    A process before the first one fills the cache of compiled code.
    """
    command = [sys.executable, __file__, what, *(["--quick"] if quick else [])]
    repeats = 1 if what.endswith("memory") else REPEATS
    found = [
        float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(repeats + 1)
    ]
    return min(found[1:])


def import_seconds(quick: bool) -> float:
    start = perf_counter()
    import polyfm  # noqa: F401

    return perf_counter() - start


def first_fit_seconds(quick: bool) -> float:
    import numpy as np

    from polyfm import FMClassifier

    few = _problem(quick).head(FIRST_FIT_ROWS)
    X = few.X[:, np.unique(few.X.indices)]
    model = FMClassifier(order=2, rank=8, max_iter=1, tol=0.0, early_stopping=False)
    start = perf_counter()
    model.fit(X, few.y)
    return perf_counter() - start


def memory_over_parameters(quick: bool) -> float:
    """Peak resident memory beyond that before the training, in multiples of the parameters.

    With rows held out and the best weights kept, as at the default settings.
    """
    import psutil

    from polyfm import FMClassifier

    problem = _problem(quick)
    few = problem.head(FIRST_FIT_ROWS)
    settings = {"order": 2, "rank": 8, "max_iter": 2, "tol": 0.0, "early_stopping": True}
    FMClassifier(**settings).fit(few.X[:, :1000], few.y)
    before = psutil.Process().memory_info().rss
    model = FMClassifier(**settings).fit(problem.X, problem.y)
    peak = peak_bytes()  # before the fitted arrays are looked at, which may copy them
    parameters = model.coef_.nbytes + sum(P.nbytes for P in model.factors_.values())
    return (peak - before) / parameters


def descent_memory(quick: bool) -> float:
    """Peak resident memory of coordinate descent, in multiples of what its docstring names."""
    import numpy as np
    import psutil

    from polyfm import FMRegressor
    from problems import movielens_1m

    problem = movielens_1m(100_000 if quick else None)
    settings = {"solver": "cd", "rank": 8, "beta": 8.0, "max_iter": 2, "tol": 0.0}
    settings["early_stopping"] = False
    few = problem.head(FIRST_FIT_ROWS)
    FMRegressor(**settings).fit(few.X, few.y)
    before = psutil.Process().memory_info().rss
    model = FMRegressor(**settings).fit(problem.X, problem.y)
    peak = peak_bytes()
    X, (n, d) = problem.X, problem.X.shape
    parameters = (3 + 8) * d * X.dtype.itemsize + 8 * (3 + 8) * d  # weight, visits, unit; copied
    targets = n * (8 + 8 + X.dtype.itemsize * 2 + 4)  # as checked, as the solver sees them, numbers
    copies = 2 * X.nnz * (X.dtype.itemsize + X.indices.itemsize) + 2 * 8 * n  # and where rows end
    copies += 2 * n * X.dtype.itemsize + 4 * n  # targets, weights, numbers
    longest = int(np.bincount(X.indices).max())
    kept = 8 * (4 * n + 8 * n + 9 * longest)
    del model
    return (peak - before) / (parameters + targets + copies + kept)


def peak_bytes() -> int:
    """Highest resident memory so far of this process."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux lets getrusage report the peak of the parent process, too
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _problem(quick: bool) -> Problem:
    from problems import PROBLEMS, QUICK_PROBLEMS

    return (QUICK_PROBLEMS if quick else PROBLEMS)["synthetic_ctr"]()


MEASURES = {
    "import": import_seconds,
    "first-fit": first_fit_seconds,
    "memory": memory_over_parameters,
    "descent-memory": descent_memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=MEASURES)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    print(MEASURES[arguments.what](arguments.quick))


if __name__ == "__main__":
    main()
