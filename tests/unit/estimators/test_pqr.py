"""Projective quadratic regression as an estimator: choice of features and order, streams, files."""

import os
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import polyfm
from polyfm import DivergenceError, FTRLRegressor, PQRClassifier, PQRRegressor
from polyfm.models.pqr import places_of
from polyfm.persistence import ModelFileError
from polyfm.solvers.projective import PQRLearner


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
    y = np.sin(indices[:, 0] * 7.0 + indices[:, 1]) + 0.1 * random.normal(size=n) + 5.0
    return X, y


def _state(model):
    """Return all that is learnt and remembered, without pages of zeros."""
    blocks = []
    for learner in model._learners:
        for one in learner.rivals or [learner.model]:
            packed = one.packed()
            blocks += [one.frequent, one.bias, one.linear, packed.pages, packed.blocks]
            blocks += [learner.losses]
    return [block.copy() for block in blocks]


def _assert_same(one, other):
    assert one.t_ == other.t_
    for now, then in zip(_state(one), _state(other), strict=True):
        np.testing.assert_array_equal(now, then)


def _fed(model, X, y, cuts):
    for first, last in zip([0, *cuts], [*cuts, len(y)], strict=True):
        model.partial_fit(X[first:last], y[first:last])
    return model


CUTS = {"all": [], "3 + 4": [300], "odd": [1, 2, 7, 99, 100, 101, 350], "one": list(range(1, 600))}
STREAMS = {
    "counted": {"order": 20, "warmup": 100},
    "given": {"frequent": np.arange(15)},
    "linear": {"order": 0},
    "undecided": {"order": "auto", "warmup": 100},
    "decided": {"order": "auto", "warmup": 30},
    "descent": {"order": 20, "warmup": 100, "solver": "sgd"},
}


@pytest.mark.parametrize("settings", STREAMS.values(), ids=STREAMS)
def test_a_stream_may_be_cut_anywhere(stream, settings):
    X, y = stream
    whole = _fed(PQRRegressor(**settings), X, y, [])
    for cuts in CUTS.values():
        _assert_same(_fed(PQRRegressor(**settings), X, y, cuts), whole)


def test_warmup_rows_are_learnt_with_the_features_counted_in_them(stream):
    X, y = stream
    model = PQRClassifier(order=20, warmup=200)
    labels = y > 5.0
    model.partial_fit(X[:150], labels[:150])
    assert model.order_ == 0 and np.count_nonzero(model.coef_) > 0
    model.partial_fit(X[150:], labels[150:])
    counts = np.asarray(X[:200].sum(axis=0)).ravel()
    expected = np.argsort(-counts, kind="stable")[:20]
    np.testing.assert_array_equal(model.frequent_features_, expected)
    known = PQRClassifier(order=20, frequent=expected, max_iter=1, warm_start=True)
    known.fit(X[:200], labels[:200]).fit(X[200:], labels[200:])
    np.testing.assert_array_equal(model.decision_function(X), known.decision_function(X))


def test_fit_counts_all_rows_or_a_sample(stream):
    X, y = stream
    counts = np.asarray(X.sum(axis=0)).ravel()
    expected = np.argsort(-counts, kind="stable")[:10]
    model = PQRRegressor(order=10, max_iter=1).fit(X, y)
    np.testing.assert_array_equal(model.frequent_features_, expected)
    sampled = [
        PQRRegressor(order=10, max_iter=1, n_sample=40, random_state=seed).fit(X, y)
        for seed in (0, 0, 1)
    ]
    first, again, other = (list(model.frequent_features_) for model in sampled)
    assert first == again and first != other
    assert PQRRegressor(order=500).fit(X, y).order_ == np.count_nonzero(counts)


def test_a_fit_is_deterministic_and_needs_no_seed(stream):
    X, y = stream
    _assert_same(PQRRegressor(order=30).fit(X, y), PQRRegressor(order=30).fit(X, y))


