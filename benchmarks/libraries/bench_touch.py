"""The floor: read and write every touched parameter row once, and compute nothing.

The table has the least a float32 FM trained by AdaGrad can hold per feature: ``rank`` weights and
``rank`` accumulators side by side, and a record of four for the linear term, cache-line aligned.
Rows are visited in the order a stochastic solver visits them (blocks shuffled, and the rows in
each), with the parameter rows of the next sample prefetched.
"""

from __future__ import annotations

import importlib.util
import math
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from libraries import Run, Trainer
from problems import Problem

name = "touch"
BLOCK_ROWS = 4096
CACHE_LINE = 64


def available() -> bool:
    return importlib.util.find_spec("numba") is not None


def make(problem: Problem, rank: int, epochs: int, variant: str = "") -> Trainer:
    from libraries._touch_kernel import touch_epoch

    X = problem.X
    table = _aligned_zeros((X.shape[1], 2 * rank))
    records = _aligned_zeros((X.shape[1], 4))
    rng = np.random.default_rng(0)

    def visit(order: NDArray[np.int64]) -> float:
        start = perf_counter()
        touch_epoch(order, X.indptr, X.indices, X.data, table, records)
        return perf_counter() - start

    visit(np.arange(2))

    def train() -> Run:
        seconds = sum(visit(_block_order(X.shape[0], rng)) for _ in range(epochs))
        return Run(seconds, epochs * X.shape[0], math.nan)

    return train


def _block_order(n_rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    starts = rng.permutation(np.arange(0, n_rows, BLOCK_ROWS))
    blocks = (np.arange(start, min(start + BLOCK_ROWS, n_rows)) for start in starts)
    return np.concatenate([rng.permutation(block) for block in blocks])


def _aligned_zeros(shape: tuple[int, int]) -> NDArray[np.float32]:
    size = shape[0] * shape[1] * 4
    buffer = np.zeros(size + CACHE_LINE, dtype=np.uint8)
    shift = -buffer.ctypes.data % CACHE_LINE
    table = buffer[shift : shift + size].view(np.float32).reshape(shape)
    table[:] = 0.0  # so that its pages exist before the clock starts
    return table
