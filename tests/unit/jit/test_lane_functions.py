"""Functions of lanes: compiled, eight at a time, they are what they are one by one."""

import numpy as np
import pytest

from polyfm._jit import LANES, jit, load, power, store, where_positive


@jit
def _powers(numbers, exponent, out):
    store(out, 0, LANES, power(load(numbers, 0, LANES), exponent))


@jit
def _power(number, exponent):
    return power(number, exponent)


@jit
def _choices(condition, out):
    store(out, 0, LANES, where_positive(load(condition, 0, LANES), load(condition, 0, LANES), -2.0))


@jit
def _choice(condition):
    return where_positive(condition, condition, -2.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [0.5, 0.8, 1.0, 0.0])
def test_power(dtype, exponent):
    numbers, out = np.linspace(0.0, 9.0, LANES).astype(dtype), np.zeros(LANES, dtype)
    _powers(numbers, exponent, out)
    wanted = np.array([float(number) ** exponent for number in numbers])
    assert np.allclose(out, wanted, rtol=8 * np.finfo(dtype).eps, atol=0)
    assert np.allclose(power(numbers, exponent), wanted, rtol=8 * np.finfo(dtype).eps, atol=0)
    assert _power(numbers[3], exponent) == pytest.approx(wanted[3], rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_where_positive(dtype):
    condition = np.array([1.5, -1.0, 0.0, -0.0, 3.0, -np.inf, 1e-30, np.inf], dtype)
    out, wanted = np.zeros(LANES, dtype), np.where(condition > 0, condition, -2.0)
    _choices(condition, out)
    assert np.array_equal(out, wanted)
    assert np.array_equal(where_positive(condition, condition, -2.0), wanted)
    assert [_choice(float(one)) for one in condition] == wanted.tolist()
