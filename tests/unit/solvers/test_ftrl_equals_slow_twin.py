"""A thousand rows by FTRL-Proximal equal those of slow twins written from the papers' formulas."""

import numpy as np
import pytest
from ftrl_twin import LinearTwin, PairTwin

from polyfm import (
    FTRLClassifier,
    FTRLRegressor,
    HierarchicalFMClassifier,
    HierarchicalFMRegressor,
)
from polyfm.kernels import ANOVA
from polyfm.losses import Logistic
from polyfm.models.layout import lay_out
from polyfm.penalties import L2, Box, ElasticNet
from polyfm.solvers._epoch import Penalties, Switches
from polyfm.solvers.learner import Settings
from polyfm.solvers.stochastic import StochasticLearner
from polyfm.testing._models import rows_of
from polyfm.updates import FTRLPower, FTRLProximal

N, D, K = 1000, 12, 3
TOLERANCE = dict(rtol=1e-10, atol=1e-10)


def stream(loss, seed=0):
    """Return rows of two one-hot fields and three numbers, and targets."""
    random = np.random.default_rng(seed)
    X = np.zeros((N, D))
    X[np.arange(N), random.integers(0, 5, N)] = 1.0
    X[np.arange(N), random.integers(5, 9, N)] = 1.0
    X[:, 9:] = random.normal(size=(N, 3)) * (random.random((N, 3)) < 0.5)
    y = X[:, 0] - X[:, 6] + 2.0 * X[:, 1] * X[:, 9] + X[:, 10] * X[:, 11]
    y = y + 0.3 * random.normal(size=N)
    return X, np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y


def root(alpha, beta, mu=0.0):
    return lambda n: (beta + np.sqrt(mu + n)) / alpha


def powered(alpha, mu, gamma):
    return lambda n: (mu + n) ** gamma / alpha


PENALTIES = {
    "none": (dict(penalty="l2"), 0.0),
    "l1": (dict(penalty="l1"), 8.0),
    "both": (dict(penalty="elasticnet", l1_ratio=0.25), 4.0),
}


def parts(name):
    ratio = {"none": 0.0, "l1": 1.0, "both": 0.25}[name]
    return PENALTIES[name][1] * ratio, PENALTIES[name][1] * (1.0 - ratio)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_linear(penalty, loss):
    X, y = stream(loss)
    given, strength = PENALTIES[penalty]
    cls = FTRLRegressor if loss == "squared" else FTRLClassifier
    model = cls(learning_rate=0.3, damping=0.7, alpha=strength, **given).partial_fit(X, y)
    twin = LinearTwin(D, root(0.3, 0.7), *parts(penalty), loss)
    for row, target in zip(X, y, strict=True):
        twin.learn(row, target)
    assert np.allclose(model.coef_, twin.linear.v, **TOLERANCE)
    assert np.isclose(model.intercept_, twin.bias.v[0], **TOLERANCE)
    rates = 0.3 / (0.7 + np.sqrt(twin.linear.n))
    assert np.allclose(model.learning_rates_, rates, **TOLERANCE)
    assert (model.counts_ == (X != 0).sum(axis=0)).all()
    if penalty == "l1":
        assert ((model.coef_ == 0) == (twin.linear.v == 0)).all()


RULES = {
    "McMahan": (FTRLProximal(0.2, 1.0, 0.0), root(0.2, 1.0)),
    "mu, 1/2": (FTRLProximal(0.2, 0.0, 2.0), root(0.2, 0.0, 2.0)),
    "mu, 0.7": (FTRLPower(0.2, 2.0, 0.7), powered(0.2, 2.0, 0.7)),
}


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("rule", RULES)
def test_factorization_machine(rule, penalty):
    X, y = stream("logistic")
    (spec, curvature), (l1, l2) = RULES[rule], parts(penalty)
    net, rows = ElasticNet(l1, l2), rows_of(X, y)
    layout = lay_out(ANOVA(), 2, K, lower=None, linear=True, inhomogeneous=False)
    settings = Settings(
        Logistic(), spec, Penalties(L2(0.0), net, net, Box(1.0), L2(0.0)),
        Switches(True, True, False, 2), np.full(K, 0.2), seed=0,
    )  # fmt: skip
    learner = StochasticLearner.create(
        layout, settings, n_features=D, start=0.0, units=False, dtype=np.float64
    )
    learner.set_rows(rows)
    p = learner.model.parameters
    twin = PairTwin(p.table[:, 0], curvature, l1, l2, "logistic", linear=(l1, l2))
    learner.learn(rows)
    for row, target in zip(X, y, strict=True):
        twin.learn(row[None], [target])
    assert np.allclose(p.table[:, 0], twin.V.v, **TOLERANCE)
    assert np.allclose(p.linear[:, 0], twin.linear.v, **TOLERANCE)
    if penalty == "l1":
        assert (p.table[:, 0] == 0).any()
        assert ((p.table[:, 0] == 0) == (twin.V.v == 0)).all()


