"""Publicly reported faults of other programs: noise on the terminal, and kernels that just die.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import io
import os
import signal
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from recompute import parameters

from polyfm import FMClassifier, FMRegressor
from polyfm.solvers.stochastic import StochasticLearner


class Terminal(io.StringIO):
    def isatty(self):
        return True


def rows(n_rows=120):
    X = np.random.default_rng(0).normal(size=(n_rows, 4))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_case_193_silence(capfd, n_jobs):
    """Without verbose no byte reaches either stream, not even from compiled code."""
    X, y = rows()
    model = FMClassifier(random_state=0, early_stopping=True, n_jobs=n_jobs).fit(X, y)
    model.partial_fit(X, y).predict_proba(X)
    model.score(X, y)
    assert capfd.readouterr() == ("", "")


def test_case_193_words_through_python(capsys):
    """verbose=1 writes a line per epoch to sys.stdout, where Python can redirect it."""
    X, y = rows()
    FMClassifier(random_state=0, verbose=1, max_iter=3, tol=0).fit(X, y)
    written = capsys.readouterr()
    lines = written.out.splitlines()
    assert len(lines) == 3
    assert all(f"epoch {i}/3" in line for i, line in enumerate(lines, start=1))
    assert "loss" in lines[0]
    assert written.err == ""


def test_case_194_progress_changes_no_result(monkeypatch):
    """A bar on a terminal, a line per epoch, or nothing: the same parameters."""
    X, y = rows()
    silent = FMClassifier(random_state=0, max_iter=5).fit(X, y)
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    loud = FMClassifier(random_state=0, max_iter=5, verbose=1).fit(X, y)
    assert "epoch 5" in screen.getvalue()
    np.testing.assert_array_equal(parameters(loud), parameters(silent))


@pytest.mark.parametrize("n_rows", [1, 7, 9, 1_000_000])
def test_case_194_any_number_of_rows_and_threads(n_rows):
    """Eight threads predict one row, fewer rows than threads, or a million."""
    X, y = rows()
    model = FMClassifier(random_state=0, max_iter=2, verbose=1, n_jobs=8)
    model.set_params(verbose=0).fit(X, y).set_params(verbose=1)
    few = np.arange(n_rows) % 120
    p = model.predict_proba(sp.csr_matrix(X)[few])
    assert p.shape == (n_rows, 2)
    np.testing.assert_array_equal(p, model.set_params(n_jobs=1).predict_proba(X)[few])


def test_case_194_no_rows():
    """A table without rows is refused as scikit-learn's estimators refuse it."""
    X, y = rows()
    model = FMClassifier(random_state=0, max_iter=2, n_jobs=8).fit(X, y)
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(X[:0])


def endless():
    """Epochs of seconds: an interrupt has to come in the middle of one."""
    rng = np.random.default_rng(0)
    n_rows, n_ids = 200_000, 20
    columns = rng.integers(0, 1000, n_rows * n_ids)
    X = sp.csr_matrix(
        (np.ones(columns.size), columns, np.arange(0, columns.size + 1, n_ids)), (n_rows, 1000)
    )
    return X, rng.integers(0, 2, n_rows)


