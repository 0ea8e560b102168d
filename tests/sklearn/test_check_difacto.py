"""scikit-learn's own checks of factorization machines with factors on demand."""

import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from polyfm import DiFactoClassifier, DiFactoRegressor

_REASON = (
    "FTRL-Proximal and AdaGrad add up the square of each row's gradient: two rows and one of "
    "weight 2 have the same losses, but not the same squares"
)
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": _REASON,
    "check_sample_weight_equivalence_on_sparse_data": _REASON,
}


@parametrize_with_checks(
    [DiFactoRegressor(), DiFactoClassifier(), DiFactoClassifier(ranks=(8,), thresholds=(0,))],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("model", "load", "least"),
    [(DiFactoRegressor(), load_diabetes, 0.4), (DiFactoClassifier(), load_breast_cancer, 0.95)],
)
def test_defaults_serve_a_few_hundred_rows(model, load, least):
    X, y = load(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), model)
    assert cross_val_score(pipeline, X, y, cv=3).mean() > least
