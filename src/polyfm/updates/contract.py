"""What an update rule is: how one coordinate moves when its gradient is known.

A rule keeps *planes* of numbers for every coordinate: plane 0 is the current weight, the others are
what the rule remembers. In memory the planes of a coordinate lie ``stride`` numbers apart. A rule
is written for scalars and serves lanes as well (:mod:`polyfm._jit.lanes`).

A new rule is a ``NamedTuple`` and one implementation of each generic function of this file.
"""

from __future__ import annotations

from typing import Any

from polyfm._jit import generic


@generic
def n_planes(rule: Any) -> int:
    """Return how many numbers the rule keeps for a coordinate, the weight included."""


@generic
def sums_gradients(rule: Any) -> bool:
    """Say whether the rule works out the weight anew at each step, from sums over the gradients.

    Such a rule pays the whole penalty once, not in shares at each visit, and a weight cannot be
    put back without its sums. It learns on one thread: sums of several would not fit each other.
    """


@generic
def rate(rule: Any, t: float) -> float:
    """Return the learning rate after ``t`` rows."""


@generic
def unit_rate(rule: Any, unit: Any) -> Any:
    """Return the factor of the learning rate for a coordinate whose weights have size ``unit``.

    A column of large values needs small weights: ``unit`` is one over the column's typical value.
    The factor makes the fit the same whatever unit the column is measured in.
    """


@generic
def begin(
    rule: Any,
    penalty: Any,
    memory: Any,
    at: int,
    stride: int,
    count: int,
    weight: Any,
    unit: float,
    share: float,
) -> None:
    """Write all planes of ``count`` coordinates such that their current weight is ``weight``.

    ``share`` is the one that :func:`step` will be given.
    """


@generic
def step(
    rule: Any,
    penalty: Any,
    memory: Any,
    at: int,
    stride: int,
    count: int,
    g: Any,
    rate: float,
    share: float,
) -> None:
    """Move the ``count`` coordinates at flat position ``at`` of ``memory`` along ``-g``.

    ``share`` is how much of the penalty is due: features that are seen rarely pay for the rows in
    between when they are seen. For a rule that sums gradients it is all of it, at each step.
    """
