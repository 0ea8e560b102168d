"""The lifted model: a bias, a linear term and a sum of products of m different factors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.data.rows import Rows
from polyfm.kernels import lifted
from polyfm.models._lifted_score import LiftedParameters, score_lifted_rows

_ROWS_PER_THREAD = 1024
"""Fewer are scored before another thread has started."""


@dataclass(frozen=True)
class Lifted:
    r"""A lifted model.

    .. math:: f(x) = b + \langle w, x \rangle + \sum_s K(u_s^1, \dots, u_s^m, [1, \dots, 1, x])

    with one of the kernels of :mod:`polyfm.kernels.lifted`.

    Parameters
    ----------
    kernel : Polynomial or ANOVA
        The kernel, at degree m.
    parameters : LiftedParameters
        The numbers.
    n_dummies : int
        Number of dummy features, q.
    """

    kernel: Any
    parameters: LiftedParameters
    n_dummies: int = 0

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return int(self.parameters.linear.shape[0])

    @property
    def rank(self) -> int:
        """Number of bases, r."""
        return int(self.parameters.table.shape[1])

    @property
    def degree(self) -> int:
        """Number of slots, m."""
        return int(self.parameters.table.shape[2])

    def scores(self, rows: Rows, n_jobs: int = 1) -> NDArray[np.float64]:
        """Return f(x) of every row."""
        n_jobs = max(1, min(n_jobs, rows.n_rows // _ROWS_PER_THREAD))
        out = np.empty(rows.n_rows)

        def score(first: int, last: int) -> None:
            cells = np.empty((self.rank, lifted.n_cells(self.kernel)))
            score_lifted_rows(
                self.kernel, self.parameters, self.n_dummies, rows, rows.numbers[first:last],
                cells, out[first:last],
            )  # fmt: skip

        bounds = np.linspace(0, rows.n_rows, n_jobs + 1).astype(np.int64)
        if n_jobs == 1:
            score(0, rows.n_rows)
        else:
            with ThreadPoolExecutor(n_jobs) as pool:
                list(pool.map(score, bounds[:-1], bounds[1:]))
        return out

    def weights_only(self) -> Lifted:
        """Return a copy that holds what prediction needs: all of it."""
        p = self.parameters
        return replace(self, parameters=LiftedParameters(*(block.copy() for block in p)))
