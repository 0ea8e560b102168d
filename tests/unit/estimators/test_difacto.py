"""Factors on demand as an estimator: memory, streams, growth, files, failures."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import polyfm
from polyfm import DiFactoClassifier, DiFactoRegressor, DivergenceError
from polyfm.inspection import interaction_matrix
from polyfm.solvers.memory_adaptive import DiFactoLearner

GROUPS = {"ranks": (3, 6), "thresholds": (12, 80), "random_state": 0}


@pytest.fixture
def stream(random):
    """One-hot rows of four fields of skewed ids, and a target with crosses."""
    sizes, n = (3, 12, 30, 60), 600
    starts = np.cumsum([0, *sizes[:-1]])
    ids = [
        start + random.choice(size, n, p=(w := 1.0 / np.arange(1, size + 1)) / w.sum())
        for start, size in zip(starts, sizes, strict=True)
    ]
    indices = np.stack(ids, axis=1)
    X = sp.csr_matrix(
        (np.ones(4 * n), indices.ravel(), np.arange(0, 4 * n + 1, 4)), shape=(n, sum(sizes))
    )
    y = np.sin(indices[:, 0] * 7.0 + indices[:, 1]) + 0.1 * random.normal(size=n) + 0.5
    return X, y


def _state(model):
    """Return all that is learnt and remembered."""
    blocks = []
    for learner in model._learners:
        one, n = learner.model, int(learner.model.used[0])
        blocks += [one.bias, one.linear, one.counts, one.places, one.pool[:, :n], one.used]
    return [block.copy() for block in blocks]


def _assert_same(one, other):
    assert one.t_ == other.t_
    for now, then in zip(_state(one), _state(other), strict=True):
        np.testing.assert_array_equal(now, then)


def _fed(model, X, y, cuts):
    for first, last in zip([0, *cuts], [*cuts, len(y)], strict=True):
        model.partial_fit(X[first:last], y[first:last])
    return model


@pytest.mark.parametrize("cuts", [[300], [1, 2, 7, 99, 100, 101, 350], list(range(1, 600))])
def test_a_stream_may_be_cut_anywhere(stream, cuts):
    X, y = stream
    whole = _fed(DiFactoRegressor(**GROUPS), X, y, [])
    assert set(whole.ranks_) == {0, 3, 6}
    _assert_same(_fed(DiFactoRegressor(**GROUPS), X, y, cuts), whole)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_take_memory_for_frequent_features_alone(random, dtype):
    d, n = 20_000, 2_000
    frequent = random.integers(0, 20, size=n)
    rare = 20 + random.permutation(d - 20)[:n]
    indices = np.stack([frequent, rare], axis=1).ravel()
    X = sp.csr_matrix((np.ones(2 * n, dtype), indices, np.arange(0, 2 * n + 1, 2)), shape=(n, d))
    y = random.normal(size=n)
    settings = {"ranks": (4, 16), "thresholds": (10, 1_000), "alpha": 0.0, "max_iter": 1}
    model = DiFactoRegressor(**settings).fit(X, y)
    assert np.count_nonzero(model.coef_) > 1_900
    np.testing.assert_array_equal(np.flatnonzero(model.ranks_), np.arange(20))
    assert model.n_factors_ == 20 * 4
    pool = model._learners[0].model.pool
    assert pool.nbytes <= 2 * 2 * model.n_factors_ * np.dtype(dtype).itemsize
    # With a threshold that all pass, each feature of a row has a place.
    everyone = DiFactoRegressor(**{**settings, "thresholds": (0, 1_000)}).fit(X, y)
    assert everyone.n_factors_ == 4 * np.count_nonzero(everyone.coef_)
    assert everyone._learners[0].model.pool.nbytes > 50 * pool.nbytes


def test_a_zero_weight_keeps_factors_away_and_aside(stream):
    X, y = stream
    strict = DiFactoRegressor(**GROUPS, alpha=1e6).partial_fit(X, y)
    assert strict.n_factors_ == 0 and strict.counts_.max() > 80
    assert np.count_nonzero(strict.coef_) == 0
    model = DiFactoRegressor(**GROUPS, alpha=0.1).partial_fit(X, y)
    ranks = model.ranks_
    assert model.count_nonzero() > 1 + np.count_nonzero(model.coef_)
    # A penalty that takes all weights to 0: factors stay, unused and unmoved.
    model.set_params(alpha=1e6).partial_fit(X, y)
    model.partial_fit(X, y)
    used = np.flatnonzero(np.asarray(X.sum(axis=0)).ravel())
    assert np.count_nonzero(model.coef_[used]) == 0
    np.testing.assert_array_equal(model.ranks_, ranks)
    before = model._learners[0].model.pool.copy()
    model.partial_fit(X, y)
    np.testing.assert_array_equal(model._learners[0].model.pool, before)
    np.testing.assert_allclose(model.predict(X), model.intercept_, rtol=0, atol=1e-12)
    assert not model.factors_[2].any()


def test_features_without_factors_do_not_interact(stream):
    X, y = stream
    model = DiFactoRegressor(**GROUPS, alpha=0.1, max_iter=1).fit(X, y)
    weights = interaction_matrix(model)
    weights = weights.toarray() if sp.issparse(weights) else np.asarray(weights)
    factored = (model.ranks_ > 0) & (model.coef_ != 0)
    assert factored.any() and not factored.all()
    assert not weights[~factored].any()
    P = model.factors_[2]
    expected = np.triu(P @ P.T, 1)
    np.testing.assert_allclose(np.triu(weights, 1), expected, rtol=0, atol=1e-10)
    dense = X.toarray()
    predicted = model.intercept_ + dense @ model.coef_ + ((dense @ expected) * dense).sum(axis=1)
    np.testing.assert_allclose(model.predict(X), predicted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("n_before", [60, 150, 450])
@pytest.mark.parametrize("way", ["pickle", "file"])
def test_going_on_from_a_file(stream, tmp_path, way, n_before):
    X, y = stream
    straight = _fed(DiFactoRegressor(**GROUPS), X, y, [n_before])
    model = DiFactoRegressor(**GROUPS).partial_fit(X[:n_before], y[:n_before])
    if way == "pickle":
        model = pickle.loads(pickle.dumps(model))
    else:
        polyfm.save_model(model, tmp_path / "m")
        model = polyfm.load_model(tmp_path / "m")
    model.partial_fit(X[n_before:], y[n_before:])
    _assert_same(model, straight)
    np.testing.assert_array_equal(model.predict(X), straight.predict(X))


def test_a_file_for_predictions_only(stream, tmp_path):
    X, y = stream
    model = DiFactoClassifier(**GROUPS).fit(X, y.round() % 3)
    polyfm.save_model(model, tmp_path / "small", include_state=False)
    loaded = polyfm.load_model(tmp_path / "small")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(loaded.ranks_, model.ranks_)
    with pytest.raises(ValueError, match="include_state=False"):
        loaded.partial_fit(X, y.round() % 3)


def test_a_file_whose_places_lie_outside_is_refused(stream, tmp_path):
    X, y = stream
    model = DiFactoRegressor(**GROUPS).fit(X, y)
    inner = model._learners[0].model
    inner.places[np.flatnonzero(inner.places[:, 0] >= 0)[0], 0] = inner.used[0] - 1
    polyfm.save_model(model, tmp_path / "m")
    with pytest.raises(polyfm.ModelFileError, match="factors do not fit their places"):
        polyfm.load_model(tmp_path / "m")


@pytest.mark.parametrize("n_before", [40, 300])
@pytest.mark.parametrize("n_failing", [1, 300])
def test_a_failing_batch_changes_nothing(stream, monkeypatch, n_before, n_failing):
    X, y = stream
    labels, classes = (y * 3).astype(int) % 3, [0, 1, 2]
    model = DiFactoClassifier(**GROUPS, alpha=0.5)
    model.partial_fit(X[:n_before], labels[:n_before], classes=classes)
    before, t, scores = _state(model), model.t_, model.decision_function(X)
    learn, last = DiFactoLearner.learn, model._learners[2].settings.seed

    def failing(self, *args, **kwargs):
        loss = learn(self, *args, **kwargs)
        if self.settings.seed == last:
            raise KeyboardInterrupt
        return loss

    part = slice(n_before, n_before + n_failing)
    with monkeypatch.context() as patch:
        patch.setattr(DiFactoLearner, "learn", failing)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[part], labels[part])
    for now, then in zip(_state(model), before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert model.t_ == t
    np.testing.assert_array_equal(model.decision_function(X), scores)
    again = DiFactoClassifier(**GROUPS, alpha=0.5)
    again.partial_fit(X[:n_before], labels[:n_before], classes=classes)
    _assert_same(
        model.partial_fit(X[n_before:], labels[n_before:]),
        again.partial_fit(X[n_before:], labels[n_before:]),
    )


def test_columns_that_come_later(stream):
    X, y = stream
    whole = DiFactoRegressor(**GROUPS).partial_fit(X, y)
    growing = DiFactoRegressor(**GROUPS, max_features=200)
    width = 0
    for first in range(0, len(y), 50):
        rows = slice(first, first + 50)
        width = max(width, int(X[rows].indices.max()) + 1)
        growing.partial_fit(X[rows, :width], y[rows])
    assert growing.n_features_in_ == width
    for now, then in zip(_state(growing), _state(whole), strict=True):
        np.testing.assert_array_equal(now, then[:width] if len(then) > 50 else then)
    np.testing.assert_array_equal(growing.predict(X), whole.predict(X))


def test_single_events(stream):
    X, y = stream
    events = [{f"id{j}": 1.0 for j in row.indices} for row in X[:200]]
    one_by_one = DiFactoRegressor(**GROUPS, max_features=4096)
    for event, target in zip(events, y, strict=False):
        one_by_one.learn_one(event, target)
    at_once = DiFactoRegressor(**GROUPS, max_features=4096).partial_fit(events, y[:200])
    _assert_same(one_by_one, at_once)
    assert at_once.n_factors_ > 0
    assert one_by_one.predict_one(events[0]) == at_once.predict(events[:1])[0]


def test_the_start_of_factors_does_not_depend_on_when_they_come(stream):
    X, y = stream
    model = DiFactoRegressor(**GROUPS, alpha=0.0, factor_learning_rate=1e-300)
    once = model.partial_fit(X, y).factors_[2]
    backwards = DiFactoRegressor(**model.get_params()).partial_fit(X[::-1], y[::-1]).factors_[2]
    both = (once != 0) & (backwards != 0)
    assert both.sum() > 50
    np.testing.assert_array_equal(once[both], backwards[both])
    assert np.abs(once).max() <= model.init_scale
    assert np.abs(once).max() > 0.9 * model.init_scale


def test_warm_start_and_epochs(stream):
    X, y = stream
    model = DiFactoRegressor(**GROUPS, warm_start=True, max_iter=2, tol=0).fit(X, y)
    counts = np.asarray(X.sum(axis=0)).ravel()
    np.testing.assert_array_equal(model.counts_, counts)
    model.fit(X, y)
    np.testing.assert_array_equal(model.counts_, 2 * counts)
    assert model.t_ == 4 * len(y) and len(model.history_["loss"]) == 4
    assert model.history_["loss"][-1] < model.history_["loss"][0]


def test_the_best_epoch_is_kept_with_its_factors(stream):
    X, y = stream
    model = DiFactoRegressor(**GROUPS, max_iter=12, tol=0, early_stopping=True)
    noise = np.random.default_rng(1).normal(size=len(y))
    model.fit(X, noise)
    assert model.best_iteration_ < 12
    shorter = DiFactoRegressor(**model.get_params()).set_params(max_iter=model.best_iteration_)
    shorter.fit(X, noise)
    np.testing.assert_array_equal(model.predict(X), shorter.predict(X))


def test_interactions_are_learnt(random):
    X = random.choice([-1.0, 1.0], size=(1500, 6))
    linear = X[:, :4].sum(axis=1)
    y = linear + 2 * X[:, 0] * X[:, 1] - 2 * X[:, 2] * X[:, 3] + 0.1 * random.normal(size=1500)
    model = DiFactoRegressor(random_state=0).fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > 0.95
    without = DiFactoRegressor(thresholds=(10**6, 10**7)).fit(X[:1000], y[:1000])
    assert without.score(X[1000:], y[1000:]) < 0.4
    labels = y > 1
    classifier = DiFactoClassifier(random_state=0).fit(X[:1000], labels[:1000])
    assert classifier.score(X[1000:], labels[1000:]) > 0.95


def test_several_classes(stream):
    X, y = stream
    model = DiFactoClassifier(**GROUPS, alpha=0.1).fit(X, (y * 2).astype(int) % 3)
    assert model.coef_.shape == model.ranks_.shape == (3, X.shape[1])
    assert model.factors_[2].shape == (3, X.shape[1], 6)
    assert model.n_factors_ == model.ranks_.sum()
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)


def test_divergence_is_an_error():
    X = np.full((4, 2), 1e3, dtype=np.float32)
    model = DiFactoRegressor(thresholds=(0, 1), learning_rate=1e15, factor_learning_rate=1e15)
    model.partial_fit(X[:1] * 1e-6, np.ones(1))
    before = _state(model)
    with pytest.raises(DivergenceError, match="lower learning_rate or factor_learning_rate"):
        for _ in range(50):
            before = _state(model)
            model.partial_fit(X, np.ones(4))
    for now, then in zip(_state(model), before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ranks": (4, 4)}, "ranks must rise"),
        ({"ranks": (0, 4)}, "each of ranks must be finite, >= 1"),
        ({"ranks": (4,)}, "go together, got 1 and 2"),
        ({"thresholds": (10, 5)}, "thresholds must rise"),
        ({"thresholds": (-1, 5)}, "each of thresholds must be finite, >= 0"),
        ({"init_scale": 0.0}, "init_scale must be"),
        ({"factor_damping": 0.0}, "factor_damping must be"),
        ({"factor_learning_rate": -1.0}, "factor_learning_rate must be"),
        ({"alpha": -1.0}, "alpha must be"),
        ({"penalty": "l3"}, "penalty must be"),
    ],
)
def test_impossible_parameters(settings, message):
    with pytest.raises(ValueError, match=message):
        DiFactoRegressor(**settings).fit(np.eye(4), np.arange(4.0))


def test_ranks_are_a_sequence():
    with pytest.raises(TypeError, match="ranks must be a tuple with a number for each group"):
        DiFactoRegressor(ranks=4).fit(np.eye(4), np.arange(4.0))


def test_what_shapes_the_model_cannot_change(stream):
    X, y = stream
    model = DiFactoRegressor(**GROUPS).partial_fit(X, y)
    with pytest.raises(ValueError, match=r"ranks has changed from \(3, 6\) to \(3, 8\)"):
        model.set_params(ranks=(3, 8)).partial_fit(X, y)
    model.set_params(ranks=[3, 6], learning_rate=0.01, beta=3.0).partial_fit(X, y)
    assert model.t_ == 2 * len(y)
