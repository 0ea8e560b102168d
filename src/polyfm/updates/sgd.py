"""Plain stochastic gradient descent."""

from __future__ import annotations

from typing import NamedTuple

from polyfm._jit import load_like, store
from polyfm.penalties.contract import prox
from polyfm.updates import compact, contract


class SGD(NamedTuple):
    r"""Stochastic gradient descent with a step that decays with the rows seen.

    .. math:: v \leftarrow \mathrm{prox}_{\eta_t \Omega}(v - \eta_t g), \qquad
        \eta_t = \frac{\eta}{(1 + \tau t)^{q}}

    Parameters
    ----------
    learning_rate : float
        :math:`\eta > 0`, the first step.
    decay : float
        :math:`\tau \ge 0`, per row.
    power : float
        q: 0 for a constant step, 1 for the optimal schedule of strongly convex problems.
    """

    learning_rate: float = 0.01
    decay: float = 0.0
    power: float = 0.0


@contract.n_planes.implements(SGD)
def _n_planes(rule):
    return 1


@contract.sums_gradients.implements(SGD)
def _sums_gradients(rule):
    return False


@contract.rate.implements(SGD)
def _rate(rule, t):
    return rule.learning_rate / (1.0 + rule.decay * t) ** rule.power


@contract.unit_rate.implements(SGD)
def _unit_rate(rule, unit):
    return unit * unit


@contract.begin.implements(SGD)
def _begin(rule, penalty, memory, at, stride, count, weight, unit, share):
    store(memory, at, count, weight)


@contract.step.implements(SGD)
def _step(rule, penalty, memory, at, stride, count, g, rate, share):
    weight = load_like(g, memory, at, count)
    store(memory, at, count, prox(penalty, weight - g * rate, rate * share))


@compact.weight.implements(SGD)
def _weight(rule, penalty, weight, visits, rate):
    return weight


@compact.moved.implements(SGD)
def _moved(rule, penalty, weight, first, visits, g, rate):
    visits = visits + 1.0
    return prox(penalty, weight - g * rate, rate / visits), visits
