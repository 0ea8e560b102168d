"""The contract of solvers: compiled learning is plain learning, repeatable, undone on failure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.data.rows import Rows, read_only
from polyfm.kernels import ANOVA
from polyfm.losses import Squared
from polyfm.losses import contract as losses
from polyfm.models._score import Parameters
from polyfm.models.layout import lay_out
from polyfm.penalties import L2, Box
from polyfm.solvers._epoch import Penalties, Switches, learn_rows
from polyfm.solvers.learner import Settings
from polyfm.solvers.stochastic import StochasticLearner
from polyfm.testing._asserts import require, require_close
from polyfm.testing._losses import _accepted_targets
from polyfm.testing._models import rows_of
from polyfm.testing._plain import plain
from polyfm.updates import AdaGrad

_N_ROWS, _N_FEATURES, _N_EPOCHS = 30, 7, 3


def check_solver(
    *,
    kernel: Any | None = None,
    loss: Any | None = None,
    rule: Any | None = None,
    penalty: Any | None = None,
    order: int = 2,
    seed: int = 0,
) -> None:
    """Check that stochastic learning keeps its promises with pieces of your own.

    The compiled epoch gives the parameters of the same epoch in plain Python; learning twice gives
    the same bits; the loss falls; a step that fails leaves nothing behind.

    Parameters
    ----------
    kernel, loss, rule, penalty : NamedTuple, optional
        The pieces: ``ANOVA()``, ``Squared()``, ``AdaGrad()`` and ``L2(0.1)`` by default. The
        penalty is that of the linear term and of the factors.
    order : int, default=2
        Highest degree.
    seed : int, default=0
        Of data and start.

    Raises
    ------
    AssertionError
        Where a promise is broken; the message says which.

    Examples
    --------
    >>> from polyfm.losses import Huber
    >>> from polyfm.testing import check_solver
    >>> check_solver(loss=Huber(delta=0.5))  # doctest: +SKIP
    """
    loss = Squared() if loss is None else loss
    penalty = L2(0.1) if penalty is None else penalty
    layout = lay_out(
        ANOVA() if kernel is None else kernel,
        order, 3, lower="explicit", linear=True, inhomogeneous=False,
    )  # fmt: skip
    settings = Settings(
        loss,
        AdaGrad() if rule is None else rule,
        Penalties(L2(0.0), penalty, penalty, Box(1.0), L2(0.1)),
        Switches(True, True, True, layout.degrees.shape[0]),
        np.full(layout.rank, 0.1),
        seed,
    )
    rows = _some_rows(loss, np.random.default_rng(seed))

    def learner() -> StochasticLearner:
        created = StochasticLearner.create(
            layout, settings, n_features=_N_FEATURES, start=0.0, units=True, dtype=np.float64
        )
        created.set_rows(rows)
        return created

    _check_learning(learner(), learner(), rows)
    _check_plain(learner(), learner(), rows)
    _check_undone(learner(), rows)


def _some_rows(loss: Any, random: np.random.Generator) -> Rows:
    """Draw rows, an empty one among them, whose targets depend on their features."""
    X = random.normal(size=(_N_ROWS, _N_FEATURES)) * (random.random((_N_ROWS, _N_FEATURES)) < 0.6)
    X[3] = 0.0
    score = X[:, 0] - X[:, 1] + random.normal(scale=0.1, size=_N_ROWS)
    targets = _accepted_targets(loss)
    ranks = score.argsort().argsort() * len(targets) // _N_ROWS
    return rows_of(X, np.sort(targets)[ranks])


def _check_learning(one: StochasticLearner, other: StochasticLearner, rows: Rows) -> None:
    before = _mean_loss(one, rows)
    for _ in range(_N_EPOCHS):
        require(one.epoch(rows) == other.epoch(rows), "the same epoch twice has another loss.")
    for name, block, again in _blocks(one, other):
        require(np.array_equal(block, again), f"{name} differs between two equal fits.")
        require(np.all(np.isfinite(block)), f"{name} is not finite after learning.")
    after = _mean_loss(one, rows)
    require(after < before, f"the loss went from {before:.6g} to {after:.6g} in learning.")


def _check_plain(compiled: StochasticLearner, interpreted: StochasticLearner, rows: Rows) -> None:
    order = np.arange(rows.n_rows)
    compiled.learn(rows, order)
    s, model = interpreted.settings, interpreted.model
    plain(learn_rows)(
        model.kernel, s.loss, s.rule, s.penalties, s.switches, model.parameters, model.plan,
        rows, order, 0.0, 1.0 / rows.n_rows, model.work_cells(rows.longest), 0.0,
    )  # fmt: skip
    for name, block, slow in _blocks(compiled, interpreted):
        require_close(block, slow, 1e-9 * (1 + np.abs(slow)), f"{name} of the compiled epoch")


def _check_undone(learner: StochasticLearner, rows: Rows) -> None:
    """Check that a batch with an infinite value leaves a learner as it was."""
    learner.learn(rows)
    before = learner.copy()
    values = rows.values.copy()
    values[-1] = np.inf
    broken = rows._replace(values=read_only(values))
    undo = learner.checkpoint(broken)
    try:
        learner.add_and_learn(broken)
    except ArithmeticError:
        undo()
    else:
        raise AssertionError("a row with an infinite value was learnt from.")
    for name, block, kept in _blocks(learner, before):
        require(np.array_equal(block, kept), f"{name} keeps traces of a batch that failed.")


def _mean_loss(learner: StochasticLearner, rows: Rows) -> float:
    scores = learner.model.scores(rows)
    pairs = zip(rows.target, scores, strict=True)
    return float(np.mean([losses.value(learner.settings.loss, y, p) for y, p in pairs]))


def _blocks(
    one: StochasticLearner, other: StochasticLearner
) -> list[tuple[str, NDArray[Any], NDArray[Any]]]:
    mine, theirs = one.model.parameters, other.model.parameters
    return list(zip(Parameters._fields, mine, theirs, strict=True))
