"""Hashed tables against a twin of dictionaries, and what is fixed for all versions."""

import builtins
import math
import pickle

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
from sklearn.utils import murmurhash3_32
from sklearn.utils.estimator_checks import parametrize_with_checks

from polyfm import FMClassifier
from polyfm.data import HashingEncoder

DATA = {
    "city": ["b", "a", None, "ü"],
    "age": [30.0, 0.0, 5.0, None],
    "ok": [True, False, True, True],
}
FRAMES = [pd.DataFrame, pl.DataFrame, pa.table, dict]
OBJECTS = {"city": np.array(["b", "a", None, "ü"], dtype=object)}


def hashed(text, name):
    return murmurhash3_32(text, murmurhash3_32(name, positive=True), positive=True)


def twin(rows, n_bits, signed=False, names=None):
    """Rows of (name, text or number or None), hashed one by one."""
    n = len(names) if names else 1
    out = np.zeros((len(rows), n << n_bits))
    for i, row in enumerate(rows):
        for name, cell in row:
            number = isinstance(cell, float) and not math.isnan(cell)
            missing = cell is None or (isinstance(cell, float) and math.isnan(cell))
            text = "<missing>" if missing else cell
            h = murmurhash3_32(name, positive=True) if number else hashed(text, name)
            start = names.index(name) << n_bits if names else 0
            sign = -1 if signed and h >> 31 else 1
            out[i, start + h % 2**n_bits] += sign * (cell if number else 1.0)
    return out


def rows_of(data):
    return [list(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]


@pytest.fixture
def no_pyarrow(monkeypatch):
    genuine = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return genuine(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)


@parametrize_with_checks([HashingEncoder(8), HashingEncoder(5, signed=True, numeric="bin")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("text", "column"),
    [("a", 786_449), ("", 5_554), ("Zürich", 504_520), ("68fd1e64", 5_292), (None, 853_140)],
)
def test_hashes_are_fixed_for_ever(text, column):
    X = HashingEncoder().fit_transform({"C1": [text, "x"]})
    assert X[0].indices.tolist() == [column]


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("per_field", [False, True])
def test_every_frame_equals_the_twin(library, signed, per_field):
    encoder = HashingEncoder(6, signed=signed, per_field=per_field)
    X = encoder.fit_transform(library(DATA))
    cells = DATA | {"ok": [str(v) for v in DATA["ok"]]}
    expected = twin(rows_of(cells), 6, signed, list(DATA) if per_field else None)
    np.testing.assert_array_equal(X.toarray(), expected)
    np.testing.assert_array_equal(encoder.transform(library(DATA)).toarray(), expected)
    assert X.has_canonical_format
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert X.dtype == np.float32


TEXT = st.one_of(st.none(), st.text(max_size=6))


@given(st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=20), st.integers(1, 12))
def test_texts_equal_the_twin(rows, n_bits):
    cells = [list(zip(["u", "v", "w"], row, strict=True)) for row in rows]
    for signed in (False, True):
        columns = {n: [row[j] for row in rows] for j, n in enumerate("uvw")}
        X = HashingEncoder(n_bits, signed=signed).fit_transform(columns)
        np.testing.assert_array_equal(X.toarray(), twin(cells, n_bits, signed))
        assert (X.data != 0).all()
        assert sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape).has_canonical_format


def test_arrow_in_all_its_forms():
    """Pieces, slices, wide offsets and dictionaries hold the same text."""
    text = pa.array(["x", "b", "a", None, "ü", "b"])
    expected = HashingEncoder(8).fit_transform({"c": ["b", "a", None, "ü", "b"]}).toarray()
    wide = text.cast(pa.large_string()).slice(1)
    forms = [
        text.slice(1),
        wide,
        pa.chunked_array([text.slice(1, 2), text.slice(3)]),
        pa.chunked_array([text.slice(1, 2).dictionary_encode(), text.slice(3).dictionary_encode()]),
        wide.dictionary_encode(),
    ]
    for form in forms:
        X = HashingEncoder(8).fit_transform(pa.table({"c": form}))
        np.testing.assert_array_equal(X.toarray(), expected)


