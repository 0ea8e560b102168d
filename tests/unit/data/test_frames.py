"""What counts as a table, seen through the encoder."""

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from polyfm.data import OneHotFieldEncoder


def encode(X, **parameters):
    encoder = OneHotFieldEncoder(**parameters)
    matrix = encoder.fit_transform(X)
    return encoder, matrix.toarray(), encoder.get_feature_names_out().tolist()


def test_pandas_categories_of_numbers_stay_categories():
    frame = pd.DataFrame({"user": pd.Categorical([10, 20, 10])})
    _, X, names = encode(frame)
    assert names == ["user=10", "user=20"]
    assert X.tolist() == [[1, 0], [0, 1], [1, 0]]


def test_nullable_integers_and_dates():
    frame = pd.DataFrame(
        {"n": pd.array([1, None], dtype="Int64"), "d": pd.to_datetime(["2020-01-02", None])}
    )
    _, X, names = encode(frame)
    assert names == ["n", "n=<missing>", "d=2020-01-02 00:00:00", "d=<missing>"]
    np.testing.assert_array_equal(X, [[1, 0, 1, 0], [0, 1, 0, 1]])


def test_lazy_frames_and_array_dates():
    _, X, _ = encode(pl.DataFrame({"c": ["a", "b"]}).lazy())
    np.testing.assert_array_equal(X, np.eye(2))
    dates = np.array([["2020-01-01"], ["NaT"]], dtype="datetime64[D]")
    assert encode(dates)[2] == ["x0=2020-01-01", "x0=<missing>"]


def test_arrow_dictionaries_and_polars_categories():
    table = pa.table({"c": pa.array(["b", "a", None]).dictionary_encode()})
    frame = pl.DataFrame({"c": pl.Series(["b", "a", None], dtype=pl.Categorical)})
    for X in (table, frame, nw.from_native(frame)):
        assert encode(X)[2] == ["c=a", "c=b", "c=<missing>"]
        np.testing.assert_array_equal(encode(X)[1], np.eye(3)[[1, 0, 2]])


def test_columns_without_any_value():
    _, X, names = encode({"c": [None, None], "g": [[], []]})
    assert names == ["c=<missing>"]
    assert X.tolist() == [[1], [1]]


def test_dictionaries_of_series_and_arrays():
    columns = {"a": pd.Series(["u", "v"], index=[5, 5]), "b": np.array(["x", "x"])}
    assert encode(columns)[2] == ["a=u", "a=v", "b=x"]


def test_bytes_and_numpy_scalars_in_lists():
    _, X, names = encode([[b"u", np.int64(3)], [np.str_("v"), 4]])
    assert names == ["x0=u", "x0=v", "x1=3", "x1=4"]
    np.testing.assert_array_equal(X, [[1, 0, 1, 0], [0, 1, 0, 1]])
    assert encode(np.array([[b"u"], [b"v"]]))[2] == ["x0=u", "x0=v"]


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (sp.eye(3).tocsr(), TypeError, "already encoded"),
        ({"a": [1, 2], "b": [1]}, ValueError, "different lengths"),
        ([[1, 2], [1]], ValueError, "row 1 has 1 cells, row 0 has 2"),
        ([1, 2, 3], ValueError, "Expected 2D array, got 1D"),
        ({"a": [1.0, np.inf]}, ValueError, "column 'a', row 1: infinity"),
        ({"a": [{"k": 1}]}, TypeError, "column 'a', row 0.* got dict"),
        (pd.Series(["a"]), ValueError, "Expected 2D array, got 1D"),
        ({"a": []}, ValueError, r"0 sample\(s\)"),
        ({"a": [1j]}, ValueError, "Complex data not supported"),
    ],
)
def test_bad_tables(X, error, message):
    with pytest.raises(error, match=message):
        OneHotFieldEncoder().fit(X)
