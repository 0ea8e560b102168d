"""Threads that share a table, each with rows of its own for frequent features."""

import copy
import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from polyfm import FMClassifier, FMRegressor
from polyfm.exceptions import DivergenceError
from polyfm.kernels import ANOVA
from polyfm.solvers import stochastic
from polyfm.solvers._epoch import learn_rows
from polyfm.solvers._shared_epoch import learn_shared_rows
from polyfm.solvers._threads import Crew, HotRows, Pieces
from polyfm.testing._models import model_of


def ratings(n_rows=3000, seed=0):
    """One-hot rows of three fields; the first column is in most rows."""
    random = np.random.default_rng(seed)
    fields = np.stack(
        [
            np.where(random.random(n_rows) < 0.8, 0, random.integers(1, 5, n_rows)),
            5 + random.integers(0, 300, n_rows),
            305 + random.integers(0, 300, n_rows),
        ],
        axis=1,
    )
    ones = np.ones(fields.size)
    X = sp.csr_matrix((ones, fields.ravel(), np.arange(0, fields.size + 1, 3)), (n_rows, 605))
    effect = random.normal(size=605)
    return X, effect[fields].sum(axis=1) + 0.1 * random.normal(size=n_rows)


def test_hot_features_are_the_most_frequent():
    counts = np.array([900.0, 3.0, 10.0, 4.0, 500.0])
    parameters = model_of(ANOVA(2), np.ones((5, 3))).parameters
    hot = HotRows.find(parameters, counts, 1000, 2)
    assert (hot.model_rows, len(hot.blocks.table), len(hot.blocks.linear)) == (5, 13, 13)
    np.testing.assert_array_equal(hot.features, [0, 2, 3, 4])  # more than 1000 / 256 rows
    assert hot.numbers.numbers.tolist() == [1, 0, 2, 3, 4]


@pytest.mark.parametrize("collisions", [False, True])
def test_own_rows_change_nothing_but_the_place(collisions):
    """One thread with rows of its own learns what one without them learns."""
    X, y = ratings(400)
    model = FMRegressor(max_iter=1, tol=0, early_stopping=False, random_state=0).fit(X, y)
    rows = model._solver_rows(model._check_labelled(X, y, None, reset=False))[0]
    plain, shared = (copy.deepcopy(model._learners[0]) for _ in range(2))
    order = np.random.default_rng(1).permutation(rows.numbers)
    call = plain._call(plain.model.parameters, rows, order, 400.0, _room(plain, rows), 0.0)
    assert learn_rows(*call)[0] == 400

    parameters = shared.model.parameters
    hot = HotRows.find(parameters, parameters.linear[:, 2], 400, 1)
    assert 0 < len(hot.features) < 605
    if collisions:  # the hash of each feature is that of a hot one
        hot.numbers.bits[:] = np.iinfo(np.uint64).max
    room, n_rows = _room(shared, rows), len(parameters.table)
    hot.hand_out()
    call = shared._call(hot.blocks, rows, order, 400.0, room, 0.0)
    done, _ = learn_shared_rows(*call, hot.numbers, hot.first_row(0), room.indices)
    assert done == 400
    hot.collect(2)
    wanted = plain.model.parameters
    np.testing.assert_allclose(hot.blocks.table[:n_rows], wanted.table, rtol=1e-12)
    np.testing.assert_allclose(hot.blocks.linear[:n_rows], wanted.linear, rtol=1e-12)


def _room(learner, rows):
    indices = np.empty((2, rows.longest), dtype=rows.indices.dtype)
    return stochastic.Work(learner.model.work_cells(rows.longest), indices)


@pytest.mark.parametrize("order", [1, 2])
def test_two_threads_learn_as_well_as_one(order):
    X, y = ratings()
    settings = {"order": order, "max_iter": 15, "tol": 0, "early_stopping": False}
    one, two = (
        FMRegressor(n_jobs=n, random_state=0, **settings).fit(X, y).score(X, y) for n in (1, 2)
    )
    assert one > 0.9
    assert two > one - 0.02


