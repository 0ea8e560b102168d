"""The ANOVA kernel: each combination of distinct features once."""

from __future__ import annotations

from typing import NamedTuple

from polyfm._jit import LANES, absolute, load_like
from polyfm.kernels import columns, contract
from polyfm.kernels.columns import EPSILON, row_cell, set_row_cell
from polyfm.kernels.contract import cell, constant, set_cell
from polyfm.kernels.pairs import Pairs


class ANOVA(NamedTuple):
    r"""ANOVA kernels of the degrees 1 to ``degree``, weighted.

    .. math:: K(p, x) = \sum_{t=1}^m \theta_t A^t(p, x), \qquad
        A^t(p, x) = \sum_{j_1 < \dots < j_t} \prod_{s=1}^t p_{j_s} x_{j_s}

    With one weight 1 and the others 0 it is the homogeneous kernel of that degree, with several the
    inhomogeneous one. Cell ``t - 1`` holds :math:`A^t` of the terms taken in so far, which gives
    the dynamic programme :math:`A^t \leftarrow A^t + z A^{t-1}`: O(nnz m) for the value and for
    all derivatives together.

    Parameters
    ----------
    degree : int
        The highest degree, m >= 1. Degree 1 is the scalar product.

    References
    ----------
    Blondel, Fujino, Ueda, Ishihata, "Higher-Order Factorization Machines", NIPS 2016, section 3.
    """

    degree: int = 2


@contract.at_degree.implements(ANOVA)
def _at_degree(kernel, degree):
    return ANOVA(degree)


@contract.n_cells.implements(ANOVA)
def _n_cells(kernel):
    return kernel.degree


@contract.n_degree_weights.implements(ANOVA)
def _n_degree_weights(kernel):
    return kernel.degree


@contract.start.implements(ANOVA)
def _start(kernel, cells, at):
    for t in range(kernel.degree):
        set_cell(cells, at + t, constant(cells, 0.0))


@contract.absorb.implements(ANOVA)
def _absorb(kernel, cells, before, after, z):
    # Descending, so that a term never meets itself where both places are the same.
    for t in range(kernel.degree - 1, 0, -1):
        set_cell(cells, after + t, cell(cells, before + t) + z * cell(cells, before + t - 1))
    set_cell(cells, after, cell(cells, before) + z)


@contract.value.implements(ANOVA)
def _value(kernel, cells, at, weights):
    total = cell(cells, weights) * cell(cells, at)
    for t in range(1, kernel.degree):
        total = total + cell(cells, weights + t) * cell(cells, at + t)
    return total


@contract.degree_value.implements(ANOVA)
def _degree_value(kernel, cells, at, t):
    return cell(cells, at + t)


@contract.seed.implements(ANOVA)
def _seed(kernel, cells, at, adjoint, weights):
    for t in range(kernel.degree):
        set_cell(cells, adjoint + t, cell(cells, weights + t))


@contract.slope.implements(ANOVA)
def _slope(kernel, cells, before, adjoint):
    total = cell(cells, adjoint)
    for t in range(1, kernel.degree):
        total = total + cell(cells, before + t - 1) * cell(cells, adjoint + t)
    return total


@contract.retreat.implements(ANOVA)
def _retreat(kernel, cells, adjoint, z):
    for t in range(kernel.degree - 1):
        set_cell(cells, adjoint + t, cell(cells, adjoint + t) + z * cell(cells, adjoint + t + 1))


@columns.alone.implements(ANOVA)
def _alone(kernel):
    return Pairs() if kernel.degree == 2 else kernel


@columns.n_row_cells.implements(ANOVA)
def _n_row_cells(kernel):
    # The highest degree is not needed: it is a term times the next lower one of the others.
    return kernel.degree - 1


@columns.row_slope.implements(ANOVA)
def _row_slope(kernel, state, at, width, z, cells, weights):
    others, error = z * 0.0 + 1.0, z * 0.0  # A^0 of the other terms
    slope = load_like(z, cells, weights * LANES, LANES)
    bound = error
    for t in range(1, kernel.degree):
        everything = row_cell(z, state, at, t - 1, width)
        error = absolute(everything) * EPSILON + absolute(z) * error
        others = everything - z * others
        weight = load_like(z, cells, (weights + t) * LANES, LANES)
        slope = slope + weight * others
        bound = bound + absolute(weight) * error
    return slope, bound


@columns.move_term.implements(ANOVA)
def _move_term(kernel, state, at, width, z, change):
    others = z * 0.0 + 1.0
    for t in range(kernel.degree - 1):
        everything = row_cell(z, state, at, t, width)
        set_row_cell(state, at, t, width, everything + change * others)
        others = everything - z * others
