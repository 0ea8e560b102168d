r"""Kernels lifted: one vector of factors for each of the m slots of a product.

The lifted polynomial kernel of degree m is :math:`\prod_t \langle u^t, x \rangle`. The lifted ANOVA
kernel takes distinct features into the slots,

.. math:: \frac{1}{m!} \sum_{j_1, \dots, j_m \text{ distinct}} \prod_t u^t_{j_t} x_{j_t},

and both equal the kernel itself where all :math:`u^t` are one p. Each is affine in every single
factor, so coordinate descent can set one factor after the other.

A row of a table of cells holds the state of a sample: for the polynomial kernel the m scalar
products and, for the slot that is in focus, the product of the others; for the ANOVA kernel a sum
for each subset T of the slots, that over the ways to fill just the slots of T, divided by m!. A
feature j adds to it as :math:`a_T \mathrel{+}= \sum_{t \in T} u^t_j x_j\, a_{T \setminus t}`.

Blondel, Ishihata, Fujino, Ueda, "Polynomial Networks and Factorization Machines", ICML 2016.
"""

from __future__ import annotations

from typing import Any

from polyfm._jit import generic
from polyfm.kernels.anova import ANOVA
from polyfm.kernels.polynomial import Polynomial

_DIGITS_KEPT = 1e-6
"""A difference this far below its parts has lost six of sixteen digits."""


@generic
def n_cells(kernel: Any) -> int:
    """Return the number of cells of a row."""


@generic
def begin(kernel: Any, cells: Any, at: int) -> None:
    """Write the state before the first feature into row ``at``."""


@generic
def absorb(kernel: Any, cells: Any, at: int, factors: Any, x: float) -> None:
    """Add a feature of value ``x`` with one factor per slot."""


@generic
def value(kernel: Any, cells: Any, at: int) -> float:
    """Return the kernel."""


@generic
def focus(kernel: Any, cells: Any, at: int, slot: int) -> None:
    """Get ready for changes of factors of one slot."""


@generic
def set_apart(
    kernel: Any, cells: Any, at: int, slot: int, factors: Any, x: float, rest: Any
) -> bool:
    """Write into ``rest[0]`` what of the state without a feature the slot in focus needs.

    Returns whether its digits are right. They are lost where the feature dwarfs all others; the
    other features have then to be absorbed anew.
    """


@generic
def slope(kernel: Any, cells: Any, at: int, slot: int, x: float, rest: Any) -> float:
    """Return the derivative by a factor of the slot in focus, from what :func:`set_apart` wrote."""


@generic
def shift(kernel: Any, cells: Any, at: int, slot: int, change: float, rest: Any) -> None:
    """Follow a change of ``change`` / x in a factor, from what :func:`set_apart` wrote."""


@n_cells.implements(Polynomial)
def _polynomial_n_cells(kernel):
    return kernel.degree + 1


@begin.implements(Polynomial)
def _polynomial_begin(kernel, cells, at):
    for t in range(kernel.degree + 1):
        cells[at, t] = 0.0


@absorb.implements(Polynomial)
def _polynomial_absorb(kernel, cells, at, factors, x):
    for t in range(kernel.degree):
        cells[at, t] += factors[t] * x


@value.implements(Polynomial)
def _polynomial_value(kernel, cells, at):
    product = 1.0
    for t in range(kernel.degree):
        product *= cells[at, t]
    return product


@focus.implements(Polynomial)
def _polynomial_focus(kernel, cells, at, slot):
    product = 1.0
    for t in range(kernel.degree):
        if t != slot:
            product *= cells[at, t]
    cells[at, kernel.degree] = product


@set_apart.implements(Polynomial)
def _polynomial_set_apart(kernel, cells, at, slot, factors, x, rest):
    return True


@slope.implements(Polynomial)
def _polynomial_slope(kernel, cells, at, slot, x, rest):
    return x * cells[at, kernel.degree]


@shift.implements(Polynomial)
def _polynomial_shift(kernel, cells, at, slot, change, rest):
    cells[at, slot] += change


@n_cells.implements(ANOVA)
def _anova_n_cells(kernel):
    return 1 << kernel.degree


@begin.implements(ANOVA)
def _anova_begin(kernel, cells, at):
    share = 1.0
    for t in range(kernel.degree):
        share /= t + 1
    cells[at, 0] = share
    for subset in range(1, 1 << kernel.degree):
        cells[at, subset] = 0.0


@absorb.implements(ANOVA)
def _anova_absorb(kernel, cells, at, factors, x):
    # Large subsets first: smaller ones must still lack the feature.
    for subset in range((1 << kernel.degree) - 1, 0, -1):
        total = cells[at, subset]
        for t in range(kernel.degree):
            if subset >> t & 1:
                total += factors[t] * x * cells[at, subset ^ (1 << t)]
        cells[at, subset] = total


@value.implements(ANOVA)
def _anova_value(kernel, cells, at):
    return cells[at, (1 << kernel.degree) - 1]


@focus.implements(ANOVA)
def _anova_focus(kernel, cells, at, slot):
    pass


@set_apart.implements(ANOVA)
def _anova_set_apart(kernel, cells, at, slot, factors, x, rest):
    own = 1 << slot
    rest[0, 0] = cells[at, 0]
    rest[1, 0] = cells[at, 0]
    kept = True
    # rest[1] adds up the sizes of what rest[0] subtracts.
    for subset in range(1, 1 << kernel.degree):
        if subset & own:
            continue
        left = cells[at, subset]
        size = abs(left)
        for t in range(kernel.degree):
            if subset >> t & 1:
                z = factors[t] * x
                left -= z * rest[0, subset ^ (1 << t)]
                size += abs(z) * rest[1, subset ^ (1 << t)]
        rest[0, subset] = left
        rest[1, subset] = size
        if abs(left) < _DIGITS_KEPT * size:
            kept = False
    return kept


@slope.implements(ANOVA)
def _anova_slope(kernel, cells, at, slot, x, rest):
    return x * rest[0, ((1 << kernel.degree) - 1) ^ (1 << slot)]


@shift.implements(ANOVA)
def _anova_shift(kernel, cells, at, slot, change, rest):
    own = 1 << slot
    for subset in range(1 << kernel.degree):
        if subset & own:
            cells[at, subset] += change * rest[0, subset ^ own]
