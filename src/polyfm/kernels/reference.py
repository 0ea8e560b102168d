"""The kernels by their definitions: every combination of terms, one after the other.

Exponential in the number of terms, and the more readable for it: this is what tests compare the
dynamic programmes with. All arithmetic is Python's own, so :class:`fractions.Fraction` terms give
exact results. Nothing that learns or predicts uses this file.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from polyfm._jit import generic
from polyfm.kernels.all_subsets import AllSubsets
from polyfm.kernels.anova import ANOVA
from polyfm.kernels.pairs import Pairs
from polyfm.kernels.polynomial import Polynomial


def anova(terms: Sequence[Any], degree: int) -> Any:
    r"""Return :math:`A^t(z) = \sum_{j_1 < \dots < j_t} z_{j_1} \cdots z_{j_t}`.

    Parameters
    ----------
    terms : sequence of numbers
        :math:`z_j = p_j x_j`.
    degree : int
        t >= 0.
    """
    return sum(math.prod(chosen) for chosen in itertools.combinations(terms, degree))


def polynomial(terms: Sequence[Any], degree: int) -> Any:
    r"""Return :math:`H^t(z) = (\sum_j z_j)^t`, monomial by monomial.

    Parameters
    ----------
    terms : sequence of numbers
        :math:`z_j = p_j x_j`.
    degree : int
        t >= 0.
    """
    places = itertools.combinations_with_replacement(range(len(terms)), degree)
    return sum(_orders(chosen) * math.prod(terms[j] for j in chosen) for chosen in places)


def _orders(chosen: Sequence[int]) -> int:
    """Return in how many orders the same factors can be written."""
    repeats = Counter(chosen).values()
    return math.factorial(len(chosen)) // math.prod(map(math.factorial, repeats))


def all_subsets(terms: Sequence[Any]) -> Any:
    r"""Return :math:`S(z) = \sum_{T} \prod_{j \in T} z_j` over all subsets, the empty one included.

    Parameters
    ----------
    terms : sequence of numbers
        :math:`z_j = p_j x_j`.
    """
    return sum(anova(terms, size) for size in range(len(terms) + 1))


@generic
def value(kernel: Any, terms: Sequence[Any], weights: Sequence[Any]) -> Any:
    """Return a kernel's value from its terms and the weights of the degrees, by definition."""


@generic
def slopes(kernel: Any, terms: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
    """Return d value / d term for every term, by definition."""


def has_reference(kernel: Any) -> bool:
    """Return whether there is a definition to compare ``kernel`` with."""
    return type(kernel) in value.table and type(kernel) in slopes.table


def _others(terms: Sequence[Any]) -> list[list[Any]]:
    """Return for each term the list of all the others."""
    return [[*terms[:j], *terms[j + 1 :]] for j in range(len(terms))]


@value.implements(ANOVA)
def _anova_value(kernel: ANOVA, terms: Sequence[Any], weights: Sequence[Any]) -> Any:
    return sum(weights[t - 1] * anova(terms, t) for t in range(1, kernel.degree + 1))


@slopes.implements(ANOVA)
def _anova_slopes(kernel: ANOVA, terms: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
    # Only combinations with the term count, each divided by it: those of its companions.
    return [
        sum(weights[t - 1] * anova(rest, t - 1) for t in range(1, kernel.degree + 1))
        for rest in _others(terms)
    ]


@value.implements(Pairs)
def _pairs_value(kernel: Pairs, terms: Sequence[Any], weights: Sequence[Any]) -> Any:
    return anova(terms, 2)


@slopes.implements(Pairs)
def _pairs_slopes(kernel: Pairs, terms: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
    return [anova(rest, 1) for rest in _others(terms)]


@value.implements(Polynomial)
def _polynomial_value(kernel: Polynomial, terms: Sequence[Any], weights: Sequence[Any]) -> Any:
    return sum(weights[t - 1] * polynomial(terms, t) for t in range(1, kernel.degree + 1))


@slopes.implements(Polynomial)
def _polynomial_slopes(
    kernel: Polynomial, terms: Sequence[Any], weights: Sequence[Any]
) -> list[Any]:
    slope = sum(weights[t - 1] * t * polynomial(terms, t - 1) for t in range(1, kernel.degree + 1))
    return [slope for _ in terms]


@value.implements(AllSubsets)
def _all_subsets_value(kernel: AllSubsets, terms: Sequence[Any], weights: Sequence[Any]) -> Any:
    return all_subsets(terms)


@slopes.implements(AllSubsets)
def _all_subsets_slopes(
    kernel: AllSubsets, terms: Sequence[Any], weights: Sequence[Any]
) -> list[Any]:
    return [all_subsets(rest) for rest in _others(terms)]
