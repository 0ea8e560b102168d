"""Room for features to come: blocks of parameters that are the front of longer ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from polyfm.models._score import Parameters
from polyfm.models.factorized import Factorized
from polyfm.solvers._threads import LARGE_BLOCKS
from polyfm.solvers.learner import allocate

Blocks = dict[str, NDArray[Any]]


def capacity_for(n_wanted: int, n_present: int, most: int) -> int:
    """Return how much room to make: twice what there is, so that growing takes linear time."""
    return min(max(n_wanted, 2 * n_present), most)


def has_room(model: Factorized, blocks: Blocks | None, n_features: int) -> bool:
    """Say whether the blocks of a model are the front of these, which are long enough."""
    if blocks is None or len(blocks["linear"]) < n_features:
        return False
    p = model.parameters
    return all(blocks[name].ctypes.data == getattr(p, name).ctypes.data for name in LARGE_BLOCKS)


def more_room(model: Factorized, capacity: int) -> Blocks:
    """Return longer blocks whose front is a copy of the model's."""
    p = model.parameters
    shapes = {
        "linear": (capacity, *p.linear.shape[1:]),
        "table": (capacity + model.n_dummies, *p.table.shape[1:]),
    }
    blocks = allocate(shapes, p.linear.dtype, 0)
    for name, block in blocks.items():
        block[: len(getattr(p, name))] = getattr(p, name)
    return blocks


def widened(model: Factorized, blocks: Blocks, n_features: int) -> Factorized:
    """Return a model of more features in these blocks; dummy features stay the last ones."""
    p, d = model.parameters, model.n_features
    dummies = p.table[d:].copy()
    linear = blocks["linear"][:n_features]
    table = blocks["table"][: n_features + model.n_dummies]
    linear[d:] = 0
    table[d:n_features] = 0
    table[n_features:] = dummies
    parameters: Parameters = p._replace(linear=linear, table=table)
    return replace(model, parameters=parameters)
