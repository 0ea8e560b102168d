"""Quantile (pinball) loss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyfm.losses import contract
from polyfm.losses.averages import weighted_quantile


class Quantile(NamedTuple):
    r"""Quantile loss, :math:`\max(q\,(y - p), (q - 1)(y - p))`: its minimiser is a quantile.

    Parameters
    ----------
    level : float
        The quantile q, 0 < q < 1; 0.5 is the median.
    """

    level: float = 0.5


@contract.value.implements(Quantile)
def _value(loss, y, p):
    e = y - p
    return loss.level * e if e >= 0.0 else (loss.level - 1.0) * e


@contract.gradient.implements(Quantile)
def _gradient(loss, y, p):
    if y == p:
        return 0.0
    return -loss.level if y > p else 1.0 - loss.level


@contract.curvature.implements(Quantile)
def _curvature(loss):
    return np.inf


@contract.inverse_link.implements(Quantile)
def _inverse_link(loss, p):
    return p


@contract.best_constant.implements(Quantile)
def _best_constant(loss, y, weight):
    return weighted_quantile(y, weight, loss.level)


@contract.scaled.implements(Quantile)
def _scaled(loss, unit):
    return loss


@contract.invalid_targets.implements(Quantile)
def _invalid_targets(loss, y):
    return ""
