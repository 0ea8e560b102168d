"""Ridge, lasso and what lies between."""

from __future__ import annotations

from typing import NamedTuple

from polyfm._jit import absolute, maximum, minimum, where_positive
from polyfm.penalties import contract
from polyfm.penalties.block import descend


class ElasticNet(NamedTuple):
    r"""Elastic-net penalty, :math:`\lambda_1 |v| + \frac12 \lambda_2 v^2`.

    Parameters
    ----------
    l1, l2 : float
        Strengths of the two parts, >= 0.
    """

    l1: float = 0.0
    l2: float = 0.0


@contract.value.implements(ElasticNet)
def _value(penalty, v):
    return absolute(v) * penalty.l1 + v * v * (0.5 * penalty.l2)


@contract.prox.implements(ElasticNet)
def _prox(penalty, v, step):
    threshold = step * penalty.l1
    return (v - minimum(maximum(v, -threshold), threshold)) / (step * penalty.l2 + 1.0)


@contract.prox_quotient.implements(ElasticNet)
def _prox_quotient(penalty, v, step, scale):
    threshold = step * penalty.l1
    return (v - minimum(maximum(v, -threshold), threshold)) / (step * penalty.l2 + scale)


@contract.subgradient.implements(ElasticNet)
def _subgradient(penalty, v):
    corner = where_positive(v, penalty.l1, where_positive(-v, -penalty.l1, 0.0))
    return v * penalty.l2 + corner


@contract.block_step.implements(ElasticNet)
def _block_step(penalty, hessian, gradient, scales, start, change, count, stride):
    descend(penalty, hessian, gradient, scales, start, change, count, stride)
