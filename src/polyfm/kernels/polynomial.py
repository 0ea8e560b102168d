"""The polynomial kernel: powers of the scalar product, repeated features included."""

from __future__ import annotations

from typing import NamedTuple

from polyfm.kernels import contract
from polyfm.kernels.contract import cell, constant, set_cell


class Polynomial(NamedTuple):
    r"""Polynomial kernels of the degrees 1 to ``degree``, weighted.

    .. math:: K(p, x) = \sum_{t=1}^m \theta_t H^t(p, x), \qquad H^t(p, x) = \langle p, x \rangle^t

    The only cell is the running scalar product.

    Parameters
    ----------
    degree : int
        The highest degree, m >= 1.

    References
    ----------
    Blondel, Ishihata, Fujino, Ueda, "Polynomial Networks and Factorization Machines", ICML 2016.
    """

    degree: int = 2


@contract.at_degree.implements(Polynomial)
def _at_degree(kernel, degree):
    return Polynomial(degree)


@contract.n_cells.implements(Polynomial)
def _n_cells(kernel):
    return 1


@contract.n_degree_weights.implements(Polynomial)
def _n_degree_weights(kernel):
    return kernel.degree


@contract.start.implements(Polynomial)
def _start(kernel, cells, at):
    set_cell(cells, at, constant(cells, 0.0))


@contract.absorb.implements(Polynomial)
def _absorb(kernel, cells, before, after, z):
    set_cell(cells, after, cell(cells, before) + z)


@contract.value.implements(Polynomial)
def _value(kernel, cells, at, weights):
    # Horner's scheme.
    dot = cell(cells, at)
    total = cell(cells, weights + kernel.degree - 1) * dot
    for t in range(kernel.degree - 2, -1, -1):
        total = (total + cell(cells, weights + t)) * dot
    return total


@contract.degree_value.implements(Polynomial)
def _degree_value(kernel, cells, at, t):
    power = cell(cells, at)
    for _ in range(t):
        power = power * cell(cells, at)
    return power


@contract.seed.implements(Polynomial)
def _seed(kernel, cells, at, adjoint, weights):
    dot = cell(cells, at)
    total = cell(cells, weights + kernel.degree - 1) * float(kernel.degree)
    for t in range(kernel.degree - 2, -1, -1):
        total = total * dot + cell(cells, weights + t) * float(t + 1)
    set_cell(cells, adjoint, total)


@contract.slope.implements(Polynomial)
def _slope(kernel, cells, before, adjoint):
    return cell(cells, adjoint)


@contract.retreat.implements(Polynomial)
def _retreat(kernel, cells, adjoint, z):
    pass
