"""What coordinate descent asks of a kernel besides the contract of rows.

A kernel that is affine in each term :math:`z_j = p_j x_j` can keep, for each row of the data, a few
cells that cover *all* terms of the row, and read off them the derivative by any one term: a step of
one coordinate then costs what that column holds, not what its rows hold. Taking a term out of the
cells again can lose digits where that term dwarfs the others, so each slope comes with a bound on
its rounding error; the solver walks the row where the bound is too large.

A kernel takes part by one implementation of each generic function of this file.
"""

from __future__ import annotations

from typing import Any

from polyfm._jit import generic, jit, load_like, store

EPSILON = 2.0**-52


@jit
def row_cell(z, state, at, t, width):
    """Read ``width`` bases of the t-th cell of a row's state, as lanes or a scalar as ``z`` is."""
    return load_like(z, state, at + t * width, width)


@jit
def set_row_cell(state, at, t, width, number):
    """Write ``width`` bases of the t-th cell of a row's state."""
    store(state, at + t * width, width, number)


@generic
def alone(kernel: Any) -> Any:
    """Return a kernel, or the same, whose value is that of the highest degree with weight 1."""


@generic
def n_row_cells(kernel: Any) -> int:
    """Return how many cells of state each row keeps for the columns' steps."""


@generic
def row_slope(
    kernel: Any, state: Any, at: int, width: int, z: Any, cells: Any, weights: int
) -> Any:
    """Return d value / d z and a bound on its rounding error.

    ``state`` holds the cells of the row from position ``at`` on, ``width`` numbers each, all terms
    taken in; ``z`` is the term in question, as lanes or a scalar; ``weights`` is the place of the
    degree weights in ``cells``.
    """


@generic
def move_term(kernel: Any, state: Any, at: int, width: int, z: Any, change: Any) -> None:
    """Bring the cells of a row up to date when its term ``z`` becomes ``z + change``."""
