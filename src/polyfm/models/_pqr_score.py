"""The compiled expansion of a row into single features and crosses, and its score."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm._jit import (
    LANES,
    broadcast,
    horizontal_sum,
    jit,
    load,
    maximum,
    minimum,
    prefetch,
    store,
)
from polyfm._jit.records import load_short_records
from polyfm.updates import compact
from polyfm.updates import contract as updates

PAGE_BITS = 4
PAGE = 1 << PAGE_BITS
"""Pairs in a page."""
_LINE_OF_INDICES = 16
_PREFETCHED_LINES = 8
_ROWS_AHEAD = 4


class PQRParameters(NamedTuple):
    """All numbers of a model, as compiled code sees them.

    While learning, a linear record is what the update rule keeps for a coordinate, the weight
    first, and perhaps a count of visits, with zeros up to three numbers, and a factor; that of a
    pair is two numbers, see :mod:`polyfm.updates.compact`. A model that only predicts has the
    weight alone. ``d`` features, ``k`` of them frequent.

    The records of frequent features come first, by rank, so that those which are used most share
    pages of memory; a feature is frequent if its record is one of the first k.

    The sum of the infrequent features takes part in the crosses as one more frequent feature, of
    rank k. Pairs are numbered from one page on; those with neighbouring numbers share a page. The
    first page stands for all that do not exist: zeros.
    """

    bias: NDArray[Any]
    """(planes,)."""
    linear: NDArray[Any]
    """(d, record): the last number is what the value of a feature that is not frequent is
    multiplied by before it is added to the others'; 0 for frequent ones."""
    places: NDArray[np.int32]
    """(d,): which of these records is a feature's. Empty where rows name the records."""
    has_factors: bool
    """Whether there are factors other than 0 and 1."""
    pages: NDArray[Any]
    """(capacity, 16, record)."""
    directory: NDArray[np.int32]
    """(k (k + 1) / 32 + 2,): the page of each block of 16 pairs, 0 where there is none. Empty
    where each block has the page of its own number."""
    blocks: NDArray[np.int64]
    """(capacity,): which block of pairs a page is for."""
    used: NDArray[np.int64]
    """(1,): number of pages that exist, the first included."""
    order: int
    """k."""
    rule: Any
    """The update rule, which tells the weight of a pair from its record."""
    penalty: Any
    """That of pairs."""


class Room(NamedTuple):
    """Where rows are expanded, on one of four sides each.

    While a row is learnt, the pairs of the next are found, and the features of the one after.
    Vectors that are read at once after their numbers were written one by one come late.
    """

    n_features: NDArray[np.int64]
    """(4,): how many features a row has."""
    n_tops: NDArray[np.int64]
    """(4,): how many numbers are crossed: those of its frequent features, and others' sum."""
    n_pairs: NDArray[np.int64]
    """(4,): how many crosses there are."""
    ranks: NDArray[np.int32]
    """(4, most + 8): ranks of what is crossed."""
    starts: NDArray[np.int32]
    """(4, most + 8): number of the first pair of each with a feature of lower rank."""
    tops: NDArray[Any]
    """(4, most + 8): their values."""
    places: NDArray[np.int32]
    """(4, size): records of the expanded row's coordinates."""
    x: NDArray[Any]
    """(4, size): values of the expanded row."""
    planes: NDArray[Any]
    """(4, size): what is kept for its coordinates."""


@jit
def padded(n):
    """Return the next multiple of the number of lanes."""
    return (n + LANES - 1) // LANES * LANES


@jit
def prefetch_row(rows, numbers, i):
    """Ask for what the rows some places on hold, and where the ones after them are."""
    if i + 4 * _ROWS_AHEAD < numbers.size:
        row = numbers[i + 4 * _ROWS_AHEAD]
        prefetch(rows.indptr, row)
        prefetch(rows.target, row)
        prefetch(rows.weight, row)
    if i + 2 * _ROWS_AHEAD < numbers.size:
        row = numbers[i + 2 * _ROWS_AHEAD]
        first, last = rows.indptr[row], rows.indptr[row + 1]
        last = min(last, first + _LINE_OF_INDICES * _PREFETCHED_LINES)
        for place in range(first, last, _LINE_OF_INDICES):
            prefetch(rows.indices, place)
            prefetch(rows.values, place)


