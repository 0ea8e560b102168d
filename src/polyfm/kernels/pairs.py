"""The ANOVA kernel of degree 2 alone: each pair of distinct features once."""

from __future__ import annotations

from typing import NamedTuple

from polyfm._jit import absolute
from polyfm.kernels import columns, contract
from polyfm.kernels.columns import EPSILON, row_cell, set_row_cell
from polyfm.kernels.contract import cell, constant, set_cell


class Pairs(NamedTuple):
    r"""ANOVA kernel of degree 2.

    .. math:: A^2(p, x) = \sum_{i < j} p_i x_i \, p_j x_j

    What :class:`ANOVA` of degree 2 is with the degree weights 0 and 1, without loops whose length
    only the run knows: a step of coordinate descent takes two thirds of the time. Cell 0 holds the
    sum of the terms taken in so far, cell 1 that of their pairs.

    References
    ----------
    S. Rendle, "Factorization Machines", ICDM 2010.
    """


@contract.at_degree.implements(Pairs)
def _at_degree(kernel, degree):
    return kernel


@contract.n_cells.implements(Pairs)
def _n_cells(kernel):
    return 2


@contract.n_degree_weights.implements(Pairs)
def _n_degree_weights(kernel):
    return 0


@contract.start.implements(Pairs)
def _start(kernel, cells, at):
    set_cell(cells, at, constant(cells, 0.0))
    set_cell(cells, at + 1, constant(cells, 0.0))


@contract.absorb.implements(Pairs)
def _absorb(kernel, cells, before, after, z):
    total = cell(cells, before)
    set_cell(cells, after + 1, cell(cells, before + 1) + z * total)
    set_cell(cells, after, total + z)


@contract.value.implements(Pairs)
def _value(kernel, cells, at, weights):
    return cell(cells, at + 1)


@contract.degree_value.implements(Pairs)
def _degree_value(kernel, cells, at, t):
    return constant(cells, 0.0)


@contract.seed.implements(Pairs)
def _seed(kernel, cells, at, adjoint, weights):
    set_cell(cells, adjoint, constant(cells, 0.0))
    set_cell(cells, adjoint + 1, constant(cells, 1.0))


@contract.slope.implements(Pairs)
def _slope(kernel, cells, before, adjoint):
    return cell(cells, adjoint) + cell(cells, before) * cell(cells, adjoint + 1)


@contract.retreat.implements(Pairs)
def _retreat(kernel, cells, adjoint, z):
    set_cell(cells, adjoint, cell(cells, adjoint) + z * cell(cells, adjoint + 1))


@columns.alone.implements(Pairs)
def _alone(kernel):
    return kernel


@columns.n_row_cells.implements(Pairs)
def _n_row_cells(kernel):
    return 1


@columns.row_slope.implements(Pairs)
def _row_slope(kernel, state, at, width, z, cells, weights):
    total = row_cell(z, state, at, 0, width)
    return total - z, absolute(total) * EPSILON


@columns.move_term.implements(Pairs)
def _move_term(kernel, state, at, width, z, change):
    set_row_cell(state, at, 0, width, row_cell(z, state, at, 0, width) + change)
