"""Publicly reported faults of other programs: rows that are scaled behind the user's back.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import numpy as np
from recompute import from_formula
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from polyfm import FMClassifier, FMRegressor
from polyfm.data import OneHotFieldEncoder


def rows(n_rows=200, n_columns=4, seed=0):
    X = np.random.default_rng(seed).uniform(0.1, 0.5, size=(n_rows, n_columns))
    return X, X[:, 0] + 4 * X[:, 1] * X[:, 2] + np.where(X[:, 3] > 0.3, 1.0, 0.0)


def test_case_061_scores_are_those_of_raw_rows():
    """The formula on the row [.1, .2, .3, .5] as it is gives the score; so does every row."""
    X, y = rows()
    model = FMClassifier(beta=0.01, random_state=0).fit(X, (y > np.median(y)).astype(int))
    x = np.array([[0.1, 0.2, 0.3, 0.5]])
    np.testing.assert_allclose(model.decision_function(x), from_formula(model, x), rtol=1e-12)
    assert abs(from_formula(model, x) - from_formula(model, x / np.linalg.norm(x)))[0] > 0.01
    np.testing.assert_allclose(model.decision_function(X), from_formula(model, X), rtol=1e-10)


def test_case_061_training_sees_raw_rows():
    """Rows of one direction and different lengths have different targets, and they are learnt."""
    lengths = np.linspace(0.1, 3.0, 200)
    X = lengths[:, None] * np.array([[1.0, 2.0]])
    model = FMRegressor(random_state=0).fit(X, lengths)
    assert model.score(X, lengths) > 0.95


def test_case_062_normalisation_is_a_step_of_a_pipeline():
    """Who wants rows of length 1 puts scikit-learn's Normalizer first and sees its output."""
    X, y = rows()
    piped = make_pipeline(Normalizer(), FMRegressor(random_state=0)).fit(X, y)
    normalised = X / np.sqrt((X**2).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(piped[:-1].transform(X), normalised, rtol=1e-12)
    np.testing.assert_allclose(piped.predict(X), from_formula(piped[-1], normalised), rtol=1e-10)
    plain = FMRegressor(random_state=0).fit(X, y)
    assert np.abs(plain.predict(X) - piped.predict(X)).max() > 0.1


def test_case_063_the_size_of_numbers_is_information():
    """y = x0 among columns of 0 to 100 is learnt, by default and by plain SGD of step 0.001."""
    X = np.random.default_rng(0).uniform(0, 100, size=(300, 5))
    for options in ({}, {"solver": "sgd", "learning_rate": 0.001}):
        model = FMRegressor(random_state=0, **options).fit(X, X[:, 0])
        assert model.score(X, X[:, 0]) > 0.9
        assert np.corrcoef(model.predict(X), X[:, 0])[0, 1] > 0.95


def test_case_065_sets_are_normalised_only_as_documented():
    """The encoder's one normalisation, of sets, is a documented option; one-hot stays ones."""
    table = {"id": ["a", "b", "c"], "group": ["x", "y", "x"], "tags": [["p", "q"], ["p"], []]}
    plain = OneHotFieldEncoder(set_norm=None).fit_transform(table).toarray()
    assert set(np.unique(plain)) == {0.0, 1.0}
    assert plain.sum(axis=1).tolist() == [4.0, 3.0, 2.0]
    encoder = OneHotFieldEncoder()
    default = encoder.fit_transform(table).toarray()
    assert default[0].tolist() == [1, 0, 0, 1, 0, 0.5, 0.5]
    assert 'set_norm : {"l1", "l2", None}, default="l1"' in OneHotFieldEncoder.__doc__
