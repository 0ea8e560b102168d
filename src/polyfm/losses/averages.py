"""Weighted averages, from which the best constant predictions follow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def weighted_mean(y: NDArray[Any], weight: NDArray[Any]) -> float:
    """Return the mean of ``y`` weighted by ``weight``, whose sum is positive."""
    # Not np.dot: the threads of a BLAS go on spinning on the cores that learning needs next.
    return float(np.multiply(y, weight).sum() / np.sum(weight))


def weighted_quantile(y: NDArray[Any], weight: NDArray[Any], level: float) -> float:
    """Return the smallest value below which at least ``level`` of the weight lies."""
    order = np.argsort(y, kind="stable")
    cumulative = np.cumsum(weight[order], dtype=np.float64)
    place = np.searchsorted(cumulative, level * cumulative[-1])
    return float(y[order[min(place, len(order) - 1)]])
