"""Threads that learn into one table: running them, and keeping them out of each other's way."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Barrier
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm._jit import jit
from polyfm.models._score import Parameters
from polyfm.models.factorized import aligned_zeros
from polyfm.solvers._shared_epoch import HotNumbers

SMALL_BLOCKS = ("bias", "weights", "theta")
"""Parameters that every row changes: each thread has its own."""

LARGE_BLOCKS = ("linear", "table")
"""Parameters with rows for each feature."""

_FIRST_SHARE, _SMALL_PIECE = 0.75, 1024
"""The share of what is left that the next pieces have, and rows of a piece not worth dividing."""
_HOT_SHARE = 1.0 / 256.0
_MOST_HOT = 2048


class Crew:
    """Runs compiled functions that release the GIL on some threads, the calling one among them.

    A caller that only waits leaves its core to chance: for the first tenth of a second the system
    may let all other threads share one.
    """

    def __init__(self, n_threads: int) -> None:
        self._pool = ThreadPoolExecutor(n_threads - 1) if n_threads > 1 else None
        if self._pool is not None:
            self._start_all(self._pool, n_threads - 1)

    @staticmethod
    def _start_all(pool: ThreadPoolExecutor, n_threads: int) -> None:
        """Start all threads before any learns.

        An interrupt while one starts would leave it unknown to the pool, and learning on after
        the others were waited for.
        """
        barrier = Barrier(n_threads + 1)
        try:
            for _ in range(n_threads):
                pool.submit(barrier.wait)
            barrier.wait()
        except BaseException:
            barrier.abort()
            pool.shutdown(wait=True, cancel_futures=True)
            raise

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)

    def run(self, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[Any]:
        """Return the results of all calls; after an interrupt no call is left running."""
        if self._pool is None:
            return [function(*call) for call in calls]
        own, *others = calls
        futures: list[Future[Any]] = [self._pool.submit(function, *call) for call in others]
        try:
            return [function(*own), *(future.result() for future in futures)]
        finally:
            wait(futures)


class Pieces:
    """Pieces of an order, which threads take in turn until none is left.

    The first pieces have most of the rows, and those after them ever fewer: a thread that shares
    its core with others takes fewer pieces, and nobody waits long for the last one.

    Parameters
    ----------
    order : ndarray
        Numbers of rows.
    n_threads : int
        How many threads take pieces; there is but one piece for one.
    """

    def __init__(self, order: NDArray[Any], n_threads: int) -> None:
        bounds = [0]
        while n_threads > 1 and len(order) - bounds[-1] > n_threads * _SMALL_PIECE:
            size = int(_FIRST_SHARE * (len(order) - bounds[-1]) / n_threads)
            bounds += [bounds[-1] + (k + 1) * size for k in range(n_threads)]
        rest = np.linspace(bounds[-1], len(order), n_threads + 1).astype(np.int64)
        bounds += rest[1:].tolist()
        # A deque, as taking from it needs no lock.
        self._left = deque((a, order[a:b]) for a, b in itertools.pairwise(bounds))

    def __iter__(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield pieces that nobody has taken, each with the number of rows before it."""
        while True:
            try:
                yield self._left.popleft()
            except IndexError:
                return


