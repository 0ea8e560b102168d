"""Projective quadratic regression: crosses of the frequent features, one by one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polyfm._jit import LANES
from polyfm._jit.records import RECORD
from polyfm.data.rows import Rows, read_only
from polyfm.models._pqr_score import PAGE, PQRParameters, Room, most_tops, score_rows, segments
from polyfm.models.factorized import aligned_zeros

MOST_FREQUENT = 65_536
"""Frequent features at most: the directory of their pairs takes a gigabyte."""
_LEAST_CAPACITY = 128
_LARGEST_UNIT = 1e15
_ROWS_PER_THREAD = 1024
"""Fewer are scored before another thread has started."""


class Sizes(NamedTuple):
    """How large the values of each column are."""

    weights: NDArray[np.float64]
    """(d,): sum of the weights of its rows."""
    squares: NDArray[np.float64]
    """(d,): weighted sum of its squares."""


def unit_of(weights: Any, squares: Any) -> Any:
    """Return one over the root mean square, within what single precision can hold; 1 for none."""
    squares = np.where(np.asarray(squares) > 0, squares, 1.0)
    mean = np.where(np.asarray(weights) > 0, squares / np.maximum(weights, 1e-300), 1.0)
    return np.clip(1.0 / np.sqrt(mean), 1.0 / _LARGEST_UNIT, _LARGEST_UNIT)


@dataclass(frozen=True)
class PQR:
    r"""A model that is quadratic in the frequent features H and the sum of the others, L.

    .. math:: f(x) = b + \langle w, x \rangle + \sum_{i < j \in H} p_{ij} x_i x_j
        + \Bigl( \sum_{i \in H} q_i x_i \Bigr) \Bigl( \sum_{j \in L} x_j \Bigr)

    Weights of pairs lie in pages of eight, which exist once a training row has touched one of them.

    Parameters
    ----------
    frequent : ndarray of shape (k,)
        The features of H.
    bias, linear, shared, pages, blocks, used : ndarray
        As in :class:`polyfm.models._pqr_score.PQRParameters`.
    units : ndarray of shape (d,) or (0,)
        What the values of each column are multiplied by before all else; empty for ones.
    low_unit : float
        What values are multiplied by where those of L are added up.
    """

    frequent: NDArray[np.int64]
    bias: NDArray[Any]
    linear: NDArray[Any]
    shared: NDArray[Any]
    pages: NDArray[Any]
    blocks: NDArray[np.int64]
    used: NDArray[np.int64]
    units: NDArray[np.float64]
    low_unit: float = 1.0
    directory: NDArray[np.int32] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        directory = np.zeros(largest_block(len(self.frequent)) + 1, dtype=np.int32)
        n = int(self.used[0])
        directory[self.blocks[1:n]] = np.arange(1, n)
        object.__setattr__(self, "directory", directory)

    @classmethod
    def zeros(
        cls,
        n_features: int,
        frequent: NDArray[np.int64],
        n_planes: int,
        dtype: DTypeLike,
        sizes: Sizes | None = None,
    ) -> Self:
        """Return a model all of whose weights, and what is remembered of them, are 0.

        ``sizes`` gives columns their units; None is for values of 1.
        """
        units, low_unit = np.empty(0), 1.0
        linear = aligned_zeros((n_features, RECORD), dtype)
        linear[:, -1] = -1.0
        if sizes is not None:
            rare = np.ones(n_features, dtype=np.bool_)
            rare[frequent] = False
            units = unit_of(sizes.weights, sizes.squares)
            low_unit = float(unit_of(sizes.weights[rare].sum(), sizes.squares[rare].sum()))
            linear[:, -1] = -low_unit / units
        linear[frequent, -1] = np.arange(len(frequent))
        return cls(
            frequent,
            np.zeros(n_planes, dtype),
            linear,
            aligned_zeros((len(frequent), RECORD), dtype),
            new_pages(_LEAST_CAPACITY, dtype),
            np.zeros(_LEAST_CAPACITY, dtype=np.int64),
            np.ones(1, dtype=np.int64),
            units,
            low_unit,
        )

    @property
    def parameters(self) -> PQRParameters:
        """The numbers, as compiled code sees them."""
        return PQRParameters(
            self.bias, self.linear, self.shared, self.pages, self.directory, self.blocks, self.used
        )

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return int(self.linear.shape[0])

    @property
    def order(self) -> int:
        """Number of frequent features, k."""
        return len(self.frequent)

    def scaled(self, rows: Rows) -> Rows:
        """Return rows in the units of their columns."""
        if not self.units.size:
            return rows
        values = rows.values * self.units[rows.indices]
        return rows._replace(values=read_only(values.astype(rows.values.dtype, copy=False)))

    def room(self, rows: Rows) -> Room:
        """Allocate where rows are expanded."""
        dtype = self.linear.dtype
        most = int(most_tops(self.linear, rows))
        size = int(segments(rows.longest, most)[2]) + LANES
        return Room(
            np.zeros((2, most + LANES), dtype=np.int32),
            np.zeros((2, most + LANES), dtype=np.int32),
            np.zeros((2, most + LANES), dtype),
            np.zeros(2, dtype=np.int64),
            np.zeros(2, dtype),
            np.zeros((2, 2), dtype=np.int64),
            np.zeros((2, size), dtype=np.int32),
            aligned_zeros((size,), dtype),
            aligned_zeros((RECORD, size), dtype),
        )

    def scores(self, rows: Rows, n_jobs: int = 1) -> NDArray[Any]:
        """Return f(x) of every row, in the model's precision."""
        rows = self.scaled(rows)
        n_jobs = max(1, min(n_jobs, rows.n_rows // _ROWS_PER_THREAD))
        out = np.empty(rows.n_rows, dtype=self.linear.dtype)

        def score(first: int, last: int) -> None:
            part = rows._replace(numbers=rows.numbers[first:last])
            score_rows(self.parameters, part, part.numbers, self.room(part), out[first:last])

        bounds = np.linspace(0, rows.n_rows, n_jobs + 1).astype(np.int64)
        if n_jobs == 1:
            score(0, rows.n_rows)
        else:
            with ThreadPoolExecutor(n_jobs) as pool:
                list(pool.map(score, bounds[:-1], bounds[1:]))
        return out

    def pair_weights(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
        """Return the two features of each pair whose weight is not 0, and the weights.

        The feature with the lower number comes first; pairs are in increasing order.
        """
        n = int(self.used[0])
        weights = self.pages[:n, :, 0]
        page, within = np.nonzero(weights)
        one, other = ranks_of(self.blocks[page] * PAGE + within)
        i, j = self.frequent[one], self.frequent[other]
        i, j = np.minimum(i, j), np.maximum(i, j)
        by_pair = np.lexsort((j, i))
        i, j, found = i[by_pair], j[by_pair], weights[page, within][by_pair]
        return i, j, found * self.units[i] * self.units[j] if self.units.size else found

    def linear_weights(self) -> NDArray[Any]:
        """Return w."""
        return self.linear[:, 0] * self.units if self.units.size else self.linear[:, 0]

    def shared_weights(self) -> NDArray[Any]:
        """Return q."""
        units = self.units[self.frequent] * self.low_unit if self.units.size else 1.0
        return np.asarray(self.shared[:, 0] * units)

    def count_nonzero(self) -> int:
        """Return the number of weights that are not 0, the bias among them."""
        blocks = (self.bias[0], self.linear[:, 0], self.shared[:, 0], self.pages[..., 0])
        return sum(int(np.count_nonzero(block)) for block in blocks)

    def copy(self) -> Self:
        """Return a model that may change without changing this one."""
        blocks: dict[str, Any] = {}
        for name in ("bias", "linear", "shared", "pages", "blocks", "used"):
            block = getattr(self, name)
            blocks[name] = aligned_zeros(block.shape, block.dtype)
            blocks[name][...] = block
        return replace(self, **blocks)

    def widened(self, n_features: int, block: NDArray[Any]) -> Self:
        """Return the model with more features, in a longer block that its own is the front of."""
        linear = block[:n_features]
        linear[self.n_features :] = 0.0
        linear[self.n_features :, -1] = -1.0
        return replace(self, linear=linear)

    def with_more_room(self) -> Self:
        """Return the model with room for twice as many pages."""
        n = int(self.used[0])
        pages = new_pages(2 * len(self.pages), self.linear.dtype)
        blocks = np.zeros(2 * len(self.blocks), dtype=np.int64)
        pages[:n], blocks[:n] = self.pages[:n], self.blocks[:n]
        return replace(self, pages=pages, blocks=blocks, used=self.used.copy())

    def weights_only(self) -> Self:
        """Return a copy that holds what prediction needs and no more."""
        n = int(self.used[0])
        there = np.flatnonzero(self.pages[:n, :, 0].any(axis=1))
        there = np.concatenate([[0], there])
        return replace(
            self,
            bias=self.bias[:1].copy(),
            linear=np.ascontiguousarray(self.linear[:, [0, -1]]),
            shared=self.shared[:, :1].copy(),
            pages=np.ascontiguousarray(self.pages[there, :, :1]),
            blocks=self.blocks[there],
            used=np.array([len(there)]),
        )


def largest_block(order: int) -> int:
    """Return the number of the last eight pairs of so many frequent features."""
    return order * (order - 1) // 2 // PAGE


def ranks_of(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the two ranks a < b of pairs, from their numbers b (b - 1) / 2 + a."""
    high = ((1.0 + np.sqrt(1.0 + 8.0 * numbers)) / 2.0).astype(np.int64)
    # The root may be off by one in the last place.
    high += high * (high + 1) // 2 <= numbers
    high -= high * (high - 1) // 2 > numbers
    return numbers - high * (high - 1) // 2, high


def new_pages(capacity: int, dtype: DTypeLike) -> NDArray[Any]:
    """Allocate pages of zeros, or say in a MemoryError what they take."""
    try:
        return aligned_zeros((capacity, PAGE, RECORD), dtype)
    except MemoryError:
        n_bytes = capacity * PAGE * RECORD * np.dtype(dtype).itemsize
        raise MemoryError(
            f"The weights of pairs take {n_bytes / 2**30:.1f} GiB, more than there is: give a "
            "lower order, or float32."
        ) from None
