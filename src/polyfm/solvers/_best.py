"""The best weights so far, kept without what the update rule can do without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    n_planes : int
        How many planes are kept: the weights alone, or also what they were worked out from.
    """

    def __init__(self, parameters: Parameters, visits: int, n_planes: int = 1) -> None:
        self._parameters, self._visits, self._n_planes = parameters, visits, n_planes
        linear, table = parameters.linear, parameters.table
        n_met = int(np.count_nonzero(linear[:, visits]))
        n_dummies = len(table) - len(linear)
        self._linear = np.empty((n_met, n_planes), linear.dtype)
        self._table = np.empty((n_met + n_dummies, n_planes, table.shape[2]), table.dtype)
        self._small = [np.empty_like(getattr(parameters, name)[:n_planes]) for name in SMALL_BLOCKS]

    def take(self) -> None:
        """Copy the present weights."""
        p = self._parameters
        for name, kept in zip(SMALL_BLOCKS, self._small, strict=True):
            kept[...] = getattr(p, name)[: self._n_planes]
        _pack(p.linear, p.table, self._visits, self._linear, self._table)

    def state(self) -> list[NDArray[Any]]:
        """Return what was taken, for a file."""
        return [*self._small, self._linear, self._table]

    def restore(self, state: Sequence[NDArray[Any]]) -> None:
        """Take what :meth:`state` has returned."""
        kept = [*self._small, self._linear, self._table]
        for own, given in zip(kept, state, strict=True):
            own[...] = given

    def put_back(self) -> None:
        """Write back what was last taken."""
        p = self._parameters
        for name, kept in zip(SMALL_BLOCKS, self._small, strict=True):
            getattr(p, name)[: self._n_planes] = kept
        _unpack(p.linear, p.table, self._visits, self._linear, self._table)


class BestModel:
    """A copy of a learner's whole model, where weights are made as they are needed.

    Parameters
    ----------
    learner : object
        Its attribute ``model`` has a method ``copy``, and is replaced by :meth:`put_back`.
    """

    def __init__(self, learner: Any) -> None:
        self._learner = learner
        self._model = learner.model

    def take(self) -> None:
        """Copy the present model."""
        self._model = self._learner.model.copy()

    def state(self) -> Any:
        """Return what was taken, for a file."""
        return self._model

    def restore(self, state: Any) -> None:
        """Take what :meth:`state` has returned."""
        self._model = state

    def put_back(self) -> None:
        """Go back to what was last taken."""
        self._learner.model = self._model


@jit
def _pack(linear, table, visits, packed_linear, packed_table):
    n = 0
    for j in range(table.shape[0]):
        if j < linear.shape[0]:
            if linear[j, visits] == 0.0:
                continue
            for plane in range(packed_linear.shape[1]):
                packed_linear[n, plane] = linear[j, plane]
        for plane in range(packed_table.shape[1]):
            for s in range(table.shape[2]):
                packed_table[n, plane, s] = table[j, plane, s]
        n += 1


@jit
def _unpack(linear, table, visits, packed_linear, packed_table):
    n = 0
    for j in range(table.shape[0]):
        if j < linear.shape[0]:
            if linear[j, visits] == 0.0:
                continue
            for plane in range(packed_linear.shape[1]):
                linear[j, plane] = packed_linear[n, plane]
        for plane in range(packed_table.shape[1]):
            for s in range(table.shape[2]):
                table[j, plane, s] = packed_table[n, plane, s]
        n += 1