@dataclass(frozen=True)
class HotRows:
    """Features of so many rows that each thread has rows of its own for them.

    Parameters
    ----------
    features : ndarray
        The hot features.
    numbers : HotNumbers
        Each feature's place among them.
    n_threads : int
        Number of threads.
    blocks : Parameters
        The model's, with the threads' rows behind those of the model.
    """

    features: NDArray[np.int64]
    numbers: HotNumbers
    n_threads: int
    blocks: Parameters

    @classmethod
    def find(
        cls,
        parameters: Parameters,
        counts: NDArray[Any],
        n_rows: int,
        n_threads: int,
        roomy: dict[str, NDArray[Any]] | None = None,
    ) -> HotRows:
        """Pick the most frequent features among those in more than a 256th of the rows.

        ``roomy`` are blocks that the model's are the front of, if there are such.
        """
        features = np.flatnonzero(counts > _HOT_SHARE * n_rows)
        if len(features) > _MOST_HOT:
            features = features[np.argsort(-counts[features], kind="stable")[:_MOST_HOT]]
        numbers = HotNumbers.of(features, len(counts))
        blocks = _extended(parameters, n_threads * len(features), roomy)
        return cls(features, numbers, n_threads, blocks)

    @property
    def model_rows(self) -> int:
        """Rows of the model's own table."""
        return len(self.blocks.table) - self.n_threads * len(self.features)

    def first_row(self, thread: int) -> int:
        """Return the first row of one thread."""
        return self.model_rows + thread * len(self.features)

    def hand_out(self) -> None:
        """Copy the hot rows to each thread's own."""
        for thread in range(self.n_threads):
            own = self._own(thread)
            for block in (self.blocks.linear, self.blocks.table):
                block[own] = block[self.features]

    def collect(self, n_planes: int) -> None:
        """Merge the threads' rows into the model's."""
        linear, table = self.blocks.linear, self.blocks.table
        for block in (table, linear[:, :n_planes, np.newaxis]):
            _merge(block, self.features, self.model_rows, self.n_threads)

    def _own(self, thread: int) -> slice:
        first = self.first_row(thread)
        return slice(first, first + len(self.features))


def _extended(
    parameters: Parameters, n_more: int, roomy: dict[str, NDArray[Any]] | None
) -> Parameters:
    """Return parameters whose large blocks have more rows behind the model's."""
    n_rows = len(parameters.table) + n_more
    blocks = {}
    for name in LARGE_BLOCKS:
        block = getattr(parameters, name)
        if roomy is not None and len(roomy[name]) >= n_rows:
            blocks[name] = roomy[name][:n_rows]
        else:
            blocks[name] = aligned_zeros((n_rows, *block.shape[1:]), block.dtype)
            blocks[name][: len(block)] = block
    return parameters._replace(**blocks)


def room_for_hot_rows(n_threads: int) -> int:
    """Return how many rows more than the model's own some threads may want."""
    return n_threads * _MOST_HOT if n_threads > 1 else 0


def own_small_blocks(shared: Parameters, n_threads: int) -> list[Parameters]:
    """Give each thread the large blocks of all and small blocks of its own."""
    if n_threads == 1:
        return [shared]
    return [
        shared._replace(**{name: getattr(shared, name).copy() for name in SMALL_BLOCKS})
        for _ in range(n_threads)
    ]


def merge_small_blocks(shared: Parameters, owned: list[Parameters]) -> None:
    """Merge the threads' small blocks into the model's."""
    if len(owned) == 1:
        return
    for name in SMALL_BLOCKS:
        block = getattr(shared, name)
        copies = np.stack([getattr(parameters, name) for parameters in owned])
        block[1:] += (copies[:, 1:] - block[1:]).sum(axis=0)
        # An average keeps the bounds that a penalty may set.
        block[0] = copies[:, 0].mean(axis=0)


@jit
def _merge(block, features, first_own, n_threads):
    """Bring together what the threads' rows have become since they were handed out.

    Planes are the second axis, weights plane 0. What the copies have remembered is added up. Their
    T weights' moves are added and divided by the root of T: the average would be as slow as one
    thread, the sum would overshoot where each has gone all the way to its optimum. What all have
    set to 0 is 0.
    """
    damping = 1.0 / np.sqrt(float(n_threads))
    for i in range(features.size):
        for plane in range(block.shape[1]):
            for s in range(block.shape[2]):
                shared = block[features[i], plane, s]
                moved, all_zero = 0.0, True
                for thread in range(n_threads):
                    own = block[first_own + thread * features.size + i, plane, s]
                    moved += own - shared
                    all_zero = all_zero and own == 0.0
                if plane == 0:
                    moved *= damping
                zero = plane == 0 and all_zero
                block[features[i], plane, s] = 0.0 if zero else shared + moved
