"""The full-batch solver: its gradient, its optimum, and that training treats it like the others."""

import itertools
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, Ridge

import polyfm
from polyfm import DivergenceError, FMClassifier, FMRegressor
from polyfm.kernels import ANOVA, AllSubsets, Polynomial
from polyfm.losses import Huber, Logistic, Poisson, Squared, SquaredHinge
from polyfm.losses import contract as losses
from polyfm.models.layout import lay_out
from polyfm.penalties import L2, Box
from polyfm.solvers import _accumulate
from polyfm.solvers._accumulate import Accumulator, NotFiniteError
from polyfm.solvers._epoch import Penalties, Switches, learn_rows
from polyfm.solvers.learner import Settings
from polyfm.solvers.quasi_newton import QuasiNewtonLearner, _Descent
from polyfm.testing import plain
from polyfm.testing._models import enumerated_scores, rows_of

N_ROWS, N_FEATURES, RANK = 9, 5, 2
KERNELS = {
    # kernel, order, fit_lower, inhomogeneous, learns lambda
    "anova 1": (ANOVA(), 1, "explicit", False, False),
    "anova 2, lambda": (ANOVA(), 2, "explicit", False, True),
    "anova 3 explicit": (ANOVA(), 3, "explicit", False, False),
    "anova 4 augmented, lambda": (ANOVA(), 4, "augment", False, True),
    "anova 3 alone": (ANOVA(), 3, None, False, False),
    "inhomogeneous anova 3, theta": (ANOVA(), 3, "explicit", True, False),
    "polynomial 2, lambda": (Polynomial(), 2, "explicit", False, True),
    "polynomial 3 augmented": (Polynomial(), 3, "augment", False, False),
    "all-subsets, lambda": (AllSubsets(), 2, None, False, True),
}
LOSSES = {
    "squared": Squared(),
    "huber": Huber(0.5),
    "poisson": Poisson(),
    "logistic": Logistic(),
    "squared hinge": SquaredHinge(),
}
INPUTS = ("dense", "zeros", "dominating value", "column never seen")


def values_of(kind, random):
    X = random.normal(size=(N_ROWS, N_FEATURES))
    if kind == "zeros":
        X[random.random(X.shape) < 0.5] = 0.0
        X[4] = 0.0
    elif kind == "dominating value":
        X[2, 1] = 1e4
    elif kind == "column never seen":
        X[:, 2] = 0.0
    return X


