"""Coordinate descent on lifted models against a readable twin, and its optimality."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from lifted_twin import LOSSES, SlowLifted

from polyfm.data.rows import as_rows
from polyfm.kernels import ANOVA, Polynomial
from polyfm.losses import Huber, Logistic, Squared, SquaredHinge
from polyfm.models.layout import lay_out
from polyfm.penalties import L2
from polyfm.solvers._by_column import columns_of
from polyfm.solvers._epoch import Penalties, Switches
from polyfm.solvers.learner import Settings
from polyfm.solvers.lifted_descent import Descent, LiftedLearner

SPECS = {
    "squared": Squared(),
    "huber": Huber(0.7),
    "logistic": Logistic(),
    "squared_hinge": SquaredHinge(),
}
KERNELS = {"polynomial": Polynomial(), "anova": ANOVA()}


def problem(random, loss, n=12, d=5):
    X = np.where(random.random((n, d)) < 0.6, random.normal(size=(n, d)), 0.0)
    X[:, 2] = 0.0
    y = random.normal(size=n)
    if loss in ("logistic", "squared_hinge"):
        y = np.where(y > 0, 1.0, -1.0)
    return X, y, random.uniform(0.5, 2.0, size=n)


def start(
    X, y, weight, *, kernel, degree, loss, rank=2, alpha=0.3, beta=0.2, lower="augment",
    linear=True, scale=0.5, seed=3, intercept=True, strengths=(None, None),
):  # fmt: skip
    layout = lay_out(KERNELS[kernel], degree, rank, lower=lower, linear=linear, inhomogeneous=False)
    settings = Settings(
        SPECS[loss],
        None,
        Penalties(L2(0.0), L2(alpha), L2(beta), L2(0.0), L2(0.0)),
        Switches(intercept, linear, False, degree),
        np.full(layout.rank, scale),
        seed,
        linear_strengths=strengths[0],
        factor_strengths=strengths[1],
    )
    learner = LiftedLearner.create(
        layout, settings, n_features=X.shape[1], start=0.0, units=True, dtype=X.dtype
    )
    rows = as_rows(sp.csr_matrix(X), None, weight).with_target(y)
    learner.set_rows(rows)
    columns = columns_of(rows, X.shape[1], ones=True)
    return learner, rows, Descent(learner, rows, columns, np.empty((len(y), learner.n_cells)))


def slow_copy(learner, kernel):
    p, d = learner.model.parameters, learner.model.n_features
    # (r, m, q + d), the dummies first.
    factors = np.concatenate([p.table[d:], p.table[:d]]).transpose(1, 2, 0)
    return SlowLifted(kernel, learner.model.n_dummies, float(p.bias[0]), p.linear, factors)


def assert_same(learner, slow, tolerance=1e-8):
    p, d, q = learner.model.parameters, learner.model.n_features, learner.model.n_dummies
    np.testing.assert_allclose(p.bias[0], slow.bias, atol=tolerance)
    np.testing.assert_allclose(p.linear, slow.linear, atol=tolerance)
    table = slow.factors.transpose(2, 0, 1)
    np.testing.assert_allclose(p.table[:d], table[q:], atol=tolerance)
    np.testing.assert_allclose(p.table[d:], table[:q], atol=tolerance)


@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("loss", LOSSES)
def test_five_sweeps_equal_the_slow_twin(random, loss, kernel, degree):
    X, y, weight = problem(random, loss, d=5 if degree < 4 else 4)
    learner, _, descent = start(X, y, weight, kernel=kernel, degree=degree, loss=loss)
    slow = slow_copy(learner, kernel)
    for _ in range(5):
        mean_loss, mean_objective = descent.epoch()
        slow.sweep(X, y, weight, loss, 0.3, 0.2)
        expected = slow.objective(X, y, weight, loss, 0.3, 0.2)
        assert mean_objective * len(y) == pytest.approx(expected, rel=1e-9)
        assert mean_loss < mean_objective
    assert_same(learner, slow)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("lower", "linear", "intercept"), [(None, True, False), ("augment", False, True)]
)
def test_parts_of_the_model_that_are_switched_off_stay_so(random, kernel, lower, linear, intercept):
    X, y, weight = problem(random, "squared")
    learner, _, descent = start(
        X, y, weight, kernel=kernel, degree=3, loss="squared", lower=lower, linear=linear,
        intercept=intercept,
    )  # fmt: skip
    n_dummies = {"polynomial": 1, "anova": 1 if linear else 2}[kernel] if lower else 0
    assert learner.model.n_dummies == n_dummies
    slow = slow_copy(learner, kernel)
    bias = slow.bias
    for _ in range(3):
        descent.epoch()
        slow.sweep(X, y, weight, "squared", 0.3, 0.2, fit_intercept=intercept, fit_linear=linear)
    assert_same(learner, slow)
    assert intercept or learner.model.parameters.bias[0] == bias
    assert linear or not learner.model.parameters.linear.any()


def test_penalties_per_column(random):
    X, y, weight = problem(random, "squared")
    strengths = (np.array([0.0, 1.0, 2.0, 5.0, 1e6]), np.array([1e6, 1.0, 3.0, 0.0, 1.0]))
    learner, _, descent = start(
        X, y, weight, kernel="polynomial", degree=2, loss="squared", rank=1, strengths=strengths
    )
    for _ in range(1500):
        descent.epoch()
    p = learner.model.parameters
    assert abs(p.linear[4]) < 1e-5 < abs(p.linear[0])
    assert np.abs(p.table[0]).max() < 1e-5 < np.abs(p.table[3]).max()
    assert_optimal(learner, X, y, weight, "squared", 0.3 * strengths[0], 0.2 * strengths[1])


def assert_optimal(learner, X, y, weight, loss, alphas, betas):
    """Check that finite differences of the objective vanish along every coordinate."""
    p, d = learner.model.parameters, learner.model.n_features
    rows = as_rows(sp.csr_matrix(X), None, weight)
    value = LOSSES[loss][0]
    all_betas = np.concatenate([betas, np.full(learner.model.n_dummies, 0.2)])

    def objective():
        scores = learner.model.scores(rows)
        data = sum(w * value(t, s) for w, t, s in zip(weight, y, scores, strict=True))
        squares = (p.table**2).sum(axis=(1, 2))
        return data + 0.5 * (alphas @ p.linear**2) + 0.5 * (all_betas @ squares)

    for block in (p.bias, p.linear, p.table):
        for place in np.ndindex(block.shape):
            if block is not p.bias and place[0] < d and not X[:, place[0]].any():
                continue
            kept = block[place]
            ends = []
            for step in (1e-5, -1e-5):
                block[place] = kept + step
                ends.append(objective())
            block[place] = kept
            assert abs(ends[0] - ends[1]) / 2e-5 < 1e-4


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_is_zero_at_convergence(random, loss, kernel):
    X, _, weight = problem(random, loss, n=60)
    # A planted term keeps the factors away from 0, where convergence is slow.
    signal = 2.0 * X[:, 0] * X[:, 1] + X[:, 3] * X[:, 4]
    y = signal if loss in ("squared", "huber") else np.where(signal > 0.1, 1.0, -1.0)
    learner, _, descent = start(
        X, y, weight, kernel=kernel, degree=2, loss=loss, rank=1, lower=None, alpha=1.0, beta=1.0
    )
    for _ in range(1500):
        descent.epoch()
    assert np.abs(learner.model.parameters.table).max() > 0.1
    assert_optimal(learner, X, y, weight, loss, np.ones(5), np.ones(5))


@given(
    seed=st.integers(0, 2**20),
    kernel=st.sampled_from(sorted(KERNELS)),
    loss=st.sampled_from(sorted(LOSSES)),
    degree=st.integers(2, 5),
    scale=st.sampled_from([1e-3, 0.3, 3.0]),
    beta=st.sampled_from([0.0, 0.1, 10.0]),
    size=st.sampled_from([1e-3, 1.0, 30.0]),
)
def test_objective_never_rises(seed, kernel, loss, degree, scale, beta, size):
    random = np.random.default_rng(seed)
    X, y, weight = problem(random, loss, n=15, d=6)
    X[:, 0] *= size
    _, _, descent = start(
        X, y, weight, kernel=kernel, degree=degree, loss=loss, alpha=beta, beta=beta, scale=scale
    )
    objectives = [descent.epoch()[1] for _ in range(8)]
    assert np.isfinite(objectives).all()
    for before, after in itertools.pairwise(objectives):
        assert after <= before * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("degree", [3, 4, 5])
def test_a_dwarfing_feature_loses_no_digits(random, degree):
    X = random.normal(size=(20, 8))
    X[:, 0] *= 1e6
    y = random.normal(size=20)
    learner, rows, descent = start(
        X, y, np.ones(20), kernel="anova", degree=degree, loss="squared", scale=1.0
    )
    # All columns have start factors in inverse proportion to their size: undo that.
    learner.model.parameters.table[0] = 1.0
    descent = Descent(
        learner, rows, columns_of(rows, 8, ones=True), np.empty((20, learner.n_cells))
    )
    slow = slow_copy(learner, "anova") if degree == 3 else None
    for _ in range(2):
        descent.epoch()
        if slow is not None:
            slow.sweep(X, y, np.ones(20), "squared", 0.3, 0.2)
    if slow is not None:
        assert_same(learner, slow, tolerance=1e-6)
    cached = descent._samples.score
    np.testing.assert_allclose(cached, learner.model.scores(rows), rtol=1e-7, atol=1e-7)


def test_epochs_are_cut_into_short_calls(random, monkeypatch):
    X, y, weight = problem(random, "squared", n=40)
    whole, _, descent = start(X, y, weight, kernel="anova", degree=3, loss="squared")
    monkeypatch.setattr("polyfm.solvers.lifted_descent._ENTRIES_PER_CALL", 30)
    cut, _, cut_descent = start(X, y, weight, kernel="anova", degree=3, loss="squared")
    done = []
    for _ in range(3):
        descent.epoch()
        cut_descent.epoch(lambda n, of: done.append((n, of)))
    assert np.array_equal(whole.model.parameters.table, cut.model.parameters.table)
    assert len(done) > 3 * 2 * 3 * 4
    assert done[-1] == (40, 40)
    assert [n for n, _ in done[: len(done) // 3]] == sorted(n for n, _ in done[: len(done) // 3])


def test_starts_depend_on_seed_and_feature_alone(random):
    X, y, weight = problem(random, "squared")
    first, _, _ = start(X, y, weight, kernel="anova", degree=2, loss="squared")
    again, _, _ = start(X[::-1], y, weight[::-1], kernel="anova", degree=2, loss="squared")
    other, _, _ = start(X, y, weight, kernel="anova", degree=2, loss="squared", seed=4)
    np.testing.assert_allclose(
        first.model.parameters.table, again.model.parameters.table, rtol=1e-12
    )
    assert not np.allclose(first.model.parameters.table, other.model.parameters.table)
    assert not first.model.parameters.table[2].any()
    assert first.model.parameters.met.tolist() == [1, 1, 0, 1, 1]
