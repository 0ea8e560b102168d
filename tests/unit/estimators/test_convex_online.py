"""Convex factorization machines that learn a stream: cuts, files, failures, classes."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import polyfm
from polyfm import ConvexFMClassifier, ConvexFMRegressor, DivergenceError
from polyfm.solvers.online_conditional_gradient import OnlineConvexLearner

N, D = 210, 8
SETTINGS = {"method": "online", "trace": 5.0, "batch_size": 4, "max_rank": 6}


@pytest.fixture(params=[D, 90])
def stream(request, random):
    """Rows of few features, and of many, for which no matrix is formed."""
    d = request.param
    X = random.normal(size=(N, d)) * (random.random((N, d)) < 4 / d)
    X[:, -1] = 0.0
    y = X[:, 0] * X[:, 1] - X[:, 2] + 0.1 * random.normal(size=N)
    return sp.csr_matrix(X), y


def _state(model):
    blocks = []
    for learner in model._learners:
        blocks += [*learner.matrix, *learner.gradient.former, *learner.gradient[1:], learner.start]
        blocks.append(np.array([learner.squares, learner.n_rounds]))
    return [np.array(block) for block in blocks]


def _assert_same(one, other):
    assert one.t_ == other.t_
    for now, then in zip(_state(one), _state(other), strict=True):
        np.testing.assert_array_equal(now, then)


def _fed(model, X, y, cuts):
    for first, last in zip([0, *cuts], [*cuts, len(y)], strict=True):
        model.partial_fit(X[first:last], y[first:last])
    return model


@pytest.mark.parametrize("cuts", [[90], [1, 2, 7, 99, 100, 101], list(range(1, N))])
@pytest.mark.parametrize("diagonal", [False, True])
def test_a_stream_may_be_cut_anywhere(stream, cuts, diagonal):
    X, y = stream
    whole = _fed(ConvexFMRegressor(**SETTINGS, diagonal=diagonal), X, y, [])
    cut = _fed(ConvexFMRegressor(**SETTINGS, diagonal=diagonal), X, y, cuts)
    _assert_same(cut, whole)
    np.testing.assert_array_equal(cut.predict(X), whole.predict(X))


@pytest.mark.parametrize("n_before", [3, 50, 101])
@pytest.mark.parametrize("way", ["pickle", "file"])
def test_going_on_from_a_file(stream, tmp_path, way, n_before):
    X, y = stream
    straight = _fed(ConvexFMRegressor(**SETTINGS), X, y, [n_before])
    model = ConvexFMRegressor(**SETTINGS).partial_fit(X[:n_before], y[:n_before])
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
    model = ConvexFMClassifier(**SETTINGS, max_iter=1).fit(X, y.round() % 3)
    polyfm.save_model(model, tmp_path / "small", include_state=False)
    loaded = polyfm.load_model(tmp_path / "small")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    with pytest.raises(ValueError, match="include_state=False"):
        loaded.partial_fit(X, y.round() % 3)


def test_a_damaged_file_is_refused(stream, tmp_path):
    X, y = stream
    model = ConvexFMRegressor(**SETTINGS).partial_fit(X[:11], y[:11])
    learner = model._learners[0]
    learner.gradient.indices[0] = 10_000
    polyfm.save_model(model, tmp_path / "m")
    with pytest.raises(polyfm.ModelFileError, match="no matrix of this width"):
        polyfm.load_model(tmp_path / "m")


def test_a_failing_batch_changes_nothing(stream, monkeypatch):
    X, y = stream
    labels, classes = (y * 3).astype(int) % 3, [0, 1, 2]
    model = ConvexFMClassifier(**SETTINGS)
    model.partial_fit(X[:50], labels[:50], classes=classes)
    before, scores = _state(model), model.decision_function(X)
    calls, learn = [], OnlineConvexLearner.learn

    def failing(self, rows):
        loss = learn(self, rows)
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return loss

    with monkeypatch.context() as patch:
        patch.setattr(OnlineConvexLearner, "learn", failing)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[50:], labels[50:])
    for now, then in zip(_state(model), before, strict=True):
        np.testing.assert_array_equal(now, then)
    np.testing.assert_array_equal(model.decision_function(X), scores)
    again = ConvexFMClassifier(**SETTINGS).partial_fit(X[:50], labels[:50], classes=classes)
    _assert_same(model.partial_fit(X[50:], labels[50:]), again.partial_fit(X[50:], labels[50:]))


def test_fit_is_deterministic_and_a_warm_start_goes_on(stream):
    X, y = stream
    settings = {**SETTINGS, "tol": 0.0, "warm_start": True}
    whole = ConvexFMRegressor(**settings, max_iter=2).fit(X, y)
    twice = ConvexFMRegressor(**settings, max_iter=1).fit(X, y).fit(X, y)
    _assert_same(whole, twice)
    assert whole.n_iter_ == 2 and len(twice.history_["loss"]) == 2
    assert whole.t_ == 2 * N
    _assert_same(whole, ConvexFMRegressor(**settings, max_iter=2).fit(X, y))


def test_attributes_make_the_predictions(stream):
    X, y = stream
    for diagonal in (False, True):
        model = ConvexFMRegressor(method="online", diagonal=diagonal, max_iter=2).fit(X, y + 3.0)
        dense, P, lam = X.toarray(), model.factors_[2], model.weights_[2]
        squares = (dense @ P) ** 2
        kernel = squares if diagonal else 0.5 * (squares - dense**2 @ P**2)
        predicted = model.intercept_ + dense @ model.coef_ + kernel @ lam
        np.testing.assert_allclose(model.predict(X), predicted, rtol=0, atol=1e-8)
        assert not P[-1].any() and model.coef_[-1] == 0.0  # no row has had this feature
        np.testing.assert_allclose(P.T @ P, np.eye(len(lam)), rtol=0, atol=1e-8)


def test_a_smaller_ball_is_kept_at_once(stream):
    X, y = stream
    model = ConvexFMRegressor(**SETTINGS).partial_fit(X[:100], y[:100])
    model.set_params(trace=0.5).partial_fit(X[100:101], y[100:101])
    assert model.size_ == 0.5
    assert np.abs(model._learners[0].matrix.weights).sum() <= 0.5 * (1 + 1e-12)


def test_interactions_are_learnt(random):
    X = random.normal(size=(600, 5))
    y = 3 * X[:, 0] + 2 * X[:, 1] * X[:, 2]
    settings = {"method": "online", "trace": 12.0, "batch_size": 1, "max_iter": 8}
    model = ConvexFMRegressor(**settings).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.95
    labels = y > 0
    classifier = ConvexFMClassifier(**settings).fit(X[:400], labels[:400])
    assert classifier.score(X[400:], labels[400:]) > 0.9
    losses = model.history_["loss"]
    assert losses[-1] < 0.2 * losses[0]


def test_auto_reads_the_ball_off_the_first_rows(random):
    X = random.normal(size=(300, 5))
    y = 3 * X[:, 0] + 2 * X[:, 1] * X[:, 2]
    model = ConvexFMRegressor(method="online", max_iter=1).fit(X, y)
    assert 1.0 < model.size_ < 20.0
    assert ConvexFMRegressor(method="online", max_iter=1).fit(X, 10 * y).size_ == pytest.approx(
        model.size_
    )
    stream = ConvexFMRegressor(method="online").partial_fit(X[:50], y[:50])
    size = stream.size_
    assert stream.partial_fit(X[50:], y[50:]).size_ == size
    assert ConvexFMRegressor(method="online").partial_fit(X, np.zeros(300)).predict(X).max() == 0


def test_divergence_is_an_error():
    X, y = np.full((20, 3), 1e100), np.arange(20.0)
    with pytest.raises(DivergenceError, match=r"largest value is 1e\+100.*lower trace"):
        ConvexFMRegressor(method="online", trace=1e120).partial_fit(X, y)
    # Rows of any size are brought to one by a fit, which knows them all.
    assert np.isfinite(ConvexFMRegressor(method="online", max_iter=1).fit(X, y).predict(X)).all()
    model = ConvexFMRegressor(method="online", trace=1.0).partial_fit(X[:1] * 1e-100, y[1:2])
    before = model.predict(X * 1e-100)
    with pytest.raises(DivergenceError):
        for _ in range(5):
            model.set_params(trace=1e120).partial_fit(X, y)
    assert np.isfinite(before).all()
    assert np.isfinite(model.predict(X * 1e-100)).all()


def test_only_the_online_method_takes_streams(stream):
    X, y = stream
    assert not hasattr(ConvexFMRegressor(), "partial_fit")
    assert not hasattr(ConvexFMClassifier(), "partial_fit")
    model = ConvexFMRegressor(**SETTINGS).partial_fit(X, y)
    with pytest.raises(ValueError, match="diagonal has changed from False to True"):
        model.set_params(diagonal=True).partial_fit(X, y)
    with pytest.raises(ValueError, match="batch_size must be"):
        ConvexFMRegressor(method="online", batch_size=0).fit(X, y)
