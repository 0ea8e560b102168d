"""Graphs as rows to train and to test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyfm.datasets import (
    LinkBundle,
    fetch_citeseer,
    fetch_cora,
    fetch_drug_targets,
    fetch_movielens_links,
    fetch_nips_coauthors,
)

__all__ = ["NEGATIVES_TO_TEST", "NEIGHBOURS", "Draw", "Problem", "films", "problems"]

NEGATIVES_TO_TEST = 50_000
"""Pairs without a link that are tested, where there are more."""
NEIGHBOURS = 10
"""How many most similar drugs (or targets) are the columns of one."""

Pairs = NDArray[np.int64]


class Draw(NamedTuple):
    """Rows to train and to test, labels 1 and -1."""

    X: sp.csr_matrix
    y: NDArray[np.int64]
    X_test: sp.csr_matrix
    y_test: NDArray[np.int64]


@dataclass(frozen=True)
class Problem:
    """A graph as rows.

    Attributes
    ----------
    name : str
        What the table calls it.
    draw : callable
        Returns training and test rows that a seed chooses.
    n_left : int
        How many of the first columns belong to the left node.
    penalties : list of dict
        Candidates for the penalties of factorized models.
    max_iter : int
        Epochs.
    """

    name: str
    draw: Callable[[int], Draw]
    n_left: int
    penalties: list[dict[str, Any]]
    max_iter: int


def problems() -> list[Problem]:
    """Return the data sets of the experiment."""
    drugs, channels = fetch_drug_targets("gpcr"), fetch_drug_targets("ic")
    return [
        films(ids=True),
        films(ids=False),
        _graph("Cora", fetch_cora(), (16.0, 32.0, 64.0)),
        _graph("Citeseer", fetch_citeseer(), (16.0, 32.0, 64.0)),
        _coauthors(fetch_nips_coauthors()),
        _graph("drugs, GPCR", _nearest(drugs), (0.25, 1.0, 4.0)),
        _graph("drugs, ion channels", _nearest(channels), (0.25, 1.0, 4.0)),
    ]


def films(ids: bool) -> Problem:
    """MovieLens 100K: a rating of 5 is a link, any other rating is none."""
    bundle = fetch_movielens_links(ids=ids)
    of_user = [bundle.field_names.index(name) for name in bundle.field_names if name in _PERSON]
    n_left = int(np.isin(bundle.fields, of_user).sum())

    def draw(seed: int) -> Draw:
        random = np.random.default_rng(seed)
        yes, no = (random.permutation(np.flatnonzero(bundle.y == label)) for label in (1, -1))
        n = len(yes) // 2
        train, test = np.concatenate([yes[:n], no[:n]]), np.concatenate([yes[n:], no[n:]])
        return Draw(bundle.X[train], bundle.y[train], bundle.X[test], bundle.y[test])

    if not ids:
        penalties = _uniform(3.0, 10.0, 30.0)
        return Problem("MovieLens 100K, without ids", draw, n_left, penalties, 20)
    penalties = [{"beta": 30.0}, *(_by_field(bundle.field_names, rest) for rest in (150.0, 250.0))]
    for some in penalties[1:]:
        some["fields"] = bundle.fields
    return Problem("MovieLens 100K, with ids", draw, n_left, penalties, 20)


_PERSON = ("user", "age", "gender", "occupation", "zip")


def _by_field(names: list[str], rest: float) -> dict[str, Any]:
    """Penalties for ids, of few rows each, and for the other columns, of many rows each."""
    beta = [{"user": 4.0, "item": 10.0}.get(name, rest) for name in names]
    alpha = [1.5 if name in ("user", "item") else 1.0 for name in names]
    return {"alpha": np.array(alpha), "beta": np.array(beta)}


def _graph(name: str, bundle: LinkBundle, candidates: tuple[float, ...]) -> Problem:
    """Rows [a_i, b_j] of the features of both nodes."""

    def rows(pairs: Pairs, _: Pairs) -> sp.csr_matrix:
        return _beside(bundle.left[pairs[:, 0]], bundle.right[pairs[:, 1]])

    return Problem(name, _drawn(bundle, rows), bundle.left.shape[1], _uniform(*candidates), 20)


def _coauthors(bundle: LinkBundle) -> Problem:
    """Rows of both authors' ids and of their co-authors in the training links, less each other."""
    n = bundle.left.shape[0]

    def rows(pairs: Pairs, known: Pairs) -> sp.csr_matrix:
        both = np.concatenate([known, known[:, ::-1]])
        linked = sp.csr_matrix((np.ones(len(both), np.float32), both.T), shape=(n, n))
        first, second = pairs.T
        ids = sp.eye_array(n, dtype=np.float32, format="csr")
        sides = [ids[first], _without(linked[first], second)]
        return _beside(*sides, ids[second], _without(linked[second], first))

    return Problem("NIPS co-authors", _drawn(bundle, rows), 2 * n, _uniform(0.25, 1.0, 4.0), 20)


