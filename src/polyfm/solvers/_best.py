"""The best weights so far, kept without what the update rule remembers."""

from __future__ import annotations

import numpy as np

from polyfm._jit import jit
from polyfm.models._score import Parameters
from polyfm.solvers._threads import SMALL_BLOCKS


class BestWeights:
    """A copy of the weights that a training on some set of features can change.

    Parameters
    ----------
    parameters : Parameters
        The model's, copied by :meth:`take`.
    visits : int
        The column of the linear records that counts visits: features without one have no weights
        to keep, and logs of clicks have many such.
    """

    def __init__(self, parameters: Parameters, visits: int) -> None:
        self._parameters, self._visits = parameters, visits
        linear, table = parameters.linear, parameters.table
        n_met = int(np.count_nonzero(linear[:, visits]))
        n_dummies = len(table) - len(linear)
        self._linear = np.empty(n_met, linear.dtype)
        self._table = np.empty((n_met + n_dummies, table.shape[2]), table.dtype)
        self._small = [np.empty_like(getattr(parameters, name)[0]) for name in SMALL_BLOCKS]

    def take(self) -> None:
        """Copy the present weights."""
        p = self._parameters
        for name, kept in zip(SMALL_BLOCKS, self._small, strict=True):
            kept[...] = getattr(p, name)[0]
        _pack(p.linear, p.table, self._visits, self._linear, self._table)

    def put_back(self) -> None:
        """Write back what was last taken."""
        p = self._parameters
        for name, kept in zip(SMALL_BLOCKS, self._small, strict=True):
            getattr(p, name)[0] = kept
        _unpack(p.linear, p.table, self._visits, self._linear, self._table)


@jit
def _pack(linear, table, visits, packed_linear, packed_table):
    n = 0
    for j in range(table.shape[0]):
        if j < linear.shape[0]:
            if linear[j, visits] == 0.0:
                continue
            packed_linear[n] = linear[j, 0]
        for s in range(table.shape[2]):
            packed_table[n, s] = table[j, 0, s]
        n += 1


@jit
def _unpack(linear, table, visits, packed_linear, packed_table):
    n = 0
    for j in range(table.shape[0]):
        if j < linear.shape[0]:
            if linear[j, visits] == 0.0:
                continue
            linear[j, 0] = packed_linear[n]
        for s in range(table.shape[2]):
            table[j, 0, s] = packed_table[n, s]
        n += 1
