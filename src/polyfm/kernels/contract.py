"""What an interaction kernel is: a fold over the terms of one row, with its adjoint.

Every kernel sees a basis ``p`` and a row ``x`` only through the terms ``z_j = p_j x_j`` of the
row's non-zeros. It keeps a few *cells* of running state, takes in one term after the other and
reads its value off the last cells. Going back over the terms with the adjoint of the cells gives
every derivative without a division: a kernel is exact at zeros and where one term dwarfs the
others.

Cells live in a work array; :func:`cell` and :func:`set_cell` read and write them. What they hold
are lanes, eight bases at a time (:mod:`polyfm._jit.lanes`), but a kernel is written as if for one.

A new kernel is a ``NamedTuple`` and one implementation of each generic function of this file.
"""

from __future__ import annotations

from typing import Any

from polyfm._jit import LANES, broadcast, generic, jit, load, store


@jit
def cell(cells, place):
    """Read the cell at ``place``."""
    return load(cells, place * LANES, LANES)


@jit
def set_cell(cells, place, number):
    """Write the cell at ``place``."""
    store(cells, place * LANES, LANES, number)


@jit
def constant(cells, value):
    """Return a number of the cells' precision that equals ``value`` in every lane."""
    return broadcast(cells, value)


@generic
def at_degree(kernel: Any, degree: int) -> Any:
    """Return the kernel with another degree; a kernel without degrees returns itself."""


@generic
def n_cells(kernel: Any) -> int:
    """Return how many cells of state a basis keeps."""


@generic
def n_degree_weights(kernel: Any) -> int:
    """Return how many weights of degrees the value depends on; 0 where degrees are not apart."""


@generic
def start(kernel: Any, cells: Any, at: int) -> None:
    """Write the cells of a row without any term, from place ``at`` on."""


@generic
def absorb(kernel: Any, cells: Any, before: int, after: int, z: Any) -> None:
    """Write the cells at ``after``: those at ``before`` with one more term ``z``.

    ``before`` and ``after`` may be the same place.
    """


@generic
def value(kernel: Any, cells: Any, at: int, weights: int) -> Any:
    """Return the kernel's value from the row's last cells and the degree weights' cells."""


@generic
def degree_value(kernel: Any, cells: Any, at: int, t: int) -> Any:
    """Return d value / d weight_t from the row's last cells; ``t`` counts from 0."""


@generic
def seed(kernel: Any, cells: Any, at: int, adjoint: int, weights: int) -> None:
    """Write the adjoint of the last cells, d value / d cells, from place ``adjoint`` on."""


@generic
def slope(kernel: Any, cells: Any, before: int, adjoint: int) -> Any:
    """Return d value / d z of a term, given the cells before it and the adjoint after it."""


@generic
def retreat(kernel: Any, cells: Any, adjoint: int, z: Any) -> None:
    """Turn the adjoint of the cells after term ``z`` into that of the cells before it."""
