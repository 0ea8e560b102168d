"""FTRL-Proximal beside Vowpal Wabbit's: ``python benchmarks/run.py online``.

The rows of ``synthetic_ctr`` with a column of ones, in their order, single precision, the same
settings. A pass takes what a run of several takes longer than a run of one, over the passes
between: reading, allocating and compiling are apart. Vowpal Wabbit reads its own binary cache,
which a second thread decodes; polyfm has one thread and the rows in memory. The contestants take
turns and the best of the rounds counts. The mean loss that each row has before it is learnt, over
the first pass, must be the same to four digits.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from problems import Problem, cache_folder, synthetic_ctr
from report import verdict

SHORT, LONG = 1, 5
RATE, DAMPING, L1, L2 = 0.1, 1.0, 1.0, 1.0
LINEAR, FACTORS, VW = "linear", "FM, rank 8", "vowpal wabbit --ftrl"
Passes = Callable[[int], float]
"""Learns a new model in so many passes; returns the mean loss over all of them."""


def run(rounds: int, quick: bool) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Return rows per second and losses of each contestant, and the verdicts on their ratios."""
    problem = synthetic_ctr(n_rows=20_000, n_features=100_000) if quick else synthetic_ctr()
    contestants = _contestants(problem)
    losses = {name: passes(1) for name, passes in contestants.items()}
    times = _best_times(contestants, rounds)
    ratio = times[FACTORS] / times[LINEAR]
    verdicts = [verdict(f"pass, {FACTORS} / {LINEAR}", ratio, "<=", 6.0)]
    if VW in times:
        ratio = times[VW] / times[LINEAR]
        verdicts.append(verdict(f"pass, {VW} / {LINEAR}", ratio, ">=", 2.0))
        apart = abs(losses[VW] - losses[LINEAR])
        verdicts.append(verdict("first pass, difference of mean losses", apart, "<=", 5e-5))
    n = len(problem.y)
    figures = {f"{name}, rows a second": n / seconds for name, seconds in times.items()}
    figures |= {
        f"{name}, loss of the first pass, 1e-6": 1e6 * loss for name, loss in losses.items()
    }
    return figures, verdicts


def _contestants(problem: Problem) -> dict[str, Passes]:
    ones = np.ones((len(problem.y), 1), dtype=np.float32)
    X = sparse.csr_array(sparse.hstack([problem.X, ones], format="csr"))
    contestants = {name: _polyfm(name, X, problem.y) for name in (LINEAR, FACTORS)}
    if importlib.util.find_spec("vowpalwabbit") is None:
        print("vowpalwabbit is not installed and left out", file=sys.stderr)
    else:
        contestants[VW] = _vowpal_wabbit(X, problem.y)
    return contestants


def _polyfm(name: str, X: sparse.csr_array, y: Any) -> Passes:
    from polyfm import FMClassifier, FTRLClassifier
    from polyfm.updates import FTRLProximal

    common = {
        "penalty": "elasticnet", "l1_ratio": L1 / (L1 + L2), "alpha": L1 + L2, "tol": 0.0,
        "early_stopping": False, "shuffle": False, "fit_intercept": False,
    }  # fmt: skip
    rule = FTRLProximal(RATE, DAMPING, 0.0)

    def passes(n: int) -> float:
        if name == LINEAR:
            model = FTRLClassifier(learning_rate=RATE, damping=DAMPING, max_iter=n, **common)
        else:
            model = FMClassifier(
                rank=8, solver=rule, beta=L1 + L2, max_iter=n, random_state=0, **common
            )
        return float(np.mean(model.fit(X, y).history_["loss"]))

    return passes


def _vowpal_wabbit(X: sparse.csr_array, y: Any) -> Passes:
    import vowpalwabbit

    path = _text_file(X, y)
    bits = int(X.shape[1]).bit_length()
    settings = (
        f"--quiet --data {path} --cache_file {path}.cache --noconstant --bit_precision {bits} "
        f"--loss_function logistic --holdout_off --ftrl --ftrl_alpha {RATE} --ftrl_beta {DAMPING} "
        f"--l1 {L1} --l2 {L2}"
    )

    def passes(n: int) -> float:
        model = vowpalwabbit.Workspace(f"{settings} --passes {n}")
        loss = model.get_sum_loss() / model.get_weighted_examples()
        model.finish()
        return float(loss)

    passes(1)  # writes the cache
    return passes


def _text_file(X: sparse.csr_array, y: Any) -> Path:
    """Write rows in Vowpal Wabbit's format, unless they are there: all values are ones."""
    path = cache_folder() / f"vw-{X.shape[0]}-{X.shape[1]}-{X.nnz}.txt"
    if not path.exists():
        partial = path.with_suffix(".partial")
        with partial.open("w") as file:
            for row, target in enumerate(y):
                columns = X.indices[X.indptr[row] : X.indptr[row + 1]]
                file.write(f"{target:g} | {' '.join(map(str, columns))}\n")
        partial.replace(path)
    return path


def _best_times(contestants: dict[str, Passes], rounds: int) -> dict[str, float]:
    """Return the seconds of a pass."""
    best = dict.fromkeys(contestants, np.inf)
    for turn in range(1, rounds + 1):
        for name, passes in contestants.items():
            print(f"round {turn}/{rounds}: {name}", file=sys.stderr)
            seconds = _seconds(passes, LONG) - _seconds(passes, SHORT)
            best[name] = min(best[name], seconds / (LONG - SHORT))
    return best


def _seconds(passes: Passes, n: int) -> float:
    start = perf_counter()
    passes(n)
    return perf_counter() - start
