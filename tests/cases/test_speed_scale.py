"""Publicly reported faults of other programs: fast, to where?

The number in a test's name is that of the report; each says what must happen here instead.
"""

import numpy as np
from recompute import parameters

from polyfm import FMRegressor


def test_case_207_seed_and_known_solution():
    """The seed is a parameter, and tiny data with a known solution lead to it.

    The objective is half the squared error of the standardised target plus alpha / 2 times the
    squared weights; on centred columns that is ridge regression.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X -= X.mean(axis=0)
    y = X @ [1.0, -2.0, 0.5] + 4.0 + rng.normal(size=60)
    options = {"order": 1, "alpha": 5.0, "solver": "sgd", "schedule": "optimal", "tol": 0}
    model = FMRegressor(max_iter=500, learning_rate=0.05, random_state=0, **options).fit(X, y)
    ridge = np.linalg.solve(X.T @ X + 5.0 * np.eye(3), X.T @ (y - y.mean()))
    np.testing.assert_allclose(model.coef_, ridge, atol=0.02)
    assert abs(model.intercept_ - y.mean()) < 0.02
    again = FMRegressor(max_iter=500, learning_rate=0.05, random_state=0, **options).fit(X, y)
    np.testing.assert_array_equal(parameters(model), parameters(again))
