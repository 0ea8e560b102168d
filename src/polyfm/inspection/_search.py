r"""The largest entries of a low-rank symmetric tensor, without forming it.

The weight of a combination is :math:`\sum_s \sigma_s a_{j_1 s} \cdots a_{j_q s}` with signs
:math:`\sigma`. Combinations are grown feature by feature, in the order of falling norms; a start
with product v of which r features are missing can reach at most

.. math:: \min\Big( \sum_s |v_s| \max_l |a_{ls}|^r,\; \|v\|\, \max_l \|a_l\|^r \Big)

over the features l that may follow. Branches that cannot beat the least of the best are cut, so
the result is exact unless the budget ends the search. A first, narrow pass finds good combinations
soon, which makes the cuts deep.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_TILE = 1 << 21
"""Numbers in a matrix of bounds or weights."""
_BATCH = 256
_NARROW = 48

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class _OutOfBudgetError(Exception):
    """The search has looked at as many combinations as it may."""


@dataclass
class Best:
    """The ``top`` combinations of largest absolute weight so far."""

    top: int
    degree: int
    combinations: Ints = field(init=False)
    weights: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.combinations = np.empty((0, self.degree), dtype=np.int64)
        self.weights = np.empty(0)

    @property
    def threshold(self) -> float:
        """The absolute weight to beat."""
        return float(abs(self.weights[-1])) if len(self.weights) == self.top else 0.0

    def offer(self, combinations: Ints, weights: Floats) -> None:
        """Take in combinations, of which some may be known."""
        rows = np.concatenate([self.combinations, np.sort(combinations, axis=1)])
        values = np.concatenate([self.weights, weights])
        rows, first = np.unique(rows, axis=0, return_index=True)
        values = values[first]
        kept = np.argsort(-np.abs(values), kind="stable")[: self.top]
        self.combinations, self.weights = rows[kept], values[kept]


@dataclass
class Branches:
    """Starts of combinations: their features, products and, where rows matter, their rows."""

    prefixes: Ints
    """(n, depth)."""
    products: Floats
    """(n, k)."""
    rows: sp.csc_matrix | None
    """(n_rows, n): the rows in which all features of a start occur."""

    @property
    def last(self) -> Ints:
        """The last feature of each start; -1 for the empty one."""
        if self.prefixes.shape[1] == 0:
            return np.full(len(self.prefixes), -1, dtype=np.int64)
        return self.prefixes[:, -1]


@dataclass
class Search:
    """One search.

    Parameters
    ----------
    factors : ndarray of shape (d, k)
        Rows sorted by falling norm.
    signs : ndarray of shape (k,)
        The sign of each basis.
    fields : ndarray of shape (d,), optional
        Features of one field are not combined.
    occurrences : csc_matrix of shape (n_rows, d), optional
        Only combinations that occur in ``min_count`` rows are searched.
    budget : float
        Combinations and starts to look at.
    """

    factors: Floats
    signs: Floats
    best: Best
    fields: Ints | None
    occurrences: sp.csc_matrix | None
    min_count: int
    budget: float
    _limits: list[Floats] = field(init=False, repr=False)
    _norms: Floats = field(init=False, repr=False)
    _width: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        size = np.abs(self.factors)
        self._norms = _norms(self.factors)
        if self.occurrences is not None:
            self._by_row = self.occurrences.tocsr()
        # Largest entry of each basis among the features that come later.
        later = np.zeros_like(size)
        later[:-1] = np.maximum.accumulate(size[:0:-1], axis=0)[::-1]
        self._limits = [size * later**r for r in range(self.best.degree)]

    def run(self) -> bool:
        """Search; return whether the result is exact."""
        spent, self.budget = self.budget, np.inf
        self._width = _NARROW
        self._grow(self._root(), self.best.degree)
        self.budget, self._width = spent, None
        try:
            self._grow(self._root(), self.best.degree)
        except _OutOfBudgetError:
            return False
        return True

    def _root(self) -> Branches:
        rows = None
        if self.occurrences is not None:
            rows = sp.csc_matrix(np.ones((self.occurrences.shape[0], 1), dtype=np.int32))
        return Branches(np.empty((1, 0), dtype=np.int64), self.signs[None, :], rows)

    def _grow(self, branches: Branches, missing: int) -> None:
        """Add ``missing`` features to each start, best bounds first."""
        found = [part for part in self._children(branches, missing) if len(part[0])]
        if missing == 1 or not found:
            return
        nodes, features, bounds = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.argsort(-bounds, kind="stable")[: self._width]
        for first in range(0, len(order), _BATCH):
            part = order[first : first + _BATCH]
            part = part[bounds[part] > self.best.threshold]
            if len(part):
                self._grow(self._extended(branches, nodes[part], features[part]), missing - 1)

    def _children(self, branches: Branches, missing: int) -> Iterator[tuple[Ints, Ints, Floats]]:
        """Give the starts that are one longer and their bounds; offer them where they are whole."""
        scan = self._scan_all if branches.rows is None else self._scan_seen
        for nodes, features, values in scan(branches, missing):
            if missing == 1:
                self._offer(branches, nodes, features, values)
            yield nodes, features, values

    def _scan_all(self, branches: Branches, missing: int) -> Iterator[tuple[Ints, Ints, Floats]]:
        """Give (start, next feature, value) of the values above the threshold, tile by tile."""
        n, first = len(branches.prefixes), int(branches.last.min()) + 1
        width = max(_TILE // n, 1)
        while first < self._reach(branches, missing):
            tile = slice(first, min(first + width, self._reach(branches, missing)))
            self._spend(n * (tile.stop - tile.start))
            values = self._values(branches, tile, missing)
            worth = np.abs(values) > self.best.threshold
            worth &= np.arange(tile.start, tile.stop) > branches.last[:, None]
            nodes, places = np.nonzero(worth)
            kept = self._apart(branches, nodes, places + tile.start)
            nodes, places = nodes[kept], places[kept]
            yield nodes, places + tile.start, values[nodes, places]
            first = tile.stop

    def _scan_seen(self, branches: Branches, missing: int) -> Iterator[tuple[Ints, Ints, Floats]]:
        """Do the same for the combinations that occur in enough rows."""
        counts = sp.coo_matrix(branches.rows.T @ self._by_row)  # type: ignore[union-attr]
        kept = (counts.data >= self.min_count) & (counts.col > branches.last[counts.row])
        nodes, features = counts.row[kept].astype(np.int64), counts.col[kept].astype(np.int64)
        kept = self._apart(branches, nodes, features)
        nodes, features = nodes[kept], features[kept]
        self._spend(len(nodes))
        values = self._pair_values(branches, nodes, features, missing)
        worth = np.abs(values) > self.best.threshold
        yield nodes[worth], features[worth], values[worth]

    def _values(self, branches: Branches, tile: slice, missing: int) -> Floats:
        """Return the weights of whole combinations, or the bounds of starts, (n, tile)."""
        products = branches.products
        if missing == 1:
            return np.asarray(products @ self.factors[tile].T)
        bounds = np.abs(products) @ self._limits[missing - 1][tile].T
        return np.minimum(bounds, np.outer(_norms(products), self._lengths(missing)[tile]))

    def _pair_values(self, branches: Branches, nodes: Ints, features: Ints, missing: int) -> Floats:
        products = branches.products[nodes]
        if missing == 1:
            return _dots(products, self.factors[features])
        bounds = _dots(np.abs(products), self._limits[missing - 1][features])
        return np.minimum(bounds, _norms(products) * self._lengths(missing)[features])

    def _lengths(self, missing: int) -> Floats:
        """Return how much longer each feature and the best ones after it make a product."""
        following: Floats = np.append(self._norms[1:], 0.0)
        return self._norms * following ** (missing - 1)

    def _offer(self, branches: Branches, nodes: Ints, features: Ints, weights: Floats) -> None:
        if len(weights) > self.best.top:
            part = np.argpartition(-np.abs(weights), self.best.top - 1)[: self.best.top]
            nodes, features, weights = nodes[part], features[part], weights[part]
        if len(weights):
            self.best.offer(np.column_stack([branches.prefixes[nodes], features]), weights)

    def _reach(self, branches: Branches, missing: int) -> int:
        """Return how many features are long enough to be next: those that follow are no longer."""
        longest = max(float(_norms(branches.products).max()), np.finfo(np.float64).tiny)
        needed = (self.best.threshold / longest) ** (1.0 / missing)
        return int(np.searchsorted(-self._norms, -needed, side="right"))

    def _apart(self, branches: Branches, nodes: Ints, features: Ints) -> NDArray[np.bool_]:
        """Return where the next feature is of a field that the start has not."""
        if self.fields is None or branches.prefixes.shape[1] == 0:
            return np.ones(len(nodes), dtype=bool)
        taken = self.fields[branches.prefixes[nodes]]
        return np.asarray((taken != self.fields[features][:, None]).all(axis=1))

    def _extended(self, branches: Branches, nodes: Ints, features: Ints) -> Branches:
        rows = branches.rows
        if rows is not None and self.occurrences is not None:
            rows = rows[:, nodes].multiply(self.occurrences[:, features]).tocsc()
        return Branches(
            np.column_stack([branches.prefixes[nodes], features]),
            branches.products[nodes] * self.factors[features],
            rows,
        )

    def _spend(self, n: int) -> None:
        self.budget -= n
        if self.budget < 0:
            raise _OutOfBudgetError


def _norms(rows: Floats) -> Floats:
    return np.asarray(np.linalg.norm(rows, axis=1))


def _dots(left: Floats, right: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", left, right))