def test_objects_and_plain_arrays():
    expected = HashingEncoder(9).fit_transform(pl.DataFrame({"x0": OBJECTS["city"].tolist()}))
    for X in (OBJECTS["city"][:, None], [["b"], ["a"], [None], ["ü"]]):
        np.testing.assert_array_equal(
            HashingEncoder(9).fit_transform(X).toarray(), expected.toarray()
        )
    frame = pd.DataFrame({"x0": pd.Series(OBJECTS["city"], dtype=object)})
    np.testing.assert_array_equal(
        HashingEncoder(9).fit_transform(frame).toarray(), expected.toarray()
    )
    mixed = pd.DataFrame({"x0": pd.Series(["b", 7, b"a", 2.0], dtype=object)})
    text = HashingEncoder(9).fit_transform({"x0": ["b", "7", "a", "2"]})
    np.testing.assert_array_equal(HashingEncoder(9).fit_transform(mixed).toarray(), text.toarray())


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, dict])
def test_without_pyarrow_the_result_is_the_same(library, no_pyarrow):
    X = HashingEncoder(7, signed=True).fit_transform(library({"city": DATA["city"]}))
    expected = twin(rows_of({"city": DATA["city"]}), 7, True)
    np.testing.assert_array_equal(X.toarray(), expected)


def test_rows_of_dictionaries():
    rows = [{"u": "a", "n": 2.0}, {"u": None}, {"v": "a"}]
    encoder = HashingEncoder(8)
    X = encoder.fit_transform(rows).toarray()
    np.testing.assert_array_equal(X, twin([list(row.items()) for row in rows], 8))
    assert encoder.transform([{"new": "x"}]).nnz == 0
    encoder.partial_fit([{"new": "x"}])
    assert encoder.field_names_ == ["n", "u", "v", "new"]
    assert encoder.transform([{"new": "x"}]).indices.tolist() == [hashed("x", "new") % 256]
    np.testing.assert_array_equal(encoder.transform(rows).toarray(), X)


def test_sets_are_scaled_and_empty_ones_are_nothing():
    encoder = HashingEncoder(10, sets={"g": "|"}, set_norm="l1")
    X = encoder.fit_transform({"g": ["a|b|a", "", None]}).toarray()
    assert X[0, hashed("a", "g") % 1024] == X[0, hashed("b", "g") % 1024] == 0.5
    assert X[1].sum() == 0
    assert X[2, hashed("<missing>", "g") % 1024] == 1
    lists = HashingEncoder(10).fit_transform({"g": [["b", "a"], [], None]})
    np.testing.assert_array_equal(lists.toarray(), X)


def log2_text(x):
    if abs(x) <= 2:
        return str(math.floor(x))
    return f"{'-' if x < 0 else ''}log2^2={math.floor(math.log2(abs(x)) ** 2)}"


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=20))
def test_log2_is_its_formula(numbers):
    numbers = [
        n for n in numbers if not math.sqrt(math.floor(math.log2(abs(n) or 1) ** 2)) % 1
    ] or [5]
    X = HashingEncoder(12, numeric="log2").fit_transform({"n": numbers})
    expected = twin([[("n", log2_text(n))] for n in numbers], 12)
    np.testing.assert_array_equal(X.toarray(), expected)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (2, "2"), (-2, "-2"), (1.5, "1"), (3, "log2^2=2"), (4, "log2^2=4"), (5, "log2^2=5"),
     (8, "log2^2=9"), (7.99, "log2^2=8"), (-8, "-log2^2=9"), (1e30, "log2^2=4096")],
)  # fmt: skip
def test_log2_buckets(number, text):
    X = HashingEncoder(12, numeric="log2").fit_transform({"n": [float(number)]})
    assert X.indices.tolist() == [hashed(text, "n") % 4096]


def test_bins_and_scales_are_those_of_the_first_batch():
    data = {"b": list(range(100)), "s": np.arange(100.0), "c": [1, 2] * 50}
    modes = {"b": "bin", "s": "standardize", "c": "category"}
    encoder = HashingEncoder(14, numeric=modes, n_bins=4).fit(data)
    before = encoder.transform(data)
    encoder.partial_fit({"b": [10_000] * 9, "s": np.full(9, 1e6), "c": [3] * 9})
    np.testing.assert_array_equal(encoder.transform(data).toarray(), before.toarray())
    column = before.toarray()[:, murmurhash3_32("s", positive=True) % 2**14]
    np.testing.assert_allclose(column, (data["s"] - 49.5) / data["s"].std(), rtol=1e-6)
    assert len(np.unique(before.toarray().nonzero()[1])) == 4 + 1 + 2


