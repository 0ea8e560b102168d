"""Ridge penalty."""

from __future__ import annotations

from typing import NamedTuple

from polyfm.penalties import contract
from polyfm.penalties.block import solve_ridge


class L2(NamedTuple):
    r"""Ridge penalty, :math:`\frac12 \lambda v^2`.

    Parameters
    ----------
    strength : float
        :math:`\lambda \ge 0`.
    """

    strength: float = 0.0


@contract.value.implements(L2)
def _value(penalty, v):
    return v * v * (0.5 * penalty.strength)


@contract.prox.implements(L2)
def _prox(penalty, v, step):
    return v / (step * penalty.strength + 1.0)


@contract.prox_quotient.implements(L2)
def _prox_quotient(penalty, v, step, scale):
    return v / (step * penalty.strength + scale)


@contract.subgradient.implements(L2)
def _subgradient(penalty, v):
    return v * penalty.strength


@contract.block_step.implements(L2)
def _block_step(penalty, hessian, gradient, scales, start, change, count, stride):
    solve_ridge(penalty.strength, hessian, gradient, scales, start, change, count, stride)