@pytest.mark.parametrize("n_before", [60, 150, 450])
@pytest.mark.parametrize("way", ["pickle", "file"])
@pytest.mark.parametrize("order", [20, "auto"])
def test_going_on_from_a_file(stream, tmp_path, way, n_before, order):
    X, y = stream
    straight = _fed(PQRRegressor(order=order, warmup=100), X, y, [n_before])
    model = PQRRegressor(order=order, warmup=100).partial_fit(X[:n_before], y[:n_before])
    if way == "pickle":
        model = pickle.loads(pickle.dumps(model))
    else:
        polyfm.save_model(model, tmp_path / "m")
        model = polyfm.load_model(tmp_path / "m")
    model.partial_fit(X[n_before:], y[n_before:])
    _assert_same(model, straight)
    np.testing.assert_array_equal(model.predict(X), straight.predict(X))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("penalty", "beta"), [("l1", 2.0), ("elasticnet", 0.3)])
def test_a_file_for_predictions_only(stream, tmp_path, penalty, beta, dtype):
    X, y = stream
    X = X.astype(dtype)
    model = PQRClassifier(order=60, penalty=penalty, alpha=2.0, beta=beta).fit(X, y.round() % 3)
    polyfm.save_model(model, tmp_path / "small", include_state=False)
    polyfm.save_model(model, tmp_path / "whole")
    loaded = polyfm.load_model(tmp_path / "small")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert (tmp_path / "small").stat().st_size < 0.7 * (tmp_path / "whole").stat().st_size
    with pytest.raises(ValueError, match="include_state=False"):
        loaded.partial_fit(X, y.round() % 3)


