"""The factorized model: a bias, a linear term and a sum of weighted kernels."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polyfm._jit import LANES
from polyfm.data.rows import Rows
from polyfm.kernels import contract
from polyfm.models._score import CACHE_LINE, Parameters, Plan, score_rows

_HUGE_PAGE = 1 << 21
"""Bytes of the pages that systems give to large arrays."""
_ROWS_PER_THREAD = 1024
"""Fewer are scored before another thread has started."""


@dataclass(frozen=True)
class Factorized:
    r"""A factorized model.

    .. math:: f(x) = b + \langle w, x \rangle + \sum_s \lambda_s K(p_s, [1, \dots, 1, x])

    Parameters
    ----------
    kernel : NamedTuple
        A spec of :mod:`polyfm.kernels`.
    columns : dict of int to slice
        The columns of the table that belong to each degree; one entry with key 0 where bases are
        not bound to one degree.
    parameters : Parameters
        The numbers.
    n_dummies : int
        Number of dummy features, r.
    """

    kernel: Any
    columns: dict[int, slice]
    parameters: Parameters
    n_dummies: int = 0

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return int(self.parameters.linear.shape[0])

    @property
    def rank(self) -> int:
        """Number of bases over all degrees, k."""
        return int(self.parameters.table.shape[2])

    @property
    def plan(self) -> Plan:
        """The walk through the bases, at most eight at a time."""
        degrees = self.parameters.degrees
        chunks = [
            (_highest_degree(degrees[:, c : c + LANES]), c, min(LANES, self.rank - c))
            for c in range(0, self.rank, LANES)
        ]
        chunks_array = np.array(chunks, dtype=np.int64).reshape(-1, 3)
        return Plan(chunks_array, self.n_dummies, self.n_features)

    def work_cells(self, longest_row: int) -> NDArray[Any]:
        """Allocate cells for rows of up to ``longest_row`` non-zeros."""
        per_chunk = (longest_row + self.n_dummies + 1) * contract.n_cells(self.kernel)
        n_chunks = -(-self.rank // LANES)
        m = self.parameters.degrees.shape[0]
        room = n_chunks * (per_chunk + m) + contract.n_cells(self.kernel) + 1
        return aligned_zeros((room * LANES,), self.parameters.table.dtype)

    def scores(self, rows: Rows, n_jobs: int = 1) -> NDArray[Any]:
        """Return f(x) of every row, in the model's precision."""
        n_jobs = max(1, min(n_jobs, rows.n_rows // _ROWS_PER_THREAD))
        out = np.empty(rows.n_rows, dtype=self.parameters.table.dtype)
        longest, plan = rows.longest, self.plan

        def score(first: int, last: int) -> None:
            cells = self.work_cells(longest)
            score_rows(
                self.kernel, self.parameters, plan, rows, rows.numbers[first:last],
                cells, out[first:last],
            )  # fmt: skip

        bounds = np.linspace(0, rows.n_rows, n_jobs + 1).astype(np.int64)
        if n_jobs == 1:
            score(0, rows.n_rows)
        else:
            with ThreadPoolExecutor(n_jobs) as pool:
                list(pool.map(score, bounds[:-1], bounds[1:]))
        return out

    def weights_only(self) -> Factorized:
        """Return a copy that holds one plane: what prediction needs and no more."""
        p = self.parameters
        return replace(
            self,
            parameters=Parameters(
                p.bias[:1].copy(),
                p.linear[:, :1].copy(),
                np.ascontiguousarray(p.table[:, :1]),
                p.weights[:1].copy(),
                p.theta[:1].copy(),
                p.degrees,
            ),
        )


def _highest_degree(degrees: NDArray[Any]) -> int:
    used = np.flatnonzero(degrees.any(axis=1))
    return int(used[-1]) + 1 if used.size else 1


def aligned_zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return zeros whose first number starts a cache line: rows then share no line needlessly.

    Large arrays start a huge page, of which the system makes their memory where it can: what lies
    before the first is of small pages, and looking up where these are takes time.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    start = CACHE_LINE if size < 2 * _HUGE_PAGE else _HUGE_PAGE
    memory = np.zeros(size + start, dtype=np.uint8)
    first = -memory.ctypes.data % start
    return memory[first : first + size].view(dtype).reshape(shape)
