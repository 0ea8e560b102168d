"""The compiled heart of projective quadratic regression: one pass over some rows."""

from __future__ import annotations

import numpy as np

from polyfm._jit import LANES, broadcast, horizontal_sum, jit, load, prefetch, store
from polyfm._jit.records import (
    SHORT_RECORD,
    load_records,
    store_records,
    store_short_records,
)
from polyfm.losses import contract as losses
from polyfm.models._pqr_score import (
    PAGE_BITS,
    expand_features,
    expand_pairs,
    first_pair,
    place_pairs,
    prefetch_linear,
    prefetch_row,
    weigh_pairs,
)
from polyfm.updates import compact
from polyfm.updates import contract as updates

DONE, PAGES_ARE_FULL, NOT_FINITE = 0, 1, 2


@jit
def learn_rows(loss, penalties, learns_bias, parameters, rows, order, t, room, loss_sum, judged):
    """Visit the rows named by ``order``; stop before a row whose pairs may not find room.

    Each row's weighted loss before its update is added to ``loss_sum`` and, where it has a place,
    to ``judged``: one by one, so that sums do not depend on where passes are cut. Returns the
    number of rows learnt and why it has stopped. ``t`` is the number of rows visited before.
    """
    has_room = True
    for i in range(-2, order.size):
        if not has_room:
            return i, PAGES_ARE_FULL
        if i + 2 < order.size:
            expand_features(parameters, rows, order[i + 2], room, (i + 2) & 3)
        else:
            room.n_pairs[(i + 2) & 3] = 0
        if 0 <= i + 1 < order.size:
            has_room = _find_pairs(parameters, room, (i + 1) & 3)
        prefetch_row(rows, order, i)
        prefetch_linear(parameters, rows, order, i)
        if i < 0:
            continue
        row = order[i]
        is_finite, loss_of_row = _learn_row(
            loss, penalties, learns_bias, parameters, rows.target[row], rows.weight[row], t + i,
            room, i & 3,
        )  # fmt: skip
        if not is_finite:
            return i, NOT_FINITE
        loss_sum[0] += loss_of_row
        if judged.size > 0:
            judged[0] += loss_of_row
    return order.size, DONE


@jit
def _find_pairs(parameters, room, side):
    """Find the places of a row's pairs and make pages for them, if there is room."""
    expand_pairs(room, side)
    n_blocks, n_pages = parameters.directory.size, parameters.used[0]
    if n_blocks:
        if min(n_pages + room.n_pairs[side], n_blocks) > parameters.blocks.size:
            return False
        first = first_pair(room, side)
        _make_pages(parameters, room.places[side], first, first + room.n_pairs[side])
    place_pairs(parameters, room, side)
    return True


@jit
def _make_pages(parameters, numbers, first, last):
    """Make pages for those pairs that have none."""
    directory = parameters.directory
    for s in range(first, last):
        block = np.int64(numbers[s]) >> PAGE_BITS
        if directory[block] == 0:
            page = parameters.used[0]
            parameters.used[0] = page + 1
            parameters.blocks[page] = block
            directory[block] = page


@jit
def _learn_row(loss, penalties, learns_bias, parameters, target, weight, t, room, side):
    """Learn one row; return whether all stays finite and its loss before the update."""
    bias, rule, dtype = parameters.bias, parameters.rule, parameters.bias.dtype.type
    places, end = _pairs_of(room, (side + 1) & 3)
    score, ahead = _weigh(parameters, room, side, places, end)
    score += bias[0]
    g = dtype(weight * losses.gradient(loss, target, score))
    if not np.isfinite(g):
        return False, 0.0
    rate = dtype(updates.rate(rule, t))
    if learns_bias:
        updates.step(rule, penalties.bias, bias, 0, 1, 1, g, rate, dtype(1.0))
    kept = broadcast(room.x, 0.0)
    first = first_pair(room, side)
    for s in range(0, first, LANES):
        kept = kept + _step(penalties.linear, parameters, room, side, s, g, rate)
    for s in range(first, first + room.n_pairs[side], LANES):
        ahead = _ask_for(parameters.pages, places, ahead, end)
        kept = kept + _step_pairs(parameters, room, side, s, g, rate)
    while ahead < end:
        ahead = _ask_for(parameters.pages, places, ahead, end)
    is_finite = np.isfinite(horizontal_sum(kept)) and np.isfinite(bias[0])
    return is_finite, np.float64(weight * losses.value(loss, target, score))


