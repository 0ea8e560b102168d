"""The contract of losses: derivative, convexity, bounds, overflow, units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from polyfm.losses import contract
from polyfm.testing._asserts import require, require_close

_LARGE = (1e2, 1e4, 1e10, 1e100, 1e300)
_CANDIDATES: tuple[tuple[float, ...], ...] = (
    (-3.7, -1.0, 0.0, 0.4, 1.0, 12.5),
    (0.0, 1.0, 2.0, 7.0),
    (-1.0, 1.0),
)
"""Targets to try: numbers, counts, labels. A loss is checked with the first that it accepts."""


def check_loss(loss: Any, targets: ArrayLike | None = None, *, seed: int = 0) -> None:
    """Check that a loss keeps the contract of :mod:`polyfm.losses.contract`.

    Its gradient is the derivative of its value; it is convex and bends no more than its curvature;
    nothing overflows up to predictions of 1e300; the best constant, the loss in another unit and
    the inverse link fit to the value.

    Parameters
    ----------
    loss : NamedTuple
        The spec, ``Huber(delta=2.0)`` for example.
    targets : array, optional
        Targets to check it with; by default numbers, counts or labels, whichever it accepts.
    seed : int, default=0
        Of the predictions that are tried.

    Raises
    ------
    AssertionError
        Where the contract is broken; the message says by what.

    Examples
    --------
    >>> from polyfm.losses import Huber
    >>> from polyfm.testing import check_loss
    >>> check_loss(Huber(delta=2.0))
    """
    y = np.unique(_accepted_targets(loss) if targets is None else np.asarray(targets, float))
    problem = contract.invalid_targets(loss, y)
    require(not problem, f"{loss} refuses the targets {y}: {problem}")
    p = np.random.default_rng(seed).normal(scale=3.0, size=60)
    for target in map(float, y):
        _check_gradient(loss, target, p)
        _check_convexity(loss, target, p)
        _check_curvature(loss, target, p)
        _check_extremes(loss, target)
    _check_best_constant(loss, y)
    _check_units(loss, y, p)
    _check_inverse_link(loss, y)


def _accepted_targets(loss: Any) -> NDArray[np.float64]:
    for candidate in map(np.array, _CANDIDATES):
        if not contract.invalid_targets(loss, candidate):
            return candidate
    raise AssertionError(f"{loss} accepts neither numbers nor counts nor labels: give targets=.")


def _values(loss: Any, y: float, p: NDArray[Any]) -> NDArray[np.float64]:
    return np.array([contract.value(loss, y, float(q)) for q in p], dtype=np.float64)


def _gradients(loss: Any, y: float, p: NDArray[Any]) -> NDArray[np.float64]:
    return np.array([contract.gradient(loss, y, float(q)) for q in p], dtype=np.float64)


def _check_gradient(loss: Any, y: float, p: NDArray[Any]) -> None:
    step = 1e-6
    slope = (_values(loss, y, p + step) - _values(loss, y, p - step)) / (2 * step)
    allowed = 1e-5 * (1.0 + np.abs(slope) + np.abs(_values(loss, y, p)))
    require_close(_gradients(loss, y, p), slope, allowed, f"gradient of {loss} for y={y}")


def _check_convexity(loss: Any, y: float, p: NDArray[Any]) -> None:
    """Compare the middle of each pair of predictions with the chord."""
    left, right = p[::2], p[1::2]
    chord = 0.5 * (_values(loss, y, left) + _values(loss, y, right))
    middle = _values(loss, y, 0.5 * (left + right))
    above = middle - chord - 1e-12 * (1.0 + np.abs(chord))
    require(
        np.all(above <= 0), f"{loss} is not convex for y={y}: it lies {above.max()} above a chord."
    )


def _check_curvature(loss: Any, y: float, p: NDArray[Any]) -> None:
    bound = contract.curvature(loss)
    require(bound > 0, f"curvature of {loss} must be > 0, got {bound}.")
    if np.isinf(bound):
        return
    left, right = p[::2], p[1::2]
    bend = np.abs(_gradients(loss, y, right) - _gradients(loss, y, left))
    excess = bend - bound * np.abs(right - left) * (1 + 1e-9)
    require(
        np.all(excess <= 1e-12),
        f"the gradient of {loss} changes faster than its curvature {bound} for y={y}.",
    )


def _check_extremes(loss: Any, y: float) -> None:
    """Check gradients everywhere, and values wherever convexity says that they are finite."""
    at_zero = float(contract.value(loss, y, 0.0))
    for p in (sign * size for size in _LARGE for sign in (-1.0, 1.0)):
        with np.errstate(over="ignore"):
            value = float(contract.value(loss, y, p))
            slope = float(contract.gradient(loss, y, p))
        where = f"for y={y}, p={p:g}"
        require(np.isfinite(slope), f"gradient of {loss} is {slope} {where}.")
        require(not np.isnan(value), f"value of {loss} is NaN {where}.")
        # The tangent at p lies below the loss at 0.
        bound = at_zero + slope * p
        if np.isfinite(bound):
            rounding = 1e-9 * (1.0 + abs(at_zero) + abs(slope * p))
            require(value <= bound + rounding, f"value of {loss} is {value} {where}, too large.")


def _check_best_constant(loss: Any, y: NDArray[np.float64]) -> None:
    # Uneven weights, so that a constant that ignores them is found out.
    target = np.repeat(y, 50)
    weight = np.linspace(0.1, 2.0, len(target))

    def total(p: float) -> float:
        values = [contract.value(loss, float(t), p) for t in target]
        return float(np.average(values, weights=weight))

    constant = float(contract.best_constant(loss, target, weight))
    require(np.isfinite(constant), f"best_constant of {loss} is {constant}.")
    best = minimize_scalar(total, bounds=(-50.0, 50.0), method="bounded")
    around = min(total(best.x - 1.0), total(best.x + 1.0)) - best.fun
    excess = total(constant) - best.fun
    require(
        excess <= 0.2 * around + 1e-6,
        f"best_constant of {loss} has a mean loss {excess:g} above the least one.",
    )


def _check_units(loss: Any, y: NDArray[np.float64], p: NDArray[Any]) -> None:
    """Check that the loss in another unit is a multiple of the loss, the same for all rows."""
    for unit in (0.01, 2.5, 1e3):
        scaled = contract.scaled(loss, unit)
        if scaled is None:
            return
        own = np.concatenate([_values(loss, unit * t, unit * p) for t in map(float, y)])
        other = np.concatenate([_values(scaled, t, p) for t in map(float, y)])
        factor = own.sum() / other.sum()
        require_close(
            other * factor, own, 1e-9 * own.max(), f"{scaled} is not {loss} in units of {unit}"
        )


def _check_inverse_link(loss: Any, y: NDArray[np.float64]) -> None:
    raw = np.array([-1e300, -1e4, -30.0, -1.0, 0.0, 1.0, 30.0, 1e4, 1e300])
    with np.errstate(over="ignore"):
        mean = np.asarray(contract.inverse_link(loss, raw))
    require(mean.shape == raw.shape, f"inverse_link of {loss} changes the shape of an array.")
    require(np.all(np.isfinite(mean)), f"inverse_link of {loss} is not finite: {mean}.")
    require(np.all(np.diff(mean) >= 0), f"inverse_link of {loss} falls somewhere: {mean}.")
    if set(y) == {-1.0, 1.0}:
        inside = (mean >= 0) & (mean <= 1)
        require(np.all(inside), f"inverse_link of {loss} is no probability: {mean}.")
    elif y.min() >= 0:
        require(np.all(mean >= 0), f"inverse_link of {loss} is negative for counts: {mean}.")