def test_threads_leave_no_trace_in_a_model():
    """What the threads need is not pickled, and one thread can go on."""
    X, y = ratings()
    model = FMClassifier(n_jobs=2, max_iter=2, warm_start=True, random_state=0).fit(X, y > 0)
    assert len(model._learners[0].model.parameters.linear) == 605
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.set_params(n_jobs=1).fit(X, y > 0).score(X, y > 0) > 0.8
    assert model.partial_fit(X, y > 0).score(X, y > 0) > 0.8


@pytest.mark.parametrize(
    "changed", [{"learning_rate": 0.01}, {"alpha": 100.0}, {"beta": 100.0}, {"penalty": "l1"}]
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_going_on_with_another_parameter_has_an_effect(changed, method):
    X, y = ratings(500)
    models = [
        FMRegressor(max_iter=2, tol=0, warm_start=True, random_state=0).fit(X, y) for _ in range(2)
    ]
    models[1].set_params(**changed)
    first, second = (getattr(model, method)(X, y).predict(X) for model in models)
    assert np.abs(first - second).max() > 1e-6


@pytest.mark.parametrize(
    "changed",
    [{"order": 3}, {"rank": 4}, {"kernel": "polynomial"}, {"fit_linear": False}, {"loss": "huber"},
     {"solver": "sgd"}],
)  # fmt: skip
def test_going_on_with_another_model_is_refused(changed):
    X, y = ratings(500)
    model = FMRegressor(max_iter=2, warm_start=True, random_state=0).fit(X, y)
    before = model.predict(X)
    model.set_params(**changed)
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=rf"{next(iter(changed))} has changed .*warm_start"):
            method(X, y)
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.set_params(warm_start=False).fit(X, y).n_iter_ > 0


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("n_rows", [1, 5, 2048, 100_003])
def test_threads_take_each_row_once(n_rows, n_threads):
    order = np.random.default_rng(0).permutation(n_rows)
    pieces, taken = Pieces(order, n_threads), [[] for _ in range(n_threads)]
    with Crew(n_threads) as crew:
        crew.run(lambda thread: taken[thread].extend(pieces), [(k,) for k in range(n_threads)])
    found = sorted((piece for own in taken for piece in own), key=lambda piece: piece[0])
    np.testing.assert_array_equal(np.concatenate([rows for _, rows in found]), order)
    assert [first for first, _ in found][:1] == [0]
    for (first, rows), (following, _) in itertools.pairwise(found):
        assert following == first + len(rows)
    if n_threads == 1:
        assert len(found) == 1
    elif n_rows == 100_003:
        # Nearly all rows are in the first pieces; the last ones are small.
        assert len(found[0][1]) == int(0.75 * n_rows / n_threads) and len(found[-1][1]) <= 1024


def test_a_row_that_fails_in_a_thread_is_named():
    X, y = ratings(20_000)
    model = FMRegressor(max_iter=1, tol=0, early_stopping=False, random_state=0, n_jobs=2)
    rows = model.fit(X, y)._solver_rows(model._check_labelled(X, y, None, reset=False))[0]
    (learner,) = model._learners
    target = rows.target.copy()
    target[19_000] = np.inf
    with pytest.raises(DivergenceError, match=r"at a row whose largest value is 1 in column"):
        learner.learn(rows.with_target(target))


def test_the_sum_of_finite_parameters_may_overflow():
    X, y = ratings(400)
    model = FMRegressor(max_iter=1, early_stopping=False, random_state=0).fit(X, y)
    (learner,) = model._learners
    table = learner.model.parameters.table
    table[:2] = np.finfo(table.dtype).max
    learner.check_finite()
    table[3, 0, 0] = np.nan
    with pytest.raises(DivergenceError, match="table parameters are no longer finite"):
        learner.check_finite()
