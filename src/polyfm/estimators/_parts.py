"""From an estimator's parameters to the specs and settings that solvers understand."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import cpu_count

from polyfm._jit import LANES
from polyfm._registry import find_spec, named_specs
from polyfm.estimators._numbers import check_number
from polyfm.estimators._strengths import Strength, check_strengths, find_strength, read_fields
from polyfm.kernels import ANOVA, columns
from polyfm.kernels import contract as kernels
from polyfm.losses import contract as losses
from polyfm.models.layout import Layout, lay_out
from polyfm.penalties import L2, Box, ElasticNet
from polyfm.solvers._epoch import Penalties, Switches
from polyfm.solvers.learner import Learner, Settings
from polyfm.solvers.stochastic import StochasticLearner
from polyfm.updates import SGD, AdaGrad, FTRLProximal
from polyfm.updates import contract as updates

_INHOMOGENEOUS = "inhomogeneous-anova"
_SPREAD = 0.005
"""Standard deviation of the interaction term at the start, in units of the target's."""
_SPREAD_ALL_SUBSETS = 0.3
_AUTO_BETA = 2.0
_USUAL_ALPHA = 1.0
"""Penalty of the fields that a mapping leaves out."""


def check_parameters(estimator: Any, besides: tuple[str, ...] = ()) -> None:
    """Raise a ValueError or TypeError that names the first parameter with an impossible value.

    The counts among the parameters that ``besides`` names are checked elsewhere.
    """
    p = estimator
    for name in ("order", "max_iter", "n_iter_no_change"):
        if name not in besides:
            _check_number(p, name, Integral, least=1)
    _check_number(p, "rank", Integral, least=0)
    _check_number(p, "block_size", Integral, least=1, most=LANES)
    check_strengths("alpha", p.alpha, allows_auto=False)
    check_strengths("beta", p.beta, allows_auto=True)
    _check_number(p, "learning_rate", Real, above=0)
    for name in ("tol", "power_t", "verbose"):
        _check_number(p, name, Real, least=0)
    _check_number(p, "l1_ratio", Real, least=0, most=1)
    _check_number(p, "validation_fraction", Real, above=0, below=1)
    if p.init_scale != "auto":
        _check_number(p, "init_scale", Real, above=0)
    _check_choice(p, "fit_weights", (False, True, "signs"))
    _check_choice(p, "fit_lower", ("explicit", "augment", None))
    _check_choice(p, "penalty", ("l2", "l1", "elasticnet"))
    _check_choice(p, "schedule", ("constant", "invscaling", "optimal"))
    check_early_stopping(p.early_stopping)


def check_early_stopping(value: Any) -> None:
    """Raise a ValueError for what does not say whether to stop early."""
    if not isinstance(value, bool | np.bool_) and value != "auto":
        raise ValueError(f"early_stopping must be True, False or 'auto', got {value!r}.")


def _check_number(estimator: Any, name: str, kind: type, **bounds: float) -> None:
    check_number(name, getattr(estimator, name), kind, **bounds)


def _check_choice(estimator: Any, name: str, choices: tuple[Any, ...]) -> None:
    value = getattr(estimator, name)
    if value not in choices:
        raise ValueError(f"{name} must be one of {choices}, got {value!r}.")


def find_learner(estimator: Any) -> type[Learner]:
    """Return the class of learner that the solver asks for."""
    if estimator._solver == "cd":
        from polyfm.solvers.coordinate_descent import CoordinateLearner

        _check_descent(estimator)
        return CoordinateLearner
    if estimator._solver == "lbfgs":
        from polyfm.solvers.quasi_newton import QuasiNewtonLearner

        return QuasiNewtonLearner
    return StochasticLearner


def _check_descent(estimator: Any) -> None:
    """Raise a ValueError where coordinate descent has no bound to minimise."""
    if not math.isfinite(losses.curvature(find_loss(estimator))):
        raise ValueError(
            f"solver='cd' needs a loss whose curvature is bounded, and loss={estimator.loss!r} has "
            "none: use solver='adagrad'."
        )
    kernel = find_layout(estimator).kernel
    if type(kernel) not in columns.n_row_cells.table:
        raise ValueError(
            f"solver='cd' needs a kernel that is affine in each factor, and kernel="
            f"{estimator.kernel!r} is not: use solver='adagrad' or 'lbfgs', or a lifted "
            "PolynomialNetworkRegressor or PolynomialNetworkClassifier."
        )


def learns_row_by_row(estimator: Any) -> bool:
    """Say whether the solver can learn from a few rows at a time."""
    return estimator._solver not in ("cd", "lbfgs")


_STRUCTURE = (
    "order",
    "rank",
    "kernel",
    "fit_lower",
    "fit_linear",
    "fit_intercept",
    "fit_weights",
    "loss",
)


def structure_of(estimator: Any) -> dict[str, Any]:
    """Return what shapes a model, so that training cannot go on when it changes."""
    solver = estimator._solver
    name = solver if isinstance(solver, str) else type(solver).__name__
    own = (name for name in ("lifted", "start") if hasattr(estimator, name))
    shapes = (*_STRUCTURE, *own)
    return {**{shape: getattr(estimator, shape) for shape in shapes}, "solver": name}


def check_same_structure(estimator: Any, before: dict[str, Any]) -> None:
    """Raise a ValueError that names a parameter which shapes the model and has changed."""
    check_unchanged(before, structure_of(estimator))


