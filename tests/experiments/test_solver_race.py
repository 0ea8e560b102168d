"""Experiment hofm-solvers: what it measures, on a few rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyfm.experiments import solvers
from polyfm.experiments.link_draws import Draw


@pytest.fixture(scope="module")
def draw():
    X = sp.random(80, 12, density=0.4, format="csr", dtype=np.float32, random_state=0)
    y = np.where(np.random.default_rng(1).random(80) < 0.5, 1, -1)
    return Draw(X, y, X[:5], y[:5])


@pytest.mark.parametrize("solver", ["cd", "lbfgs"])
@pytest.mark.parametrize("order", [2, 3])
def test_the_history_is_the_objective_at_the_parameters(draw, solver, order):
    settings = {"order": order, "solver": solver, "max_iter": 4}
    curve = solvers.follow(draw, settings, repeats=1)
    fitted = solvers._model(settings).fit(draw.X, draw.y)
    assert curve.objective[-1] == pytest.approx(solvers.objective(fitted, draw), rel=1e-5)
    assert np.all(np.diff(curve.objective) <= 1e-9)


def test_the_objective_is_losses_and_penalties(draw):
    fitted = solvers._model({"order": 2, "solver": "cd", "max_iter": 2}).fit(draw.X, draw.y)
    losses = [
        np.log1p(np.exp(-y * score))
        for y, score in zip(draw.y, fitted.decision_function(draw.X), strict=True)
    ]
    squares = float((fitted.factors_[2].astype(float) ** 2).sum())
    expected = sum(losses) + 0.5 * (fitted.alpha * (fitted.coef_**2).sum() + fitted.beta * squares)
    assert solvers.objective(fitted, draw) == pytest.approx(expected, rel=1e-6)


def test_adagrad_in_steps_is_adagrad_at_once(draw):
    settings = {"order": 2, "solver": "adagrad", "max_iter": 6}
    curve = solvers.follow(draw, settings, repeats=2)
    fitted = solvers._model(settings).fit(draw.X, draw.y)
    assert len(curve.seconds) == len(curve.objective) == 6
    assert curve.objective[-1] == pytest.approx(solvers.objective(fitted, draw), rel=1e-6)
    assert np.all(np.diff(curve.seconds) > 0)


def test_reached_is_the_first_epoch_at_or_below():
    curve = solvers.Curve(np.array([1.0, 2.0, 4.0]), np.array([9.0, 5.0, 3.0]))
    assert solvers.reached(curve, 9.5) == (1, 1.0)
    assert solvers.reached(curve, 5.0) == (2, 2.0)
    with pytest.raises(ValueError, match="above 2"):
        solvers.reached(curve, 2.0)


@pytest.mark.parametrize(
    ("cd", "word"),
    [((1.0, 1.0), "is confirmed."), ((1.0, 9.0), "for order 2 alone"), ((9.0, 9.0), "is refuted.")],
)
def test_the_verdict_follows_the_seconds(cd, word):
    rows = [
        {"order": order, "solver": name, "seconds to common": seconds}
        for order, own in zip((2, 3), cd, strict=True)
        for name, seconds in (("CD", own), ("block CD", 1.0), ("AdaGrad", 2.0), ("L-BFGS", 3.0))
    ]
    assert word in solvers.verdict(rows, "seconds")
    assert "block CD: 0.50 times" in solvers.verdict(rows, "seconds")
