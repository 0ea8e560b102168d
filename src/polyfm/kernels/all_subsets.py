"""The all-subsets kernel: every combination of every size."""

from __future__ import annotations

from typing import NamedTuple

from polyfm._jit import absolute, maximum
from polyfm.kernels import columns, contract
from polyfm.kernels.columns import row_cell, set_row_cell
from polyfm.kernels.contract import cell, constant, set_cell

_SMALL_FACTOR = 0.1
_BEYOND_TRUST = 1e300


class AllSubsets(NamedTuple):
    r"""All-subsets kernel.

    .. math:: S(p, x) = \prod_j (1 + p_j x_j) = 1 + \sum_{t \ge 1} A^t(p, x)

    The cell is the running product. The derivative is the product of the factors before and after,
    so that a factor of exactly 0 is harmless. The value grows exponentially with the number of
    non-zeros: start small.

    References
    ----------
    Blondel, Fujino, Ueda, Ishihata, "Higher-Order Factorization Machines", NIPS 2016, section 5.
    """


@contract.at_degree.implements(AllSubsets)
def _at_degree(kernel, degree):
    return kernel


@contract.n_cells.implements(AllSubsets)
def _n_cells(kernel):
    return 1


@contract.n_degree_weights.implements(AllSubsets)
def _n_degree_weights(kernel):
    return 0


@contract.start.implements(AllSubsets)
def _start(kernel, cells, at):
    set_cell(cells, at, constant(cells, 1.0))


@contract.absorb.implements(AllSubsets)
def _absorb(kernel, cells, before, after, z):
    product = cell(cells, before)
    set_cell(cells, after, product + product * z)


@contract.value.implements(AllSubsets)
def _value(kernel, cells, at, weights):
    return cell(cells, at)


@contract.degree_value.implements(AllSubsets)
def _degree_value(kernel, cells, at, t):
    return constant(cells, 0.0)


@contract.seed.implements(AllSubsets)
def _seed(kernel, cells, at, adjoint, weights):
    set_cell(cells, adjoint, constant(cells, 1.0))


@contract.slope.implements(AllSubsets)
def _slope(kernel, cells, before, adjoint):
    return cell(cells, before) * cell(cells, adjoint)


@contract.retreat.implements(AllSubsets)
def _retreat(kernel, cells, adjoint, z):
    product = cell(cells, adjoint)
    set_cell(cells, adjoint, product + product * z)


@columns.alone.implements(AllSubsets)
def _alone(kernel):
    return kernel


@columns.n_row_cells.implements(AllSubsets)
def _n_row_cells(kernel):
    return 1


@columns.row_slope.implements(AllSubsets)
def _row_slope(kernel, state, at, width, z, cells, weights):
    product, factor = row_cell(z, state, at, 0, width), z + 1.0
    # The product without a factor near zero is not to be had from the product with it.
    bound = maximum(_SMALL_FACTOR - absolute(factor), 0.0) * _BEYOND_TRUST
    return product * factor / maximum(factor * factor, _SMALL_FACTOR * _SMALL_FACTOR), bound


@columns.move_term.implements(AllSubsets)
def _move_term(kernel, state, at, width, z, change):
    # Where the factor is small the whole row is folded again.
    product, factor = row_cell(z, state, at, 0, width), z + 1.0
    without = product * factor / maximum(factor * factor, _SMALL_FACTOR * _SMALL_FACTOR)
    set_row_cell(state, at, 0, width, product + change * without)
