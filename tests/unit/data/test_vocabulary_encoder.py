"""Growing vocabularies against a twin of dictionaries."""

import builtins
import math
import pickle
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from polyfm import FMClassifier
from polyfm.data import OneHotFieldEncoder, VocabularyEncoder

FRAMES = [pd.DataFrame, pl.DataFrame, pa.table, dict]
DATA = {
    "city": ["b", "a", None, "ü"],
    "age": [30.0, 0.0, 5.0, None],
    "ok": [True, False, True, True],
}
LATER = {
    "city": ["c", "a", None, "0"],
    "age": [1.0, 2.0, None, 3.0],
    "ok": [True, False, True, True],
}
MODES = ["passthrough", "bin", "standardize", "category", "log2"]


class Twin:
    """Columns by (field, value), in the order in which they come."""

    def __init__(self, n_fields, min_count, unknown):
        self.columns, self.counts = {}, Counter()
        self.n_fields, self.min_count, self.unknown = n_fields, min_count, unknown

    def learn(self, rows):
        for f in range(self.n_fields):
            cells = [row[f] for row in rows]
            self.counts.update((f, cell) for cell in cells if cell is not None)
            met = {c for c in cells if c is not None and self.counts[f, c] >= self.min_count}
            for value in sorted(met):
                self.columns.setdefault((f, value), len(self.columns))
            for wanted, label in ((self.unknown, "<unknown>"), (None in cells, None)):
                if wanted:
                    self.columns.setdefault((f, label), len(self.columns))

    def encode(self, rows):
        X = np.zeros((len(rows), len(self.columns)))
        for i, row in enumerate(rows):
            for f, cell in enumerate(row):
                column = self.columns.get((f, cell), self.columns.get((f, "<unknown>")))
                if column is not None:
                    X[i, column] = 1
        return X


