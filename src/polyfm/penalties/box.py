"""Bounds on a coordinate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyfm._jit import absolute, maximum, minimum
from polyfm.penalties import contract
from polyfm.penalties.block import descend


class Box(NamedTuple):
    r"""Indicator of an interval: 0 where :math:`|v| \le b`, infinity elsewhere.

    Parameters
    ----------
    bound : float
        b > 0.
    """

    bound: float = 1.0


@contract.value.implements(Box)
def _value(penalty, v):
    return np.where(absolute(v) <= penalty.bound, 0.0, np.inf)


@contract.prox.implements(Box)
def _prox(penalty, v, step):
    return minimum(maximum(v, -penalty.bound), penalty.bound)


@contract.prox_quotient.implements(Box)
def _prox_quotient(penalty, v, step, scale):
    return minimum(maximum(v / scale, -penalty.bound), penalty.bound)


@contract.subgradient.implements(Box)
def _subgradient(penalty, v):
    return v * 0.0


@contract.block_step.implements(Box)
def _block_step(penalty, hessian, gradient, scales, start, change, count, stride):
    descend(penalty, hessian, gradient, scales, start, change, count, stride)
