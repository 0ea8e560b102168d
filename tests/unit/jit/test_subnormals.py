"""Compiled loops take subnormal numbers for zero, and nothing outside them does."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyfm import FMRegressor
from polyfm._jit import flush_subnormals, jit, restore_mode

TINY = np.finfo(np.float32).smallest_normal


@jit
def halved(numbers, out, flush):
    mode = flush_subnormals() if flush else 0
    for i in range(numbers.size):
        out[i] = numbers[i] * numbers.dtype.type(0.5)
    if flush:
        restore_mode(mode)
    return mode


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_and_operands_below_the_normal_numbers_are_zero(dtype):
    least = np.finfo(dtype).smallest_normal
    numbers = np.array([1.0, least, least / 4], dtype=dtype)
    out = np.empty_like(numbers)
    halved(numbers, out, False)
    np.testing.assert_array_equal(out, numbers / 2)
    halved(numbers, out, True)
    np.testing.assert_array_equal(out, np.array([0.5, 0.0, 0.0], dtype=dtype))


def test_the_mode_ends_with_the_loop():
    out = np.empty(1, dtype=np.float32)
    for _ in range(3):
        halved(np.array([TINY]), out, True)
    halved(np.array([TINY]), out, False)
    assert out[0] == TINY / 2
    assert np.float32(TINY) / np.float32(2.0) > 0


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_factors_that_a_penalty_shrinks_end_at_zero(n_jobs):
    random = np.random.default_rng(0)
    X = sp.csr_matrix(np.eye(30, dtype=np.float32)[random.integers(0, 30, 500)])
    X = sp.hstack([X, X[random.permutation(500)]]).tocsr()
    model = FMRegressor(beta=3e3, max_iter=150, tol=0, early_stopping=False, n_jobs=n_jobs)
    model.set_params(random_state=0).fit(X, random.normal(size=500))
    assert model.factors_[2].dtype == np.float32
    sizes = np.abs(model.factors_[2])
    assert np.all((sizes == 0) | (sizes >= TINY))
    assert (sizes == 0).any()
