"""Arguments of readers and writers, checked before any work is done."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from polyfm.data.lines import LARGEST

__all__ = ["float_type", "whole_number"]


def whole_number(name: str, value: Any, least: int, most: int = LARGEST) -> int:
    """Return an argument that has to be a whole number from ``least`` to ``most``.

    Raises
    ------
    TypeError
        For anything but an integer.
    ValueError
        For one that is out of range.
    """
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    if number > most:
        shown = "2**63 - 1" if most == LARGEST else most
        raise ValueError(f"{name} must be at most {shown}, got {number}")
    return number


def float_type(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the type of values: float32 or float64.

    Raises
    ------
    ValueError, TypeError
        For another.
    """
    try:
        found = np.dtype(dtype)
    except TypeError:
        raise TypeError(f"dtype must be float32 or float64, got {dtype!r}") from None
    if found not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {found.name}")
    return found
