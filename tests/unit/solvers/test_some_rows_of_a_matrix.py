"""Learning and scoring some rows of a matrix is learning and scoring a matrix of those rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyfm import FMClassifier, FMRegressor
from polyfm.data.rows import as_rows
from polyfm.estimators._validation import Held, Labelled
from polyfm.solvers.stochastic import StochasticLearner


def some_data(n_rows=400, n_features=60):
    random = np.random.default_rng(5)
    X = sp.random(n_rows, n_features, 0.1, "csr", rng=random)
    X.data[:] = random.normal(size=X.nnz)
    y = X @ random.normal(size=n_features) + (X @ random.normal(size=n_features)) ** 2
    return X, y


def parameters(model):
    return [block.copy() for block in model._learners[0].model.parameters]


@pytest.mark.parametrize("ones", [False, True])
def test_rows_of_weight_zero_are_rows_that_are_not_there(ones):
    X, y = some_data()
    if ones:
        X.data[:] = 1.0
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    settings = {"max_iter": 4, "tol": 0, "early_stopping": False, "random_state": 0}
    silent = FMRegressor(**settings).fit(X, y, sample_weight=weight)
    kept = weight > 0
    without = FMRegressor(**settings).fit(X[kept], y[kept])
    for block, wanted in zip(parameters(silent), parameters(without), strict=True):
        np.testing.assert_array_equal(block, wanted)
    for model in (silent, without):
        model.partial_fit(X, y, sample_weight=weight)
    for block, wanted in zip(parameters(silent), parameters(without), strict=True):
        np.testing.assert_array_equal(block, wanted)


@pytest.mark.parametrize("estimator", [FMRegressor, FMClassifier])
def test_rows_held_out_are_not_learnt_from(monkeypatch, estimator):
    """The split learns and judges as if each side were a matrix of its own."""
    X, y = some_data()
    y = y > 1 if estimator is FMClassifier else y
    parts = []
    split = Held.split.__func__

    def spied(cls, rows, *args):
        held = split(cls, rows, *args)
        parts.extend([held.train.numbers, held.validation.numbers])
        return held

    monkeypatch.setattr(Held, "split", classmethod(spied))
    settings = {"max_iter": 5, "tol": 0, "early_stopping": True, "random_state": 0}
    model = estimator(**settings).fit(X, y)
    train, held = parts
    assert sorted([*train, *held]) == list(range(len(y)))
    assert len(held) == 40
    apart = estimator(**settings).fit(X[train], y[train], X_val=X[held], y_val=y[held])
    assert apart.history_["validation_loss"] == model.history_["validation_loss"]
    for block, wanted in zip(parameters(model), parameters(apart), strict=True):
        np.testing.assert_array_equal(block, wanted)


def test_a_split_shares_the_matrix():
    X, y = some_data()
    rows = Labelled(X, y[:, None], np.ones(len(y)), np.arange(len(y), dtype=np.int32))
    held = Held.split(rows, 0.25, np.random.RandomState(0), None)
    assert held.train.matrix is held.validation.matrix is X
    assert held.train.numbers.dtype == np.int32
    np.testing.assert_array_equal(held.validation.targets[:, 0], y[held.validation.numbers])


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_scores_of_some_rows(n_jobs):
    X, y = some_data(5000)
    model = FMRegressor(max_iter=1, random_state=0).fit(X, y)._learners[0].model
    numbers = np.random.default_rng(0).permutation(5000)[:4000].astype(np.int32)
    whole = model.scores(as_rows(X))
    np.testing.assert_array_equal(
        model.scores(as_rows(X, numbers=numbers), n_jobs=n_jobs), whole[numbers]
    )


def test_best_weights_come_back():
    """What was taken is put back, in the features met, the dummy features and the small blocks."""
    X, y = some_data()
    X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(400, 90))  # 30 columns are never met.
    settings = {"order": 3, "fit_lower": "augment", "fit_weights": True}
    model = FMRegressor(max_iter=1, early_stopping=False, random_state=0, **settings).fit(X, y)
    learner: StochasticLearner = model._learners[0]
    rows = model._solver_rows(model._check_labelled(X, y, None, reset=False))[0]
    best = learner.best_weights()
    assert len(best._linear) == 60
    best.take()
    p = learner.model.parameters
    kept = [p.bias[0], p.linear[:, 0], p.table[:, 0], p.weights[0], p.theta[0]]
    wanted = [block.copy() for block in kept]
    learner.epoch(rows)
    assert not np.array_equal(p.weights[0], wanted[3])
    assert not np.array_equal(p.table[-2:, 0], wanted[2][-2:])
    best.put_back()
    for block, before in zip(kept, wanted, strict=True):
        np.testing.assert_array_equal(block, before)
