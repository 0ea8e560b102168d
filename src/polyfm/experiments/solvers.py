"""Solvers of one objective: how far it has fallen, by seconds and by epochs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm.estimators import FMClassifier
from polyfm.experiments.figures import Drawing, cells
from polyfm.experiments.link_draws import Draw, films
from polyfm.experiments.report import Report

__all__ = ["Curve", "Reached", "follow", "hofm_solvers", "objective", "reached", "verdict"]

_ORDERS = (2, 3, 4)
_RANK, _ALPHA, _BETA = 8, 1.0, 10.0
_RATES = (0.03, 0.1, 0.3)
_REPEATS = 2
_COMPETITIVE = 2.0
"""How many times the seconds of the fastest other solver are still competitive."""

_SOLVERS: dict[str, dict[str, Any]] = {
    "CD": {"solver": "cd", "block_size": 1, "max_iter": 60},
    "block CD": {"solver": "cd", "max_iter": 100},
    "AdaGrad": {"solver": "adagrad", "max_iter": 150},
    "L-BFGS": {"solver": "lbfgs", "max_iter": 250},
}
_PAPER, _OURS = "CD", "block CD"


class Curve(NamedTuple):
    """The objective after each epoch, and the seconds that learning had taken by then."""

    seconds: NDArray[np.float64]
    objective: NDArray[np.float64]


class Reached(NamedTuple):
    """Epochs and seconds until an objective was reached."""

    epochs: int
    seconds: float


def hofm_solvers(full: bool = False) -> Report:
    """Objective by seconds and by epochs: CD, block CD, AdaGrad and L-BFGS, orders 2 to 4.

    Parameters
    ----------
    full : bool, default=False
        Five times the epochs.
    """
    report = Report(
        "Solvers on MovieLens 100K links with ids: seconds and epochs to an objective all reach",
        (
            *("order", "solver", "epochs", "seconds", "last objective"),
            *("seconds, half way", "epochs to common", "seconds to common"),
        ),
        notes=_notes(),
    )
    draw = films(ids=True).draw(0)
    curves = {
        order: {name: _followed(draw, order, name, 5 if full else 1) for name in _SOLVERS}
        for order in _ORDERS
    }
    start = len(draw.y) * float(np.log(2.0))
    for order, each in curves.items():
        common = max(float(curve.objective.min()) for curve in each.values())
        for name, curve in each.items():
            half, there = reached(curve, (start + common) / 2), reached(curve, common)
            end = len(curve.seconds), float(curve.seconds[-1]), float(curve.objective[-1])
            report.add(order, name, *end, half.seconds, there.epochs, there.seconds)
    report.notes += [verdict(cells(report), unit) for unit in ("seconds", "epochs")]
    report.draw = _drawing(curves)
    return report


def _notes() -> list[str]:
    rates = ", ".join(map(str, _RATES))
    return [
        f"FMClassifier(rank={_RANK}, alpha={_ALPHA:g}, beta={_BETA:g}, tol=0, "
        "early_stopping=False, random_state=0), separate factors for each degree, logistic loss, "
        "one thread. All minimise the same sum of losses and penalties; an epoch of L-BFGS is an "
        "iteration, of one pass over the rows or a few.",
        "The common objective of an order is the least that every solver came to; half way there "
        "counts from the loss of a constant prediction. The objective has several minima, and "
        "solvers may be on their way to different ones.",
        f"AdaGrad has the rate of {rates} that ends lowest. Its objective is worked out from the "
        "parameters after each epoch, outside the seconds.",
        f"Seconds are wall time of learning, per epoch the least of {_REPEATS} equal runs, after "
        "one that has compiled; preparation before the first epoch is left out.",
        "The paper's figure is not known; it says that CD is the best or competitive for orders up "
        "to 4. Data set, penalties and rank may differ.",
    ]


def _followed(draw: Draw, order: int, name: str, times: int) -> Curve:
    """Return the curve of a solver; of AdaGrad that of the rate which ends lowest."""
    settings = {"order": order, **_SOLVERS[name]}
    settings["max_iter"] *= times
    if settings["solver"] == "adagrad":
        tried = [{**settings, "learning_rate": rate} for rate in _RATES]
        settings = min(tried, key=lambda each: objective(_model(each).fit(draw.X, draw.y), draw))
    return follow(draw, settings)


def follow(draw: Draw, settings: dict[str, Any], repeats: int = _REPEATS) -> Curve:
    """Learn and return the objective and the seconds after each epoch.

    Parameters
    ----------
    draw : Draw
        Rows to train; the others are not looked at.
    settings : dict
        Parameters of the model.
    repeats : int
        Equal runs, whose least seconds of each epoch count.
    """
    _model({**settings, "max_iter": 1}).fit(draw.X, draw.y)  # compiles
    runs = [_model(settings).fit(draw.X, draw.y).history_ for _ in range(repeats)]
    seconds = np.cumsum(np.min([run["seconds"] for run in runs], axis=0))
    if "objective" in runs[0]:
        return Curve(seconds, np.array(runs[0]["objective"]) * len(draw.y))
    return Curve(seconds, np.array(_objectives_in_steps(draw, settings)))


def _model(settings: dict[str, Any]) -> FMClassifier:
    return FMClassifier(
        rank=_RANK,
        alpha=_ALPHA,
        beta=_BETA,
        tol=0.0,
        early_stopping=False,
        random_state=0,
        **settings,
    )


def _objectives_in_steps(draw: Draw, settings: dict[str, Any]) -> list[float]:
    """Learn an epoch at a time, which comes to the same parameters as all at once."""
    model = _model({**settings, "max_iter": 1, "warm_start": True})
    return [objective(model.fit(draw.X, draw.y), draw) for _ in range(settings["max_iter"])]


def objective(model: FMClassifier, draw: Draw) -> float:
    """Return the sum of logistic losses and penalties at the parameters of a fitted model."""
    margins = draw.y * model.decision_function(draw.X).astype(np.float64)
    squares = sum(float(np.sum(np.square(P, dtype=float))) for P in model.factors_.values())
    linear = float(np.sum(np.square(model.coef_, dtype=float)))
    penalty = 0.5 * (model.alpha * linear + model.beta * squares)
    return float(np.logaddexp(0.0, -margins).sum() + penalty)


def reached(curve: Curve, target: float) -> Reached:
    """Return how long a solver took to an objective of at most ``target``.

    Raises
    ------
    ValueError
        If it never came there.
    """
    there = np.flatnonzero(curve.objective <= target)
    if there.size == 0:
        raise ValueError(f"the least objective is {curve.objective.min():.6g}, above {target:.6g}.")
    return Reached(int(there[0]) + 1, float(curve.seconds[there[0]]))


def verdict(rows: list[dict[str, Any]], unit: str) -> str:
    """Say whether the paper's claim holds, by the rows of the report.

    Parameters
    ----------
    rows : list of dict
        The cells of each row by the names of the columns.
    unit : {"seconds", "epochs"}
        What the ways to the common objective are measured in.
    """
    by_order: dict[int, dict[str, float]] = {}
    for row in rows:
        by_order.setdefault(row["order"], {})[row["solver"]] = row[f"{unit} to common"]
    ratios = {order: _ratios(lengths) for order, lengths in by_order.items()}
    holds = [order for order, ratio in ratios.items() if ratio[_PAPER] <= _COMPETITIVE]
    if len(holds) == len(ratios):
        word = "confirmed"
    elif holds:
        word = f"confirmed for order {' and '.join(map(str, holds))} alone"
    else:
        word = "refuted"
    parts = [
        f"order {order}: {ratio[_PAPER]:.2f} times ({_OURS}: {ratio[_OURS]:.2f} times)"
        for order, ratio in ratios.items()
    ]
    return (
        f"By {unit}: that CD is the best or competitive (at most {_COMPETITIVE:g} times the {unit} "
        f"of the faster of AdaGrad and L-BFGS to the common objective) is {word}. CD takes, "
        f"{'; '.join(parts)}."
    )


def _ratios(lengths: dict[str, float]) -> dict[str, float]:
    """Return the ways of CD and block CD over the shortest of the other solvers."""
    mine = (_PAPER, _OURS)
    shortest = min(length for name, length in lengths.items() if name not in mine)
    return {name: lengths[name] / shortest for name in mine}


def _drawing(curves: dict[int, dict[str, Curve]]) -> Drawing:
    """Return a drawing of the objectives, over seconds above and over epochs below."""

    def draw(figure: Any) -> None:
        figure.set_size_inches(3.4 * len(curves), 6.4)
        panels = figure.subplots(2, len(curves), sharey="col")
        for column, (order, each) in enumerate(curves.items()):
            for name, curve in each.items():
                epochs = np.arange(1, len(curve.seconds) + 1)
                for panel, x in zip(panels[:, column], (curve.seconds, epochs), strict=True):
                    panel.plot(x, curve.objective, label=name)
            panels[0, column].set(title=f"order {order}", xlabel="seconds")
            panels[1, column].set(xlabel="epochs")
        for panel in panels.flat:
            panel.set(xscale="log")
            panel.grid(alpha=0.3)
        panels[0, 0].set_ylabel("objective")
        panels[1, 0].set_ylabel("objective")
        panels[0, 0].legend(fontsize=8)

    return draw
