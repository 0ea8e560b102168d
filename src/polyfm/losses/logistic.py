"""Logistic loss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from polyfm.losses import contract


class Logistic(NamedTuple):
    r"""Logistic loss, :math:`\log(1 + e^{-y p})` with y in {-1, 1}."""


@contract.value.implements(Logistic)
def _value(loss, y, p):
    margin = y * p
    return max(-margin, 0.0) + np.log1p(np.exp(-abs(margin)))


@contract.gradient.implements(Logistic)
def _gradient(loss, y, p):
    margin = y * p
    e = np.exp(-abs(margin))
    return -y * (e if margin > 0.0 else 1.0) / (1.0 + e)


@contract.curvature.implements(Logistic)
def _curvature(loss):
    return 0.25


@contract.inverse_link.implements(Logistic)
def _inverse_link(loss, p):
    return expit(p)


@contract.best_constant.implements(Logistic)
def _best_constant(loss, y, weight):
    # A thousandth is added to either class, so that a class without rows stays finite. A share of
    # the weight, not of a row: a row of weight 2 is to count as two rows.
    spare = 1e-3 * float(weight.sum())
    positive = float(weight[y > 0].sum()) + spare
    negative = float(weight[y < 0].sum()) + spare
    return float(np.log(positive) - np.log(negative))


@contract.scaled.implements(Logistic)
def _scaled(loss, unit):
    return None


@contract.invalid_targets.implements(Logistic)
def _invalid_targets(loss, y):
    return "" if np.all(np.abs(y) == 1) else "loss='logistic' needs targets -1 and 1"
