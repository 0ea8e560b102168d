"""Huber loss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyfm.losses import contract
from polyfm.losses.averages import weighted_mean, weighted_quantile


class Huber(NamedTuple):
    r"""Huber loss: quadratic near 0 and linear beyond ``delta``.

    .. math:: \ell(y, p) = \tfrac12 e^2 \text{ if } |e| < \delta, \text{ else }
        \delta (|e| - \delta / 2), \qquad e = p - y

    Parameters
    ----------
    delta : float
        Where it turns linear, > 0, in the unit of the target.
    """

    delta: float = 1.0


@contract.value.implements(Huber)
def _value(loss, y, p):
    e = abs(p - y)
    return 0.5 * e * e if e < loss.delta else loss.delta * (e - 0.5 * loss.delta)


@contract.gradient.implements(Huber)
def _gradient(loss, y, p):
    return min(max(p - y, -loss.delta), loss.delta)


@contract.curvature.implements(Huber)
def _curvature(loss):
    return 1.0


@contract.inverse_link.implements(Huber)
def _inverse_link(loss, p):
    return p


@contract.best_constant.implements(Huber)
def _best_constant(loss, y, weight):
    # One weighted step from the median towards the minimiser: close enough to start from.
    median = weighted_quantile(y, weight, 0.5)
    return median + weighted_mean(np.clip(y - median, -loss.delta, loss.delta), weight)


@contract.scaled.implements(Huber)
def _scaled(loss, unit):
    return Huber(loss.delta / unit)


@contract.invalid_targets.implements(Huber)
def _invalid_targets(loss, y):
    return ""
