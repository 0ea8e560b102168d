"""Datasets give back the rows that were written."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from polyfm.data import Batch, Dataset, DatasetError, DatasetWriter
from polyfm.data.rows import canonical_csr


def a_matrix(n_rows=20, n_columns=9, dtype=np.float32, density=0.3, seed=0):
    X = sp.random(n_rows, n_columns, density, "csr", dtype=np.float64, random_state=seed)
    return canonical_csr((X * 8).astype(dtype))


def pieces(X, y, weight, size):
    for start in range(0, X.shape[0], size):
        part = slice(start, start + size)
        yield Batch(
            X[part],
            None if y is None else y[part],
            None if weight is None else weight[part],
        )


def assert_same_matrix(found, expected):
    """Compare bits, and what the matrix says of itself."""
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    assert found.data.tobytes() == expected.data.tobytes()
    assert found.has_canonical_format


@st.composite
def some_rows(draw):
    n_rows = draw(st.integers(0, 30))
    n_columns = draw(st.integers(1, 12))
    seed = draw(st.integers(0, 10**6))
    random = np.random.default_rng(seed)
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    dense = random.normal(size=(n_rows, n_columns)) * (random.random((n_rows, n_columns)) < 0.3)
    ones = draw(st.sampled_from(["none", "all", "first half"]))
    if ones != "none":
        kept = slice(None) if ones == "all" else slice(n_rows // 2)
        dense[kept] = dense[kept] != 0
    y = {
        "none": None,
        "number": random.normal(size=n_rows),
        "integer": random.integers(-5, 5, n_rows),
        "truth": random.random(n_rows) < 0.5,
        "text": random.choice(["no", "yes", "vielleicht", "ß"], n_rows),
    }[draw(st.sampled_from(["none", "number", "integer", "truth", "text"]))]
    weight = {
        "none": None,
        "ones": np.ones(n_rows),
        "late": np.where(np.arange(n_rows) < n_rows // 2, 1.0, 0.25),
    }[draw(st.sampled_from(["none", "ones", "late"]))]
    return canonical_csr(sp.csr_matrix(dense.astype(dtype))), y, weight


@given(some_rows(), st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
def test_rows_come_back_as_they_were_written(rows, batch, shard, read):
    X, y, weight = rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        dataset = Dataset.write(
            path, pieces(X, y, weight, batch), shard_rows=shard, n_features=X.shape[1]
        )
        assert dataset.shape == X.shape
        assert dataset.nnz == X.nnz
        assert len(dataset.shards) == -(-X.shape[0] // shard)
        assert sum(part.n_rows for part in dataset.iter_batches(read)) == X.shape[0]
        for start, found in zip(range(0, 99, read), dataset.iter_batches(read), strict=False):
            part = slice(start, start + read)
            assert_same_matrix(found.X, canonical_csr(X[part]).astype(dataset.dtype))
            if y is not None:
                np.testing.assert_array_equal(found.y, y[part])
                assert found.y.dtype.kind == y.dtype.kind
            if found.weight is None:
                assert weight is None or np.all(weight[part] == 1)
            else:
                np.testing.assert_array_equal(found.weight, weight[part])
        if X.shape[0]:
            whole = dataset.rows(0, X.shape[0])
            assert_same_matrix(whole.X, X)
            assert dataset.has_targets == (y is not None)
            assert dataset.has_weights == (weight is not None and not np.all(weight == 1))
            if y is not None:
                np.testing.assert_array_equal(dataset.targets, y)
            if dataset.has_weights:
                np.testing.assert_array_equal(dataset.weights, weight)
        dataset.verify()
        assert os.listdir(folder) == ["rows"]


def test_rows_of_a_shard_are_views_of_the_file(tmp_path):
    X = a_matrix(40)
    dataset = Dataset.write(tmp_path / "d", [(X, None)], shard_rows=30)
    whole, part = dataset.rows(0, 30).X, dataset.rows(7, 12).X
    for name in ("indices", "data"):
        one, other = getattr(whole, name), getattr(part, name)
        assert np.shares_memory(one, other)
        assert not other.flags.writeable
    assert not np.shares_memory(dataset.rows(25, 35).X.indices, whole.indices)
    # Solvers look at matrices once more; that must not copy either.
    assert np.shares_memory(canonical_csr(part).indices, whole.indices)
    assert np.shares_memory(canonical_csr(part).data, whole.data)


def test_ones_are_not_stored_and_share_memory(tmp_path):
    X = a_matrix(40)
    X.data[:] = 1
    dataset = Dataset.write(tmp_path / "d", [(X, None)])
    other = Dataset.write(tmp_path / "e", [(X * 2, None)])
    assert dataset.shards[0].all_ones
    assert not other.shards[0].all_ones
    assert dataset.n_bytes < other.n_bytes
    one, two = dataset.rows(0, 20).X.data, dataset.rows(20, 40).X.data
    assert np.shares_memory(one, two)
    assert not one.flags.writeable
    assert np.all(one == 1)


def test_a_shard_is_plain_up_to_the_first_other_value(tmp_path):
    X = a_matrix(40)
    X.data[:] = 1
    X.data[-1] = 3
    dataset = Dataset.write(tmp_path / "d", pieces(X, None, None, 7), shard_rows=20)
    assert [shard.all_ones for shard in dataset.shards] == [True, False]
    assert_same_matrix(dataset.rows(0, 40).X, X)


def test_a_matrix_in_any_form_is_stored_canonically(tmp_path):
    messy = sp.csr_matrix(([1.0, 2.0, 0.0, 4.0], [3, 1, 0, 3], [0, 4]), shape=(1, 4))
    dataset = Dataset.write(tmp_path / "d", [(messy, None), (np.eye(3, 4), None)])
    np.testing.assert_array_equal(dataset.rows(0, 4).X.toarray()[0], [0, 2, 0, 5])
    assert dataset.dtype == np.float64
    dataset.verify()


def test_column_numbers_beyond_32_bits(tmp_path):
    far = 2**40
    narrow = sp.csr_matrix((np.ones(2, np.float32), [0, 5], [0, 1, 2]), shape=(2, 6))
    wide = sp.csr_matrix(
        (np.ones(2, np.float32), np.array([1, far]), np.array([0, 2])), shape=(1, far + 1)
    )
    dataset = Dataset.write(tmp_path / "d", [(narrow, None), (wide, None), (narrow, None)])
    assert dataset.n_features == far + 1
    found = dataset.rows(0, 5).X
    np.testing.assert_array_equal(found.indices, [0, 5, 1, far, 0, 5])
    assert found.indices.dtype == np.int64
    dataset.verify()


def test_what_is_known_of_columns_and_attachments(tmp_path):
    X = a_matrix(5, 4)
    names = ["a", "", "größe=9", "a\nb"]
    dataset = Dataset.write(
        tmp_path / "d", [(X, None)], fields=[0, 0, 1, -1], feature_names=names,
        notes={"from": "a test"}, attachments={"encoder.json": b"\0{}"},
    )  # fmt: skip
    assert dataset.feature_names.tolist() == names
    assert dataset.fields.tolist() == [0, 0, 1, -1]
    assert dataset.notes == {"from": "a test"}
    assert dataset.attachments == ("encoder.json",)
    assert dataset.attachment("encoder.json") == b"\0{}"
    plain = Dataset.write(tmp_path / "e", [(X, None)])
    assert plain.fields is None
    assert plain.feature_names is None
    assert plain.targets is None
    assert plain.weights is None


def test_a_dataset_is_pickled_as_its_path(tmp_path):
    dataset = Dataset.write(tmp_path / "d", [(a_matrix(500), np.arange(500.0))])
    text = pickle.dumps(dataset)
    assert len(text) < 1000
    assert_same_matrix(pickle.loads(text).rows(0, 500).X, dataset.rows(0, 500).X)


def test_repr_tells_what_there_is(tmp_path):
    X, y = a_matrix(20), np.array(["yes", "no"] * 10)
    told = repr(Dataset.write(tmp_path / "d", [(X, y)], fields=np.zeros(9, int)))
    for words in ("20 rows x 9 columns", f"{X.nnz} entries (float32)", "2 labels", "1 fields"):
        assert words in told


@pytest.mark.parametrize(
    ("batches", "kind", "words"),
    [
        ([([{"a": 1}], None)], TypeError, "encode"),
        ([(np.array([["a"]]), None)], TypeError, "not of numbers"),
        ([(a_matrix(2), [1.0])], ValueError, "y has shape (1,), but the batch has 2 rows"),
        ([(a_matrix(2), [1.0, np.nan])], ValueError, "nan in row 1"),
        (
            [(a_matrix(2), np.array(["a", None], object))],
            ValueError,
            "y is missing (None) in row 1",
        ),
        ([(a_matrix(2), [1.0, 2.0]), (a_matrix(2), None)], ValueError, "Batch 1"),
        ([(a_matrix(2), [1.0, 2.0]), (a_matrix(2), ["a", "b"])], ValueError, "texts"),
        ([(a_matrix(2), [1, 2**60])], ValueError, "2**53"),
        ([(a_matrix(2), None, [1.0, -1.0])], ValueError, "-1.0 in row 1"),
        ([(np.array([[1.0, np.inf]]), None)], ValueError, "inf in row 0 of the batch, column 1"),
        ([(a_matrix(2), None), (a_matrix(2, dtype=float), None)], ValueError, "float64"),
        ([(a_matrix(2, 12), None)], ValueError, "12 columns, more than n_features=9"),
    ],
)
def test_rows_that_cannot_be_stored_are_told(tmp_path, batches, kind, words):
    with pytest.raises(kind) as caught:
        Dataset.write(tmp_path / "d", batches, n_features=9)
    assert words in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_a_frame_is_to_be_encoded_first(tmp_path):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match="encode tables"):
        Dataset.write(tmp_path / "d", [(pandas.DataFrame({"a": [1]}), None)])


def test_dtype_decides_for_all_batches(tmp_path):
    X = a_matrix(5, dtype=np.float64)
    single = Dataset.write(tmp_path / "d", [(X, None)], dtype="float32")
    assert_same_matrix(single.rows(0, 5).X, X.astype(np.float32))
    tiny = sp.csr_matrix(np.array([[1e-60, 1.0]]))
    found = Dataset.write(tmp_path / "e", [(tiny, None)], dtype="float32")
    assert found.nnz == 1  # the other is zero in single precision
    found.verify()
    with pytest.raises(ValueError, match="must be finite in float32"):
        Dataset.write(tmp_path / "f", [(tiny * 1e300, None)], dtype="float32")
    with pytest.raises(ValueError, match="float32 or float64"):
        Dataset.write(tmp_path / "f", [], dtype=int)


def test_arguments_out_of_range(tmp_path):
    dataset = Dataset.write(tmp_path / "d", [(a_matrix(5), None)])
    with pytest.raises(IndexError, match="rows 3 to 6 of a dataset of 5 rows"):
        dataset.rows(3, 6)
    with pytest.raises(ValueError, match="at least 1"):
        next(dataset.iter_batches(0))
    with pytest.raises(ValueError, match="shard_rows"):
        Dataset.write(tmp_path / "e", [], shard_rows=0)
    with pytest.raises(ValueError, match="fields must be 9"):
        Dataset.write(tmp_path / "e", [(a_matrix(5), None)], fields=[1])
    with pytest.raises(ValueError, match="feature_names has 1"):
        Dataset.write(tmp_path / "e", [(a_matrix(5), None)], feature_names=["a"])
    with pytest.raises(FileNotFoundError, match="no such folder"):
        Dataset.write(tmp_path / "none" / "e", [])
    assert sorted(os.listdir(tmp_path)) == ["d"]


def test_no_rows_at_all(tmp_path):
    dataset = Dataset.write(tmp_path / "d", [])
    assert dataset.shape == (0, 0)
    assert list(dataset.iter_batches(10)) == []
    assert dataset.rows(0, 0).X.shape == (0, 0)
    dataset.verify()


def test_what_exists_is_replaced_on_demand_only(tmp_path):
    path, X = tmp_path / "d", a_matrix(5)
    former = Dataset.write(path, [(X, None)])
    with pytest.raises(FileExistsError):
        Dataset.write(path, [(X, None)])
    kept = former.rows(0, 5).X.copy()
    new = Dataset.write(path, [(X * 2, None)], overwrite=True)
    assert_same_matrix(new.rows(0, 5).X, X * 2)
    # Whoever has the former one open still reads it.
    assert_same_matrix(former.rows(0, 5).X, kept)
    # A dataset can be made from itself.
    again = Dataset.write(path, new.iter_batches(2), overwrite=True)
    assert_same_matrix(again.rows(0, 5).X, X * 2)
    assert os.listdir(tmp_path) == ["d"]


@pytest.mark.parametrize("kind", ["file", "folder", "a dataset and more"])
def test_what_is_no_dataset_is_never_replaced(tmp_path, kind):
    path = tmp_path / "d"
    if kind == "file":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
        (path / "mine").write_text("mine")
    else:
        Dataset.write(path, [])
        (path / "mine").write_text("mine")
    with pytest.raises(FileExistsError, match="not replaced"):
        Dataset.write(path, [], overwrite=True)
    assert (path if kind == "file" else path / "mine").read_text() == "mine"


def test_a_writer_that_is_left_early_leaves_nothing(tmp_path):
    with DatasetWriter(tmp_path / "d") as writer:
        writer.add((a_matrix(5), None))
        with pytest.raises(DatasetError, match="being written"):
            DatasetWriter(tmp_path / "d")
    assert os.listdir(tmp_path) == []
    with pytest.raises(ValueError, match="finished"):
        writer.add((a_matrix(5), None))


def _checksum_of(dataset):
    return sum(float(batch.X.data.sum()) for batch in dataset.iter_batches(16))


def test_processes_read_at_the_same_time(tmp_path):
    dataset = Dataset.write(tmp_path / "d", [(a_matrix(200), None)], shard_rows=30)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        other = pool.map_async(_checksum_of, [dataset] * 4)
        own = [_checksum_of(dataset) for _ in range(4)]
        assert other.get(timeout=120) == own


@pytest.mark.parametrize(
    ("batches", "words"),
    [
        ((np.eye(2), np.ones(2)), "of a Batch, or a tuple (X, y) or (X, y, weight); got a single"),
        (Batch(np.eye(2), np.ones(2)), "got a single batch: write [(X, y)]"),
        (np.eye(2), "got a ndarray: write [(X, y)]"),
        (a_matrix(2), "got a csr_matrix: write [(X, y)]"),
        (None, "got a NoneType"),
        ("path", "got a str"),
        (
            [a_matrix(2)],
            "Batch 0 of the dataset is a csr_matrix, not a Batch, or a tuple (X, y) or",
        ),
        ([np.eye(2)], "Write (X, None) for rows without targets."),
        ([(np.eye(2),)], "is a tuple of 1, not a Batch"),
        ([(np.eye(2), None), 3], "Batch 1 of the dataset is a int"),
    ],
)
def test_what_is_no_batch(tmp_path, batches, words):
    with pytest.raises(TypeError) as caught:
        Dataset.write(tmp_path / "d", batches)
    assert words in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"n_features": 2.5}, TypeError, "n_features must be a whole number, got 2.5"),
        ({"n_features": -1}, ValueError, "n_features must be at least 0, got -1"),
        ({"shard_rows": "9"}, TypeError, "shard_rows must be a whole number, got '9'"),
        ({"shard_rows": 0}, ValueError, "shard_rows must be at least 1, got 0"),
        ({"dtype": "real"}, TypeError, "dtype must be float32 or float64, got 'real'"),
    ],
)
def test_impossible_options(tmp_path, options, kind, words):
    with pytest.raises(kind, match=words):
        Dataset.write(tmp_path / "d", [], **options)


def test_batches_of_a_size_that_cannot_be(tmp_path):
    dataset = Dataset.write(tmp_path / "d", [(np.eye(2), None)])
    for rows, start, kind in ((0, 0, ValueError), (1.5, 0, TypeError), (1, -1, ValueError)):
        with pytest.raises(kind, match=r"(batch_rows|start) must be"):
            dataset.iter_batches(rows, start)


def test_targets_of_columns_that_may_have_gaps(tmp_path):
    pd = pytest.importorskip("pandas")
    whole = Dataset.write(tmp_path / "a", [(np.eye(2), pd.Series([3, 4], dtype="Int64"))])
    assert whole.targets.dtype == np.int64
    assert whole.targets.tolist() == [3, 4]
    truth = Dataset.write(tmp_path / "b", [(np.eye(2), pd.Series([True, False], dtype="boolean"))])
    assert truth.targets.tolist() == [True, False]
    for values, kind in (([3, None], "Int64"), ([True, None], "boolean"), ([0.5, None], "Float64")):
        with pytest.raises(ValueError, match=r"y (is missing \(<NA>\)|has nan) in row 1 of"):
            Dataset.write(tmp_path / "c", [(np.eye(2), pd.Series(values, dtype=kind))])
    with pytest.raises(ValueError, match="y has nan in row 1 of the batch"):
        Dataset.write(tmp_path / "c", [(np.eye(2), pd.Series([3, None]))])
