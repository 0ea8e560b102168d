"""Encoders of tables beside scikit-learn's, on a frame of 200,000 rows and 39 columns of text.

The cells are hexadecimal numbers as in click logs, drawn by a power law from vocabularies of 10 to
a million. Every contestant starts from the frame and ends with a CSR matrix of float32. A
`FeatureHasher` takes dictionaries by default, which are the rows of the frame; the fastest way to
feed it that we found, tokens from a generator, is told, too.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from itertools import chain
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction import FeatureHasher
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from polyfm.data import HashingEncoder, VocabularyEncoder

N_ROWS, N_ROWS_QUICK, N_COLUMNS = 200_000, 4_000, 39
N_BITS = 20


def measure(rounds: int, quick: bool) -> Iterator[tuple[str, float, float | None]]:
    """Yield nanoseconds a cell, and ratios with their bars."""
    frame = _frame(N_ROWS_QUICK if quick else N_ROWS)
    _check_equal(frame.iloc[:2000])
    times = _times(frame, rounds)
    for name, seconds in times.items():
        yield f"{name}, ns a cell", 1e9 * seconds / frame.size, None
    own = times["HashingEncoder"]
    yield "time, FeatureHasher / HashingEncoder", times["FeatureHasher"] / own, 50.0
    tokens = times["FeatureHasher, tokens"] / own
    yield "time, FeatureHasher of generated tokens / HashingEncoder", tokens, None
    words = times["OrdinalEncoder and OneHotEncoder"] / times["VocabularyEncoder"]
    yield "time, OrdinalEncoder and OneHotEncoder / VocabularyEncoder", words, 8.0


def _frame(n_rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    columns = {}
    for j, size in enumerate(np.geomspace(10, 1e6, N_COLUMNS)):
        ranks = size ** rng.random(n_rows)  # density 1 / rank
        values = (ranks.astype(np.int64) * 2_654_435_761 + j) % 2**32
        columns[f"c{j}"] = [f"{value:08x}" for value in values]
    return pd.DataFrame(columns)


def _hashing(frame: pd.DataFrame) -> Any:
    return HashingEncoder(N_BITS).fit_transform(frame)


def _hasher(kind: str) -> FeatureHasher:
    return FeatureHasher(2**N_BITS, input_type=kind, dtype=np.float32, alternate_sign=False)


def _feature_hasher(frame: pd.DataFrame) -> Any:
    starts = range(0, len(frame), 10_000)
    rows = chain.from_iterable(frame.iloc[at : at + 10_000].to_dict("records") for at in starts)
    return _hasher("dict").transform(rows)


def _tokens(frame: pd.DataFrame) -> Any:
    names = list(frame.columns)
    rows = zip(*(frame[name].tolist() for name in names), strict=True)
    tokens = ([f"{name}={cell}" for name, cell in zip(names, row, strict=True)] for row in rows)
    return _hasher("string").transform(tokens)


def _vocabulary(frame: pd.DataFrame) -> Any:
    return VocabularyEncoder().fit_transform(frame)


def _ordinal_one_hot(frame: pd.DataFrame) -> Any:
    return make_pipeline(OrdinalEncoder(), OneHotEncoder(dtype=np.float32)).fit_transform(frame)


CONTESTANTS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "HashingEncoder": _hashing,
    "FeatureHasher": _feature_hasher,
    "FeatureHasher, tokens": _tokens,
    "VocabularyEncoder": _vocabulary,
    "OrdinalEncoder and OneHotEncoder": _ordinal_one_hot,
}


def _times(frame: pd.DataFrame, rounds: int) -> dict[str, float]:
    """Best seconds of each; the first turn, which may compile, does not count."""
    times = dict.fromkeys(CONTESTANTS, np.inf)
    for name in ("HashingEncoder", "VocabularyEncoder"):
        CONTESTANTS[name](frame.iloc[:1000])
    for _ in range(rounds):
        for name, run in CONTESTANTS.items():
            gc.collect()
            times[name] = min(times[name], _best(run, frame))
    return times


def _best(run: Callable[[pd.DataFrame], Any], frame: pd.DataFrame) -> float:
    """The best of as many runs as fit in a second, at least one."""
    best, end = np.inf, perf_counter() + 1
    while perf_counter() < end:
        started = perf_counter()
        run(frame)
        best = min(best, perf_counter() - started)
    return best


def _check_equal(frame: pd.DataFrame) -> None:
    """Raise an AssertionError unless both sides make of the frame what they should."""
    own, theirs = _vocabulary(frame), _ordinal_one_hot(frame)
    np.testing.assert_array_equal(own.indices, theirs.indices)
    dictionaries, tokens = _feature_hasher(frame), _tokens(frame)
    assert (dictionaries != tokens).nnz == 0
    np.testing.assert_array_equal(_hashing(frame).sum(axis=1), tokens.sum(axis=1))
