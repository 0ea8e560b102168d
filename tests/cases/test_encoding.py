"""Publicly reported faults of other programs that concern vocabularies and hashing.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import numpy as np
import pyarrow as pa
import pytest

from polyfm import FMClassifier
from polyfm.data import Batch, HashingEncoder, VocabularyEncoder, encode

ENCODERS = [VocabularyEncoder(), VocabularyEncoder(handle_unknown="category"), HashingEncoder(12)]


def frame(n_rows, start=0):
    ids = range(start, start + n_rows)
    return pa.table({"user": [f"u{i % 40}" for i in ids], "seconds": [i % 7 + 0.5 for i in ids]})


@pytest.mark.parametrize("encoder", ENCODERS, ids=str)
def test_case_095_dictionary_rows_with_text_and_numbers(encoder):
    """Text becomes ``name=value``, a number the value of its name."""
    rows = [{"device": "d1", "ad": "a1"}, {"ad": "a2", "n": 5}]
    X = encoder.fit_transform(rows)
    assert sorted(X[1].data.tolist()) == [1.0, 5.0]
    assert X[0].data.tolist() == [1.0, 1.0]


def test_case_101_keys_and_values_beyond_those_of_training():
    """A field that training did not have has no entry; values of known fields stay inside."""
    for encoder in ENCODERS:
        encoder.fit([{f"f{j}": f"v{j}" for j in range(13)}])
        X = encoder.transform([{"f13": "x", "f2": "v15897"}, {"f13": "x"}])
        assert X.shape == (2, encoder.n_features_out_)
        assert X[1].nnz == 0


def test_case_102_a_code_that_training_did_not_have():
    """Nothing, a column for the unknown, a hash, or an error that names column and code."""
    train, test = {"g": [33, 34, 34]}, {"g": [35, 34]}
    plain = VocabularyEncoder(numeric="category").fit(train)
    assert plain.transform(test).toarray().tolist() == [[0, 0], [0, 1]]
    bucket = VocabularyEncoder(numeric="category", handle_unknown="category").fit(train)
    assert bucket.get_feature_names_out().tolist() == ["g=33", "g=34", "g=<unknown>"]
    assert bucket.transform(test).toarray().tolist() == [[0, 0, 1], [0, 1, 0]]
    assert HashingEncoder(8, numeric="category").fit(train).transform(test).nnz == 2
    strict = VocabularyEncoder(numeric="category", handle_unknown="error").fit(train)
    with pytest.raises(ValueError, match="column 'g', row 0: category '35' was not seen in fit"):
        strict.transform(test)


def test_case_102_rare_values_train_the_bucket():
    """The column of the unknown has been learnt when the first stranger comes."""
    rng = np.random.default_rng(0)
    users = [f"u{i}" for i in rng.integers(0, 3, 300)] + [f"rare{i}" for i in range(100)]
    y = np.array([user.startswith("rare") for user in users])
    encoder = VocabularyEncoder(min_count=5, handle_unknown="category")
    model = FMClassifier(random_state=0).fit(encoder.fit_transform({"user": users}), y)
    assert model.predict(encoder.transform({"user": ["never met", "u1"]})).tolist() == [True, False]


@pytest.mark.parametrize("encoder", ENCODERS, ids=str)
def test_case_103_a_test_table_with_fewer_values(encoder):
    """The width is that of training, whatever values a table has."""
    width = encoder.fit(frame(200)).n_features_out_
    assert encoder.transform(frame(1)).shape == (1, width)


@pytest.mark.parametrize("encoder", ENCODERS, ids=str)
@pytest.mark.parametrize("size", [1, 10, 64])
def test_case_106_encoding_in_pieces(encoder, size):
    """Rows 0 to 9 and then 10 to 19: as all at once."""
    encoder.fit(frame(200))
    parts = [encoder.transform(frame(size, start)).toarray() for start in range(0, 192, size)]
    whole = encoder.transform(frame(200)).toarray()
    np.testing.assert_array_equal(np.concatenate(parts), whole[: sum(map(len, parts))])


@pytest.mark.parametrize("encoder", ENCODERS, ids=str)
def test_case_107_a_user_known_only_by_features(encoder):
    """No id in the row: the side features have the columns that they always have."""
    encoder.fit([{"user": f"u{i}", "group": f"g{i % 3}"} for i in range(9)])
    known = encoder.transform([{"user": "u0", "group": "g0"}]).indices.tolist()
    stranger = encoder.transform([{"group": "g0"}]).indices.tolist()
    assert len(stranger) == 1
    assert set(stranger) < set(known)


def test_case_131_ever_new_values():
    """A hash never grows; a vocabulary grows by values that are frequent enough."""
    hashing = HashingEncoder(10)
    words = VocabularyEncoder(min_count=3)
    for day in range(20):
        ids = [f"new{day}-{i}" for i in range(500)] + ["ann", "bob"]
        tables = [Batch(pa.table({"user": ids}), None)]
        assert next(encode(tables, hashing)).X.shape == (502, 1024)
        words.partial_fit(tables[0].X)
        assert len(hashing.to_json()) < 10_000
    assert words.get_feature_names_out().tolist() == ["user=ann", "user=bob"]
