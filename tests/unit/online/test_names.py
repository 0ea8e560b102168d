"""Rows with names: hashing, frames, and what single events refuse."""

import numpy as np
import pytest
from sklearn.feature_extraction import FeatureHasher

from polyfm import FMRegressor, FTRLClassifier, FTRLRegressor, PolynomialNetworkRegressor
from polyfm.data.hashing import hash_rows


@pytest.mark.parametrize("n_features", [7, 1024, 2**20])
def test_hashing_is_that_of_scikit_learn(n_features, random):
    rows = [
        {f"n{random.integers(300)}": float(random.normal()) for _ in range(5)}
        | {f"t{k}": f"v{random.integers(50)}" for k in range(5)}
        | {"zero": 0, "yes": True}
        for _ in range(50)
    ]
    expected = FeatureHasher(n_features, alternate_sign=False).transform(rows)
    found = hash_rows(rows, n_features)
    np.testing.assert_allclose(found.toarray()[:, :1024], expected.toarray()[:, :1024], rtol=1e-12)
    assert found.has_canonical_format and (found.data != 0).all()


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"a": [1]}, "row 1: the value of 'a' must be a number, a text or None"),
        ({"a": float("inf")}, "row 1: the value of 'a' must be finite"),
        ({3: 1.0}, "row 1: names must be text, got 3"),
        (["a"], "row 1 must be a dict"),
    ],
)
def test_entries_that_cannot_be_hashed(row, words):
    with pytest.raises((TypeError, ValueError), match=words):
        hash_rows([{}, row], 8)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_frames_are_found_by_name(library):
    frames = pytest.importorskip(library)
    columns = {"age": [0.5, 1.5, None], "town": ["a", None, "b"]}
    y = [1.0, 2.0, 3.0]
    model = FTRLRegressor(max_features=64).partial_fit(frames.DataFrame(columns), y)
    turned = frames.DataFrame(dict(reversed(columns.items())))
    rows = [{"age": 0.5, "town": "a"}, {"age": 1.5}, {"town": "b"}]
    for same in (frames.DataFrame(columns), turned, rows):
        np.testing.assert_array_equal(model.predict(same), model.predict(rows))
    assert len(set(model.predict(rows))) == 3


def test_dictionaries_need_a_space():
    with pytest.raises(ValueError, match="with max_features only"):
        FTRLRegressor().partial_fit([{"a": 1.0}], [1.0])
    with pytest.raises(ValueError, match="with max_features only"):
        FTRLRegressor().learn_one({"a": 1.0}, 1.0)
    assert not hasattr(PolynomialNetworkRegressor(), "learn_one")
    assert not hasattr(FMRegressor(solver="cd"), "learn_one")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_features": 0}, "max_features must be finite, >= 1"),
        ({"max_features": 8, "solver": "cd"}, "solvers that learn row by row"),
        ({"max_features": 8, "beta": [1.0, 2.0]}, "beta must be one number"),
    ],
)
def test_spaces_that_cannot_be(options, words):
    with pytest.raises(ValueError, match=words):
        FMRegressor(**options).fit(np.eye(3), np.ones(3))


def test_names_keep_their_columns():
    model = FTRLRegressor(max_features=64).learn_one({"a": 1.0}, 1.0)
    model.set_params(max_features=128)
    with pytest.raises(ValueError, match="max_features was 64 when the first names were hashed"):
        model.learn_one({"a": 1.0}, 1.0)


def test_parameters_may_change_between_events():
    rates = FTRLRegressor(max_features=16).learn_one({"a": 1.0}, 1.0)
    before = rates.predict_one({"a": 1.0})
    rates.set_params(learning_rate=-1.0)
    with pytest.raises(ValueError, match="learning_rate"):
        rates.learn_one({"a": 1.0}, 1.0)
    assert rates.predict_one({"a": 1.0}) == before


@pytest.mark.parametrize("y", [float("nan"), float("inf")])
def test_targets_that_are_no_numbers(y):
    model = FTRLRegressor(max_features=16).learn_one({"a": 1.0}, 1.0)
    with pytest.raises(ValueError, match="finite"):
        model.learn_one({"a": 1.0}, y)


def test_labels_that_were_not_announced():
    model = FTRLClassifier(max_features=16)
    with pytest.raises(ValueError, match="at least two classes"):
        model.learn_one({"a": 1.0}, "x")
    model.learn_one({"a": 1.0}, "x", classes=["x", "y"])
    with pytest.raises(ValueError, match="'z' is not among the classes"):
        model.learn_one({"a": 1.0}, "z")
    with pytest.raises(ValueError, match="differ from those of the first call"):
        model.learn_one({"a": 1.0}, "x", classes=["x", "z"])
