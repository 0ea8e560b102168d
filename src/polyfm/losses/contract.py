"""What a loss is: scalar functions of a target and a raw prediction.

``p`` is the raw prediction, the model's value before any link. Value and gradient are finite for
every finite ``y`` and ``p`` whose true value is representable: nothing overflows on the way.

A new loss is a ``NamedTuple`` and one implementation of each generic function of this file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyfm._jit import generic


@generic
def value(loss: Any, y: float, p: float) -> float:
    """Return the loss of predicting ``p`` where the target is ``y``."""


@generic
def gradient(loss: Any, y: float, p: float) -> float:
    """Return d value / d p; where the loss has a kink, one of its subgradients."""


@generic
def curvature(loss: Any) -> float:
    """Return a bound on the second derivative over all p; infinity where there is none."""


@generic
def inverse_link(loss: Any, p: Any) -> Any:
    """Map raw predictions to the scale of the target, or to P(y = 1) for a classification loss."""


@generic
def best_constant(loss: Any, y: np.ndarray, weight: np.ndarray) -> float:
    """Return the constant raw prediction with the least weighted loss, kept finite."""


@generic
def scaled(loss: Any, unit: float) -> Any:
    """Return the loss for targets divided by ``unit``; None if the target has no unit to divide."""


@generic
def invalid_targets(loss: Any, y: np.ndarray) -> str:
    """Say in words what targets the loss needs if some of ``y`` are not, else return ''."""
