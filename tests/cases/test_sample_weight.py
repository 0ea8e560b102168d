"""Publicly reported faults of other programs: weights of rows without their meaning.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import numpy as np
import pytest
from recompute import parameters
from scipy.optimize import minimize

from polyfm import FMClassifier, FMRegressor

CLOSE = {"solver": "sgd", "schedule": "optimal", "tol": 0, "max_iter": 400, "random_state": 0}
"""Falling steps that end close to the optimum of a convex problem."""


def rows(n_rows=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    y = (X[:, 0] + rng.normal(size=n_rows) > 0).astype(int)
    return X, y


def optimum(X, y, weight, alpha):
    """Bias and linear weights that minimise the weighted logistic loss plus the penalty."""
    signs = 2 * y - 1

    def objective(b):
        margins = signs * (b[0] + X @ b[1:])
        return weight @ np.logaddexp(0, -margins) + alpha / 2 * b[1:] @ b[1:]

    return minimize(objective, np.zeros(X.shape[1] + 1), tol=1e-10).x


def linear(X, y, weight=None, **options):
    model = FMClassifier(order=1, **{**CLOSE, **options}).fit(X, y, weight)
    return np.append(model.intercept_, model.coef_)


@pytest.mark.parametrize("alpha", [0.5, 5.0])
def test_case_173_weights_are_repetitions(alpha):
    """Rows with weights 3 and 2 have the optimum of rows that occur 3 and 2 times.

    A stochastic solver comes near it, to 0.02 here; a deterministic one has to meet it to 1e-6.
    """
    X, y = rows()
    counts = np.where(y == 1, 3, 2)
    exact = optimum(X, y, counts, alpha)
    np.testing.assert_allclose(linear(X, y, counts, alpha=alpha), exact, atol=0.02)
    repeated = np.repeat(X, counts, axis=0), np.repeat(y, counts)
    np.testing.assert_allclose(linear(*repeated, alpha=alpha), exact, atol=0.02)
    assert np.abs(exact - optimum(X, y, np.ones(200), alpha)).max() > 0.2


def test_case_174_impressions_and_clicks():
    """An ad is one row for its clicks and one for the rest, weighted: P is the share of clicks."""
    clicks, shown = np.array([30, 100, 5, 400]), np.array([1000, 1000, 100, 2000])
    X = np.repeat(np.eye(4), 2, axis=0)
    weight = np.stack([shown - clicks, clicks], axis=1).ravel()
    model = FMClassifier(order=1, alpha=0.01, tol=0, max_iter=2000, random_state=0)
    model.fit(X, np.resize([0, 1], 8), weight)
    np.testing.assert_allclose(model.predict_proba(np.eye(4))[:, 1], clicks / shown, rtol=0.1)


def test_case_174_weights_everywhere():
    """fit, partial_fit and score take weights, and each uses them."""
    X, y = rows()
    weight = np.where(y == 1, 20.0, 1.0)
    for cls in (FMClassifier, FMRegressor):
        plain, weighted = (cls(random_state=0).fit(X, y, w) for w in (None, weight))
        assert weighted.intercept_ > plain.intercept_ + 0.2
        assert plain.score(X, y, weight) != plain.score(X, y)
        plain, weighted = (cls(random_state=0).partial_fit(X, y, w) for w in (None, weight))
        assert (parameters(plain) != parameters(weighted)).all()


def test_case_174_weights_of_classes():
    """class_weight multiplies the weights of the rows, by label or balanced."""
    X, y = rows()
    y = y * (X[:, 1] > 0.5)
    names = np.array(["no", "yes"])[y]
    by_hand = FMClassifier(random_state=0).fit(X, y, np.where(y == 1, 6.0, 2.0))
    by_label = FMClassifier(random_state=0, class_weight={"yes": 3.0}).fit(
        X, names, np.full(200, 2.0)
    )
    np.testing.assert_array_equal(parameters(by_label), parameters(by_hand))
    balanced = FMClassifier(random_state=0, class_weight="balanced").fit(X, y)
    share = 200 / (2 * np.bincount(y))
    explicit = FMClassifier(random_state=0).fit(X, y, share[y])
    np.testing.assert_array_equal(parameters(balanced), parameters(explicit))


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_case_174_impossible_weights_of_classes(bad):
    """A class weight that is negative or no number is refused by the parameter's name."""
    X, y = rows()
    for method in ("fit", "partial_fit"):
        model = FMClassifier(class_weight={0: bad, 1: 1.0})
        with pytest.raises(ValueError, match="class_weight"):
            getattr(model, method)(X, y)
        assert not hasattr(model, "coef_")


@pytest.mark.parametrize("cls", [FMClassifier, FMRegressor])
def test_case_175_weight_zero_removes_a_row(cls):
    """Rows of weight 0 might as well be absent: bit for bit, whatever they hold."""
    X, y = rows()
    weight = np.resize([0.0, 1.0, 2.0], 200)
    absurd = np.where(weight[:, None] == 0, 1e6, X)
    model = cls(random_state=0).fit(absurd, y, weight)
    without = cls(random_state=0).fit(X[weight > 0], y[weight > 0], weight[weight > 0])
    np.testing.assert_array_equal(parameters(model), parameters(without))
    assert model.t_ == without.t_


def test_case_175_weights_scale_with_the_penalty():
    """Weights times c and alpha times c: the same optimum. Weights times c alone: a weaker penalty.

    The objective is the weighted sum of losses plus penalties, not a mean, so the penalty has to
    grow with the weights to stay in proportion.
    """
    X, y = rows()
    base = linear(X, y, alpha=20.0)
    np.testing.assert_allclose(linear(X, y, np.full(200, 4.0), alpha=80.0), base, atol=0.02)
    free = linear(X, y, np.full(200, 4.0), alpha=20.0)
    assert free[1] > base[1] + 0.1
    np.testing.assert_allclose(free, optimum(X, y, np.full(200, 4.0), 20.0), atol=0.02)


@pytest.mark.parametrize(
    "weight, problem",
    [
        ([1.0, -1.0, 1.0, 1.0], "Negative.*row 1"),
        ([1.0, np.nan, 1.0, 1.0], "NaN"),
        ([1.0, 1.0], "sample_weight"),
        ([0.0, 0.0, 0.0, 0.0], "nothing to learn|at least one non-zero"),
    ],
)
def test_case_175_impossible_weights(weight, problem):
    """Negative, missing, too few, or all zero: refused in words."""
    with pytest.raises(ValueError, match=problem):
        FMRegressor().fit(np.eye(4), [1.0, 2.0, 3.0, 4.0], sample_weight=weight)
