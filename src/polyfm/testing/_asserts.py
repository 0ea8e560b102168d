"""Assertions with messages for people, which also hold under ``python -O``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def require(condition: Any, message: str) -> None:
    """Raise an AssertionError with ``message`` unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def require_close(got: ArrayLike, wanted: ArrayLike, tolerance: ArrayLike, what: str) -> None:
    """Raise an AssertionError that shows the worst entry unless |got - wanted| <= tolerance."""
    got, wanted = np.asarray(got, dtype=np.float64), np.asarray(wanted, dtype=np.float64)
    # Infinities of one sign are equal, and their difference would be NaN.
    excess = np.where(got == wanted, -np.inf, np.abs(got - wanted) - np.asarray(tolerance))
    if excess.size and not np.all(excess <= 0):
        flat = int(np.where(np.isnan(excess), np.inf, excess).argmax())
        worst = np.unravel_index(flat, got.shape)
        place = f" at {tuple(map(int, worst))}" if got.shape else ""
        raise AssertionError(f"{what}: got {got[worst]!r}{place}, expected {wanted[worst]!r}.")
