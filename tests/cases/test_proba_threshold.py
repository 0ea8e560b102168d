"""Publicly reported faults of other programs: probabilities that are none.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from polyfm import FMClassifier


@pytest.mark.parametrize("weighted", [False, True])
def test_case_169_the_mean_probability_is_the_base_rate(weighted):
    """20,000 rows, 30 % positives, columns without information: 30 % on average.

    With weights, it is the weighted share.
    """
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], size=(20_000, 5))
    y = (rng.random(20_000) < 0.3).astype(int)
    weight = np.where(y == 1, 2.0, 1.0) if weighted else np.ones(20_000)
    model = FMClassifier(random_state=0).fit(X, y, weight)
    rate = np.average(y, weights=weight)
    assert abs(model.predict_proba(X)[:, 1].mean() - rate) < 0.01
    assert model.predict_proba(X)[:, 1].std() < 0.05


@pytest.mark.parametrize("init_scale", ["auto", 0.5])
def test_case_170_values_in_the_thousands(init_scale):
    """Columns around 3,000 and a large start: graded probabilities, not only 0 and 1.

    There is no warning of saturation: a column's size does not lead to it, as its weights have a
    unit of their own.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(3000, 500, size=(400, 6))
    p = 1 / (1 + np.exp(-(X[:, 0] - 3000) / 500))
    y = (rng.random(400) < p).astype(int)
    model = FMClassifier(init_scale=init_scale, random_state=0).fit(X, y)
    found = model.predict_proba(X)[:, 1]
    assert ((found > 0.05) & (found < 0.95)).mean() > 0.5
    assert np.corrcoef(found, p)[0, 1] > 0.8


def test_case_170_probabilities_stay_inside():
    """However large the score, P is above 0 and below 1, and the log loss finite."""
    X = np.array([[-1.0], [1.0]] * 20)
    y = np.resize([0, 1], 40)
    model = FMClassifier(random_state=0).fit(X, y)
    far = np.array([[-1e9], [1e9], [-1e100], [1e100]])
    p = model.predict_proba(far)
    assert (np.abs(model.decision_function(far)) > 1e8).all()
    assert (p > 0).all()
    assert (p < 1).all()
    assert np.isfinite(log_loss([1, 0, 1, 0], p))
    assert (p.argmax(axis=1) == [0, 1, 0, 1]).all()


@pytest.mark.parametrize("dtype", [int, bool, np.int8])
def test_case_171_probabilities_are_floats(dtype):
    """Whole-number features and labels give (n, 2) floats between 0 and 1, of sum 1."""
    X = np.random.default_rng(0).integers(0, 2, size=(50, 3)).astype(dtype)
    model = FMClassifier(random_state=0).fit(X, X[:, 0].astype(int))
    p = model.predict_proba(X)
    assert p.shape == (50, 2)
    assert p.dtype == np.float64
    assert len(np.unique(p)) > 4
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
