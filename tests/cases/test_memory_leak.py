"""Publicly reported faults of other programs: memory and threads that pile up.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import gc
import threading
import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_wine

from polyfm import FMClassifier


def wine():
    X, y = load_wine(return_X_y=True)
    return X, y == 1


def test_case_127_fits_leave_nothing_behind():
    """After a warm-up, a hundred fits add next to nothing to Python's and NumPy's memory."""
    X, y = wine()

    def fit_often(n):
        for seed in range(n):
            FMClassifier(rank=200, max_iter=1, random_state=seed).fit(X, y).predict_proba(X)
        gc.collect()

    fit_often(5)
    tracemalloc.start()
    try:
        fit_often(5)
        before = tracemalloc.get_traced_memory()[0]
        fit_often(100)
        growth = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert growth < 400_000  # A hundred models of this size would be 4 MB.


def test_case_127_the_process_does_not_grow():
    """Memory outside Python's sight does not pile up either: 200 fits, less than 4 MB."""
    psutil = pytest.importorskip("psutil")
    X, y = wine()
    process = psutil.Process()

    def fit_often(n):
        for seed in range(n):
            FMClassifier(max_iter=1, random_state=seed, n_jobs=1).fit(X, y).predict(X)
        gc.collect()
        return process.memory_info().rss

    before = fit_often(50)
    assert fit_often(200) - before < 4_000_000


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_case_129_predictions_leave_no_threads(n_jobs):
    """200 calls of predict: no thread of them is left, in Python or in the process."""
    psutil = pytest.importorskip("psutil")
    X, y = wine()
    model = FMClassifier(max_iter=1, random_state=0, n_jobs=n_jobs).fit(X, y)
    expected = model.predict(X)
    python, native = threading.active_count(), psutil.Process().num_threads()
    for _ in range(200):
        np.testing.assert_array_equal(model.predict(X), expected)
    assert threading.active_count() == python
    assert psutil.Process().num_threads() <= native + 2 * n_jobs  # Some may be about to end.
