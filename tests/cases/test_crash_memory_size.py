"""Publicly reported faults of other programs: processes that die of sizes.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from recompute import from_formula

from polyfm import FMClassifier, FMRegressor

HERE = pathlib.Path(__file__).parent
STRAY_ID = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
import numpy as np, scipy.sparse as sp
from polyfm import FMClassifier
d = 2**31 - 1
X = sp.csr_matrix((np.ones(4), np.array([0, 1, d - 1, 0]), np.arange(5)), shape=(4, d))
model = FMClassifier()
try:
    model.fit(X, [0, 1, 1, 0])
except MemoryError as error:
    assert not hasattr(model, "coef_")
    print(error)
"""
GOES_ON = """
from sklearn.datasets import load_iris
from polyfm import FMClassifier
X, y = load_iris(return_X_y=True)
for n_jobs in (1, 2):
    model = FMClassifier(n_jobs=n_jobs, max_iter=2).fit(X[:100], y[:100])
print(len(model.predict(X)))
"""


def run(program):
    path = os.pathsep.join([str(HERE), *sys.path])
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process")
def test_case_121_one_stray_id():
    """Id 2^31 - 2 in one of four rows: MemoryError in words, no crash, nothing half fitted.

    A table of factors has a row for every column, so such an id asks for hundreds of gigabytes.
    The message says how many columns there are, how much memory that takes, and what to do.
    """
    found = run(STRAY_ID)
    assert found.returncode == 0, found.stderr[-2000:]
    assert "GiB" in found.stdout
    assert "2147483647" in found.stdout.replace(",", "")
    assert "hash" in found.stdout or "OneHotFieldEncoder" in found.stdout


@pytest.mark.parametrize("rank", [1, 3, 5, 9, 50])
@pytest.mark.parametrize("order", [2, 3])
def test_case_122_any_rank(rank, order):
    """Ranks that are no multiple of 4 or 8 give what the definition gives."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 9))
    y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] * X[:, 4]
    model = FMRegressor(rank=rank, order=order, max_iter=5, init_scale=0.3, random_state=0)
    model.fit(X, y)
    assert model.factors_[order].shape == (9, rank)
    assert (model.factors_[order] != 0).all()
    np.testing.assert_allclose(model.predict(X), from_formula(model, X), rtol=1e-9, atol=1e-10)


def test_case_125_the_process_goes_on():
    """After fits with one and two threads there is a next statement, and an orderly end."""
    found = run(GOES_ON)
    assert found.returncode == 0
    assert found.stdout == "150\n"
    assert found.stderr == ""


def test_case_121_wide_and_empty():
    """Ten million columns, four of them used: fits, and only the used ones have weights."""
    import scipy.sparse as sp

    columns = np.array([0, 5_000_000, 9_999_999, 77])
    X = sp.csr_matrix((np.ones(4), columns, np.arange(5)), shape=(4, 10_000_000))
    model = FMClassifier(rank=1, max_iter=1, random_state=0).fit(X, [0, 1, 1, 0])
    assert np.flatnonzero(model.coef_).tolist() == sorted(columns.tolist())
