"""Strongly hierarchical factorization machines and what they are compared with, all by FTRL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics import log_loss

from polyfm.datasets import fetch_criteo_mini, fetch_frappe, fetch_movielens_1m, load_adult
from polyfm.datasets.bundle import DatasetBundle
from polyfm.estimators import (
    FMClassifier,
    FMRegressor,
    FTRLClassifier,
    FTRLRegressor,
    HierarchicalFMClassifier,
    HierarchicalFMRegressor,
)
from polyfm.experiments.figures import Cells, cells
from polyfm.experiments.report import Report

_RANK = 8
_EPOCHS, _EPOCHS_TO_TUNE = 8, 2
_ROWS_TO_TUNE = 100_000
_RATES, _PENALTIES = (0.03, 0.1, 0.3), (1.0, 10.0)
_LASSOS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_LASSO_SCALE = 0.2
_LASSO_TO_COMPARE = 100.0
_WITH_LASSOS = ("Frappe", "Criteo", "Adult")
_WITH_RANKS = "Criteo"
_GOOD = 1.01
_RANKS = (8, 16, 32, 64, 128)
_COLD_SHARE = 0.1

Matrix = NDArray[np.float64]
Make = Callable[..., Any]
Curves = dict[tuple[str, str], list[float]]


class Course(NamedTuple):
    """What became of a model, epoch by epoch."""

    scores: list[float]
    assumptions: list[Any]
    """Reports on strong hierarchy; empty for models without a context."""
    seconds: float
    """Processor time of the shortest epoch, which other work on the machine hardly changes."""

    @property
    def best(self) -> int:
        """Index of the epoch with the best score."""
        return int(np.argmin(self.scores))


class Task(NamedTuple):
    """Rows to learn from, in the order they are learnt in, and rows to judge by."""

    name: str
    X: sp.csr_matrix
    y: NDArray[Any]
    X_test: sp.csr_matrix
    y_test: NDArray[Any]
    labels: bool

    @property
    def measure(self) -> str:
        """What a model is judged by."""
        return "log loss" if self.labels else "RMSE"

    def score(self, model: Any) -> float:
        """Judge a model by the test rows."""
        if self.labels:
            proba = model.predict_proba(self.X_test)
            return float(log_loss(self.y_test, proba, labels=model.classes_))
        return float(np.sqrt(np.mean((model.predict(self.X_test) - self.y_test) ** 2)))

    def to_tune(self) -> Task:
        """Return the task of judging by the last tenth of the first training rows."""
        n = min(len(self.y), _ROWS_TO_TUNE)
        cut = n - n // 10
        return self._replace(
            X=self.X[:cut], y=self.y[:cut], X_test=self.X[cut:n], y_test=self.y[cut:n]
        )


def shfm() -> Report:
    """SHFM and SHA2 beside GLM, FM and A2, all by FTRL-Proximal: accuracy, sparsity, time."""
    report = Report(
        "Strong hierarchy by FTRL-Proximal",
        ("data", "model", "measure", "first", "best", "last", "best epoch", "v_i = 0", "|v_0|",
         "orthogonal", "ms an epoch"),
        notes=[
            f"GLM is linear, FM adds A^2 of rank {_RANK} with weights 1, A2 the same with learnt "
            "weights; SHFM and SHA2 have A^2 with a context in place of linear weights. All learn "
            f"row by row, {_EPOCHS} epochs in one order; 'best' is the best epoch's score on the "
            "test rows, as in the paper, beside those of the first and the last epoch. MovieLens "
            "1M: test rows are those of a tenth of the users, of whom only the demographics are "
            "features (with id, genres and year of the film). Others: their own test rows.",
            f"Learning rate (of {_RATES}) and L2 penalty (of {_PENALTIES}) are the best after "
            f"{_EPOCHS_TO_TUNE} epochs on the last tenth of the first {_ROWS_TO_TUNE:,} training "
            "rows at most; the paper's grids are not known.",
            "'v_i = 0': share of features without any factor after the best epoch; '|v_0|': least "
            "over the epochs; 'orthogonal': largest share over the epochs of features with "
            "v_i != 0 orthogonal to v_0, which would have interactions without a main effect. "
            "Time is processor time of the shortest epoch.",
            "Rows 'SHFM, L1 ...' have that L1 penalty in place of L2, the rate of SHFM, init_scale "
            f"{_LASSO_SCALE}, and start by evidence, or exactly where it says so; rows 'SHFM, rank "
            "...' have the tuned penalty. The paper's data (retweets, stock volatility) and "
            "figures are not known; it says that sparsity may pass 0.999, that the assumptions "
            "hold, and that time is linear in the rank.",
        ],
    )  # fmt: skip
    curves: Curves = {}
    for task in _tasks():
        for name, make in _models(task.labels).items():
            settings = _tuned(make, task.to_tune())
            curves[task.name, name] = _add(report, task, name, make, settings)
            if name == "SHFM" and task.name in _WITH_LASSOS:
                _add_lassos(report, task, make, settings)
            if name == "SHFM" and task.name == _WITH_RANKS:
                _add_ranks(report, task, make, settings)
    report.notes += _in_words(cells(report))
    report.draw = _drawing(report, curves)
    return report


def _tasks() -> Iterator[Task]:
    yield _cold_start()
    for name, bundle in (
        ("Frappe", fetch_frappe()), ("Criteo", fetch_criteo_mini()), ("Adult", load_adult()),
    ):  # fmt: skip
        split = "test" if "test" in bundle.splits else None
        X, X_test, y, y_test = bundle.split(split)
        yield _in_random_order(Task(name, X, y, X_test, y_test, labels=True))


def _cold_start() -> Task:
    """Ratings of users of whom nothing but demographics is known."""
    bundle = fetch_movielens_1m(ids=True, side_features=True)
    users = bundle.frame["user"]
    distinct = np.unique(users)
    cold = np.random.default_rng(0).permutation(distinct)[: int(len(distinct) * _COLD_SHARE)]
    is_cold = np.isin(users, cold)
    X = _without_field(bundle, "user")
    mean = bundle.y[~is_cold].mean()
    task = Task(
        "MovieLens 1M", X[~is_cold], bundle.y[~is_cold] - mean, X[is_cold],
        bundle.y[is_cold] - mean, labels=False,
    )  # fmt: skip
    return _in_random_order(task)


def _without_field(bundle: DatasetBundle, name: str) -> sp.csr_matrix:
    return bundle.X[:, np.flatnonzero(bundle.fields != bundle.field_names.index(name))]


def _in_random_order(task: Task) -> Task:
    order = np.random.default_rng(0).permutation(len(task.y))
    return task._replace(X=task.X[order], y=task.y[order])


def _models(labels: bool) -> dict[str, Make]:
    """Return the contestants by name, as functions of a learning rate, a penalty and the rest."""
    linear = FTRLClassifier if labels else FTRLRegressor
    factorized = FMClassifier if labels else FMRegressor
    hierarchical = HierarchicalFMClassifier if labels else HierarchicalFMRegressor

    def glm(learning_rate: float, beta: float, **rest: Any) -> Any:
        return linear(learning_rate=learning_rate, alpha=beta, random_state=0)

    def fm(learning_rate: float, beta: float, weights: bool = False, **rest: Any) -> Any:
        return factorized(
            solver="ftrl", learning_rate=learning_rate, alpha=beta, beta=beta, rank=_RANK,
            init_scale=0.05, fit_weights=weights, random_state=0,
        )  # fmt: skip

    def strong(learning_rate: float, beta: float, weights: bool = False, **rest: Any) -> Any:
        settings = {"rank": _RANK, **rest}
        return hierarchical(
            learning_rate=learning_rate, beta=beta, fit_weights=weights, random_state=0, **settings
        )

    return {
        "GLM": glm,
        "FM": fm,
        "A2": lambda **settings: fm(weights=True, **settings),
        "SHFM": strong,
        "SHA2": lambda **settings: strong(weights=True, **settings),
    }


def _tuned(make: Make, task: Task) -> dict[str, float]:
    """Return the settings with the best score of their last epoch."""
    grid = [{"learning_rate": r, "beta": b} for r, b in product(_RATES, _PENALTIES)]
    scores = [_learn(make(**settings), task, _EPOCHS_TO_TUNE).scores[-1] for settings in grid]
    return grid[int(np.argmin(scores))]


def _learn(model: Any, task: Task, n_epochs: int) -> Course:
    """Learn epoch after epoch."""
    course = Course([], [], np.inf)
    labels = {"classes": np.unique(task.y)} if task.labels else {}
    for _ in range(n_epochs):
        started = process_time()
        model.partial_fit(task.X, task.y, **labels)
        course = course._replace(seconds=min(course.seconds, process_time() - started))
        course.scores.append(task.score(model))
        if hasattr(model, "check_assumptions"):
            course.assumptions.append(model.check_assumptions())
    return course


def _add(report: Report, task: Task, name: str, make: Make, settings: Any) -> list[float]:
    scores, assumptions, seconds = course = _learn(make(**settings), task, _EPOCHS)
    hierarchy: tuple[object, ...] = ("-", "-", "-")
    if assumptions:
        hierarchy = (
            float(assumptions[course.best].zero_share),
            float(min(found.context_norm for found in assumptions)),
            float(max(found.orthogonal_share for found in assumptions)),
        )
    report.add(
        task.name, name, task.measure, scores[0], scores[course.best], scores[-1], course.best + 1,
        *hierarchy, f"{1e3 * seconds:.0f}",
    )  # fmt: skip
    return scores


def _add_lassos(report: Report, task: Task, make: Make, settings: dict[str, float]) -> None:
    given = {**settings, "penalty": "l1", "init_scale": _LASSO_SCALE}
    for lasso in _LASSOS:
        _add(report, task, f"SHFM, L1 {lasso:g}", make, {**given, "beta": lasso})
    exact = {**given, "beta": _LASSO_TO_COMPARE, "start": "exact"}
    _add(report, task, f"SHFM, L1 {_LASSO_TO_COMPARE:g}, exact start", make, exact)


def _add_ranks(report: Report, task: Task, make: Make, settings: dict[str, float]) -> None:
    for rank in _RANKS:
        _add(report, task, f"SHFM, rank {rank}", make, {**settings, "rank": rank})


def _in_words(rows: list[Cells]) -> list[str]:
    """Say what the figures say about the paper's claims."""
    times = {row["model"]: float(row["ms an epoch"]) for row in rows if ", rank " in row["model"]}
    first, last = _RANKS[0], _RANKS[-1]
    ratio = times[f"SHFM, rank {last}"] / max(times[f"SHFM, rank {first}"], 1.0)
    orthogonal = max(row["orthogonal"] for row in rows if row["orthogonal"] != "-")
    least = min(row["|v_0|"] for row in rows if row["|v_0|"] != "-")
    return [
        *(_of_sparsity(name, rows) for name in _WITH_LASSOS),
        f"v_0 was never shorter than {least:.4f}, and at most {orthogonal:.4f} of the features "
        f"were orthogonal to it. {last // first} times the rank takes {ratio:.1f} times as long.",
    ]


