"""Publicly reported faults of other programs: fits that end in NaN, or in nothing.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from recompute import one_hot, parameters
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV

from polyfm import DivergenceError, FMClassifier, FMRegressor
from polyfm.losses import Logistic
from polyfm.losses import contract as losses


def finite(model, X):
    scores = model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)
    return bool(np.isfinite(parameters(model)).all() and np.isfinite(scores).all())


def finite_or_error(model, X, y, expected=r"epoch \d+.*learning rate is [\d.]+.*scale columns"):
    """Fit; either all numbers are finite or the error says where, which step and what to do."""
    try:
        model.fit(X, y)
    except DivergenceError as error:
        assert re.search(expected, str(error))
        assert not np.isnan(getattr(model, "coef_", 0.0)).any()
        return "error"
    assert finite(model, X)
    return "finite"


def housing():
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(rng.uniform(0, np.resize([1, 100, 700], 13), (506, 13)))
    return X, rng.uniform(5, 50, 506)


def test_case_001_unscaled_housing():
    """Columns of 0..1 beside columns of 0..700 train as they are, with the defaults."""
    X, y = housing()
    model = FMRegressor(rank=7, max_iter=6, random_state=0).fit(X, y)
    assert finite(model, X)
    assert model.score(X, y) > -0.1


@pytest.mark.parametrize("rate", [0.01, 0.1, 1.0])
def test_case_001_unscaled_housing_sgd(rate):
    """With a constant step too, or the error names epoch and step and advises to scale."""
    X, y = housing()
    model = FMRegressor(rank=7, max_iter=6, solver="sgd", learning_rate=rate, random_state=0)
    outcome = finite_or_error(model, X, y)
    if rate == 1.0:
        assert outcome == "error"


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0, 2.0])
def test_case_002_long_runs_with_a_high_constant_step(rate):
    """100 epochs on ratings: NaN never; a divergence is an error, also if it comes late."""
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 943, 3000), rng.integers(0, 1682, 3000)
    X, y = one_hot(users, items, widths=[943, 1682]), rng.integers(1, 6, 3000)
    model = FMRegressor(
        solver="sgd", learning_rate=rate, tol=0, early_stopping=False, random_state=0
    )
    outcome = finite_or_error(model, X, y)
    if rate == 0.1:
        assert outcome == "finite"
        assert model.n_iter_ == 100
        assert model.history_["loss"][-1] < model.history_["loss"][0]
    if rate == 2.0:
        assert outcome == "error"


def test_case_002_overflow_of_both_signs():
    """Weights that overflow to both infinities in a last step: a DivergenceError, no warning."""
    model = FMClassifier(solver="sgd", learning_rate=1e308, fit_intercept=False, random_state=0)
    with pytest.raises(DivergenceError, match=r"epoch 1.*learning rate is 1e.308.*scale columns"):
        model.partial_fit([[1.0, -1.0]], [1], sample_weight=[1e9], classes=[0, 1])
    assert not hasattr(model, "coef_")


def test_case_002_rising_loss_ends_the_run():
    """Noise that is overfitted: training stops early and keeps the best parameters."""
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 90, 900), rng.integers(0, 160, 900)
    X, y = one_hot(users, items, widths=[90, 160]), rng.integers(1, 6, 900).astype(float)
    options = {"solver": "sgd", "alpha": 0.01, "beta": 0.01, "init_scale": 0.3, "random_state": 0}
    model = FMRegressor(**options, early_stopping=True).fit(
        X[:700], y[:700], X_val=X[700:], y_val=y[700:]
    )
    values = model.history_["validation_loss"]
    assert model.n_iter_ < 100
    assert values[-1] > min(values)
    kept = 0.5 * np.mean((y[700:] - model.predict(X[700:])) ** 2)
    assert kept == pytest.approx(min(values), rel=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_case_003_nan_in_the_target(bad):
    """The row of a target that is no number is named before any training."""
    X, y = np.eye(20, 3), np.zeros(20)
    y[5] = bad
    model = FMRegressor()
    word = "NaN" if np.isnan(bad) else "infinity"
    with pytest.raises(ValueError, match=f"y contains {word} in row 5"):
        model.fit(X, y)
    with pytest.raises(ValueError, match=f"y contains {word} in row 5"):
        model.partial_fit(X, y)
    assert not hasattr(model, "coef_")


def test_case_003_nan_in_the_labels():
    """A label that is not a number is an error that says so, and no NumPy warning on top."""
    y = np.resize([0.0, 1.0], 20)
    y[5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        FMClassifier().fit(np.eye(20, 3), y)


def test_case_009_bad_settings_in_a_search():
    """A search over steps sees an exception, so that error_score applies; never a NaN vector."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    y = X[:, 0] + X[:, 1] * X[:, 2]
    grid = {"learning_rate": [0.01, 1.0, 10.0], "rank": [2, 10]}
    search = GridSearchCV(FMRegressor(solver="sgd", random_state=0), grid, cv=2, error_score=-1e9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn announces the fits that failed.
        search.fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    rates = np.array(search.cv_results_["param_learning_rate"], dtype=float)
    assert (scores[rates == 10.0] == -1e9).all()
    assert search.best_params_["learning_rate"] == 0.01
    assert finite(search.best_estimator_, X)


@pytest.mark.parametrize("dtype, value", [(np.float64, 1e140), (np.float32, 1e14)])
def test_case_009_no_nan_from_predict(dtype, value):
    """Three features whose product overflows: finite scores or an error, but no NaN handed out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).astype(dtype)
    y = X[:, 0] + X[:, 1] * X[:, 2] > 0
    model = FMClassifier(order=3, random_state=0).fit(X, y)
    try:
        p = model.predict_proba(X[:20] * dtype(value))
    except (ValueError, ArithmeticError) as error:
        assert re.search("large|overflow|finite", str(error))
    else:
        assert np.isfinite(p).all()


def spiky():
    rng = np.random.default_rng(0)
    X = sp.random(500, 700, density=0.02, format="csr", random_state=0)
    X.data[rng.choice(X.nnz, 10, replace=False)] = 1e4
    return X, rng.integers(0, 2, 500)


def test_case_010_a_few_huge_values():
    """A few values of 10,000 among weights below 1: finite with the defaults."""
    X, y = spiky()
    model = FMClassifier(random_state=0).fit(X, y)
    assert finite(model, X)
    assert np.isfinite(model.history_["loss"]).all()
    assert model.history_["loss"][-1] < np.log(2)


def test_case_010_no_metric_from_nan_scores():
    """A diverging fit stops at the first such epoch; no epoch's AUC is written down for it."""
    X, y = spiky()
    model = FMClassifier(
        solver="sgd", learning_rate=1e9, early_stopping=True, scoring="roc_auc", random_state=0
    )
    with pytest.raises(DivergenceError, match=r"epoch 1[,:]"):
        model.fit(X, y)
    assert not hasattr(model, "history_")


def test_case_011_gaps_in_a_frame():
    """Missing values are refused; the error names row and column."""
    frame = pd.DataFrame(
        np.random.default_rng(0).normal(size=(300, 12)), columns=list("abcdefghijkl")
    )
    frame.loc[[7, 20, 33], "c"] = np.nan
    with pytest.raises(ValueError, match="NaN in row 7, column 'c'"):
        FMClassifier().fit(frame, np.resize([0, 1], 300))


def test_case_011_unscaled_frame():
    """Dense columns of very different scale stay finite, and something is learnt."""
    rng = np.random.default_rng(0)
    scales = np.resize([1e-3, 1.0, 1e3, 1e6], 12)
    frame = pd.DataFrame(rng.normal(size=(300, 12)) * scales)
    frame.columns = list("abcdefghijkl")
    y = (frame["c"] > 0).to_numpy()
    model = FMClassifier(random_state=0).fit(frame, y)
    assert finite(model, frame)
    assert model.score(frame, y) > 0.9


def test_case_013_repeated_features_in_a_row():
    """Rows of 51 features, one of them listed three times, 1 each: finite, as if listed once, 3."""
    rng = np.random.default_rng(0)
    others = np.sort(rng.permuted(np.tile(np.arange(60), (10, 1)), axis=1)[:, :50], axis=1)
    columns = np.hstack([others, np.full((10, 3), 60)])
    X = sp.csr_matrix(
        (rng.random(530), columns.ravel(), np.arange(0, 531, 53)), shape=(10, 61), copy=False
    )
    X.data.reshape(10, 53)[:, 50:] = 1.0
    summed = X.toarray()
    y = np.resize([0, 1], 10)
    model = FMClassifier(random_state=0).fit(X, y)
    assert (summed[:, 60] == 3).all()
    assert finite(model, X)
    expected = FMClassifier(random_state=0).fit(summed, y).decision_function(summed)
    np.testing.assert_array_equal(model.decision_function(X), expected)


def test_case_014_pixels():
    """Pixel values up to 255 in 692 columns, large start: finite."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (100, 692)) * (rng.random((100, 692)) < 0.2)
    y = rng.choice([-1, 1], 100)
    assert finite(FMClassifier(init_scale=0.1, random_state=0).fit(X, y), X)


@pytest.mark.parametrize("margin", [-1e300, -1e4, -800.0, 0.0, 800.0, 1e4, 1e300])
def test_case_014_logistic_loss_far_out(margin):
    """log(1 + exp(-m)) is -m far below zero and 0 far above, and its slope -1 and 0."""
    value = losses.value(Logistic(), 1.0, margin)
    slope = losses.gradient(Logistic(), 1.0, margin)
    assert value == (np.log(2) if margin == 0 else max(-margin, 0.0))
    assert slope == (-0.5 if margin == 0 else -float(margin < 0))


@pytest.mark.parametrize("solver", ["adagrad", "sgd"])
def test_case_015_one_numeric_column_beside_one_hot_ones(solver):
    """A column around 5,000: finite, or an error that points at it and the step."""
    rng = np.random.default_rng(0)
    X = one_hot(rng.integers(0, 200, 800), widths=[200])
    X = sp.hstack([X, sp.csr_matrix(rng.normal(5000, 2000, (800, 1)))], format="csr")
    y = rng.integers(0, 2, 800)
    model = FMClassifier(solver=solver, learning_rate=0.05, random_state=0)
    expected = r"largest value is .* in column 200: .*learning rate is 0.05"
    outcome = finite_or_error(model, X, y, expected)
    if solver == "adagrad":
        assert outcome == "finite"


def test_case_018_half_full_rows():
    """Rows with 150 non-zeros in 0..1: finite with a step of 0.05; plain SGD may give an error."""
    X = sp.random(500, 300, density=0.5, format="csr", random_state=0)
    y = (X[:, [0]].toarray() > X[:, [1]].toarray()).ravel().astype(int)
    model = FMClassifier(learning_rate=0.05, max_iter=20, random_state=0).fit(X, y)
    assert finite(model, X)
    assert model.score(X, y) > 0.9
    finite_or_error(model.set_params(solver="sgd"), X, y)


def test_case_019_rows_without_any_feature():
    """39 of 42 rows are empty: legal, and what is predicted for them is the bias."""
    X = sp.csr_matrix((np.ones(3), ([3, 17, 40], [0, 0, 0])), shape=(42, 1))
    y = np.resize([0, 1, 1], 42)
    model = FMClassifier(random_state=0).fit(X, y)
    assert finite(model, X)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(np.delete(scores, [3, 17, 40]), model.intercept_)
    assert (scores[[3, 17, 40]] != model.intercept_).all()
    assert finite(FMRegressor(random_state=0).fit(X, y), X)


@pytest.mark.parametrize("rate", [0.015, 3.0])
def test_case_021_divergence_is_not_masked(rate):
    """Labels 1 to 13, rank 10, constant step: finite, or an error. No prediction is replaced."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 30, 600), rng.integers(0, 30, 600)
    X, y = one_hot(a, b, widths=[30, 30]), rng.integers(1, 14, 600)
    model = FMRegressor(
        rank=10, solver="sgd", learning_rate=rate, max_iter=20, tol=0, random_state=0
    )
    assert finite_or_error(model, X, y) == ("error" if rate == 3.0 else "finite")


def test_case_023_margins_of_hundreds():
    """300 features of value 5, large factors at the start: margins of hundreds overflow nothing.

    The start is in units of the column, so that its values of 5 count as 1 here. A whole fit from
    such a start may well be given up with an error, its loss being hundreds of times that of a
    constant; one step has to be finite.
    """
    rng = np.random.default_rng(0)
    X = 5.0 * one_hot(*(rng.integers(0, 2, 40) for _ in range(300)), widths=[2] * 300)
    y = rng.choice([-1, 1], 40)
    for solver in ("adagrad", "sgd"):
        model = FMClassifier(init_scale=1.0, solver=solver, random_state=0)
        model.partial_fit(X[:1], y[:1], classes=[-1, 1])
        assert finite(model, X)
        assert np.abs(model.decision_function(X[1:])).max() > 100
        finite_or_error(FMClassifier(init_scale=1.0, solver=solver, random_state=0), X, y)


@pytest.mark.parametrize("rate", [0.1, 1.0])
@pytest.mark.parametrize("solver", ["adagrad", "sgd"])
def test_case_025_wine_table(solver, rate):
    """Eleven raw columns, step 0.1 and 1: finite or an error."""
    rng = np.random.default_rng(0)
    typical = np.array([7, 0.27, 0.36, 20.7, 0.045, 45, 170, 1.001, 3, 0.45, 8.8])
    X = typical * rng.uniform(0.8, 1.2, (200, 11))
    y = rng.integers(3, 9, 200)
    model = FMRegressor(rank=3, solver=solver, learning_rate=rate, random_state=0)
    outcome = finite_or_error(model, X, y)
    if solver == "adagrad":
        assert outcome == "finite"


@pytest.mark.parametrize("value", [1.7e308, -1.7e308])
def test_case_027_values_near_the_largest_double(value):
    """A value whose square overflows is refused by row and column, with advice to scale."""
    X = np.random.default_rng(0).normal(size=(10, 3))
    X[4, 1] = value
    with pytest.raises(ValueError, match=r"row 4, column 1, .*too large.*scale the column down"):
        FMClassifier().fit(X, np.resize([0, 1], 10))


@pytest.mark.parametrize("schedule", ["constant", "invscaling", "optimal"])
def test_case_029_no_penalty(schedule):
    """alpha = beta = 0 means no penalty, under every schedule: finite, and something is learnt."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    model = FMClassifier(alpha=0, beta=0, solver="sgd", schedule=schedule, random_state=0)
    assert finite(model.fit(X, y), X)
    assert model.score(X, y) > 0.9


def test_case_030_rare_positives_and_raw_numeric_columns():
    """One positive in a hundred, ids beside columns of scale 1 to 1,000: better than chance."""
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 50, 5000), rng.integers(0, 50, 5000)
    numbers = rng.normal(size=(5000, 10)) * np.logspace(0, 3, 10)
    X = sp.hstack([one_hot(users, items, widths=[50, 50]), sp.csr_matrix(numbers)], format="csr")
    margin = numbers[:, 9] / 1e3 + 2.0 * (items < 5)
    y = (margin > np.quantile(margin, 0.99)).astype(int)
    model = FMClassifier(random_state=0).fit(X, y)
    assert roc_auc_score(y, model.decision_function(X)) > 0.9
    assert np.ptp(model.predict_proba(X)[:, 1]) > 0.1
