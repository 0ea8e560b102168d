"""The problems every contestant is timed on."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit

CACHE_VERSION = 1
FIELD_ZIPF_EXPONENT = 1.1
SMALLEST_FIELD = 4
PLANTED_RANK = 4
CLICK_RATE = 0.22
MARGIN_SPREAD = 1.5


@dataclass(frozen=True)
class Problem:
    """A data set, ready to train on.

    ``X`` is CSR in float32, ``y`` holds -1 and +1 (``task="classification"``) or real
    targets (``task="regression"``), ``fields[j]`` is the field of column j.
    """

    name: str
    task: str
    X: sparse.csr_array
    y: NDArray[np.float64]
    fields: NDArray[np.int32]

    def head(self, n_rows: int) -> Problem:
        """The problem cut to its first rows, all columns kept."""
        return Problem(self.name, self.task, self.X[:n_rows], self.y[:n_rows], self.fields)


def cache_folder() -> Path:
    """Where generated problems are kept: ``POLYFM_BENCH_CACHE`` or a temporary folder."""
    default = Path(tempfile.gettempdir()) / "polyfm-benchmarks"
    folder = Path(os.environ.get("POLYFM_BENCH_CACHE", default))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def synthetic_ctr(
    n_rows: int = 300_000, n_fields: int = 39, n_features: int = 1_400_000, seed: int = 0
) -> Problem:
    """One-hot click data: skewed field sizes, Zipf-distributed ids, clicks of a planted FM."""
    stem = f"ctr-v{CACHE_VERSION}-{n_rows}-{n_fields}-{n_features}-{seed}"
    path = cache_folder() / f"{stem}.npz"
    if not path.exists():
        _save(path, _generate_ctr(n_rows, n_fields, n_features, np.random.default_rng(seed)))
    return _load(path)


def movielens_1m(n_rows: int | None = None) -> Problem:
    """The million ratings by user id and item id, in a fixed random order, to be regressed on."""
    from polyfm.datasets import fetch_movielens_1m

    data = fetch_movielens_1m()
    order = np.random.default_rng(0).permutation(len(data.y))[:n_rows]
    X = sparse.csr_array(data.X, dtype=np.float32)[order]
    fields = data.fields.astype(np.int32)
    return Problem("movielens_1m", "regression", X, data.y[order], fields)


def _quick_ctr() -> Problem:
    return synthetic_ctr(n_rows=20_000, n_features=100_000)


def _quick_movielens() -> Problem:
    return movielens_1m(n_rows=100_000)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "synthetic_ctr": synthetic_ctr,
    "movielens_1m": movielens_1m,
}
QUICK_PROBLEMS: dict[str, Callable[[], Problem]] = {
    "synthetic_ctr": _quick_ctr,
    "movielens_1m": _quick_movielens,
}


def field_sizes(n_fields: int, n_features: int) -> NDArray[np.int64]:
    """A few huge fields and many small ones, ``n_features`` together."""
    sizes = np.geomspace(n_features / 4, SMALLEST_FIELD, n_fields).astype(np.int64)
    sizes[0] += n_features - sizes.sum()
    if sizes[0] < sizes[-1]:
        raise ValueError(
            f"{n_features} features cannot be spread over {n_fields} fields; "
            "raise n_features or lower n_fields"
        )
    return sizes


def _generate_ctr(n_rows: int, n_fields: int, n_features: int, rng: np.random.Generator) -> Problem:
    sizes = field_sizes(n_fields, n_features)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    indices = np.empty((n_rows, n_fields), dtype=np.int32)
    for f, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        indices[:, f] = start + _zipf_ids(n_rows, size, rng)
    indptr = np.arange(n_rows + 1, dtype=np.int32) * np.int32(n_fields)
    data = np.ones(n_rows * n_fields, dtype=np.float32)
    X = sparse.csr_array((data, indices.ravel(), indptr), shape=(n_rows, n_features))
    fields = np.repeat(np.arange(n_fields, dtype=np.int32), sizes)
    return Problem("synthetic_ctr", "classification", X, _clicks(X, rng), fields)


def _zipf_ids(n_rows: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Ids below ``size``; which id is the frequent one is random, as after hashing."""
    cumulated = np.cumsum(np.arange(1, size + 1, dtype=np.float64) ** -FIELD_ZIPF_EXPONENT)
    ranks = np.searchsorted(cumulated, rng.random(n_rows) * cumulated[-1], side="right")
    return rng.permutation(size)[np.minimum(ranks, size - 1)]


def _clicks(X: sparse.csr_array, rng: np.random.Generator) -> NDArray[np.float64]:
    """Labels -1, +1 drawn from a logistic FM of order 2 with the wanted click rate."""
    w = rng.standard_normal(X.shape[1], dtype=np.float32)
    V = rng.standard_normal((X.shape[1], PLANTED_RANK), dtype=np.float32)
    S = X @ V
    pairs = 0.5 * (S * S - X @ (V * V)).sum(axis=1)
    linear = X @ w
    margin = linear / linear.std() + pairs / pairs.std()
    margin *= MARGIN_SPREAD / margin.std()
    bias = brentq(lambda b: expit(margin + b).mean() - CLICK_RATE, -50.0, 50.0)
    return np.where(rng.random(X.shape[0]) < expit(margin + bias), 1.0, -1.0)


def _save(path: Path, problem: Problem) -> None:
    unfinished = path.with_suffix(f".{os.getpid()}.npz")
    np.savez(
        unfinished,
        name=problem.name,
        task=problem.task,
        data=problem.X.data,
        indices=problem.X.indices,
        indptr=problem.X.indptr,
        shape=problem.X.shape,
        y=problem.y,
        fields=problem.fields,
    )
    unfinished.replace(path)


def _load(path: Path) -> Problem:
    with np.load(path) as saved:
        parts = (saved["data"], saved["indices"], saved["indptr"])
        X = sparse.csr_array(parts, shape=tuple(saved["shape"]))
        return Problem(str(saved["name"]), str(saved["task"]), X, saved["y"], saved["fields"])
