r"""A factorized model as a polynomial: what each basis adds to a combination of features.

For every kernel the weight of :math:`x_{j_1} \cdots x_{j_q}` with distinct features is

.. math:: W_{j_1 \dots j_q} = \sum_s c_s^{(q)} p_{j_1 s} \cdots p_{j_q s}

and only the coefficients c know kernel, degrees and dummy features: with :math:`e_n` the elementary
symmetric polynomials of the basis' dummy factors g,
:math:`c^{(q)} = \lambda \sum_{t \ge q} \theta_t\, e_{t-q}(g)` for the ANOVA kernel;
:math:`\lambda \sum_{t \ge q} \theta_t\, \frac{t!}{(t-q)!} (\sum_r g_r)^{t-q}` for the polynomial
one; :math:`\lambda` for all subsets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm.kernels import ANOVA, AllSubsets, Polynomial


class Block(NamedTuple):
    """A matrix of factors and what its bases add to combinations of one size."""

    factors: NDArray[Any]
    """(d, k)."""
    coefficients: NDArray[np.float64]
    """(k,)."""


def n_outputs(model: Any) -> int:
    """Return how many functions f a fitted model holds: one, or one per class."""
    model._check_is_fitted()
    return len(model._learners)


def blocks_of(model: Any, size: int, output: int) -> list[Block]:
    """Return the blocks that take part in combinations of ``size`` features.

    Raises
    ------
    TypeError
        For a kernel from outside the package, whose expansion is not known.
    """
    exported, layout = model._expansion
    blocks = []
    for key, columns in layout.columns.items():
        factors, dummies, lam = (
            np.asarray(_of_output(model, part[key], output))
            for part in (exported.factors, exported.dummy_factors, exported.weights)
        )
        theta = _of_output(model, exported.degree_weights, output)
        by_degree = layout.degrees[:, columns] * theta[:, None]
        coefficients = lam * _share(layout.kernel, size, by_degree, dummies)
        if coefficients.any():
            blocks.append(Block(factors, coefficients))
    return blocks


def coefficients_of(model: Any, output: int) -> NDArray[Any]:
    """Return the linear weights of one output."""
    return np.asarray(_of_output(model, model.coef_, output))


def weight_in(blocks: list[Block], columns: Sequence[int]) -> float:
    """Return what the blocks of its size add to the weight of one combination."""
    return sum(
        float(block.coefficients @ block.factors[columns].astype(np.float64).prod(axis=0))
        for block in blocks
    )


def intercept_of(model: Any, output: int) -> float:
    """Return the bias of one output."""
    return float(np.ravel(model.intercept_)[output])


def _of_output(model: Any, array: NDArray[Any], output: int) -> NDArray[Any]:
    return array[output] if n_outputs(model) > 1 else array


def _share(kernel: Any, size: int, by_degree: NDArray[Any], dummies: NDArray[Any]) -> Any:
    """Return c / lambda of each basis."""
    if isinstance(kernel, AllSubsets):
        return np.ones(dummies.shape[1])
    if not isinstance(kernel, ANOVA | Polynomial):
        raise TypeError(
            f"the interaction weights of the kernel {kernel!r} are not known: inspection covers "
            "the kernels that polyfm exports."
        )
    degrees = range(max(size, 1), len(by_degree) + 1)
    if isinstance(kernel, ANOVA):
        e = _elementary_symmetric(dummies, len(by_degree))
        return sum((by_degree[t - 1] * e[t - size] for t in degrees), np.zeros(e.shape[1]))
    total = dummies.sum(axis=0, dtype=np.float64)
    return sum(
        (by_degree[t - 1] * math.perm(t, size) * total ** (t - size) for t in degrees),
        np.zeros(len(total)),
    )


def _elementary_symmetric(dummies: NDArray[Any], highest: int) -> NDArray[np.float64]:
    """Return e_0 .. e_highest of each column, (highest + 1, k)."""
    e = np.zeros((highest + 1, dummies.shape[1]))
    e[0] = 1.0
    for g in dummies:
        e[1:] += g * e[:-1]
    return e


def resolve_outputs(model: Any, class_index: int | None) -> list[int]:
    """Return the outputs that ``class_index`` stands for; None is all of them."""
    n = n_outputs(model)
    if class_index is None:
        return list(range(n))
    if not 0 <= class_index < n:
        raise ValueError(
            f"class_index must be None or from 0 to {n - 1}, got {class_index}: the model has "
            f"{n} output{'s' * (n > 1)} (two classes share one)."
        )
    return [int(class_index)]


def names_of(model: Any, feature_names: Sequence[str] | NDArray[Any] | None) -> list[str]:
    """Return a name for each feature: those given, those seen in ``fit``, or ``x0``, ``x1``, ...

    Raises
    ------
    ValueError
        If the number of names is not the number of features.
    """
    d = int(model.n_features_in_)
    if feature_names is None:
        feature_names = getattr(model, "feature_names_in_", None)
    if feature_names is None:
        return [f"x{j}" for j in range(d)]
    if len(feature_names) != d:
        raise ValueError(f"feature_names has {len(feature_names)} names for {d} features.")
    return [str(name) for name in feature_names]


def resolve_features(
    model: Any, features: Sequence[int | str], feature_names: Sequence[str] | None
) -> list[int]:
    """Return the column numbers of features given by number or name.

    Raises
    ------
    ValueError
        For a feature that does not exist or occurs twice.
    """
    d = int(model.n_features_in_)
    names: dict[str, int] = {}
    if any(isinstance(feature, str) for feature in features):
        names = {name: j for j, name in enumerate(names_of(model, feature_names))}
    columns = []
    for feature in features:
        if isinstance(feature, str) and feature not in names:
            raise ValueError(f"there is no feature {feature!r}; give its name or column number.")
        column = names[feature] if isinstance(feature, str) else int(feature)
        if not 0 <= column < d:
            raise ValueError(f"feature {column} is out of range: the model has {d} features.")
        columns.append(column)
    twice = sorted({c for c in columns if columns.count(c) > 1})
    if twice:
        raise ValueError(f"features must be distinct, but {twice[0]} occurs twice.")
    return columns
