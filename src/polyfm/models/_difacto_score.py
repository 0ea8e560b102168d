"""The compiled score of a row by a model in which only some features have factors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm._jit import jit


class DiFactoParameters(NamedTuple):
    """All numbers of a model, as compiled code sees them.

    While learning there are three numbers for each weight (FTRL-Proximal) and two for each factor
    (AdaGrad); a model that only predicts has the weights alone. ``d`` features, ``g`` groups of
    coordinates: the first ``widths[0]`` coordinates of a feature are its first group, and so on.
    """

    bias: NDArray[Any]
    """(planes,)."""
    linear: NDArray[Any]
    """(d, planes)."""
    counts: NDArray[np.int64]
    """(d,): rows that each feature was in."""
    places: NDArray[np.int64]
    """(d, g): where the coordinates of a feature's group begin in the pool, -1 for none."""
    pool: NDArray[Any]
    """(1 or 2, capacity): the coordinates there are, and what is remembered of them."""
    used: NDArray[np.int64]
    """(1,): how many coordinates of the pool are in use."""
    widths: NDArray[np.int64]
    """(g,): coordinates in a group."""
    thresholds: NDArray[np.int64]
    """(g,): the count above which a feature has the group."""


class Room(NamedTuple):
    """Where a row is worked out."""

    sums: NDArray[Any]
    """(rank,): the sum of factor times value over the row's features."""
    squares: NDArray[Any]
    """(rank,): the sum of the squares of these products."""
    active: NDArray[np.uint8]
    """(longest,): whether a feature of the row takes part in interactions."""


@jit
def score_row(parameters, indices, values, room):
    """Return f(x) of one row, and leave in the room what its gradients need.

    Coordinates that a feature does not have are as good as 0: so an interaction of two features
    runs over the coordinates that both have.
    """
    p, sums, squares = parameters, room.sums, room.squares
    dtype = p.pool.dtype.type
    sums[:], squares[:] = dtype(0.0), dtype(0.0)
    score = p.bias[0]
    for t in range(indices.size):
        j, x = indices[t], values[t]
        weight = p.linear[j, 0]
        score += weight * x
        room.active[t] = weight != 0.0
        if weight == 0.0:
            continue
        first = 0
        for g in range(p.widths.size):
            place, width = p.places[j, g], p.widths[g]
            if place < 0:
                break
            for f in range(width):
                product = p.pool[0, place + f] * x
                sums[first + f] += product
                squares[first + f] += product * product
            first += width
    interactions = dtype(0.0)
    for f in range(sums.size):
        interactions += sums[f] * sums[f] - squares[f]
    return score + dtype(0.5) * interactions


@jit
def score_rows(parameters, rows, numbers, room, out):
    """Write f(x) of the rows with the given numbers into ``out``."""
    for i in range(numbers.size):
        first, last = rows.indptr[numbers[i]], rows.indptr[numbers[i] + 1]
        out[i] = score_row(parameters, rows.indices[first:last], rows.values[first:last], room)
