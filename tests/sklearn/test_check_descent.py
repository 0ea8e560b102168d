"""scikit-learn's checks of the estimators with coordinate descent: none is expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from polyfm import FMClassifier, FMRegressor


# On targets of noise the default penalty rightly leaves no interactions, and says so.
@pytest.mark.filterwarnings("ignore:All factors have shrunk")
@parametrize_with_checks([FMRegressor(solver="cd"), FMClassifier(solver="cd")])
def test_check_estimator(estimator, check):
    check(estimator)
