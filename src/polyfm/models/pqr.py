"""Projective quadratic regression: crosses of the frequent features, one by one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polyfm._jit import LANES
from polyfm._jit.records import RECORD, SHORT_RECORD
from polyfm.data.rows import Rows, read_only
from polyfm.models._pqr_score import (
    PAGE,
    PAGE_BITS,
    PQRParameters,
    Room,
    first_number,
    most_tops,
    padded,
    score_rows,
    weigh_places,
)
from polyfm.models.factorized import aligned_zeros
from polyfm.updates import SGD
from polyfm.updates import contract as updates

MOST_FREQUENT = 65_535
"""Frequent features at most: places of their pairs are numbers of 32 bits."""
_MOST_BLOCKS_OPEN = 1 << 19
"""Where there are more blocks of pairs (from order 4,096 on), pages are made for those in use."""
_LEAST_CAPACITY = 64
_MOST_TOPS_UNCOUNTED = 256
"""Frequent features of a row for which there is room without counting: a megabyte or two."""
_LARGEST_UNIT = 1e15
_NOT_NEEDED = read_only(np.empty(0, dtype=np.int32))
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

    Weights of pairs lie in pages of 16. A model that learns has either a page for each 16 pairs,
    of memory that the system provides once it is written to, or pages for those pairs alone that a
    training row has touched. It is copied and written to files without pages of zeros.

    Parameters
    ----------
    frequent : ndarray of shape (k,)
        The features of H.
    bias, linear, places, pages, blocks, used, rule, penalty : object
        As in :class:`polyfm.models._pqr_score.PQRParameters`. The weights q are the last k pairs.
    units : ndarray of shape (d,) or (0,)
        What the values of each column are multiplied by before all else; empty for ones.
    low_unit : float
        What values are multiplied by where those of L are added up.
    """

    frequent: NDArray[np.int64]
    bias: NDArray[Any]
    linear: NDArray[Any]
    places: NDArray[np.int32]
    pages: NDArray[Any]
    blocks: NDArray[np.int64]
    used: NDArray[np.int64]
    units: NDArray[np.float64]
    rule: Any
    penalty: Any
    low_unit: float = 1.0
    directory: NDArray[np.int32] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "directory", self._new_directory())

    def _new_directory(self) -> NDArray[np.int32]:
        n, n_blocks = int(self.used[0]), count_blocks(self.order)
        # Pages that were made one by one need not be in order, even if they all exist.
        if n == n_blocks and np.array_equal(self.blocks[:n], np.arange(n)):
            return np.empty(0, dtype=np.int32)
        directory = np.zeros(n_blocks, dtype=np.int32)
        directory[self.blocks[1:n]] = np.arange(1, n)
        return directory

    @classmethod
    def zeros(
        cls,
        n_features: int,
        frequent: NDArray[np.int64],
        places: NDArray[np.int32],
        rule: Any,
        penalty: Any,
        dtype: DTypeLike,
        sizes: Sizes | None = None,
    ) -> Self:
        """Return a model all of whose weights, and what is remembered of them, are 0.

        ``rule`` and ``penalty`` are those of pairs; ``sizes`` gives columns their units, and None
        is for values of 1. ``places`` are those of these frequent features, and perhaps more.
        """
        units, low_unit = np.empty(0), 1.0
        linear = aligned_zeros((n_features, RECORD), dtype)
        linear[:, -1] = 1.0
        if sizes is not None:
            rare = np.ones(n_features, dtype=np.bool_)
            rare[frequent] = False
            units = unit_of(sizes.weights, sizes.squares)
            low_unit = float(unit_of(sizes.weights[rare].sum(), sizes.squares[rare].sum()))
            linear[places if places.size else slice(None), -1] = low_unit / units
        linear[: len(frequent), -1] = 0.0
        return cls(
            frequent,
            np.zeros(updates.n_planes(rule), dtype),
            linear,
            places,
            new_pages(1, dtype),
            np.zeros(1, dtype=np.int64),
            np.ones(1, dtype=np.int64),
            units,
            rule,
            penalty,
            low_unit,
        )

    @property
    def parameters(self) -> PQRParameters:
        """The numbers, as compiled code sees them."""
        return PQRParameters(
            self.bias, self.linear, read_only(self.places), bool(self.units.size), self.pages,
            self.directory, self.blocks, self.used, self.order, self.rule, self.penalty,
        )  # fmt: skip

    def parameters_for(self, *, placed: bool) -> PQRParameters:
        """Return the numbers for rows as they are given, or for those of :meth:`placed`."""
        return self.parameters._replace(places=_NOT_NEEDED) if placed else self.parameters

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

    def placed(self, rows: Rows) -> Rows:
        """Return rows that name records instead of features, for those that are read often."""
        if not self.places.size:
            return rows
        return rows._replace(indices=read_only(self.places[rows.indices]))

    def features_of(self, places: NDArray[Any]) -> NDArray[Any]:
        """Return the features whose records are at some places."""
        return np.argsort(self.places)[places] if self.places.size else places

    def _by_feature(self, records: NDArray[Any]) -> NDArray[Any]:
        return records[self.places] if self.places.size else records

    def room(self, rows: Rows, *, placed: bool = False) -> Room:
        """Allocate where rows are expanded."""
        dtype = self.linear.dtype
        most = min(rows.longest, self.order)
        if most > _MOST_TOPS_UNCOUNTED:
            most = int(most_tops(self.parameters_for(placed=placed), rows))
        most += 1  # the sum of the others
        size = int(padded(rows.longest) + padded(most * (most - 1) // 2)) + LANES
        return Room(
            np.zeros(4, dtype=np.int64),
            np.zeros(4, dtype=np.int64),
            np.zeros(4, dtype=np.int64),
            np.zeros((4, most + LANES), dtype=np.int32),
            np.zeros((4, most + LANES), dtype=np.int32),
            np.zeros((4, most + LANES), dtype),
            np.zeros((4, size), dtype=np.int32),
            np.zeros((4, size), dtype),
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

    def _weights(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Return the weights of the pairs of some pages, (pages, 16)."""
        if self.pages.shape[2] == 1:
            return self.pages[numbers, :, 0]
        places = numbers[:, np.newaxis] * PAGE + np.arange(PAGE)
        weights = np.empty(places.shape, dtype=self.linear.dtype)
        weigh_places(self.parameters, places.ravel().astype(np.int32), weights.reshape(-1))
        return weights

    def _nonzero_pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
        """Return the two ranks a < b of each cross whose weight is not 0, and the weights."""
        there = self._touched()
        weights = self._weights(there)
        page, within = np.nonzero(weights)
        one, other = ranks_of(self.blocks[there][page] * PAGE + within - PAGE)
        return one, other, weights[page, within]

    def pair_weights(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
        """Return the two features of each pair whose weight is not 0, and the weights.

        The feature with the lower number comes first; pairs are in increasing order.
        """
        one, other, weights = self._nonzero_pairs()
        is_pair = other < self.order
        one, other, weights = one[is_pair], other[is_pair], weights[is_pair]
        i, j = self.frequent[one], self.frequent[other]
        i, j = np.minimum(i, j), np.maximum(i, j)
        by_pair = np.lexsort((j, i))
        i, j, found = i[by_pair], j[by_pair], weights[by_pair]
        return i, j, found * self.units[i] * self.units[j] if self.units.size else found

    def linear_weights(self) -> NDArray[Any]:
        """Return w."""
        weights = self._by_feature(self.linear[:, 0])
        return weights * self.units if self.units.size else weights

    def records(self) -> NDArray[Any]:
        """Return the linear records in the order of the features."""
        return self._by_feature(self.linear)

    def shared_weights(self) -> NDArray[Any]:
        """Return q."""
        rank, other, weights = self._nonzero_pairs()
        is_shared = other == self.order
        shared = np.zeros(self.order, dtype=self.linear.dtype)
        shared[rank[is_shared]] = weights[is_shared]
        units = self.units[self.frequent] * self.low_unit if self.units.size else 1.0
        return np.asarray(shared * units)

    def count_nonzero(self) -> int:
        """Return the number of weights that are not 0, the bias among them."""
        blocks = (self.bias[0], self.linear[:, 0], self._nonzero_pairs()[2])
        return sum(int(np.count_nonzero(block)) for block in blocks)

    def _touched(self) -> NDArray[np.int64]:
        """Return the numbers of the first page and of all others that are not zeros."""
        others = self.pages[1 : int(self.used[0])].any(axis=(1, 2))
        return np.concatenate([[0], 1 + np.flatnonzero(others)])

    def packed(self) -> Self:
        """Return the model with a copy of those pages alone that are not zeros."""
        there = self._touched()
        used = np.array([len(there)])
        return replace(self, pages=self.pages[there], blocks=self.blocks[there], used=used)

    def opened(self) -> Self:
        """Return the model with a page for each block of pairs, if they are not too many."""
        n_blocks = count_blocks(self.order)
        if self.directory.size == 0 or n_blocks > _MOST_BLOCKS_OPEN:
            return self
        pages, n = new_pages(n_blocks, self.linear.dtype), int(self.used[0])
        pages[self.blocks[1:n]] = self.pages[1:n]
        return replace(self, pages=pages, blocks=np.arange(n_blocks), used=np.array([n_blocks]))

    def copy(self) -> Self:
        """Return a model that may change without changing this one."""
        return replace(self.packed(), bias=self.bias.copy(), linear=_aligned_copy(self.linear))

    def __getstate__(self) -> dict[str, Any]:
        return self.packed().__dict__

    def widened(self, n_features: int, block: NDArray[Any], places: NDArray[np.int32]) -> Self:
        """Return the model with more features, in longer arrays that its own are the front of.

        Where columns have units, those of the new ones are 1.
        """
        linear, units = block[:n_features], self.units
        linear[self.n_features :] = 0.0
        linear[self.n_features :, -1] = self.low_unit
        if units.size:
            units = np.append(units, np.ones(n_features - self.n_features))
        return replace(self, linear=linear, places=places[:n_features], units=units)

    def with_more_room(self) -> Self:
        """Return the model with room for twice as many pages, or more."""
        n, capacity = int(self.used[0]), max(2 * len(self.pages), _LEAST_CAPACITY)
        pages = new_pages(capacity, self.linear.dtype)
        blocks = np.zeros(capacity, dtype=np.int64)
        pages[:n], blocks[:n] = self.pages[:n], self.blocks[:n]
        return replace(self, pages=pages, blocks=blocks, used=self.used.copy())

    def of_settings(self, rule: Any, penalty: Any) -> Self:
        """Return the model, which shares all numbers with this one, under other settings."""
        if (rule, penalty) == (self.rule, self.penalty):
            return self
        return replace(self, rule=rule, penalty=penalty)

    def weights_only(self) -> Self:
        """Return a copy that holds what prediction needs and no more."""
        packed = self.packed()
        weights = packed._weights(np.arange(len(packed.pages)))[..., np.newaxis]
        return replace(
            packed,
            bias=self.bias[:1].copy(),
            linear=np.ascontiguousarray(self.linear[:, [0, -1]]),
            pages=np.ascontiguousarray(weights),
            rule=SGD(),
        ).packed()


def places_of(frequent: NDArray[np.int64], n_features: int) -> NDArray[np.int32]:
    """Return the place of each feature's record: those of the frequent ones come first."""
    k = len(frequent)
    if k == 0:
        return np.empty(0, dtype=np.int32)
    is_rare = np.ones(n_features, dtype=np.bool_)
    is_rare[frequent] = False
    places = np.empty(n_features, dtype=np.int32)
    places[frequent] = np.arange(k)
    places[is_rare] = np.arange(k, n_features)
    return places


def longer_places(places: NDArray[np.int32], capacity: int) -> NDArray[np.int32]:
    """Return the places of more features, whose records are behind those that there are."""
    if not places.size:
        return places
    more = np.arange(capacity, dtype=np.int32)
    more[: len(places)] = places
    return more


def count_blocks(order: int) -> int:
    """Return how many pages the crosses of so many frequent features take, the first included."""
    return int(first_number(order + 1) - 1 >> PAGE_BITS) + 1


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
        return aligned_zeros((capacity, PAGE, SHORT_RECORD), dtype)
    except MemoryError:
        n_bytes = capacity * PAGE * SHORT_RECORD * np.dtype(dtype).itemsize
        raise MemoryError(
            f"The weights of pairs take {n_bytes / 2**30:.1f} GiB, more than there is: give a "
            "lower order, or float32."
        ) from None


def _aligned_copy(block: NDArray[Any]) -> NDArray[Any]:
    copy = aligned_zeros(block.shape, block.dtype)
    copy[...] = block
    return copy
