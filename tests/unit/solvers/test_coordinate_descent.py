"""Coordinate descent against a slow twin, conditions of optimality and closed forms."""

import itertools
import pickle
from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from polyfm import FMClassifier, FMRegressor
from polyfm.kernels import ANOVA, AllSubsets
from polyfm.losses import Huber, Logistic, Squared, SquaredHinge
from polyfm.losses import contract as losses
from polyfm.models.layout import lay_out
from polyfm.penalties import L2, Box, ElasticNet
from polyfm.penalties import contract as penalties
from polyfm.persistence import load_model, save_model
from polyfm.solvers import _descent, _sweep
from polyfm.solvers._by_column import columns_of
from polyfm.solvers._epoch import Penalties, Switches
from polyfm.solvers.coordinate_descent import CoordinateLearner
from polyfm.solvers.learner import Settings
from polyfm.testing import plain
from polyfm.testing._models import rows_of

N_ROWS, N_FEATURES, RANK, N_SWEEPS = 14, 6, 3, 5
LOSSES = {
    "squared": Squared(),
    "logistic": Logistic(),
    "hinge": SquaredHinge(),
    "huber": Huber(0.7),
}
PENALTIES = {"l2": (0.0, 0.6), "l1": (0.3, 0.1)}
LAYOUTS = {
    **{f"order {m}": (ANOVA(2), m, {"lower": "explicit"}) for m in (1, 2, 3)},
    **{f"homogeneous {m}": (ANOVA(2), m, {"lower": None}) for m in (4, 5)},
    "augmented 3": (ANOVA(2), 3, {"lower": "augment"}),
    "inhomogeneous 3": (ANOVA(2), 3, {"lower": "explicit", "inhomogeneous": True}),
    "all-subsets": (AllSubsets(), 2, {"lower": "explicit"}),
}


def some_rows(loss, random):
    X = random.normal(size=(N_ROWS, N_FEATURES)) * (random.random((N_ROWS, N_FEATURES)) < 0.7)
    X[2] = 0.0
    X[:, 4] = 0.0
    y = np.sign(random.normal(size=N_ROWS))
    if not isinstance(loss, Logistic | SquaredHinge):
        y = random.normal(size=N_ROWS)
    return X, y, random.uniform(0.5, 2.0, size=N_ROWS)


def layout_of(name, linear=True):
    kernel, order, keywords = LAYOUTS[name]
    return lay_out(kernel, order, RANK, linear=linear, **{"inhomogeneous": False, **keywords})


def learner_of(layout, loss, penalty, block_size, *, weights=False, scale=0.5, strengths=None):
    l1, l2 = PENALTIES[penalty]
    kind = ElasticNet(l1, l2) if l1 else L2(l2)
    m = layout.degrees.shape[0]
    theta_from = 2 if layout.shared and m else m
    return CoordinateLearner.create(
        layout,
        Settings(
            loss, None, Penalties(L2(0.0), kind, kind, Box(1.0), L2(0.4)),
            Switches(True, True, weights, theta_from), np.full(layout.rank, scale), seed=3,
            block_size=block_size, factor_strengths=strengths,
        ),
        n_features=N_FEATURES, start=0.1, units=False, dtype=np.float64,
    )  # fmt: skip


def descent_of(learner, rows):
    learner.set_rows(rows)
    columns = columns_of(rows, learner.model.n_features)
    return _descent.Descent(learner.model, learner.settings, rows, columns)


