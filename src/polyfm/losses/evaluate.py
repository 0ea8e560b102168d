"""Losses of many rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm._jit import jit
from polyfm.losses import contract


@jit
def _sum(loss, y, p, weight):
    total = 0.0
    for i in range(y.size):
        total += weight[i] * contract.value(loss, y[i], p[i])
    return total


def mean_loss(loss: Any, y: NDArray[Any], p: NDArray[Any], weight: NDArray[Any]) -> float:
    """Return the weighted mean of ``value(loss, y_i, p_i)``, in double precision."""
    arrays = (np.ascontiguousarray(a, dtype=np.float64) for a in (y, p, weight))
    return float(_sum(loss, *arrays) / np.sum(weight, dtype=np.float64))
