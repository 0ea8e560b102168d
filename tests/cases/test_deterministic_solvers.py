"""Publicly reported faults of other programs, where coordinate descent and L-BFGS are concerned.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold

from polyfm import (
    ConvexFMClassifier,
    FMClassifier,
    FMRegressor,
    PolynomialNetworkClassifier,
    PolynomialNetworkRegressor,
)

SOLVERS = ["cd", "lbfgs"]
WHOLE = {"early_stopping": False, "tol": 0, "random_state": 0}


def parameters(model):
    blocks = [np.ravel(model.intercept_), np.ravel(model.coef_)]
    return np.concatenate([*blocks, *(np.ravel(P) for P in model.factors_.values())])


@pytest.mark.parametrize("kernel", ["anova", "all-subsets", "inhomogeneous-anova"])
@pytest.mark.parametrize("block_size", [1, 8])
def test_case_006_unused_columns_without_penalty(kernel, block_size):
    """Ten thousand empty columns and no penalty: their parameters are 0 and the fit returns."""
    X = sp.csr_matrix(([1.0] * 6, ([0, 0, 1, 1, 2, 2], [0, 11192, 1, 11192, 0, 5])))
    model = FMRegressor(
        solver="cd", alpha=0.0, beta=0.0, kernel=kernel, block_size=block_size, max_iter=20, **WHOLE
    ).fit(X, [5.0, 1.0, 3.0])
    used = np.unique(X.indices)
    empty = np.setdiff1d(np.arange(X.shape[1]), used)
    assert np.all(model.coef_[empty] == 0)
    assert all(np.all(P[empty] == 0) for P in model.factors_.values())
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("estimator", [FMClassifier, PolynomialNetworkClassifier])
def test_case_007_a_column_of_zeros_beside_one_of_millions(estimator):
    """Nearly one class, a column of zeros and one of values of 1e6: a finite fit."""
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 5))
    X[:, 3], X[:, 4] = 0.0, random.normal(size=200) * 1e6
    y = np.where(np.arange(200) % 20 == 0, 1, -1)
    solver = {"solver": "cd"} if estimator is FMClassifier else {}
    model = estimator(alpha=0.0, beta=0.0, max_iter=50, random_state=0, **solver).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_case_029_no_penalty(solver):
    """Without a penalty the objective is the loss; it is finite and better than a constant."""
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4))
    y = X[:, 0] * X[:, 1]
    model = FMRegressor(solver=solver, alpha=0.0, beta=0.0, max_iter=60, rank=2, **WHOLE).fit(X, y)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("solver", SOLVERS)
def test_case_049_one_row_and_the_pairwise_term(solver):
    """One row, no bias, no linear term, rank 1: the factors multiply to the target."""
    model = FMRegressor(
        rank=1, solver=solver, fit_intercept=False, fit_linear=False, beta=1e-8, max_iter=300,
        init_scale=0.5, loss="squared", **WHOLE,
    ).fit([[1.0, 1.0]], [1.0])  # fmt: skip
    P = model.factors_[2]
    assert float(P[0, 0] * P[1, 0]) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("order", [1, 2])
def test_case_173_weights_are_repetitions_to_the_last_digits(solver, order):
    """A deterministic solver meets the optimum of repeated rows to 1e-6, factors included."""
    random = np.random.default_rng(0)
    X = random.normal(size=(50, 3))
    y = (X[:, 0] + X[:, 0] * X[:, 1] + random.normal(size=50) > 0).astype(int)
    counts = np.where(y == 1, 3, 2)
    model = FMClassifier(order=order, rank=2, solver=solver, beta=1.0, max_iter=500, **WHOLE)
    weighted = parameters(model.fit(X, y, counts))
    repeated = parameters(model.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)))
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)


@pytest.mark.parametrize("solver", [*SOLVERS, "adagrad", "sgd"])
def test_case_178_no_penalty_on_one_column_alone(solver):
    """One of thirty columns is free of penalty; the others stay where theirs holds them."""
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 30))
    y = X @ np.full(30, 1.0)
    alpha = np.full(30, 1e6)
    alpha[1] = 0.0
    # A constant step leaves noise in proportion to it.
    settings = {"learning_rate": 0.002} if solver == "sgd" else {}
    model = FMRegressor(order=1, solver=solver, alpha=alpha, max_iter=100, **settings, **WHOLE)
    model.fit(X, y)
    others = np.delete(np.abs(model.coef_), 1)
    assert abs(model.coef_[1]) > 0.3
    assert others.max() < 0.01


@pytest.mark.parametrize("solver", [*SOLVERS, "adagrad", "sgd"])
def test_case_179_penalties_per_group_act_in_every_solver(solver):
    """Two groups with penalties of 0 and a million: the second has no weights to speak of."""
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 4))
    y = X.sum(axis=1)
    model = FMRegressor(
        order=1, solver=solver, fields=[0, 0, 1, 1], alpha=[0.0, 1e6], max_iter=100, **WHOLE
    ).fit(X, y)
    assert np.abs(model.coef_[:2]).min() > 0.5
    assert np.abs(model.coef_[2:]).max() < 0.01


def test_groups_of_one_are_columns_of_their_own():
    """A field for each column is no field at all: the same bits."""
    random = np.random.default_rng(0)
    X, strengths = random.normal(size=(80, 3)), [0.1, 1.0, 10.0]
    y = X[:, 0] * X[:, 1]
    common = {"solver": "cd", "beta": strengths, "max_iter": 5, **WHOLE}
    plain = FMRegressor(**common).fit(X, y)
    grouped = FMRegressor(fields=[0, 1, 2], **common).fit(X, y)
    np.testing.assert_array_equal(parameters(plain), parameters(grouped))


@pytest.mark.parametrize("solver", SOLVERS)
def test_case_186_factors_that_vanish_are_told(solver):
    """A penalty that takes all factors to zero: a warning says so and what to do."""
    random = np.random.default_rng(0)
    X = np.eye(6)[random.integers(0, 6, (40, 2))].sum(axis=1)
    model = FMRegressor(solver=solver, beta=1e4, max_iter=300, **WHOLE)
    with pytest.warns(ConvergenceWarning, match="factors have shrunk to zero.*lower beta"):
        model.fit(X, random.normal(size=40))


@pytest.mark.parametrize(
    "model",
    [
        FMClassifier(solver="cd", max_iter=3),
        FMClassifier(solver="lbfgs", max_iter=3),
        PolynomialNetworkClassifier(max_iter=3),
        ConvexFMClassifier(max_iter=3),
    ],
    ids=lambda model: type(model).__name__ + getattr(model, "solver", ""),
)
def test_one_class_in_a_fold(model):
    """Unshuffled folds of sorted labels leave one class: a plain error, and other folds go on."""
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.repeat([0, 1], [20, 20])
    with pytest.raises(ValueError, match=r"one class|1 class|single class"):
        model.fit(X[:20], y[:20])
    search = GridSearchCV(model, {"max_iter": [2, 3]}, cv=KFold(2), error_score=np.nan)
    with pytest.raises(ValueError, match=r"All the .* fits failed"):
        search.fit(X, y)
    mixed = np.random.default_rng(1).permutation(40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert np.isfinite(search.fit(X[mixed], y[mixed]).best_score_)


def test_lifted_networks_repeat_rows_as_weights():
    """Weights are repetitions for lifted models as well."""
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 3))
    y, counts = X[:, 0] * X[:, 1], random.integers(1, 4, 40)
    model = PolynomialNetworkRegressor(rank=2, beta=1.0, max_iter=60, **WHOLE)
    weighted = model.fit(X, y, counts).predict(X)
    repeated = model.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)).predict(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)
