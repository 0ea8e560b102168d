"""Update rules on two numbers for a coordinate, for models of millions of coordinates.

FTRL-Proximal keeps its two sums and works out the weight when it is asked for. A rule that moves
the weight itself keeps this and the number of visits: at its v-th visit a coordinate pays a v-th
of its penalty. The numbers are scalars, lanes (:mod:`polyfm._jit.lanes`) or NumPy arrays; a
coordinate that was never visited has two zeros.
"""

from __future__ import annotations

from typing import Any

from polyfm._jit import generic


@generic
def weight(rule: Any, penalty: Any, first: Any, second: Any, rate: Any) -> Any:
    """Return the weights of coordinates for which the rule keeps these numbers."""


@generic
def moved(rule: Any, penalty: Any, weight: Any, first: Any, second: Any, g: Any, rate: Any) -> Any:
    """Return the two numbers after a step along ``-g`` from a weight."""