class Twin:
    """The same sweeps in plain NumPy: derivatives by the kernel's definition, dense rows."""

    def __init__(self, learner, layout, X, y, weight):
        p = learner.model.parameters
        self.layout, self.settings = layout, learner.settings
        ones = np.ones((len(X), layout.n_dummies))
        self.X, self.y, self.weight = np.hstack([X, ones]), y, weight
        self.bias, self.theta = float(p.bias[0, 0]), p.theta[0].copy()
        self.linear, self.table = p.linear[:, 0].copy(), p.table[:, 0].copy()
        self.weights = p.weights[0].copy()

    def values(self, s, factors=None, theta=None):
        """Kernel of every row and one basis, by the coefficients of prod_j (1 + t p_j x_j)."""
        terms = self.X * (self.table[:, s] if factors is None else factors)
        if isinstance(self.layout.kernel, AllSubsets):
            return (1.0 + terms).prod(axis=1)
        of_degrees = np.array([np.poly(-z)[1 : len(self.theta) + 1] for z in terms])
        theta = self.theta if theta is None else theta
        return of_degrees @ (self.layout.degrees[:, s] * theta)

    def scores(self):
        kernels = sum(self.weights[s] * self.values(s) for s in range(self.layout.rank))
        return self.bias + self.X[:, : len(self.linear)] @ self.linear + kernels

    def pulls(self):
        loss, f = self.settings.loss, self.scores()
        return self.weight * [losses.gradient(loss, y, p) for y, p in zip(self.y, f, strict=True)]

    def step(self, penalty, G, start, scales):
        """Minimise the bound over some coordinates; G is (rows, coordinates)."""
        curvature = losses.curvature(self.settings.loss)
        gradient, H = G.T @ self.pulls(), curvature * (G.T * self.weight) @ G
        if isinstance(penalty, L2):
            ridge = penalty.strength * scales
            return np.linalg.pinv(H + np.diag(ridge)) @ -(gradient + ridge * start)
        change = np.zeros(len(start))
        for _ in range(200):
            for r in range(len(start)):
                if H[r, r] == 0:
                    change[r] = penalties.prox(penalty, start[r], 1e300 * scales[r]) - start[r]
                    continue
                v = start[r] + change[r] - (gradient[r] + H[r] @ change) / H[r, r]
                change[r] = penalties.prox(penalty, v, scales[r] / H[r, r]) - start[r]
        return change

    def slopes(self, j, bases):
        """Derivatives by affinity: the value at factor 1 minus that at factor 0."""
        columns = []
        for s in bases:
            one, zero = self.table[:, s].copy(), self.table[:, s].copy()
            one[j], zero[j] = 1.0, 0.0
            columns.append(self.weights[s] * (self.values(s, one) - self.values(s, zero)))
        return np.stack(columns, axis=1)

    def sweep(self):
        s, n = self.settings, len(self.X)
        self.bias += self.step(L2(0.0), np.ones((n, 1)), np.array([self.bias]), np.ones(1))[0]
        for j in range(len(self.linear)):
            if self.X[:, j].any():
                G, start = self.X[:, [j]], self.linear[[j]]
                self.linear[j] += self.step(s.penalties.linear, G, start, np.ones(1))[0]
        for bases in self.blocks():
            for j in range(len(self.table)):
                if self.X[:, j].any():
                    scales = np.abs(self.weights[bases]) * self.strength(j)
                    G = self.slopes(j, bases)
                    change = self.step(s.penalties.factors, G, self.table[j, bases], scales)
                    self.table[j, bases] += change
        if s.switches.weights:
            self.sweep_weights()
        for t in range(s.switches.theta_from, len(self.theta)):
            self.sweep_theta(t)

    def strength(self, j):
        strengths = self.settings.factor_strengths
        return 1.0 if strengths is None or j >= len(self.linear) else strengths[j]

    def blocks(self):
        for columns in self.layout.columns.values():
            for group in range(columns.start, columns.stop, 8):
                end = min(group + 8, columns.stop)
                for first in range(group, end, self.settings.block_size):
                    yield list(range(first, min(first + self.settings.block_size, end)))

    def sweep_weights(self):
        factors = self.settings.penalties.factors
        strengths = np.array([self.strength(j) for j in range(len(self.table))])
        for s in range(self.layout.rank):
            G = self.values(s)[:, np.newaxis]
            l1 = ElasticNet(float(strengths @ penalties.value(factors, self.table[:, s])), 0.0)
            self.weights[s] += self.step(l1, G, self.weights[[s]], np.ones(1))[0]
            if self.weights[s] == 0:
                self.table[:, s] = 0.0

    def sweep_theta(self, t):
        only = np.zeros(len(self.theta))
        only[t] = 1.0
        parts = [self.weights[s] * self.values(s, theta=only) for s in range(self.layout.rank)]
        G = np.sum(parts, axis=0)[:, np.newaxis]
        self.theta[t] += self.step(self.settings.penalties.theta, G, self.theta[[t]], np.ones(1))[0]


