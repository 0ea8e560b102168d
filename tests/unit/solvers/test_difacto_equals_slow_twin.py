"""Factors on demand against the definitions, pair by pair."""

import numpy as np
import pytest
import scipy.sparse as sp
from difacto_twin import Twin

from polyfm import DiFactoClassifier, DiFactoRegressor
from polyfm.losses import Huber, Logistic, Poisson, Quantile, Squared, SquaredHinge
from polyfm.losses import contract as losses

D, N = 14, 300
GROUPS = {"ranks": (2, 5), "thresholds": (8, 60), "init_scale": 0.3}
PENALTIES = {
    "l1": {"alpha": 2.0, "beta": 0.05},
    "none": {"alpha": 0.0, "beta": 0.0},
    "l2": {"alpha": 0.1, "beta": 0.1, "penalty": "l2"},
    "elasticnet": {"alpha": 2.0, "beta": 0.01, "penalty": "elasticnet", "l1_ratio": 0.9},
}


@pytest.fixture
def X(random):
    """Sparse rows whose columns are ever rarer, an empty one, and some with one non-zero."""
    X = random.normal(size=(N, D)) * (random.random((N, D)) < np.geomspace(0.9, 0.01, D))
    X[10] = 0.0
    X[11] = np.eye(D)[3]
    return X


def _twin_of(model, loss, start=0.0):
    return Twin(model, loss, D, seed=model._learners[0].settings.seed, start=start)


def _units(X, weight=None):
    weight = np.ones(len(X)) if weight is None else weight
    there, squares = weight @ (X != 0), weight @ X**2
    return np.sqrt(np.where(squares > 0, there / np.where(squares > 0, squares, 1.0), 1.0))


def _assert_same(model, twin, X, units=1.0):
    scale = model._scale.scale
    units = np.broadcast_to(units, D)
    np.testing.assert_allclose(model.coef_, twin.w * units * scale, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(model.coef_ == 0, twin.w == 0)
    np.testing.assert_array_equal(model.ranks_, twin.ranks)
    np.testing.assert_array_equal(model.counts_, twin.counts)
    rates = model.learning_rate / (model.damping + np.sqrt(twin.n))
    np.testing.assert_allclose(model.learning_rates_, rates, rtol=0, atol=1e-10)
    assert model.n_factors_ == twin.ranks.sum()
    expected = twin.factors * units[:, np.newaxis] * np.sqrt(scale)
    np.testing.assert_allclose(model.factors_[2], expected, rtol=0, atol=1e-10)
    scores = model._scale.from_scaled(np.array([twin.score(x) for x in X * units]))
    np.testing.assert_allclose(model._raw_scores(X)[:, 0], scores, rtol=0, atol=1e-10)


def _assert_all_kinds_are_there(twin):
    """The test would miss something otherwise."""
    assert set(twin.ranks) == {0, 2, 5}
    assert (twin.w == 0).any() and (twin.counts[twin.ranks == 0] > 0).any()


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_stream_of_numbers(X, random, penalty):
    y = X[:, 0] * X[:, 1] - X[:, 0] * X[:, 5] + X[:, 2] + 0.1 * random.normal(size=N)
    weight = random.integers(1, 3, size=N).astype(float)
    model = DiFactoRegressor(**GROUPS, **PENALTIES[penalty], random_state=3)
    model.partial_fit(X, y, weight)
    twin = _twin_of(model, Squared()).learn(X, y, weight)
    _assert_same(model, twin, X)
    if penalty == "l1":
        _assert_all_kinds_are_there(twin)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_stream_of_labels(X, random, penalty):
    y = X[:, 0] * X[:, 1] - X[:, 0] * X[:, 2] + X[:, 3] + 0.3 * random.normal(size=N) > 0.2
    model = DiFactoClassifier(
        **GROUPS, **PENALTIES[penalty], learning_rate=0.3, damping=0.5, factor_damping=0.7
    )
    model.partial_fit(sp.csr_matrix(X), y)
    twin = _twin_of(model, Logistic()).learn(X, np.where(y, 1.0, -1.0))
    _assert_same(model, twin, X)
    if penalty == "l1":
        _assert_all_kinds_are_there(twin)


def test_fit_has_units_and_counts_in_its_first_epoch(X, random):
    y = 7.0 + 3.0 * X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * random.normal(size=N)
    weight = random.integers(1, 3, size=N).astype(float)
    X = X * np.geomspace(1e-2, 1e2, D)
    model = DiFactoRegressor(**GROUPS, alpha=2.0, max_iter=3, tol=0).fit(X, y, weight)
    twin, units = _twin_of(model, Squared()), _units(X, weight)
    target = (y - model._scale.offset) / model._scale.scale
    for epoch in range(3):
        twin.learn(X * units, target, weight, counts=epoch == 0)
    assert twin.counts.max() <= N and set(twin.ranks) == {0, 2, 5}
    _assert_same(model, twin, X, units)


def test_classes_start_at_their_shares(X, random):
    y = np.where(X[:, 0] * X[:, 1] > 0.2, 1.0, -1.0)
    model = DiFactoClassifier(**GROUPS, max_iter=1).fit(X, y)
    start = losses.best_constant(Logistic(), y, np.ones(N))
    units = _units(X)
    twin = _twin_of(model, Logistic(), start=start).learn(X * units, y)
    _assert_same(model, twin, X, units)


@pytest.mark.parametrize("loss", [Huber(0.5), Quantile(0.8), Poisson(), SquaredHinge()], ids=str)
def test_every_other_loss(X, loss):
    y = np.abs(np.round(2.0 * X[:, 0] * X[:, 1]))
    if isinstance(loss, SquaredHinge):
        model, y = DiFactoClassifier(**GROUPS, loss=loss), np.where(y > 0, 1.0, -1.0)
    else:
        model = DiFactoRegressor(**GROUPS, loss=loss, learning_rate=0.05)
    model.partial_fit(X, y)
    _assert_same(model, _twin_of(model, loss).learn(X, y), X)


def test_without_intercept(X):
    y = X[:, 0] * X[:, 1] + X[:, 2]
    model = DiFactoRegressor(**GROUPS, fit_intercept=False).partial_fit(X, y)
    _assert_same(model, _twin_of(model, Squared()).learn(X, y), X)
    assert model.intercept_ == 0.0


def test_a_third_group(X, random):
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * random.normal(size=N)
    groups = {"ranks": [1, 3, 4], "thresholds": [2, 30, 100]}
    model = DiFactoRegressor(**groups, alpha=0.5).partial_fit(X, y)
    twin = _twin_of(model, Squared()).learn(X, y)
    assert set(twin.ranks) == {0, 1, 3, 4}
    _assert_same(model, twin, X)
