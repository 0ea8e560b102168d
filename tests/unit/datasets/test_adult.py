from importlib.resources import files

import numpy as np
import pytest
import scipy.sparse as sp

from polyfm.datasets import load_adult


@pytest.fixture(scope="module")
def adult():
    return load_adult()


def test_published_counts(adult):
    X, X_test, y, y_test = adult.split()
    assert (X.shape[0], y.sum()) == (32_561, 7_841)
    assert (X_test.shape[0], y_test.sum()) == (16_281, 3_846)
    assert set(np.unique(adult.y)) == {0, 1}


def test_design(adult):
    assert sp.isspmatrix_csr(adult.X)
    assert adult.X.dtype == np.float32
    assert len(adult.feature_names) == len(adult.fields) == adult.X.shape[1]
    assert len(adult.field_names) == 14
    assert set(adult.X.data) == {1}
    train = adult.splits["test"][0]
    assert (adult.X[train].sum(axis=1) == 14).all()


def test_question_mark_is_a_category(adult):
    column = adult.feature_names.tolist().index("workclass=?")
    asked = adult.frame["workclass"] == "?"
    np.testing.assert_array_equal(adult.X[:, [column]].toarray().ravel() == 1, asked)
    assert asked.sum() == 1_836 + 963


def test_one_row_in_full(adult):
    """39, State-gov, 77516, Bachelors, 13, Never-married, ..., 40, United-States, <=50K."""
    assert adult.frame["age"][0] == 39
    assert adult.frame["income"][0] == "<=50K"
    names = set(adult.feature_names[adult.X[0].indices])
    expected = {"workclass=State-gov", "education=Bachelors", "sex=Male", "capital-loss=(-inf, 0]"}
    assert expected < names


def test_nothing_is_learnt_from_the_test_part(adult):
    """A country that only the training part knows has a column, and the bins are its own."""
    train = adult.splits["test"][0]
    used = np.unique(adult.X[train].indices)
    assert len(used) == adult.X.shape[1]


def test_options():
    plain = load_adult(numeric="standardize", dtype=np.float64)
    age = plain.X[:32_561, [plain.feature_names.tolist().index("age")]].toarray()
    assert plain.X.dtype == np.float64
    assert abs(age.mean()) < 1e-12
    assert load_adult(n_bins=3).X.shape[1] < load_adult().X.shape[1]


def test_licence_travels_with_the_data():
    folder = files("polyfm.datasets") / "_files" / "adult"
    text = (folder / "ATTRIBUTION.txt").read_text()
    for part in ("Becker", "Kohavi", "10.24432/C5XW20", "CC BY 4.0", "Changes"):
        assert part in text
    sizes = [len((folder / f"adult-{part}.csv.xz").read_bytes()) for part in ("train", "test")]
    assert sum(sizes) < 500_000


def test_splits_by_name(adult):
    with pytest.raises(ValueError, match=r"no split 'u1'; this data set has \['test'\]"):
        adult.split("u1")
    assert repr(adult).startswith("DatasetBundle(48842 rows, ")
