"""Squared hinge loss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyfm.losses import contract
from polyfm.losses.averages import weighted_mean


class SquaredHinge(NamedTuple):
    r"""Squared hinge loss, :math:`\max(0, 1 - y p)^2` with y in {-1, 1}.

    Its minimiser is :math:`p = 2 P(y = 1) - 1`, whence the inverse link.
    """


@contract.value.implements(SquaredHinge)
def _value(loss, y, p):
    gap = max(1.0 - y * p, 0.0)
    return gap * gap


@contract.gradient.implements(SquaredHinge)
def _gradient(loss, y, p):
    return -2.0 * y * max(1.0 - y * p, 0.0)


@contract.curvature.implements(SquaredHinge)
def _curvature(loss):
    return 2.0


@contract.inverse_link.implements(SquaredHinge)
def _inverse_link(loss, p):
    return np.clip(0.5 * (p + 1.0), 0.0, 1.0)


@contract.best_constant.implements(SquaredHinge)
def _best_constant(loss, y, weight):
    return weighted_mean(y, weight)


@contract.scaled.implements(SquaredHinge)
def _scaled(loss, unit):
    return None


@contract.invalid_targets.implements(SquaredHinge)
def _invalid_targets(loss, y):
    return "" if np.all(np.abs(y) == 1) else "loss='squared_hinge' needs targets -1 and 1"