@parametrize_with_checks(
    [VocabularyEncoder(), VocabularyEncoder(handle_unknown="category", min_count=2)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


CELL = st.sampled_from([None, "", "a", "b", "ab", "ü", "z", "0"])
BATCHES = st.lists(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=8), min_size=1, max_size=4)


@given(BATCHES, st.integers(1, 4), st.booleans())
def test_batches_equal_the_twin(batches, min_count, unknown):
    twin = Twin(2, min_count, unknown)
    policy = "category" if unknown else "ignore"
    encoder = VocabularyEncoder(min_count=min_count, handle_unknown=policy)
    for rows in batches:
        frame = pa.table(
            {n: pa.array(c) for n, c in zip("uv", zip(*rows, strict=True), strict=True)}
        )
        twin.learn(rows)
        X = encoder.partial_fit(frame).transform(frame)
        np.testing.assert_array_equal(X.toarray(), twin.encode(rows))
        assert encoder.fields_.tolist() == [f for f, _ in twin.columns]
    everything = [row for rows in batches for row in rows]
    X = encoder.transform(
        {n: list(c) for n, c in zip("uv", zip(*everything, strict=True), strict=True)}
    )
    np.testing.assert_array_equal(X.toarray(), twin.encode(everything))


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("min_count", [1, 2])
def test_the_first_batch_is_that_of_one_hot(library, mode, min_count):
    options = {"numeric": {"age": mode}, "n_bins": 3, "min_count": min_count, "dtype": np.float64}
    one_hot, encoder = OneHotFieldEncoder(**options), VocabularyEncoder(**options)
    expected = one_hot.fit_transform(library(DATA))
    np.testing.assert_array_equal(
        encoder.fit_transform(library(DATA)).toarray(), expected.toarray()
    )
    assert encoder.get_feature_names_out().tolist() == one_hot.get_feature_names_out().tolist()
    assert encoder.fields_.tolist() == one_hot.fields_.tolist()
    later = one_hot.transform(library(LATER)).toarray()
    np.testing.assert_array_equal(encoder.transform(library(LATER)).toarray(), later)


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("mode", MODES)
def test_columns_given_never_change(library, mode):
    encoder = VocabularyEncoder(numeric={"age": mode}, n_bins=3)
    before = encoder.fit_transform(library(DATA)).toarray()
    names = encoder.get_feature_names_out().tolist()
    encoder.partial_fit(library(LATER))
    after = encoder.transform(library(DATA)).toarray()
    width = before.shape[1]
    np.testing.assert_array_equal(after[:, :width], before)
    assert (after[:, width:] == 0).all()
    assert encoder.get_feature_names_out()[:width].tolist() == names
    assert encoder.get_feature_names_out()[width : width + 2].tolist() == ["city=0", "city=c"]


def test_missing_cells_that_come_later():
    encoder = VocabularyEncoder(numeric={"m": "bin"}).fit({"c": ["a"], "n": [1.0], "m": [2.0]})
    gaps = {"c": [None], "n": [None], "m": [None]}
    assert encoder.transform(gaps).nnz == 0
    encoder.partial_fit(gaps)
    names = encoder.get_feature_names_out()[encoder.transform(gaps).indices].tolist()
    assert names == ["c=<missing>", "n=<missing>", "m=<missing>"]
    assert encoder.fields_[-3:].tolist() == [0, 1, 2]


def test_min_count_adds_up_over_batches():
    encoder = VocabularyEncoder(min_count=3)
    for cells, names in [(["a", "a"], []), (["b", "a"], ["c=a"]), (["b", "b"], ["c=a", "c=b"])]:
        encoder.partial_fit({"c": cells})
        assert encoder.get_feature_names_out().tolist() == names
    assert encoder.transform({"c": ["b", "z"]}).toarray().tolist() == [[0, 1], [0, 0]]


def test_sets_grow():
    encoder = VocabularyEncoder(sets={"g": "|"}, min_count=2).fit({"g": ["a|b", "a|a", "b"]})
    assert encoder.get_feature_names_out().tolist() == ["g=a", "g=b"]
    encoder.partial_fit({"g": ["c|a", "c", None]})
    assert encoder.get_feature_names_out().tolist() == ["g=a", "g=b", "g=c", "g=<missing>"]
    X = encoder.transform({"g": ["a|c|new", "", None]}).toarray()
    assert X.tolist() == [[0.5, 0, 0.5, 0], [0, 0, 0, 0], [0, 0, 0, 1]]


def test_sets_with_unknown_elements():
    encoder = VocabularyEncoder(handle_unknown="category", set_norm=None).fit({"g": [["a"], ["b"]]})
    X = encoder.transform({"g": [["a", "x", "y"], []]}).toarray()
    assert encoder.get_feature_names_out().tolist() == ["g=a", "g=b", "g=<unknown>"]
    assert X.tolist() == [[1, 0, 1], [0, 0, 0]]


def test_unknown_values():
    known = {"c": ["a", "a", "b"], "n": [1.0, 2.0, 3.0]}
    new = {"c": ["x", "b", None], "n": [7.0, None, 8.0]}
    encoder = VocabularyEncoder(handle_unknown="category", min_count=2).fit(known)
    assert encoder.get_feature_names_out().tolist() == ["c=a", "c=<unknown>", "n"]
    assert encoder.transform(known).toarray()[2].tolist() == [0, 1, 3]
    assert encoder.transform(new).toarray().tolist() == [[0, 1, 7], [0, 1, 0], [0, 1, 8]]
    strict = VocabularyEncoder(handle_unknown="error", min_count=2).fit(known)
    assert strict.transform({"c": ["b"], "n": [0.0]}).nnz == 0  # rare, but met
    with pytest.raises(ValueError, match="column 'c', row 0: category 'x' was not seen in fit"):
        strict.transform({"c": ["x"], "n": [0.0]})
    with pytest.raises(ValueError, match="column 'c', row 2: missing value"):
        strict.transform({"c": ["a", "b", None], "n": [1.0, 2.0, 3.0]})


def test_frozen_encoders_refuse():
    encoder = VocabularyEncoder(growing=False).partial_fit(DATA)
    width = encoder.n_features_out_
    with pytest.raises(ValueError, match="frozen"):
        encoder.partial_fit(LATER)
    assert encoder.n_features_out_ == width
    assert encoder.set_params(growing=True).partial_fit(LATER).n_features_out_ > width


def test_fit_forgets():
    encoder = VocabularyEncoder().fit(LATER).fit(DATA)
    assert encoder.get_feature_names_out()[:3].tolist() == ["city=a", "city=b", "city=ü"]


def test_dictionaries_bring_new_keys():
    encoder = VocabularyEncoder().fit([{"u": "a", "n": 2.0}])
    encoder.partial_fit([{"u": "b"}, {"v": "x", "n": 1.0}])
    assert encoder.get_feature_names_out().tolist() == ["n", "u=a", "u=b", "v=x"]
    assert encoder.fields_.tolist() == [0, 1, 1, 2]
    assert encoder.transform([{"v": "x"}, {"u": "a"}]).indices.tolist() == [3, 1]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, dict])
