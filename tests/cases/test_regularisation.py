"""Publicly reported faults of other programs: penalties without effect, or with too much.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import numpy as np
import pytest
from recompute import one_hot

from polyfm import FMClassifier


@pytest.mark.parametrize("solver", ["adagrad", "sgd"])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_case_179_each_penalty_has_its_effect(solver, penalty):
    """The two groups, linear weights and factors, are penalised apart, by every solver."""
    rng = np.random.default_rng(0)
    X = one_hot(rng.integers(0, 5, 300), rng.integers(0, 5, 300), widths=[5, 5])
    y = rng.integers(0, 2, 300)
    size = {}
    for alpha, beta in [(0, 0), (100, 0), (0, 100)]:
        model = FMClassifier(
            alpha=alpha, beta=beta, solver=solver, penalty=penalty, init_scale=0.3, tol=0,
            max_iter=30, random_state=0,
        ).fit(X, y)  # fmt: skip
        size[alpha, beta] = np.abs(model.coef_).mean(), np.abs(model.factors_[2]).mean()
    free_linear, free_factors = size[0, 0]
    assert size[100, 0][0] < 0.5 * free_linear
    assert size[100, 0][1] > 0.5 * free_factors
    assert size[0, 100][1] < 0.5 * free_factors
    assert size[0, 100][0] > 0.5 * free_linear