def hierarchical_pair(loss, penalty, *, power, fit_weights, start="exact", **given):
    """Return an estimator that has started, and its twin on the explicitly augmented matrix."""
    X, y = stream(loss)
    cls = HierarchicalFMRegressor if loss == "squared" else HierarchicalFMClassifier
    named, strength = PENALTIES[penalty]
    settings = dict(
        rank=K, learning_rate=0.2, initial=2.0, power=power, beta=strength, init_scale=0.2,
        fit_weights=fit_weights, random_state=0, **named, **given,
    )  # fmt: skip
    # Rows of hardly any weight start all features and move none.
    nothing = (X, y, np.full(N, 1e-14))
    exact = cls(start="exact", **settings).partial_fit(*nothing)
    model = cls(start=start, **settings).partial_fit(*nothing)
    curvature = root(0.2, 0.0, 2.0) if power == 0.5 else powered(0.2, 2.0, power)
    V = np.vstack([exact.context_, exact.factors_[2]])
    weights = model.weights_[2] if fit_weights else None
    twin = PairTwin(
        V, curvature, *parts(penalty), loss, weights=weights, by_evidence=start == "evidence"
    )
    assert np.abs(V).std() > 0.05
    assert_equal(model, twin)
    return model, twin, np.hstack([np.ones((N, 1)), X]), y


def assert_equal(model, twin):
    V = np.vstack([model.context_, model.factors_[2]])
    assert np.allclose(V, twin.V.v, **TOLERANCE)
    assert ((V == 0) == (twin.V.v == 0)).all()
    assert np.allclose(model.weights_[2], twin.weights.v, **TOLERANCE)
    assert np.isclose(model.intercept_, twin.bias.v[0], **TOLERANCE)
    effects = (twin.V.v[1:] * twin.weights.v) @ twin.V.v[0]
    assert np.allclose(model.main_effects_, effects, **TOLERANCE)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("power", [0.5, 0.7])
@pytest.mark.parametrize("fit_weights", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("start", ["exact", "evidence"])
def test_hierarchical(start, loss, penalty, power, fit_weights):
    model, twin, augmented, y = hierarchical_pair(
        loss, penalty, power=power, fit_weights=fit_weights, start=start
    )
    # All that is 0 at the start are features that have to come in.
    assert (model.factors_[2] == 0).any() == (start == "evidence" and penalty != "none")
    model.partial_fit(augmented[:, 1:], y)
    for row, target in zip(augmented, y, strict=True):
        twin.learn(row[None], [target])
    assert_equal(model, twin)
    if penalty == "l1":
        assert (model.factors_[2] == 0).any()


@pytest.mark.parametrize("batch_gradient", ["sum", "mean"])
@pytest.mark.parametrize("fit_weights", [False, True])
@pytest.mark.parametrize("size", [7, 64])
@pytest.mark.parametrize("start", ["exact", "evidence"])
def test_hierarchical_in_batches(start, size, fit_weights, batch_gradient):
    model, twin, augmented, y = hierarchical_pair(
        "squared", "both", power=0.5, fit_weights=fit_weights, batch_size=size,
        batch_gradient=batch_gradient, start=start,
    )  # fmt: skip
    model.partial_fit(augmented[:, 1:], y)
    for first in range(0, N, size):
        part = slice(first, first + size)
        twin.learn(augmented[part], y[part], mean=batch_gradient == "mean")
    assert_equal(model, twin)


def test_predictions_are_those_of_the_augmented_matrix():
    model, _, augmented, y = hierarchical_pair("squared", "none", power=0.5, fit_weights=True)
    model.partial_fit(augmented[:, 1:], y)
    V = np.vstack([model.context_, model.factors_[2]])
    pairs = np.triu((V * model.weights_[2]) @ V.T, 1)
    wanted = model.intercept_ + np.einsum("ni,ij,nj->n", augmented, pairs, augmented)
    assert np.allclose(model.predict(augmented[:, 1:]), wanted, rtol=1e-10, atol=1e-10)
    explicit = model.intercept_ + augmented[:, 1:] @ model.main_effects_
    explicit += np.einsum("ni,ij,nj->n", augmented[:, 1:], pairs[1:, 1:], augmented[:, 1:])
    assert np.allclose(explicit, wanted, rtol=1e-10, atol=1e-10)
