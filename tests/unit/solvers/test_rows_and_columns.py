"""From any sparse format to canonical rows, and what is counted and measured of the columns."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from polyfm.data.rows import as_rows, canonical_csr, read_only
from polyfm.solvers._columns import count_visits, distinct, measure_units
from polyfm.testing import plain

FORMATS = ("csr", "csc", "coo", "lil", "dok", "bsr")
entries = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.sampled_from([-2.0, 0.0, 0.5, 1.0])),
    max_size=25,
)


def dense_of(triples):
    X = np.zeros((5, 4))
    for row, column, value in triples:
        X[row, column] += value
    return X


def assert_canonical(matrix, X):
    assert matrix.format == "csr"
    assert np.array_equal(matrix.toarray(), X)
    assert matrix.nnz == np.count_nonzero(X)
    for row in range(len(X)):
        indices = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        assert np.all(np.diff(indices) > 0)


@given(entries, st.sampled_from(FORMATS), st.booleans())
def test_every_format_becomes_the_same_rows(triples, form, as_array):
    kind = sp.coo_array if as_array else sp.coo_matrix
    rows, columns, values = np.array(triples).reshape(-1, 3).T
    # Duplicates are summed, and stored zeros dropped.
    matrix = kind((values, (rows.astype(int), columns.astype(int))), shape=(5, 4)).asformat(form)
    assert_canonical(canonical_csr(matrix), dense_of(triples))


@given(entries, st.integers(0, 2**32 - 1))
def test_unsorted_csr_with_duplicates_and_wrong_flags(triples, seed):
    order = np.random.default_rng(seed).permutation(len(triples))
    triples = sorted((triples[i] for i in order), key=lambda entry: entry[0])
    rows, columns, values = np.array(triples).reshape(-1, 3).T
    indptr = np.searchsorted(rows, np.arange(6))
    matrix = sp.csr_matrix((values, columns.astype(np.int32), indptr), shape=(5, 4))
    # What the caller's object claims about itself is not believed.
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    kept = matrix.data.copy(), matrix.indices.copy(), matrix.indptr.copy()
    assert_canonical(canonical_csr(matrix), dense_of(triples))
    for before, after in zip(kept, (matrix.data, matrix.indices, matrix.indptr), strict=True):
        assert np.array_equal(before, after)


def test_canonical_input_is_shared_not_copied():
    matrix = sp.csr_matrix(np.eye(3))
    assert np.shares_memory(canonical_csr(matrix).data, matrix.data)


@pytest.mark.parametrize(
    ("indices", "indptr"), [([0, 9], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 2, 1])]
)
def test_broken_matrices_are_refused(indices, indptr):
    matrix = sp.csr_matrix(np.eye(2))
    matrix.indices, matrix.indptr = np.array(indices, np.int32), np.array(indptr, np.int32)
    with pytest.raises(ValueError, match="ind"):
        canonical_csr(matrix)


def test_rows_are_read_only_and_of_one_precision():
    X = sp.csr_matrix(np.eye(3, dtype=np.float32))
    rows = as_rows(X, np.arange(3.0), np.ones(3))
    assert (rows.n_rows, rows.longest) == (3, 1)
    assert rows.values.dtype == rows.target.dtype == rows.weight.dtype == np.float32
    assert rows.indptr.dtype == np.int64
    assert not any(part.flags.writeable for part in rows)
    assert rows.with_target(np.zeros(3)).target.dtype == np.float32
    empty = as_rows(canonical_csr(np.zeros((2, 3))))
    assert (empty.n_rows, empty.longest, empty.weight.tolist()) == (2, 0, [1.0, 1.0])


def test_read_only_view_leaves_the_array_writable():
    array = np.zeros(3)
    view = read_only(array)
    array[0] = 1.0
    assert view[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 2.0


@pytest.mark.parametrize("width", [10, 1000])
@given(st.lists(st.sets(st.integers(0, 9)), max_size=9), st.data())
def test_distinct_columns(width, filled, data):
    """In order of first use if they are few of all, in increasing order if they are many."""
    X = np.zeros((len(filled), width))
    for row, columns in zip(X, filled, strict=True):
        row[list(columns)] = 1.0
    numbers = [i for i in range(len(X)) if data.draw(st.booleans())]
    rows = as_rows(canonical_csr(X), numbers=np.array(numbers, dtype=np.int32))
    mark = np.zeros(width, dtype=np.uint8)
    found = plain(distinct)(rows, mark)
    wanted = list(dict.fromkeys(j for i in numbers for j in sorted(filled[i])))
    assert found.tolist() == (sorted(wanted) if width == 10 else wanted)
    assert not mark.any()


def test_counts_and_units():
    X = sp.csr_matrix(np.array([[3.0, 0.0, 1.0], [4.0, 0.0, -1.0], [0.0, 0.0, 1.0]]))
    rows = as_rows(canonical_csr(X))
    linear = np.zeros((3, 3))
    count_visits(rows, linear[:, 1])
    assert linear[:, 1].tolist() == [2, 0, 3]
    measure_units(rows, linear, 2, np.array([0, 2]))
    # One over the root mean square of the non-zeros, for the columns that are asked for.
    assert linear[:, 2] == pytest.approx([np.sqrt(2 / 25), 0.0, 1.0])
    some = as_rows(canonical_csr(X), numbers=np.array([0, 2], dtype=np.int32))
    assert (some.n_rows, some.longest) == (2, 2)
    counts = np.zeros(3, dtype=np.int32)
    count_visits(some, counts)
    assert counts.tolist() == [1, 0, 2]
    measure_units(some, linear, 2, np.array([0]))
    assert linear[:, 2] == pytest.approx([1 / 3, 0.0, 1.0])