class Problem:
    """A learner with random weights, and its objective from the definitions."""

    def __init__(self, kernel, loss, kind, strengths=False):
        random = np.random.default_rng(3)
        spec, order, lower, inhomogeneous, learns_weights = KERNELS[kernel]
        layout = lay_out(spec, order, RANK, lower=lower, linear=True, inhomogeneous=inhomogeneous)
        m = layout.degrees.shape[0]
        self.of_linear, self.of_factors = random.uniform(0.0, 3.0, (2, N_FEATURES))
        self.loss = LOSSES[loss]
        settings = Settings(
            self.loss,
            None,
            Penalties(L2(0.0), L2(0.3), L2(0.7), Box(1.0), L2(0.2)),
            Switches(True, True, learns_weights, 2 if inhomogeneous else m),
            np.full(layout.rank, 0.5),
            seed=0,
            linear_strengths=self.of_linear if strengths else None,
            factor_strengths=self.of_factors if strengths else None,
        )
        if not strengths:
            self.of_linear[:], self.of_factors[:] = 1.0, 1.0
        self.X = values_of(kind, random)
        y = random.normal(size=N_ROWS)
        if loss in ("logistic", "squared hinge"):
            y = np.where(y > 0, 1.0, -1.0)
        self.y = np.floor(np.abs(y) * 2) if loss == "poisson" else y
        self.weight = random.uniform(0.5, 1.5, N_ROWS)
        self.rows = rows_of(self.X, self.y, self.weight)
        self.learner = QuasiNewtonLearner.create(
            layout, settings, n_features=N_FEATURES, start=0.1, units=True, dtype=np.float64
        )
        self.learner.set_rows(self.rows)
        p = self.learner.model.parameters
        p.linear[self.met, 0] = random.normal(size=len(self.met)) * p.linear[self.met, 2]
        if learns_weights:
            p.weights[0] = random.uniform(-0.9, 0.9, p.weights.shape[1])
        if inhomogeneous:
            p.theta[0, 2:] = random.normal(size=m - 2)
        accumulator = Accumulator(
            self.learner.model, settings.switches, self.rows, self.met, n_jobs=1
        )
        training = SimpleNamespace(learners=[self.learner], rows=[self.rows], report=lambda k: None)
        self.accumulator, self.descent = accumulator, _Descent(training, accumulator)
        self.start = accumulator.read(self.learner.model) / self.descent._scale

    @property
    def met(self):
        return np.flatnonzero(self.X.any(axis=0))

    def objective(self, variables):
        """Return the objective by enumeration."""
        model = self.learner.model
        self.accumulator.write(variables * self.descent._scale, model)
        scores = enumerated_scores(model, self.X)
        total = sum(
            s * losses.value(self.loss, y, f)
            for s, y, f in zip(self.weight, self.y, scores, strict=True)
        )
        p, switches = model.parameters, self.learner.settings.switches
        of_table = np.append(self.of_factors, np.ones(model.n_dummies))[:, np.newaxis]
        total += 0.5 * 0.3 * np.sum(self.of_linear * p.linear[:, 0] ** 2)
        total += 0.5 * 0.7 * np.sum(of_table * p.table[:, 0] ** 2)
        return total + 0.5 * 0.2 * np.sum(p.theta[0, switches.theta_from :] ** 2)

    def assert_gradient_is_right(self):
        value, gradient = self.descent._evaluate(self.start)
        assert np.isclose(value, self.objective(self.start), rtol=1e-12)
        step = 1e-5
        for i, unit in enumerate(step * np.eye(len(self.start))):
            rise = self.objective(self.start + unit) - self.objective(self.start - unit)
            assert np.isclose(gradient[i], rise / (2 * step), rtol=1e-5, atol=1e-5 * abs(value)), i


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_of_every_kernel_and_loss(kernel, loss, monkeypatch):
    # Compiling takes seconds for each: some are compiled below, all run in plain Python.
    monkeypatch.setattr(_accumulate, "learn_rows", plain(learn_rows))
    kind = INPUTS[(list(KERNELS).index(kernel) + list(LOSSES).index(loss)) % len(INPUTS)]
    Problem(kernel, loss, kind, strengths=kind == "zeros").assert_gradient_is_right()


@pytest.mark.parametrize(
    ("kernel", "loss"),
    [
        ("anova 3 explicit", "squared"),
        ("anova 4 augmented, lambda", "logistic"),
        ("inhomogeneous anova 3, theta", "squared"),
        ("all-subsets, lambda", "squared"),
        ("polynomial 3 augmented", "squared"),
    ],
)
def test_compiled_gradient(kernel, loss):
    for kind in INPUTS:
        Problem(kernel, loss, kind).assert_gradient_is_right()


def test_gradient_covers_everything_that_is_learnt():
    problem = Problem("anova 2, lambda", "squared", "column never seen")
    # Bias, four linear weights, two basis weights, four rows of two factors.
    assert len(problem.start) == 1 + 4 + 2 + 4 * 2


@pytest.fixture
def table(random):
    X = random.normal(size=(150, 5))
    X[random.random(X.shape) < 0.2] = 0.0
    return X, 1.0 + 2.0 * X[:, 0] - X[:, 3] + 3.0 * X[:, 1] * X[:, 2] + random.normal(size=150)


def regressor(**changes):
    given = {"solver": "lbfgs", "random_state": 0, "beta": 1.0, "tol": 0, "early_stopping": False}
    return FMRegressor(**given | changes)


def classifier(**changes):
    given = {"solver": "lbfgs", "random_state": 0, "beta": 1.0, "tol": 0, "early_stopping": False}
    return FMClassifier(**given | changes)


MODELS = {
    "order 2": {"order": 2},
    "order 3": {"order": 3, "rank": 3},
    "weights": {"order": 2, "fit_weights": True},
    "theta": {"order": 3, "rank": 3, "kernel": "inhomogeneous-anova", "fit_weights": True},
    "all-subsets": {"kernel": "all-subsets", "rank": 3},
    "polynomial": {"kernel": "polynomial", "order": 2, "rank": 3},
    "no bias, no linear term": {"fit_intercept": False, "fit_linear": False, "order": 2},
}