def assert_equal_to_twin(name, loss, penalty, block_size, **keywords):
    layout = layout_of(name)
    X, y, weight = some_rows(loss, np.random.default_rng(1))
    learner = learner_of(layout, loss, penalty, block_size, **keywords)
    descent = descent_of(learner, rows_of(X, y, weight))
    twin = Twin(learner, layout, X, y, weight)
    for _ in range(N_SWEEPS):
        mean_loss, _ = descent.sweep(None)
        twin.sweep()
    p = learner.model.parameters
    assert np.allclose(p.bias[0, 0], twin.bias, atol=1e-8)
    assert np.allclose(p.linear[:, 0], twin.linear, atol=1e-8)
    assert np.allclose(p.table[:, 0], twin.table, atol=1e-8)
    assert np.allclose(p.weights[0], twin.weights, atol=1e-8)
    assert np.allclose(p.theta[0], twin.theta, atol=1e-8)
    values = [losses.value(loss, a, b) for a, b in zip(y, twin.scores(), strict=True)]
    assert mean_loss == pytest.approx(weight @ values / N_ROWS, rel=1e-8)


@pytest.fixture
def interpreted(monkeypatch):
    """Runs the sweeps as plain Python: compiling every combination would take minutes."""

    class Interpreted:
        def __getattr__(self, name):
            found = getattr(_sweep, name)
            return plain(found) if hasattr(found, "py_func") else found

    monkeypatch.setattr(_descent, "_sweep", Interpreted())


@pytest.mark.parametrize("block_size", [1, 2, 8])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", LAYOUTS)
def test_equals_the_slow_twin(interpreted, name, loss, penalty, block_size):
    assert_equal_to_twin(name, LOSSES[loss], penalty, block_size)


@pytest.mark.parametrize("block_size", [1, 2, 8])
@pytest.mark.parametrize("name", LAYOUTS)
def test_compiled_equals_the_slow_twin(name, block_size):
    assert_equal_to_twin(name, Squared(), "l2", block_size)


@pytest.mark.parametrize("name", ["order 2", "order 3", "augmented 3", "all-subsets"])
@pytest.mark.parametrize("block_size", [1, 8])
def test_weights_of_bases_equal_the_slow_twin(interpreted, name, block_size):
    for loss, penalty in itertools.product((Squared(), Logistic()), PENALTIES):
        assert_equal_to_twin(name, loss, penalty, block_size, weights=True)


def test_strengths_of_columns_equal_the_slow_twin():
    strengths = np.array([0.0, 1.0, 5.0, 0.2, 1.0, 30.0])
    for block_size in (1, 8):
        assert_equal_to_twin("order 3", Squared(), "l2", block_size, strengths=strengths)


def objectives(estimator, X, y, **fit):
    history = estimator.fit(X, y, **fit).history_["objective"]
    return np.array(history)


@pytest.mark.filterwarnings("ignore:All factors have shrunk")
@settings(max_examples=25)
@given(
    st.integers(0, 10_000),
    st.sampled_from([1, 3, 8]),
    st.sampled_from([
        {}, {"order": 3}, {"order": 4, "fit_lower": None}, {"kernel": "all-subsets"},
        {"order": 3, "fit_lower": "augment"}, {"fit_weights": True}, {"loss": "huber"},
        {"kernel": "inhomogeneous-anova", "order": 3, "fit_weights": True}, {"penalty": "l1"},
    ]),
    st.floats(0.0, 10.0),
)  # fmt: skip
def test_the_objective_never_rises(seed, block_size, settings_of_model, beta):
    random = np.random.default_rng(seed)
    X = random.normal(size=(40, 5)) * (random.random((40, 5)) < 0.6)
    y = random.normal(size=40) + X[:, 0] * X[:, 1]
    model = FMRegressor(
        solver="cd", block_size=block_size, beta=beta, alpha=0.1, max_iter=10, tol=0, rank=4,
        init_scale=0.3, random_state=seed, **settings_of_model,
    )  # fmt: skip
    path = objectives(model, X, y)
    assert np.all(np.diff(path) <= 1e-10 * path[0])
    classes = FMClassifier(
        solver="cd", block_size=block_size, beta=beta, max_iter=10, tol=0, rank=4, init_scale=0.3,
        random_state=seed, **{k: v for k, v in settings_of_model.items() if k != "loss"},
    )  # fmt: skip
    path = objectives(classes, X, y > 0)
    assert np.all(np.diff(path) <= 1e-10 * path[0])


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_gradient_is_zero_at_convergence(loss):
    """No step of a stochastic kind is left: every partial derivative of the objective vanishes."""
    random = np.random.default_rng(0)
    X, beta, alpha = random.normal(size=(60, 4)), 2.0, 0.5
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * random.normal(size=60)
    model = FMRegressor(
        solver="cd", loss=loss, rank=2, beta=beta, alpha=alpha, max_iter=3000, tol=0,
        random_state=0, init_scale=0.3,
    ).fit(X, y)  # fmt: skip
    learner = model._learners[0]
    p, rows = learner.model.parameters, model._solver_rows(
        model._check_labelled(X, y, None, reset=False)
    )[0]  # fmt: skip

    def objective():
        values = [
            losses.value(learner.settings.loss, a, b)
            for a, b in zip(rows.target, learner.model.scores(rows), strict=True)
        ]
        penalty = alpha / 2 * (p.linear[:, 0] ** 2).sum() + beta / 2 * (p.table[:, 0] ** 2).sum()
        return sum(values) + penalty

    for block in (p.bias[:, :1], p.linear[:, :1], p.table[:, 0]):
        for place in np.ndindex(block.shape):
            kept, step = block[place], 1e-5
            block[place] = kept + step
            above = objective()
            block[place] = kept - step
            below = objective()
            block[place] = kept
            assert abs(above - below) / (2 * step) < 1e-5


