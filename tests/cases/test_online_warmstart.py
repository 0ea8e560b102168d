"""Publicly reported faults of other programs: learning on where it was left.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import pickle

import numpy as np
import pytest
from recompute import parameters

from polyfm import FMClassifier, FMRegressor

ESTIMATORS = [FMRegressor, FMClassifier]


def rows(n_rows=100, seed=0):
    X = np.random.default_rng(seed).normal(size=(n_rows, 4))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)


@pytest.mark.parametrize("solver", ["adagrad", "sgd"])
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_case_145_ten_times_one_epoch_are_ten(cls, solver):
    """Continuing ten times for an epoch is one fit of ten: each has an order of rows of its own."""
    X, y = rows()
    options = {"tol": 0, "random_state": 0, "solver": solver, "learning_rate": 0.05}
    whole = cls(max_iter=10, **options).fit(X, y)
    steps = cls(max_iter=1, warm_start=True, **options)
    for _ in range(10):
        steps.fit(X, y)
    np.testing.assert_array_equal(parameters(steps), parameters(whole))
    assert steps.history_["loss"] == whole.history_["loss"]
    assert steps.t_ == whole.t_ == 1000


def test_case_145_orders_differ_between_epochs():
    """Repeating the first epoch's order would give another model than going on."""
    X, y = rows()
    once = FMRegressor(max_iter=1, warm_start=True, tol=0, random_state=0).fit(X, y)
    twice = pickle.loads(pickle.dumps(once)).fit(X, y)
    for learner in once._learners:
        learner.n_epochs = 0
    assert (parameters(once.fit(X, y)) != parameters(twice)).any()


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_case_146_no_epochs_at_all(cls):
    """max_iter=0 is refused by name, rather than giving a model without attributes."""
    X, y = rows()
    model = cls(max_iter=0, warm_start=True, random_state=0)
    with pytest.raises(ValueError, match="max_iter must be"):
        model.fit(X, y)
    model.set_params(max_iter=2).fit(X, y)
    assert model.n_iter_ == 2
    assert model.coef_.shape == (4,)


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize("solver", ["adagrad", "sgd"])
def test_case_147_yesterdays_model_goes_on(cls, solver, tmp_path):
    """Day 1, put away by pickle or by file, day 2: as if training had never been interrupted."""
    from polyfm import load_model, save_model

    first, second = rows(seed=1), rows(seed=2)
    options = {"random_state": 0, "solver": solver, "schedule": "invscaling"}
    whole = cls(**options).partial_fit(*first).partial_fit(*second)
    model = cls(**options).partial_fit(*first)
    save_model(model, tmp_path / "day1.polyfm")
    for kept in (pickle.loads(pickle.dumps(model)), load_model(tmp_path / "day1.polyfm")):
        kept.partial_fit(*second)
        np.testing.assert_array_equal(parameters(kept), parameters(whole))
        assert kept.t_ == 200


def test_case_147_targets_that_have_moved():
    """Today's targets are all 100 higher: a large loss at first is no divergence, and it falls."""
    X, y = rows()
    model = FMRegressor(warm_start=True, random_state=0).fit(X, y)
    model.fit(X, y + 100.0)
    assert model.history_["loss"][-1] < 0.9 * model.history_["loss"][-model.n_iter_]
    assert model.intercept_ > 0.5


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_case_150_rows_of_weight_zero_do_not_exist(cls):
    """A batch whose weights are all zero changes no number and no counter."""
    X, y = rows(10)
    model = cls(random_state=0).partial_fit(X, y)
    before = parameters(model)
    model.partial_fit(X, y, sample_weight=np.zeros(10))
    np.testing.assert_array_equal(parameters(model), before)
    assert model.t_ == 10


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_case_150_some_rows_of_weight_zero(cls):
    """Among others, such rows are passed over: the counter counts the rest."""
    X, y = rows(10)
    weight = np.resize([0.0, 1.0], 10)
    model = cls(random_state=0).partial_fit(X, y).partial_fit(X, y, sample_weight=weight)
    twin = cls(random_state=0).partial_fit(X, y).partial_fit(X[1::2], y[1::2])
    np.testing.assert_array_equal(parameters(model), parameters(twin))
    assert model.t_ == 15


def test_case_151_several_classes_go_on():
    """Three classes, fitted twice with warm_start: goes on, here to the model of two epochs."""
    X, _ = rows()
    y = np.arange(100) % 3
    model = FMClassifier(max_iter=1, tol=0, warm_start=True, random_state=0).fit(X, y).fit(X, y)
    whole = FMClassifier(max_iter=2, tol=0, random_state=0).fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.factors_[2].shape == (3, 4, 8)
    np.testing.assert_array_equal(parameters(model), parameters(whole))


def test_case_151_another_width_or_label():
    """Going on with other columns or labels is refused, and the model stays as it is."""
    X, _ = rows()
    y = np.arange(100) % 3
    model = FMClassifier(max_iter=1, warm_start=True, random_state=0).fit(X, y)
    before = parameters(model)
    with pytest.raises(ValueError, match=r"5 features.*expecting 4"):
        model.fit(np.hstack([X, X[:, :1]]), y)
    with pytest.raises(ValueError, match=r"label .*3.* in row 2"):
        model.fit(X, y + 1)
    np.testing.assert_array_equal(parameters(model), before)
    assert model.n_features_in_ == 4


def test_case_153_ten_times_saved_and_continued(tmp_path):
    """Save, load, learn on, ten times over: the parameters stay, and the file does not grow."""
    from polyfm import load_model, save_model

    X, y = rows()
    path = tmp_path / "model.polyfm"
    model = FMClassifier(random_state=0, order=3).partial_fit(X, y)
    settings, sizes = model.get_params(), set()
    whole = FMClassifier(random_state=0, order=3).partial_fit(X, y)
    for _ in range(10):
        save_model(model, path)
        sizes.add(path.stat().st_size // 64)
        model = load_model(path).partial_fit(X, y)
        whole.partial_fit(X, y)
        assert model.get_params() == settings
    np.testing.assert_array_equal(parameters(model), parameters(whole))
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_case_154_every_estimator_goes_on(cls):
    """Classification and regression alike have warm_start and partial_fit, and both work."""
    X, y = rows()
    assert "warm_start" in cls().get_params()
    model = cls(random_state=0).partial_fit(X, y)
    early = model.score(X, y)
    for _ in range(30):
        model.partial_fit(X, y)
    assert model.score(X, y) > early
    assert model.t_ == 3100