@pytest.mark.parametrize("model", MODELS)
def test_objective_falls_to_a_stationary_point(model, table):
    X, y = table
    fitted = regressor(max_iter=400, **MODELS[model]).fit(X, y)
    objective = np.array(fitted.history_["objective"])
    assert len(objective) == fitted.n_iter_ > 10
    assert np.all(np.diff(objective) <= 0)
    assert objective[-1] < 0.7 * objective[0]
    assert steepness(fitted, X, y) < 1e-4


def steepness(fitted, X, y):
    """Return the largest entry of the projected gradient of a fitted regressor's objective."""
    learner = fitted._learners[0]
    target = fitted._scale.to_scaled(y)
    rows = rows_of(X, target, np.ones(len(y)))
    switches = learner.settings.switches
    with Accumulator(learner.model, switches, rows, np.arange(X.shape[1]), 1) as accumulator:
        training = SimpleNamespace(learners=[learner], rows=[rows], report=lambda k: None)
        descent = _Descent(training, accumulator)
        variables = accumulator.read(learner.model) / descent._scale
        gradient = descent._evaluate(variables)[1]
        bounds = descent._bounds()
        if bounds is not None:
            gradient = variables - np.clip(variables - gradient, bounds.lb, bounds.ub)
    return np.abs(gradient).max()


def test_basis_weights_stay_in_their_bounds(table):
    X, y = table
    # Without a penalty of the factors, nothing but the bounds keeps weights from growing.
    fitted = regressor(fit_weights=True, beta=0.0, max_iter=50).fit(X, y)
    lam = fitted._learners[0].model.parameters.weights[0]
    assert np.all(np.abs(lam) <= 1.0)
    assert len(np.unique(lam)) > 2


def test_order_1_is_ridge_regression(table):
    X, y = table
    for alpha in (0.1, 30.0):
        fitted = regressor(order=1, alpha=alpha, max_iter=200).fit(X, y)
        ridge = Ridge(alpha=alpha, tol=1e-12).fit(X, y)
        assert np.allclose(fitted.coef_, ridge.coef_, rtol=1e-6, atol=1e-6)
        assert np.isclose(fitted.intercept_, ridge.intercept_, rtol=1e-6)


def test_a_penalty_for_each_column(table):
    X, y = table
    alpha = np.array([0.1, 3.0, 50.0, 1.0, 10.0])
    fitted = regressor(order=1, alpha=alpha, max_iter=200).fit(X, y)
    ridge = Ridge(alpha=1.0, tol=1e-12).fit(X / np.sqrt(alpha), y)
    assert np.allclose(fitted.coef_, ridge.coef_ / np.sqrt(alpha), rtol=1e-6, atol=1e-6)


def test_order_1_is_logistic_regression(table):
    X, y = table
    for alpha in (0.5, 10.0):
        fitted = classifier(order=1, alpha=alpha, max_iter=200).fit(X, y > 1)
        logistic = LogisticRegression(C=1.0 / alpha, tol=1e-10, max_iter=1000).fit(X, y > 1)
        assert np.allclose(fitted.coef_, logistic.coef_[0], rtol=1e-5, atol=1e-5)
        assert np.isclose(fitted.intercept_, logistic.intercept_[0], rtol=1e-5, atol=1e-5)


