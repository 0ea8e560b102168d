"""Which bases, degrees and dummy features a description of a model leads to."""

import numpy as np
import pytest

from polyfm.kernels import ANOVA, AllSubsets, Polynomial
from polyfm.models.factorized import Factorized
from polyfm.models.layout import lay_out
from polyfm.testing._models import model_of, rows_of


def shape(kernel, order, *, lower="explicit", linear=True, inhomogeneous=False, rank=4):
    return lay_out(kernel, order, rank, lower=lower, linear=linear, inhomogeneous=inhomogeneous)


def test_explicit_degrees_have_matrices_of_their_own():
    layout = shape(ANOVA(), 3)
    assert layout.columns == {2: slice(0, 4), 3: slice(4, 8)}
    assert layout.degrees.tolist() == [[0] * 8, [1] * 4 + [0] * 4, [0] * 4 + [1] * 4]
    assert (layout.rank, layout.n_dummies, layout.kernel) == (8, 0, ANOVA(3))


@pytest.mark.parametrize(("linear", "n_dummies"), [(True, 2), (False, 3)])
def test_augmented_anova_has_a_dummy_for_each_missing_degree(linear, n_dummies):
    layout = shape(ANOVA(), 4, lower="augment", linear=linear)
    assert layout.n_dummies == n_dummies
    assert layout.columns == {4: slice(0, 4)}


def test_augmented_polynomial_has_one_dummy():
    assert shape(Polynomial(), 5, lower="augment").n_dummies == 1


def test_inhomogeneous_shares_one_matrix():
    layout = shape(ANOVA(), 3, inhomogeneous=True)
    assert layout.degrees[:, 0].tolist() == [0, 1, 1]
    assert shape(ANOVA(), 3, inhomogeneous=True, linear=False).degrees[:, 0].tolist() == [1, 1, 1]
    assert layout.shared


def test_all_subsets_have_no_degrees():
    layout = shape(AllSubsets(), 7)
    assert (layout.columns, layout.degrees.shape) == ({0: slice(0, 4)}, (0, 4))


def test_order_one_has_no_bases():
    for kernel in (ANOVA(), Polynomial()):
        assert shape(kernel, 1).rank == 0


def test_start_scales_give_the_interactions_the_asked_spread(random):
    """Interactions of degree t of a row of ones start with a deviation of spread^(2 / t)."""
    n_terms, spread = 12, 0.3
    for order in (2, 3):
        layout = shape(ANOVA(), order, lower=None, rank=5)
        scales = layout.start_scales(n_terms, spread)
        X = np.ones((1, n_terms))
        scores = []
        for _ in range(400):
            table = random.normal(size=(n_terms, 5)) * scales
            model = model_of(layout.kernel, table, degrees=layout.degrees)
            scores.append(model.scores(rows_of(X))[0])
        assert np.std(scores) == pytest.approx(spread ** (2 / order), rel=0.25)


def test_weights_only_keeps_predictions(random):
    model = model_of(ANOVA(2), random.normal(size=(4, 3)), linear=random.normal(size=4), bias=1.0)
    p = model.parameters
    # As while learning: another plane behind each weight, and the number of visits.
    wide = p._replace(
        bias=np.vstack([p.bias, p.bias + 1]),
        linear=np.hstack([p.linear, p.linear + 1, p.linear + 2]),
        table=np.concatenate([p.table, p.table + 1], axis=1),
        weights=np.vstack([p.weights, p.weights + 1]),
        theta=np.vstack([p.theta, p.theta + 1]),
    )
    learning = Factorized(model.kernel, model.columns, wide)
    rows = rows_of(random.normal(size=(5, 4)))
    assert np.array_equal(learning.scores(rows), model.scores(rows))
    slim = learning.weights_only()
    assert np.array_equal(slim.scores(rows), model.scores(rows))
    assert slim.parameters.table.shape == (4, 1, 3)
    assert not np.shares_memory(slim.parameters.bias, wide.bias)
