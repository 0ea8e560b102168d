"""Online conditional gradient against a dense twin, and what its shortcuts promise."""

import numpy as np
import pytest

from polyfm import ConvexFMClassifier, ConvexFMRegressor
from polyfm.losses import Huber, Logistic, Squared
from polyfm.losses import contract as losses
from polyfm.solvers import _low_rank
from polyfm.solvers._low_rank import LowRank, extreme_eigenpair

D = 6
DELTA = 4.0
SETTINGS = {"method": "online", "trace": DELTA, "learning_rate": 1.0}
FORMS = {
    "all": {},
    "diagonal": {"diagonal": True},
    "no linear": {"fit_linear": False},
    "no bias": {"fit_intercept": False},
    "Z alone": {"fit_linear": False, "fit_intercept": False},
    "Z and its diagonal": {"fit_linear": False, "fit_intercept": False, "diagonal": True},
}


class Twin:
    """C and the sum of gradients as matrices of numbers, and a mask of the entries there are."""

    def __init__(
        self, loss, d, delta, *, batch_size=1, diagonal=False, linear=True, bias=True, rate=1.0
    ):
        self.loss, self.delta, self.batch_size, self.rate = loss, delta, batch_size, rate
        self.mask = np.ones((d + 1, d + 1))
        if not diagonal:
            self.mask[np.arange(d), np.arange(d)] = 0.0
        self.mask[d, :d] = self.mask[:d, d] = linear
        self.mask[d, d] = bias
        self.C, self.S = np.zeros((d + 1, d + 1)), np.zeros((d + 1, d + 1))
        self.G, self.n_rounds, self.squares, self.n_waiting = 0.0, 0, 0.0, 0
        self.norms = []

    def gradient(self, x):
        hat = np.append(x, 1.0)
        return 0.5 * np.outer(hat, hat) * self.mask

    def score(self, x):
        return np.sum(self.gradient(x) * self.C)

    def learn(self, X, y):
        for x, target in zip(X, y, strict=True):
            slope = losses.gradient(self.loss, target, self.score(x))
            self.G = self.G + slope * self.gradient(x)
            self.n_waiting += 1
            if self.n_waiting == self.batch_size:
                self._end_round()
        return self

    def _end_round(self):
        self.n_rounds, self.n_waiting = self.n_rounds + 1, 0
        self.squares += np.sum(self.G**2)
        self.S, self.G = self.S + self.G, 0.0
        t = self.n_rounds
        # D / (2 G t^(3/4)) with D = 2 delta and the root mean square for G.
        eta = self.rate * self.delta / (np.sqrt(self.squares / t) * t**0.75)
        values, vectors = np.linalg.eigh(eta * self.S + 2.0 * self.C)
        best = np.argmax(np.abs(values))
        u = vectors[:, best]
        V = -self.delta * np.sign(values[best]) * np.outer(u, u)
        step = min(1.0, 2.0 / np.sqrt(t))
        self.C = (1.0 - step) * self.C + step * V
        self.norms.append(np.abs(np.linalg.eigvalsh(self.C)).sum())


def _rows(random, n, d=D):
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.7)
    X[3] = 0.0
    y = X[:, 0] * X[:, 1] - X[:, 2] + 0.5 * X[:, 3] ** 2 + 0.1 * random.normal(size=n)
    return X, y


def _twin(loss, form, delta=DELTA, d=D, **more):
    switches = {
        "diagonal": form.get("diagonal", False),
        "linear": form.get("fit_linear", True),
        "bias": form.get("fit_intercept", True),
    }
    return Twin(loss, d, delta, **switches, **more)


def _matrix_of(learner):
    """Return C, as far as predictions can tell, and its trace norm."""
    weights, bases = learner.matrix
    matrix = (bases.T * weights) @ bases
    return matrix, np.abs(np.linalg.eigvalsh(matrix)).sum()


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(("batch_size", "rate"), [(1, 1.0), (3, 10.0)])
def test_thirty_rounds_equal_those_of_matrices(random, form, batch_size, rate):
    X, y = _rows(random, 30 * batch_size)
    model = ConvexFMRegressor(**SETTINGS, batch_size=batch_size, **form)
    model.set_params(learning_rate=rate)
    twin = _twin(Squared(), form, batch_size=batch_size, rate=rate)
    for first in range(0, len(y), batch_size):
        rows = slice(first, first + batch_size)
        model.partial_fit(X[rows], y[rows])
        twin.learn(X[rows], y[rows])
        matrix, norm = _matrix_of(model._learners[0])
        np.testing.assert_allclose(matrix, twin.C, rtol=0, atol=1e-8)
        np.testing.assert_allclose(model.predict(X), [twin.score(x) for x in X], atol=1e-8)
        assert norm <= DELTA * (1 + 1e-12)
    assert twin.n_rounds == 30
    assert max(twin.norms) <= DELTA * (1 + 1e-12)
    assert min(twin.norms) < 0.95 * DELTA  # the ball is not all boundary


