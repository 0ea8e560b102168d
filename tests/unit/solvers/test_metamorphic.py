"""Fits that must agree: with scikit-learn, with their own parts, whatever form the data has."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, Ridge

from polyfm import FMClassifier, FMRegressor
from polyfm.losses import contract as losses
from polyfm.penalties.contract import value as penalty_value

LONG = dict(tol=0, early_stopping=False, random_state=0)


@pytest.fixture
def problem(random):
    X = random.normal(size=(200, 4)) * [1.0, 2.0, 0.5, 1.0]
    X[:, 3] = random.random(200) < 0.3
    return X, 3.0 + X @ [1.0, -0.5, 2.0, 0.7] + X[:, 0] * X[:, 1] + random.normal(size=200)


@pytest.fixture
def labels(problem, random):
    _, y = problem
    return np.where(random.logistic(scale=2.0, size=200) < y - y.mean(), "yes", "no")


def one_hot(random, n_rows, sizes=(5, 4)):
    columns = [np.eye(size)[random.integers(0, size, n_rows)] for size in sizes]
    return np.hstack(columns)


def objective(model, X, y, weight):
    """Return what training lowers, at the present parameters."""
    learner = model._learners[0]
    s, p = learner.settings, learner.model.parameters
    raw = (model.predict(X) - model._scale.offset) / model._scale.scale
    target = model._scale.to_scaled(y)
    fit = sum(w * losses.value(s.loss, a, b) for w, a, b in zip(weight, target, raw, strict=True))
    penalties = penalty_value(s.penalties.linear, p.linear[:, 0]).sum()
    return float(fit + penalties + penalty_value(s.penalties.factors, p.table[:, 0]).sum())


def bits(model, X):
    raw = model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)
    return raw.tobytes()


# The same problem in scikit-learn.


def test_order_one_is_ridge(problem):
    X, y = problem
    model = FMRegressor(order=1, alpha=5.0, learning_rate=0.05, max_iter=800, **LONG).fit(X, y)
    ridge = Ridge(alpha=5.0).fit(X, y)
    assert np.allclose(model.coef_, ridge.coef_, atol=2e-3)
    assert model.intercept_ == pytest.approx(ridge.intercept_, abs=2e-3)


def test_order_one_is_logistic_regression(problem, labels):
    X, _ = problem
    model = FMClassifier(order=1, alpha=5.0, max_iter=800, **LONG).fit(X, labels)
    other = LogisticRegression(C=1 / 5.0, tol=1e-10).fit(X, labels)
    assert np.allclose(model.coef_, other.coef_[0], atol=2e-3)
    assert model.intercept_ == pytest.approx(other.intercept_[0], abs=2e-3)
    assert np.allclose(model.predict_proba(X), other.predict_proba(X), atol=2e-3)


def test_weighted_order_one_is_weighted_ridge(problem, random):
    X, y = problem
    weight = random.uniform(0.2, 3.0, size=200)
    model = FMRegressor(order=1, alpha=5.0, learning_rate=0.05, max_iter=800, **LONG)
    model.fit(X, y, sample_weight=weight)
    ridge = Ridge(alpha=5.0).fit(X, y, sample_weight=weight)
    assert np.allclose(model.coef_, ridge.coef_, atol=4e-3)


# The same fit in parts, and again.


@pytest.mark.parametrize("changed", [{}, {"shuffle": False}, {"order": 3, "fit_lower": "augment"}])
def test_five_and_five_epochs_are_ten(problem, labels, changed):
    X, y = problem
    for kind, target in ((FMRegressor, y), (FMClassifier, labels)):
        whole = kind(max_iter=10, **changed, **LONG).fit(X, target)
        parts = kind(max_iter=5, warm_start=True, **changed, **LONG).fit(X, target)
        assert bits(parts, X) != bits(whole, X)
        parts.fit(X, target)
        assert bits(parts, X) == bits(whole, X)
        assert parts.history_["loss"] == whole.history_["loss"]
        assert (parts.t_, parts.n_iter_) == (whole.t_, 5)


def test_without_warm_start_a_fit_starts_anew(problem):
    X, y = problem
    model = FMRegressor(max_iter=3, **LONG).fit(X, y)
    first = bits(model, X)
    assert bits(model.fit(X, y), X) == first


@pytest.mark.parametrize("kind", [FMRegressor, FMClassifier])
def test_one_seed_gives_the_same_bits(problem, labels, kind):
    X, y = problem
    target = labels if kind is FMClassifier else y
    one, two, other = (
        kind(max_iter=4, early_stopping=True, random_state=seed).fit(X, target)
        for seed in (3, 3, 4)
    )
    assert bits(one, X) == bits(two, X)
    assert bits(one, X) != bits(other, X)


def test_two_processes_give_the_same_bits(run_python):
    script = """
        import hashlib
        import numpy as np
        from polyfm import FMRegressor
        X = np.random.default_rng(0).normal(size=(80, 5))
        model = FMRegressor(order=3, max_iter=4, random_state=1).fit(X, X[:, 0] * X[:, 1])
        print(hashlib.sha256(model.predict(X).tobytes()).hexdigest())
    """
    assert run_python(script, PYTHONHASHSEED="1") == run_python(script, PYTHONHASHSEED="2")


@pytest.mark.parametrize("cuts", [[3], [1, 2, 5], [1, 2, 3, 4, 5, 6]])
def test_batches_are_one_stream(random, cuts):
    """Bit for bit only without penalties, which are paid in shares of the rows known so far, in
    columns of ones, which need no unit, and without the bias that the first batch starts from."""
    X = one_hot(random, 7)
    y = np.array([0, 1, 1, 0, 1, 0, 1])
    free = dict(alpha=0.0, beta=0.0, fit_intercept=False, random_state=0)
    whole = FMClassifier(**free).partial_fit(X, y)
    parts = FMClassifier(**free)
    for rows in np.split(np.arange(7), cuts):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert bits(parts, X) == bits(whole, X)
    assert parts.t_ == whole.t_ == 7


def test_epoch_of_fit_without_shuffling_is_partial_fit(random):
    X = one_hot(random, 40)
    y = random.normal(size=40)
    fitted = FMRegressor(max_iter=1, shuffle=False, **LONG).fit(X, y)
    assert bits(FMRegressor(random_state=0).partial_fit(X, y), X) == bits(fitted, X)


# Changes of the data that say nothing.


def test_weight_zero_is_no_row(problem, labels):
    X, y = problem
    weight = np.ones(200)
    weight[::3] = 0.0
    kept = weight > 0
    for kind, target in ((FMRegressor, y), (FMClassifier, labels)):
        weighted = kind(max_iter=3, **LONG).fit(X, target, sample_weight=weight)
        removed = kind(max_iter=3, **LONG).fit(X[kept], target[kept])
        assert bits(weighted, X) == bits(removed, X)


def test_integer_weights_have_the_objective_of_repeated_rows(problem, random):
    """The paths differ, see the common checks; where they lead is the same, roughly."""
    X, y = problem
    weight = random.integers(1, 4, size=200)
    repeated = np.repeat(np.arange(200), weight)
    settings = dict(beta=20.0, learning_rate=0.05, max_iter=300, **LONG)
    one = FMRegressor(**settings).fit(X, y, sample_weight=weight)
    other = FMRegressor(**settings).fit(X[repeated], y[repeated])
    mine, theirs = (objective(model, X, y, weight) for model in (one, other))
    assert mine == pytest.approx(theirs, rel=0.01)
    # A constant has half the variance, 1 on the standardised target, for each row.
    assert mine < 0.25 * weight.sum()


@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_sparse_is_dense(problem, form):
    X, y = problem
    X = np.where(X > 0.3, X, 0.0)
    dense = FMRegressor(max_iter=3, **LONG).fit(X, y)
    other = FMRegressor(max_iter=3, **LONG).fit(sp.csr_matrix(X).asformat(form), y)
    assert bits(other, X) == bits(dense, X)
    assert bits(dense, sp.csr_array(X).asformat(form)) == bits(dense, X)


def test_single_precision_is_double_within_rounding(problem):
    X, y = problem
    X = X.astype(np.float32)
    double = FMRegressor(max_iter=5, **LONG).fit(X.astype(np.float64), y)
    single = FMRegressor(max_iter=5, **LONG).fit(X, y)
    assert single.coef_.dtype == np.float32
    assert single.predict(X).dtype == np.float64  # it may hold an offset far from 0
    assert np.allclose(single.predict(X), double.predict(X), atol=1e-3 * y.std())


def test_permuted_columns_change_the_rounding_only(problem):
    """For a model without factors. Factors start at numbers that depend on the column's place."""
    X, y = problem
    order = [2, 0, 3, 1]
    here = FMRegressor(order=1, max_iter=5, **LONG).fit(X, y)
    there = FMRegressor(order=1, max_iter=5, **LONG).fit(X[:, order], y)
    assert np.allclose(there.coef_, here.coef_[order], rtol=1e-9, atol=1e-12)


