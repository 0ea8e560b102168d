"""Contract checks, for polyfm's own pieces and for yours.

Each check takes a spec, or an estimator, and raises an :class:`AssertionError` that says what is
wrong with it. Put one line into your tests for every loss, kernel, penalty, update rule or online
estimator that you add.
"""

from polyfm.testing._kernels import check_kernel
from polyfm.testing._losses import check_loss
from polyfm.testing._online import check_online, online_estimators
from polyfm.testing._penalties import check_penalty
from polyfm.testing._plain import plain
from polyfm.testing._solvers import check_solver
from polyfm.testing._updates import check_update

__all__ = [
    "check_kernel",
    "check_loss",
    "check_online",
    "check_penalty",
    "check_solver",
    "check_update",
    "online_estimators",
    "plain",
]