@jit
def prefetch_linear(parameters, rows, numbers, i):
    """Ask for the linear records of a row some places on, or for where they are."""
    linear, places = parameters.linear, parameters.places
    if i + _ROWS_AHEAD < numbers.size:
        row = numbers[i + _ROWS_AHEAD]
        for t in range(rows.indptr[row], rows.indptr[row + 1]):
            index = rows.indices[np.uintp(t)]
            if places.size:
                prefetch(places, index)
            else:
                prefetch(linear, index * linear.shape[1])


@jit
def first_number(rank):
    """Return the number of the first pair of a feature with one of lower rank.

    The pair of ranks a < b has the number b (b - 1) / 2 + a and the numbers of a page more, so the
    pairs of the k most frequent features come first, whatever k is.
    """
    return PAGE + ((rank * (rank - 1)) >> 1)


@jit
def expand_features(parameters, rows, row, room, side):
    """Write a row's features into the expanded row, and find what is crossed."""
    first, last = rows.indptr[row], rows.indptr[row + 1]
    indices, values = rows.indices[first:last], rows.values[first:last]
    linear, places = parameters.linear, room.places[side]
    ranks, tops = room.ranks[side], room.tops[side]
    n, of_factor = indices.size, np.uintp(linear.shape[1] - 1)
    low, m = linear.dtype.type(0.0), np.uintp(0)
    for i in range(n):
        t = np.uintp(i)
        place, value = _place_of(parameters, indices[t]), values[t]
        is_frequent = place < parameters.order
        places[t] = place
        # Written for every feature and kept for the frequent ones: a branch would be guessed wrong.
        ranks[m] = place
        tops[m] = value
        m += np.uintp(is_frequent)
        if parameters.has_factors:
            low += value * linear[np.uintp(place), of_factor]
        else:
            low += value * linear.dtype.type(not is_frequent)
    at = side * room.x.shape[1]
    for s in range(0, n, LANES):
        store(room.x, at + s, LANES, load(values, s, n - s))
    fill(room, side, n)
    # Where a row holds nothing but frequent features it does not visit their shared crosses.
    ranks[m] = parameters.order
    tops[m] = low
    n_tops = np.int64(m + np.uintp(low != 0.0))
    room.n_features[side] = n
    room.n_tops[side] = n_tops
    room.n_pairs[side] = (n_tops * (n_tops - 1)) >> 1


@jit
def _place_of(parameters, feature):
    """Return where the linear record of a feature is."""
    places = parameters.places
    if not places.size:
        return np.int32(feature)
    place = places[np.uintp(feature)]
    prefetch(parameters.linear, np.intp(place) * parameters.linear.shape[1])
    return place


@jit
def fill(room, side, n):
    """Fill the last lanes with the first place among them, where the first is kept, and zeros."""
    last = n // LANES * LANES
    for s in range(n, padded(n)):
        room.places[side, s] = room.places[side, last]
        room.x[side, s] = 0.0


@jit
def expand_pairs(room, side):
    """Write a row's crosses after its features: numbers of pairs, and values."""
    ranks, starts, tops, m = room.ranks, room.starts, room.tops, room.n_tops[side]
    of_side, at = side * ranks.shape[1], side * room.places.shape[1] + first_pair(room, side)
    for a in range(of_side, of_side + m, LANES):
        store(starts, a, LANES, first_number(load(ranks, a, LANES)))
    for i in range(1, m):
        b = np.uintp(i)
        rank, start, top = ranks[side, b], starts[side, b], tops[side, b]
        # Whole vectors, as loops of few steps are slow: what is too much is overwritten.
        for a in range(0, i, LANES):
            least = minimum(load(ranks, of_side + a, LANES), rank)
            number = maximum(load(starts, of_side + a, LANES), start) + least
            store(room.places, at + a, LANES, number)
            store(room.x, at + a, LANES, load(tops, of_side + a, LANES) * top)
        at += i