def test_permuted_columns_lead_to_the_same_objective(problem):
    X, y = problem
    order, weight = [2, 0, 3, 1], np.ones(200)
    settings = dict(rank=3, beta=5.0, learning_rate=0.05, max_iter=300, **LONG)
    here = FMRegressor(**settings).fit(X, y)
    there = FMRegressor(**settings).fit(X[:, order], y)
    mine, theirs = objective(here, X, y, weight), objective(there, X[:, order], y, weight)
    assert mine == pytest.approx(theirs, rel=0.01)


@pytest.mark.parametrize("scale", [1e-3, 1e4])
def test_unit_of_the_target_scales_predictions(problem, scale):
    X, y = problem
    here = FMRegressor(max_iter=3, **LONG).fit(X, y)
    there = FMRegressor(max_iter=3, **LONG).fit(X, y * scale)
    assert np.allclose(there.predict(X), here.predict(X) * scale, rtol=1e-6)


def test_unseen_features_change_no_prediction(problem):
    X, y = problem
    X = np.insert(X, 2, 0.0, axis=1)
    for seed in (0, 1):
        model = FMRegressor(order=3, max_iter=3, random_state=seed).fit(X, y)
        before = bits(model, X)
        X_new = X.copy()
        X_new[:, 2] = 7.0
        assert bits(model, X_new) == before
        assert model.coef_[2] == 0.0
        assert not model.factors_[3][2].any()


