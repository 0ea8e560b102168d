"""Squared loss."""

from __future__ import annotations

from typing import NamedTuple

from polyfm.losses import contract
from polyfm.losses.averages import weighted_mean


class Squared(NamedTuple):
    r"""Squared loss, :math:`\frac12 (p - y)^2`: its minimiser is the mean."""


@contract.value.implements(Squared)
def _value(loss, y, p):
    return 0.5 * (p - y) * (p - y)


@contract.gradient.implements(Squared)
def _gradient(loss, y, p):
    return p - y


@contract.curvature.implements(Squared)
def _curvature(loss):
    return 1.0


@contract.inverse_link.implements(Squared)
def _inverse_link(loss, p):
    return p


@contract.best_constant.implements(Squared)
def _best_constant(loss, y, weight):
    return weighted_mean(y, weight)


@contract.scaled.implements(Squared)
def _scaled(loss, unit):
    return Squared()


@contract.invalid_targets.implements(Squared)
def _invalid_targets(loss, y):
    return ""
