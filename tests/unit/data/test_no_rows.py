"""Tables without rows, and names of columns that must be told apart."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from polyfm.data import Batch, HashingEncoder, OneHotFieldEncoder, VocabularyEncoder, encode

TABLE = {
    "user": ["a", "b", None],
    "n": [1, 2, 2],
    "x": [0.5, None, 2.0],
    "tags": [["p", "q"], [], ["q"]],
}
FRAMES = {
    "pandas": pd.DataFrame(TABLE),
    "polars": pl.DataFrame(TABLE),
    "pyarrow": pa.table(TABLE),
}
ENCODERS = [
    OneHotFieldEncoder(),
    OneHotFieldEncoder(numeric="bin", handle_unknown="error", missing="ignore"),
    HashingEncoder(n_bits=6),
    HashingEncoder(n_bits=4, per_field=True, signed=True),
    VocabularyEncoder(),
    VocabularyEncoder(growing=False, min_count=2, handle_unknown="category"),
]


def assert_no_rows_of(X, encoder):
    assert X.format == "csr"
    assert X.shape == (0, encoder.n_features_out_)
    assert X.dtype == encoder.dtype
    assert X.nnz == 0


@pytest.mark.parametrize("encoder", ENCODERS, ids=str)
@pytest.mark.parametrize("kind", FRAMES)
def test_frames(kind, encoder):
    frame = FRAMES[kind]
    encoder.fit(frame)
    assert_no_rows_of(encoder.transform(frame[:0]), encoder)
    assert_no_rows_of(encoder.transform({name: [] for name in TABLE}), encoder)
    with pytest.raises(ValueError, match="columns missing from X"):
        encoder.transform({"user": []})
    with pytest.raises(ValueError, match="0 sample"):
        encoder.fit(frame[:0])


@pytest.mark.parametrize("encoder", ENCODERS, ids=str)
def test_arrays_and_dictionaries(encoder):
    encoder.fit(np.array([["a", "b"], ["c", "d"]], dtype=object))
    assert_no_rows_of(encoder.transform(np.empty((0, 2), dtype=object)), encoder)
    assert_no_rows_of(encoder.transform([]), encoder)
    with pytest.raises(ValueError, match="X has 3 features"):
        encoder.transform(np.empty((0, 3), dtype=object))
    encoder.fit([{"u": "a"}, {"u": "b", "v": "c"}])
    assert_no_rows_of(encoder.transform([]), encoder)


@pytest.mark.parametrize("encoder", [HashingEncoder(n_bits=6), VocabularyEncoder()], ids=str)
def test_nothing_is_learnt_from_no_rows(encoder):
    encoder.fit(FRAMES["pandas"])
    before = encoder.to_json()
    assert encoder.partial_fit(FRAMES["pandas"][:0]) is encoder
    assert encoder.partial_fit([]) is encoder
    assert encoder.to_json() == before


@pytest.mark.parametrize("encoder", ENCODERS, ids=str)
def test_batches(encoder):
    encoder = type(encoder)(**encoder.get_params())
    frame = FRAMES["pyarrow"]
    parts = [frame[:0], frame, frame[:0]]
    batches = [Batch(part, np.zeros(len(part))) for part in parts]
    first, second, third = encode(batches, encoder)
    assert [batch.n_rows for batch in (first, second, third)] == [0, 3, 0]
    assert first.X.dtype == encoder.dtype
    fixed = isinstance(encoder, HashingEncoder) and not encoder.per_field
    assert first.X.shape[1] == (encoder.n_features_out_ if fixed else 0)
    assert (encoder.transform(frame) != second.X).nnz == 0
    assert_no_rows_of(third.X, encoder)


@pytest.mark.parametrize("kind", [VocabularyEncoder, OneHotFieldEncoder])
def test_no_two_columns_have_one_name(kind):
    table = {
        "u": ["<missing>", None, "x", "<missing>#2"],
        "a": ["b=c", "b", "b", "b"],
        "a=b": ["c", "d", "d", "d"],
    }
    encoder = kind().fit(table)
    names = encoder.get_feature_names_out().tolist()
    assert len(set(names)) == len(names) == encoder.n_features_out_ == 8
    assert {"u=<missing>", "u=<missing>#2", "a=b=c", "a=b=c#2"} <= set(names)


def test_names_that_were_given_stay():
    encoder = VocabularyEncoder(handle_unknown="category").fit({"u": ["a"]})
    batches = ["<unknown>", "<missing>", None, "<unknown>#2", "<missing>#2"]
    names = encoder.get_feature_names_out().tolist()
    for cell in batches:
        encoder.partial_fit({"u": pd.Series([cell], dtype=object)})
        more = encoder.get_feature_names_out().tolist()
        assert more[: len(names)] == names
        assert len(set(more)) == len(more)
        names = more
    assert len(names) == 7
