"""Divergence and interrupts: an error in plain words, and everything as it was before."""

import numpy as np
import pytest

from polyfm import DivergenceError, FMClassifier, FMRegressor

WILD = dict(solver="sgd", schedule="constant", learning_rate=1e9)


@pytest.fixture
def problem(random):
    X = random.normal(size=(60, 4))
    return X, X[:, 0] * X[:, 1] + X[:, 2]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_divergence_names_epoch_and_rate(problem, n_jobs):
    X, y = problem
    model = FMRegressor(random_state=0, n_jobs=n_jobs, **WILD)
    before = dict(vars(model))
    with pytest.raises(DivergenceError) as caught:
        model.fit(X, y)
    message = str(caught.value)
    assert "epoch 1" in message
    assert "learning rate is 1e+09" in message
    assert "lower learning_rate" in message
    assert vars(model) == before


def test_divergence_leaves_an_earlier_fit(problem):
    X, y = problem
    for warm_start in (False, True):
        model = FMRegressor(solver="sgd", max_iter=2, random_state=0, warm_start=warm_start)
        model.fit(X, y)
        before, n_visits = model.predict(X), model.t_
        model.set_params(learning_rate=1e9)
        # A warm start keeps the rule it began with, so large values have to blow it up.
        with pytest.raises((DivergenceError, ValueError)):
            model.fit(X * 1e150, y)
        assert np.array_equal(model.predict(X), before)
        assert model.t_ == n_visits


def test_diverging_batch_leaves_the_stream(problem):
    X, y = problem
    model = FMRegressor(solver="sgd", random_state=0).partial_fit(X, y)
    before = model.predict(X)
    with pytest.raises(DivergenceError, match="not a finite number"):
        model.partial_fit(X[:5] * np.array([[1], [1], [1], [1e120], [1]]), y[:5])
    assert np.array_equal(model.predict(X), before)
    assert model.t_ == 60
    twin = FMRegressor(solver="sgd", random_state=0).partial_fit(X, y).partial_fit(X[:5], y[:5])
    assert np.array_equal(model.partial_fit(X[:5], y[:5]).predict(X), twin.predict(X))


def test_unusable_input_leaves_an_earlier_fit(problem):
    X, y = problem
    model = FMClassifier(max_iter=2, random_state=0).fit(X, y > 0)
    before = model.predict_proba(X)
    for bad in (np.full_like(X, np.nan), X[:10]):
        with pytest.raises(ValueError, match=r"NaN|inconsistent"):
            model.fit(bad, y > 0)
        assert np.array_equal(model.predict_proba(X), before)


INTERRUPTED = """
    import os, signal, sys, threading, time
    import numpy as np
    from polyfm import FMRegressor
    from polyfm.progress import Progress

    # A test run in the background of a shell inherits that Ctrl-C is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    n_jobs = int(sys.argv[1])
    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 20))
    y = X[:, 0] * X[:, 1]
    endless = dict(max_iter=10**9, tol=0, early_stopping=False, random_state=0, n_jobs=n_jobs)
    fitted = FMRegressor(max_iter=1, random_state=0, warm_start=True, n_jobs=n_jobs)
    fitted.fit(X[:500], y[:500])
    before = fitted.predict(X[:50])
    fitted.set_params(**endless)
    fresh = FMRegressor(**endless)
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    for model in (fitted, fresh):
        threading.Timer(1.0, interrupt).start()
        try:
            model.fit(X, y)
        except KeyboardInterrupt:
            print(time.monotonic() - sent[-1])
    print(np.array_equal(fitted.predict(X[:50]), before), fitted.n_iter_)
    print(np.isfinite(fresh.predict(X[:50])).all(), threading.active_count())
"""


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt(run_python, n_jobs):
    *waits, kept, adopted = run_python(INTERRUPTED, n_jobs).splitlines()
    assert len(waits) == 2
    # A second is promised; the rest is patience with a busy machine.
    assert max(map(float, waits)) < 5.0
    assert kept == "True 1"
    assert adopted == "True 1"
