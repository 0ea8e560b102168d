"""scikit-learn's own checks, and the estimators among its tools."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from polyfm import FMClassifier, FMRegressor

_REASON = (
    "rows are visited in a random order and a column pays its penalty in as many shares as it has "
    "rows: a weighted row and repeated rows have the same objective, but not the same path to it"
)
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": _REASON,
    "check_sample_weight_equivalence_on_sparse_data": _REASON,
}


@parametrize_with_checks(
    [FMRegressor(), FMClassifier()], expected_failed_checks=lambda estimator: EXPECTED_FAILURES
)
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.fixture
def problem(random):
    X = random.normal(size=(120, 4))
    return X, 2.0 * X[:, 0] + 3.0 * X[:, 1] * X[:, 2]


@pytest.mark.parametrize("estimator", [FMRegressor(), FMClassifier()])
def test_clone_keeps_every_parameter(estimator):
    changed = {"order": 3, "rank": 5, "alpha": 0.25, "kernel": "all-subsets", "random_state": 4}
    estimator = clone(estimator).set_params(**changed)
    assert clone(estimator).get_params() == estimator.get_params()
    for name, value in changed.items():
        assert getattr(clone(estimator), name) == value


def test_clone_is_not_fitted(problem):
    X, y = problem
    fitted = FMRegressor(max_iter=1).fit(X, y)
    copy = clone(fitted)
    with pytest.raises(NotFittedError, match="call fit or partial_fit"):
        copy.predict(X)
    for name in ("coef_", "intercept_", "factors_", "history_", "n_iter_", "classes_"):
        assert not hasattr(copy, name)


def test_grid_search_in_two_processes(problem):
    X, y = problem
    search = GridSearchCV(
        FMRegressor(random_state=0, max_iter=30), {"order": [1, 2]}, cv=3, n_jobs=2
    )
    search.fit(X, y)
    assert search.best_params_ == {"order": 2}
    assert search.best_score_ > search.cv_results_["mean_test_score"][0] + 0.2
    assert search.score(X, y) > 0.8


def test_pipeline_with_a_scaler(problem):
    X, y = problem
    model = make_pipeline(StandardScaler(), FMRegressor(random_state=0)).fit(X * [1, 9, 1, 50], y)
    assert model.score(X * [1, 9, 1, 50], y) > 0.9


def test_pipeline_with_sparse_input(problem):
    X, y = problem
    X = sp.csr_matrix(np.where(X > 0, X, 0.0))
    model = make_pipeline(MaxAbsScaler(), FMClassifier(random_state=0)).fit(X, y > 0)
    assert model.predict_proba(X).shape == (120, 2)


def test_cross_validation_of_a_classifier(problem):
    X, y = problem
    labels = np.where(y > 0, "yes", "no")
    model = FMClassifier(random_state=0)
    assert cross_val_score(model, X, labels, cv=3).mean() > 0.8
    assert cross_val_score(model, X, labels, cv=3, scoring="roc_auc").mean() > 0.85
    assert cross_val_score(model, X, labels, cv=3, scoring="neg_log_loss").mean() > -0.5


def test_meta_estimators(problem):
    X, y = problem
    model = FMRegressor(random_state=0, max_iter=20)
    both = MultiOutputRegressor(model).fit(X, np.column_stack([y, -y]))
    assert np.allclose(both.predict(X)[:, 0], -both.predict(X)[:, 1], atol=0.5 * y.std())
    logged = TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp)
    assert logged.fit(X, np.exp(y / 9)).score(X, np.exp(y / 9)) > 0.5


def test_parameters_can_be_set_between_fits(problem):
    X, y = problem
    model = FMRegressor(order=1, random_state=0).fit(X, y)
    linear = model.score(X, y)
    assert model.factors_ == {}
    model.set_params(order=2).fit(X, y)
    assert model.factors_[2].shape == (4, 8)
    assert model.score(X, y) > linear + 0.2
