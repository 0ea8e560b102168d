"""Encoders of one column: a column in, its non-zero entries out.

Each kind knows how to learn from a column (``fit``), how many output columns it makes
(``n_out``), what they are called (``labels``) and which entries a column has (``encode``).
All of them can be written as JSON (``state``) and read back (:func:`from_state`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.data._column_encoder import (
    NOTHING,
    UNKNOWN,
    ColumnEncoder,
    IntArray,
    Missing,
    Options,
)
from polyfm.data._number_columns import Bins, Number, bucketed
from polyfm.data.assembly import Entries
from polyfm.data.frames import Column, as_sets, as_text
from polyfm.data.texts import Coded, Texts, text_of

__all__ = ["ColumnEncoder", "Options", "choose", "distinct", "fit_column", "from_state"]


@dataclass
class Categories(ColumnEncoder):
    """One output column per category, in sorted order.

    ``values`` are numbers where the column in ``fit`` held numbers, else text; ``rare`` holds
    the categories seen less often than ``min_count``, which are known but get no column.
    """

    values: list[Any] = field(default_factory=list)
    rare: list[Any] = field(default_factory=list)

    def fit(self, column: Column, options: Options) -> Categories:
        """Collect and sort the categories."""
        self.missing.fit(column)
        gone = column.missing if column.absent is None else column.missing | column.absent
        if column.kind == "number":
            values, counts = np.unique(column.values[~gone], return_counts=True)
            self.keep(values.tolist(), counts >= options.min_count)
        else:
            self._fit_text(self.cells(column).coded, options.min_count)
        return self

    def _fit_text(self, coded: Coded, min_count: int) -> None:
        counts = np.bincount(coded.codes + 1, minlength=len(coded.values) + 1)[1:]
        often = dict(zip(coded.values, counts >= min_count, strict=True))
        values = self.ordered(coded.values)
        self.keep(values, np.array([often[value] for value in values], dtype=bool))

    def ordered(self, values: list[str]) -> list[str]:
        """Text in the order of its columns."""
        return sorted(values)

    def keep(self, values: list[Any], often: NDArray[np.bool_]) -> None:
        """Give columns to the frequent ones; the rare ones stay known."""
        self.values = [v for v, keep in zip(values, often, strict=True) if keep]
        self.rare = [v for v, keep in zip(values, often, strict=True) if not keep]

    def labels(self) -> list[str]:
        """``name=category``."""
        named = [f"{self.name}={text}" for text in _texts(self.values)]
        return named + self.missing.labels(self.name)

    @property
    def n_out(self) -> int:
        """Number of output columns."""
        return len(self.values) + self.missing.seen

    @cached_property
    def _by_text(self) -> dict[str | None, int]:
        codes: dict[str | None, int] = dict.fromkeys(_texts(self.rare), NOTHING)
        codes.update(zip(_texts(self.values), range(len(self.values)), strict=True))
        return codes

    @cached_property
    def _numbers(self) -> NDArray[Any] | None:
        numbers = np.array(self.values + self.rare)
        return numbers if numbers.dtype.kind in "biuf" and len(numbers) else None

    def encode(self, column: Column, strict: bool) -> Entries:
        """A 1 at every known category."""
        codes = self.codes(column)
        codes = self.missing.mark(column, codes, len(self.values), strict)
        if strict and (codes == UNKNOWN).any():
            self._refuse(column, int(np.flatnonzero(codes == UNKNOWN)[0]))
        return Entries(codes)

    def cells(self, column: Column) -> Texts:
        """The categories as text."""
        texts: Texts = as_text(column).values
        return texts

    def codes(self, column: Column) -> IntArray:
        """Code of each cell: -1 for rare ones, -2 for unknown ones."""
        if column.kind == "number" and self._numbers is not None:
            return self._codes_of_numbers(column.values, self._numbers)
        coded = self.cells(column).coded
        return coded.take(_look_up(self._by_text, coded.values), NOTHING)

    def _codes_of_numbers(self, values: NDArray[Any], known: NDArray[Any]) -> IntArray:
        order = np.argsort(known, kind="stable")  # the rare ones stand behind the others
        at = np.minimum(np.searchsorted(known[order], values), len(known) - 1)
        codes = order[at].astype(np.int64)
        codes[codes >= len(self.values)] = NOTHING
        return np.where(known[order[at]] == values, codes, UNKNOWN)

    def _refuse(self, column: Column, row: int) -> None:
        raise ValueError(
            f"column {self.name!r}, row {row}: category {column.values[row]!r} was not seen in "
            "fit; use handle_unknown='ignore' to give such cells no entry"
        )


def _texts(values: list[Any]) -> list[Any]:
    """All are numbers or all are text."""
    return values if values and isinstance(values[0], str) else list(map(text_of, values))


def _look_up(codes: dict[str | None, int], texts: list[str]) -> IntArray:
    return np.fromiter(map(codes.get, texts, repeat(UNKNOWN)), np.int64, len(texts))


@dataclass
class Log2(Categories):
    """One output column per bucket that occurs, of buckets that grow with the number."""

    def fit(self, column: Column, options: Options) -> Log2:
        """Collect the buckets."""
        super().fit(bucketed(column), options)
        return self

    def ordered(self, values: list[str]) -> list[str]:
        """Buckets stay in the order of the numbers."""
        return values

    def cells(self, column: Column) -> Texts:
        """The buckets as text, the values of which are in the order of the numbers."""
        texts: Texts = column.values if column.kind == "text" else bucketed(column).values
        return texts


@dataclass
class Sets(ColumnEncoder):
    """Multi-hot: an entry per known element of each cell, scaled to unit norm."""

    elements: Categories
    separator: str | None = None
    norm: str | None = "l1"

    def fit(self, column: Column, options: Options) -> Sets:
        """Collect and sort the elements."""
        self.separator, self.norm = options.separator, options.set_norm
        column = as_sets(column, self.separator)
        self.missing.fit(column)
        self.elements.fit(_flat(column), options._replace(min_count=1))
        if options.min_count > 1:
            _, cols = self._known(column, strict=False)
            counts = np.bincount(cols, minlength=self.elements.n_out)
            values = self.elements.values
            self.elements = Categories(self.name, Missing("ignore"))
            self.elements.keep(values, counts >= options.min_count)
        return self

    def _known(self, column: Column, strict: bool) -> tuple[IntArray, IntArray]:
        """Rows and columns of the known elements, each at most once per cell."""
        inside: IntArray = self.elements.encode(_flat(column), strict).cols.astype(np.int64)
        known = inside >= 0
        return distinct(_owners(column)[known], inside[known], self.elements.n_out)

    def members(self, column: Column) -> tuple[IntArray, IntArray, list[str]]:
        """Rows and codes of all elements, each at most once per cell, and what the codes mean."""
        codes, values = column.values.coded
        return *distinct(_owners(column), codes, len(values)), values

    def weights(self, rows: IntArray, n_rows: int) -> NDArray[np.float64]:
        """Of elements, by the number of them in their row."""
        sizes = np.bincount(rows, minlength=n_rows)[rows].astype(np.float64)
        weights: NDArray[np.float64] = sizes ** {"l1": -1.0, "l2": -0.5, None: 0.0}[self.norm]
        return weights

    def labels(self) -> list[str]:
        """``name=element``."""
        return self.elements.labels() + self.missing.labels(self.name)

    def encode(self, column: Column, strict: bool) -> Entries:
        """Weights of the elements; unknown elements do not count."""
        column = as_sets(column, self.separator)
        rows, cols = self._known(column, strict)
        gone = np.full(len(column), NOTHING)
        gone = self.missing.mark(column, gone, self.elements.n_out, strict)
        blank = np.flatnonzero(gone >= 0)
        return Entries(
            np.concatenate([cols, gone[blank]]),
            np.concatenate([self.weights(rows, len(column)), np.ones(len(blank))]),
            np.concatenate([rows, blank]),
        )


def distinct(rows: IntArray, codes: IntArray, n_codes: int) -> tuple[IntArray, IntArray]:
    """Pairs of a row and a code, sorted, each once."""
    width = max(n_codes, 1)
    pairs = np.sort(rows * width + codes)
    rows, codes = np.divmod(pairs[np.diff(pairs, prepend=-1) != 0], width)
    return rows, codes


def _owners(column: Column) -> IntArray:
    lengths = np.zeros(len(column), np.int64) if column.lengths is None else column.lengths
    return np.repeat(np.arange(len(column), dtype=np.int64), lengths)


def _flat(column: Column) -> Column:
    return Column(column.name, "text", column.values, np.zeros(len(column.values), bool))


def fit_column(column: Column, options: Options) -> ColumnEncoder:
    """Choose the encoder that fits the column and the options, and fit it."""
    return choose(column, options).fit(column, options)


def choose(column: Column, options: Options) -> ColumnEncoder:
    """Return the encoder that fits the column and the options, not yet fitted."""
    name, missing = column.name, Missing(options.missing)
    if options.is_set or column.kind == "sets":
        return Sets(name, missing, Categories(name, Missing("ignore")))
    if options.numeric == "bin":
        return Bins(name, missing)
    if options.numeric in ("passthrough", "standardize"):
        return Number(name, missing)
    return Log2(name, missing) if options.numeric == "log2" else Categories(name, missing)


def from_state(state: dict[str, Any]) -> ColumnEncoder:
    """Build an encoder again from what :meth:`ColumnEncoder.state` gave."""
    kinds = {cls.__name__: cls for cls in (Categories, Log2, Number, Bins, Sets)}
    fields = {**state, "missing": Missing(**state["missing"])}
    cls = kinds[fields.pop("kind")]
    if cls is Sets:
        inner = fields["elements"]
        fields["elements"] = Categories(**{**inner, "missing": Missing(**inner["missing"])})
    encoder: ColumnEncoder = cls(**fields)
    return encoder