@pytest.mark.parametrize("settings", [{"order": 20}, {"order": "auto"}, {"frequent": [1, 4, 30]}])
@pytest.mark.parametrize("n_before", [40, 150])
@pytest.mark.parametrize("n_failing", [1, 300])
def test_a_failing_batch_changes_nothing(stream, monkeypatch, settings, n_before, n_failing):
    X, y = stream
    labels = (y * 3).astype(int) % 3
    settings = {**settings, "warmup": 100}
    classes = [0, 1, 2]
    model = PQRClassifier(**settings).partial_fit(X[:n_before], labels[:n_before], classes=classes)
    before, t, scores = _state(model), model.t_, model.decision_function(X)
    learn, last = PQRLearner.learn, model._learners[2].settings.seed

    def failing(self, rows, *args):
        loss = learn(self, rows, *args)
        if self.settings.seed == last:
            raise KeyboardInterrupt
        return loss

    part = slice(n_before, n_before + n_failing)
    with monkeypatch.context() as patch:
        patch.setattr(PQRLearner, "learn", failing)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[part], labels[part])
    for now, then in zip(_state(model), before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert model.t_ == t
    np.testing.assert_array_equal(model.decision_function(X), scores)
    again = PQRClassifier(**settings).partial_fit(X[:n_before], labels[:n_before], classes=classes)
    _assert_same(
        model.partial_fit(X[n_before:], labels[n_before:]),
        again.partial_fit(X[n_before:], labels[n_before:]),
    )


@pytest.mark.parametrize("order", [0, 20])
def test_rows_that_name_records_are_learnt_to_the_same_bits(stream, order):
    X, y = stream
    X.data[:] = np.linspace(0.5, 2.0, X.nnz)  # units, and factors of the others
    models = [PQRRegressor(order=order, max_iter=1).fit(X, y) for _ in range(2)]
    rows = models[0]._solver_rows(models[0]._check_labelled(X, y, None, reset=False))[0]
    learners = [model._learners[0] for model in models]
    scaled = learners[0].model.scaled(rows)
    placed = learners[0].model.placed(scaled)
    assert (placed is scaled) == (order == 0)
    losses = [learners[0].learn(scaled), learners[1].learn(placed, placed=True)]
    assert losses[0] == losses[1]
    _assert_same(*models)


def test_records_of_frequent_features_come_first():
    assert places_of(np.array([4, 1]), 6).tolist() == [2, 1, 3, 4, 0, 5]
    assert places_of(np.empty(0, dtype=np.int64), 6).size == 0


def test_a_feature_that_comes_later_has_the_last_record(stream):
    X, y = stream
    model = PQRRegressor(frequent=np.array([3, 0]), max_features=200).partial_fit(X[:, :40], y)
    model.partial_fit(X, y)
    places = model._learners[0].model.places
    assert places[40:].tolist() == list(range(40, X.shape[1]))
    whole = PQRRegressor(frequent=np.array([3, 0])).partial_fit(
        sp.hstack([X[:, :40], sp.csr_matrix((X.shape[0], X.shape[1] - 40))], format="csr"), y
    )
    whole.partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


@pytest.mark.parametrize("settings", [{"frequent": [3, 0]}, {"order": "auto"}, {"order": 0}])
def test_columns_that_come_after_units_were_measured_have_the_unit_1(stream, random, settings):
    X, y = stream
    X.data[:] = random.choice([0.5, 3.0], X.nnz)
    first = X.copy()
    first.data[first.indices >= 40] = 0.0
    grown = PQRRegressor(max_features=200, **settings).fit(X[:, :40], y)
    whole = PQRRegressor(**settings).fit(first, y)
    for model in (grown, whole):
        model.partial_fit(X[:300], y[:300])
    np.testing.assert_array_equal(grown.coef_, whole.coef_)
    np.testing.assert_array_equal(grown.predict(X), whole.predict(X))


@pytest.mark.parametrize(
    "damage",
    [
        lambda model: model.places.__setitem__(0, model.places[1]),
        lambda model: model.places.__setitem__(0, len(model.places)),
        lambda model: model.places.__setitem__([0, 1], model.places[[1, 0]]),
        lambda model: model.linear.__setitem__((0, -1), 1.0),
        lambda model: model.linear.__setitem__((-1, -1), 0.0),
    ],
    ids=["one twice", "outside", "two exchanged", "a factor of a frequent one", "no factor"],
)
def test_a_file_with_misplaced_records_is_refused(stream, tmp_path, damage):
    model = PQRRegressor(frequent=np.array([1, 0]), max_iter=1).fit(*stream)
    damage(model._learners[0].model)
    polyfm.save_model(model, tmp_path / "model.polyfm")
    with pytest.raises(ModelFileError, match="linear weight"):
        polyfm.load_model(tmp_path / "model.polyfm")


def test_divergence_of_fit_names_the_column_and_the_value_as_given():
    X = np.array([[1.0, 2.0, 7.0], [2.0, 1.0, 5.0], [1.0, 3.0, 6.0]] * 4, dtype=np.float32)
    model = PQRRegressor(frequent=[2, 0], solver="sgd", learning_rate=1e25, max_iter=9)
    with pytest.raises(DivergenceError, match=r"largest value is [567] in column 2\."):
        model.fit(X, np.arange(12.0))


def test_divergence_is_an_error():
    X = np.full((4, 2), 1e3, dtype=np.float32)
    model = PQRRegressor(frequent=[0, 1], solver="sgd", learning_rate=1e6, alpha=0, beta=0)
    model.partial_fit(X[:1] * 1e-6, np.ones(1))
    with pytest.raises(DivergenceError, match=r"largest value is 1000 in column 0.*learning_rate"):
        for _ in range(20):
            model.partial_fit(X, np.ones(4))
    assert np.isfinite(model.predict(X)).all()


def test_order_auto_learns_each_order_as_if_alone(stream):
    X, y = stream
    model = PQRRegressor(order="auto", warmup=100).partial_fit(X, y)
    (learner,) = model._learners
    orders = [rival.order for rival in learner.rivals]
    assert orders[0] == 0 and orders == sorted(orders) and orders[-1] == np.unique(
        X[:100].indices
    ).size  # fmt: skip
    for rival in learner.rivals:
        single = PQRLearner.of_orders(
            [rival.frequent], learner.settings, n_features=X.shape[1], dtype=X.dtype
        )
        single.add_and_learn(model._solver_rows(model._check_labelled(X, y, None, reset=False))[0])
        np.testing.assert_array_equal(single.model.records(), rival.records())
        np.testing.assert_array_equal(single.model.pages, rival.pages)
    best = orders[int(np.argmin(learner.losses))]
    assert model.order_ == best


def test_order_auto_goes_on_with_the_best(stream):
    X, y = stream
    model = PQRRegressor(order="auto").fit(X, y)
    assert model._learners[0].rivals == []
    n_crossed = 15  # features of the two fields whose cross decides
    assert model.order_ > n_crossed
    noise = np.random.default_rng(1).normal(size=len(y))
    assert PQRRegressor(order="auto", max_iter=1).fit(X, noise).order_ < model.order_


def test_the_learners_of_several_classes_share_the_rows_that_name_records(stream, monkeypatch):
    X, y = stream
    seen = []
    epoch = PQRLearner.epoch
    monkeypatch.setattr(
        PQRLearner, "epoch", lambda self, rows, **kw: seen.append(rows) or epoch(self, rows, **kw)
    )
    PQRClassifier(order=20, max_iter=1).fit(X, np.digitize(y, np.quantile(y, [0.3, 0.6])))
    assert len(seen) == 3
    assert all(rows.indices is seen[0].indices for rows in seen)
    assert not np.array_equal(seen[0].target, seen[1].target)


def test_several_classes_share_one_order(stream):
    X, y = stream
    model = PQRClassifier(order="auto").fit(X, (y * 2).astype(int) % 3)
    assert model.coef_.shape == (3, X.shape[1])
    assert model.shared_weights_.shape == (3, model.order_)
    assert len({learner.model.order for learner in model._learners}) == 1
    assert len(model.pair_weights_) == 3
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)


