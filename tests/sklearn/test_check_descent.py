"""scikit-learn's checks of the estimators with coordinate descent: none is expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from polyfm import FMClassifier, FMRegressor


@parametrize_with_checks([FMRegressor(solver="cd"), FMClassifier(solver="cd")])
def test_check_estimator(estimator, check):
    check(estimator)