@pytest.mark.parametrize("loss", [Huber(0.5), Logistic()], ids=str)
def test_other_losses(random, loss):
    X, y = _rows(random, 60)
    if isinstance(loss, Logistic):
        model, y = ConvexFMClassifier(**SETTINGS, batch_size=2), np.sign(y)
    else:
        model = ConvexFMRegressor(**SETTINGS, batch_size=2, loss=loss)
    model.partial_fit(X, y)
    twin = _twin(loss, {}, batch_size=2).learn(X, y)
    np.testing.assert_allclose(_matrix_of(model._learners[0])[0], twin.C, rtol=0, atol=1e-8)


def test_weights_of_rows_are_repetitions_in_a_round(random):
    X, y = _rows(random, 40)
    weight = random.integers(1, 4, size=40)
    once = ConvexFMRegressor(**SETTINGS, batch_size=40)
    once.partial_fit(X, y, weight)
    again = ConvexFMRegressor(**SETTINGS, batch_size=int(weight.sum()))
    again.partial_fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(once.predict(X), again.predict(X), rtol=0, atol=1e-10)


def test_low_rank_is_enough_when_there_are_few_features(random):
    """Both the model and the sum of gradients are cut many times, and lose nothing."""
    X, y = _rows(random, 150)
    model = ConvexFMRegressor(**SETTINGS, batch_size=1, max_rank=D + 1)
    model.partial_fit(X, y)
    twin = _twin(Squared(), {}).learn(X, y)
    learner = model._learners[0]
    assert len(learner.matrix.weights) < 2 * (D + 1)
    assert len(learner.gradient.slopes) < D + 1
    np.testing.assert_allclose(_matrix_of(learner)[0], twin.C, rtol=0, atol=1e-7)


@pytest.mark.parametrize("max_rank", [1, 3, 20])
def test_the_state_is_bounded_and_within_the_ball(random, max_rank):
    d = 80
    X, y = _rows(random, 200, d)
    model = ConvexFMRegressor(**SETTINGS, batch_size=4, max_rank=max_rank)
    for first in range(0, 200, 10):
        model.partial_fit(X[first : first + 10], y[first : first + 10])
        learner = model._learners[0]
        assert len(learner.matrix.weights) <= 2 * max_rank
        assert len(learner.gradient.former.weights) <= max_rank
        assert len(learner.gradient.slopes) < max_rank + 4 + 4
        assert _matrix_of(learner)[1] <= DELTA * (1 + 1e-12)
        assert np.isfinite(model.predict(X)).all()


def test_lanczos_takes_the_same_steps(random, monkeypatch):
    X, y = _rows(random, 60)
    monkeypatch.setattr(_low_rank, "_DENSE", 0)
    model = ConvexFMRegressor(**SETTINGS, batch_size=2).partial_fit(X, y)
    twin = _twin(Squared(), {}, batch_size=2).learn(X, y)
    np.testing.assert_allclose(_matrix_of(model._learners[0])[0], twin.C, rtol=0, atol=1e-6)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_lanczos_finds_the_extreme_eigenpair(random, sign):
    Q = np.linalg.qr(random.normal(size=(200, 200)))[0]
    values = np.append(np.linspace(-1.0, 1.0, 199), 1.1) * sign
    A = (Q * values) @ Q.T
    value, vector = extreme_eigenpair(lambda v: A @ v, random.normal(size=200))
    assert value == pytest.approx(1.1 * sign, abs=1e-9)
    np.testing.assert_allclose(np.abs(vector), np.abs(Q[:, -1]), rtol=0, atol=1e-7)
    assert np.linalg.norm(vector) == pytest.approx(1.0)


def test_lanczos_ends_in_a_small_space(random):
    u = random.normal(size=100)
    u /= np.linalg.norm(u)
    value, vector = extreme_eigenpair(lambda v: -3.0 * u * (u @ v), random.normal(size=100))
    assert value == pytest.approx(-3.0)
    np.testing.assert_allclose(np.abs(vector), np.abs(u), rtol=0, atol=1e-10)


def test_a_cut_matrix_is_the_nearest(random):
    bases, weights = random.normal(size=(7, 20)), random.normal(size=7)
    A = (bases.T * weights) @ bases
    cut = LowRank(weights, bases).truncated(3)
    values = np.linalg.eigvalsh(A)
    values = values[np.argsort(-np.abs(values))]
    np.testing.assert_allclose(cut.weights, values[:3], rtol=0, atol=1e-12)
    rest = A - (cut.bases.T * cut.weights) @ cut.bases
    assert np.linalg.norm(rest, 2) == pytest.approx(abs(values[3]))
    np.testing.assert_allclose(cut.bases @ cut.bases.T, np.eye(3), rtol=0, atol=1e-12)
