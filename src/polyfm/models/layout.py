"""From a model's description to the shape of its table: which bases, degrees, dummy features."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.kernels import contract


@dataclass(frozen=True)
class Layout:
    """The shape of a factorized model, before there are any numbers.

    Parameters
    ----------
    kernel : NamedTuple
        Kernel spec at the highest degree.
    columns : dict of int to slice
        Columns of the table by degree; key 0 where a kernel has no degrees.
    degrees : ndarray of shape (m, k)
        1 where a basis takes part in a degree.
    n_dummies : int
        Dummy features.
    shared : bool
        Whether one matrix serves several degrees.
    """

    kernel: Any
    columns: dict[int, slice]
    degrees: NDArray[np.float64]
    n_dummies: int = 0
    shared: bool = False

    @property
    def rank(self) -> int:
        """Number of bases over all degrees, k."""
        return int(self.degrees.shape[1])

    def keeping(self, kept: NDArray[np.bool_]) -> Layout:
        """Return the layout of some of the bases, those that are True in ``kept``."""
        before = np.concatenate([[0], np.cumsum(kept)])
        columns = {
            degree: slice(int(before[part.start]), int(before[part.stop]))
            for degree, part in self.columns.items()
        }
        # Picking columns leaves them in the order of memory that compiled code does not expect.
        degrees = np.ascontiguousarray(self.degrees[:, kept])
        return replace(self, columns=columns, degrees=degrees)

    def start_scales(self, n_terms: float, spread: float) -> NDArray[np.float64]:
        r"""Return standard deviations for the start of each basis.

        They are such that the interactions of degree 2 of a row of N = ``n_terms`` ones have the
        standard deviation s = ``spread`` in all, and those of degree t have :math:`s^{2/t}`:
        :math:`k \binom{N}{t} \sigma^{2t} = s^{4/t}`. A product of more factors needs a bolder
        start, as its gradient is a product of one factor less.
        """
        scales = np.empty(self.rank)
        for degree, columns in self.columns.items():
            t = 2 if self.shared else max(degree, 1)
            k = max(columns.stop - columns.start, 1)
            log_combinations = sum(math.log(max(n_terms - i, 1.0) / (i + 1.0)) for i in range(t))
            log_ratio = 4.0 / t * math.log(spread) - math.log(k) - max(log_combinations, 0.0)
            scales[columns] = math.exp(0.5 / t * log_ratio)
        return scales


def lay_out(
    kernel: Any, order: int, rank: int, *, lower: str | None, linear: bool, inhomogeneous: bool
) -> Layout:
    """Lay out the bases of a model.

    Parameters
    ----------
    kernel : NamedTuple
        Kernel spec; its degree is set here.
    order : int
        Highest degree, m >= 1; 1 means no interactions.
    rank : int
        Bases per matrix, >= 0.
    lower : {"explicit", "augment", None}
        How degrees below m are modelled by a homogeneous kernel: by matrices of their own, by
        dummy features, or not at all.
    linear : bool
        Whether the model has a linear term of its own, so that no basis needs degree 1.
    inhomogeneous : bool
        Whether one matrix serves all degrees, each with a weight.
    """
    local = contract.at_degree(kernel, order)
    m = contract.n_degree_weights(local)
    if m == 0:
        return Layout(local, {0: slice(0, rank)}, np.zeros((0, rank)), shared=True)
    if order == 1:
        return Layout(local, {}, np.zeros((m, 0)))
    if inhomogeneous:
        degrees = np.ones((m, rank))
        degrees[0] = not linear
        return Layout(local, {order: slice(0, rank)}, degrees, shared=True)
    own = range(2, order + 1) if lower == "explicit" else [order]
    columns = {t: slice(i * rank, (i + 1) * rank) for i, t in enumerate(own)}
    degrees = np.zeros((m, rank * len(columns)))
    for t, part in columns.items():
        degrees[t - 1, part] = 1.0
    n_dummies = _n_dummies(local, order, linear) if lower == "augment" else 0
    return Layout(local, columns, degrees, n_dummies)


def _n_dummies(kernel: Any, order: int, linear: bool) -> int:
    """Count the ones to append so that a homogeneous kernel covers all lower degrees.

    The ANOVA kernel takes each at most once, so it needs one for each degree that is missing; the
    polynomial kernel, which has a single cell, may take one of them many times.
    """
    if contract.n_cells(kernel) == 1:
        return 1
    return order - 2 if linear else order - 1
