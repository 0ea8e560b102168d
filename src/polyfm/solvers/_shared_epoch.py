"""The epoch of one of several threads that share the table.

Threads share rows of the table without locks. Where most rows have a feature in common, they would
spend their time handing its cache line to each other, so each thread has rows of its own for such
hot features, behind those of the model; between slices the copies are merged.
"""

from __future__ import annotations

from polyfm._jit import flush_subnormals, jit, restore_mode
from polyfm.models._score import load_degree_weights, prefetch_parameters
from polyfm.solvers._epoch import learn_row, prefetch_rows


@jit
def learn_shared_rows(
    kernel, loss, rule, penalties, switches, parameters, plan, rows, order, t, share, cells,
    loss_sum, hot, first_own, own_indices,
):  # fmt: skip
    """Visit rows as :func:`polyfm.solvers._epoch.learn_rows` does, hot features in rows of its own.

    ``hot`` maps a feature to its number among the hot ones, or -1; ``first_own`` is the thread's
    first row for them. ``own_indices``, of shape (2, longest row), is room for two rows' indices.
    """
    mode = flush_subnormals()
    result = _learn_shared_rows(
        kernel, loss, rule, penalties, switches, parameters, plan, rows, order, t, share, cells,
        loss_sum, hot, first_own, own_indices,
    )  # fmt: skip
    restore_mode(mode)
    return result


@jit
def _learn_shared_rows(
    kernel, loss, rule, penalties, switches, parameters, plan, rows, order, t, share, cells,
    loss_sum, hot, first_own, own_indices,
):  # fmt: skip
    load_degree_weights(parameters, plan.chunks, cells)
    if order.size:
        _redirect(rows, order[0], hot, first_own, own_indices[0])
    for i in range(order.size):
        prefetch_rows(rows, order, i, 1)
        if i + 1 < order.size:
            following = own_indices[(i + 1) % 2]
            n = _redirect(rows, order[i + 1], hot, first_own, following)
            prefetch_parameters(parameters, following, 0, n)
        row = order[i]
        first, last = rows.indptr[row], rows.indptr[row + 1]
        is_finite, loss_of_row = learn_row(
            kernel, loss, rule, penalties, switches, parameters, plan,
            own_indices[i % 2][: last - first], rows.values[first:last],
            rows.target[row], rows.weight[row], t + i, share, cells,
        )  # fmt: skip
        if not is_finite:
            return i, loss_sum
        loss_sum += loss_of_row
    return order.size, loss_sum


@jit
def _redirect(rows, row, hot, first_own, out):
    """Write where the thread keeps each feature of a row; return how many there are."""
    first, last = rows.indptr[row], rows.indptr[row + 1]
    for t in range(first, last):
        j = rows.indices[t]
        number = hot[j]
        out[t - first] = j if number < 0 else first_own + number
    return last - first
