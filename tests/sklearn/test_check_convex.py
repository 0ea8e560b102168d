"""scikit-learn's own checks of the convex machines; but for streams, also those of weights."""

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from polyfm import ConvexFMClassifier, ConvexFMRegressor

ESTIMATORS = [
    ConvexFMRegressor(),
    ConvexFMRegressor(method="hazan", max_iter=30),
    ConvexFMClassifier(),
]
ONLINE = [
    ConvexFMRegressor(method="online", max_iter=20),
    ConvexFMClassifier(method="online", max_iter=20),
]
_REASON = "a row of weight 2 is one row of a round, and two rows are two"
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": _REASON,
    "check_sample_weight_equivalence_on_sparse_data": _REASON,
}


@parametrize_with_checks(ONLINE, expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_check_online(estimator, check):
    check(estimator)


@parametrize_with_checks(ESTIMATORS)
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", [ConvexFMRegressor(), ConvexFMClassifier()])
def test_clone_keeps_every_parameter(estimator):
    changed = {"beta": 3.0, "diagonal": True, "max_rank": 7, "alpha": 0.25, "random_state": 4}
    estimator = clone(estimator).set_params(**changed)
    assert clone(estimator).get_params() == estimator.get_params()


def test_grid_search(random):
    X = random.normal(size=(150, 4))
    y = X[:, 0] + 2.0 * X[:, 1] * X[:, 2]
    search = GridSearchCV(ConvexFMRegressor(random_state=0), {"beta": ["auto", 1e4]}, cv=3)
    assert search.fit(X, y).best_params_ == {"beta": "auto"}
    assert search.best_score_ > 0.9
