"""The contract of update rules: where a coordinate starts and how it moves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm._jit import LANES
from polyfm.penalties import L2, Box, ElasticNet
from polyfm.testing._asserts import require, require_close
from polyfm.updates import contract

_WEIGHTS = (-2.0, -1e-3, 0.0, 0.5, 30.0)
_N_STEPS = 2000
_NO_PENALTY = L2(0.0)


def check_update(rule: Any) -> None:
    """Check that an update rule keeps the contract of :mod:`polyfm.updates.contract`.

    A coordinate starts where it is told to; without gradient and penalty it stays (and with its
    penalty, too, if the rule sums gradients and so pays it once); it goes down a parabola, in any
    unit of its column; a penalty draws it to 0; eight lanes move as eight scalars would, and touch
    nothing else.

    Parameters
    ----------
    rule : NamedTuple
        The spec, ``AdaGrad(0.1, 1.0)`` for example, with a learning rate at which it can learn.

    Raises
    ------
    AssertionError
        Where the contract is broken; the message says by what.

    Examples
    --------
    >>> from polyfm.testing import check_update
    >>> from polyfm.updates import AdaGrad
    >>> check_update(AdaGrad(learning_rate=0.1))
    """
    _check_rates(rule)
    sums = contract.sums_gradients(rule)
    require(sums in (True, False), f"sums_gradients of {rule} must be True or False, got {sums!r}.")
    for weight in _WEIGHTS:
        _check_begin(rule, weight)
        _check_rest(rule, weight)
        if sums:
            _check_start(rule, weight)
    _check_descent(rule)
    _check_unit(rule)
    _check_shrinkage(rule)
    for count in (1, 3, LANES):
        _check_lanes(rule, count)


def _check_rates(rule: Any) -> None:
    rates = [contract.rate(rule, float(t)) for t in (0, 1, 10, 10**6)]
    require(np.all(np.isfinite(rates)), f"rates of {rule} are not finite: {rates}.")
    require(min(rates) > 0, f"rates of {rule} must be > 0, got {rates}.")
    require(contract.unit_rate(rule, 1.0) == 1.0, f"unit_rate of {rule} must be 1 for unit 1.")


def _begun(
    rule: Any, weight: float, unit: float = 1.0, penalty: Any = _NO_PENALTY, share: float = 1.0
) -> Any:
    """Return the memory of one coordinate at its start: one number per plane."""
    memory = np.zeros(contract.n_planes(rule))
    contract.begin(rule, penalty, memory, 0, 1, 1, weight, unit, share)
    return memory


def _check_begin(rule: Any, weight: float) -> None:
    for penalty in (_NO_PENALTY, ElasticNet(0.1, 0.3)):
        for unit in (1.0, 1e-3, 40.0):
            memory = _begun(rule, weight, unit, penalty)
            require(np.all(np.isfinite(memory)), f"{rule} begins with {memory}.")
            require_close(
                memory[0], weight, 1e-12 * abs(weight), f"{rule} begins at another weight"
            )


def _check_rest(rule: Any, weight: float) -> None:
    memory = _begun(rule, weight)
    for t in range(3):
        rate = contract.rate(rule, float(t))
        contract.step(rule, _NO_PENALTY, memory, 0, 1, 1, 0.0, rate, 0.0)
        require_close(
            memory[0], weight, 1e-12 * abs(weight), f"{rule} moves without gradient and penalty"
        )


def _check_start(rule: Any, weight: float) -> None:
    """Check that the first step of a rule that sums gradients starts from the weight, too."""
    for penalty in (L2(3.0), ElasticNet(0.7, 0.3), Box(50.0)):
        for unit, share in ((1.0, 1.0), (1e-3, 2.5), (40.0, 1.0)):
            memory = _begun(rule, weight, unit, penalty, share)
            rate = contract.rate(rule, 0.0) * contract.unit_rate(rule, unit)
            contract.step(rule, penalty, memory, 0, 1, 1, 0.0, rate, share)
            # The penalty is taken off what may be a much larger sum.
            slack = 1e-12 * (abs(weight) + rate)
            require_close(memory[0], weight, slack, f"{rule} with {penalty} does not start there")


def _descend(rule: Any, scale: float, n_steps: int = _N_STEPS) -> NDArray[np.float64]:
    r"""Go down :math:`\frac12 (s w - 1)^2` from w = 0, in a column of values s."""
    unit = 1.0 / scale
    memory, path = _begun(rule, 0.0, unit), np.empty(n_steps)
    for t in range(n_steps):
        rate = contract.rate(rule, float(t)) * contract.unit_rate(rule, unit)
        g = scale * (scale * memory[0] - 1.0)
        contract.step(rule, _NO_PENALTY, memory, 0, 1, 1, g, rate, 1.0)
        path[t] = memory[0]
    return path


def _check_descent(rule: Any) -> None:
    distance = np.abs(_descend(rule, 1.0) - 1.0)
    require(np.all(np.isfinite(distance)), f"{rule} diverges on a parabola.")
    require(
        distance[-1] < 0.5,
        f"{rule} is still {distance[-1]:.3g} from the minimum, having started 1 from it, after "
        f"{_N_STEPS} steps on a parabola.",
    )


def _check_unit(rule: Any) -> None:
    here = _descend(rule, 1.0, 50)
    for scale in (1e-2, 300.0):
        there = _descend(rule, scale, 50) * scale
        require_close(there, here, 1e-9, f"{rule} in a column of unit {scale}")


def _check_shrinkage(rule: Any) -> None:
    for penalty in (L2(0.5), ElasticNet(0.5, 0.0)):
        for weight in (-1.0, 1.0):
            memory = _begun(rule, weight)
            for t in range(20):
                before, rate = memory[0], contract.rate(rule, float(t))
                contract.step(rule, penalty, memory, 0, 1, 1, 0.0, rate, 1.0)
                require(
                    abs(memory[0]) <= abs(before) and memory[0] * weight >= 0,
                    f"{rule} with {penalty} goes from {before} to {memory[0]}, not towards 0.",
                )
            require(abs(memory[0]) < 1.0, f"{rule} ignores its penalty {penalty}.")


def _check_lanes(rule: Any, count: int) -> None:
    """Check ``count`` coordinates in the midst of a row against one after the other."""
    penalty, row, at = ElasticNet(0.05, 0.1), LANES + 4, 2
    random = np.random.default_rng(count)
    together = random.uniform(0.5, 1.0, (contract.n_planes(rule), row))
    outside = np.delete(together, range(at, at + count), axis=1)
    weights = random.normal(size=LANES)
    contract.begin(rule, penalty, together.reshape(-1), at, row, count, weights, 0.5, 0.5)
    apart = [_begun(rule, float(weight), 0.5, penalty, 0.5) for weight in weights[:count]]
    for t in range(4):
        g, rate = random.normal(size=LANES), contract.rate(rule, float(t))
        contract.step(rule, penalty, together.reshape(-1), at, row, count, g, rate, 0.5)
        for lane, memory in enumerate(apart):
            contract.step(rule, penalty, memory, 0, 1, 1, float(g[lane]), rate, 0.5)
    inside = together[:, at : at + count]
    wanted = np.transpose(apart)
    # Powers of lanes and of scalars differ in the last digit.
    require_close(inside, wanted, 1e-14 * (1.0 + np.abs(wanted)), f"{rule} on {count} lanes")
    untouched = np.delete(together, range(at, at + count), axis=1)
    require_close(untouched, outside, 0.0, f"{rule} writes beside its {count} coordinates")
