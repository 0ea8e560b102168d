"""Readers of text beside scikit-learn's and xgboost's, on a hundred megabytes.

Every contestant reads a whole file into its own kind of matrix, all in turns, of which each begins
with another, twice a turn: the first has to get memory that another has given back to the system,
which on a virtual machine may take as long as the reading. The best counts; xgboost has as many
threads as it likes. The rows that polyfm reads must be scikit-learn's, bit for bit.
"""

from __future__ import annotations

import gc
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_svmlight_file

from polyfm.data import load_libffm, load_svmlight, load_vw
from problems import cache_folder

N_FIELDS = 39
N_BYTES, N_BYTES_QUICK = 100_000_000, 2_000_000


class Contestant(NamedTuple):
    """Something that reads a file."""

    name: str
    path: Path
    read: Callable[[Path], Any]


def measure(rounds: int, quick: bool) -> Iterator[tuple[str, float, float | None]]:
    """Yield megabytes a second, and ratios with their bars."""
    n_bytes = N_BYTES_QUICK if quick else N_BYTES
    files = {name: _file(name, n_bytes) for name in ("one-hot", "real", "libffm", "vw")}
    _check_equal(files["one-hot"])
    _check_equal(files["real"])
    speeds = _speeds(list(_contestants(files)), rounds)
    for name, speed in speeds.items():
        yield f"{name}, MB/s", speed, None
    for kind in ("one-hot", "real"):
        own = speeds[f"polyfm, svmlight {kind}"]
        yield f"svmlight {kind}, speed / scikit-learn", own / speeds[f"scikit-learn, {kind}"], 15.0
        if f"xgboost, {kind}" in speeds:
            yield f"svmlight {kind}, speed / xgboost", own / speeds[f"xgboost, {kind}"], 2.0
    own = speeds["polyfm, svmlight one-hot"]
    yield "bytes a second, libffm / svmlight", speeds["polyfm, libffm"] / own, 0.7
    yield "bytes a second, vw / svmlight", speeds["polyfm, vw"] / own, 0.7


def _contestants(files: dict[str, Path]) -> Iterator[Contestant]:
    for kind in ("one-hot", "real"):
        yield Contestant(f"polyfm, svmlight {kind}", files[kind], load_svmlight)
        yield Contestant(f"scikit-learn, {kind}", files[kind], lambda path: _scikit_learn(path))
    yield Contestant("polyfm, libffm", files["libffm"], load_libffm)
    yield Contestant("polyfm, vw", files["vw"], load_vw)
    if importlib.util.find_spec("xgboost") is None:
        print("xgboost is not installed and left out", file=sys.stderr)
        return
    for kind in ("one-hot", "real"):
        yield Contestant(f"xgboost, {kind}", files[kind], _xgboost)


def _scikit_learn(path: Path) -> Any:
    return load_svmlight_file(str(path), dtype=np.float32)


def _xgboost(path: Path) -> Any:
    import xgboost

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it would rather be given a matrix
        return xgboost.DMatrix(f"{path}?format=libsvm")


def _speeds(contestants: list[Contestant], rounds: int) -> dict[str, float]:
    best = {one.name: np.inf for one in contestants}
    for turn in range(rounds + 1):  # the first compiles, and brings the files into memory
        # What has run just before is another one each time.
        for one in (*contestants[3 * turn :], *contestants[: 3 * turn]):
            print(f"round {turn}/{rounds}: {one.name}", file=sys.stderr)
            gc.collect()
            seconds = min(_seconds(one), _seconds(one))
            if turn:
                best[one.name] = min(best[one.name], seconds)
    return {one.name: one.path.stat().st_size / 1e6 / best[one.name] for one in contestants}


def _seconds(one: Contestant) -> float:
    start = perf_counter()
    one.read(one.path)
    return perf_counter() - start


def _check_equal(path: Path) -> None:
    X, y = load_svmlight(path)
    X_known, y_known = _scikit_learn(path)
    pairs = ((X.data, X_known.data), (X.indices, X_known.indices), (X.indptr, X_known.indptr))
    same = all(
        np.array_equal(a.view(np.uint32), b.astype(a.dtype).view(np.uint32)) for a, b in pairs
    )
    if not same or not np.array_equal(y, y_known):
        raise AssertionError(f"{path}: other rows than scikit-learn's")


def _file(kind: str, n_bytes: int) -> Path:
    """Write rows of 39 features until there are enough, unless they are there."""
    path = cache_folder() / f"text-v1-{kind}-{n_bytes}.txt"
    if not path.exists():
        partial = path.with_suffix(".partial")
        with partial.open("w") as file:
            rng = np.random.default_rng(0)
            while file.tell() < n_bytes:
                file.writelines(_lines(kind, rng, 10_000))
        partial.replace(path)
    return path


def _lines(kind: str, rng: np.random.Generator, n_rows: int) -> Iterator[str]:
    """Fields of very different sizes, small ids more frequent than large ones."""
    sizes = 10 ** (1 + np.arange(N_FIELDS) % 5)
    first = np.cumsum(sizes) - sizes + 1
    ids = first + (rng.random((n_rows, N_FIELDS)) ** 3 * sizes).astype(np.int64)
    values = np.round(rng.normal(size=(n_rows, N_FIELDS)), 4).tolist()
    entry = {
        "one-hot": lambda field, index, value: f"{index}:1",
        "real": lambda field, index, value: f"{index}:{value}",
        "libffm": lambda field, index, value: f"{field}:{index}:1",
        "vw": lambda field, index, value: f"f{field}={index}",
    }[kind]
    bar = "| " if kind == "vw" else ""
    for row, numbers, label in zip(ids.tolist(), values, rng.random(n_rows) < 0.2, strict=True):
        entries = (entry(*one) for one in zip(range(N_FIELDS), row, numbers, strict=True))
        yield f"{int(label)} {bar}{' '.join(entries)}\n"
