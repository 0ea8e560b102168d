"""Publicly reported faults of other programs: stopping by the wrong figure, the wrong model kept.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from polyfm import FMClassifier
from polyfm.solvers.monitor import Stopper

LOSSES = [0.614211, 0.613964, 0.613909, 0.614003, 0.614300]
AUCS = [0.632410, 0.632814, 0.632656, 0.632342, 0.633588]


def stopped(values, **options):
    """Feed a stopper; return the epoch after which it stops and the one it would keep."""
    stopper = Stopper(**options)
    for value in values:
        stopper.update(value)
        if stopper.should_stop:
            break
    return stopper.n_epochs, stopper.best_epoch


def noisy(n_rows=60, n_columns=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    return X, (X[:, 0] + 1.5 * rng.normal(size=n_rows) > 0).astype(int)


OVERFITTING = {"alpha": 0, "beta": 0.01, "init_scale": 0.2, "random_state": 0}


def test_case_139_the_metric_and_its_direction():
    """By AUC, larger is better: patience 2 stops after epoch 4 with 2, patience 3 goes on to 5."""
    assert stopped(AUCS, patience=2, maximize=True) == (4, 2)
    assert stopped(AUCS, patience=3, maximize=True) == (5, 5)
    assert stopped(LOSSES, patience=2) == (5, 3)
    assert stopped(LOSSES, patience=3) == (5, 3)
    assert stopped(AUCS, patience=2) == (3, 1)  # What minimising the AUC would have kept.


@pytest.mark.parametrize("scoring", ["roc_auc", "accuracy", "loss"])
def test_case_139_the_metric_asked_for_decides(scoring):
    """The kept epoch is the best by the metric of ``scoring``, and the last ones are worse."""
    X, y = noisy(90)
    model = FMClassifier(**OVERFITTING, early_stopping=True, scoring=scoring, tol=0)
    model.fit(X[:60], y[:60], X_val=X[60:], y_val=y[60:])
    values = np.array(model.history_[f"validation_{scoring}"])
    best = values.argmin() if scoring == "loss" else values.argmax()
    assert model.best_iteration_ == best + 1
    assert model.best_score_ == values[best]
    assert model.n_iter_ == len(values) == best + 1 + model.n_iter_no_change
    p = model.predict_proba(X[60:])[:, 1]
    again = {
        "roc_auc": roc_auc_score(y[60:], p),
        "accuracy": accuracy_score(y[60:], p > 0.5),
        "loss": log_loss(y[60:], p),
    }[scoring]
    assert again == pytest.approx(model.best_score_, rel=1e-9)


def test_case_139_different_metrics_keep_different_epochs():
    """Where loss and AUC disagree about the best epoch, ``scoring`` changes the model."""
    kept = set()
    for scoring in ("loss", "roc_auc"):
        X, y = noisy(90, seed=1)
        model = FMClassifier(
            **OVERFITTING, early_stopping=True, scoring=scoring, n_iter_no_change=8
        )
        kept.add(model.fit(X[:60], y[:60], X_val=X[60:], y_val=y[60:]).best_iteration_)
    assert len(kept) == 2


def test_case_141_what_happened_can_be_read():
    """Epochs run, best epoch and score, and a figure per epoch are attributes of plain numbers."""
    X, y = noisy()
    model = FMClassifier(early_stopping=True, validation_fraction=0.2, random_state=0).fit(X, y)
    assert set(model.history_) == {"loss", "validation_loss", "seconds", "rows_per_second"}
    for values in model.history_.values():
        assert len(values) == model.n_iter_
        assert all(isinstance(value, float) for value in values)
    assert 1 <= model.best_iteration_ <= model.n_iter_
    assert model.best_score_ == model.history_["validation_loss"][model.best_iteration_ - 1]
    plain = FMClassifier(early_stopping=False, random_state=0).fit(X, y)
    assert set(plain.history_) == {"loss", "seconds", "rows_per_second"}
    assert plain.best_score_ == min(plain.history_["loss"])
    assert plain.t_ == plain.n_iter_ * 60


def test_case_142_training_loss_falls():
    """On noise, ten epochs lower the training loss, each within 5 % of the one before."""
    X, y = noisy(200)
    model = FMClassifier(max_iter=10, tol=0, random_state=0).fit(X, y)
    loss = np.array(model.history_["loss"])
    assert (loss[1:] < 1.05 * loss[:-1]).all()
    assert loss[-1] < 0.9 * loss[0]
    assert len(loss) == 10


def test_case_143_the_model_is_the_best_not_the_last():
    """50 rows, overfitted: what is returned scores as the best epoch did, not as the last."""
    X, y = noisy(50, 30)
    X_val, y_val = noisy(300, 30, seed=1)
    model = FMClassifier(**OVERFITTING, early_stopping=True, n_iter_no_change=5)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    values = model.history_["validation_loss"]
    kept = log_loss(y_val, model.predict_proba(X_val))
    assert kept == pytest.approx(model.best_score_, rel=1e-9)
    assert kept == pytest.approx(min(values), rel=1e-9)
    assert values[-1] > 1.01 * kept
    watched = FMClassifier(**OVERFITTING, early_stopping=False, tol=0, max_iter=model.n_iter_)
    watched.fit(X, y, X_val=X_val, y_val=y_val)  # Written down only: the last epoch stays.
    last = log_loss(y_val, watched.predict_proba(X_val))
    assert last == pytest.approx(values[-1], rel=1e-9)
