"""Publicly reported faults of other programs: estimators that scikit-learn cannot work with.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from polyfm import FMClassifier, FMRegressor
from polyfm.data import load_svmlight

ESTIMATORS = [FMRegressor, FMClassifier]


def rows(n_rows=120):
    X = np.random.default_rng(0).normal(size=(n_rows, 4))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_case_161_the_constructor_only_stores(cls):
    """Every parameter comes back as the very object that was given, from a clone, too."""
    names = list(cls().get_params())
    given = {name: object() for name in names}
    model = cls(**given)
    assert all(getattr(model, name) is given[name] for name in names)
    assert set(vars(model)) == set(names)
    values = {"alpha": 0.3, "beta": 0.7, "rank": 3, "learning_rate": 0.05, "loss": "anything"}
    copy = clone(cls(**values))
    assert {name: copy.get_params()[name] for name in values} == values


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize(
    "name, choices",
    [
        ("order", [1, 2, 3]),
        ("rank", [0, 2]),
        ("fit_lower", ["explicit", "augment", None]),
        ("fit_linear", [True, False]),
        ("fit_intercept", [True, False]),
        ("solver", ["adagrad", "sgd"]),
        ("alpha", [0.0, 10.0]),
        ("beta", ["auto", 0.1]),
        ("learning_rate", [0.01, 0.1]),
        ("schedule", ["constant", "invscaling", "optimal"]),
        ("power_t", [0.1, 0.5]),
        ("max_iter", [1, 5]),
        ("tol", [0.0, 0.01]),
        ("n_iter_no_change", [1, 5]),
        ("early_stopping", [True, False, "auto"]),
        ("validation_fraction", [0.1, 0.3]),
        ("scoring", ["loss", None]),
        ("init_scale", ["auto", 0.1]),
        ("shuffle", [True, False]),
        ("n_jobs", [None, 2]),
        ("warm_start", [True, False]),
    ],
)
def test_case_161_searches_over_any_parameter(cls, name, choices):
    """A grid over each parameter runs, and no fit of it fails."""
    X, y = rows(60)
    base = cls(max_iter=2, random_state=0, early_stopping=name == "validation_fraction")
    search = GridSearchCV(base, {name: choices}, cv=2, error_score="raise").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_[name] in choices


def test_case_162_cross_validation_by_auc():
    """cross_val_score with the AUC takes classifiers, with labels of text as well."""
    X, y = rows()
    scores = cross_val_score(FMClassifier(random_state=0), X, y, scoring="roc_auc", cv=3)
    assert scores.shape == (3,)
    assert (scores > 0.7).all()
    names = np.array(["no", "yes"])[y]
    again = cross_val_score(FMClassifier(random_state=0), X, names, scoring="roc_auc", cv=3)
    np.testing.assert_array_equal(scores, again)


def test_case_163_a_search_in_several_processes():
    """Two worker processes find what one does."""
    X, y = rows()
    grid = {"rank": [0, 4], "beta": [0.1, 10.0]}
    one = GridSearchCV(FMClassifier(random_state=0), grid, cv=2).fit(X, y)
    two = GridSearchCV(FMClassifier(random_state=0), grid, cv=2, n_jobs=2).fit(X, y)
    assert two.best_params_ == one.best_params_
    np.testing.assert_array_equal(
        two.cv_results_["mean_test_score"], one.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_case_165_a_single_row(n_classes):
    """One row has results of one row: (1,), (1, n_classes), and (1,) or (1, n_classes)."""
    X, _ = rows()
    y = np.arange(120) % n_classes
    model = FMClassifier(max_iter=2, random_state=0).fit(X, y)
    assert model.predict(X[:1]).shape == (1,)
    assert model.predict_proba(X[:1]).shape == (1, n_classes)
    assert model.decision_function(X[:1]).shape == ((1,) if n_classes == 2 else (1, n_classes))
    assert FMRegressor(max_iter=2, random_state=0).fit(X, y).predict(X[:1]).shape == (1,)
    with pytest.raises(ValueError, match="1D array"):
        model.predict(X[0])


def test_case_166_one_interface():
    """Both estimators have the same parameters in one order; the classifier also class weights."""
    regressor = list(inspect.signature(FMRegressor).parameters)
    classifier = list(inspect.signature(FMClassifier).parameters)
    assert classifier == [*regressor, "class_weight"]
    shared = inspect.signature(FMRegressor.fit).parameters
    assert list(shared) == list(inspect.signature(FMClassifier.fit).parameters)
    assert {"sample_weight", "X_val", "y_val", "sample_weight_val"} <= set(shared)


def test_case_167_files_are_read_by_a_loader(tmp_path):
    """A path is no table and is refused; the reader's output goes straight to fit."""
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1 2:0.5\n0 2:1\n1 1:2\n0 3:1\n")
    for text in (str(path), path):
        with pytest.raises((ValueError, TypeError)):
            FMClassifier().fit(text, [1, 0, 1, 0])
    model = FMClassifier(random_state=0).fit(*load_svmlight(path, dtype=np.float64))
    assert model.n_features_in_ == 3
    assert model.classes_.tolist() == [0, 1]
