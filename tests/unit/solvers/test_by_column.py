"""Rows by columns, and rows put side by side."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyfm.data.rows import as_rows
from polyfm.solvers._by_column import columns_of, side_by_side


def random_rows(n_rows=30, n_features=8, numbers=None):
    X = sp.random(n_rows, n_features, 0.3, random_state=0, format="csr")
    rows = as_rows(X, None, np.arange(1.0, n_rows + 1), numbers)
    return X, rows.with_target(np.arange(n_rows, dtype=np.float64))


@pytest.mark.parametrize("numbers", [None, np.array([4, 20, 7], dtype=np.int32)])
def test_columns_are_those_of_scipy(numbers):
    X, rows = random_rows(numbers=numbers)
    expected = (X if numbers is None else X[numbers]).tocsc()
    columns = columns_of(rows, X.shape[1])
    np.testing.assert_array_equal(columns.indptr, expected.indptr)
    np.testing.assert_array_equal(columns.rows, expected.indices)
    np.testing.assert_array_equal(columns.values, expected.data)


def test_a_last_column_of_ones():
    X, rows = random_rows()
    columns = columns_of(rows, X.shape[1], ones=True)
    expected = sp.hstack([X, np.ones((30, 1))]).tocsc()
    np.testing.assert_array_equal(columns.indptr, expected.indptr)
    np.testing.assert_array_equal(columns.rows, expected.indices)
    np.testing.assert_array_equal(columns.values, expected.data)


@pytest.mark.parametrize("numbers", [None, np.array([9, 4, 20, 7, 1], dtype=np.int32)])
def test_rows_side_by_side_are_the_same_rows_by_first_column(numbers):
    X, rows = random_rows(numbers=numbers)
    chosen = np.arange(30) if numbers is None else numbers
    other = rows.with_target(-rows.target)
    (first, second) = side_by_side([rows, other])
    order = first.target.astype(int)
    np.testing.assert_array_equal(np.sort(order), np.sort(chosen))
    found = sp.csr_matrix((first.values, first.indices, first.indptr), shape=(len(order), 8))
    np.testing.assert_array_equal(found.toarray(), X[order].toarray())
    np.testing.assert_array_equal(first.weight, order + 1.0)
    np.testing.assert_array_equal(second.target, -first.target)
    starts = [r.indices[0] if r.nnz else 8 for r in X[order]]
    assert starts == sorted(starts)


def test_rows_that_lie_so_are_not_copied():
    X = sp.csr_matrix(np.eye(4))
    rows = as_rows(X)
    assert side_by_side([rows])[0] is rows


def test_no_rows_and_no_entries():
    rows = as_rows(sp.csr_matrix((3, 2)))
    assert side_by_side([rows])[0].n_rows == 3
    assert columns_of(rows, 2).indptr.tolist() == [0, 0, 0]
