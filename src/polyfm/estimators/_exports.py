"""Fitted parameters as users see them: in the target's unit, by degree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.estimators._target import TargetScale
from polyfm.models.layout import Layout
from polyfm.solvers.stochastic import StochasticLearner


@dataclass(frozen=True)
class Exported:
    """The parameters of the model's formula; with several learners stacked along a first axis."""

    intercept: Any
    coef: NDArray[Any]
    factors: dict[int, NDArray[Any]]
    dummy_factors: dict[int, NDArray[Any]]
    weights: dict[int, NDArray[Any]]
    degree_weights: NDArray[Any]


def export(
    learners: list[StochasticLearner], layout: Layout, target: TargetScale, free_weights: bool
) -> Exported:
    """Bring parameters to the target's unit.

    The unit s goes into the factors of a homogeneous kernel, as :math:`s^{1/t}`, so that factors
    alone make the interaction weights; and into the basis weights elsewhere.
    """
    into_weights = layout.shared or free_weights
    d = learners[0].model.n_features
    parameters = [learner.model.parameters for learner in learners]
    tables = np.stack([p.table[:, 0] for p in parameters]) if layout.rank else None
    factors, dummies, weights = {}, {}, {}
    for degree, columns in layout.columns.items():
        unit = 1.0 if into_weights else target.scale ** (1.0 / degree)
        own = tables[:, :, columns] * unit if tables is not None else np.zeros(
            (len(learners), d + layout.n_dummies, 0), parameters[0].linear.dtype)  # fmt: skip
        factors[degree] = _squeeze(own[:, :d])
        dummies[degree] = _squeeze(own[:, d:])
        lam = np.stack([p.weights[0, columns] for p in parameters])
        weights[degree] = _squeeze(lam * (target.scale if into_weights else 1.0))
    bias = np.array([p.bias[0, 0] for p in parameters], dtype=np.float64)
    intercept = target.offset + target.scale * bias if target.applies else bias
    coef = np.stack([p.linear[:, 0] for p in parameters]) * target.scale
    theta = np.stack([p.theta[0] * p.degrees.any(axis=1) for p in parameters])
    return Exported(
        float(intercept[0]) if len(learners) == 1 else intercept,
        _squeeze(coef),
        factors,
        dummies,
        weights,
        _squeeze(theta),
    )


def _squeeze(stacked: NDArray[Any]) -> NDArray[Any]:
    return stacked[0] if len(stacked) == 1 else stacked
