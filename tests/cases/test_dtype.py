"""Publicly reported faults of other programs: number types that are refused or misread.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from recompute import parameters
from sklearn.feature_extraction import DictVectorizer

from polyfm import FMClassifier, FMRegressor
from polyfm.data import OneHotFieldEncoder


def matrix():
    X = sp.random(60, 8, density=0.4, format="csr", random_state=0)
    return X, np.resize([0, 1, 1, 0, 1], 60)


def with_indices(X, indices, indptr):
    other = X.copy()
    other.indices, other.indptr = X.indices.astype(indices), X.indptr.astype(indptr)
    assert other.indices.dtype == indices
    return other


@pytest.mark.parametrize("indices", [np.int32, np.int64])
@pytest.mark.parametrize("indptr", [np.int32, np.int64])
def test_case_089_wide_index_arrays(indices, indptr):
    """32- and 64-bit indices and row pointers, alone and together, give the same bits."""
    X, y = matrix()
    expected = parameters(FMClassifier(max_iter=5, random_state=0).fit(X, y))
    wide = with_indices(X, indices, indptr)
    model = FMClassifier(max_iter=5, random_state=0).fit(wide, y)
    np.testing.assert_array_equal(parameters(model), expected)
    assert wide.indices.dtype == indices
    assert wide.indptr.dtype == indptr


def test_case_090_wide_indices_in_every_method():
    """Learning and predicting take 64-bit indices alike."""
    X, y = matrix()
    wide = with_indices(X, np.int64, np.int64)
    model = FMClassifier(random_state=0).partial_fit(wide, y)
    twin = FMClassifier(random_state=0).partial_fit(X, y)
    np.testing.assert_array_equal(parameters(model), parameters(twin))
    for method in ("predict", "predict_proba", "decision_function"):
        expected = getattr(twin, method)(X)
        np.testing.assert_array_equal(getattr(model, method)(wide), expected)
    assert model.score(wide, y) == twin.score(X, y)


def test_case_091_row_pointers_of_a_huge_matrix():
    """64-bit row pointers beside 32-bit column indices, as a large hashed text has."""
    X, y = matrix()
    wide = with_indices(X, np.int32, np.int64)
    model = FMRegressor(max_iter=5, random_state=0).fit(wide, y)
    expected = FMRegressor(max_iter=5, random_state=0).fit(X, y).predict(X)
    np.testing.assert_array_equal(model.predict(wide), expected)


@pytest.mark.parametrize("integer", [np.int64, np.int32, np.uint8])
def test_case_093_numpy_integers_as_parameters(integer):
    """NumPy's integers are as good as Python's, for every parameter that is a number."""
    X, y = matrix()
    counts = {"order": 2, "rank": 3, "max_iter": 4, "n_iter_no_change": 2, "random_state": 7}
    given = {name: integer(value) for name, value in counts.items()}
    model = FMRegressor(**given, n_jobs=integer(1), alpha=np.float32(0.5)).fit(X, y)
    twin = FMRegressor(**counts, alpha=0.5).fit(X, y)
    np.testing.assert_array_equal(parameters(model), parameters(twin))
    classes = FMClassifier(random_state=0).fit(X, y.astype(integer)).classes_
    assert classes.dtype == integer


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.int64, np.uint8, bool])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_case_094_all_number_types(dtype, container):
    """Numbers that a type can hold exactly give the model that doubles give."""
    if container is sp.csr_matrix and dtype is np.float16:
        pytest.skip("SciPy has no sparse matrices of half precision")
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(60, 6)).astype(dtype)
    y = rng.integers(0, 5, 60)
    model = FMRegressor(max_iter=5, random_state=0).fit(container(X), y)
    twin = FMRegressor(max_iter=5, random_state=0).fit(X.astype(np.float64), y.astype(np.float64))
    np.testing.assert_array_equal(parameters(model), parameters(twin))


def test_case_094_single_precision_is_kept():
    """float32 rows give a float32 model that agrees with the double one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    y = X[:, 0] + X[:, 1] * X[:, 2]
    single = FMRegressor(max_iter=10, random_state=0).fit(X.astype(np.float32), y)
    double = FMRegressor(max_iter=10, random_state=0).fit(X, y)
    assert single.coef_.dtype == single.factors_[2].dtype == np.float32
    assert double.coef_.dtype == double.factors_[2].dtype == np.float64
    np.testing.assert_allclose(single.predict(X), double.predict(X), atol=1e-4)
    # Brought back to the target's unit, predictions are double: an offset may be large.
    assert single.predict(X).dtype == np.float64


def test_case_097_four_dictionary_rows():
    """User and item as text beside a numeric age, four rows, rank 4: it runs, from any encoder."""
    ages, y = [19, 33, 55, 20], [0, 1, 1, 0]
    users, items = ["1", "2", "3", "1"], ["5", "43", "20", "10"]
    rows = [{"user": u, "item": i, "age": a} for u, i, a in zip(users, items, ages, strict=True)]
    for X in (
        DictVectorizer().fit_transform(rows),
        OneHotFieldEncoder(dtype=np.float64).fit_transform(rows),
    ):
        model = FMClassifier(rank=4, random_state=0).fit(X, y)
        assert model.factors_[2].shape == (8, 4)
        assert model.predict(X).tolist() == y


def test_case_098_frames_with_any_index():
    """Rows of X and y count by position; the names of the columns are kept and compared."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 3)), columns=["a", "b", "c"])
    y = frame["a"] + frame["b"] * frame["c"]
    plain = FMRegressor(random_state=0).fit(frame.to_numpy(), y.to_numpy())
    shuffled = frame.set_axis(rng.permutation(50) + 7)
    model = FMRegressor(random_state=0).fit(shuffled, y.set_axis(np.arange(50)[::-1]))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(parameters(model), parameters(plain))
    np.testing.assert_array_equal(model.predict(shuffled), plain.predict(frame.to_numpy()))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c"]])
