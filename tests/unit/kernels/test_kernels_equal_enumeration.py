"""Compiled predictions equal the definitions of the kernels, of every order, layout and rank."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyfm._jit import LANES
from polyfm.kernels import ANOVA, AllSubsets, Polynomial, columns, reference
from polyfm.kernels import contract as kernels
from polyfm.kernels.pairs import Pairs
from polyfm.models.layout import lay_out
from polyfm.testing._kernels import evaluate
from polyfm.testing._models import enumerated_scores, model_of, rows_of

RANKS = (1, 3, 8, 11)
VARIANTS = {
    "explicit": dict(lower="explicit", inhomogeneous=False),
    "augment": dict(lower="augment", inhomogeneous=False),
    "one degree": dict(lower=None, inhomogeneous=False),
    "inhomogeneous": dict(lower=None, inhomogeneous=True),
}
X = np.array(
    [
        [1.0, -2.0, 0.0, 0.5, 3.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
        [-1.0, -1.0, -1.0, -1.0, -1.0, -1.0],
        [1e-3, 1e4, -1e-3, 0.0, 2e-3, 1e-3],
        [0.3, 0.0, 0.0, 0.0, -0.7, 1.1],
    ]
)


def random_model(random, kernel, order, rank, *, linear, lower, inhomogeneous, dtype=np.float64):
    layout = lay_out(kernel, order, rank, lower=lower, linear=linear, inhomogeneous=inhomogeneous)
    d = X.shape[1]
    table = random.normal(size=(d + layout.n_dummies, layout.rank))
    table[random.random(table.shape) < 0.1] = 0.0
    return model_of(
        layout.kernel,
        table,
        bias=random.normal(),
        linear=random.normal(size=d) * linear,
        lam=random.normal(size=layout.rank),
        theta=random.normal(size=kernels.n_degree_weights(layout.kernel)),
        degrees=layout.degrees,
        n_dummies=layout.n_dummies,
        dtype=dtype,
    )


def sizes_of(model):
    """Return the model and the rows whose prediction is the sum of the sizes of what is added."""
    positive = (np.abs(block.astype(np.float64)) for block in model.parameters)
    sizes = model.parameters._make(positive)
    return enumerated_scores(type(model)(model.kernel, {}, sizes, model.n_dummies), np.abs(X))


def assert_equals_enumeration(model, relative):
    got, wanted = (
        model.scores(rows_of(X, dtype=model.parameters.table.dtype)),
        enumerated_scores(model, X),
    )
    assert np.all(np.abs(got - wanted) <= relative * (1e-3 + sizes_of(model)))


@pytest.mark.parametrize("order", range(1, 7))
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kernel", [ANOVA(), Polynomial()], ids=["anova", "polynomial"])
def test_kernels_with_degrees(random, kernel, variant, order):
    linear = order % 2 == 0
    for rank in RANKS if order < 5 else (3,):
        model = random_model(random, kernel, order, rank, linear=linear, **VARIANTS[variant])
        assert_equals_enumeration(model, 1e-10)


@pytest.mark.parametrize("rank", RANKS)
def test_all_subsets(random, rank):
    model = random_model(random, AllSubsets(), 2, rank, linear=True, **VARIANTS["explicit"])
    assert_equals_enumeration(model, 1e-10)


@pytest.mark.parametrize("variant", VARIANTS)
def test_single_precision(random, variant):
    model = random_model(random, ANOVA(), 3, 11, linear=True, dtype=np.float32, **VARIANTS[variant])
    assert_equals_enumeration(model, 1e-5)


def test_threads_predict_the_same_bits(random):
    model = random_model(random, ANOVA(), 3, 8, linear=True, **VARIANTS["explicit"])
    rows = rows_of(random.normal(size=(101, 6)))
    assert np.array_equal(model.scores(rows, n_jobs=3), model.scores(rows))


def test_no_rows_and_no_bases(random):
    model = random_model(random, ANOVA(), 1, 8, linear=True, **VARIANTS["explicit"])
    assert model.rank == 0
    p = model.parameters
    assert np.allclose(model.scores(rows_of(X)), p.bias[0, 0] + X @ p.linear[:, 0], atol=1e-10)
    assert model.scores(rows_of(np.zeros((0, 6)))).shape == (0,)


numbers = st.floats(-1e3, 1e3, allow_nan=False, allow_subnormal=False)


@given(st.lists(numbers, max_size=7), st.lists(numbers, min_size=3, max_size=3))
def test_any_terms_and_degree_weights(terms, theta):
    lanes = np.repeat(np.array(terms)[:, None], LANES, axis=1).reshape(len(terms), LANES)
    sizes, theta = [abs(z) for z in terms], np.array(theta)
    for kernel in (ANOVA(3), Polynomial(3)):
        got = evaluate(kernel, lanes, theta)
        bound = 1e-12 * reference.value(kernel, sizes, np.abs(theta)) + 1e-290
        assert abs(got.value[0] - reference.value(kernel, terms, theta)) <= bound
        slopes = np.array(reference.slopes(kernel, terms, theta))
        bounds = np.array(reference.slopes(kernel, sizes, np.abs(theta))) * 1e-12 + 1e-290
        assert np.all(np.abs(got.slopes[:, 0] - slopes) <= bounds)


def test_definitions_by_hand():
    assert reference.anova([2, 3, 5], 2) == 2 * 3 + 2 * 5 + 3 * 5
    assert reference.anova([2, 3, 5], 3) == 30
    assert reference.anova([2, 3, 5], 4) == 0
    assert reference.anova([2, 3], 0) == 1
    assert reference.polynomial([2, 3, 5], 3) == 1000
    assert reference.polynomial([], 2) == 0
    assert reference.all_subsets([2, 3, 5]) == 3 * 4 * 6
    assert reference.all_subsets([]) == 1


@pytest.mark.parametrize("kernel", [ANOVA(4), Polynomial(3), AllSubsets()], ids=str)
def test_enumerated_slopes_equal_differences(random, kernel):
    terms = list(random.normal(size=5))
    theta = list(random.normal(size=4))
    for j, slope in enumerate(reference.slopes(kernel, terms, theta)):
        above, below = list(terms), list(terms)
        above[j] += 1e-5
        below[j] -= 1e-5
        difference = reference.value(kernel, above, theta) - reference.value(kernel, below, theta)
        assert slope == pytest.approx(difference / 2e-5, abs=1e-6)


def test_reference_knows_which_kernels_have_one():
    assert reference.has_reference(ANOVA(2))
    assert not reference.has_reference((2,))


# The identities of augmentation: a dummy feature of value 1 brings in the lower degrees.


def scores_of(kernel, basis, **keywords):
    return model_of(kernel, np.reshape(basis, (-1, 1)), **keywords).scores(rows_of(X))


def only(degree, m):
    return np.arange(1, m + 1) == degree


@pytest.mark.parametrize("m", [2, 3, 4])
def test_one_dummy_adds_the_degree_below(random, m):
    p, g = random.normal(size=6), random.normal()
    theta = only(m, m)
    augmented = scores_of(ANOVA(m), np.append(p, g), theta=theta, n_dummies=1)
    apart = scores_of(ANOVA(m), p, theta=theta + g * only(m - 1, m))
    assert np.allclose(augmented, apart, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("m", "r"), [(3, 2), (4, 2), (4, 3), (5, 4)])
def test_dummies_weigh_degrees_by_elementary_symmetric_polynomials(random, m, r):
    p, g = random.normal(size=6), random.normal(size=r)
    augmented = scores_of(ANOVA(m), np.append(p, g), theta=only(m, m), n_dummies=r)
    theta = [reference.anova(list(g), m - t) if m - t <= r else 0.0 for t in range(1, m + 1)]
    assert np.allclose(augmented, scores_of(ANOVA(m), p, theta=theta), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("m", [1, 2, 5])
def test_dummy_makes_the_polynomial_inhomogeneous(random, m):
    p, g = random.normal(size=6), random.normal()
    augmented = scores_of(Polynomial(m), np.append(p, g), theta=only(m, m), n_dummies=1)
    assert np.allclose(augmented, (g + X @ p) ** m, rtol=1e-10)


def test_all_subsets_is_one_plus_all_degrees(random):
    p = random.normal(size=6)
    degrees = scores_of(ANOVA(6), p)
    assert np.allclose(scores_of(AllSubsets(), p), 1.0 + degrees, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("t", [2, 3])
def test_low_rank_tensor(random, t):
    """A sum of ANOVA kernels is the contraction of X with a symmetric low-rank tensor."""
    P = random.normal(size=(6, 4))
    letters = "abc"[:t]
    tensor = np.einsum(",".join(f"{c}s" for c in letters) + "->" + letters, *[P] * t)
    contracted = [
        sum(tensor[c] * np.prod(x[list(c)]) for c in itertools.combinations(range(6), t)) for x in X
    ]
    got = model_of(ANOVA(t), P, theta=only(t, t)).scores(rows_of(X))
    assert np.allclose(got, contracted, rtol=1e-9, atol=1e-9)


def test_columns_kernel_of_degree_2_is_that_of_pairs(random):
    terms, weights = random.normal(size=(6, LANES)), np.array([0.0, 1.0])
    alone = columns.alone(ANOVA(2))
    assert alone == Pairs() and columns.alone(ANOVA(3)) == ANOVA(3)
    general, special = evaluate(ANOVA(2), terms, weights), evaluate(alone, terms, weights)
    np.testing.assert_array_equal(special.value, general.value)
    np.testing.assert_array_equal(special.slopes, general.slopes)
