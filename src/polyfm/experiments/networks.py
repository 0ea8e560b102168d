"""Polynomial networks against factorization machines: weights of bases, recommenders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from polyfm.datasets import fetch_lastfm, fetch_movielens_1m, fetch_movielens_100k
from polyfm.datasets.bundle import DatasetBundle
from polyfm.estimators import FMRegressor, PolynomialNetworkRegressor
from polyfm.experiments.figures import cells, dots
from polyfm.experiments.regression_sets import Parts, regression_sets, rmse, side_by_side, tuned
from polyfm.experiments.report import Report

_RANK = 12
_SEEDS = 3
_STRENGTHS = (0.01, 0.1, 1.0)
_STRENGTHS_OF_IDS = (3.0, 6.0, 12.0, 24.0)
_IDS = ("user", "item", "artist")
_OTHERS = 25.0
"""Penalty of columns with many rows each, in those of the ids."""
_STARTS, _SWEEPS, _SWEEPS_TO_CHOOSE = 2, 15, 8
_NEARLY = 1.02
"""How many times the error of learnt weights is nearly as good."""

_WEIGHTS = {"1": False, "signs": "signs", "learnt": True}
"""How the weights of the bases are set, and the parameter that says so."""
_KERNELS = {"A^2": ("anova", "cd"), "H^2": ("polynomial", "lbfgs")}


def pn_weights() -> Report:
    """Weights of the bases fixed to 1, fixed to signs or learnt, for the kernels A^2 and H^2."""
    report = Report(
        f"Weights of the bases: test RMSE, mean of {_SEEDS} starts",
        ("data", "model", "RMSE", "std", "penalty"),
        notes=[
            f"Rank {_RANK}, squared loss, linear term, 60 epochs. A^2: FMRegressor(solver='cd'), "
            "H^2: FMRegressor(kernel='polynomial', solver='lbfgs'); signs are 1 and -1 in turn; "
            f"lifted: PolynomialNetworkRegressor(rank={_RANK // 2}), of as many parameters. "
            "MovieLens is u1 with user and item ids alone.",
            f"Penalties are the best of {', '.join(map(str, _STRENGTHS))} (MovieLens: "
            f"{', '.join(map(str, _STRENGTHS_OF_IDS))}) on a fifth of the training rows.",
            "The paper says in words that for A^2 weights of 1 are nearly as good as fitted ones; "
            "its data sets and figures for this experiment are not known.",
        ],
    )
    films = Parts(*_ordered(fetch_movielens_100k(), "u1"))
    for name, parts in {**regression_sets(), "MovieLens 100K": films}.items():
        strengths = _STRENGTHS_OF_IDS if parts is films else _STRENGTHS
        for label, make in _weighted().items():
            _add(report, name, label, make, strengths, parts)
    report.notes.append(weights_verdict(cells(report)))
    report.draw = dots(report, group="data", label="model", value="RMSE", spread="std")
    return report


def _weighted() -> dict[str, Any]:
    """Return the models, as functions of a penalty and a seed."""
    common: dict[str, Any] = {"early_stopping": False, "tol": 0.0, "max_iter": 60}
    models: dict[str, Any] = {}
    for kernel, (name, solver) in _KERNELS.items():
        for label, weights in _WEIGHTS.items():
            fixed: dict[str, Any] = {
                "kernel": name,
                "solver": solver,
                "fit_weights": weights,
                "rank": _RANK,
            }
            models[f"{kernel}, weights {label}"] = partial(_made, FMRegressor, **fixed, **common)
        fixed = {"kernel": name, "fit_lower": None, "rank": _RANK // 2}
        network = partial(_made, PolynomialNetworkRegressor, **fixed, **common)
        models[f"{kernel}, lifted"] = network
    return models


def _made(cls: Any, strength: float, seed: int = 0, **fixed: Any) -> Any:
    return cls(beta=strength, random_state=seed, **fixed)


def _add(
    report: Report, data: str, label: str, make: Any, strengths: tuple[float, ...], parts: Parts
) -> None:
    strength = tuned(make, strengths, parts)
    errors = side_by_side(lambda seed: rmse(make(strength, seed), parts), range(_SEEDS))
    report.add(data, label, float(np.mean(errors)), float(np.std(errors)), f"{strength:g}")


def weights_verdict(rows: list[dict[str, Any]]) -> str:
    """Say how near weights of 1 come to learnt ones, by the rows of ``pn-weights``."""
    error = {(row["data"], row["model"]): row["RMSE"] for row in rows}
    parts = []
    for kernel in _KERNELS:
        ratios = {
            data: error[data, f"{kernel}, weights 1"] / error[data, f"{kernel}, weights learnt"]
            for data in dict.fromkeys(data for data, _ in error)
        }
        worst = max(ratios, key=lambda data: ratios[data])
        near = sum(ratio <= _NEARLY for ratio in ratios.values())
        parts.append(
            f"with {kernel} on {near} of {len(ratios)} data sets (worst: {ratios[worst]:.3f} times "
            f"the error, {worst})"
        )
    return (
        f"Weights of 1 are nearly as good as learnt ones, within {_NEARLY - 1:.0%} of their error, "
        f"{', and '.join(parts)}."
    )


class Ratings(NamedTuple):
    """A data set of binary features, and how a strength becomes penalties."""

    name: str
    parts: Parts
    degrees: tuple[int, ...]
    penalties: Callable[[float], dict[str, Any]]


def pn_recommender(full: bool = False) -> Report:
    """RMSE of A^m against H^m on binary features: MovieLens 100K and 1M, Last.fm.

    Parameters
    ----------
    full : bool, default=False
        Also degree 3 on MovieLens 1M.
    """
    report = Report(
        f"Recommenders: test RMSE of A^m and H^m, mean of {_STARTS} starts",
        ("data", "model", "RMSE", "std", "penalty", "seconds a fit"),
        notes=[
            f"PolynomialNetworkRegressor, lifted, rank {_RANK}/m, {_SWEEPS} sweeps, a linear term "
            "and lower degrees by dummy features. MovieLens 100K is u1, 1M a random 90/10, Last.fm "
            "log(1 + plays), a random 80/20. Predictions are not clipped.",
            f"Penalties are the best of {', '.join(f'{s:g}' for s in _STRENGTHS_OF_IDS)} on a "
            f"fifth of the training rows, after {_SWEEPS_TO_CHOOSE} sweeps; features that are not "
            f"ids have {_OTHERS:g} times those. Seconds are those of {_STARTS} fits side by side.",
            "The paper says that A^m beats H^m here; its figures are not known.",
        ],
    )
    for problem in _recommenders(full):
        for degree in problem.degrees:
            for kernel, letter in (("anova", "A"), ("polynomial", "H")):
                _compare(report, problem, f"{letter}^{degree}", kernel, degree)
    report.notes.append(recommender_verdict(cells(report)))
    report.draw = dots(report, group="data", label="model", value="RMSE", spread="std")
    return report


def recommender_verdict(rows: list[dict[str, Any]]) -> str:
    """Say where A^m beats H^m, by the rows of ``pn-recommender``."""
    error = {(row["data"], row["model"]): row["RMSE"] for row in rows}
    pairs = [(data, model[1:]) for data, model in error if model.startswith("A")]
    won = [pair for pair in pairs if error[pair[0], f"A{pair[1]}"] < error[pair[0], f"H{pair[1]}"]]
    lost = [f"{data}, m = {degree[1:]}" for data, degree in pairs if (data, degree) not in won]
    word = "confirmed" if not lost else f"refuted on {'; '.join(lost)}" if won else "refuted"
    return f"A^m has the lower error in {len(won)} of {len(pairs)} comparisons: {word}."


def _recommenders(full: bool) -> Iterator[Ratings]:
    """Yield the data sets; a user and a film have degree 3 by the squares of H alone."""
    for name, bundle, split, degrees in (
        ("MovieLens 100K, ids", fetch_movielens_100k(), "u1", (2, 3)),
        ("MovieLens 100K, all", fetch_movielens_100k(side_features=True), "u1", (2, 3)),
        ("Last.fm", fetch_lastfm(), "random", (2, 3)),
        ("MovieLens 1M, ids", fetch_movielens_1m(), "random", (2, 3) if full else (2,)),
    ):
        yield Ratings(name, Parts(*_ordered(bundle, split)), degrees, _by_field(bundle))


def _by_field(bundle: DatasetBundle) -> Callable[[float], dict[str, Any]]:
    """Return what makes penalties of a strength: that for ids, a stronger one for the others."""
    names = bundle.field_names
    shape = np.array([1.0 if name in _IDS else _OTHERS for name in names])
    return lambda strength: {"fields": bundle.fields, "beta": strength * shape}


def _compare(report: Report, problem: Ratings, label: str, kernel: str, degree: int) -> None:
    fixed: dict[str, Any] = {"kernel": kernel, "order": degree, "rank": _RANK // degree}

    def make(strength: float, seed: int = 0, sweeps: int = _SWEEPS_TO_CHOOSE) -> Any:
        return PolynomialNetworkRegressor(
            **fixed,
            **problem.penalties(strength),
            early_stopping=False,
            tol=0.0,
            max_iter=sweeps,
            random_state=seed,
        )

    strength = tuned(make, _STRENGTHS_OF_IDS, problem.parts)
    started = perf_counter()
    errors = side_by_side(
        lambda seed: rmse(make(strength, seed, _SWEEPS), problem.parts), range(_STARTS)
    )
    seconds = f"{perf_counter() - started:.1f}"
    mean, std = float(np.mean(errors)), float(np.std(errors))
    report.add(problem.name, label, mean, std, f"{strength:g}", seconds)


def _ordered(bundle: DatasetBundle, split: str) -> tuple[Any, Any, Any, Any]:
    X, X_test, y, y_test = bundle.split(split)
    return X, y, X_test, y_test