def test_several_classes_reach_the_optimum_of_each(table):
    X, y = table
    labels = np.digitize(y, [-1.0, 2.0])
    fitted = classifier(order=1, max_iter=300).fit(X, labels)
    assert len(fitted.history_["loss"]) == fitted.n_iter_
    for k in range(3):
        alone = classifier(order=1, max_iter=300).fit(X, labels == k)
        assert np.allclose(fitted.coef_[k], alone.coef_, rtol=1e-5, atol=1e-6)
        assert np.isclose(fitted.intercept_[k], alone.intercept_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_repeated_rows_are_weights(order, table, random):
    X, y = table
    weight = random.integers(0, 4, len(y))
    weighted = regressor(order=order, max_iter=25, beta="auto").fit(X, y, sample_weight=weight)
    repeated = regressor(order=order, max_iter=25, beta="auto").fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    assert np.allclose(weighted.predict(X), repeated.predict(X), rtol=1e-8, atol=1e-8)


def test_sparse_is_dense(table):
    X, y = table
    dense, sparse = regressor(max_iter=20).fit(X, y), regressor(max_iter=20).fit(sp.csc_array(X), y)
    assert np.array_equal(dense.predict(X), sparse.predict(X))


def test_warm_start_goes_on(table):
    X, y = table
    model = regressor(max_iter=5, warm_start=True).fit(X, y)
    before = model.history_["objective"][-1]
    model.fit(X, y)
    objective = model.history_["objective"]
    assert len(objective) == 10 and model.n_iter_ == 5
    assert np.all(np.diff(objective) <= 0) and objective[-1] < 0.9 * before


def test_a_fit_from_the_optimum_is_one_epoch(table):
    X, y = table
    model = regressor(order=1, max_iter=500, warm_start=True).fit(X, y)
    coef = model.coef_.copy()
    for _ in range(3):
        model.fit(X, y)
    assert model.n_iter_ <= 3
    assert np.allclose(model.coef_, coef, rtol=1e-9)


def test_single_precision(table):
    X, y = table
    double = regressor(max_iter=30).fit(X, y)
    single = regressor(max_iter=30).fit(X.astype(np.float32), y)
    assert single.factors_[2].dtype == single.coef_.dtype == np.float32
    assert np.allclose(double.predict(X), single.predict(X.astype(np.float32)), atol=1e-3)
    # The gradient is exact enough to go on to where rounding of single precision would end it.
    assert np.isclose(double.history_["objective"][-1], single.history_["objective"][-1], rtol=1e-5)


def test_columns_of_no_row_have_no_part(table):
    X, y = table
    wide = np.zeros((len(y), 9))
    wide[:, [1, 2, 4, 5, 8]] = X
    narrow, padded = regressor(max_iter=20).fit(X, y), regressor(max_iter=20).fit(wide, y)
    assert not padded.coef_[[0, 3, 6, 7]].any()
    assert not padded.factors_[2][[0, 3, 6, 7]].any()
    assert np.count_nonzero(padded.factors_[2]) == narrow.factors_[2].size


def test_columns_of_no_row_keep_what_they_have(table):
    X, y = table
    model = regressor(max_iter=10, warm_start=True).fit(X, y)
    kept, moved = model.factors_[2][4].copy(), model.factors_[2][1].copy()
    X = X.copy()
    X[:, 4] = 0.0
    model.fit(X, y)
    assert np.array_equal(model.factors_[2][4], kept)
    assert not np.allclose(model.factors_[2][1], moved)


def test_early_stopping_keeps_the_best_iteration(random):
    X = random.normal(size=(60, 30))
    y = X[:, 0] + random.normal(size=60)
    model = regressor(early_stopping=True, beta=0.0, alpha=0.0, max_iter=60, n_iter_no_change=5)
    X_val = random.normal(size=(200, 30))
    y_val = X_val[:, 0]
    model.fit(X, y, X_val=X_val, y_val=y_val)
    values = model.history_["validation_loss"]
    assert model.n_iter_ < 60
    assert model.best_iteration_ == 1 + np.argmin(values) < model.n_iter_
    loss = 0.5 * np.mean((model.predict(X_val) - y_val) ** 2)
    assert np.isclose(loss, model.best_score_, rtol=1e-9)


def test_tol_ends_training(table):
    X, y = table
    loose, tight = regressor(tol=1e-2, max_iter=200), regressor(tol=1e-6, max_iter=200)
    assert loose.fit(X, y).n_iter_ < tight.fit(X, y).n_iter_ < 200


def test_threads_change_nothing_but_rounding(random):
    X = sp.random_array((5000, 40), density=0.1, rng=random, format="csr")
    y = X @ random.normal(size=40) + random.normal(size=5000)
    one, two, again = (regressor(n_jobs=n, max_iter=8).fit(X, y).predict(X) for n in (1, 2, 2))
    assert np.array_equal(two, again)
    assert np.allclose(one, two, rtol=1e-9, atol=1e-9)


def test_slices_change_nothing(table, monkeypatch):
    X, y = table
    at_once = regressor(max_iter=8).fit(X, y).predict(X)
    monkeypatch.setattr(_accumulate, "_CELLS_PER_SLICE", 1)
    assert np.allclose(regressor(max_iter=8).fit(X, y).predict(X), at_once, rtol=1e-10)


def test_an_interrupt_leaves_the_last_iterate(table, monkeypatch):
    X, y = table
    wanted = regressor(max_iter=4).fit(X, y)
    n_passes = round(wanted.t_ / len(y))
    work, calls = Accumulator.loss_and_gradient, itertools.count()

    def interrupted(self, *args):
        if next(calls) > n_passes:
            raise KeyboardInterrupt
        return work(self, *args)

    monkeypatch.setattr(Accumulator, "loss_and_gradient", interrupted)
    model = regressor(max_iter=50)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert 4 <= model.n_iter_ <= 5
    assert len(model.history_["loss"]) == model.n_iter_
    rest = regressor(max_iter=model.n_iter_)
    monkeypatch.undo()
    assert np.array_equal(model.predict(X), rest.fit(X, y).predict(X))


def test_steps_that_go_too_far_are_taken_back(random):
    X = np.abs(random.normal(size=(80, 3))) * 1e3
    y = random.poisson(np.exp(X[:, 0] / 1e3))
    model = regressor(loss="poisson", max_iter=60, alpha=1e-3).fit(X, y)
    objective = model.history_["objective"]
    assert np.all(np.diff(objective) <= 0) and np.isfinite(objective).all()
    assert np.corrcoef(model.predict(X), np.exp(X[:, 0] / 1e3))[0, 1] > 0.9


def test_trial_steps_that_are_not_finite_are_shortened(table, monkeypatch):
    X, y = table
    wanted = regressor(order=1, max_iter=100).fit(X, y)
    work, calls = Accumulator.loss_and_gradient, itertools.count()

    def sometimes(self, *args):
        if next(calls) in (1, 2, 7):
            raise NotFiniteError(0)
        return work(self, *args)

    monkeypatch.setattr(Accumulator, "loss_and_gradient", sometimes)
    model = regressor(order=1, max_iter=100).fit(X, y)
    assert next(calls) > 8
    assert np.all(np.diff(model.history_["objective"]) <= 0)
    assert np.allclose(model.coef_, wanted.coef_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("order", [2, 3])
def test_interactions_are_found_where_no_lower_degree_helps(order, random):
    X = random.choice([-1.0, 1.0], size=(400, 6))
    y = X[:, :order].prod(axis=1)
    model = FMRegressor(solver="lbfgs", order=order, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.99


def test_a_start_that_is_not_finite_is_told(table):
    X, y = table
    model = regressor(init_scale=1e200)
    with pytest.raises(DivergenceError, match=r"epoch 1.* not a finite number at the start"):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("target", [0.0, 7.5])
def test_nothing_to_learn(target):
    X = np.eye(6)
    model = regressor(order=1).fit(X, np.full(6, target))
    assert model.n_iter_ == 1
    assert np.allclose(model.predict(X), target)
    empty = regressor(order=1, fit_linear=False, fit_intercept=False).fit(X, np.arange(6.0))
    assert not empty.predict(X).any() and empty.n_iter_ == 1


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_penalties_with_corners_are_refused(penalty, table):
    X, y = table
    with pytest.raises(ValueError, match="solver='lbfgs' needs a penalty without corners"):
        regressor(penalty=penalty).fit(X, y)
    model = regressor(max_iter=1, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="without corners"):
        model.set_params(penalty=penalty).fit(X, y)
    assert model.n_iter_ == 1


def test_losses_with_corners_are_refused(table):
    X, y = table
    with pytest.raises(ValueError, match=r"loss without corners.*loss='huber'"):
        regressor(loss="quantile").fit(X, y)


@pytest.mark.parametrize("make", [regressor, classifier])
def test_other_smooth_losses(make, table):
    X, y = table
    loss, target = ("huber", y) if make is regressor else ("squared_hinge", y > 1)
    model = make(loss=loss, max_iter=60).fit(X, target)
    assert np.all(np.diff(model.history_["objective"]) <= 0)
    assert model.score(X, target) > 0.75


def test_it_is_no_online_solver():
    assert not hasattr(regressor(), "partial_fit")
    assert not hasattr(classifier(), "partial_fit")


@pytest.mark.parametrize("include_state", [True, False])
def test_model_files(include_state, table, tmp_path):
    X, y = table
    model = classifier(max_iter=5, warm_start=True).fit(X, np.digitize(y, [-1.0, 2.0]))
    polyfm.save_model(model, tmp_path / "m", include_state=include_state)
    loaded = polyfm.load_model(tmp_path / "m")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    if include_state:
        on = [m.fit(X, np.digitize(y, [-1.0, 2.0])).predict_proba(X) for m in (model, loaded)]
        assert np.array_equal(*on)
    else:
        with pytest.raises(ValueError, match="include_state=False"):
            loaded.fit(X, np.digitize(y, [-1.0, 2.0]))


def test_pickle(table):
    X, y = table
    model = regressor(max_iter=5).fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