@pytest.fixture
def interrupted(monkeypatch):
    """A function that sends Ctrl-C into a fit that would go on for minutes, once it is learning."""
    learn = StochasticLearner.epoch
    # A test run in the background of a shell inherits that Ctrl-C is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def fit(model, X, y):
        alarm = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT))

        def learn_and_wait(*args, **kwargs):
            if alarm.ident is None:
                alarm.start()
            return learn(*args, **kwargs)

        monkeypatch.setattr(StochasticLearner, "epoch", learn_and_wait)
        try:
            with pytest.raises(KeyboardInterrupt):
                model.fit(X, y)
        finally:
            alarm.cancel()
            alarm.join()

    yield fit
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill would end the process")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_case_195_ctrl_c(interrupted, n_jobs):
    """KeyboardInterrupt, in the middle of an epoch; a fitted model stays as it was, bit for bit."""
    X, y = endless()
    options = {"rank": 64, "order": 3, "tol": 0, "early_stopping": False, "max_iter": 10_000}
    model = FMClassifier(random_state=0, n_jobs=n_jobs, **options)
    model.set_params(max_iter=1).fit(X[:1000], y[:1000])
    before, attributes = parameters(model), dict(vars(model))
    model.set_params(max_iter=10_000)
    interrupted(model, X, y)
    np.testing.assert_array_equal(parameters(model), before)
    assert model.n_iter_ == attributes["n_iter_"]
    assert model.history_ == attributes["history_"]
    interrupted(model.set_params(warm_start=True), X, y)
    np.testing.assert_array_equal(parameters(model), before)
    model.set_params(max_iter=1, warm_start=False).fit(X[:1000], y[:1000])
    if n_jobs == 1:
        np.testing.assert_array_equal(parameters(model), before)


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill would end the process")
def test_case_195_ctrl_c_in_a_first_fit(interrupted):
    """What was learnt so far is kept, and can be used; the epoch it happened in is not counted."""
    X, y = endless()
    options = {"rank": 64, "order": 3, "tol": 0, "early_stopping": False}
    FMClassifier(max_iter=1, **options).fit(X[:100], y[:100])  # So that nothing is left to compile.
    model = FMClassifier(max_iter=10_000, **options)
    interrupted(model, X, y)
    assert 0 < model.t_ < 10_000 * len(y)
    assert len(model.history_.get("loss", [])) == model.n_iter_ == model.t_ // len(y)
    assert np.isfinite(model.predict_proba(X[:5])).all()


@pytest.mark.parametrize(
    "name, value",
    [
        ("order", 0), ("order", 2.0), ("order", "2"),
        ("rank", -1), ("rank", 1.5), ("rank", None), ("rank", True),
        ("kernel", "x"), ("kernel", 3), ("fit_lower", "x"),
        ("loss", "x"), ("loss", None), ("solver", "x"), ("solver", 0),
        ("alpha", -1), ("alpha", np.nan), ("alpha", np.inf), ("alpha", None), ("alpha", "auto"),
        ("beta", -1), ("beta", np.nan), ("beta", "x"), ("beta", None),
        ("penalty", "x"), ("penalty", None), ("l1_ratio", 2), ("l1_ratio", np.nan),
        ("learning_rate", 0), ("learning_rate", -1), ("learning_rate", np.nan),
        ("learning_rate", np.inf), ("learning_rate", "x"),
        ("schedule", "x"), ("power_t", -1), ("power_t", np.nan),
        ("max_iter", 0), ("max_iter", -1), ("max_iter", 1.5), ("tol", -1), ("tol", np.nan),
        ("tol", None), ("n_iter_no_change", 0), ("early_stopping", "x"), ("early_stopping", None),
        ("validation_fraction", 0), ("validation_fraction", 1), ("validation_fraction", np.nan),
        ("scoring", "x"), ("init_scale", 0), ("init_scale", np.nan), ("init_scale", "x"),
        ("random_state", "x"), ("random_state", -1), ("n_jobs", 0), ("verbose", -1),
        ("verbose", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cls", [FMRegressor, FMClassifier])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_case_197_impossible_parameters(cls, name, value, method):
    """An exception that names the parameter or shows its value; nothing dies."""
    X, y = rows(10)
    if method == "partial_fit" and name == "scoring":
        pytest.skip("plays no part in partial_fit")
    model = cls(**{name: value})
    with pytest.raises((ValueError, TypeError)) as caught:
        getattr(model, method)(X, y)
    message = str(caught.value)
    assert name in message or repr(value) in message or "Seed must be" in message
    assert not hasattr(model, "coef_")


def test_case_197_losses_of_the_other_task():
    """A loss for classes in a regression and the other way round, and counts below zero."""
    X, y = rows(10)
    with pytest.raises(ValueError, match="use FMClassifier"):
        FMRegressor(loss="logistic").fit(X, y)
    with pytest.raises(ValueError, match="use FMRegressor"):
        FMClassifier(loss="squared").fit(X, y)
    with pytest.raises(ValueError, match="-3"):
        FMRegressor(loss="poisson").fit(X, np.where(y == 0, -3.0, 1.0))