def test_order_one_is_ridge_regression():
    random = np.random.default_rng(0)
    X = random.normal(size=(50, 6))
    y = X @ random.normal(size=6) + 3.0
    ours = FMRegressor(order=1, solver="cd", alpha=2.0, max_iter=2000, tol=0).fit(X, y)
    ridge = Ridge(alpha=2.0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, ridge.coef_, rtol=1e-6)
    np.testing.assert_allclose(ours.intercept_, ridge.intercept_, rtol=1e-6)


def als_sweep(X, y, w0, w, V, alpha, beta):
    """Alternating least squares of a second-order machine, one parameter at a time."""

    def error():
        pairs = 0.5 * (((X @ V) ** 2) - (X**2) @ (V**2)).sum(axis=1)
        return y - (w0 + X @ w + pairs)

    w0 += error().mean()
    for j in range(X.shape[1]):
        h = X[:, j]
        w[j] = (h @ (error() + h * w[j])) / (h @ h + alpha)
    for f in range(V.shape[1]):
        for j in range(X.shape[1]):
            h = X[:, j] * (X @ V[:, f]) - V[j, f] * X[:, j] ** 2
            V[j, f] = (h @ (error() + h * V[j, f])) / (h @ h + beta)
    return w0


def test_blocks_of_one_are_alternating_least_squares():
    random = np.random.default_rng(4)
    X, y = random.normal(size=(30, 5)), random.normal(size=30)
    layout = lay_out(ANOVA(2), 2, 3, lower="explicit", linear=True, inhomogeneous=False)
    penalty = Penalties(L2(0.0), L2(0.7), L2(1.3), Box(1.0), L2(0.0))
    learner = CoordinateLearner.create(
        layout,
        Settings(Squared(), None, penalty, Switches(True, True, False, 2), np.full(3, 0.4), seed=1,
                 block_size=1),
        n_features=5, start=0.0, units=False, dtype=np.float64,
    )  # fmt: skip
    descent = descent_of(learner, rows_of(X, y))
    p = learner.model.parameters
    w0, w, V = float(p.bias[0, 0]), p.linear[:, 0].copy(), p.table[:, 0].copy()
    for _ in range(5):
        descent.sweep(None)
        w0 = als_sweep(X, y, w0, w, V, 0.7, 1.3)
    np.testing.assert_allclose(p.bias[0, 0], w0, atol=1e-10)
    np.testing.assert_allclose(p.linear[:, 0], w, atol=1e-10)
    np.testing.assert_allclose(p.table[:, 0], V, atol=1e-10)


class ExactTwin(Twin):
    """Takes no term out of a sum that it dominates."""

    def slopes(self, j, bases):
        others = np.delete(np.arange(len(self.table)), j)
        degree = len(self.theta)
        return np.stack([
            [x[j] * sum(np.prod(self.table[list(c), s] * x[list(c)])
                        for c in itertools.combinations(others, degree - 1)) for x in self.X]
            for s in bases
        ], axis=1)  # fmt: skip


