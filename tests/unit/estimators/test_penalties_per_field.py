"""One penalty per field: ``alpha``, ``beta`` and ``fields``."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from polyfm import FMClassifier, FMRegressor, load_model, save_model
from polyfm.data import OneHotFieldEncoder

random = np.random.default_rng(0)
FIELDS = np.array([0, 0, 0, 1, 1, 1, 2, 2])
X = random.integers(0, 2, (600, 8)) * random.normal(size=(600, 8))
Y = X[:, 0] - X[:, 3] + X[:, 6] + 2 * X[:, 1] * X[:, 4] + X[:, 2] * X[:, 7]
LABELS = np.array(["low", "mid", "high"])[np.digitize(Y, [-0.5, 0.5])]
FIXED = {"max_iter": 8, "tol": 0, "early_stopping": False, "random_state": 0, "rank": 3}
SOLVERS = {
    "adagrad": {"solver": "adagrad"},
    "sgd": {"solver": "sgd", "learning_rate": 0.01, "init_scale": 0.3},
}


def fit(**settings):
    return FMRegressor(**{**FIXED, **settings}).fit(X, Y)


def parameters(model):
    return np.hstack([np.ravel(model.coef_), *(np.ravel(f) for f in model.factors_.values())])


@pytest.mark.parametrize("solver", ["adagrad", "sgd"])
@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
def test_equal_values_are_a_number(solver, penalty):
    settings = {**SOLVERS[solver], "penalty": penalty}
    number = fit(alpha=0.7, beta=1.3, **settings)
    per_field = fit(alpha=[0.7] * 3, beta=np.full(3, 1.3), fields=FIELDS, **settings)
    per_column = fit(alpha=np.full(8, 0.7), beta=[1.3] * 8, **settings)
    for model in (per_field, per_column):
        assert np.array_equal(parameters(model), parameters(number))
        assert np.array_equal(model.predict(X), number.predict(X))


def test_fields_alone_change_nothing():
    assert np.array_equal(parameters(fit(fields=FIELDS)), parameters(fit()))


@pytest.mark.parametrize("solver", ["adagrad", "sgd"])
def test_a_field_is_its_columns(solver):
    per_field = fit(alpha=[0, 1, 5], beta=[2, 0, 9], fields=FIELDS, **SOLVERS[solver])
    # The mean over 3 fields is another base than that over 8 columns: equal but for rounding.
    alpha, beta = np.array([0, 1, 5])[FIELDS], np.array([2, 0, 9])[FIELDS]
    per_column = fit(alpha=alpha, beta=beta, **SOLVERS[solver])
    np.testing.assert_allclose(parameters(per_field), parameters(per_column), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("solver", "penalty", "n_jobs"),
    [
        *(("adagrad", "l2", 1), ("adagrad", "l1", 1), ("sgd", "l2", 1), ("sgd", "l1", 1)),
        ("adagrad", "l2", 2),
    ],
)
def test_a_large_penalty_on_one_field_leaves_the_others(solver, penalty, n_jobs):
    settings = {**SOLVERS[solver], "penalty": penalty, "n_jobs": n_jobs, "max_iter": 30}
    model = fit(alpha=[0, 0, 1e6], beta=[0.1, 0.1, 1e6], fields=FIELDS, **settings)
    without = FMRegressor(alpha=0, beta=0.1, **{**FIXED, **settings}).fit(X[:, :6], Y)
    bound = 1e-3 if penalty == "l2" else 0.0
    assert np.abs(model.coef_[6:]).max() <= bound
    assert np.abs(model.factors_[2][6:]).max() <= bound
    # Threads do not come by rows in the same order twice.
    np.testing.assert_allclose(model.coef_[:6], without.coef_, atol=0.02 if n_jobs == 1 else 0.1)
    assert np.abs(model.factors_[2][:6]).max() > 0.5


def test_no_penalty_on_one_field():
    free = fit(alpha=[0, 500, 500], beta=[0, 500, 500], fields=FIELDS, order=1, max_iter=40)
    least_squares = np.linalg.lstsq(
        np.hstack([X[:, :3], np.ones((600, 1))]), Y, rcond=None
    )[0]  # fmt: skip
    np.testing.assert_allclose(free.coef_[:3], least_squares[:3], atol=0.1)
    assert np.abs(free.coef_[3:]).max() < 0.5 * np.abs(free.coef_[:3]).max()
    assert np.abs(fit(alpha=500, order=1).coef_[:3]).max() < np.abs(free.coef_[:3]).max()


def test_several_classes():
    model = FMClassifier(alpha=[0.1, 1e5, 0.1], beta=[0.1, 1e5, "auto"], fields=FIELDS, **FIXED)
    model.fit(X, LABELS)
    assert model.coef_.shape == (3, 8)
    assert np.abs(model.coef_[:, 3:6]).max() < 0.01
    assert (np.abs(model.coef_[:2, :3]).max(axis=1) > 0.5).all()
    assert np.abs(model.factors_[2][:, 3:6]).max() < 0.01


@pytest.mark.parametrize("make", [np.asarray, tuple, pd.Series])
def test_what_values_and_fields_may_be(make):
    wanted = fit(alpha=[1.0, 2.0, 3.0], fields=FIELDS)
    model = fit(alpha=make([1, 2, 3]), fields=make(FIELDS.astype(np.int8)))
    assert np.array_equal(parameters(model), parameters(wanted))


def test_auto_for_some_fields():
    auto = 2 * np.sqrt(3 * np.count_nonzero(X) / len(X))
    model, wanted = fit(beta=["auto", 1, "auto"], fields=FIELDS), [auto, 1, auto]
    assert np.array_equal(parameters(model), parameters(fit(beta=wanted, fields=FIELDS)))


def test_fields_by_name():
    names = np.array(["user", "item", "age"])[FIELDS]
    wanted = fit(alpha=[1, 4, 1], beta=["auto", 2, 3], fields=FIELDS)
    model = fit(alpha={"item": 4}, beta={"age": 3, "item": 2}, fields=names)
    assert np.array_equal(parameters(model), parameters(wanted))
    numbered = fit(alpha={1: 4}, beta={2: 3, 1: 2}, fields=FIELDS)
    assert np.array_equal(parameters(numbered), parameters(wanted))
    column = fit(alpha={5: 4.0})
    assert np.array_equal(parameters(column), parameters(fit(alpha=[1, 1, 1, 1, 1, 4, 1, 1])))


def test_columns_of_no_field_have_the_mean():
    marked = np.where(FIELDS == 2, -1, FIELDS)
    model = fit(alpha=[1, 3], beta=[2, 4], fields=marked)
    wanted = fit(alpha=[1, 3, 2], beta=[2, 4, 3], fields=FIELDS)
    np.testing.assert_allclose(parameters(model), parameters(wanted), rtol=1e-12)


def test_dummies_and_degree_weights_have_the_mean():
    settings = {"order": 3, "kernel": "inhomogeneous-anova", "fit_weights": True}
    model = fit(beta=[0, 2, 4], fields=FIELDS, **settings)
    assert model._learners[0].settings.penalties.theta.strength == pytest.approx(2.0)
    augmented = fit(beta=[0, 2, 4], fields=FIELDS, order=3, fit_lower="augment")
    assert augmented._learners[0].settings.penalties.factors.strength == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"alpha": [1, 2]}, ValueError, "alpha has 2 values, but X has 8 columns"),
        ({"beta": [1, 2], "fields": FIELDS}, ValueError, "beta has 2 values.*from 0 to 2.*3 val"),
        ({"beta": [], "fields": FIELDS}, ValueError, "beta has 0 values"),
        ({"alpha": np.ones(8), "fields": FIELDS}, ValueError, "alpha has 8 values.*3 values"),
        ({"alpha": [1, -2, 3], "fields": FIELDS}, ValueError, r"alpha\[1\] must be.*>= 0.*-2"),
        ({"beta": np.array([1, 2, np.nan]), "fields": FIELDS}, ValueError, r"beta\[2\].*nan"),
        ({"beta": [1, np.inf, 1], "fields": FIELDS}, ValueError, r"beta\[1\].*inf"),
        ({"alpha": [1, "auto", 1], "fields": FIELDS}, TypeError, r"alpha\[1\] must be a number"),
        ({"alpha": [1, True, 1], "fields": FIELDS}, TypeError, r"alpha\[1\] must be a number"),
        ({"alpha": np.ones((3, 1)), "fields": FIELDS}, TypeError, r"alpha\[0\] must be a number"),
        ({"alpha": "auto"}, TypeError, "alpha must be a number, got 'auto'"),
        ({"beta": "big"}, TypeError, "beta must be a number, got 'big'"),
        ({"beta": {"item": -1}}, ValueError, r"beta\['item'\].*-1"),
        ({"beta": {"item": 1}, "fields": FIELDS}, ValueError, "beta names the field 'item'.*0, 1"),
        ({"beta": {8: 1}}, ValueError, "beta names the field 8, which is not among those of X"),
        ({"fields": FIELDS[:5]}, ValueError, "fields has 5 values, but X has 8 columns"),
        ({"fields": FIELDS / 2}, TypeError, "fields must be a list of whole numbers.*float64"),
        ({"fields": 3}, TypeError, "fields must be a list of whole numbers.*got 3"),
        ({"fields": [[0, 1]]}, TypeError, r"fields must be.*shape \(1, 2\)"),
        ({"fields": FIELDS - 2}, ValueError, "fields holds -2 for column 0"),
        ({"fields": FIELDS * 9}, ValueError, "fields holds 9 for column 3"),
        ({"fields": [None] * 8}, TypeError, "fields must hold whole numbers or names, got None"),
        ({"fields": list("aaabbbcc"), "alpha": [1, 2, 3]}, ValueError, "fields holds names"),
    ],
)
def test_errors(settings, kind, message):
    with pytest.raises(kind, match=message):
        fit(**settings)


def test_warm_start_may_change_penalties():
    """From one number to some and back; the model that goes on is that of the first fit."""
    model = fit(warm_start=True)
    model.set_params(beta=[0.0, 1.0, 1e6], alpha=[0.0, 1.0, 1e6], fields=FIELDS).fit(X, Y)
    assert np.abs(model.coef_[6:]).max() < 1e-3
    model.set_params(beta=0.1, alpha=0.1).fit(X, Y)
    assert np.abs(model.coef_[6:]).max() > 0.1


def test_five_epochs_and_five_more_are_ten():
    settings = {"alpha": [0, 1, 5], "beta": [2, 0, 9], "fields": FIELDS}
    twice = fit(max_iter=5, warm_start=True, **settings).fit(X, Y)
    assert np.array_equal(parameters(twice), parameters(fit(max_iter=10, **settings)))


def test_records_that_were_lengthened_are_those_of_the_start():
    """A model of ones has no units: it gets them with its first penalties per field."""
    ones, y = (X != 0).astype(float), Y
    settings = {"beta": [2, 0, 9], "fields": FIELDS}
    started = FMRegressor(**{**FIXED, **settings, "max_iter": 1}).fit(ones, y)
    other = FMRegressor(warm_start=True, **{**FIXED, "max_iter": 1}).fit(ones, y)
    records = started._learners[0].model.parameters.linear
    other.set_params(**settings).fit(ones, y)
    lengthened = other._learners[0].model.parameters.linear
    assert lengthened.shape == records.shape == (8, 6)
    assert np.array_equal(lengthened[:, 2:], records[:, 2:])


def test_streams():
    model = FMRegressor(random_state=0, rank=3)
    model.partial_fit(X[:100, :], Y[:100])
    model.set_params(alpha=[0, 0, 1e6], beta=[0, 0, 1e6], fields=FIELDS)
    for _ in range(20):
        model.partial_fit(X[100:], Y[100:])
    assert np.abs(model.coef_[6:]).max() < 0.01
    assert np.abs(model.coef_[:3]).max() > 0.5
    assert np.abs(model.factors_[2][6:]).max() < 0.01


def test_a_batch_that_fails_changes_nothing():
    model = FMRegressor(random_state=0, rank=3).partial_fit(X[:300], Y[:300])
    before, wanted = parameters(model), clone(model)
    wanted.partial_fit(X[:300], Y[:300]).partial_fit(X[300:], Y[300:])
    model.set_params(alpha=[0, 0, 1e6], fields=FIELDS)
    with pytest.raises((ValueError, ArithmeticError)):
        model.partial_fit(np.full((2, 8), 1e200), np.array([1.0, -1.0]))
    assert np.array_equal(parameters(model), before)
    model.set_params(alpha=1.0, fields=None).partial_fit(X[300:], Y[300:])
    assert np.array_equal(parameters(model), parameters(wanted))


def test_clone_and_files(tmp_path):
    names = np.array(["user", "item", "age"])[FIELDS]
    for settings in (
        {"alpha": np.array([1.0, 2.0, 0.0]), "beta": ["auto", 1, 2.5], "fields": FIELDS},
        {"alpha": {"age": 2.0}, "fields": names},
    ):
        model = fit(**settings)
        copied = clone(model)
        assert str(copied.get_params()) == str(model.get_params())
        assert np.array_equal(parameters(copied.fit(X, Y)), parameters(model))
        save_model(model, tmp_path / "model.polyfm")
        loaded = load_model(tmp_path / "model.polyfm")
        assert str(loaded.get_params()) == str(model.get_params())
        more = [m.set_params(warm_start=True).fit(X, Y) for m in (model, loaded)]
        assert np.array_equal(parameters(more[0]), parameters(more[1]))
        save_model(model, tmp_path / "small.polyfm", include_state=False)
        small = load_model(tmp_path / "small.polyfm")
        assert np.array_equal(small.predict(X), model.predict(X))


def test_a_model_without_state_refuses_to_go_on(tmp_path):
    save_model(fit(), tmp_path / "small.polyfm", include_state=False)
    small = load_model(tmp_path / "small.polyfm").set_params(alpha=[1, 2, 3], fields=FIELDS)
    with pytest.raises(ValueError, match="include_state"):
        small.partial_fit(X, Y)


def test_grid_search_over_a_pipeline():
    """A fitted encoder that is frozen is the same in every fold, so its fields are known."""
    table = pd.DataFrame({
        "user": random.integers(0, 20, 400).astype(str),
        "item": random.integers(0, 10, 400).astype(str),
    })  # fmt: skip
    y = table["user"].astype(float) + random.normal(size=400)
    encoder = OneHotFieldEncoder(dtype=np.float64).fit(table)
    pipeline = make_pipeline(
        FrozenEstimator(encoder), FMRegressor(order=1, fields=encoder.fields_, **FIXED)
    )
    grid = {"fmregressor__alpha": [1.0, [0.1, 1e3], np.array([1e3, 0.1])]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(table, y)
    assert search.best_index_ == 1
    best = search.best_estimator_[-1]
    assert np.abs(best.coef_[encoder.fields_ == 1]).max() < 0.1
