"""A lifted model as a sum of weighted kernels."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm.models._score import Parameters
from polyfm.models.factorized import Factorized
from polyfm.models.layout import Layout, lay_out
from polyfm.solvers.learner import Learner
from polyfm.solvers.lifted_descent import LiftedLearner


class Bases(NamedTuple):
    r"""The direct form :math:`\sum_s \lambda_s K(p_s, \cdot)`."""

    weights: NDArray[np.float64]
    """(k,)."""
    factors: NDArray[np.float64]
    """(d, k)."""


def eigenbases(table: NDArray[np.float64]) -> Bases:
    r"""Return the eigenvalues and eigenvectors of :math:`\frac12 (U V^\top + V U^\top)`.

    The d x d matrix is never formed: with :math:`[U\ V] = Q [R_U\ R_V]` the eigenvectors are Q
    times those of :math:`\frac12 (R_U R_V^\top + R_V R_U^\top)`.

    Parameters
    ----------
    table : ndarray of shape (d, r, 2)

    Returns
    -------
    Bases
        At most 2 r, the largest eigenvalues in size first.
    """
    r = table.shape[1]
    q, right = np.linalg.qr(np.concatenate([table[:, :, 0], table[:, :, 1]], axis=1))
    product = right[:, :r] @ right[:, r:].T
    values, vectors = np.linalg.eigh(0.5 * (product + product.T))
    order = np.argsort(-np.abs(values), kind="stable")
    return Bases(values[order], q @ vectors[:, order])


def polarised(table: NDArray[np.float64]) -> Bases:
    r"""Return :math:`2^{m-1}` bases for each: sums of its factors with signs.

    Parameters
    ----------
    table : ndarray of shape (d, r, m)
    """
    d, r, m = table.shape
    signs = np.array([(1, *rest) for rest in itertools.product((1, -1), repeat=m - 1)], dtype=float)
    weights = signs.prod(axis=1) / (2.0 ** (m - 1) * math.factorial(m))
    factors = np.einsum("jst,et->jse", table, signs)
    return Bases(np.tile(weights, r), factors.reshape(d, r * len(signs)))


def direct_form(
    learners: list[LiftedLearner], layout: Layout, structure: dict[str, Any]
) -> tuple[list[Learner], Layout]:
    """Return learners of the same models in direct form, which cannot learn, and their layout."""
    tables = [learner.model.parameters.table for learner in learners]
    bases = [_bases(table) for table in tables]
    # Classes share a layout: each keeps as many bases as the one that needs the most.
    rank = max(_n_needed(part.weights) for part in bases)
    direct = lay_out(
        layout.kernel, structure["order"], rank, lower=structure["fit_lower"],
        linear=bool(structure["fit_linear"]), inhomogeneous=False,
    )  # fmt: skip
    return [
        _frozen(learner, direct, part) for learner, part in zip(learners, bases, strict=True)
    ], direct


def _bases(table: NDArray[np.float64]) -> Bases:
    return eigenbases(table) if table.shape[2] == 2 else polarised(table)


def _n_needed(weights: NDArray[np.float64]) -> int:
    """Return how many weights, largest first, are more than rounding."""
    sizes = np.abs(weights)
    return int(np.count_nonzero(sizes > 1e-15 * sizes.max(initial=0.0)))


def _frozen(learner: LiftedLearner, layout: Layout, bases: Bases) -> Learner:
    from polyfm.persistence.frozen import FrozenLearner

    p, k = learner.model.parameters, layout.rank
    parameters = Parameters(
        bias=p.bias[None].copy(),
        linear=p.linear[:, None].copy(),
        table=np.ascontiguousarray(bases.factors[:, None, :k]),
        weights=bases.weights[None, :k].copy(),
        theta=np.ones((1, len(layout.degrees))),
        degrees=layout.degrees,
    )
    model = Factorized(layout.kernel, layout.columns, parameters, layout.n_dummies)
    settings = replace(learner.settings, start_scales=np.zeros(k))
    return FrozenLearner(model, settings, learner.n_visits, learner.n_rows, learner.n_epochs)