@pytest.mark.parametrize("order", [3, 4, 5])
def test_a_dominating_term_costs_no_digits(order):
    """One term of 1e4 beside terms of 1e-3: the slopes are those of the enumeration."""
    layout = lay_out(ANOVA(2), order, 2, lower=None, linear=True, inhomogeneous=False)
    random = np.random.default_rng(0)
    X, y = random.normal(size=(8, 7)), random.normal(size=8)
    for block_size in (1, 8):
        learner = CoordinateLearner.create(
            layout,
            Settings(Squared(), None, Penalties(L2(0.0), L2(0.1), L2(1.0), Box(1.0), L2(0.0)),
                     Switches(True, True, False, order), np.full(2, 1e-3), seed=1,
                     block_size=block_size),
            n_features=7, start=0.0, units=False, dtype=np.float64,
        )  # fmt: skip
        learner.set_rows(rows_of(X, y))
        learner.model.parameters.table[3] = 1e4
        twin = ExactTwin(learner, layout, X, y, np.ones(8))
        descent_of(learner, rows_of(X, y)).sweep(None)
        twin.sweep()
        table = learner.model.parameters.table[:, 0]
        np.testing.assert_allclose(table, twin.table, rtol=1e-6, atol=1e-12)


def test_repeated_rows_are_weights():
    random = np.random.default_rng(2)
    X, y = sp.random(50, 8, 0.4, "csr", rng=random), random.normal(size=50)
    counts = random.integers(0, 4, size=50)
    again = np.repeat(np.arange(50), counts)
    settings_ = {"solver": "cd", "max_iter": 20, "tol": 0, "random_state": 0, "beta": 1.0}
    weighted = FMRegressor(**settings_).fit(X, y, sample_weight=counts)
    repeated = FMRegressor(**settings_).fit(X[again], y[again])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-8)


@pytest.mark.filterwarnings("ignore:All factors have shrunk")
def test_columns_of_nothing_and_no_penalty():
    """Empty columns without penalty, a constant target: no step has a curvature to divide by."""
    X = np.zeros((20, 4))
    X[:, 0] = np.arange(20) % 2
    model = FMRegressor(solver="cd", alpha=0.0, beta=0.0, random_state=0)
    assert np.isfinite(model.fit(X, np.arange(20.0)).predict(X)).all()
    assert np.allclose(model.fit(X, np.full(20, 3.0)).predict(X), 3.0)


def test_single_precision_is_learnt_in_double():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 5)).astype(np.float32)
    y = X[:, 0] * X[:, 1]
    settings_ = {"solver": "cd", "max_iter": 30, "tol": 0, "random_state": 0, "beta": 0.1}
    single = FMRegressor(**settings_).fit(X, y)
    double = FMRegressor(**settings_).fit(X.astype(np.float64), y)
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.predict(X), double.predict(X), atol=1e-4)


def test_warm_start_goes_on():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 5))
    y = X[:, 0] * X[:, 1]
    settings_ = {"solver": "cd", "tol": 0, "random_state": 0}
    twice = FMRegressor(max_iter=4, warm_start=True, **settings_)
    twice.fit(X, y).fit(X, y)
    once = FMRegressor(max_iter=8, **settings_).fit(X, y)
    np.testing.assert_allclose(twice.predict(X), once.predict(X), rtol=1e-9)
    assert len(twice.history_["objective"]) == 8


@pytest.mark.parametrize("loss", ["poisson", "quantile"])
def test_losses_without_a_bound_are_refused(loss):
    with pytest.raises(ValueError, match=rf"solver='cd' .*{loss}"):
        FMRegressor(solver="cd", loss=loss).fit(np.ones((5, 2)), np.arange(5))


def test_kernels_that_are_not_affine_are_refused():
    with pytest.raises(ValueError, match=r"solver='cd' .*polynomial"):
        FMRegressor(solver="cd", kernel="polynomial").fit(np.ones((5, 2)), np.arange(5))


def test_there_is_no_partial_fit():
    assert not hasattr(FMRegressor(solver="cd"), "partial_fit")
    assert hasattr(FMRegressor(), "partial_fit")


def test_collapsed_factors_are_told():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(50, 4)), random.normal(size=50)
    with pytest.warns(ConvergenceWarning, match="no interactions: lower beta"):
        FMRegressor(solver="cd", beta=1e4, max_iter=50, random_state=0).fit(X, y)


