"""Linear models by FTRL-Proximal, and solver="ftrl" of the factorization machines."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from polyfm import (
    DivergenceError,
    FMClassifier,
    FMRegressor,
    FTRLClassifier,
    FTRLRegressor,
    PolynomialNetworkRegressor,
    load_model,
    save_model,
)


@pytest.fixture
def clicks(random):
    """Rows of four one-hot fields and what is clicked."""
    n = 400
    blocks = [np.eye(size)[random.integers(0, size, n)] for size in (3, 5, 8, 20)]
    X = sp.csr_matrix(np.hstack(blocks))
    logit = X[:, 0].toarray().ravel() - 2.0 * X[:, 4].toarray().ravel()
    return X, random.random(n) < 1.0 / (1.0 + np.exp(-logit))


def in_parts(model, X, y, sizes, **more):
    first = 0
    for size in sizes:
        model.partial_fit(X[first : first + size], y[first : first + size], **more)
        first += size
    return model


def state(model):
    return [block.copy() for learner in model._learners for block in learner.model.parameters]


def assert_same(one, other):
    for a, b in zip(state(one), state(other), strict=True):
        assert np.array_equal(a, b)
    assert one.t_ == other.t_


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_rows_one_by_one_are_rows_at_once(clicks, penalty):
    X, y = clicks
    given = dict(penalty=penalty, alpha=0.5, learning_rate=0.5)
    at_once = FTRLClassifier(**given).partial_fit(X, y)
    assert_same(at_once, in_parts(FTRLClassifier(**given), X, y, [3, 4, 93, 300]))
    one_by_one = in_parts(FTRLClassifier(**given), X, y, [1] * 400, classes=[False, True])
    assert_same(at_once, one_by_one)


def test_a_stream_of_numbers_is_taken_as_it_is(random):
    X = random.normal(size=(100, 3)) * [1.0, 30.0, 0.1]
    y = 5.0 + X[:, 0]
    at_once = FTRLRegressor().partial_fit(X, y)
    assert_same(at_once, in_parts(FTRLRegressor(), X, y, [1, 9, 90]))


def test_fit_has_units(random):
    X = random.normal(size=(300, 3))
    y = 2.0 * X[:, 0] - X[:, 1]
    here = FTRLRegressor(alpha=0.0).fit(X, y)
    there = FTRLRegressor(alpha=0.0).fit(X * [1e3, 1e-2, 5.0], 1e4 * y + 1e6)
    assert here.score(X, y) > 0.99
    expected = 1e4 * here.predict(X) + 1e6
    assert np.allclose(there.predict(X * [1e3, 1e-2, 5.0]), expected, rtol=1e-9)


def test_a_stream_after_fit_keeps_its_units(random):
    X = random.normal(size=(300, 3)) * 40.0
    y = 1e3 * (2.0 * X[:, 0] - X[:, 1])
    model = FTRLRegressor().fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    assert model.score(X, y) > 0.95
    assert model.counts_.tolist() == [300, 300, 300]


def through_file(model, folder):
    save_model(model, folder / "m.polyfm")
    return load_model(folder / "m.polyfm")


def through_pickle(model, folder):
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("way", [through_file, through_pickle])
def test_going_on_after_storage_is_the_same_to_the_bit(clicks, tmp_path, way):
    X, y = clicks
    given = dict(penalty="l1", alpha=0.3, learning_rate=0.4)
    whole = FTRLClassifier(**given).partial_fit(X, y)
    half = way(FTRLClassifier(**given).partial_fit(X[:170], y[:170]), tmp_path)
    assert_same(whole, half.partial_fit(X[170:], y[170:]))


def test_l1_makes_exact_zeros(clicks):
    X, y = clicks
    sizes = [
        FTRLClassifier(penalty="l1", alpha=alpha).partial_fit(X, y).count_nonzero()
        for alpha in (0.0, 1.0, 5.0, 1e4)
    ]
    assert sizes[0] == X.shape[1] + 1
    assert sizes[0] > sizes[1] > sizes[2] > sizes[3] == 1


def test_the_best_epoch_comes_back_with_its_sums(clicks):
    """A weight that is put back would otherwise be gone at the next step."""
    X, y = clicks
    # The more is learnt, the worse these are predicted.
    labels = dict(X_val=X[300:], y_val=~y[300:])
    given = dict(alpha=0.0, early_stopping=True)
    stopped = FTRLClassifier(max_iter=30, **given).fit(X[:300], y[:300], **labels)
    assert 1 <= stopped.best_iteration_ < stopped.n_iter_
    short = FTRLClassifier(max_iter=stopped.best_iteration_, **given)
    short.fit(X[:300], y[:300], **labels)
    assert np.array_equal(stopped.coef_, short.coef_)
    for model in (stopped, short):
        model.partial_fit(X[:50], y[:50])
    assert np.array_equal(stopped.coef_, short.coef_)


def test_auto_epochs(random):
    X = random.normal(size=(200, 2))
    y = X[:, 0]
    assert FTRLRegressor(tol=0).fit(X, y).n_iter_ == 100
    assert FTRLRegressor(tol=0, max_iter=7).fit(X, y).n_iter_ == 7
    many = FTRLRegressor(tol=0).fit(np.tile(X, (251, 1)), np.tile(y, 251))
    assert many.n_iter_ == 1
    assert not any(name.startswith("validation") for name in many.history_)


def test_threads_change_nothing(clicks):
    X, y = clicks
    one = FTRLClassifier(max_iter=3).fit(X, y)
    assert_same(one, FTRLClassifier(max_iter=3, n_jobs=2).fit(X, y))
    one = FMClassifier(solver="ftrl", max_iter=3, random_state=0).fit(X, y)
    assert_same(one, FMClassifier(solver="ftrl", max_iter=3, random_state=0, n_jobs=2).fit(X, y))


def test_single_precision(clicks):
    X, y = clicks
    double = FTRLClassifier().partial_fit(X, y)
    single = FTRLClassifier().partial_fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float32
    assert np.allclose(single.coef_, double.coef_, atol=1e-4)


def test_penalties_per_field(clicks):
    X, y = clicks
    fields = np.repeat(np.arange(4), [3, 5, 8, 20])
    given = dict(fields=fields, penalty="l1", learning_rate=0.5)
    model = FTRLClassifier(alpha=[0.0, 0.0, 1e6, 1e6], **given).partial_fit(X, y)
    assert (model.coef_[:8] != 0).all()
    assert (model.coef_[8:] == 0).all()


def test_a_start_holds_whatever_the_penalty_of_its_field(random):
    """Factors of a field with a strong L1 penalty would otherwise all be 0 after the first row."""
    X = np.eye(6)[random.integers(0, 6, 50)]
    y = random.normal(size=50)
    model = FMRegressor(
        rank=2, solver="ftrl", penalty="l1", beta=[9.0, 1.0, 5.0, 0.0, 2.0, 3.0], max_iter=1,
        init_scale=0.3, random_state=0, fit_intercept=False,
    )  # fmt: skip
    model.partial_fit(X, y, np.full(50, 1e-14))
    assert np.abs(model.factors_[2]).min() > 1e-3


@pytest.mark.parametrize("kernel", ["anova", "inhomogeneous-anova", "all-subsets", "polynomial"])
def test_every_kernel(kernel, random):
    X = random.normal(size=(600, 4))
    y = X[:, 0] + X[:, 1] * X[:, 2]
    model = FMRegressor(kernel=kernel, solver="ftrl", beta=1.0, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.7


def test_polynomial_network(random):
    X = random.normal(size=(600, 4))
    y = X[:, 0] ** 2 - X[:, 1] * X[:, 2]
    model = PolynomialNetworkRegressor(lifted=False, solver="ftrl", beta=1.0, random_state=0)
    assert model.fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (dict(learning_rate=0), "learning_rate must be finite, > 0"),
        (dict(damping=0.0), "damping must be finite, > 0"),
        (dict(damping=np.nan), "damping must be finite"),
        (dict(alpha=-1.0), "alpha must be finite, >= 0"),
        (dict(max_iter="many"), "max_iter must be an integer"),
        (dict(max_iter=0), "max_iter must be finite, >= 1"),
        (dict(penalty="l3"), "penalty must be one of"),
    ],
)
def test_impossible_parameters(given, words):
    for call in ("fit", "partial_fit"):
        model = FTRLRegressor(**given)
        with pytest.raises((ValueError, TypeError), match=words):
            getattr(model, call)(np.eye(3), [1.0, 2.0, 3.0])
        assert not hasattr(model, "coef_")
        assert not hasattr(model, "counts_")


def soft(v, threshold):
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)


def test_online_gradient_descent_with_l1(clicks):
    """``solver="sgd", penalty="l1"`` takes theta to soft(theta - eta g, eta lambda)."""
    X, _ = clicks
    dense = X.toarray()
    y = dense @ np.linspace(-1.0, 1.0, dense.shape[1])
    counts, size, rate = dense.sum(axis=0), 0.1, 0.05
    model = FMRegressor(
        rank=2, solver="sgd", penalty="l1", alpha=size * counts, beta=size * counts,
        learning_rate=rate, init_scale=0.1, random_state=0,
    )  # fmt: skip
    started = FMRegressor(rank=2, solver="sgd", beta=0.0, init_scale=0.1, random_state=0)
    started.partial_fit(X, y, np.full(400, 1e-14))
    p = started._learners[0].model.parameters
    b, w, V = 0.0, np.zeros(dense.shape[1]), p.table[:, 0].copy()
    model.partial_fit(X, y)
    for x, target in zip(dense, (y - y.mean()) / y.std(), strict=True):
        q, on = x @ V, x != 0
        g = b + w @ x + 0.5 * (q @ q - ((x[:, None] * V) ** 2).sum()) - target
        b -= rate * g
        V_new = soft(V - rate * g * x[:, None] * (q - x[:, None] * V), rate * size)
        w = np.where(on, soft(w - rate * g * x, rate * size), w)
        V = np.where(on[:, None], V_new, V)
    p = model._learners[0].model.parameters
    assert np.allclose(p.linear[:, 0], w, rtol=1e-9, atol=1e-10)
    assert np.allclose(p.table[:, 0], V, rtol=1e-9, atol=1e-10)
    assert (w == 0).any()
    assert ((p.linear[:, 0] == 0) == (w == 0)).all()


def test_sums_that_overflow_leave_the_model_whole(random):
    """An n or z that is no finite number would make every later weight NaN."""
    X = sp.csr_matrix(random.normal(size=(20, 3)).astype(np.float32))
    y = random.normal(size=20)
    model = FTRLRegressor().partial_fit(X, y)
    before = state(model)
    with pytest.raises(DivergenceError, match="training diverged"):
        model.partial_fit(X, 1e30 * y)
    for kept, now in zip(before, state(model), strict=True):
        assert np.array_equal(kept, now)
    assert np.isfinite(model.partial_fit(X, y).predict(X)).all()
