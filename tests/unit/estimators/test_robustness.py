"""Faults that were found by attack, each with its right behaviour."""

import copy
import os
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

from polyfm import DivergenceError, FMClassifier, FMRegressor, load_model, save_model
from polyfm.persistence import ModelFileError

random = np.random.default_rng(0)
X = random.normal(size=(600, 6))
Y = X[:, 0] + X[:, 1] * X[:, 2]


@pytest.fixture(scope="module")
def model():
    return FMRegressor(random_state=0).fit(X, Y)


@pytest.mark.parametrize("kind", ["csc", "csr", "bsr"])
@pytest.mark.parametrize("part", ["indices", "indptr"])
def test_indices_out_of_bounds_are_refused(model, kind, part):
    S = sp.random(20, 6, 0.5, kind, rng=0)
    getattr(S, part)[-1] = 10**8
    with pytest.raises(ValueError, match=r"index|indices|indptr|ind"):
        model.predict(S)


@pytest.mark.parametrize(("part", "value"), [("row", 10**8), ("col", 10**8), ("row", -1)])
def test_coordinates_out_of_bounds_are_refused(model, part, value):
    S = sp.random(20, 6, 0.5, "coo", rng=0)
    getattr(S, part)[3] = value
    with pytest.raises(ValueError, match=r"index|indices|negative"):
        model.predict(S)


def test_l1_gives_zeros_with_threads():
    settings = {"penalty": "l1", "alpha": 100, "beta": 100, "max_iter": 30, "tol": 0}
    wide = random.normal(size=(3000, 10))
    y = wide[:, 0] + random.normal(size=3000)
    for n_jobs in (1, 2):
        fitted = FMRegressor(n_jobs=n_jobs, early_stopping=False, random_state=0, **settings)
        assert (fitted.fit(wide, y).factors_[2] == 0).all()


def test_basis_weights_stay_in_bounds_with_threads():
    fitted = FMRegressor(fit_weights=True, n_jobs=2, max_iter=10, tol=0, early_stopping=False)
    fitted.fit(np.tile(X, (5, 1)), np.tile(Y, 5))
    assert np.abs(fitted._learners[0].model.parameters.weights[0]).max() <= 1.0


@pytest.mark.parametrize("scale", [1e-170, 1e-9, 1e9, 1e150])
def test_the_unit_of_the_target_plays_no_part(scale):
    settings = {"random_state": 0, "learning_rate": 0.01, "early_stopping": False}
    one, other = (FMRegressor(**settings).fit(X, Y * s) for s in (1.0, scale))
    assert other.n_iter_ == one.n_iter_
    np.testing.assert_allclose(other.predict(X) / scale, one.predict(X), rtol=1e-6, atol=1e-9)


def test_single_precision_bears_a_large_offset():
    fitted = FMRegressor(random_state=0).fit(X.astype(np.float32), Y + 1e9)
    assert fitted.score(X.astype(np.float32), Y + 1e9) > 0.99


def test_balance_of_classes_is_that_of_the_training_rows():
    y = np.arange(600) % 3
    fitted = FMClassifier(class_weight="balanced", max_iter=2, random_state=0)
    fitted.fit(X, y, X_val=X[:9], y_val=[0, 1] * 4 + [0])
    assert len(fitted.history_["validation_loss"]) == 2


@pytest.mark.parametrize("weight", [1e-46, 1e20, 1e200])
def test_extreme_weights_are_named(weight):
    with pytest.raises(ValueError, match=r"sample_weight goes from .* divide it by its mean"):
        FMRegressor().fit(X, Y, sample_weight=np.full(600, weight))


def test_a_memory_mapped_model_can_go_on(tmp_path, model):
    joblib.dump(model, tmp_path / "m.joblib")
    mapped = joblib.load(tmp_path / "m.joblib", mmap_mode="r")
    expected = copy.deepcopy(model).partial_fit(X[:50], Y[:50]).predict(X)
    np.testing.assert_array_equal(mapped.partial_fit(X[:50], Y[:50]).predict(X), expected)


