"""Publicly reported faults of other programs: models that cannot be looked into.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import json

import numpy as np
import pandas as pd
from recompute import from_formula

from polyfm import FMClassifier, FMRegressor
from polyfm.data import OneHotFieldEncoder


def rows(n_rows=400):
    X = np.random.default_rng(0).normal(size=(n_rows, 5))
    return X, 3 * X[:, 0] + 2 * X[:, 1] * X[:, 2]


def test_case_182_the_pair_that_matters():
    """y = 3 x0 + 2 x1 x2: the strongest pair is (1, 2), the strongest weight that of x0."""
    from polyfm.inspection import interaction_matrix, interaction_weight, strongest_interactions

    X, y = rows()
    model = FMRegressor(random_state=0).fit(X, y)
    best = strongest_interactions(model, top=3)
    assert set(best[0].features) == {1, 2}
    assert abs(best[0].weight - 2) < 0.3
    assert abs(best[1].weight) < 0.3
    assert np.abs(model.coef_).argmax() == 0

    V = model.factors_[2]
    expected = V @ V.T
    np.fill_diagonal(expected, 0)
    matrix = interaction_matrix(model)
    np.testing.assert_allclose(matrix, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(interaction_weight(model, [2, 1]), V[1] @ V[2], rtol=1e-10)


def test_case_183_the_formula_elsewhere():
    """Bias, weights and factors, written as JSON text and read again, give every prediction."""
    X, y = rows(50)
    model = FMRegressor(order=3, random_state=0).fit(X, y)
    assert isinstance(model.intercept_, float)
    assert model.coef_.shape == (5,)
    assert {t: factors.shape for t, factors in model.factors_.items()} == {2: (5, 8), 3: (5, 8)}

    class Read:
        pass

    text = json.dumps(
        [model.intercept_, model.coef_.tolist(), {t: v.tolist() for t, v in model.factors_.items()}]
    )
    other = Read()
    other.intercept_, coef, factors = json.loads(text)
    other.coef_ = np.array(coef)
    other.factors_ = {int(t): np.array(v) for t, v in factors.items()}
    np.testing.assert_allclose(from_formula(other, X), model.predict(X), rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(other.factors_[3], model.factors_[3])


def test_case_183_one_formula_per_class():
    """With three classes each has a bias, weights and factors of its own, along a first axis."""
    X, _ = rows(60)
    model = FMClassifier(random_state=0, max_iter=5).fit(X, np.arange(60) % 3)
    assert model.intercept_.shape == (3,)
    assert model.coef_.shape == (3, 5)
    assert model.factors_[2].shape == (3, 5, 8)
    scores = model.decision_function(X)
    for k in range(3):
        quadratic = ((X @ model.factors_[2][k]) ** 2 - X**2 @ model.factors_[2][k] ** 2).sum(axis=1)
        expected = model.intercept_[k] + X @ model.coef_[k] + quadratic / 2
        np.testing.assert_allclose(scores[:, k], expected, rtol=1e-9, atol=1e-12)


def test_case_183_a_file_and_back(tmp_path):
    """A model file keeps every public number and predicts the same bits."""
    from polyfm import load_model, save_model

    X, y = rows(50)
    model = FMRegressor(order=3, random_state=0).fit(X, y)
    save_model(model, tmp_path / "model.polyfm")
    other = load_model(tmp_path / "model.polyfm")
    assert other.intercept_ == model.intercept_
    np.testing.assert_array_equal(other.coef_, model.coef_)
    for t in (2, 3):
        np.testing.assert_array_equal(other.factors_[t], model.factors_[t])
    np.testing.assert_array_equal(other.predict(X), model.predict(X))


def test_case_185_names_of_features():
    """Frames give feature_names_in_, the encoder names its columns, and inspection uses names."""
    from polyfm.inspection import strongest_interactions

    X, y = rows()
    names = ["a", "b", "c", "d", "e"]
    model = FMRegressor(random_state=0).fit(pd.DataFrame(X, columns=names), y)
    assert model.feature_names_in_.tolist() == names
    assert set(strongest_interactions(model, top=1)[0].names) == {"b", "c"}
    encoder = OneHotFieldEncoder().fit({"u": ["x", "y"], "n": [1.0, 2.0]})
    assert encoder.get_feature_names_out().tolist() == ["u=x", "u=y", "n"]
    assert not hasattr(FMRegressor().fit(X, y), "feature_names_in_")