def check_unchanged(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise a ValueError that names a parameter which shapes the model and has changed."""
    for name, value in now.items():
        if value != before[name]:
            raise ValueError(
                f"{name} has changed from {before[name]!r} to {value!r} since the last fit, so "
                "training cannot go on from it: call fit with warm_start=False to start anew."
            )


def n_threads(n_jobs: int | None) -> int:
    """Resolve ``n_jobs`` as joblib does: None is 1, -1 all cores."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None, a positive number or -1, got {n_jobs!r}.")
    return int(n_jobs) if n_jobs > 0 else max(1, cpu_count() + 1 + int(n_jobs))


def find_loss(estimator: Any) -> Any:
    """Return the loss spec the estimator asks for."""
    return find_spec(estimator.loss, named_specs("polyfm.losses"), "loss", losses.value)


def find_layout(estimator: Any) -> Layout:
    """Return the layout of the bases the estimator asks for."""
    known = {**named_specs("polyfm.kernels", "-"), _INHOMOGENEOUS: ANOVA}
    kernel = find_spec(estimator.kernel, known, "kernel", kernels.absorb)
    return lay_out(
        kernel,
        int(estimator.order),
        int(estimator.rank),
        lower=estimator.fit_lower,
        linear=bool(estimator.fit_linear),
        inhomogeneous=estimator.kernel == _INHOMOGENEOUS,
    )


def find_settings(
    estimator: Any,
    loss: Any,
    layout: Layout,
    *,
    n_rows: int,
    n_features: int,
    n_terms: float,
    seed: int,
) -> Settings:
    """Return what the stochastic solver needs.

    ``n_terms`` is the mean number of non-zeros of a row. The more meet, the stronger the automatic
    penalty and the more cautious the start and the first steps.

    Raises
    ------
    ValueError, TypeError
        If ``alpha``, ``beta`` or ``fields`` do not fit each other or the number of columns.
    """
    n_terms = max(n_terms + layout.n_dummies, 1.0)
    alpha, beta = _strengths(estimator, n_features, n_terms)
    m = layout.degrees.shape[0]
    first = int(np.argmax(layout.degrees.any(axis=1))) if layout.rank and m else m
    learns = estimator.fit_weights is not False and estimator.fit_weights != "signs"
    learns_theta = learns and estimator.kernel == _INHOMOGENEOUS
    learns_weights = learns and estimator.kernel != _INHOMOGENEOUS
    rule = _rule(estimator, alpha.base, n_terms, n_rows)
    on_one_thread = rule is not None and updates.sums_gradients(rule)
    return Settings(
        loss=loss,
        rule=rule,
        penalties=Penalties(
            bias=L2(0.0),
            linear=_penalty(estimator, alpha.base),
            factors=_penalty(estimator, beta.base),
            # The scale of a basis belongs to its factors, which are penalised.
            weights=Box(1.0),
            theta=L2(beta.base),
        ),
        switches=Switches(
            bool(estimator.fit_intercept),
            bool(estimator.fit_linear),
            learns_weights,
            # The first degree's weight is fixed: a common factor of all belongs to the table.
            first + 1 if learns_theta else m,
        ),
        start_scales=_start_scales(estimator, layout, n_terms),
        seed=seed,
        n_jobs=1 if on_one_thread else n_threads(estimator.n_jobs),
        block_size=int(estimator.block_size),
        signs=estimator.fit_weights == "signs" or learns_weights,
        linear_strengths=alpha.multipliers,
        factor_strengths=beta.multipliers,
    )


def _strengths(estimator: Any, n_features: int, n_terms: float) -> tuple[Strength, Strength]:
    """Return the penalties of the linear weights and of the factors."""
    auto_beta = _AUTO_BETA * math.sqrt(max(int(estimator.rank), 1) * n_terms)
    fields = read_fields(estimator.fields, n_features)
    return (
        find_strength("alpha", estimator.alpha, _USUAL_ALPHA, fields, n_features),
        find_strength("beta", estimator.beta, auto_beta, fields, n_features),
    )


def _penalty(estimator: Any, strength: float) -> Any:
    if estimator.penalty == "l2":
        return L2(strength)
    ratio = 1.0 if estimator.penalty == "l1" else float(estimator.l1_ratio)
    return ElasticNet(strength * ratio, strength * (1.0 - ratio))


def _rule(estimator: Any, alpha: float, n_terms: float, n_rows: int) -> Any:
    if not learns_row_by_row(estimator):
        return None
    rate = float(estimator.learning_rate)
    if estimator._solver == "adagrad":
        return AdaGrad(rate, n_terms)
    if estimator._solver == "ftrl":
        return FTRLProximal(rate, math.sqrt(n_terms), 0.0)
    if estimator._solver == "sgd":
        if estimator.schedule == "constant":
            return SGD(rate, 0.0, 0.0)
        if estimator.schedule == "invscaling":
            return SGD(rate, 1.0, float(estimator.power_t))
        # The step of a strongly convex problem: the penalty's curvature per row is alpha / n.
        return SGD(rate, rate * alpha / n_rows, 1.0)
    return find_spec(estimator._solver, named_specs("polyfm.updates", ""), "solver", updates.step)


def _start_scales(estimator: Any, layout: Layout, n_terms: float) -> Any:
    if estimator.init_scale != "auto":
        return np.full(layout.rank, float(estimator.init_scale))
    if kernels.n_degree_weights(layout.kernel) == 0:
        return np.full(layout.rank, _SPREAD_ALL_SUBSETS / math.sqrt(n_terms * max(layout.rank, 1)))
    return layout.start_scales(n_terms, _SPREAD)