def _of_sparsity(name: str, rows: list[Cells]) -> str:
    own = [row for row in rows if row["data"] == name]
    (dense,) = (row for row in own if row["model"] == "SHFM")
    best = min(_by_evidence(own), key=lambda row: row["best"])
    said = (
        f"{name}: with L2 SHFM has {dense['best']:.4f}; the best with L1 {best['best']:.4f}, where "
        f"{best['v_i = 0']:.4f} of the features have v_i = 0"
    )
    good = [row for row in _by_evidence(own) if row["best"] < _GOOD * dense["best"]]
    if not good:
        return f"{said}. None with L1 is within 1% of L2."
    sparsest = max(good, key=lambda row: row["v_i = 0"])
    return (
        f"{said}; the sparsest within 1% of L2 {sparsest['best']:.4f}, with "
        f"{sparsest['v_i = 0']:.4f}."
    )


def _by_evidence(rows: list[Cells]) -> list[Cells]:
    return [row for row in rows if ", L1 " in row["model"] and "exact" not in row["model"]]


def _drawing(report: Report, curves: Curves) -> Callable[[Any], None]:
    def draw(figure: Any) -> None:
        names = list(dict.fromkeys(task for task, _ in curves))
        figure.set_size_inches(3.0 * (len(names) + 1), 3.4)
        *panels, last = figure.subplots(1, len(names) + 1)
        for panel, name in zip(panels, names, strict=True):
            for (task, model), scores in curves.items():
                if task == name:
                    panel.plot(range(1, len(scores) + 1), scores, marker=".", label=model)
            panel.set(title=name, xlabel="epoch", ylabel="test score")
        _draw_sparsity(last, cells(report))
        for panel in (*panels, last):
            panel.grid(alpha=0.3)
        panels[0].legend(fontsize=7)

    return draw


def _draw_sparsity(panel: Any, rows: list[Cells]) -> None:
    """Draw the best score over the share of features that an L1 penalty has left."""
    for name in _WITH_LASSOS:
        own = [row for row in rows if row["data"] == name]
        (dense,) = (row for row in own if row["model"] == "SHFM")
        lassos = _by_evidence(own)
        shares = [row["v_i = 0"] for row in lassos]
        panel.plot(shares, [row["best"] / dense["best"] for row in lassos], marker=".", label=name)
    panel.set(title="SHFM with L1", xlabel="share of v_i = 0", ylabel="best score / that with L2")
    panel.legend(fontsize=7)
