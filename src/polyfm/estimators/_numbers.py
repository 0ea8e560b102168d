"""Checks of numbers among the parameters of estimators."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any


def check_number(
    name: str,
    value: Any,
    kind: type,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
) -> None:
    """Raise a ValueError or TypeError that names what is no finite number between some bounds."""
    word = "an integer" if kind is Integral else "a number"
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(f"{name} must be {word}, got {value!r}.")
    number = float(value)  # type: ignore[arg-type]
    if not (least <= number <= most and above < number < below and math.isfinite(number)):
        lower = f">= {least:g}" if above == -math.inf else f"> {above:g}"
        upper = f" and <= {most:g}" if most < math.inf else ""
        upper = f" and < {below:g}" if below < math.inf else upper
        raise ValueError(f"{name} must be finite, {lower}{upper}, got {value!r}.")
