"""A factorization machine whose features get factors as they prove to be worth it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polyfm.data.rows import Rows, read_only
from polyfm.models._difacto_score import DiFactoParameters, Room, score_rows
from polyfm.models.factorized import aligned_zeros

NONE = -1
"""The place of coordinates that do not exist."""
_LEAST_CAPACITY = 128
_ROWS_PER_THREAD = 1024
"""Fewer are scored before another thread has started."""
_BLOCKS = ("bias", "linear", "counts", "places", "pool", "used")
OF_FEATURES = ("linear", "counts", "places")
"""Blocks with a row for each feature."""


class Groups(NamedTuple):
    """Which features have how many factors."""

    ranks: tuple[int, ...]
    """Rising: the rank of features whose count is above the threshold."""
    thresholds: tuple[int, ...]
    """Rising."""


@dataclass(frozen=True)
class DiFacto:
    r"""A factorization machine with factors for some of its features, of ranks of their own.

    .. math:: f(x) = b + \langle w, x \rangle + \frac12 \sum_f \Bigl[
        \bigl( \textstyle\sum_i v_{if} x_i \bigr)^2 - \sum_i v_{if}^2 x_i^2 \Bigr]

    over the features with a weight other than 0 that have factors. Coordinates beyond a feature's
    rank count as 0.

    Parameters
    ----------
    bias, linear, counts, places, pool, used, widths, thresholds : ndarray
        As in :class:`polyfm.models._difacto_score.DiFactoParameters`.
    units : ndarray of shape (d,) or (0,)
        What the values of each column are multiplied by before all else; empty for ones.
    """

    bias: NDArray[Any]
    linear: NDArray[Any]
    counts: NDArray[np.int64]
    places: NDArray[np.int64]
    pool: NDArray[Any]
    used: NDArray[np.int64]
    widths: NDArray[np.int64]
    thresholds: NDArray[np.int64]
    units: NDArray[np.float64]

    @classmethod
    def zeros(
        cls,
        n_features: int,
        groups: Groups,
        n_planes: int,
        dtype: DTypeLike,
        units: NDArray[np.float64] | None = None,
    ) -> Self:
        """Return a model without factors, all of whose weights are 0."""
        n_groups = len(groups.ranks)
        return cls(
            np.zeros(n_planes, dtype),
            aligned_zeros((n_features, n_planes), dtype),
            np.zeros(n_features, dtype=np.int64),
            np.full((n_features, n_groups), NONE, dtype=np.int64),
            aligned_zeros((2, _LEAST_CAPACITY), dtype),
            np.zeros(1, dtype=np.int64),
            np.diff(groups.ranks, prepend=0).astype(np.int64),
            np.array(groups.thresholds, dtype=np.int64),
            np.empty(0) if units is None else units,
        )

    @property
    def parameters(self) -> DiFactoParameters:
        """The numbers, as compiled code sees them."""
        return DiFactoParameters(
            self.bias, self.linear, self.counts, self.places, self.pool, self.used, self.widths,
            self.thresholds,
        )  # fmt: skip

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return int(self.linear.shape[0])

    @property
    def rank(self) -> int:
        """Number of factors of a feature that has all of them."""
        return int(self.widths.sum())

    def scaled(self, rows: Rows) -> Rows:
        """Return rows in the units of their columns."""
        if not self.units.size:
            return rows
        values = rows.values * self.units[rows.indices]
        return rows._replace(values=read_only(values.astype(rows.values.dtype, copy=False)))

    def room(self, rows: Rows) -> Room:
        """Allocate where rows are worked out."""
        dtype = self.pool.dtype
        return Room(
            np.zeros(self.rank, dtype),
            np.zeros(self.rank, dtype),
            np.zeros(rows.longest, dtype=np.uint8),
        )

    def scores(self, rows: Rows, n_jobs: int = 1) -> NDArray[Any]:
        """Return f(x) of every row, in the model's precision."""
        rows = self.scaled(rows)
        n_jobs = max(1, min(n_jobs, rows.n_rows // _ROWS_PER_THREAD))
        out = np.empty(rows.n_rows, dtype=self.pool.dtype)

        def score(first: int, last: int) -> None:
            room = self.room(rows)
            score_rows(self.parameters, rows, rows.numbers[first:last], room, out[first:last])

        bounds = np.linspace(0, rows.n_rows, n_jobs + 1).astype(np.int64)
        if n_jobs == 1:
            score(0, rows.n_rows)
        else:
            with ThreadPoolExecutor(n_jobs) as pool:
                list(pool.map(score, bounds[:-1], bounds[1:]))
        return out

    def ranks(self) -> NDArray[np.int64]:
        """Return how many factors each feature has, (d,)."""
        return np.asarray((self.places != NONE) @ self.widths)

    def linear_weights(self) -> NDArray[Any]:
        """Return w."""
        return self.linear[:, 0] * self.units if self.units.size else self.linear[:, 0]

    def factors(self) -> NDArray[Any]:
        """Return the factors in use, (d, rank): 0 where there is none or w is 0."""
        out = np.zeros((self.n_features, self.rank), self.pool.dtype)
        first = 0
        for g, width in enumerate(self.widths):
            having = np.flatnonzero((self.places[:, g] != NONE) & (self.linear[:, 0] != 0))
            places = self.places[having, g, np.newaxis] + np.arange(width)
            out[having, first : first + width] = self.pool[0, places]
            first += int(width)
        return out * self.units[:, np.newaxis] if self.units.size else out

    def count_nonzero(self) -> int:
        """Return the number of weights and factors that are not 0, the bias among them."""
        blocks = (self.bias[0], self.linear[:, 0], self.pool[0, : self.used[0]])
        return sum(int(np.count_nonzero(block)) for block in blocks)

    def copy(self) -> Self:
        """Return a model that may change without changing this one."""
        blocks = {}
        for name in _BLOCKS:
            block = getattr(self, name)
            blocks[name] = aligned_zeros(block.shape, block.dtype)
            blocks[name][...] = block
        return replace(self, **blocks)

    def widened(self, n_features: int, blocks: dict[str, NDArray[Any]]) -> Self:
        """Return the model with more features, in longer blocks that its own are the front of."""
        more = {name: block[:n_features] for name, block in blocks.items()}
        for name, block in more.items():
            block[self.n_features :] = NONE if name == "places" else 0
        if self.units.size:
            more["units"] = np.append(self.units, np.ones(n_features - self.n_features))
        return replace(self, **more)

    def with_more_room(self) -> Self:
        """Return the model with room for twice as many factors.

        Raises
        ------
        MemoryError
            That says what they take.
        """
        n, dtype = int(self.used[0]), self.pool.dtype
        shape = (len(self.pool), 2 * self.pool.shape[1])
        try:
            pool = aligned_zeros(shape, dtype)
        except MemoryError:
            size = shape[0] * shape[1] * dtype.itemsize / 2**30
            raise MemoryError(
                f"The factors take {size:.1f} GiB, more than there is: raise thresholds, lower "
                "ranks, or give float32."
            ) from None
        pool[:, :n] = self.pool[:, :n]
        return replace(self, pool=pool, used=self.used.copy())

    def weights_only(self) -> Self:
        """Return a copy that holds what prediction needs and no more."""
        return replace(
            self,
            bias=self.bias[:1].copy(),
            linear=self.linear[:, :1].copy(),
            counts=self.counts.copy(),
            places=self.places.copy(),
            pool=np.ascontiguousarray(self.pool[:1, : self.used[0]]),
            used=self.used.copy(),
        )
