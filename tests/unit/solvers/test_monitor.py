"""When training stops and which epoch it keeps."""

import numpy as np
import pytest

from polyfm import FMRegressor
from polyfm.solvers.monitor import Stopper


def run(values, **settings):
    stopper = Stopper(**settings)
    for value in values:
        stopper.update(value)
        if stopper.should_stop:
            break
    return stopper


def test_stops_after_patience_runs_out():
    stopper = run([5.0, 4.0, 4.0, 4.5, 3.0], patience=2)
    assert (stopper.n_epochs, stopper.best, stopper.best_epoch) == (4, 4.0, 2)


def test_goes_on_while_it_improves():
    stopper = run([5.0, 4.0, 4.5, 3.0, 2.0], patience=2)
    assert (stopper.n_epochs, stopper.best_epoch) == (5, 5)
    assert not stopper.should_stop


def test_small_improvements_do_not_count_but_the_best_is_kept():
    stopper = run([5.0, 4.95, 4.9, 4.85], patience=3, tol=0.2)
    assert stopper.should_stop
    assert (stopper.best, stopper.best_epoch) == (4.85, 4)


def test_slow_improvements_add_up():
    # Each is below the tolerance, but together they are beyond it before patience runs out.
    assert not run([5.0, 4.9, 4.8, 4.7, 4.6], patience=3, tol=0.15).should_stop


def test_larger_may_be_better():
    stopper = run([0.5, 0.7, 0.6, 0.6], patience=2, maximize=True)
    assert (stopper.best, stopper.best_epoch, stopper.should_stop) == (0.7, 2, True)


@pytest.fixture
def problem(random):
    X = random.normal(size=(100, 4))
    return X, X[:, 0] * X[:, 1] + random.normal(scale=2.0, size=100)


def test_best_epoch_on_validation_rows_is_kept(problem):
    X, y = problem
    settings = dict(beta=0.0, alpha=0.0, tol=0, random_state=0, init_scale=0.3)
    given = dict(X_val=X[70:], y_val=y[70:])
    model = FMRegressor(max_iter=60, early_stopping=True, scoring="rmse", **settings)
    model.fit(X[:70], y[:70], **given)
    history = model.history_["validation_rmse"]
    assert model.n_iter_ == len(history) < 60
    assert model.best_iteration_ == int(np.argmin(history)) + 1 == model.n_iter_ - 3
    assert model.best_score_ == min(history)
    # The parameters are those of the best epoch: training just so long gives the same.
    again = FMRegressor(max_iter=model.best_iteration_, early_stopping=False, **settings)
    again.fit(X[:70], y[:70], **given)
    assert np.array_equal(again.predict(X), model.predict(X))
    rmse = np.sqrt(np.mean((model.predict(X[70:]) - y[70:]) ** 2))
    assert rmse == pytest.approx(model.best_score_, rel=1e-12)


def test_validation_without_early_stopping_is_only_written_down(problem):
    X, y = problem
    model = FMRegressor(max_iter=7, tol=0, early_stopping=False, random_state=0)
    watched = model.fit(X[:70], y[:70], X_val=X[70:], y_val=y[70:])
    assert len(watched.history_["validation_loss"]) == watched.n_iter_ == 7
    predictions = watched.predict(X)
    unwatched = FMRegressor(max_iter=7, tol=0, early_stopping=False, random_state=0)
    assert np.array_equal(unwatched.fit(X[:70], y[:70]).predict(X), predictions)
    assert "validation_loss" not in unwatched.history_


def test_history_starts_at_the_loss_of_a_constant(problem):
    X, y = problem
    history = FMRegressor(max_iter=5, tol=0, random_state=0).fit(X, y).history_
    assert set(history) == {"loss", "seconds", "rows_per_second"}
    assert history["loss"][0] == pytest.approx(0.5 * y.var(), rel=0.2)
    assert history["loss"][-1] < history["loss"][0]
    assert min(history["seconds"]) > 0
