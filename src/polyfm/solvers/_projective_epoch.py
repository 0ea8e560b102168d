"""The compiled heart of projective quadratic regression: one pass over some rows."""

from __future__ import annotations

import numpy as np

from polyfm._jit import LANES, broadcast, horizontal_sum, jit, load, prefetch, store
from polyfm._jit.records import RECORD, load_records, store_records
from polyfm.losses import contract as losses
from polyfm.models._pqr_score import (
    PAGE,
    PAGE_BITS,
    dot,
    expand,
    find_tops,
    number_pairs,
    padded,
    place_pairs,
    prefetch_linear,
    prefetch_row,
    segments,
)
from polyfm.updates import contract as updates

DONE, PAGES_ARE_FULL, NOT_FINITE = 0, 1, 2


@jit
def learn_rows(
    loss, rule, penalties, learns_bias, parameters, rows, order, t, room, loss_sum, judged
):
    """Visit the rows named by ``order``; stop before a row whose pairs may not find room.

    Each row's weighted loss before its update is added to ``loss_sum`` and, where it has a place,
    to ``judged``: one by one, so that sums do not depend on where passes are cut. Returns the
    number of rows learnt and why it has stopped. ``t`` is the number of rows visited before.
    """
    indptr = rows.indptr
    has_room = True
    room.pairs[:, :] = 0
    # The row of a step is looked up in the step before; the first of all has no other work.
    for i in range(-1, order.size):
        if not has_room:
            return i, PAGES_ARE_FULL
        room.pairs[(i + 1) & 1, :] = 0
        if i + 1 < order.size:
            first, last = indptr[order[i + 1]], indptr[order[i + 1] + 1]
            has_room = _look_up(
                parameters, rows.indices[first:last], rows.values[first:last], room, (i + 1) & 1
            )
        if i < 0:
            continue
        prefetch_row(rows, order, i)
        prefetch_linear(parameters.linear, rows, order, i)
        row = order[i]
        first, last = indptr[row], indptr[row + 1]
        is_finite, loss_of_row = _learn_row(
            loss, rule, penalties, learns_bias, parameters, rows.values[first:last],
            rows.target[row], rows.weight[row], t + i, room, i & 1,
        )  # fmt: skip
        if not is_finite:
            return i, NOT_FINITE
        loss_sum[0] += loss_of_row
        if judged.size > 0:
            judged[0] += loss_of_row
    return order.size, DONE


@jit
def _look_up(parameters, indices, values, room, side):
    """Find the records of a row's expansion, and make those of new pairs, if there is room."""
    find_tops(parameters.linear, indices, values, room, side)
    n, m, places = indices.size, room.n_tops[side], room.places
    n_pairs = (m * (m - 1)) >> 1
    if parameters.used[0] + n_pairs > parameters.blocks.size:
        return False
    number_pairs(room, side, n)
    shared, pairs, end = segments(n, m)
    room.pairs[side, 0], room.pairs[side, 1] = pairs, end
    for t in range(n):
        places[side, t] = indices[t]
    _repeat(places, side, n)
    for a in range(m):
        places[side, shared + a] = room.ranks[side, a]
    _repeat(places, side, shared + m)
    _place_pairs(parameters, places[side], pairs, pairs + n_pairs)
    _repeat(places, side, pairs + n_pairs)
    return True


@jit
def _repeat(places, side, n):
    """Fill the last lanes with the first place among them, where the first is kept."""
    last = n // LANES * LANES
    for s in range(n, padded(n)):
        places[side, s] = places[side, last]


@jit
def _place_pairs(parameters, places, first, last):
    """Turn numbers of pairs into places, and make pages for those that have none."""
    directory = parameters.directory
    for s in range(first, last):
        number = np.int64(places[np.uintp(s)])
        block = np.uintp(number >> PAGE_BITS)
        page = np.int64(directory[block])
        if page == 0:
            page = parameters.used[0]
            parameters.used[0] = page + 1
            parameters.blocks[page] = block
            directory[block] = page
        place = page * PAGE + (number & (PAGE - 1))
        places[np.uintp(s)] = np.int32(place)