@jit
def _weigh(parameters, room, side, next_places, end):
    """Load what is kept for a row; return the sum of weights times values, and what is asked for.

    The pairs of the next row are asked for little by little, in between the work on this row: so
    many at a time would wait for each other.
    """
    x, places, planes, stride = room.x[side], room.places[side], room.planes, room.planes.shape[1]
    first, ahead = first_pair(room, side), first_pair(room, (side + 1) & 3)
    total = broadcast(x, 0.0)
    for s in range(0, first, LANES):
        load_records(parameters.linear, places, s, planes, s)
        total = total + load(planes, s, LANES) * load(x, s, LANES)
    for s in range(first, first + room.n_pairs[side], LANES):
        if (s - first) & LANES:
            ahead = _ask_for(parameters.pages, next_places, ahead, end)
        weights, one, other = weigh_pairs(parameters, room, side, s)
        store(planes, s, LANES, weights)
        store(planes, s + stride, LANES, one)
        store(planes, s + 2 * stride, LANES, other)
        total = total + weights * load(x, s, LANES)
    return horizontal_sum(total), ahead


@jit
def _step(penalty, parameters, room, side, s, g, rate):
    """Move eight features; return what is no number unless all that is kept of them are some.

    At its v-th visit each pays a v-th of its penalty. Rules that keep sums of gradients weigh the
    whole penalty against these.
    """
    rule, planes, stride = parameters.rule, room.planes, room.planes.shape[1]
    one = broadcast(planes, 1.0)
    slope = load(room.x[side], s, LANES) * g
    if updates.sums_gradients(rule):
        updates.step(rule, penalty, planes, s, stride, LANES, slope, rate, one)
    else:
        visits = updates.n_planes(rule) * stride
        visit = load(planes, visits + s, LANES) + one
        store(planes, visits + s, LANES, visit)
        updates.step(rule, penalty, planes, s, stride, LANES, slope, rate, one / visit)
    store_records(parameters.linear, room.places[side], s, planes, s)
    kept = load(planes, s, LANES)
    for plane in range(1, updates.n_planes(rule)):
        kept = kept + load(planes, plane * stride + s, LANES)
    return kept * 0.0


@jit
def _step_pairs(parameters, room, side, s, g, rate):
    """Move eight pairs; return what is no number unless all that is kept of them are some."""
    planes, stride = room.planes, room.planes.shape[1]
    slope = load(room.x[side], s, LANES) * g
    first, second = load(planes, stride + s, LANES), load(planes, 2 * stride + s, LANES)
    weight = load(planes, s, LANES)
    first, second = compact.moved(
        parameters.rule, parameters.penalty, weight, first, second, slope, rate
    )
    store_short_records(parameters.pages, room.places[side], s, first, second)
    return first * 0.0


@jit
def _pairs_of(room, side):
    """Return the places of an expanded row, and where those of its pairs end."""
    return room.places[side], first_pair(room, side) + room.n_pairs[side]


@jit
def _ask_for(pages, places, s, end):
    """Ask for the records of eight pairs from s on, if there are any; return where the next are."""
    if s >= end:
        return s
    for i in range(LANES):
        prefetch(pages, np.intp(places[np.uintp(s + i)]) * SHORT_RECORD)  # type: ignore[arg-type]
    return s + LANES


@jit
def count_pairs(parameters, rows, room):
    """Return how many pairs the rows hold, each as often as it occurs."""
    total = 0
    for row in rows.numbers:
        expand_features(parameters, rows, row, room, 0)
        total += room.n_pairs[0]
    return total


@jit
def find_pairs(parameters, rows, room, out):
    """Write the place of each pair of the rows into ``out``; in the first page if it has none."""
    at = 0
    for row in rows.numbers:
        expand_features(parameters, rows, row, room, 0)
        expand_pairs(room, 0)
        place_pairs(parameters, room, 0)
        first = first_pair(room, 0)
        for p in range(room.n_pairs[0]):
            out[at + p] = room.places[0, first + p]
        at += room.n_pairs[0]
