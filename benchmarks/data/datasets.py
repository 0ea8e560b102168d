"""Datasets: how fast they are written, opened and gone through, against matrices in memory."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyfm.cli import main
from polyfm.data import Dataset
from polyfm.data._examine import is_canonical, look_at_values
from polyfm.data.rows import read_only

_ENTRIES, _COLUMNS, _BATCH = 39, 1 << 20, 65_536


def measure(rounds: int, quick: bool) -> list[tuple[str, float, float | None]]:
    folder = Path(tempfile.mkdtemp(prefix="polyfm-bench-"))
    try:
        return _measure(folder, rounds, 60_000 if quick else 1_000_000)
    finally:
        shutil.rmtree(folder)


def _measure(folder: Path, rounds: int, n_rows: int) -> list[tuple[str, float, float | None]]:
    X, y = _rows(n_rows)
    lines: list[tuple[str, float, float | None]] = [_convert(folder, X[: n_rows // 5], y, rounds)]
    for name, values in (("all 1", X.data), ("numbers", X.data * np.float32(0.5))):
        matrix = sp.csr_matrix((values, X.indices, X.indptr), X.shape)
        lines += _one(folder / name, name, matrix, y, rounds)
    return lines


def _rows(n_rows: int) -> tuple[sp.csr_matrix, Any]:
    """Rows as of clicks: an entry in each of 39 ranges of columns, some columns far more often."""
    random = np.random.default_rng(0)
    width = _COLUMNS // _ENTRIES
    within = (width * random.random((n_rows, _ENTRIES)) ** 4).astype(np.int32)
    columns = within + width * np.arange(_ENTRIES, dtype=np.int32)
    ends = np.arange(n_rows + 1, dtype=np.int32) * _ENTRIES
    values = np.ones(columns.size, dtype=np.float32)
    X = sp.csr_matrix((values, columns.ravel(), ends), shape=(n_rows, _COLUMNS))
    return X, random.integers(0, 2, n_rows).astype(np.float64)


def _convert(
    folder: Path, X: sp.csr_matrix, y: Any, rounds: int
) -> tuple[str, float, float | None]:
    """Take the whole command, from svmlight text."""
    path = folder / "rows.svm"
    with path.open("w") as stream:
        for i in range(X.shape[0]):
            row = X.indices[X.indptr[i] : X.indptr[i + 1]] + 1
            stream.write(f"{y[i]:.0f} " + " ".join(f"{j}:1" for j in row.tolist()) + "\n")

    def convert() -> None:
        with contextlib.redirect_stderr(io.StringIO()):
            assert main(["convert", str(path), str(folder / "converted"), "--overwrite"]) == 0

    seconds = _best(convert, rounds)
    return "polyfm convert of svmlight text, MB/s", path.stat().st_size / 1e6 / seconds, None


def _one(
    path: Path, name: str, X: sp.csr_matrix, y: Any, rounds: int
) -> list[tuple[str, float, float | None]]:
    def write() -> Dataset:
        return Dataset.write(path, _slices(X, y), overwrite=True)

    seconds = _best(write, rounds)
    dataset = Dataset(path)

    def from_map() -> int:
        return _look(batch.X for batch in dataset.iter_batches(_BATCH))

    def from_memory() -> int:
        return _look((part for part, _ in _slices(X, y)))

    assert from_map() == from_memory() == X.nnz
    of_map, of_memory = _in_turn(from_map, from_memory, rounds)
    return [
        (f"writing a dataset ({name}), MB/s", dataset.n_bytes / 1e6 / seconds, None),
        (f"opening it ({name}), ms", 1e3 * _best(lambda: Dataset(path), rounds), None),
        (f"going through it ({name}), million rows/s", X.shape[0] / 1e6 / of_map, None),
        (f"dataset against CSR slices ({name}), time", of_map / of_memory, -1.15),
    ]


def _slices(X: sp.csr_matrix, y: Any) -> Iterable[tuple[Any, Any]]:
    for start in range(0, X.shape[0], _BATCH):
        part = slice(start, start + _BATCH)
        yield X[part], y[part]


def _look(matrices: Iterable[sp.csr_matrix]) -> int:
    """Touch every number, as a solver does."""
    n = 0
    for X in matrices:
        assert is_canonical(read_only(X.indptr), read_only(X.indices), X.shape[1])
        assert look_at_values(read_only(X.data), np.inf) == (0, 0)
        n += X.nnz
    return n


def _best(call: Callable[[], Any], rounds: int) -> float:
    return min(_seconds(call) for _ in range(rounds))


def _in_turn(one: Callable[[], Any], other: Callable[[], Any], rounds: int) -> tuple[float, float]:
    pairs = [(_seconds(one), _seconds(other)) for _ in range(rounds)]
    return min(a for a, _ in pairs), min(b for _, b in pairs)


def _seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
