"""Three epochs of stochastic learning equal those of a slow twin written from the definitions."""

import itertools

import numpy as np
import pytest
from slow_twin import Twin

from polyfm.kernels import ANOVA, AllSubsets, Polynomial
from polyfm.losses import Logistic, Squared
from polyfm.models.layout import lay_out
from polyfm.penalties import L2, Box, ElasticNet
from polyfm.solvers._epoch import Penalties, Switches, learn_rows
from polyfm.solvers.learner import Settings
from polyfm.solvers.stochastic import StochasticLearner
from polyfm.testing import plain
from polyfm.testing._models import rows_of
from polyfm.updates import SGD, AdaGrad

N_ROWS, N_FEATURES, N_EPOCHS, RANK = 12, 5, 3, 2
KERNELS = {
    # kernel, order, fit_lower, inhomogeneous, learns lambda
    "anova 3 explicit": (ANOVA(), 3, "explicit", False, False),
    "anova 3 augmented, lambda": (ANOVA(), 3, "augment", False, True),
    "anova 2, lambda": (ANOVA(), 2, None, False, True),
    "inhomogeneous anova 3, theta": (ANOVA(), 3, None, True, False),
    "polynomial 2, lambda": (Polynomial(), 2, "explicit", False, True),
    "polynomial 3 augmented": (Polynomial(), 3, "augment", False, False),
    "all-subsets": (AllSubsets(), 2, None, False, False),
}
RULES = {
    "sgd": (SGD(0.01, 0.1, 0.5), dict(name="sgd", rate=lambda t: 0.01 / (1 + 0.1 * t) ** 0.5)),
    "adagrad": (AdaGrad(0.1, 1.5), dict(name="adagrad", rate=lambda t: 0.1, initial=1.5)),
}
LOSSES = {"squared": Squared(), "logistic": Logistic()}
PENALTIES = {"l2": (L2(0.3), (0.0, 0.3)), "elastic net": (ElasticNet(0.2, 0.1), (0.2, 0.1))}
INPUTS = ("dense", "one-hot")

# Compiling takes seconds for each kernel, rule, loss and penalty: some combinations that have
# every piece in them are compiled, all of them run in plain Python.
COMPILED = [
    ("adagrad", "squared", "l2"),
    ("sgd", "logistic", "elastic net"),
]


def make_rows(kind, loss, random):
    if kind == "dense":
        X = random.normal(size=(N_ROWS, N_FEATURES)) * [1.0, 5.0, 0.2, 1.0, 1.0]
        X[random.random(X.shape) < 0.2] = 0.0
        X[4] = 0.0
    else:
        X = np.zeros((N_ROWS, N_FEATURES))
        X[np.arange(N_ROWS), random.integers(0, 2, N_ROWS)] = 1.0
        X[np.arange(N_ROWS), random.integers(2, 4, N_ROWS)] = 1.0
    y = random.normal(size=N_ROWS)
    y = np.sign(y) if loss == "logistic" else y
    return X, y, random.uniform(0.5, 1.5, N_ROWS)


class Pair:
    """A learner and its twin, with the same start and the same rows."""

    def __init__(self, kernel_name, rule, loss, penalty, kind, seed=0):
        random = np.random.default_rng(seed)
        kernel, order, lower, inhomogeneous, learns_weights = KERNELS[kernel_name]
        layout = lay_out(kernel, order, RANK, lower=lower, linear=True, inhomogeneous=inhomogeneous)
        m = layout.degrees.shape[0]
        theta_from = 2 if inhomogeneous else m
        spec, (l1, l2) = PENALTIES[penalty]
        settings = Settings(
            LOSSES[loss],
            RULES[rule][0],
            Penalties(L2(0.07), spec, spec, Box(1.0), L2(0.05)),
            Switches(True, True, learns_weights, theta_from),
            np.full(layout.rank, 0.25),
            seed,
        )
        self.X, self.y, self.weight = make_rows(kind, loss, random)
        self.rows = rows_of(self.X, self.y, self.weight)
        self.learner = StochasticLearner.create(
            layout, settings, n_features=N_FEATURES, start=0.1, units=kind == "dense",
            dtype=np.float64,
        )  # fmt: skip
        self.learner.set_rows(self.rows)
        visits = (self.X != 0).sum(axis=0)
        weights = self.weight @ (self.X != 0)
        sizes = np.sqrt(self.weight @ self.X**2 / np.where(visits > 0, weights, 1.0))
        learnt = {"bias": 0, "linear": 0, "table": 0}
        learnt.update({"weights": 0} if learns_weights else {})
        learnt.update({"theta": theta_from} if inhomogeneous else {})
        self.twin = Twin(
            layout.kernel,
            self.learnt_by_the_solver(),
            layout.degrees,
            loss=loss,
            rule=RULES[rule][1],
            penalty={"bias": (0, 0.07), "linear": (l1, l2), "table": (l1, l2), "theta": (0, 0.05)},
            learnt=learnt,
            visits=visits,
            units=1.0 / np.where(visits > 0, sizes, 1.0),
            n_rows=N_ROWS,
        )

    def learnt_by_the_solver(self):
        names = ("bias", "linear", "table", "weights", "theta")
        p = self.learner.model.parameters
        weights = (p.bias[0], p.linear[:, 0], p.table[:, 0], p.weights[0], p.theta[0])
        return {name: block.copy() for name, block in zip(names, weights, strict=True)}

    def run(self, learn):
        for epoch in range(N_EPOCHS):
            order = np.random.default_rng(epoch).permutation(self.rows.numbers)
            learn(self.learner, self.rows, order)
            for i in order:
                self.twin.learn(self.X[i], self.y[i], self.weight[i])

    def assert_equal(self):
        for name, block in self.learnt_by_the_solver().items():
            wanted = self.twin.p[name]
            assert np.allclose(block, wanted, rtol=1e-9, atol=1e-9), name
        started = self.X.any(axis=0)
        assert not self.learner.model.parameters.table[:N_FEATURES][~started].any()


def learn_plainly(learner, rows, order):
    s, model = learner.settings, learner.model
    n_done, _ = plain(learn_rows)(
        model.kernel, s.loss, s.rule, s.penalties, s.switches, model.parameters, model.plan,
        rows, order, float(learner.n_visits), 1.0 / learner.n_rows,
        model.work_cells(rows.longest), 0.0,
    )  # fmt: skip
    assert n_done == len(order)
    learner.n_visits += len(order)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("rule", "loss", "penalty", "kind"), list(itertools.product(RULES, LOSSES, PENALTIES, INPUTS))
)
def test_every_combination(kernel, rule, loss, penalty, kind):
    pair = Pair(kernel, rule, loss, penalty, kind)
    pair.run(learn_plainly)
    pair.assert_equal()


@pytest.mark.parametrize(("rule", "loss", "penalty"), COMPILED)
@pytest.mark.parametrize("kernel", KERNELS)
def test_compiled(kernel, rule, loss, penalty):
    for kind in INPUTS:
        pair = Pair(kernel, rule, loss, penalty, kind)
        pair.run(lambda learner, rows, order: learner.learn(rows, order))
        pair.assert_equal()


def test_the_twin_moves_everything():
    """So that equality above is no equality of two models that stand still."""
    for kernel in KERNELS:
        pair = Pair(kernel, "adagrad", "squared", "l2", "dense")
        before = {name: block.copy() for name, block in pair.twin.p.items()}
        pair.run(learn_plainly)
        for name in pair.twin.learnt:
            assert not np.allclose(before[name], pair.twin.p[name], atol=1e-4), (kernel, name)