def _uniform(*strengths: float) -> list[dict[str, Any]]:
    return [{"beta": beta} for beta in strengths]


def _without(X: sp.csr_matrix, columns: NDArray[np.int64]) -> sp.csr_matrix:
    """Set one entry of each row, in the column given for it, to zero."""
    at = np.arange(X.shape[0])
    present = np.asarray(X[at, columns]).ravel()
    X = sp.csr_matrix(X - sp.csr_matrix((present, (at, columns)), shape=X.shape))
    X.eliminate_zeros()
    return X


def _beside(*blocks: Any) -> sp.csr_matrix:
    return sp.csr_matrix(sp.hstack(blocks, format="csr"))


def _drawn(
    bundle: LinkBundle, rows: Callable[[Pairs, Pairs], sp.csr_matrix]
) -> Callable[[int], Draw]:
    """Return a function that draws half of the links and as many other pairs to train.

    The rest is tested, at most NEGATIVES_TO_TEST pairs without a link. Links without direction are
    trained in both, and tested in one.
    """
    free = _unlinked(bundle)

    def draw(seed: int) -> Draw:
        random = np.random.default_rng(seed)
        links = random.permutation(bundle.links)
        n = len(links) // 2
        others = random.choice(free, min(len(free), n + NEGATIVES_TO_TEST), replace=False)
        others = np.stack(np.divmod(others, bundle.right.shape[0]), axis=1)
        train, test = (
            np.concatenate([links[:n], others[:n]]),
            np.concatenate([links[n:], others[n:]]),
        )
        y, y_test = (
            np.repeat([1, -1], [n, n]),
            np.repeat([1, -1], [len(links) - n, len(others) - n]),
        )
        if bundle.symmetric:
            train, y = np.concatenate([train, train[:, ::-1]]), np.tile(y, 2)
        return Draw(rows(train, links[:n]), y, rows(test, links[:n]), y_test)

    return draw


def _unlinked(bundle: LinkBundle) -> NDArray[np.int64]:
    """Return the pairs without a link, each as left * n_right + right."""
    free = np.ones((bundle.left.shape[0], bundle.right.shape[0]), dtype=bool)
    if bundle.symmetric:
        free = np.triu(free, 1)
    free[bundle.links[:, 0], bundle.links[:, 1]] = False
    return np.flatnonzero(free)


def _nearest(bundle: LinkBundle) -> LinkBundle:
    """Keep the similarities to the nearest neighbours (itself among them) alone."""
    return replace(bundle, left=_largest(bundle.left), right=_largest(bundle.right))


def _largest(similar: sp.csr_matrix) -> sp.csr_matrix:
    dense = similar.toarray()
    least = -np.sort(-dense, axis=1)[:, NEIGHBOURS - 1 : NEIGHBOURS]
    return sp.csr_matrix(np.where(dense >= least, dense, 0))