def test_a_saved_model_goes_on(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 5))
    y = X[:, 0] * X[:, 1]
    model = FMRegressor(solver="cd", beta=0.5, max_iter=5, warm_start=True, random_state=0).fit(
        X, y
    )
    save_model(model, tmp_path / "model.polyfm")
    loaded = load_model(tmp_path / "model.polyfm")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.fit(X, y).predict(X), model.fit(X, y).predict(X))


@pytest.mark.parametrize("solver", ["adagrad", "cd", "lbfgs"])
def test_signs_stay(solver):
    """A difference of squares needs a basis of weight -1; without signs it cannot be learnt."""
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 3))
    y = -(X[:, 0] * X[:, 1] + X[:, 0] * X[:, 2] + X[:, 1] * X[:, 2])
    settings_ = {
        "solver": solver, "rank": 2, "fit_linear": False, "beta": 0.01, "alpha": 0.0,
        "max_iter": 200, "early_stopping": False, "random_state": 0, "init_scale": 0.3,
    }  # fmt: skip
    signed = FMRegressor(fit_weights="signs", **settings_).fit(X, y)
    np.testing.assert_array_equal(np.sign(signed.weights_[2]), [1, -1])
    np.testing.assert_allclose(np.abs(signed.weights_[2]), np.abs(signed.weights_[2][0]))
    assert signed.score(X, y) > 0.99


def test_a_fitted_model_holds_no_rows():
    """Neither the data by columns nor the rows' records outlive the training."""
    random = np.random.default_rng(0)
    X = random.normal(size=(5000, 4))
    model = FMRegressor(solver="cd", max_iter=1, random_state=0).fit(X, X[:, 0] * X[:, 1])
    held = [vars(learner) for learner in model._learners]
    assert all(set(names) == {f.name for f in fields(CoordinateLearner)} for names in held)
    assert len(pickle.dumps(model)) < 5000


def of_one_basis(n=300, *, n_classes=1):
    """Rows whose interactions are those of a single basis for each class."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 5))
    P = random.normal(size=(5, n_classes))
    # The sum over pairs of distinct features.
    return X, ((X @ P) ** 2 - X**2 @ P**2) / 2


SPARE = {
    "solver": "cd", "rank": 6, "fit_weights": True, "beta": 0.5, "alpha": 0.1, "max_iter": 150,
    "early_stopping": False, "random_state": 0, "init_scale": 0.3, "tol": 0,
}  # fmt: skip


def test_bases_of_no_weight_are_dropped(monkeypatch, tmp_path):
    X, scores = of_one_basis()
    y = scores[:, 0]
    model = FMRegressor(**SPARE).fit(X, y)
    n_kept = model.weights_[2].size
    assert 1 <= n_kept < 6
    assert model.factors_[2].shape == (5, n_kept)
    assert np.all(model.weights_[2] != 0)
    save_model(model, tmp_path / "m.polyfm")
    np.testing.assert_array_equal(load_model(tmp_path / "m.polyfm").predict(X), model.predict(X))
    with monkeypatch.context() as patch:
        patch.setattr(CoordinateLearner, "tidied", lambda learners, layout: (learners, layout))
        whole = FMRegressor(**SPARE).fit(X, y)
    assert whole.weights_[2].size == 6
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-12)


def test_training_goes_on_without_the_dropped_bases():
    X, scores = of_one_basis()
    model = FMRegressor(**SPARE, warm_start=True).fit(X, scores[:, 0])
    n_kept, before = model.weights_[2].size, model.history_["objective"][-1]
    wider = np.vstack([X, np.eye(5)])
    model.set_params(max_iter=20).fit(wider, np.append(scores[:, 0], np.zeros(5)))
    assert model.weights_[2].size <= n_kept
    model.fit(X, scores[:, 0])
    assert model.history_["objective"][-1] <= before * 1.01


def test_a_basis_of_use_to_one_class_stays_in_all():
    X, scores = of_one_basis(n_classes=3)
    model = FMClassifier(**{**SPARE, "loss": "squared_hinge"}).fit(X, scores.argmax(axis=1))
    weights = model.weights_[2]
    assert weights.shape[0] == 3
    assert np.all(np.any(weights != 0, axis=0))
    assert model.factors_[2].shape == (3, 5, weights.shape[1])
    assert model.score(X, scores.argmax(axis=1)) > 0.9