@jit
def first_pair(room, side):
    """Return where the pairs of an expanded row begin."""
    return padded(room.n_features[side])


@jit
def place_pairs(parameters, room, side):
    """Turn numbers of pairs into places, in the first page for pairs that have no other."""
    directory, places = parameters.directory, room.places[side]
    first = first_pair(room, side)
    last = first + room.n_pairs[side]
    if directory.size:
        for s in range(first, last):
            number = np.int64(places[s])
            page = np.int64(directory[number >> PAGE_BITS])
            places[s] = page * PAGE + (number & (PAGE - 1))
    fill(room, side, last)


@jit
def weigh_pairs(parameters, room, side, s):
    """Return eight weights of pairs, and the two numbers that are kept for each."""
    first, second = load_short_records(parameters.pages, room.places[side], s)
    rate = parameters.bias.dtype.type(updates.rate(parameters.rule, 0.0))
    weights = compact.weight(parameters.rule, parameters.penalty, first, second, rate)
    return weights, first, second


@jit
def weigh_places(parameters, places, out):
    """Write the weights of pairs into ``out``, to the bits that scores are made of.

    ``places`` are those of their records, a multiple of eight.
    """
    rate = parameters.bias.dtype.type(updates.rate(parameters.rule, 0.0))
    for s in range(0, places.size, LANES):
        first, second = load_short_records(parameters.pages, places, s)
        weights = compact.weight(parameters.rule, parameters.penalty, first, second, rate)
        store(out, s, LANES, weights)


@jit
def score_rows(parameters, rows, numbers, room, out):
    """Write f(x) of the rows with the given numbers into ``out``."""
    for i in range(-2, numbers.size):
        if i + 2 < numbers.size:
            expand_features(parameters, rows, numbers[i + 2], room, (i + 2) & 3)
        if 0 <= i + 1 < numbers.size:
            expand_pairs(room, (i + 1) & 3)
            place_pairs(parameters, room, (i + 1) & 3)
            _ask_for_pairs(parameters, room, (i + 1) & 3)
        prefetch_row(rows, numbers, i)
        prefetch_linear(parameters, rows, numbers, i)
        if i >= 0:
            out[i] = _score_row(parameters, room, i & 3)


@jit
def _ask_for_pairs(parameters, room, side):
    places, first = room.places[side], first_pair(room, side)
    for s in range(first, first + room.n_pairs[side]):
        prefetch(parameters.pages, np.int64(places[s]) * parameters.pages.shape[2])


@jit
def _score_row(parameters, room, side):
    x, places, pages = room.x[side], room.places[side], parameters.pages
    score = parameters.bias[0]
    for t in range(room.n_features[side]):
        score += parameters.linear[places[t], 0] * x[t]
    first = first_pair(room, side)
    last = first + room.n_pairs[side]
    # In one order, so that a model which only predicts gives the same bits.
    total = broadcast(x, 0.0)
    for s in range(first, last, LANES):
        if pages.shape[2] == 1:
            for p in range(s, s + LANES):
                place = np.int64(places[p])
                room.planes[0, p] = pages[place >> PAGE_BITS, place & (PAGE - 1), 0]
            weights = load(room.planes, s, LANES)
        else:
            weights, _, _ = weigh_pairs(parameters, room, side, s)
        total = total + weights * load(x, s, LANES)
    return score + horizontal_sum(total)


@jit
def most_tops(parameters, rows):
    """Return how many frequent features there are in a row at most."""
    most = 0
    for row in rows.numbers:
        m = 0
        for t in range(rows.indptr[row], rows.indptr[row + 1]):
            if _place_of(parameters, rows.indices[t]) < parameters.order:
                m += 1
        most = max(most, m)
    return most
