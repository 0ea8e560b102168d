"""Publicly reported faults of other programs: models that do not survive being put away.

The number in a test's name is that of the report; each says what must happen here instead.
"""

import copy
import io
import os
import pathlib
import pickle
import tempfile
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from recompute import parameters

from polyfm import FMClassifier, FMRegressor


def rows(n_rows=80):
    X = np.random.default_rng(0).normal(size=(n_rows, 4))
    return X, X[:, 0] + X[:, 1] * X[:, 2]


def through_joblib(model):
    memory = io.BytesIO()
    joblib.dump(model, memory)
    memory.seek(0)
    return joblib.load(memory)


def copies(model):
    yield from (pickle.loads(pickle.dumps(model, protocol)) for protocol in range(6))
    yield through_joblib(model)
    yield copy.deepcopy(model)
    cloudpickle = pytest.importorskip("cloudpickle")
    yield pickle.loads(cloudpickle.dumps(model))


def test_case_115_a_file_that_cannot_be_replaced(tmp_path, monkeypatch):
    """Saving where it is not allowed: PermissionError, the old file whole, nothing left beside."""
    from polyfm import load_model, save_model

    X, y = rows()
    path = tmp_path / "model.polyfm"
    model = FMRegressor(random_state=0).fit(X, y)
    save_model(model, path)
    before = path.read_bytes()

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied", str(path))

    for name in ("replace", "rename"):
        monkeypatch.setattr(pathlib.Path, name, refuse)
        monkeypatch.setattr(os, name, refuse)
    with pytest.raises(PermissionError, match="denied"):
        save_model(FMRegressor(random_state=1).fit(X, y), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    np.testing.assert_array_equal(load_model(path).predict(X), model.predict(X))


@pytest.mark.parametrize("cls", [FMRegressor, FMClassifier])
def test_case_155_copies_predict_the_same_bits(cls):
    """Every pickle protocol, joblib, deepcopy and cloudpickle: predictions and attributes stay."""
    X, y = rows()
    model = cls(random_state=0).fit(X, y if cls is FMRegressor else y > 0)
    expected = model.predict(X)
    for other in copies(model):
        np.testing.assert_array_equal(other.predict(X), expected)
        np.testing.assert_array_equal(parameters(other), parameters(model))
        assert other.history_ == model.history_
        assert other.get_params() == model.get_params()


def test_case_155_copies_share_nothing():
    """Training a copy leaves the original alone, and goes on as the original would have."""
    X, y = rows()
    model = FMRegressor(random_state=0).partial_fit(X, y)
    before = parameters(model)
    others = [other.partial_fit(X, y) for other in copies(model)]
    np.testing.assert_array_equal(parameters(model), before)
    model.partial_fit(X, y)
    for other in others:
        np.testing.assert_array_equal(parameters(other), parameters(model))


def test_case_157_fit_once_predict_often():
    """Three other tables after one fit: right each time, and no parameter moves."""
    X, y = rows()
    model = FMRegressor(random_state=0).fit(X, y)
    before = parameters(model)
    for seed in range(1, 4):
        new = np.random.default_rng(seed).normal(size=(500, 4))
        truth = new[:, 0] + new[:, 1] * new[:, 2]
        assert np.corrcoef(model.predict(new), truth)[0, 1] > 0.8
    np.testing.assert_array_equal(parameters(model), before)


def test_case_158_rank_zero():
    """No factors: a linear model, with arrays of width 0, that pickles and saves like others."""
    X, y = rows()
    model = FMRegressor(rank=0, random_state=0).fit(X, y)
    assert model.factors_[2].shape == (4, 0)
    np.testing.assert_allclose(model.predict(X), model.intercept_ + X @ model.coef_, rtol=1e-10)
    for other in copies(model):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))


def test_case_158_rank_zero_in_a_file(tmp_path):
    """The model file of a model without factors."""
    from polyfm import load_model, save_model

    X, y = rows()
    model = FMRegressor(rank=0, random_state=0).fit(X, y)
    save_model(model, tmp_path / "linear.polyfm")
    other = load_model(tmp_path / "linear.polyfm")
    assert other.factors_[2].shape == (4, 0)
    np.testing.assert_array_equal(other.predict(X), model.predict(X))


def test_case_159_no_files_on_the_side(tmp_path, monkeypatch):
    """Fitting and predicting need no writable folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "does not exist"))
    monkeypatch.chdir(tmp_path)
    X, y = rows()
    assert np.isfinite(FMRegressor(random_state=0).fit(X, y).predict(X)).all()
    assert list(tmp_path.iterdir()) == []


def test_case_159_fits_at_the_same_time():
    """Estimators fitted by several threads at once are those fitted one after the other."""
    X, y = rows()
    alone = [parameters(FMRegressor(random_state=seed).fit(X, y)) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        models = list(pool.map(lambda seed: FMRegressor(random_state=seed).fit(X, y), range(6)))
    for model, expected in zip(models, alone, strict=True):
        np.testing.assert_array_equal(parameters(model), expected)


def test_case_159_any_file_name(tmp_path):
    """A folder and a name with blanks and letters beyond ASCII."""
    from polyfm import load_model, save_model

    X, y = rows()
    model = FMRegressor(random_state=0).fit(X, y)
    folder = tmp_path / "my models - año"
    folder.mkdir()
    path = folder / "modèle é.polyfm"
    save_model(model, path)
    np.testing.assert_array_equal(load_model(path).predict(X), model.predict(X))
    assert [p.name for p in folder.iterdir()] == [path.name]
