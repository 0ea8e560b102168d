"""The compiled expansion of a row into single features and crosses, and its score."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm._jit import LANES, broadcast, horizontal_sum, jit, load, prefetch, store

PAGE = 8
"""Pairs in a page."""
PAGE_BITS = 3
_LINE_OF_INDICES = 16
_PREFETCHED_LINES = 8


class PQRParameters(NamedTuple):
    """All numbers of a model, as compiled code sees them.

    While learning, a record is what the update rule keeps for a coordinate, the weight first, and
    perhaps a count of visits, with zeros up to four numbers; a model that only predicts has the
    weight alone. ``d`` features, ``k`` of them frequent.

    The pairs of frequent features are numbered, and pages of eight pairs with neighbouring numbers
    exist once one of the pairs has been in a training row. The first page stands for all that do
    not exist: zeros.
    """

    bias: NDArray[Any]
    """(planes,)."""
    linear: NDArray[Any]
    """(d, record): the last number is the rank among the frequent features. For all others it is
    below 0: minus what the value is multiplied by before it is added to the others'."""
    shared: NDArray[Any]
    """(k, record): of the crosses of each frequent feature with all infrequent ones."""
    pages: NDArray[Any]
    """(capacity, 8, record)."""
    directory: NDArray[np.int32]
    """(k (k - 1) / 16,): the page of each eight pairs, 0 where there is none."""
    blocks: NDArray[np.int64]
    """(capacity,): which eight pairs a page is for."""
    used: NDArray[np.int64]
    """(1,): number of pages that exist, the first included."""


class Room(NamedTuple):
    """Where a row is expanded. There are two sides: one row is looked up while one is learnt."""

    ranks: NDArray[np.int32]
    """(2, most + 8): ranks of the row's frequent features."""
    starts: NDArray[np.int32]
    """(2, most + 8): number of the first pair of each with a feature of lower rank."""
    tops: NDArray[Any]
    """(2, most + 8): their values."""
    n_tops: NDArray[np.int64]
    """(2,): how many of the row's features are frequent."""
    low: NDArray[Any]
    """(2,): sum of the values of the others, in one unit."""
    pairs: NDArray[np.int64]
    """(2, 2): where places of pairs begin and end, fillers at the end included."""
    places: NDArray[np.int32]
    """(2, size): records of the expanded row's coordinates."""
    x: NDArray[Any]
    """(size,): values of the expanded row."""
    planes: NDArray[Any]
    """(4, size): what is kept for its coordinates."""


@jit
def padded(n):
    """Return the next multiple of the number of lanes."""
    return (n + LANES - 1) // LANES * LANES


@jit
def prefetch_row(rows, numbers, i):
    """Ask for what the rows some places on hold."""
    if i + 8 < numbers.size:
        row = numbers[i + 8]
        prefetch(rows.indptr, row)
        prefetch(rows.target, row)
        prefetch(rows.weight, row)
    if i + 4 < numbers.size:
        row = numbers[i + 4]
        first, last = rows.indptr[row], rows.indptr[row + 1]
        last = min(last, first + _LINE_OF_INDICES * _PREFETCHED_LINES)
        for place in range(first, last, _LINE_OF_INDICES):
            prefetch(rows.indices, place)
            prefetch(rows.values, place)


@jit
def prefetch_linear(linear, rows, numbers, i):
    """Ask for the linear records of the row two places on."""
    if i + 2 < numbers.size:
        row = numbers[i + 2]
        for t in range(rows.indptr[row], rows.indptr[row + 1]):
            prefetch(linear, rows.indices[t] * linear.shape[1])


@jit
def segments(n, m):
    """Return where shared crosses, pairs and nothing more begin in a row's expansion.

    The row has n features, m of them frequent. Each kind begins at a multiple of the number of
    lanes.
    """
    shared = padded(n)
    pairs = shared + padded(m)
    return shared, pairs, pairs + padded((m * (m - 1)) >> 1)


@jit
def find_tops(linear, indices, values, room, side):
    """Find a row's frequent features and add up the values of the others."""
    of_rank = linear.shape[1] - 1
    low = linear.dtype.type(0.0)
    m = 0
    for t in range(indices.size):
        mark = linear[indices[t], of_rank]
        if mark >= 0.0:
            rank = np.int64(mark)
            room.ranks[side, m] = rank
            room.starts[side, m] = (rank * (rank - 1)) >> 1
            room.tops[side, m] = values[t]
            m += 1
        else:
            low -= values[t] * mark
    room.n_tops[side] = m
    room.low[side] = low


