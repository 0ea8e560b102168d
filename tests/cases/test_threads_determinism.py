"""Publicly reported faults of other programs: results that vary, threads nobody asked for.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest
from recompute import parameters
from sklearn.datasets import load_iris

from polyfm import FMClassifier, FMRegressor

HERE = pathlib.Path(__file__).parent
PROGRAM = """
from recompute import parameters
from sklearn.datasets import load_iris
from polyfm import FMClassifier
X, y = load_iris(return_X_y=True)
model = FMClassifier(random_state=0, max_iter=20).fit(X[:100], y[:100])
print(parameters(model).tobytes().hex())
"""


def iris():
    X, y = load_iris(return_X_y=True)
    return X[:100], y[:100]


def test_case_133_another_process_gives_the_same_bits():
    """Iris, two classes, seed 0: this process and a new one agree in every bit."""
    model = FMClassifier(random_state=0, max_iter=20).fit(*iris())
    path = os.pathsep.join([str(HERE), *sys.path])
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "123"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == parameters(model).tobytes().hex()
    assert found.stderr == ""


def test_case_133_the_seed_decides():
    """Equal seeds give equal models, other seeds others, whatever NumPy's own state is."""
    X, y = iris()
    models = []
    for seed in (0, 0, 1):
        np.random.seed(len(models))
        models.append(parameters(FMClassifier(random_state=seed, max_iter=5).fit(X, y)))
    np.testing.assert_array_equal(models[0], models[1])
    assert (models[0] != models[2]).any()


def test_case_134_threads_change_little():
    """Four threads with one seed: not the same bits, as documented, but as good a model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=2000)
    one = FMRegressor(random_state=0, max_iter=20, tol=0).fit(X, y)
    four = FMRegressor(random_state=0, max_iter=20, tol=0, n_jobs=4).fit(X, y)
    error_1, error_4 = (np.std(y - model.predict(X)) for model in (one, four))
    assert error_1 < 0.3 * np.std(y)
    assert abs(error_4 - error_1) < 0.05 * np.std(y)
    for cls in (FMRegressor, FMClassifier):
        text = " ".join(cls.__doc__.split())
        assert "With an int and ``n_jobs=1`` a fit is reproducible bit for bit" in text
        assert "not reproducible bit for bit" in text


def test_case_135_the_smallest_problem():
    """eye(5), seed 1, twice: equal with one thread; with more, each row is visited once."""
    X, y = np.eye(5), np.arange(5.0)
    first, second = (parameters(FMRegressor(random_state=1).fit(X, y)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    several = FMRegressor(random_state=1, n_jobs=3).fit(X, y)
    assert np.isfinite(parameters(several)).all()
    assert several.t_ == 5 * several.n_iter_


@pytest.fixture
def started(monkeypatch):
    """A list that grows with every thread that Python starts."""
    threads = []
    start = threading.Thread.start

    def record(self):
        threads.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", record)
    return threads


@pytest.mark.parametrize("n_jobs, most", [(None, 0), (1, 0), (2, 2)])
def test_case_137_threads_are_those_asked_for(started, n_jobs, most):
    """Training and prediction start no thread unless n_jobs says so, and then no more than that."""
    X, y = iris()
    model = FMClassifier(random_state=0, max_iter=1, n_jobs=n_jobs)
    model.fit(X, y)
    assert len(started) <= most
    del started[:]
    p = model.predict_proba(X)
    assert len(started) <= most
    np.testing.assert_array_equal(p, model.set_params(n_jobs=1).predict_proba(X))


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all"])
def test_case_137_impossible_numbers_of_threads(n_jobs):
    """Refused in words."""
    with pytest.raises(ValueError, match="n_jobs must be"):
        FMClassifier(n_jobs=n_jobs).fit(*iris())
