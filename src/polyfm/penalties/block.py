"""The exact minimum of a quadratic of a few coordinates plus a penalty."""

from __future__ import annotations

from polyfm._jit import jit
from polyfm.penalties import contract

_MOST_PASSES = 200
_STILL = 1e-14
_NO_CURVATURE = 1e-13
_FAR = 1e300


@jit
def descend(penalty, hessian, gradient, scales, start, change, count, stride):
    """Write into ``change`` the step that minimises a quadratic and a separable penalty.

    The function of the step u is gradient.u + u'Hu / 2 + sum_r scales_r penalty(start_r + u_r). It
    is solved by its exact coordinate minimisers in turn, until they stand still; a single
    coordinate is exact at once.
    """
    for r in range(count):
        change[r] = 0.0
    for _ in range(_MOST_PASSES):
        largest = 0.0
        for r in range(count):
            curvature = hessian[r * stride + r]
            if curvature <= 0.0:  # The penalty alone decides.
                change[r] = contract.prox(penalty, start[r], scales[r] * _FAR) - start[r]
                continue
            slope = gradient[r]
            for c in range(count):
                slope += hessian[r * stride + c] * change[c]
            wanted = start[r] + change[r] - slope / curvature
            new = contract.prox(penalty, wanted, scales[r] / curvature) - start[r]
            largest = max(largest, abs(new - change[r]) / (abs(start[r] + new) + 1e-300))
            change[r] = new
        if largest <= _STILL or count == 1:
            return


@jit
def solve_ridge(strength, hessian, gradient, scales, start, change, count, stride):
    """Write into ``change`` the step that minimises a quadratic and a ridge penalty.

    By the factorisation H + penalty = L D L', in place. A direction in which the function is flat
    is left out.
    """
    largest = 0.0
    for r in range(count):
        change[r] = -(gradient[r] + strength * scales[r] * start[r])
        hessian[r * stride + r] += strength * scales[r]
        largest = max(largest, hessian[r * stride + r])
    for r in range(count):
        pivot = hessian[r * stride + r]
        for c in range(r):
            left = hessian[r * stride + c]
            pivot -= left * left * hessian[c * stride + c]
        if pivot <= _NO_CURVATURE * largest:
            pivot = 0.0
        hessian[r * stride + r] = pivot
        for i in range(r + 1, count):
            total = hessian[i * stride + r]
            for c in range(r):
                total -= hessian[i * stride + c] * hessian[r * stride + c] * hessian[c * stride + c]
            hessian[i * stride + r] = total / pivot if pivot > 0.0 else 0.0
    for r in range(count):
        for c in range(r):
            change[r] -= hessian[r * stride + c] * change[c]
    for r in range(count):
        pivot = hessian[r * stride + r]
        change[r] = change[r] / pivot if pivot > 0.0 else 0.0
    for r in range(count - 1, -1, -1):
        for i in range(r + 1, count):
            change[r] -= hessian[i * stride + r] * change[i]
