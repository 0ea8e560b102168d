"""FTRL-Proximal against closed forms worked out by hand."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from polyfm._jit import jit
from polyfm.penalties import L2, Box, ElasticNet
from polyfm.penalties.contract import value
from polyfm.updates import FTRLPower, FTRLProximal
from polyfm.updates.contract import begin, n_planes, rate, step, sums_gradients, unit_rate

GRADIENTS = (3.0, -1.0, 2.0)


def started(rule, penalty, weight, unit=1.0, share=1.0):
    memory = np.zeros(n_planes(rule))
    begin(rule, penalty, memory, 0, 1, 1, weight, unit, share)
    return memory


def path(rule, penalty, gradients, weight=0.0, unit=1.0, share=1.0):
    """Return the weights after each gradient, and the memory."""
    memory, weights = started(rule, penalty, weight, unit, share), []
    for t, g in enumerate(gradients):
        size = rate(rule, float(t)) * unit_rate(rule, unit)
        step(rule, penalty, memory, 0, 1, 1, g, size, share)
        weights.append(memory[0])
    return np.array(weights), memory


def test_three_steps_of_mcmahans_rule():
    # alpha = 1/2, beta = 1: 1 / eta = 2 (1 + sqrt n); lambda1 = 1/2, lambda2 = 1.
    weights, memory = path(FTRLProximal(0.5, 1.0, 0.0), ElasticNet(0.5, 1.0), GRADIENTS)
    # z = 3, n = 9, 1 / eta = 8: -(3 - 0.5) / (8 + 1).
    first = -2.5 / 9.0
    # sigma = 2 (sqrt 10 - 3), z = 3 - 1 - sigma w, n = 10.
    z = 2.0 - 2.0 * (math.sqrt(10.0) - 3.0) * first
    second = -(z - 0.5) / (2.0 * (1.0 + math.sqrt(10.0)) + 1.0)
    # sigma = 2 (sqrt 14 - sqrt 10), n = 14.
    z = z + 2.0 - 2.0 * (math.sqrt(14.0) - math.sqrt(10.0)) * second
    third = -(z - 0.5) / (2.0 * (1.0 + math.sqrt(14.0)) + 1.0)
    assert weights == pytest.approx([first, second, third], rel=1e-14)
    # What is kept of z is its product with the learning rate.
    assert memory == pytest.approx([third, 0.5 * z, 14.0], rel=1e-14)


def test_three_steps_of_the_hierarchical_machines_rule():
    # alpha = 2, mu = 7, gamma = 3/4: 1 / eta = (7 + n)^(3/4) / 2; lambda1 = 1, lambda2 = 1/4.
    weights, _ = path(FTRLPower(2.0, 7.0, 0.75), ElasticNet(1.0, 0.25), GRADIENTS)
    curvature = [(7.0 + n) ** 0.75 / 2.0 for n in (0.0, 9.0, 10.0, 14.0)]
    assert curvature[1] == 4.0
    first = -(3.0 - 1.0) / (4.0 + 0.25)
    z = 2.0 - (curvature[2] - curvature[1]) * first
    second = -(z - 1.0) / (curvature[2] + 0.25)
    z = z + 2.0 - (curvature[3] - curvature[2]) * second
    third = -(z - 1.0) / (curvature[3] + 0.25)
    assert weights == pytest.approx([first, second, third], rel=1e-14)


def test_the_power_one_half_is_the_root():
    root = path(FTRLProximal(0.3, 0.0, 2.0), ElasticNet(0.1, 0.2), GRADIENTS, weight=0.7)
    power = path(FTRLPower(0.3, 2.0, 0.5), ElasticNet(0.1, 0.2), GRADIENTS, weight=0.7)
    for one, other in zip(root, power, strict=True):
        assert one == pytest.approx(other, rel=1e-13)


RULES = [FTRLProximal(0.5, 1.0, 0.0), FTRLProximal(0.5, 0.0, 2.0), FTRLPower(0.5, 1.5, 0.8)]
PENALTIES = [L2(0.0), L2(3.0), ElasticNet(0.8, 0.0), ElasticNet(0.4, 0.7), Box(0.2)]


def curvature(rule, n):
    if isinstance(rule, FTRLPower):
        return (rule.initial + n) ** rule.power / rule.learning_rate
    return (rule.damping + math.sqrt(rule.initial + n)) / rule.learning_rate


def leader(penalty, linear, terms):
    """Minimise a linear function, some parabolas and a penalty, numerically."""

    def objective(u):
        parabolas = sum(0.5 * sigma * (u - centre) ** 2 for sigma, centre in terms)
        return linear * u + parabolas + float(value(penalty, u))

    limit = penalty.bound if isinstance(penalty, Box) else 10.0
    return minimize_scalar(
        objective, bounds=(-limit, limit), method="bounded", options={"xatol": 1e-11}
    ).x


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("weight", [0.0, 0.15])
def test_weights_follow_the_regularised_leader(rule, penalty, weight):
    """Each weight minimises all linearised losses, the penalty once, and all proximal terms."""
    gradients = np.random.default_rng(0).normal(size=12)
    weights, _ = path(rule, penalty, gradients, weight)
    # A start that is not 0 stands for gradients that have led there.
    slope = (value(penalty, weight + 1e-6) - value(penalty, weight)) / 1e-6
    linear = -slope if weight else 0.0
    terms, n = [(curvature(rule, 0.0), weight)], 0.0
    for g, centre, found in zip(gradients, [weight, *weights], weights, strict=False):
        linear += g
        terms.append((curvature(rule, n + g * g) - curvature(rule, n), centre))
        n += g * g
        assert found == pytest.approx(leader(penalty, linear, terms), abs=2e-5)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_a_start_is_what_the_first_step_goes_from(rule, penalty):
    for weight in (-0.1, 0.0, 1e-3):
        for unit, share in ((1.0, 1.0), (0.02, 1.0), (1.0, 2.5)):
            weights, _ = path(rule, penalty, [0.0, 0.0], weight, unit, share)
            assert weights == pytest.approx([weight, weight], abs=1e-14)


def test_l1_keeps_zero_until_the_sum_is_beyond_it():
    rule, penalty = FTRLProximal(0.1, 1.0, 0.0), ElasticNet(2.0, 0.0)
    weights, _ = path(rule, penalty, [0.5] * 6)
    assert (weights[:4] == 0.0).all()
    assert (weights[4:] < 0.0).all()


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_another_unit_of_the_column(rule):
    here, _ = path(rule, L2(0.0), GRADIENTS, weight=0.4)
    there, _ = path(rule, L2(0.0), np.multiply(GRADIENTS, 25.0), weight=0.4 / 25, unit=1 / 25)
    assert there * 25 == pytest.approx(here, rel=1e-12)


def test_another_learning_rate_midway_moves_no_weight():
    slow, fast = FTRLProximal(0.1, 1.0, 0.0), FTRLProximal(0.4, 1.0, 0.0)
    weights, memory = path(slow, L2(0.0), GRADIENTS)
    step(fast, L2(0.0), memory, 0, 1, 1, 0.0, rate(fast, 3.0), 1.0)
    assert memory[0] == pytest.approx(weights[-1], rel=1e-14)


@jit
def _compiled(rule, penalty, memory, g, size, share):
    step(rule, penalty, memory, 0, 1, 1, g, size, share)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_compiled_scalars(rule):
    assert sums_gradients(rule)
    penalty, memory = ElasticNet(0.1, 0.2), started(rule, ElasticNet(0.1, 0.2), 0.3)
    for t, g in enumerate(GRADIENTS):
        _compiled(rule, penalty, memory, g, rate(rule, float(t)), 1.0)
    assert memory == pytest.approx(path(rule, penalty, GRADIENTS, 0.3)[1], rel=1e-13)
