"""Publicly reported faults of other programs: one matrix, many formats, many results.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from recompute import parameters

from polyfm import FMClassifier, FMRegressor
from polyfm.data import load_svmlight

FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


def matrix(n_rows=60, n_columns=8):
    X = sp.random(n_rows, n_columns, density=0.4, format="csr", random_state=0)
    y = np.resize([0, 1, 1, 0, 1], n_rows)
    return X, y


def fitted(X, y, cls=FMClassifier):
    return parameters(cls(max_iter=10, random_state=0).fit(X, y))


def messy(X):
    """The same matrix with each entry in two halves, in the opposite order."""
    pieces = [
        (np.repeat(X.data[a:b], 2)[::-1] / 2, np.repeat(X.indices[a:b], 2)[::-1])
        for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]
    data, indices = (np.concatenate(part) for part in zip(*pieces, strict=True))
    return sp.csr_matrix((data, indices, 2 * X.indptr), shape=X.shape)


@pytest.mark.parametrize("cls", [FMClassifier, FMRegressor])
def test_case_078_every_format_gives_the_same_model(cls):
    """Dense, seven sparse matrices and arrays, a sparse frame: no warning, the same bits."""
    X, y = matrix()
    expected = fitted(X.toarray(), y, cls)
    model = cls(max_iter=10, random_state=0).fit(X, y)
    scores = model.predict(X)
    for name in FORMATS:
        for kind in ("matrix", "array"):
            other = getattr(sp, f"{name}_{kind}")(X)
            np.testing.assert_array_equal(fitted(other, y, cls), expected, err_msg=name)
            np.testing.assert_array_equal(model.predict(other), scores, err_msg=name)
    frame = pd.DataFrame.sparse.from_spmatrix(X)
    frame.columns = [f"c{j}" for j in range(8)]
    np.testing.assert_array_equal(fitted(frame, y, cls), expected)


def test_case_079_repeated_coordinates():
    """COO with the same coordinate twice: summed, on a copy."""
    X = sp.coo_matrix((np.ones(3), ([0, 0, 1], [2, 2, 0])), shape=(4, 3))
    y = [0, 1, 1, 0]
    np.testing.assert_array_equal(fitted(X, y), fitted(X.toarray(), y))
    assert X.toarray()[0, 2] == 2
    assert X.nnz == 3
    assert X.col.tolist() == [2, 2, 0]


def test_case_081_unsorted_rows():
    """Indices in falling order inside each row change neither training nor prediction."""
    X, y = matrix()
    order = np.concatenate(
        [np.arange(b - 1, a - 1, -1) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    )
    reversed_ = sp.csr_matrix((X.data[order], X.indices[order], X.indptr), shape=X.shape)
    assert not reversed_.has_sorted_indices
    np.testing.assert_array_equal(fitted(reversed_, y), fitted(X, y))
    model = FMClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(reversed_), model.decision_function(X))


def test_case_082_repeated_entries_equal_their_sum():
    """'a:1 a:1 b:1' trains like 'a:2 b:1', sparse and dense."""
    twice = sp.csr_matrix((np.ones(8), [0, 0, 1, 1, 1, 0, 2, 2], [0, 3, 5, 6, 8]), shape=(4, 3))
    once = sp.csr_matrix(([2.0, 1, 2, 1, 2], [0, 1, 1, 0, 2], [0, 2, 3, 4, 5]), shape=(4, 3))
    y = [1, 0, 1, 0]
    np.testing.assert_array_equal(fitted(twice, y), fitted(once, y))
    np.testing.assert_array_equal(fitted(twice, y), fitted(once.toarray(), y))
    assert twice.nnz == 8


@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict", "decision_function"])
@pytest.mark.parametrize("cls", [FMClassifier, FMRegressor])
def test_case_083_coo_everywhere(cls, method):
    """Every method of both estimators takes COO."""
    X, y = matrix()
    model = cls(max_iter=3, random_state=0)
    if method in ("fit", "partial_fit"):
        getattr(model, method)(X.tocoo(), y)
        assert np.isfinite(parameters(model)).all()
    elif hasattr(model, method):
        model.fit(X, y)
        result = getattr(model, method)(X.tocoo())
        np.testing.assert_array_equal(result, getattr(model, method)(X))


def test_case_085_stored_zeros():
    """Zeros that are stored are zeros: their columns are not met, and nothing else changes."""
    X, y = matrix()
    X.data[::7] = 0.0
    column = X.indices[0]
    X.data[X.indices == column] = 0.0
    clean = X.copy()
    clean.eliminate_zeros()
    assert X.nnz > clean.nnz
    np.testing.assert_array_equal(fitted(X, y), fitted(clean, y))
    model = FMClassifier(random_state=0).fit(X, y)
    assert model.coef_[column] == 0
    assert (model.factors_[2][column] == 0).all()
    np.testing.assert_array_equal(model.decision_function(X), model.decision_function(clean))


@pytest.mark.parametrize("outdated_flags", [False, True])
def test_case_086_repeated_and_unsorted(outdated_flags):
    """Both at once, even where SciPy was told otherwise: the model of the tidy matrix."""
    X, y = matrix()
    X.data = np.round(X.data * 8) / 8  # Halves add up without rounding.
    untidy = messy(X)
    if outdated_flags:
        untidy.has_canonical_format = untidy.has_sorted_indices = True
    before = untidy.data.copy(), untidy.indices.copy()
    np.testing.assert_array_equal(fitted(untidy, y), fitted(X, y))
    np.testing.assert_array_equal(untidy.data, before[0])
    np.testing.assert_array_equal(untidy.indices, before[1])


@pytest.mark.parametrize("column", [-1, 3, 2**31 - 1])
def test_case_086_indices_outside_the_matrix(column):
    """Index arrays that point outside are refused before anything reads memory."""
    X = sp.csr_matrix(np.eye(4, 3))
    X.indices[1] = column
    with pytest.raises(ValueError):
        FMClassifier().fit(X, [0, 1, 1, 0])


def test_case_087_a_line_with_only_a_label(tmp_path):
    """Such a row is all zeros, may be learnt from, and its score is the bias."""
    path = tmp_path / "rows.txt"
    path.write_text("0 3:.1 67:.5\n1\n1 1:.9 23:.8\n")
    X, y = load_svmlight(path, dtype=np.float64)
    model = FMClassifier(random_state=0).fit(X, y)
    scores = model.decision_function(X)
    assert scores[1] == model.intercept_
    assert scores[0] < scores[1] < scores[2]
