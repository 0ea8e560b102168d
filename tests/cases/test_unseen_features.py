"""Publicly reported faults of other programs: features that training did not see.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from recompute import one_hot, parameters

from polyfm import FMClassifier, FMRegressor


def rows(n_rows=200, n_columns=10):
    X = np.random.default_rng(0).normal(size=(n_rows, n_columns))
    X[:, -1] = 0
    return X, X[:, 0] + X[:, 1] * X[:, 2]


@pytest.mark.parametrize("options", [{}, {"alpha": 0, "beta": 0}, {"order": 3}], ids=str)
def test_case_099_columns_without_training_contribute_nothing(options):
    """With the last column zero in training, its value changes no prediction, for any seed."""
    X, y = rows()
    new = X[:20].copy()
    new[:, -1] = np.linspace(-100, 100, 20)
    for seed in range(3):
        model = FMRegressor(random_state=seed, max_iter=10, **options).fit(X, y)
        np.testing.assert_array_equal(model.predict(new), model.predict(X[:20]))
        assert model.coef_[-1] == 0
        assert all((factors[-1] == 0).all() for factors in model.factors_.values())


def test_case_099_columns_that_come_later():
    """A column that a later batch brings is learnt from then on."""
    X, y = rows()
    model = FMRegressor(random_state=0).partial_fit(X, y)
    assert model.coef_[-1] == 0
    X[:, -1] = np.random.default_rng(1).normal(size=200)
    for _ in range(20):
        model.partial_fit(X, y + 2 * X[:, -1])
    assert model.coef_[-1] > 1
    assert (model.factors_[2][-1] != 0).any()


@pytest.mark.parametrize("n_columns", [9, 11, 15_897])
@pytest.mark.parametrize("method", ["predict", "partial_fit"])
def test_case_101_another_number_of_columns(n_columns, method):
    """An id beyond the training width, or a table too narrow: both widths are named, no crash."""
    X, y = rows()
    model = FMRegressor(random_state=0, max_iter=2).fit(X, y)
    other = sp.csr_matrix((np.ones(1), ([0], [n_columns - 1])), shape=(1, n_columns))
    before = parameters(model)
    with pytest.raises(ValueError, match=f"{n_columns} features.*expecting 10 features"):
        getattr(model, method)(other, *([[1.0]] if method == "partial_fit" else []))
    np.testing.assert_array_equal(parameters(model), before)


def test_case_103_the_reader_takes_the_width_of_the_model(tmp_path):
    """A test file without the last columns, read at the model's width, can be predicted."""
    from polyfm.data import load_svmlight

    (tmp_path / "train").write_text("1 5:1 2:1\n0 1:1 3:1\n1 2:1\n0 3:1\n")
    (tmp_path / "test").write_text("1 3:1\n1 2:1\n")
    model = FMClassifier(random_state=0)
    model.fit(*load_svmlight(tmp_path / "train", dtype=np.float64))
    X, _ = load_svmlight(tmp_path / "test", n_features=model.n_features_in_, dtype=np.float64)
    assert X.shape == (2, 5)
    assert model.predict(X).tolist() == [0, 1]


def test_case_106_predicting_in_pieces():
    """Rows 0 to 9 and then 10 to 19, or every single one: as all at once."""
    X, y = rows()
    model = FMRegressor(random_state=0).fit(X, y)
    for size in (1, 10, 7):
        pieces = [model.predict(X[i : i + size]) for i in range(0, 20, size)]
        np.testing.assert_array_equal(np.concatenate(pieces)[:20], model.predict(X[:20]))


def test_case_107_a_user_known_only_by_features():
    """No id column active: the id adds nothing, and the side features decide."""
    rng = np.random.default_rng(0)
    users, groups = rng.integers(0, 30, 600), rng.integers(0, 3, 600)
    X = one_hot(users, groups, widths=[30, 3])
    y = 2.0 * groups + 0.1 * rng.normal(size=600)
    model = FMRegressor(random_state=0).fit(X, y)
    strangers = np.hstack([np.zeros((3, 30)), np.eye(3)])
    scores = model.predict(strangers)
    np.testing.assert_allclose(scores, model.intercept_ + model.coef_[30:], rtol=1e-12)
    np.testing.assert_allclose(scores, [0, 2, 4], atol=0.6)
