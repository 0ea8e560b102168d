"""Regret is measured against the best fixed parameters, and falls to nothing per row."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LinearRegression

from polyfm import FMRegressor, FTRLClassifier, FTRLRegressor, PQRRegressor
from polyfm.online import regret
from polyfm.online.regret import _expanded


def rows(n_rows=400, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 3))
    return X, X @ [1.0, -0.5, 0.0] + 0.3 + 0.1 * random.normal(size=n_rows)


def test_least_squares_are_the_best_fixed_parameters():
    X, y = rows()
    found = regret(FTRLRegressor(learning_rate=0.5), (X, y), checkpoints=[50, 400])
    model, losses = FTRLRegressor(learning_rate=0.5), []
    for k in range(400):
        score = model.predict(X[k : k + 1])[0] if k else 0.0
        losses.append(0.5 * (score - y[k]) ** 2)
        model.partial_fit(X[k : k + 1], y[k : k + 1])
    for t, value, norm in zip((50, 400), found.regret, found.norm, strict=True):
        best = LinearRegression().fit(X[:t], y[:t])
        least = 0.5 * np.sum((best.predict(X[:t]) - y[:t]) ** 2)
        assert value == pytest.approx(sum(losses[:t]) - least, rel=1e-6)
        assert norm == pytest.approx(np.linalg.norm([*best.coef_, best.intercept_]), rel=1e-4)


def test_regret_per_row_falls_below_the_bound():
    X, y = rows(2000)
    y = np.where(y + np.random.default_rng(1).logistic(size=2000) > 0, "yes", "no")
    found = regret(FTRLClassifier(learning_rate=0.3), (X, y), batch_size=5, classes=["no", "yes"])
    assert (np.diff(found.rows) > 0).all() and found.rows[-1] == 2000
    assert found.mean[-1] < 0.25 * found.mean[0]
    assert (found.regret <= found.bound).all()
    assert (found.regret > 0).all()


def test_a_ball_around_zero():
    X, y = rows(100)
    free = regret(FTRLRegressor(), (X, y), checkpoints=[100])
    bound = regret(FTRLRegressor(), (X, y), checkpoints=[100], radius=0.5)
    assert bound.norm[0] == pytest.approx(0.5, rel=1e-4)
    assert bound.regret[0] < free.regret[0]
    # The same by a solver with the constraint.
    A = np.column_stack([X, np.ones(100)])

    def value(theta):
        return 0.5 * np.sum((A @ theta - y) ** 2)

    ball = {"type": "ineq", "fun": lambda theta: 0.25 - theta @ theta}
    least = minimize(value, np.zeros(4), method="SLSQP", constraints=ball, tol=1e-12).fun
    wide = minimize(value, np.zeros(4), tol=1e-10).fun
    assert free.regret[0] - bound.regret[0] == pytest.approx(least - wide, rel=1e-4)


def test_a_projective_quadratic_model_is_expanded():
    random = np.random.default_rng(0)
    X = random.choice([0.0, 1.0], size=(300, 6))
    y = X[:, 0] * X[:, 1] - X[:, 2]
    model = PQRRegressor(order=3, frequent=[0, 1, 4], learning_rate=0.5)
    found = regret(model, (X, y), batch_size=1)
    # The truth is a model of this kind: its loss is 0.
    assert found.norm[-1] == pytest.approx(np.sqrt(2), rel=1e-2)
    assert found.mean[-1] < 0.3 * found.mean[0]


def test_the_expansion_gives_the_predictions():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 6))
    y = X[:, 0] * X[:, 1] - X[:, 2] + X[:, 4] * X[:, 5]
    model = PQRRegressor(order=3, frequent=[4, 1, 0]).partial_fit(X, y)
    from scipy.sparse import csr_matrix

    pairs = model.pair_weights_.toarray()
    pairs = pairs + pairs.T
    weights = [*model.coef_, *model.shared_weights_, pairs[4, 1], pairs[4, 0], pairs[1, 0]]
    scores = _expanded(model, csr_matrix(X)) @ np.array(weights) + model.intercept_
    np.testing.assert_allclose(scores, model.predict(X), rtol=1e-9)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (FMRegressor(), "convex models"),
        (PQRRegressor(), "frequent features must be given"),
        (FTRLRegressor(loss="huber"), "loss='squared'"),
    ],
)
def test_models_without_a_best_one(model, words):
    with pytest.raises(ValueError, match=words):
        regret(model, rows())


def test_a_plot():
    plt = pytest.importorskip("matplotlib.pyplot")
    ax = regret(FTRLRegressor(), rows(50), checkpoints=4).plot()
    assert len(ax.lines) == 2
    plt.close(ax.figure)
