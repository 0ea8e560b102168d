"""The all-subsets kernel: every combination of every size."""

from __future__ import annotations

from typing import NamedTuple

from polyfm.kernels import contract
from polyfm.kernels.contract import cell, constant, set_cell


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
