r"""FTRL-Proximal: follow the regularised leader, with a learning rate for each coordinate.

Both rules below keep three numbers for a coordinate: its weight v, the sum z of the gradients less
the moves of the proximal centres, and the sum n of the squared gradients. They differ in how the
curvature :math:`1 / \eta` grows with n. At each step

.. math:: \sigma = \frac{1}{\eta(n + g^2)} - \frac{1}{\eta(n)}, \quad
    z \leftarrow z + g - \sigma v, \quad n \leftarrow n + g^2, \quad
    v \leftarrow \arg\min_u \; z u + \frac{u^2}{2 \eta(n)} + \Omega(u),

so that v minimises the sum of all linearised losses, the penalty once, and proximal terms around
all earlier weights. For :math:`\Omega = \lambda_1 |v| + \frac12 \lambda_2 v^2` it is 0 wherever
:math:`|z| \le \lambda_1`, else :math:`-(z - \mathrm{sgn}(z) \lambda_1) / (1 / \eta + \lambda_2)`.

A weight depends on its own z and n alone: they change when the coordinate is visited, and so does
the weight. It is therefore never out of date, and no step is dense.

What is kept of z is its product with the learning rate. It saves a division at each step, and a
learning rate that is changed midway moves no weight.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from polyfm._jit import generic, load_like, power, square_root, store
from polyfm.penalties.contract import prox_quotient, subgradient
from polyfm.updates import compact, contract


class FTRLProximal(NamedTuple):
    r"""FTRL-Proximal with rates that fall with the root of the squared gradients seen.

    .. math:: \frac{1}{\eta} = \frac{\beta + \sqrt{\mu + n}}{\alpha}

    for a column whose typical value is 1. In a column of typical value x, weights are x times
    smaller and gradients x times larger; :math:`\beta x` and :math:`\mu x^2` take the places of
    :math:`\beta` and :math:`\mu`, and :math:`\alpha / x` that of :math:`\alpha`.

    Parameters
    ----------
    learning_rate : float
        :math:`\alpha > 0`, the longest step.
    damping : float
        :math:`\beta \ge 0`. It damps the first steps.
    initial : float
        :math:`\mu \ge 0`, the squared gradients before the first. One of the two must be > 0.

    References
    ----------
    McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013 (:math:`\mu = 0`).
    Guo et al., "Strongly Hierarchical Factorization Machines and ANOVA Kernel Regression", SDM
    2018 (:math:`\beta = 0`).
    """

    learning_rate: float = 0.1
    damping: float = 1.0
    initial: float = 0.0


class FTRLPower(NamedTuple):
    r"""FTRL-Proximal with rates that fall with a power of the squared gradients seen.

    .. math:: \frac{1}{\eta} = \frac{(\mu + n)^\gamma}{\alpha}

    For :math:`\gamma = \frac12` take :class:`FTRLProximal`, whose root is much faster than a power.

    Parameters
    ----------
    learning_rate : float
        :math:`\alpha > 0`.
    initial : float
        :math:`\mu > 0`, the squared gradients before the first.
    power : float
        :math:`\gamma`, within (0, 1]. A larger one lets rates fall faster.

    References
    ----------
    Guo et al., "Strongly Hierarchical Factorization Machines and ANOVA Kernel Regression", SDM
    2018.
    """

    learning_rate: float = 0.1
    initial: float = 1.0
    power: float = 0.5


@generic
def _raised(rule: Any, squares: Any) -> Any:
    """Return what the curvature, times the learning rate, grows by with the squared gradients."""


@_raised.implements(FTRLProximal)
def _root(rule, squares):
    return square_root(squares)


@_raised.implements(FTRLPower)
def _power(rule, squares):
    return power(squares, rule.power)


@generic
def _damping(rule: Any, rate: float) -> float:
    """Return the part of the curvature, times the learning rate, that stays."""


@_damping.implements(FTRLProximal)
def _damping_of_proximal(rule, rate):
    # The quotient is one over the column's unit.
    return rule.damping * (rule.learning_rate / rate)


@_damping.implements(FTRLPower)
def _damping_of_power(rule, rate):
    return 0.0


def learning_rates(rule: Any, squares: Any, rate: Any) -> Any:
    """Return the present rates of some coordinates.

    Parameters
    ----------
    rule : FTRLProximal or FTRLPower
    squares : ndarray
        The third of their planes.
    rate : float or ndarray
        The learning rate times the unit's factor.
    """
    return rate / (_raised(rule, squares) + _damping(rule, rate))


@contract.n_planes.implements(FTRLPower)
@contract.n_planes.implements(FTRLProximal)
def _n_planes(rule):
    return 3


@contract.sums_gradients.implements(FTRLPower)
@contract.sums_gradients.implements(FTRLProximal)
def _sums_gradients(rule):
    return True


@contract.rate.implements(FTRLPower)
@contract.rate.implements(FTRLProximal)
def _rate(rule, t):
    return rule.learning_rate


@contract.unit_rate.implements(FTRLProximal)
def _unit_rate_of_proximal(rule, unit):
    return unit


@contract.unit_rate.implements(FTRLPower)
def _unit_rate_of_power(rule, unit):
    return power(unit, 2.0 - 2.0 * rule.power)


@contract.begin.implements(FTRLPower)
@contract.begin.implements(FTRLProximal)
def _begin(rule, penalty, memory, at, stride, count, weight, unit, share):
    rate = rule.learning_rate * contract.unit_rate(rule, unit)
    squares = weight * 0.0 + rule.initial / (unit * unit)
    curvature = _damping(rule, rate) + _raised(rule, squares)
    # The z whose minimiser is the weight.
    z = -(weight * curvature + subgradient(penalty, weight) * (rate * share))
    store(memory, at, count, weight)
    store(memory, at + stride, count, z)
    store(memory, at + 2 * stride, count, squares)


@contract.step.implements(FTRLPower)
@contract.step.implements(FTRLProximal)
def _step(rule, penalty, memory, at, stride, count, g, rate, share):
    weight = load_like(g, memory, at, count)
    z = load_like(g, memory, at + stride, count)
    squares = load_like(g, memory, at + 2 * stride, count)
    z, squares = compact.moved(rule, penalty, weight, z, squares, g, rate)
    store(memory, at + stride, count, z)
    store(memory, at + 2 * stride, count, squares)
    curvature = _raised(rule, squares) + _damping(rule, rate)
    store(memory, at, count, prox_quotient(penalty, -z, rate * share, curvature))


@compact.moved.implements(FTRLPower)
@compact.moved.implements(FTRLProximal)
def _moved(rule, penalty, weight, z, squares, g, rate):
    more = squares + g * g
    moved_centre = weight * (_raised(rule, more) - _raised(rule, squares))
    return z + g * rate - moved_centre, more


@compact.weight.implements(FTRLPower)
@compact.weight.implements(FTRLProximal)
def _weight(rule, penalty, z, squares, rate):
    return prox_quotient(penalty, -z, rate, _raised(rule, squares) + _damping(rule, rate))
