"""The contract of kernels: definition, derivatives, exactness, precision, compiled code."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polyfm._jit import LANES
from polyfm.kernels import contract, reference
from polyfm.kernels.rows import fold
from polyfm.testing._asserts import require, require_close
from polyfm.testing._models import model_of, plain_scores, read_gradient, rows_of
from polyfm.testing._plain import plain


class Evaluation(NamedTuple):
    """What a kernel makes of the terms of one row, for each of the eight lanes."""

    value: NDArray[Any]
    """(LANES,)."""
    slopes: NDArray[Any]
    """(n_terms, LANES): d value / d term."""
    degree_slopes: NDArray[Any]
    """(m, LANES): d value / d degree weight."""


def evaluate(
    kernel: Any, terms: NDArray[Any], weights: NDArray[Any], dtype: DTypeLike = np.float64
) -> Evaluation:
    """Run a kernel in plain Python, forwards and backwards.

    Parameters
    ----------
    kernel : NamedTuple
        The spec.
    terms : ndarray of shape (n_terms, LANES)
        One row's terms, a basis in each lane.
    weights : ndarray of shape (m,)
        Weights of the degrees.
    dtype : dtype
        Precision of the run.
    """
    m, room, n_terms = len(weights), contract.n_cells(kernel), len(terms)
    cells = np.zeros((m + room * (n_terms + 2)) * LANES, dtype)
    cells[: m * LANES] = np.repeat(np.asarray(weights, dtype), LANES)
    table = np.ascontiguousarray(terms, dtype=dtype).reshape(n_terms, 1, LANES)
    # Without a single term, the table still has a row whose shape can be read.
    table = table if n_terms else np.zeros((1, 1, LANES), dtype)
    indices, ones = np.arange(n_terms), np.ones(n_terms, dtype)
    last = plain(fold)(kernel, table, 0, LANES, (0, 0), indices, ones, cells, m + room)
    value = np.array(plain(contract.value)(kernel, cells, last, 0))
    by_degree = [plain(contract.degree_value)(kernel, cells, last, t) for t in range(m)]
    plain(contract.seed)(kernel, cells, last, m, 0)
    slopes = np.zeros((n_terms, LANES), dtype)
    for t in range(n_terms - 1, -1, -1):
        slopes[t] = plain(contract.slope)(kernel, cells, m + room * (t + 1), m)
        plain(contract.retreat)(kernel, cells, m, table[t, 0])
    return Evaluation(value, slopes, np.array(by_degree).reshape(m, LANES))


def check_kernel(kernel: Any, *, compiled: bool = True, seed: int = 0) -> None:
    """Check that a kernel keeps the contract of :mod:`polyfm.kernels.contract`.

    Its value equals the definition in :mod:`polyfm.kernels.reference` if there is one; slopes are
    its derivatives, exact at zeros and where one term dwarfs the others; single precision, the
    order of the terms and compiling change nothing but the rounding.

    Parameters
    ----------
    kernel : NamedTuple
        The spec, ``ANOVA(degree=3)`` for example.
    compiled : bool, default=True
        Whether compiled code is checked, too; it takes some seconds the first time.
    seed : int, default=0
        Of the terms that are tried.

    Raises
    ------
    AssertionError
        Where the contract is broken; the message says by what.

    Examples
    --------
    >>> from polyfm.kernels import ANOVA
    >>> from polyfm.testing import check_kernel
    >>> check_kernel(ANOVA(degree=2), compiled=False)
    """
    random = np.random.default_rng(seed)
    weights = random.uniform(0.5, 1.5, contract.n_degree_weights(kernel))
    for n_terms in (0, 1, 2, 5):
        terms = _some_terms(random, n_terms)
        _check_differences(kernel, terms, weights)
        _check_precision(kernel, terms, weights)
        _check_order(kernel, terms, weights, random)
        if reference.has_reference(kernel):
            _check_definition(kernel, terms, weights)
    if reference.has_reference(kernel):
        for large in (1e2, 1e4, 1e6):
            _check_definition(kernel, _dominated(random, large), weights)
    _check_absorb_in_place(kernel, _some_terms(random, 3))
    if compiled:
        _check_compiled(kernel, weights, random)


def _some_terms(random: np.random.Generator, n_terms: int) -> NDArray[np.float64]:
    """Draw terms of both signs, some of them exactly 0, -1 and 1."""
    terms = random.normal(size=(n_terms, LANES))
    special = random.random(terms.shape) < 0.3
    terms[special] = random.choice([0.0, -1.0, 1.0], special.sum())
    return terms


def _dominated(random: np.random.Generator, large: float) -> NDArray[np.float64]:
    """Draw small terms with one large one, at another place in each lane."""
    terms = 1e-3 * random.normal(size=(5, LANES))
    terms[np.arange(LANES) % 5, np.arange(LANES)] = large
    return terms


def _check_definition(kernel: Any, terms: NDArray[Any], weights: NDArray[Any]) -> None:
    """Compare with exact rational arithmetic; only the sizes of what is added up may round."""
    got = evaluate(kernel, terms, weights)
    theta = [Fraction(w) for w in weights]
    for lane in range(LANES):
        z = [Fraction(float(term)) for term in terms[:, lane]]
        sizes = [abs(term) for term in z]
        allowed = 1e-13 * float(reference.value(kernel, sizes, theta))
        wanted = float(reference.value(kernel, z, theta))
        require_close(got.value[lane], wanted, allowed, f"value of {kernel} at {terms[:, lane]}")
        exact = [float(slope) for slope in reference.slopes(kernel, z, theta)]
        bounds = [1e-13 * float(s) for s in reference.slopes(kernel, sizes, theta)]
        require_close(got.slopes[:, lane], exact, bounds, f"slopes of {kernel} at {terms[:, lane]}")


def _check_differences(kernel: Any, terms: NDArray[Any], weights: NDArray[Any]) -> None:
    """Compare slopes with central differences of the value."""
    got, step = evaluate(kernel, terms, weights), 1e-6
    scale = 1.0 + np.abs(got.value).max()

    def difference(of_terms: NDArray[Any], of_weights: NDArray[Any]) -> NDArray[Any]:
        above = evaluate(kernel, terms + of_terms, weights + of_weights).value
        below = evaluate(kernel, terms - of_terms, weights - of_weights).value
        return np.asarray((above - below) / (2 * step))

    none = np.zeros(len(weights))
    for j in range(len(terms)):
        nudge = np.zeros_like(terms)
        nudge[j] = step
        slope = difference(nudge, none)
        require_close(got.slopes[j], slope, 1e-6 * scale, f"slope of {kernel} in term {j}")
    for t in range(len(weights)):
        nudge = np.zeros(len(weights))
        nudge[t] = step
        slope = difference(np.zeros_like(terms), nudge)
        require_close(
            got.degree_slopes[t], slope, 1e-6 * scale, f"slope of {kernel} in degree weight {t}"
        )


def _check_precision(kernel: Any, terms: NDArray[Any], weights: NDArray[Any]) -> None:
    """Compare single with double precision, at terms that both can represent."""
    terms, weights = (a.astype(np.float32).astype(np.float64) for a in (terms, weights))
    double = evaluate(kernel, terms, weights)
    single = evaluate(kernel, terms, weights, np.float32)
    require(single.value.dtype == np.float32, f"{kernel} leaves single precision.")
    sizes = evaluate(kernel, np.abs(terms), weights)
    allowed = 1e-5 * (1.0 + np.abs(sizes.value))
    require_close(single.value, double.value, allowed, f"{kernel} in single precision")
    allowed = 1e-5 * (1.0 + np.abs(sizes.slopes))
    require_close(single.slopes, double.slopes, allowed, f"slopes of {kernel} in float32")


def _check_order(
    kernel: Any, terms: NDArray[Any], weights: NDArray[Any], random: np.random.Generator
) -> None:
    order = random.permutation(len(terms))
    here, there = evaluate(kernel, terms, weights), evaluate(kernel, terms[order], weights)
    allowed = 1e-12 * (1.0 + np.abs(evaluate(kernel, np.abs(terms), weights).value))
    require_close(there.value, here.value, allowed, f"{kernel} depends on the order of terms")
    require_close(
        there.slopes, here.slopes[order], allowed, f"slopes of {kernel} depend on the order"
    )


def _check_absorb_in_place(kernel: Any, terms: NDArray[Any]) -> None:
    """Check that cells may be overwritten by those with one term more."""
    room = contract.n_cells(kernel)
    apart, same = np.zeros((len(terms) + 1, room * LANES)), np.zeros(room * LANES)
    plain(contract.start)(kernel, apart.reshape(-1), 0)
    plain(contract.start)(kernel, same, 0)
    for t, z in enumerate(terms):
        plain(contract.absorb)(kernel, apart.reshape(-1), t * room, (t + 1) * room, z)
        plain(contract.absorb)(kernel, same, 0, 0, z)
        require_close(same, apart[t + 1], 0.0, f"{kernel} absorbed in place")


def _check_compiled(kernel: Any, weights: NDArray[Any], random: np.random.Generator) -> None:
    """Compare value and derivatives of compiled and plain code on rows of several lengths."""
    X = random.normal(size=(4, 6)) * (random.random((4, 6)) < 0.7)
    X[0] = 0.0
    model = model_of(kernel, random.normal(size=(6, 11)), theta=weights)
    rows = rows_of(X)
    allowed = 1e-12 * (1.0 + np.abs(X).sum() * np.abs(model.parameters.table).max()) ** 2
    scores = model.scores(rows)
    require_close(scores, plain_scores(model, rows), allowed, f"{kernel}, compiled")
    for i in range(len(X)):
        compiled = read_gradient(model, X[i])
        interpreted = read_gradient(model, X[i], interpreted=True)
        for name, got, wanted in zip(compiled._fields, compiled, interpreted, strict=True):
            require_close(got, wanted, allowed, f"{name} gradient of {kernel}, compiled")
