"""Strongly hierarchical factorization machines: hierarchy, sparsity, batches, going on."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from polyfm import HierarchicalFMClassifier, HierarchicalFMRegressor, load_model, save_model


@pytest.fixture
def rows(random):
    X = np.hstack([np.eye(4)[random.integers(0, 4, 300)], random.normal(size=(300, 4))])
    return X, X[:, 0] + X[:, 4] + 2.0 * X[:, 1] * X[:, 4]


def state(model):
    return [block.copy() for learner in model._learners for block in learner.model.parameters]


def assert_same(one, other):
    for a, b in zip(state(one), state(other), strict=True):
        assert np.array_equal(a, b)


def make(**given):
    return HierarchicalFMRegressor(rank=3, random_state=0, **given)


def test_rows_one_by_one_are_rows_at_once(rows):
    X, y = rows
    at_once, apart = make(penalty="l1").partial_fit(X, y), make(penalty="l1")
    for first in range(0, 300, 7):
        apart.partial_fit(X[first : first + 7], y[first : first + 7])
    assert_same(at_once, apart)


def test_batches_end_where_calls_end(rows):
    X, y = rows
    at_once = make(batch_size=20).partial_fit(X, y)
    apart = make(batch_size=20).partial_fit(X[:120], y[:120]).partial_fit(X[120:], y[120:])
    assert_same(at_once, apart)


def test_slices_of_an_epoch_hold_whole_batches(rows):
    """Epochs are learnt in slices of a measured time; no result may depend on it."""
    X, y = rows
    whole = make(batch_size=7, max_iter=2).fit(X, y)
    cut = make(batch_size=7, max_iter=1, warm_start=True).fit(X, y)
    for learner in cut._learners:
        learner._slice = 3
    assert_same(whole, cut.fit(X, y))


def through_file(model, folder):
    save_model(model, folder / "m.polyfm")
    return load_model(folder / "m.polyfm")


def through_pickle(model, folder):
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("way", [through_file, through_pickle])
@pytest.mark.parametrize("size", [1, 10])
def test_going_on_after_storage_is_the_same_to_the_bit(rows, tmp_path, way, size):
    X, y = rows
    given = dict(penalty="l1", beta=0.5, fit_weights=True, batch_size=size)
    whole = make(**given).partial_fit(X, y)
    half = way(make(**given).partial_fit(X[:150], y[:150]), tmp_path)
    assert_same(whole, half.partial_fit(X[150:], y[150:]))


def test_another_batch_size_midway(rows):
    X, y = rows
    model = make().partial_fit(X[:100], y[:100]).set_params(batch_size=10)
    model.partial_fit(X[100:200], y[100:200]).set_params(batch_size=1)
    assert model.partial_fit(X[200:], y[200:]).score(X, y) > 0.5
    assert model.t_ == 300


def without(model, feature):
    """Set the factors of one feature to 0."""
    for learner in model._learners:
        learner.model.parameters.table[feature] = 0.0
    return model


@pytest.mark.parametrize("fit_weights", [False, True])
def test_a_feature_without_factors_has_no_part(rows, fit_weights):
    X, y = rows
    model = without(make(fit_weights=fit_weights).fit(X, y), 4)
    assert model.main_effects_[4] == 0.0
    cleared = X.copy()
    cleared[:, 4] = 0.0
    assert np.array_equal(model.predict(X), model.predict(cleared))
    assert (np.delete(model.main_effects_, 4) != 0).all()


@pytest.mark.parametrize("fit_weights", [False, True])
@pytest.mark.parametrize("alpha", [2.0, 10.0, 30.0])
def test_interactions_take_main_effects(rows, fit_weights, alpha):
    X, y = rows
    model = make(fit_weights=fit_weights, penalty="l1", beta=alpha).fit(X, y)
    V, weights = model.factors_[2], model.weights_[2]
    pairs = (V * weights) @ V.T
    np.fill_diagonal(pairs, 0.0)
    has_interactions = (pairs != 0).any(axis=1)
    report = model.check_assumptions()
    # A small rank and many zeros can make vectors orthogonal: then the report must say so.
    lacking = V.any(axis=1) & (model.main_effects_ == 0)
    assert report.orthogonal_share == lacking.mean()
    assert report.holds == (not lacking.any())
    assert report.holds or alpha > 2.0
    assert report.context_norm == pytest.approx(np.linalg.norm(model.context_))
    assert (model.main_effects_[has_interactions & ~lacking] != 0).all()
    assert (report.zero_factors == (V == 0).sum(axis=1)).all()
    assert report.zero_share == np.mean(~V.any(axis=1))
    product = report.cosines * np.linalg.norm(V * weights, axis=1) * report.context_norm
    assert np.allclose(product, model.main_effects_, atol=1e-12)


def test_a_stronger_lasso_makes_more_zeros(rows):
    X, y = rows
    zeros = []
    for beta in (0.0, 10.0, 40.0):
        model = make(penalty="l1", beta=beta, max_iter=4, tol=0).fit(X, y)
        report = model.check_assumptions()
        zeros.append(int(report.zero_factors.sum()))
        n_factors = 8 * 3 - zeros[-1] + np.count_nonzero(model.context_)
        assert model.count_nonzero() == 1 + n_factors
    assert zeros[0] == 0
    assert zeros[1] > 0
    assert zeros[2] > zeros[1]


def test_broken_assumptions_are_told(rows):
    X, y = rows
    model = make().fit(X, y)
    table = model._learners[0].model.parameters.table
    table[8, 0] = [1.0, 0.0, 0.0]
    table[2, 0] = [0.0, 1.0, 0.0]
    report = model.check_assumptions()
    assert not report.holds
    assert report.orthogonal_share == 1 / 8
    assert report.cosines[2] == 0.0
    table[8, 0] = 0.0
    assert model.check_assumptions().orthogonal_share == 1.0
    assert model.check_assumptions().context_norm == 0.0


def test_columns_of_no_row_count_for_nothing(rows):
    X, y = rows
    model = make().fit(np.hstack([X, np.zeros((300, 8))]), y)
    assert model.check_assumptions().zero_share == 0.0
    assert model.main_effects_.shape == (16,)
    assert (model.main_effects_[8:] == 0).all()


def test_main_effects_are_in_the_unit_of_the_target(rows):
    X, y = rows
    model = make(beta=0.0).fit(X, 100.0 * y + 7.0)
    alone = np.eye(8)[[4, 5]]
    effects = model.predict(alone) - model.intercept_
    assert np.allclose(effects, model.main_effects_[[4, 5]], rtol=1e-9)
    assert (model.coef_ == 0).all()


def test_classes_have_reports_of_their_own(rows):
    X, y = rows
    model = HierarchicalFMClassifier(rank=3, random_state=0).fit(X, np.digitize(y, [-1.0, 1.0]))
    assert len(model.check_assumptions()) == 3
    assert model.main_effects_.shape == (3, 8)
    assert model.context_.shape == (3, 3)
    assert model.learning_rates_.shape == (3, 8, 3)


def test_before_fit():
    with pytest.raises(NotFittedError):
        make().check_assumptions()
    assert not hasattr(make(), "main_effects_")
    assert not hasattr(make(), "learning_rates_")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (dict(initial=0.0), "initial must be finite, > 0"),
        (dict(power=1.5), "power must be finite, > 0 and <= 1"),
        (dict(power=0.0), "power must be finite, > 0"),
        (dict(batch_size=0), "batch_size must be finite, >= 1"),
        (dict(batch_size=2.5), "batch_size must be an integer"),
        (dict(batch_gradient="max"), "batch_gradient must be 'sum' or 'mean'"),
        (dict(fit_weights="all"), "fit_weights must be one of"),
    ],
)
def test_impossible_parameters(rows, given, words):
    X, y = rows
    for call in ("fit", "partial_fit"):
        with pytest.raises((ValueError, TypeError), match=words):
            getattr(make(**given), call)(X, y)
