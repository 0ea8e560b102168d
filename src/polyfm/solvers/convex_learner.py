"""A convex model between two fits: what prediction, inspection and a warm start need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from polyfm.kernels import ANOVA, Polynomial
from polyfm.models._score import Parameters
from polyfm.models.factorized import Factorized, aligned_zeros
from polyfm.models.layout import Layout
from polyfm.solvers._convex import Point


@dataclass(frozen=True)
class ConvexLearner:
    """A factorized model of degree 2, and the penalty or bound it was learnt with.

    Parameters
    ----------
    model : Factorized
        In double precision.
    size : float
        The penalty of the nuclear norm, or the bound of the trace, in the unit of the features.
    """

    model: Factorized
    size: float

    @classmethod
    def of(cls, point: Point, size: float, layout: Layout) -> Self:
        """Make a model of a point of no more bases than the layout has."""
        d, rank = len(point.linear), layout.rank
        table = aligned_zeros((d, 1, rank), np.float64)
        table[:, 0, : point.rank] = point.bases
        weights = np.zeros((1, rank))
        weights[0, : point.rank] = point.weights
        parameters = Parameters(
            bias=np.full((1, 1), point.bias),
            linear=point.linear[:, None].copy(),
            table=table,
            weights=weights,
            theta=np.ones((1, 2)),
            degrees=layout.degrees,
        )
        return cls(Factorized(layout.kernel, layout.columns, parameters), size)

    @property
    def point(self) -> Point:
        """The model as the solver sees it."""
        p = self.model.parameters
        used: NDArray[np.bool_] = p.weights[0] != 0
        bias, linear = float(p.bias[0, 0]), p.linear[:, 0].copy()
        return Point(bias, linear, p.weights[0, used], p.table[:, 0, used])


def layout_of(rank: int, *, diagonal: bool) -> Layout:
    """Lay out so many bases of degree 2."""
    degrees = np.zeros((2, rank))
    degrees[1] = 1.0
    return Layout((Polynomial if diagonal else ANOVA)(2), {2: slice(0, rank)}, degrees)