def test_without_pyarrow_the_result_is_the_same(library, monkeypatch):
    twin = VocabularyEncoder().fit(pa.table(DATA)).partial_fit(pa.table(LATER))
    expected = twin.transform(pa.table(LATER)).toarray()
    genuine = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return genuine(name, *args, **kwargs)

    frames = [library(DATA), library(LATER)]
    monkeypatch.setattr(builtins, "__import__", refuse)
    encoder = VocabularyEncoder().fit(frames[0]).partial_fit(frames[1])
    np.testing.assert_array_equal(encoder.transform(frames[1]).toarray(), expected)
    assert encoder.get_feature_names_out().tolist() == twin.get_feature_names_out().tolist()


def test_numbers_as_values_come_in_their_order():
    encoder = VocabularyEncoder(numeric="category").fit({"id": [10, 9, 10]})
    encoder.partial_fit({"id": [200, 30.0, None]})
    names = encoder.get_feature_names_out().tolist()
    assert names == ["id=9", "id=10", "id=30", "id=200", "id=<missing>"]
    assert encoder.transform({"id": ["9", "30"]}).indices.tolist() == [0, 2]


def test_log2_fields_grow_by_buckets():
    encoder = VocabularyEncoder(numeric="log2").fit({"n": [0, 1, 1000]})
    encoder.partial_fit({"n": [1001, -5]})
    bucket = math.floor(math.log2(1000) ** 2)
    assert encoder.get_feature_names_out().tolist() == [
        "n=0", "n=1", f"n=log2^2={bucket}", "n=-log2^2=5",
    ]  # fmt: skip
    assert encoder.transform({"n": [1010, 77]}).indices.tolist() == [2]


@pytest.mark.parametrize("options", [{}, {"min_count": 2, "handle_unknown": "category"}], ids=str)
def test_copies_go_on_alike(options):
    table = {**DATA, "g": ["a|b", "b", "", None]}
    later = {**LATER, "g": ["c", "b", "c|d", None]}
    modes = {"age": "bin", 2: "log2"}
    encoder = VocabularyEncoder(numeric=modes, sets={"g": "|"}, dtype=np.float64, **options)
    encoder.fit(table)
    copies = [
        pickle.loads(pickle.dumps(encoder)),
        VocabularyEncoder.from_json(encoder.to_json()),
        clone(encoder).fit(table),
    ]
    expected = encoder.partial_fit(later).transform(later)
    for copy in copies:
        X = copy.partial_fit(later).transform(later)
        np.testing.assert_array_equal(X.toarray(), expected.toarray())
        assert X.dtype == np.float64
        assert copy.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
        assert copy.get_params() == encoder.get_params()


def test_output_is_canonical():
    X = VocabularyEncoder().fit(DATA).partial_fit(LATER).transform(LATER)
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape).has_canonical_format


def test_pipeline():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"u": [f"u{i}" for i in rng.integers(0, 9, 300)], "v": ["x", "y", "z"] * 100}
    )
    y = frame["u"].is_in(["u1", "u2"]).to_numpy()
    model = make_pipeline(VocabularyEncoder(), FMClassifier(random_state=0)).fit(frame, y)
    assert model.score(frame, y) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"min_count": 0}, "min_count must be an integer of at least 1, got 0"),
        ({"handle_unknown": "drop"}, "handle_unknown must be one of"),
        ({"numeric": {"nobody": "bin"}}, "numeric names a column 'nobody' that X lacks"),
    ],
)
def test_impossible_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        VocabularyEncoder(**parameters).fit(DATA)