def test_start_of_a_feature_is_the_same_in_any_company(random):
    """So a feature that comes late in a stream starts as if it had been there all the time."""
    X = one_hot(random, 30)
    y = np.tile([0, 1], 15)
    early = FMClassifier(max_iter=1, learning_rate=1e-12, init_scale=0.1, random_state=5)
    early.fit(X, y)
    late = FMClassifier(learning_rate=1e-12, init_scale=0.1, random_state=5)
    for row in range(30):
        late.partial_fit(X[[row]], y[[row]], classes=[0, 1])
    assert np.allclose(early.factors_[2], late.factors_[2], atol=1e-9)
    assert np.abs(early.factors_[2]).max() > 0.1


def test_two_threads_reach_a_similar_loss(random):
    X = one_hot(random, 4000, (30, 20, 10))
    y = X[:, :30] @ random.normal(size=30) + random.normal(scale=0.3, size=4000)
    one = FMRegressor(max_iter=10, **LONG).fit(X, y)
    two = FMRegressor(max_iter=10, n_jobs=2, **LONG).fit(X, y)
    assert two.history_["loss"][-1] == pytest.approx(one.history_["loss"][-1], rel=0.1)
    assert two.score(X, y) == pytest.approx(one.score(X, y), abs=0.02)
    assert two.t_ == one.t_ == 40_000
