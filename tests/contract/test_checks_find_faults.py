"""The checks of polyfm.testing refuse pieces that are broken, each in one way."""

from typing import NamedTuple

import numpy as np
import pytest

from polyfm.kernels import ANOVA, reference
from polyfm.kernels import contract as kernels
from polyfm.kernels.contract import cell
from polyfm.losses import Huber, Logistic, Poisson, Quantile, Squared, SquaredHinge
from polyfm.losses import contract as losses
from polyfm.penalties import ElasticNet
from polyfm.penalties import contract as penalties
from polyfm.testing import check_kernel, check_loss, check_penalty, check_update
from polyfm.updates import SGD, AdaGrad, FTRLProximal
from polyfm.updates import contract as updates


@pytest.fixture
def break_piece(monkeypatch):
    """Give an existing spec another implementation of one generic function, for one test."""

    def replace(function, spec, implementation):
        monkeypatch.setitem(function.table, type(spec), implementation)

    return replace


@pytest.mark.parametrize(
    ("loss", "function", "implementation", "message"),
    [
        (Squared(), "gradient", lambda loss, y, p: y - p, "gradient of"),
        (Squared(), "curvature", lambda loss: 0.5, "changes faster"),
        (Squared(), "curvature", lambda loss: 0.0, "must be > 0"),
        (Squared(), "best_constant", lambda loss, y, weight: float(y.mean()), "best_constant"),
        (Squared(), "best_constant", lambda loss, y, weight: np.nan, "best_constant"),
        (Huber(0.7), "scaled", lambda loss, unit: loss, "in units of"),
        (SquaredHinge(), "inverse_link", lambda loss, p: p, "no probability"),
        (Poisson(), "inverse_link", lambda loss, p: np.exp(p), "not finite"),
        (Poisson(), "inverse_link", lambda loss, p: -np.exp(-np.abs(p)), "falls"),
        (Quantile(0.3), "gradient", lambda loss, y, p: 0.3 if y > p else -0.7, "gradient of"),
    ],
)  # fmt: skip
def test_broken_loss(break_piece, loss, function, implementation, message):
    break_piece(getattr(losses, function), loss, implementation)
    with pytest.raises(AssertionError, match=message):
        check_loss(loss)


def test_overflowing_loss(break_piece):
    def value(loss, y, p):
        with np.errstate(over="ignore"):
            return np.log1p(np.exp(-y * p))

    break_piece(losses.value, Logistic(), value)
    with pytest.raises(AssertionError, match="too large"):
        check_loss(Logistic())


def test_loss_that_is_not_convex(break_piece):
    break_piece(losses.value, Squared(), lambda loss, y, p: np.log1p((p - y) ** 2))
    break_piece(losses.gradient, Squared(), lambda loss, y, p: 2 * (p - y) / (1 + (p - y) ** 2))
    with pytest.raises(AssertionError, match="not convex"):
        check_loss(Squared())


def test_loss_without_targets_to_try(break_piece):
    break_piece(losses.invalid_targets, Squared(), lambda loss, y: "needs targets above 100")
    with pytest.raises(AssertionError, match="give targets="):
        check_loss(Squared())
    with pytest.raises(AssertionError, match="above 100"):
        check_loss(Squared(), targets=[1.0])


class Divided(NamedTuple):
    """ANOVA of degree 3 whose slopes divide their own term out, as some programs do."""

    degree: int = 3


@pytest.fixture
def divided(monkeypatch):
    generics = [f for f in vars(kernels).values() if hasattr(f, "implements")]
    for function in [*generics, reference.value, reference.slopes]:
        monkeypatch.setitem(function.table, Divided, function.table[ANOVA])
    return Divided()


def test_kernel_copied_from_a_good_one(divided):
    check_kernel(divided, compiled=False)


def test_kernel_with_slopes_by_division(divided, break_piece):
    terms = []

    def retreat(kernel, cells, adjoint, z):
        terms.append(z)

    def slope(kernel, cells, before, adjoint):
        # Takes the term out of the sums after it by the recurrence, which cancels.
        after = before + kernel.degree
        z = cell(cells, after) - cell(cells, before)
        without, total = 1.0, cell(cells, adjoint)
        for t in range(1, kernel.degree):
            without = cell(cells, after + t - 1) - z * without
            total = total + cell(cells, adjoint + t) * without
        return total

    break_piece(kernels.slope, divided, slope)
    break_piece(kernels.retreat, divided, retreat)
    with pytest.raises(AssertionError, match="slope"):
        check_kernel(divided, compiled=False)


def test_kernel_that_is_not_its_definition(divided, break_piece):
    break_piece(reference.value, divided, lambda kernel, z, theta: sum(z))
    with pytest.raises(AssertionError, match="value of"):
        check_kernel(divided, compiled=False)