@jit
def number_pairs(room, side, n):
    """Write the number of each pair of a row of n features where its record's place will stand.

    The pair of ranks a < b has the number b (b - 1) / 2 + a, so the pairs of the k most frequent
    features are the first k (k - 1) / 2, whatever k is.
    """
    m = room.n_tops[side]
    _, at, _ = segments(n, m)
    ranks, starts, places = room.ranks[side], room.starts[side], room.places[side]
    for b in range(1, m):
        rank, start = ranks[b], starts[b]  # int32, as eight of them are one vector
        for first in range(0, b, LANES):
            # Whole vectors, as loops of few steps are slow: what is too much is overwritten.
            for a in range(LANES):
                t = np.uintp(first + a)
                places[np.uintp(at + first + a)] = np.int32(
                    max(starts[t], start) + min(ranks[t], rank)
                )
        at += b


@jit
def expand(values, room, side):
    """Write the values of the expanded row, with zeros between the kinds of coordinates."""
    x, tops, m = room.x, room.tops, room.n_tops[side]
    n = values.size
    shared, pairs, end = segments(n, m)
    for t in range(n):
        x[t] = values[t]
    x[n:shared] = 0.0
    for a in range(m):
        x[shared + a] = tops[side, a] * room.low[side]
    x[shared + m : pairs] = 0.0
    at = pairs
    of_side = side * tops.shape[1]
    for b in range(1, m):
        top = tops[side, b]
        for a in range(0, b, LANES):
            store(x, at + a, LANES, load(tops, of_side + a, LANES) * top)
        at += b
    x[at:end] = 0.0


@jit
def dot(room, size):
    """Return the sum of weight times value of the first coordinates."""
    total = broadcast(room.x, 0.0)
    for s in range(0, size, LANES):
        total = total + load(room.planes, s, LANES) * load(room.x, s, LANES)
    return horizontal_sum(total)


@jit
def score_rows(parameters, rows, numbers, room, out):
    """Write f(x) of the rows with the given numbers into ``out``."""
    indptr = rows.indptr
    # The row of a step is looked up in the step before; the first of all has no other work.
    for i in range(-1, numbers.size):
        if i + 1 < numbers.size:
            first, last = indptr[numbers[i + 1]], indptr[numbers[i + 1] + 1]
            _look_up(
                parameters, rows.indices[first:last], rows.values[first:last], room, (i + 1) & 1
            )
        if i < 0:
            continue
        prefetch_row(rows, numbers, i)
        prefetch_linear(parameters.linear, rows, numbers, i)
        first, last = indptr[numbers[i]], indptr[numbers[i] + 1]
        indices, values = rows.indices[first:last], rows.values[first:last]
        out[i] = _score_row(parameters, indices, values, room, i & 1)


@jit
def _look_up(parameters, indices, values, room, side):
    find_tops(parameters.linear, indices, values, room, side)
    number_pairs(room, side, indices.size)
    place_pairs(parameters, room, side, indices.size)


@jit
def place_pairs(parameters, room, side, n):
    """Turn the numbers of a row's pairs into places and ask for their records."""
    m, places, pages = room.n_tops[side], room.places[side], parameters.pages
    _, pairs, _ = segments(n, m)
    for s in range(pairs, pairs + ((m * (m - 1)) >> 1)):
        number = np.int64(places[np.uintp(s)])
        page = np.int64(parameters.directory[np.uintp(number >> PAGE_BITS)])
        place = page * PAGE + (number & (PAGE - 1))
        places[np.uintp(s)] = np.int32(place)
        prefetch(pages, place * pages.shape[2])


@jit
def _score_row(parameters, indices, values, room, side):
    planes, pages = room.planes, parameters.pages
    m = room.n_tops[side]
    shared, pairs, end = segments(indices.size, m)
    expand(values, room, side)
    planes[0, indices.size : shared] = 0.0
    for t in range(indices.size):
        planes[0, t] = parameters.linear[indices[t], 0]
    planes[0, shared + m : pairs] = 0.0
    for a in range(m):
        planes[0, shared + a] = parameters.shared[room.ranks[side, a], 0]
    last = pairs + ((m * (m - 1)) >> 1)
    planes[0, last:end] = 0.0
    for s in range(pairs, last):
        place = np.int64(room.places[side, s])
        planes[0, s] = pages[place >> PAGE_BITS, place & (PAGE - 1), 0]
    return dot(room, end) + parameters.bias[0]


@jit
def most_tops(linear, rows):
    """Return how many frequent features there are in a row at most."""
    of_rank, most = linear.shape[1] - 1, 0
    for row in rows.numbers:
        m = 0
        for t in range(rows.indptr[row], rows.indptr[row + 1]):
            if linear[rows.indices[t], of_rank] >= 0:
                m += 1
        most = max(most, m)
    return most
