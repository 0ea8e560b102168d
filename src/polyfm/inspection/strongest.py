"""The strongest interactions of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyfm.inspection._expansion import (
    Block,
    blocks_of,
    coefficients_of,
    names_of,
    resolve_outputs,
    weight_in,
)
from polyfm.inspection._search import Best, Search


@dataclass(frozen=True)
class Interaction:
    """A combination of features and its weight."""

    features: tuple[int, ...]
    """Column numbers, ascending."""
    names: tuple[str, ...]
    weight: float
    count: int | None = None
    """Rows of X in which all the features are non-zero; None without X."""

    def __str__(self) -> str:
        return f"{'  x  '.join(self.names)}  {self.weight:+.4g}{self._support()}"

    def _support(self) -> str:
        if self.count is None:
            return ""
        return f"  ({self.count:,} rows)" if self.count else "  (never seen together)"


class Interactions(list[Interaction]):
    """Interactions in falling order of their absolute weight; prints as a table."""

    exact: bool
    """Whether none can have been missed; else the search ended at its budget."""

    def __init__(self, rows: Sequence[Interaction], exact: bool) -> None:
        super().__init__(rows)
        self.exact = exact

    def __str__(self) -> str:
        wide = max((len("  x  ".join(row.names)) for row in self), default=0)
        lines = [
            f"{'  x  '.join(row.names):<{wide}}  {row.weight:>+10.4f}{row._support()}"
            for row in self
        ]
        if not self.exact:
            lines.append("(the search ended at its budget: there may be stronger ones)")
        return "\n".join(lines)


def strongest_interactions(
    model: Any,
    top: int = 10,
    degree: int = 2,
    X: Any = None,
    *,
    class_index: int = 0,
    min_count: int = 0,
    fields: Any = None,
    feature_names: Sequence[str] | None = None,
    budget: float = 1e9,
) -> Interactions:
    r"""Find the combinations of distinct features whose weights are largest in absolute value.

    Parameters
    ----------
    model : FMRegressor or FMClassifier
        A fitted estimator.
    top : int, default=10
        How many to find.
    degree : int, default=2
        Features in a combination; 1 gives linear weights.
    X : sparse matrix or array of shape (n_rows, n_features), optional
        Rows in which to count how often the features of a combination are non-zero together. A
        factorized model gives weights to pairs that never met, too: their count says so.
    class_index : int, default=0
        The output, for more than two classes.
    min_count : int, default=0
        Only combinations that occur in so many rows of ``X``.
    fields : array of int of shape (n_features,), optional
        The field of each feature, as in ``OneHotFieldEncoder.fields_``; features of one field,
        which exclude each other, are not combined.
    feature_names : sequence of str, optional
        Names of the columns; those seen in ``fit`` if None.
    budget : float, default=1e9
        Combinations and beginnings of combinations to look at, at most (about ten seconds for
        1e9). What was found so far is returned when it is spent, with ``exact`` False.

    Returns
    -------
    Interactions
        A list of :class:`Interaction` that prints as a table.

    Raises
    ------
    ValueError
        For parameters out of range or of another length than the features.

    Notes
    -----
    The tensor of all weights is never formed. Combinations grow feature by feature, in the order
    of falling norms of their factors, and what cannot reach the least of the best is cut: a
    beginning with the elementwise product v of its factors, of which r features are missing, can
    reach at most :math:`\sum_s |v_s| \max_l |p_{ls}|^r` and :math:`\|v\| \max_l \|p_l\|^r`. With
    ``min_count`` only what occurs often enough grows. The result is exact unless the budget was
    spent; then it is at least as good as a greedy search that keeps the 48 best beginnings.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm import FMRegressor
    >>> from polyfm.inspection import strongest_interactions
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], size=(2000, 5))
    >>> model = FMRegressor(random_state=0).fit(X, 2 * X[:, 1] * X[:, 3])
    >>> strongest_interactions(model, top=1)[0].names
    ('x1', 'x3')
    """
    (output,) = resolve_outputs(model, class_index)
    names = names_of(model, feature_names)
    occurrences = _occurrences(X, len(names))
    fields = _checked(top, degree, min_count, fields, occurrences, len(names))
    blocks = blocks_of(model, degree, output)
    if degree == 1:
        singles = _singles(blocks, coefficients_of(model, output))
        found, exact = _largest(singles, top, occurrences, min_count), True
    else:
        seen = occurrences if min_count else None
        best = Best(top, degree)
        found, exact = _searched(blocks, best, fields, seen, min_count, budget)
    rows = []
    for features in found:
        weight = weight_in(blocks, features) if degree > 1 else float(singles[features[0]])
        count = None if occurrences is None else _count(occurrences, features)
        rows.append(Interaction(tuple(features), tuple(names[j] for j in features), weight, count))
    return Interactions(sorted(rows, key=lambda row: -abs(row.weight)), exact)


def _singles(blocks: list[Block], coefficients: NDArray[Any]) -> NDArray[np.float64]:
    """Return the weights of all single features."""
    total = coefficients.astype(np.float64)
    for block in blocks:
        total = total + block.factors @ block.coefficients
    return np.asarray(total)


def _occurrences(X: Any, d: int) -> sp.csc_matrix | None:
    if X is None:
        return None
    matrix = sp.csc_matrix(X)
    if matrix.shape[1] != d:
        raise ValueError(f"X has {matrix.shape[1]} columns, but the model has {d} features.")
    matrix = sp.csc_matrix((matrix.data != 0, matrix.indices, matrix.indptr), shape=matrix.shape)
    matrix.eliminate_zeros()
    return matrix.astype(np.int32)


def _checked(
    top: int, degree: int, min_count: int, fields: Any, occurrences: Any, d: int
) -> NDArray[np.int64] | None:
    """Return the fields as an array; raise a ValueError for what cannot be."""
    for name, value, least in (("top", top, 1), ("degree", degree, 1), ("min_count", min_count, 0)):
        if int(value) != value or value < least:
            raise ValueError(f"{name} must be an integer >= {least}, got {value!r}.")
    if min_count and occurrences is None:
        raise ValueError("min_count needs X, the rows to count in.")
    if fields is None:
        return None
    fields = np.asarray(fields)
    if fields.shape != (d,):
        raise ValueError(f"fields has shape {fields.shape}, but the model has {d} features.")
    return np.asarray(fields, dtype=np.int64)


def _largest(
    weights: NDArray[Any], top: int, occurrences: sp.csc_matrix | None, min_count: int
) -> list[list[int]]:
    size = np.abs(weights)
    if occurrences is not None:
        size = np.where(np.diff(occurrences.indptr) >= min_count, size, 0.0)
    order = np.argsort(-size, kind="stable")[:top]
    return [[int(j)] for j in order if size[j] > 0]


def _searched(
    blocks: list[Block],
    best: Best,
    fields: NDArray[np.int64] | None,
    occurrences: sp.csc_matrix | None,
    min_count: int,
    budget: float,
) -> tuple[list[list[int]], bool]:
    """Return the best combinations, and whether they surely are."""
    if not blocks:
        return [], True
    # The coefficients' sizes go into the factors, evenly: bounds are then those of a plain tensor.
    factors = np.hstack(
        [block.factors * np.abs(block.coefficients) ** (1.0 / best.degree) for block in blocks]
    )
    signs = np.sign(np.concatenate([block.coefficients for block in blocks]))
    norms = np.linalg.norm(factors, axis=1)
    order = np.argsort(-norms, kind="stable")
    order = order[norms[order] > 0]
    search = Search(
        factors[order].astype(np.float64),
        signs,
        best,
        None if fields is None else fields[order],
        None if occurrences is None else occurrences[:, order],
        min_count,
        budget,
    )
    exact = len(order) < best.degree or search.run()
    return np.sort(order[best.combinations], axis=1).tolist(), exact


def _count(occurrences: sp.csc_matrix, features: Sequence[int]) -> int:
    rows = None
    for j in features:
        own = occurrences.indices[occurrences.indptr[j] : occurrences.indptr[j + 1]]
        rows = own if rows is None else np.intersect1d(rows, own, assume_unique=True)
    return 0 if rows is None else len(rows)
