"""The prediction is the sum of the interaction weights of the features that are there."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from polyfm import FMClassifier, FMRegressor
from polyfm.inspection import interaction_matrix, interaction_weight

D = 6
RANDOM = np.random.default_rng(5)
X = (RANDOM.random((80, D)) < 0.5).astype(float)
Y = 10.0 + X[:, 0] - 2.0 * X[:, 1] * X[:, 2] + 3.0 * X[:, 3] * X[:, 4] * X[:, 5]

MODELS: dict[str, dict[str, Any]] = {
    "explicit": {"order": 3},
    "augment": {"order": 3, "fit_lower": "augment"},
    "augment-no-linear": {"order": 4, "fit_lower": "augment", "fit_linear": False},
    "only-highest": {"order": 3, "fit_lower": None},
    "weights": {"order": 3, "fit_weights": True},
    "inhomogeneous": {"order": 3, "kernel": "inhomogeneous-anova"},
    "inhomogeneous-theta": {
        "order": 3,
        "kernel": "inhomogeneous-anova",
        "fit_weights": True,
        "fit_linear": False,
    },
    "all-subsets": {"kernel": "all-subsets"},
    "linear": {"order": 1},
}


def fitted(**options: Any) -> FMRegressor:
    model = FMRegressor(rank=3, max_iter=4, tol=0, beta=0.01, init_scale=0.4, random_state=0)
    return model.set_params(**options).fit(X, Y)


def expanded(model: Any, row: Any, class_index: int | None = None) -> Any:
    active = [int(j) for j in np.flatnonzero(row)]
    subsets = (s for q in range(len(active) + 1) for s in combinations(active, q))
    return sum(np.asarray(interaction_weight(model, s, class_index)) for s in subsets)


@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
def test_prediction_is_the_sum_of_its_interactions(options: dict[str, Any]) -> None:
    model = fitted(**options)
    rows = X[:12]
    sums = [expanded(model, row) for row in rows]
    np.testing.assert_allclose(sums, model.predict(rows), rtol=0, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"fit_lower": "augment"}, {"fit_lower": None}], ids=str)
def test_polynomial_weights_are_mixed_derivatives(options: dict[str, Any]) -> None:
    # Of products of first powers; finite differences at 0 are exact once all powers are cancelled.
    model = fitted(kernel="polynomial", order=3, **options)
    h = 1e-3
    for pair in ((0, 1), (2, 5)):
        total = 0.0
        for signs in np.ndindex(2, 2):
            row = np.zeros((1, D))
            row[0, list(pair)] = h * (1 - 2 * np.array(signs))
            total += (-1) ** sum(signs) * model.predict(row)[0]
        slope = total / (4 * h * h)
        assert interaction_weight(model, pair) == pytest.approx(slope, abs=1e-5)


def test_polynomial_of_highest_degree_has_all_orders() -> None:
    model = fitted(kernel="polynomial", order=3)
    p = model.factors_[3]
    expected = 6 * (p[0] * p[2] * p[4]).sum()
    assert interaction_weight(model, (4, 0, 2)) == pytest.approx(expected, rel=1e-12)


def test_one_weight_per_class() -> None:
    y = np.digitize(Y, [9.0, 11.0])
    model = FMClassifier(max_iter=3, random_state=0).fit(X, y)
    raw = model.decision_function(X[:5])
    sums = np.array([expanded(model, row) for row in X[:5]])
    np.testing.assert_allclose(sums, raw, rtol=0, atol=1e-10)
    assert interaction_weight(model, [0, 1], class_index=2) == interaction_weight(model, [0, 1])[2]
    with pytest.raises(ValueError, match="class_index must be None or from 0 to 2"):
        interaction_weight(model, [0, 1], class_index=3)


def test_features_by_name() -> None:
    model = fitted()
    names = list("abcdef")
    by_name = interaction_weight(model, ["c", "b"], feature_names=names)
    assert by_name == interaction_weight(model, [1, 2])
    pd = pytest.importorskip("pandas")
    framed = FMRegressor(max_iter=2).fit(pd.DataFrame(X, columns=names), Y)
    assert interaction_weight(framed, ["a", "f"]) == interaction_weight(framed, [0, 5])


@pytest.mark.parametrize(
    ("features", "message"),
    [([0, 0], "distinct"), ([-1], "out of range"), ([6], "has 6 features"), (["?"], "no feature")],
)
def test_impossible_features(features: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        interaction_weight(fitted(), features)


def test_names_of_another_number() -> None:
    with pytest.raises(ValueError, match="2 names for 6 features"):
        interaction_weight(fitted(), ["a"], feature_names=["a", "b"])


@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
def test_matrix_holds_the_weights_of_pairs(options: dict[str, Any]) -> None:
    model = fitted(**options)
    matrix = interaction_matrix(model, [4, 1, 3])
    for a, i in enumerate([4, 1, 3]):
        for b, j in enumerate([4, 1, 3]):
            expected = interaction_weight(model, [i, j]) if i != j else 0.0
            assert matrix[a, b] == pytest.approx(expected, abs=1e-12)
    assert interaction_matrix(model).shape == (D, D)


def test_matrix_of_a_polynomial_gives_the_quadratic_form() -> None:
    model = fitted(kernel="polynomial", order=2)
    matrix = interaction_matrix(model)
    row = RANDOM.normal(size=(1, D))
    off = matrix - np.diag(np.diag(matrix))
    square = 0.5 * row @ off @ row.T + (row**2) @ np.diag(matrix)
    expected = model.intercept_ + row @ model.coef_ + square.ravel()
    np.testing.assert_allclose(model.predict(row), expected, rtol=1e-12)