@pytest.mark.parametrize("policy", ["category", "ignore", "error"])
def test_missing_cells(policy):
    encoder = HashingEncoder(8, missing=policy)
    full = {"c": ["a", "b"], "n": [1.0, 2.0]}
    gaps = {"c": [None, "b"], "n": [1.0, None]}
    encoder.fit(full)
    if policy == "error":
        with pytest.raises(ValueError, match="column 'c', row 0: missing value"):
            encoder.transform(gaps)
        return
    X = encoder.transform(gaps).toarray()
    own = [hashed("<missing>", name) % 256 for name in "cn"]
    assert X[[0, 1], own].tolist() == ([1, 1] if policy == "category" else [0, 0])


@pytest.mark.parametrize("n", [1, 500, 3_000, 60_000])
def test_counts_and_collisions(n):
    values = pa.array([f"v{i}" for i in range(n)] * 2)
    encoder = HashingEncoder(16).fit(pa.table({"a": values, "b": values}))
    np.testing.assert_allclose(encoder.n_distinct_, n, rtol=0.1, atol=0.6)
    places = {(f, i): hashed(f"v{i}", f) % 2**16 for f in "ab" for i in range(n)}
    _, shared = np.unique(list(places.values()), return_counts=True)
    rate = shared[shared > 1].sum() / len(places)
    assert encoder.collision_rate_ == pytest.approx(rate, rel=0.1, abs=0.01)


def test_counts_add_up_over_batches():
    whole = HashingEncoder(12).fit(pa.table({"a": [str(i) for i in range(3000)]}))
    parts = HashingEncoder(12)
    for start in range(0, 3000, 500):
        parts.partial_fit(pa.table({"a": [str(i) for i in range(start, start + 500)]}))
    assert parts.collision_rate_ == whole.collision_rate_
    assert parts.n_distinct_.tolist() == whole.n_distinct_.tolist()


def test_fields_and_names():
    encoder = HashingEncoder(2, per_field=True).fit({"u": ["a"], "v": ["b"]})
    assert encoder.fields_.tolist() == [0] * 4 + [1] * 4
    assert encoder.get_feature_names_out()[[0, 7]].tolist() == ["u#0", "v#3"]
    shared = HashingEncoder(2).fit({"u": ["a"]})
    assert shared.fields_ is None
    assert shared.get_feature_names_out().tolist() == ["#0", "#1", "#2", "#3"]


def test_copies_and_json():
    modes = {"age": "bin"}
    encoder = HashingEncoder(6, numeric=modes, signed=True, dtype=np.float64).fit(DATA)
    expected = encoder.transform(DATA).toarray()
    for copy in (
        pickle.loads(pickle.dumps(encoder)),
        HashingEncoder.from_json(encoder.to_json()),
        clone(encoder).fit(DATA),
    ):
        np.testing.assert_array_equal(copy.transform(DATA).toarray(), expected)
        assert copy.get_params() == encoder.get_params()
        assert copy.collision_rate_ == encoder.collision_rate_
        assert copy.partial_fit(DATA).n_features_out_ == 64


def test_pipeline():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"u": [f"u{i}" for i in rng.integers(0, 9, 300)], "v": ["x", "y", "z"] * 100}
    )
    y = frame["u"].is_in(["u1", "u2"]).to_numpy()
    model = make_pipeline(HashingEncoder(10), FMClassifier(random_state=0)).fit(frame, y)
    assert model.score(frame, y) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_bits": 0}, "n_bits must be an integer of at least 1, got 0"),
        ({"n_bits": 31}, "n_bits must be an integer of at most 30, got 31"),
        ({"n_bits": 30, "per_field": True}, "give fewer bits"),
        ({"numeric": "log"}, "numeric must be one of"),
        ({"missing": "drop"}, "missing must be one of"),
        ({"dtype": "int32"}, "dtype must be float32 or float64"),
    ],
)
def test_impossible_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        HashingEncoder(**parameters).fit(DATA)


def test_sparse_input_is_refused():
    with pytest.raises(TypeError, match="already encoded"):
        HashingEncoder().fit(sp.eye(3).tocsr())
