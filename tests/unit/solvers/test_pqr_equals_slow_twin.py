"""Projective quadratic regression against an explicit expansion and a plain linear learner."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from pqr_twin import Twin, coordinates, expanded, expansion_index, strengths_of, units_of

from polyfm import PQRClassifier, PQRRegressor
from polyfm.losses import Huber, Logistic, Poisson, Quantile, Squared, SquaredHinge
from polyfm.losses import contract as losses
from polyfm.models.pqr import ranks_of

D = 9
FREQUENT = np.array([7, 2, 4, 0, 5])
PENALTIES = {
    "none": {"alpha": 0.0, "beta": 0.0},
    "l2": {"alpha": 0.5, "beta": 1.5},
    "l1": {"alpha": 8.0, "beta": 6.0, "penalty": "l1"},
    "elasticnet": {"alpha": 1.0, "beta": 0.8, "penalty": "elasticnet", "l1_ratio": 0.4},
}


@pytest.fixture
def X(random):
    """Sparse rows of positive and negative numbers, an empty one, and some with one non-zero."""
    X = random.normal(size=(150, D)) * (random.random((150, D)) < 0.5)
    X[10] = 0.0
    X[11] = np.eye(D)[3]
    return X


def _twin_of(model, loss, d=D):
    ratio = {"l2": 0.0, "l1": 1.0, "elasticnet": model.l1_ratio}[model.penalty]
    strengths = strengths_of(d, len(FREQUENT), model.alpha, model.beta, ratio)
    return Twin(loss, strengths, model.solver, model.learning_rate, model.damping, model.power_t)


def _assert_same(model, twin, X, units=1.0):
    got, expected = coordinates(model), twin.w * units
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(got == 0, expected == 0)
    scores = model._scale.from_scaled(expanded(X, FREQUENT) @ expected)
    np.testing.assert_allclose(model._raw_scores(X)[:, 0], scores, rtol=0, atol=1e-10)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("solver", ["ftrl", "sgd"])
def test_regression(X, random, solver, penalty):
    y = 3.0 + X[:, 2] * X[:, 7] - X[:, 1] * X[:, 4] + 0.1 * random.normal(size=len(X))
    weight = random.integers(1, 3, size=len(X)).astype(float)
    model = PQRRegressor(
        frequent=FREQUENT, solver=solver, max_iter=2, tol=0, learning_rate=0.3, **PENALTIES[penalty]
    )
    model.fit(X, y, sample_weight=weight)
    twin = _twin_of(model, Squared())
    units = units_of(X, FREQUENT, weight)
    rows, target = expanded(X, FREQUENT) * units, (y - model._scale.offset) / model._scale.scale
    twin.learn(rows, target, weight).learn(rows, target, weight)
    _assert_same(model, twin, X, units)
    if penalty == "l1" and solver == "ftrl":
        assert 0 < np.count_nonzero(twin.w) < len(twin.w)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("solver", ["ftrl", "sgd"])
def test_classification(X, random, solver, penalty):
    y = X[:, 2] * X[:, 7] + X[:, 1] * X[:, 4] + 0.3 * random.normal(size=len(X)) > 0.1
    model = PQRClassifier(
        frequent=FREQUENT, solver=solver, max_iter=1, damping=0.5, **PENALTIES[penalty]
    )
    model.fit(sp.csc_array(X), y)
    units = units_of(X, FREQUENT, np.ones(len(X)))
    twin, target = _twin_of(model, Logistic()), np.where(y, 1.0, -1.0)
    twin.start_bias(losses.best_constant(Logistic(), target, np.ones(len(y))))
    twin.learn(expanded(X, FREQUENT) * units, target)
    _assert_same(model, twin, X, units)


@pytest.mark.parametrize("loss", [Huber(0.5), Quantile(0.8), Poisson(), SquaredHinge()], ids=str)
def test_every_other_loss(X, random, loss):
    y = np.abs(np.round(2.0 * X[:, 2] * X[:, 7]))
    settings = {"frequent": FREQUENT, "loss": loss}
    if isinstance(loss, SquaredHinge):
        model, y = PQRClassifier(**settings), np.where(y > 0, 1.0, -1.0)
    else:
        model = PQRRegressor(**settings)
    # A stream is learnt in its own unit.
    model.partial_fit(X, y)
    _assert_same(model, _twin_of(model, loss).learn(expanded(X, FREQUENT), y), X)


def test_without_intercept(X):
    y = X[:, 2] * X[:, 7]
    model = PQRRegressor(frequent=FREQUENT, fit_intercept=False).partial_fit(X, y)
    rows = expanded(X, FREQUENT)
    rows[:, -1] = 0.0
    twin = _twin_of(model, Squared()).learn(rows, y)
    np.testing.assert_allclose(coordinates(model), twin.w, rtol=0, atol=1e-10)
    assert model.intercept_ == 0.0


@pytest.mark.parametrize("k", [2, 3, 7, 30])
def test_numbers_of_pairs(k):
    """Both ways of numbering count each pair once, and neither leaves a gap."""
    pairs = list(itertools.combinations(range(k), 2))
    printed = [expansion_index(k, 0, a, b) for a, b in pairs]
    assert printed == list(range(len(pairs)))
    nested = np.array([b * (b - 1) // 2 + a for a, b in pairs])
    assert sorted(nested) == list(range(len(pairs)))
    a, b = ranks_of(nested)
    assert list(zip(a.tolist(), b.tolist(), strict=True)) == pairs


def test_numbers_of_the_last_pairs_of_all():
    last = 65_536 * 65_535 // 2 - 1
    a, b = ranks_of(np.array([last, last - 65_534, last - 65_535]))
    assert a.tolist() == [65_534, 0, 65_533]
    assert b.tolist() == [65_535, 65_535, 65_534]


def test_pairs_of_infrequent_features_have_no_weight(X, random):
    y = random.normal(size=len(X))
    model = PQRRegressor(frequent=FREQUENT).fit(X, y)
    touched = model.pair_weights_
    assert np.isin(touched.row, FREQUENT).all() and np.isin(touched.col, FREQUENT).all()
    assert (touched.row < touched.col).all()
    rare = np.setdiff1d(np.arange(D), FREQUENT)
    together = np.zeros((3, D))
    together[0, rare[0]], together[1, rare[1]] = 1.0, 2.0
    together[2] = together[0] + together[1]
    one, other, both = model.predict(together)
    assert both == pytest.approx(one + other - model.intercept_, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", ["ftrl", "sgd"])
def test_pages_made_one_by_one_change_no_bit(random, monkeypatch, dtype, solver):
    """Rows that fill hundreds of pages as they are needed, against pages for all pairs."""
    X = sp.random_array((400, 300), density=0.1, rng=random, dtype=dtype).tocsr()
    y = random.normal(size=400)
    settings = {"order": 300, "max_iter": 2, "solver": solver, "learning_rate": 0.05}
    opened = PQRRegressor(**settings).fit(X, y)
    monkeypatch.setattr("polyfm.models.pqr._MOST_BLOCKS_OPEN", 0)
    paged = PQRRegressor(**settings).fit(X, y)
    one, other = opened._learners[0].model, paged._learners[0].model
    assert one.directory.size == 0 and other.directory.size > 0
    assert 512 < other.used[0] <= len(other.directory)
    for name in ("bias", "linear"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.shared_weights(), other.shared_weights())
    for now, then in zip(one.pair_weights(), other.pair_weights(), strict=True):
        np.testing.assert_array_equal(now, then)
    np.testing.assert_array_equal(opened.predict(X), paged.predict(X))


def test_pages_exist_where_rows_have_touched_pairs(random, monkeypatch):
    monkeypatch.setattr("polyfm.models.pqr._MOST_BLOCKS_OPEN", 0)
    d = 600
    X = sp.csr_array(np.eye(d)[::3] + np.eye(d)[1::3])
    model = PQRRegressor(frequent=np.arange(d), max_iter=1).fit(X, random.normal(size=d // 3))
    learnt = model._learners[0].model
    assert model.pair_weights_.nnz == d // 3
    assert learnt.used[0] <= d // 3 + 1 < len(learnt.directory) // 4
    packed = learnt.packed()
    assert len(packed.pages) == packed.used[0] == learnt.used[0]