def test_parameters_set_after_fit_wait_for_the_next_fit():
    fitted = FMRegressor(random_state=0).fit(X, Y)
    before = fitted.predict(X), fitted.factors_[2]
    fitted.set_params(loss="poisson", fit_weights=True)
    np.testing.assert_array_equal(fitted.predict(X), before[0])
    np.testing.assert_array_equal(fitted.factors_[2], before[1])


def test_an_absurd_order_ends_well_or_in_words():
    absurd = FMRegressor(order=300, fit_lower=None, rank=1, max_iter=1)
    try:
        absurd.fit(np.ones((3, 2000)), [1, 2, 3.0])
    except DivergenceError as error:
        assert "learning rate" in str(error)
    else:
        assert np.isfinite(absurd.predict(np.ones((1, 2000)))).all()


def test_counts_beyond_single_precision():
    rows = 2**24 + 8
    S = sp.csr_matrix(
        (np.ones(rows, np.float32), np.zeros(rows, np.int32), np.arange(rows + 1)), (rows, 1)
    )
    fitted = FMRegressor(rank=0, max_iter=1, early_stopping=False).fit(S, np.zeros(rows))
    assert fitted._learners[0].model.parameters.linear[0, 2] == rows


def test_a_model_file_with_negative_rows_is_refused(tmp_path, model):
    from dataclasses import replace

    broken = copy.deepcopy(model)
    broken._layout = replace(broken._layout, n_dummies=-3)
    learner = broken._learners[0]
    table = learner.model.parameters.table[:3].copy()
    parameters = learner.model.parameters._replace(table=table)
    learner.model = replace(learner.model, n_dummies=-3, parameters=parameters)
    save_model(broken, tmp_path / "m.polyfm")
    with pytest.raises(ModelFileError, match="negative"):
        load_model(tmp_path / "m.polyfm")


def test_divergence_gives_no_numpy_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        diverging = FMRegressor(solver="sgd", learning_rate=1e30, random_state=0)
        with pytest.raises(DivergenceError):
            diverging.fit(X.astype(np.float32), Y.astype(np.float32))


def test_folders_of_others_in_the_cache_folder_stay(tmp_path):
    for i in range(12):
        (tmp_path / f"my-experiments{i:02d}").mkdir()
        (tmp_path / f"my-experiments{i:02d}" / "results").write_text("precious")
    script = """
import numpy as np
from polyfm import FMRegressor
FMRegressor(rank=0, max_iter=1).fit(np.ones((3, 2)), [1, 2, 3.0])
"""
    environment = {**os.environ, "POLYFM_JIT_CACHE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=300)
    kept = [f for f in tmp_path.iterdir() if f.name.startswith("my-") and (f / "results").exists()]
    assert len(kept) == 12
    assert any(f.name.startswith("polyfm-") for f in tmp_path.iterdir())


def test_an_interrupt_while_threads_start_leaves_none_behind():
    """Ctrl-C inside Thread.start: no thread goes on to change the parameters."""
    script = """
import threading, time, numpy as np
from polyfm import FMRegressor
r = np.random.default_rng(0); X = r.normal(size=(2000, 40)); y = X[:, 0] + X[:, 1] * X[:, 2]
m = FMRegressor(n_jobs=2, max_iter=1, random_state=0).fit(X, y)
c, start = m.coef_.copy(), threading.Thread.start
def interrupted(self):
    start(self); threading.Thread.start = start; raise KeyboardInterrupt
threading.Thread.start = interrupted
try:
    m.partial_fit(np.tile(X, (40, 1)), np.tile(y, 40))
except KeyboardInterrupt:
    print("interrupted")
time.sleep(0.3)
print(np.array_equal(m.coef_, c))
import os; os._exit(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.split() == ["interrupted", "True"]


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_labels_are_named(missing):
    labels = np.array(["a", "b", missing, "b"] * 5, dtype=object)
    with pytest.raises(ValueError, match="y has no label in row 2"):
        FMClassifier().fit(X[:20], labels)
