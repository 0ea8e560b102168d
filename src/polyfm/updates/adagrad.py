"""AdaGrad with a proximal step for the penalty."""

from __future__ import annotations

from typing import NamedTuple

from polyfm._jit import load_like, square_root, store
from polyfm.penalties.contract import prox_quotient
from polyfm.updates import contract


class AdaGrad(NamedTuple):
    r"""AdaGrad: each coordinate's step shrinks with the gradients it has seen.

    .. math:: G \leftarrow G + g^2, \qquad
        v \leftarrow \mathrm{prox}_{(\eta / \sqrt G)\, \Omega}
        \left( v - \frac{\eta}{\sqrt G}\, g \right)

    Parameters
    ----------
    learning_rate : float
        :math:`\eta > 0`.
    initial : float
        G before the first gradient, > 0, for a column whose typical value is 1. It damps the first
        steps, which would otherwise all have the full length :math:`\eta`.

    References
    ----------
    Duchi, Hazan, Singer, "Adaptive Subgradient Methods", JMLR 2011, composite mirror descent form.
    """

    learning_rate: float = 0.1
    initial: float = 1.0


@contract.n_planes.implements(AdaGrad)
def _n_planes(rule):
    return 2


@contract.sums_gradients.implements(AdaGrad)
def _sums_gradients(rule):
    return False


@contract.rate.implements(AdaGrad)
def _rate(rule, t):
    return rule.learning_rate


@contract.unit_rate.implements(AdaGrad)
def _unit_rate(rule, unit):
    return unit


@contract.begin.implements(AdaGrad)
def _begin(rule, penalty, memory, at, stride, count, weight, unit, share):
    store(memory, at, count, weight)
    store(memory, at + stride, count, weight * 0.0 + rule.initial / (unit * unit))


@contract.step.implements(AdaGrad)
def _step(rule, penalty, memory, at, stride, count, g, rate, share):
    squares = load_like(g, memory, at + stride, count) + g * g
    root = square_root(squares)
    moved = load_like(g, memory, at, count) * root - g * rate
    store(memory, at + stride, count, squares)
    store(memory, at, count, prox_quotient(penalty, moved, rate * share, root))
