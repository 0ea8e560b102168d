"""scikit-learn's own checks on the full-batch solver: none may fail, weights are repeated rows."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from polyfm import FMClassifier, FMRegressor


@parametrize_with_checks([FMRegressor(solver="lbfgs"), FMClassifier(solver="lbfgs")])
def test_check_estimator(estimator, check):
    check(estimator)