def test_attributes_make_the_predictions(stream):
    X, y = stream
    model = PQRRegressor(order=12).fit(X, y)
    dense = X.toarray()
    rare = dense.sum(axis=1) - dense[:, model.frequent_features_].sum(axis=1)
    P = model.pair_weights_.tocsr()
    predicted = (
        model.intercept_ + dense @ model.coef_ + ((dense @ P) * dense).sum(axis=1)
        + (dense[:, model.frequent_features_] @ model.shared_weights_) * rare
    )  # fmt: skip
    np.testing.assert_allclose(model.predict(X), predicted, rtol=0, atol=1e-10)
    counted = [model.coef_, model.shared_weights_, P.data, model.intercept_]
    assert model.count_nonzero() == sum(np.count_nonzero(block) for block in counted)


def test_an_l1_penalty_leaves_few_weights(stream):
    X, y = stream
    dense = PQRRegressor(order=90, max_iter=1).fit(X, y)
    sparse = PQRRegressor(order=90, max_iter=1, penalty="l1", alpha=5.0, beta=5.0).fit(X, y)
    assert sparse.count_nonzero() < 0.3 * dense.count_nonzero()


def test_crosses_are_learnt_by_fit(random):
    X = random.choice([-1.0, 1.0], size=(1000, 6))
    y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + 0.1 * random.normal(size=1000)
    assert PQRRegressor().fit(X[:800], y[:800]).score(X[800:], y[800:]) > 0.95
    labels = X[:, 0] * X[:, 1] > 0
    assert PQRClassifier().fit(X[:800], labels[:800]).score(X[800:], labels[800:]) == 1.0
    assert PQRRegressor(order=0).fit(X[:800], y[:800]).score(X[800:], y[800:]) < 0.1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"order": -1}, "order must be finite, >= 0 and <= 65535"),
        ({"order": 70_000}, "<= 65535"),
        ({"order": "best"}, "order must be 'auto' or a number"),
        ({"frequent": [0, 99]}, "column 99, but X has 4 columns"),
        ({"frequent": [1, 1]}, "column twice"),
        ({"frequent": [0.5]}, "array of column numbers"),
        ({"warmup": 0}, "warmup must be"),
        ({"n_sample": 0}, "n_sample must be"),
        ({"solver": "adagrad"}, r"solver must be one of \('ftrl', 'sgd'\)"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"damping": 0.0}, "damping must be"),
        ({"alpha": -1.0}, "alpha must be"),
        ({"penalty": "l3"}, "penalty must be"),
    ],
)
def test_impossible_parameters(settings, message):
    with pytest.raises(ValueError, match=message):
        PQRRegressor(**settings).fit(np.eye(4), np.arange(4.0))


