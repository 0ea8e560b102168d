"""Run in a process of its own, without compilation: gradients against central differences."""

import itertools

import numpy as np
import scipy.sparse as sp

from polyfm import losses
from polyfm.data.rows import as_rows
from polyfm.kernels import ANOVA
from polyfm.losses import contract
from polyfm.models.layout import lay_out
from polyfm.penalties import L2, Box
from polyfm.solvers._epoch import Penalties, Switches
from polyfm.solvers.learner import Settings
from polyfm.solvers.stochastic import StochasticLearner
from polyfm.updates import SGD

ROW = np.array([[1.5, -0.7, 0.0, 30.0, 0.2]])
TARGETS = {"Logistic": -1.0, "SquaredHinge": -1.0, "Poisson": 2.0}


def learner_of(loss, order, row):
    """A learner whose only step has length 1, so that parameters move by minus the gradient."""
    layout = lay_out(ANOVA(2), order, 3, lower="explicit", linear=True, inhomogeneous=False)
    settings = Settings(
        loss, SGD(1.0), Penalties(L2(0.0), L2(0.0), L2(0.0), Box(1.0), L2(0.0)),
        Switches(True, True, False, order), np.full(layout.rank, 0.1), seed=0,
    )  # fmt: skip
    learner = StochasticLearner.create(
        layout, settings, n_features=5, start=0.3, units=False, dtype=np.float64
    )
    learner.set_rows(row)
    learner.model.parameters.linear[:, 0] = np.linspace(-0.02, 0.03, 5)
    return learner


def difference(loss, learner, row, target, block, place):
    def loss_at(shift):
        block[place] = centre + shift
        return contract.value(loss, target, float(learner.model.scores(row)[0]))

    centre, h = block[place], 1e-6
    slope = (loss_at(h) - loss_at(-h)) / (2 * h)
    block[place] = centre
    return slope


def check(name, order):
    loss = getattr(losses, name)()
    target = TARGETS.get(name, 0.4)
    row = as_rows(sp.csr_matrix(ROW), np.array([target]))
    learner = learner_of(loss, order, row)
    p = learner.model.parameters
    blocks = (p.bias, p.linear, p.table)
    places = [(0, 0)], [(j, 0) for j in range(5)], list(np.ndindex(p.table.shape))
    expected = [
        difference(loss, learner, row, target, block, place)
        for block, some in zip(blocks, places, strict=True)
        for place in some
    ]
    before = [block.copy() for block in blocks]
    learner.learn(row)
    moved = [
        old[place] - new[place]
        for old, new, some in zip(before, blocks, places, strict=True)
        for place in some
    ]
    assert max(map(abs, expected)) > 1e-3, (name, order)
    np.testing.assert_allclose(moved, expected, rtol=1e-5, atol=1e-7, err_msg=f"{name}, {order}")


if __name__ == "__main__":
    combinations = list(itertools.product(losses.__all__, range(1, 5)))
    for name, order in combinations:
        check(name, order)
    print(len(combinations))
