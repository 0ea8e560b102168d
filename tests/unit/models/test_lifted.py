"""The lifted kernels and models against their definitions."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from polyfm.data.rows import as_rows
from polyfm.kernels import ANOVA, Polynomial, lifted, reference
from polyfm.models._lifted_score import LiftedParameters
from polyfm.models.lifted import Lifted


def enumerated(kernel, factors, x):
    """Return the lifted kernel of (m, d) factors, tuple by tuple."""
    m, d = factors.shape
    distinct = isinstance(kernel, ANOVA)
    places = (
        itertools.permutations(range(d), m) if distinct else itertools.product(range(d), repeat=m)
    )
    total = sum(math.prod(factors[t, j] * x[j] for t, j in enumerate(p)) for p in places)
    return total / math.factorial(m) if distinct else total


def state_of(kernel, factors, x):
    cells = np.full((1, lifted.n_cells(kernel)), np.nan)
    lifted.begin(kernel, cells, 0)
    for j in range(len(x)):
        lifted.absorb(kernel, cells, 0, factors[:, j], x[j])
    return cells


KERNELS = [kind(m) for kind in (Polynomial, ANOVA) for m in (2, 3, 4)]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("d", [1, 3, 5])
def test_value_equals_enumeration(random, kernel, d):
    factors, x = random.normal(size=(kernel.degree, d)), random.normal(size=d)
    value = lifted.value(kernel, state_of(kernel, factors, x), 0)
    assert value == pytest.approx(enumerated(kernel, factors, x), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_equal_factors_give_the_kernel_itself(random, kernel):
    p, x = random.normal(size=6), random.normal(size=6)
    value = lifted.value(kernel, state_of(kernel, np.tile(p, (kernel.degree, 1)), x), 0)
    weights = np.eye(kernel.degree)[-1]
    assert value == pytest.approx(reference.value(kernel, list(p * x), list(weights)), rel=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_slopes_and_shifts(random, kernel):
    factors, x = random.normal(size=(kernel.degree, 5)), random.normal(size=5)
    for slot, j in itertools.product(range(kernel.degree), range(5)):
        cells = state_of(kernel, factors, x)
        rest = np.full((2, cells.shape[1]), np.nan)
        lifted.focus(kernel, cells, 0, slot)
        assert lifted.set_apart(kernel, cells, 0, slot, factors[:, j], x[j], rest)
        changed = factors.copy()
        changed[slot, j] += 0.7
        expected = enumerated(kernel, changed, x) - enumerated(kernel, factors, x)
        assert 0.7 * lifted.slope(kernel, cells, 0, slot, x[j], rest) == pytest.approx(expected)
        lifted.shift(kernel, cells, 0, slot, 0.7 * x[j], rest)
        np.testing.assert_allclose(
            lifted.value(kernel, cells, 0), enumerated(kernel, changed, x), rtol=1e-10
        )
        whole = state_of(kernel, changed, x)
        n = kernel.degree if isinstance(kernel, Polynomial) else whole.shape[1]
        np.testing.assert_allclose(cells[0, :n], whole[0, :n], rtol=1e-9, atol=1e-12)


def test_lost_digits_are_noticed():
    kernel = ANOVA(3)
    factors, x = np.ones((3, 4)), np.array([1e5, 1e-3, 2e-3, -1e-3])
    cells, rest = state_of(kernel, factors, x), np.empty((2, 8))
    assert not lifted.set_apart(kernel, cells, 0, 1, factors[:, 0], x[0], rest)
    assert lifted.set_apart(kernel, cells, 0, 1, factors[:, 1], x[1], rest)


def model_of(random, kernel, d, rank=3, n_dummies=0):
    table = random.normal(size=(d + n_dummies, rank, kernel.degree))
    parameters = LiftedParameters(
        random.normal(size=1), random.normal(size=d), table, np.ones(d, np.uint8)
    )
    return Lifted(kernel, parameters, n_dummies)


@pytest.mark.parametrize("n_dummies", [0, 1, 2])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_scores(random, kernel, n_dummies):
    model = model_of(random, kernel, 4, n_dummies=n_dummies)
    p = model.parameters
    X = random.normal(size=(6, 4)) * (random.random((6, 4)) < 0.7)
    whole = np.hstack([X, np.ones((6, n_dummies))])
    expected = [
        p.bias[0] + p.linear @ x + sum(enumerated(kernel, p.table[:, s].T, z) for s in range(3))
        for x, z in zip(X, whole, strict=True)
    ]
    np.testing.assert_allclose(model.scores(as_rows(sp.csr_matrix(X))), expected, rtol=1e-10)
    assert (model.n_features, model.rank, model.degree) == (4, 3, kernel.degree)


@given(seed=st.integers(0, 1000), degree=st.integers(2, 5), distinct=st.booleans())
def test_slots_can_change_places(seed, degree, distinct):
    random = np.random.default_rng(seed)
    kernel = ANOVA(degree) if distinct else Polynomial(degree)
    model = model_of(random, kernel, 6)
    rows = as_rows(sp.csr_matrix(random.normal(size=(4, 6))))
    p = model.parameters
    shuffled = np.ascontiguousarray(p.table[:, :, random.permutation(degree)])
    other = Lifted(kernel, p._replace(table=shuffled))
    np.testing.assert_allclose(model.scores(rows), other.scores(rows), rtol=1e-9, atol=1e-9)


def test_threads_score_the_same(random):
    model = model_of(random, ANOVA(3), 10)
    rows = as_rows(sp.random(5000, 10, 0.4, format="csr", random_state=0))
    assert np.array_equal(model.scores(rows), model.scores(rows, 3))
