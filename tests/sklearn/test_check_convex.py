"""scikit-learn's own checks of the convex machines: every one passes, weights of rows included."""

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
