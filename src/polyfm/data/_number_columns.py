"""Encoders of one column of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from polyfm.data._column_encoder import NOTHING, ColumnEncoder, IntArray, Options
from polyfm.data.assembly import Entries
from polyfm.data.frames import Column, as_number
from polyfm.data.texts import CodedTexts, Texts, text_of

__all__ = ["Bins", "Number", "bucketed", "present"]

# Beyond 2^64 all numbers of one sign share a bucket.
_BUCKETS = np.array([2.0 ** math.sqrt(k) for k in range(64 * 64 + 1)])


def bucketed(column: Column) -> Column:
    r"""Buckets as text: ``floor(x)``, or ``floor(log2(|x|) ** 2)`` with a sign beyond 2."""
    column = as_number(column)
    numbers = column.values.astype(np.float64)
    size = np.abs(numbers)
    # Comparing with 2^sqrt(k) gives the same buckets on every machine, which log2 does not.
    large = np.searchsorted(_BUCKETS, size, side="right") - 1
    codes = np.where(size > 2, np.copysign(large + 2, numbers), np.floor(numbers)).astype(np.int64)
    distinct, places = np.unique(codes, return_inverse=True)
    labels = [
        str(c) if abs(c) <= 2 else f"{'-' * (c < 0)}log2^2={abs(c) - 2}" for c in distinct.tolist()
    ]
    texts = CodedTexts(np.where(present(column), places, -1), labels)
    return replace(column, kind="text", values=texts)


@dataclass
class Number(ColumnEncoder):
    """The number itself, or ``(x - mean) / scale``."""

    mean: float = 0.0
    scale: float = 1.0

    def fit(self, column: Column, options: Options) -> Number:
        """Learn mean and scale where they are asked for."""
        column = as_number(column)
        self.missing.fit(column)
        there = present(column)
        if options.numeric == "standardize" and there.any():
            numbers = column.values[there].astype(np.float64)
            self.mean = float(numbers.mean())
            self.scale = float(numbers.std()) or 1.0
        return self

    def labels(self) -> list[str]:
        """The column's own name."""
        return [self.name, *self.missing.labels(self.name)]

    def encode(self, column: Column, strict: bool) -> Entries:
        """The numbers; zeros are not stored."""
        column = as_number(column)
        numbers = self.scaled(column)
        cols = self.missing.mark(column, np.where(numbers != 0, 0, NOTHING), 1, strict)
        return Entries(cols, np.where(column.missing, 1.0, numbers))

    def scaled(self, column: Column) -> NDArray[np.float64]:
        """``(x - mean) / scale``."""
        scaled: NDArray[np.float64] = (column.values - self.mean) / self.scale
        return scaled


def present(column: Column) -> NDArray[np.bool_]:
    """Which cells hold something."""
    gone = column.missing if column.absent is None else column.missing | column.absent
    return ~gone


@dataclass
class Bins(ColumnEncoder):
    """One output column per interval ``(a, b]`` between quantiles.

    A value that fills a quantile by itself (a column that is mostly 0) gets a bin of its own, and
    the other values share the remaining bins.
    """

    edges: list[float] = field(default_factory=list)

    def fit(self, column: Column, options: Options) -> Bins:
        """Place the edges at the inner quantiles."""
        column = as_number(column)
        self.missing.fit(column)
        self.edges = _edges(column.values[present(column)].astype(np.float64), options.n_bins)
        return self

    def labels(self) -> list[str]:
        """``name=(a, b]``."""
        named = [f"{self.name}={interval}" for interval in self.intervals()]
        return named + self.missing.labels(self.name)

    def encode(self, column: Column, strict: bool) -> Entries:
        """A 1 at the interval of each number."""
        column = as_number(column)
        codes = self.codes(column)
        return Entries(self.missing.mark(column, codes, len(self.edges) + 1, strict))

    def codes(self, column: Column) -> IntArray:
        """The interval of each number."""
        found: IntArray = np.searchsorted(np.array(self.edges), column.values, side="left")
        return found

    def cells(self, column: Column) -> Texts:
        """The interval of each number as text."""
        column = as_number(column)
        codes = np.where(present(column), self.codes(column), -1)
        return CodedTexts(codes, self.intervals())

    def intervals(self) -> list[str]:
        """``(a, b]``."""
        ends = ["-inf", *(str(text_of(edge)) for edge in self.edges), "inf"]
        return [f"({a}, {b}]" for a, b in pairwise(ends)]


def _edges(numbers: NDArray[np.float64], n_bins: int) -> list[float]:
    """Inner edges: at the quantiles, and on both sides of every value with a bin of its own."""
    values, inverse, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    heavy = counts * n_bins > len(numbers)
    light = numbers[~heavy[inverse]]
    around = np.concatenate([values[heavy], values[:-1][heavy[1:]]])
    inner = np.linspace(0, 1, max(n_bins - int(heavy.sum()), 1) + 1)[1:-1]
    edges = np.unique(np.concatenate([around, np.quantile(light, inner) if len(light) else []]))
    kept: list[float] = edges[edges < values[-1]].tolist() if len(values) else []
    return kept