def test_kernel_that_ascends_in_place(divided, break_piece):
    set_cell = kernels.set_cell

    def absorb(kernel, cells, before, after, z):
        set_cell(cells, after, cell(cells, before) + z)
        for t in range(1, kernel.degree):
            set_cell(cells, after + t, cell(cells, before + t) + z * cell(cells, before + t - 1))

    break_piece(kernels.absorb, divided, absorb)
    with pytest.raises(AssertionError, match="in place"):
        check_kernel(divided, compiled=False)


def test_kernel_that_multiplies_the_wrong_weight(divided, break_piece):
    break_piece(kernels.degree_value, divided, lambda kernel, cells, at, t: cell(cells, at))
    with pytest.raises(AssertionError, match="degree weight 1"):
        check_kernel(divided, compiled=False)


@pytest.mark.parametrize(
    "prox",
    [
        lambda penalty, v, step: v,
        lambda penalty, v, step: v / (1.0 + step * penalty.l2) - step * penalty.l1,
        lambda penalty, v, step: v * 0.0 if np.ndim(v) else penalties_prox(penalty, v, step),
    ],
)
def test_broken_penalty(break_piece, prox):
    break_piece(penalties.prox, ElasticNet(), prox)
    with pytest.raises(AssertionError, match="prox of"):
        check_penalty(ElasticNet(0.2, 0.1))


def test_penalty_whose_quotient_is_another(break_piece):
    break_piece(penalties.prox_quotient, ElasticNet(), lambda penalty, v, step, scale: v / scale)
    with pytest.raises(AssertionError, match="prox_quotient of"):
        check_penalty(ElasticNet(0.1, 0.2))


def test_penalty_whose_slope_is_another(break_piece):
    break_piece(penalties.subgradient, ElasticNet(), lambda penalty, v: v * penalty.l2)
    with pytest.raises(AssertionError, match="subgradient"):
        check_penalty(ElasticNet(0.2, 0.1))


penalties_prox = penalties.prox.table[ElasticNet]


def test_penalty_that_rewards(break_piece):
    break_piece(penalties.value, ElasticNet(), lambda penalty, v: -abs(v))
    with pytest.raises(AssertionError, match="less somewhere"):
        check_penalty(ElasticNet(0.2, 0.1))


def step_up(rule, penalty, memory, at, stride, count, g, rate, share):
    sgd_step(rule, penalty, memory, at, stride, count, -g, rate, share)


def step_without_penalty(rule, penalty, memory, at, stride, count, g, rate, share):
    sgd_step(rule, penalty, memory, at, stride, count, g, rate, 0.0)


def step_too_wide(rule, penalty, memory, at, stride, count, g, rate, share):
    sgd_step(rule, penalty, memory, at, stride, 8 if np.ndim(g) else 1, g, rate, share)


def begin_elsewhere(rule, penalty, memory, at, stride, count, weight, unit, share):
    sgd_begin(rule, penalty, memory, at, stride, count, weight * unit, unit, share)


def drift(rule, penalty, memory, at, stride, count, g, rate, share):
    sgd_step(rule, penalty, memory, at, stride, count, g + 1e-6, rate, share)


sgd_step, sgd_begin = updates.step.table[SGD], updates.begin.table[SGD]


@pytest.mark.parametrize(
    ("function", "implementation", "message"),
    [
        ("step", step_up, "diverges|still"),
        ("step", step_without_penalty, "ignores its penalty"),
        ("step", step_too_wide, "beside"),
        ("step", drift, "without gradient"),
        ("begin", begin_elsewhere, "another weight"),
        ("unit_rate", lambda rule, unit: unit, "unit"),
        ("rate", lambda rule, t: -0.1, "rates"),
        ("rate", lambda rule, t: np.inf, "rates"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_broken_update(break_piece, function, implementation, message):
    break_piece(getattr(updates, function), SGD(), implementation)
    with pytest.raises(AssertionError, match=message):
        check_update(SGD(0.1))


def begin_without_penalty(rule, penalty, memory, at, stride, count, weight, unit, share):
    ftrl_begin(rule, NO_PENALTY, memory, at, stride, count, weight, unit, share)


ftrl_begin, NO_PENALTY = updates.begin.table[FTRLProximal], ElasticNet(0.0, 0.0)


def test_sums_that_do_not_fit_the_start(break_piece):
    break_piece(updates.begin, FTRLProximal(), begin_without_penalty)
    with pytest.raises(AssertionError, match="does not start there"):
        check_update(FTRLProximal())


def test_update_too_slow_to_learn():
    with pytest.raises(AssertionError, match="still"):
        check_update(AdaGrad(1e-6))
