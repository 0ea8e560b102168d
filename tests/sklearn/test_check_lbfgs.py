"""scikit-learn's own checks on the full-batch solver: none may fail, weights are repeated rows."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from polyfm import FMClassifier, FMRegressor


# On targets of noise the default penalty rightly leaves no interactions, and says so.
@pytest.mark.filterwarnings("ignore:All factors have shrunk")
@parametrize_with_checks([FMRegressor(solver="lbfgs"), FMClassifier(solver="lbfgs")])
def test_check_estimator(estimator, check):
    check(estimator)
