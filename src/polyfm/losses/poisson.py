"""Poisson loss for counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyfm.losses import contract
from polyfm.losses.averages import weighted_mean

_LARGEST_EXPONENT = 700.0


class Poisson(NamedTuple):
    r"""Poisson loss with the log link, :math:`e^p - y p`: the negative log-likelihood of a count.

    Beyond p = 700, where :math:`e^p` nears the largest double, the loss goes on as a straight line
    of the slope it has there, so that it stays finite and convex.
    """


@contract.value.implements(Poisson)
def _value(loss, y, p):
    inside = min(p, _LARGEST_EXPONENT)
    top = np.exp(inside)
    return top + (p - inside) * top - y * p if p > inside else top - y * p


@contract.gradient.implements(Poisson)
def _gradient(loss, y, p):
    return np.exp(min(p, _LARGEST_EXPONENT)) - y


@contract.curvature.implements(Poisson)
def _curvature(loss):
    return np.inf


@contract.inverse_link.implements(Poisson)
def _inverse_link(loss, p):
    return np.exp(np.minimum(p, _LARGEST_EXPONENT))


@contract.best_constant.implements(Poisson)
def _best_constant(loss, y, weight):
    mean = weighted_mean(y, weight)
    return float(np.log(max(mean, 1e-6)))


@contract.scaled.implements(Poisson)
def _scaled(loss, unit):
    return None


@contract.invalid_targets.implements(Poisson)
def _invalid_targets(loss, y):
    return "" if np.min(y) >= 0 else "loss='poisson' needs targets >= 0"
