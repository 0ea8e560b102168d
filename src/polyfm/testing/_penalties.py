"""The contract of penalties: the proximal operator minimises what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from polyfm._jit import LANES
from polyfm.penalties import contract
from polyfm.testing._asserts import require, require_close

_STEPS = (1e-3, 0.1, 1.0, 7.5)
_POINTS = (-30.0, -2.0, -0.6, -1e-3, 0.0, 1e-3, 0.3, 1.0, 2.5, 30.0)
_SCALES = (0.01, 1.0, 40.0)
_HUGE = 1e12
"""Stands for infinity, with which a minimiser cannot reckon."""


def check_penalty(penalty: Any) -> None:
    """Check that a penalty keeps the contract of :mod:`polyfm.penalties.contract`.

    ``prox`` returns the minimiser that is found numerically, for lanes as for scalars; a step of 0
    leaves every coordinate that is allowed; ``prox_quotient`` is ``prox`` of quotients;
    ``subgradient`` is what ``prox`` takes off; the penalty is nowhere negative and least at 0.

    Parameters
    ----------
    penalty : NamedTuple
        The spec, ``ElasticNet(0.1, 0.2)`` for example.

    Raises
    ------
    AssertionError
        Where the contract is broken; the message says by what.

    Examples
    --------
    >>> from polyfm.penalties import ElasticNet
    >>> from polyfm.testing import check_penalty
    >>> check_penalty(ElasticNet(l1=0.1, l2=0.2))
    """
    points = np.array(_POINTS)
    values = np.asarray(contract.value(penalty, points), dtype=np.float64)
    require(values.shape == points.shape, f"value of {penalty} changes the shape of an array.")
    zero = float(contract.value(penalty, 0.0))
    require(np.all(values >= zero) and zero >= 0, f"{penalty} is less somewhere than at 0.")
    for v in _POINTS:
        _check_no_step(penalty, v)
        for step in _STEPS:
            _check_minimiser(penalty, v, step)
            _check_quotient(penalty, v, step)
            _check_subgradient(penalty, v, step)
    for step in _STEPS:
        _check_lanes(penalty, step)


def _check_no_step(penalty: Any, v: float) -> None:
    if np.isfinite(contract.value(penalty, v)):
        require_close(contract.prox(penalty, v, 0.0), v, 0.0, f"prox of {penalty} at step 0")


def _check_quotient(penalty: Any, v: float, step: float) -> None:
    for scale in _SCALES:
        got = float(contract.prox_quotient(penalty, v, step, scale))
        expected = float(contract.prox(penalty, v / scale, step / scale))
        what = f"prox_quotient of {penalty} at v={v}, step={step}, scale={scale}"
        require_close(got, expected, 1e-12 * (1.0 + abs(expected)), what)


def _check_subgradient(penalty: Any, v: float, step: float) -> None:
    if not np.isfinite(contract.value(penalty, v)):
        return
    slope = float(contract.subgradient(penalty, v))
    require(np.isfinite(slope), f"subgradient of {penalty} at {v} is {slope}.")
    require(v != 0.0 or slope == 0.0, f"subgradient of {penalty} at 0 must be 0, got {slope}.")
    got = float(contract.prox(penalty, v + step * slope, step))
    what = f"prox of {penalty} at v + step * subgradient(v) for v={v}, step={step}"
    require_close(got, v, 1e-12 * (1.0 + abs(v) + step * abs(slope)), what)


def _check_minimiser(penalty: Any, v: float, step: float) -> None:
    def objective(u: float) -> float:
        penalised = float(contract.value(penalty, u)) + (u - v) ** 2 / (2 * step)
        return min(penalised, _HUGE)

    got = float(contract.prox(penalty, v, step))
    reach = abs(v) + 1.0
    # A grid first, since a minimiser cannot find its way out of a plain of infinities.
    grid = np.linspace(-reach, reach, 2001)
    middle = int(np.argmin([objective(u) for u in grid]))
    bounds = (grid[max(middle - 1, 0)], grid[min(middle + 1, 2000)])
    best = minimize_scalar(objective, bounds=bounds, method="bounded", options={"xatol": 1e-10})
    what = f"prox of {penalty} at v={v}, step={step}"
    require(
        objective(got) <= best.fun + 1e-12 * (1.0 + best.fun),
        f"{what} is {got}, but {best.x} is better.",
    )
    # A minimum is flat: its place is known to half the digits.
    require_close(got, best.x, 1e-5 * reach, what)


def _check_lanes(penalty: Any, step: float) -> None:
    points = np.linspace(-2.0, 2.0, LANES)
    together = contract.prox(penalty, points, np.full(LANES, step))
    apart = [contract.prox(penalty, float(v), step) for v in points]
    require_close(together, apart, 0.0, f"prox of {penalty} on lanes")
    together = contract.subgradient(penalty, points)
    apart = [contract.subgradient(penalty, float(v)) for v in points]
    require_close(together, apart, 0.0, f"subgradient of {penalty} on lanes")
