"""Publicly reported faults of other programs: labels taken wrongly, or not at all.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import numpy as np
import pandas as pd
import pytest
from recompute import parameters
from sklearn.metrics import roc_auc_score

from polyfm import FMClassifier


def rows(n_rows=120, seed=0):
    X = np.random.default_rng(seed).normal(size=(n_rows, 4))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1]),
        np.array([-1, 1]),
        np.array([1.0, 2.0]),
        np.array([False, True]),
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([3, 7], dtype=np.uint8),
    ],
    ids=str,
)
def test_case_066_any_two_labels(labels):
    """classes_ is sorted, predict returns the caller's labels, predict_proba has two columns."""
    X, codes = rows()
    for order in (1, -1):
        y = labels[::order][codes]
        model = FMClassifier(random_state=0).fit(X, y)
        assert model.classes_.tolist() == labels.tolist()
        assert model.predict(X).dtype == labels.dtype
        assert (model.predict(X) == y).mean() > 0.9
        p = model.predict_proba(X)
        assert p.shape == (120, 2)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
        assert roc_auc_score(y == labels[1], p[:, 1]) > 0.95


@pytest.mark.parametrize("container", [list, pd.Series, lambda y: pd.Series(y, dtype="category")])
def test_case_066_containers_of_labels(container):
    """Lists and series of text, categorical ones too, are labels like others."""
    X, codes = rows()
    y = np.array(["no", "yes"])[codes]
    model = FMClassifier(random_state=0).fit(X, container(y.tolist()))
    assert model.classes_.tolist() == ["no", "yes"]
    assert (model.predict(X) == y).mean() > 0.9


def test_case_067_predictions_know_no_labels():
    """What comes out is the decision, the likelier class, for rows without a label."""
    X, codes = rows()
    model = FMClassifier(random_state=0).fit(X, np.array(["no", "yes"])[codes])
    new = np.random.default_rng(1).normal(size=(50, 4))
    decided = model.predict(new)
    np.testing.assert_array_equal(decided, model.classes_[model.predict_proba(new).argmax(axis=1)])
    assert set(decided) == {"no", "yes"}


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_case_069_amounts_are_no_labels(method):
    """Incomes in place of labels are refused, as numbers of a continuous kind."""
    X, _ = rows()
    incomes = np.random.default_rng(0).uniform(0, 80_000, 120)
    model = FMClassifier()
    with pytest.raises(ValueError, match="continuous"):
        getattr(model, method)(X, incomes)
    assert not hasattr(model, "classes_")


def test_case_069_whole_amounts_are_no_labels():
    """Whole numbers may be classes, but hardly if nearly every row has its own: a warning says so.

    An error, as for two-class programs, would forbid true problems of many classes.
    """
    X, _ = rows(60)
    incomes = 1000 * np.arange(60)
    with pytest.warns(UserWarning, match="unique classes"):
        FMClassifier(max_iter=1).fit(X, incomes)


def test_case_070_rows_are_all_that_prediction_needs():
    """No method that predicts takes labels."""
    X, y = rows()
    model = FMClassifier(random_state=0).fit(X, y)
    for method in (model.predict, model.predict_proba, model.decision_function):
        assert len(method(X[:3])) == 3
        with pytest.raises(TypeError):
            method(X[:3], y[:3])


@pytest.mark.parametrize(
    "classes, unknown", [([1, 2], 0), ([1, 2], 3), (["b", "d"], "c"), ([1.0, 2.0], 1.5)]
)
def test_case_071_a_label_that_was_not_announced(classes, unknown):
    """The error names the label, and no number and no counter has changed."""
    X, y = rows()
    model = FMClassifier(random_state=0).partial_fit(X, np.array(classes)[y], classes=classes)
    before, visits = parameters(model), model.t_
    bad = np.array([classes[0], classes[1], unknown])
    with pytest.raises(ValueError, match=f"label .*{unknown}.* in row 2|continuous"):
        model.partial_fit(X[:3], bad)
    np.testing.assert_array_equal(parameters(model), before)
    assert model.t_ == visits == 120
    assert model.classes_.tolist() == classes


