"""scikit-learn's own checks of the estimators by FTRL-Proximal."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.utils.estimator_checks import parametrize_with_checks

from polyfm import (
    FTRLClassifier,
    FTRLRegressor,
    HierarchicalFMClassifier,
    HierarchicalFMRegressor,
)

_REASON = (
    "FTRL-Proximal adds up the square of each row's gradient: two rows and one of weight 2 have "
    "the same losses, but not the same squares"
)
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": _REASON,
    "check_sample_weight_equivalence_on_sparse_data": _REASON,
}


@parametrize_with_checks(
    [
        FTRLRegressor(),
        FTRLClassifier(),
        HierarchicalFMRegressor(),
        HierarchicalFMClassifier(),
        HierarchicalFMRegressor(batch_size=8),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", [FTRLRegressor(), HierarchicalFMRegressor(random_state=0)])
def test_regression_at_default_settings(estimator):
    X, y = load_diabetes(return_X_y=True)
    assert clone(estimator).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.35


@pytest.mark.parametrize("estimator", [FTRLClassifier(), HierarchicalFMClassifier(random_state=0)])
def test_classification_at_default_settings(estimator):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert clone(estimator).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.94


@pytest.mark.parametrize("cls", [FTRLClassifier, HierarchicalFMClassifier])
def test_three_classes(cls, random):
    X = random.normal(size=(300, 3))
    y = np.array(["a", "b", "c"])[X.argmax(axis=1)]
    model = cls(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.learning_rates_.shape[:2] == (3, 3)