def test_what_shapes_the_model_cannot_change(stream):
    X, y = stream
    model = PQRRegressor(order=10, warmup=50).partial_fit(X, y)
    with pytest.raises(ValueError, match="order has changed from 10 to 20"):
        model.set_params(order=20).partial_fit(X, y)
    model.set_params(order=10, learning_rate=0.01, beta=3.0).partial_fit(X, y)
    assert model.t_ == 2 * len(y)


def test_warm_start_goes_on_even_from_a_warmup(stream):
    X, y = stream
    model = PQRRegressor(order=10, warm_start=True, max_iter=1, tol=0).partial_fit(X[:50], y[:50])
    model.fit(X, y)
    counts = np.asarray(X[:50].sum(axis=0)).ravel()
    expected = np.argsort(-counts, kind="stable")[:10]
    np.testing.assert_array_equal(model.frequent_features_, expected)
    assert model.t_ == 50 + len(y)


needs_data = pytest.mark.skipif(
    "POLYFM_DATA" not in os.environ, reason="POLYFM_DATA names no folder with MovieLens 100K"
)


@needs_data
@pytest.mark.parametrize(
    ("ids", "learning_rate", "best"), [(False, 0.1, 235), (True, 0.05, 2848), (True, 0.1, 0)]
)
def test_order_auto_is_within_a_percent_on_movielens(ids, learning_rate, best):
    """One pass over ratings by people and films, where all crosses, many or none are the best."""
    from polyfm.datasets import fetch_movielens_100k

    data = fetch_movielens_100k(ids=ids, side_features=True, download=False)
    X, y = data.X.tocsr(), data.y
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:90_000], order[90_000:]

    def fitted(k):
        return PQRRegressor(order=k, learning_rate=learning_rate, max_iter=1).fit(
            X[train], y[train]
        )

    def loss(model):
        return 0.5 * np.mean((model.predict(X[test]) - y[test]) ** 2)

    auto = fitted("auto")
    fixed = [fitted(k) for k in (0, 50, 100, 250, 500, 1000, 2000, 4000)]
    assert auto.order_ == best
    assert loss(auto) <= 1.01 * min(map(loss, fixed))
    progressive = [model.history_["loss"][0] for model in fixed]
    assert auto.history_["loss"][0] <= 1.01 * min(progressive)
    assert max(progressive) > 1.03 * min(progressive)


def test_learning_rates_fall_with_the_squared_gradients():
    X = sp.csr_matrix(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=np.float64))
    model = PQRRegressor(order=0, learning_rate=0.5, damping=1.0, alpha=0.0).partial_fit(
        X, [1.0, 1.0, 2.0]
    )
    linear = FTRLRegressor(learning_rate=0.5, damping=1.0, alpha=0.0).partial_fit(
        X, [1.0, 1.0, 2.0]
    )
    np.testing.assert_allclose(model.learning_rates_, linear.learning_rates_)
    descent = PQRRegressor(order=0, solver="sgd", learning_rate=0.5, power_t=0.5).partial_fit(
        X, [1, 1, 2]
    )
    np.testing.assert_allclose(descent.learning_rates_, 0.5 / np.sqrt(1.0 + 3.0))