def test_case_071_unannounced_label_in_the_first_batch():
    """The first call checks its labels, too, and leaves nothing behind."""
    X, _ = rows(3)
    model = FMClassifier()
    with pytest.raises(ValueError, match=r"label .*0.* in row 1"):
        model.partial_fit(X, [1, 0, 2], classes=[1, 2])
    assert not hasattr(model, "classes_")
    assert not hasattr(model, "coef_")


def test_case_073_the_same_labels_every_time():
    """Twenty fits with four threads on text labels: two classes, each time."""
    X, codes = rows(40)
    y = np.array(["no", "yes"])[codes]
    for _ in range(20):
        model = FMClassifier(max_iter=2, n_jobs=4).fit(X, y)
        assert model.classes_.tolist() == ["no", "yes"]


def test_case_074_batches_of_one_class():
    """Batches of four rows, nearly all without a positive one: training takes them all."""
    X, _ = rows(400)
    y = (np.arange(400) % 50 == 17).astype(int)
    X[y == 1, 0] += 4
    model = FMClassifier(random_state=0, scoring="roc_auc")
    for _ in range(5):
        for start in range(0, 400, 4):
            batch = slice(start, start + 4)
            model.partial_fit(X[batch], y[batch], classes=[0, 1])
    assert model.t_ == 2000
    assert roc_auc_score(y, model.decision_function(X)) > 0.9


def test_case_074_one_metric_over_all_validation_rows():
    """With 2 % positives the AUC of each epoch is that of the whole held-out set."""
    X, _ = rows(400)
    y = (np.arange(400) % 50 == 17).astype(int)
    X[y == 1, 0] += 3
    X_val, y_val = X[300:], y[300:]
    model = FMClassifier(scoring="roc_auc", early_stopping=True, random_state=0)
    model.fit(X[:300], y[:300], X_val=X_val, y_val=y_val)
    assert model.best_score_ == roc_auc_score(y_val, model.decision_function(X_val))
    model.fit(X, y)  # Held out by class: 10 % of the rows have positives among them.
    assert np.isfinite(model.history_["validation_roc_auc"]).all()


@pytest.mark.parametrize("early_stopping", [True, False])
def test_case_075_no_auc_of_a_single_class(early_stopping):
    """Validation rows of one class: refused before training if AUC is asked for, else fine."""
    X, y = rows()
    model = FMClassifier(scoring="roc_auc", early_stopping=early_stopping, random_state=0)
    zeros = np.zeros(30, dtype=int)
    with pytest.raises(ValueError, match="AUC of a single class is undefined"):
        model.fit(X[:90], y[:90], X_val=X[90:], y_val=zeros)
    assert not hasattr(model, "history_")
    model.set_params(scoring="loss").fit(X[:90], y[:90], X_val=X[90:], y_val=zeros)
    assert np.isfinite(model.history_["validation_loss"]).all()


def test_case_077_a_single_class():
    """Nothing to tell apart: fit refuses it, a stream may begin with it if all are announced."""
    X, _ = rows(50)
    model = FMClassifier(random_state=0)
    with pytest.raises(ValueError, match="at least two classes"):
        model.fit(X, np.ones(50))
    with pytest.raises(ValueError, match=r"at least two classes.*classes="):
        model.partial_fit(X, np.ones(50))
    with pytest.raises(ValueError, match="at least two classes"):
        model.fit(X, np.resize([0, 1], 50), sample_weight=np.resize([0, 1], 50))
    model.partial_fit(X, np.ones(50), classes=[0, 1])
    assert model.classes_.tolist() == [0, 1]
    assert (model.predict_proba(X)[:, 1] > 0.5).all()
