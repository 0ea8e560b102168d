"""What a penalty is: a function of single coordinates with a proximal operator.

A new penalty is a ``NamedTuple`` and one implementation of each generic function of this file.
The numbers are scalars or lanes (:mod:`polyfm._jit.lanes`).
"""

from __future__ import annotations

from typing import Any

from polyfm._jit import generic


@generic
def value(penalty: Any, v: Any) -> Any:
    """Return the penalty of the coordinate ``v``; NumPy arrays are taken element by element."""


@generic
def prox(penalty: Any, v: Any, step: Any) -> Any:
    """Return the proximal operator, argmin_u penalty(u) + (u - v)^2 / (2 step), for step >= 0."""


@generic
def prox_quotient(penalty: Any, v: Any, step: Any, scale: Any) -> Any:
    """Return ``prox(penalty, v / scale, step / scale)`` for scale > 0, with a single division.

    Adaptive rules divide each coordinate's step by a number of its own. Divisions are the dearest
    arithmetic of an epoch, so the rule leaves them to the penalty, which often divides anyway.
    """


@generic
def subgradient(penalty: Any, v: Any) -> Any:
    """Return the slope of the penalty at an allowed ``v``, and 0 at v = 0.

    It is one of the slopes at a corner: ``prox(v + step * subgradient(v), step)``
    is v.
    """


@generic
def block_step(
    penalty: Any, hessian: Any, gradient: Any, scales: Any, start: Any, change: Any, count: int,
    stride: int,
) -> None:  # fmt: skip
    """Write into ``change`` the step u that minimises a quadratic and the penalty of a few scalars.

    The function is gradient.u + u'Hu / 2 + sum_r scales_r penalty(start_r + u_r); row r of H starts
    at ``hessian[r * stride]`` and may be overwritten. See :mod:`polyfm.penalties.block`.
    """