@jit
def _learn_row(
    loss, rule, penalties, learns_bias, parameters, values, target, weight, t, room, side
):
    """Learn one row; return whether all stays finite and its loss before the update."""
    bias = parameters.bias
    dtype = bias.dtype.type
    shared, pairs, end = segments(values.size, room.n_tops[side])
    expand(values, room, side)
    places, planes = room.places[side], room.planes
    for s in range(0, shared, LANES):
        load_records(parameters.linear, places, s, planes, s)
    for s in range(shared, pairs, LANES):
        load_records(parameters.shared, places, s, planes, s)
    for s in range(pairs, end, LANES):
        load_records(parameters.pages, places, s, planes, s)
    score = dot(room, end) + bias[0]
    g = dtype(weight * losses.gradient(loss, target, score))
    if not np.isfinite(g):
        return False, 0.0
    rate = dtype(updates.rate(rule, t))
    if learns_bias:
        updates.step(rule, penalties.bias, bias, 0, 1, 1, g, rate, dtype(1.0))
    total = broadcast(room.x, 0.0)
    for s in range(0, shared, LANES):
        total = total + _step(rule, penalties.linear, parameters.linear, room, side, s, g, rate)
    # Where a row holds nothing but frequent features it does not visit their shared crosses.
    for s in range(shared, pairs if room.low[side] != 0.0 else shared, LANES):
        total = total + _step(rule, penalties.factors, parameters.shared, room, side, s, g, rate)
    ahead, last_ahead = room.pairs[1 - side, 0], room.pairs[1 - side, 1]
    for s in range(pairs, end, LANES):
        # Spread over the work on this row: so many at a time would wait for each other.
        if ahead < last_ahead:
            _ask_for(parameters.pages, room.places[1 - side], ahead)
            ahead += LANES
        total = total + _step(rule, penalties.factors, parameters.pages, room, side, s, g, rate)
    for s in range(ahead, last_ahead, LANES):
        _ask_for(parameters.pages, room.places[1 - side], s)
    is_finite = np.isfinite(horizontal_sum(total)) and np.isfinite(bias[0])
    return is_finite, np.float64(weight * losses.value(loss, target, score))


@jit
def _step(rule, penalty, records, room, side, s, g, rate):
    """Move eight coordinates; return what is no number unless all that is kept of them are some.

    At its v-th visit each pays a v-th of its penalty. Rules that keep sums of gradients weigh the
    whole penalty against these.
    """
    planes, stride = room.planes, room.planes.shape[1]
    one = broadcast(room.x, 1.0)
    slope = load(room.x, s, LANES) * g
    if updates.sums_gradients(rule):
        updates.step(rule, penalty, planes, s, stride, LANES, slope, rate, one)
    else:
        visits = updates.n_planes(rule) * stride
        visit = load(planes, visits + s, LANES) + one
        store(planes, visits + s, LANES, visit)
        updates.step(rule, penalty, planes, s, stride, LANES, slope, rate, one / visit)
    store_records(records, room.places[side], s, planes, s)
    kept = load(planes, s, LANES)
    for plane in range(1, updates.n_planes(rule)):
        kept = kept + load(planes, plane * stride + s, LANES)
    return kept * 0.0


@jit
def _ask_for(pages, places, s):
    """Ask for the records of eight pairs."""
    for i in range(LANES):
        prefetch(pages, np.intp(places[np.uintp(s + i)]) * RECORD)  # type: ignore[arg-type]


@jit
def count_pairs(linear, rows):
    """Return how many pairs of frequent features the rows hold, each as often as it occurs."""
    of_rank, total = linear.shape[1] - 1, 0
    for row in rows.numbers:
        m = 0
        for t in range(rows.indptr[row], rows.indptr[row + 1]):
            if linear[rows.indices[t], of_rank] >= 0:
                m += 1
        total += (m * (m - 1)) >> 1
    return total


@jit
def find_pairs(parameters, rows, room, out):
    """Write the place of each pair of the rows into ``out``; in the first page if it has none."""
    at = 0
    for row in rows.numbers:
        first, last = rows.indptr[row], rows.indptr[row + 1]
        find_tops(parameters.linear, rows.indices[first:last], rows.values[first:last], room, 0)
        number_pairs(room, 0, last - first)
        place_pairs(parameters, room, 0, last - first)
        m = room.n_tops[0]
        n_pairs = (m * (m - 1)) >> 1
        _, pairs, _ = segments(last - first, m)
        for p in range(n_pairs):
            out[at + p] = room.places[0, pairs + p]
        at += n_pairs
