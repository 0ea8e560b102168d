"""Encoders of one column: a column in, its non-zero entries out.

Each kind knows how to learn from a column (``fit``), how many output columns it makes
(``n_out``), what they are called (``labels``) and which entries a column has (``encode``).
All of them can be written as JSON (``state``) and read back (:func:`from_state`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm.data.assembly import Entries
from polyfm.data.frames import Column, as_number, as_sets, as_text
from polyfm.data.texts import Coded, text_of

__all__ = ["ColumnEncoder", "Options", "fit_column", "from_state"]

MISSING = "<missing>"
IntArray = NDArray[np.int64]
_NOTHING, _UNKNOWN = -1, -2


class Options(NamedTuple):
    """How one column is to be encoded."""

    numeric: str = "auto"
    n_bins: int = 10
    min_count: int = 1
    missing: str = "category"
    is_set: bool = False
    separator: str | None = None
    set_norm: str | None = "l1"


@dataclass
class Missing:
    """What happens to missing cells: an output column of their own, nothing, or an error."""

    policy: str
    seen: bool = False

    def fit(self, column: Column) -> Missing:
        self.refuse(column, self.policy == "error")
        self.seen = self.policy == "category" and bool(column.missing.any())
        return self

    def refuse(self, column: Column, strict: bool) -> None:
        if strict and column.missing.any():
            row = int(np.flatnonzero(column.missing)[0])
            raise ValueError(
                f"column {column.name!r}, row {row}: missing value; fill it in, or use "
                "missing='category' or missing='ignore'"
            )

    def mark(self, column: Column, codes: IntArray, at: int, strict: bool) -> IntArray:
        """Give missing cells the code ``at`` and absent ones none."""
        unexpected = strict and self.policy == "category" and not self.seen
        self.refuse(column, self.policy == "error" or unexpected)
        codes = np.where(column.missing, at if self.seen else _NOTHING, codes)
        return codes if column.absent is None else np.where(column.absent, _NOTHING, codes)

    def labels(self, name: str) -> list[str]:
        return [f"{name}={MISSING}"] if self.seen else []


@dataclass
class ColumnEncoder:
    """What all kinds share."""

    name: str
    missing: Missing

    @property
    def n_out(self) -> int:
        """Number of output columns."""
        return len(self.labels())

    def fit(self, column: Column, options: Options) -> ColumnEncoder:
        """Learn from a column."""
        raise NotImplementedError

    def labels(self) -> list[str]:
        """Names of the output columns."""
        raise NotImplementedError

    def encode(self, column: Column, strict: bool) -> Entries:
        """Entries of a column; ``strict`` refuses what ``fit`` has not seen."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Everything learnt, as plain JSON values."""
        return {"kind": type(self).__name__, **asdict(self)}


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
            self._fit_text(as_text(column).values.coded, options.min_count)
        return self

    def _fit_text(self, coded: Coded, min_count: int) -> None:
        counts = np.bincount(coded.codes + 1, minlength=len(coded.values) + 1)[1:]
        often = dict(zip(coded.values, counts >= min_count, strict=True))
        values = sorted(coded.values)
        self.keep(values, np.array([often[value] for value in values], dtype=bool))

    def keep(self, values: list[Any], often: NDArray[np.bool_]) -> None:
        """Give columns to the frequent ones; the rare ones stay known."""
        self.values = [v for v, keep in zip(values, often, strict=True) if keep]
        self.rare = [v for v, keep in zip(values, often, strict=True) if not keep]

    def labels(self) -> list[str]:
        """``name=category``."""
        named = [f"{self.name}={text_of(value)}" for value in self.values]
        return named + self.missing.labels(self.name)

    @property
    def n_out(self) -> int:
        """Number of output columns."""
        return len(self.values) + self.missing.seen

    @cached_property
    def _by_text(self) -> dict[str | None, int]:
        codes: dict[str | None, int] = {text_of(v): _NOTHING for v in self.rare}
        codes.update({text_of(v): code for code, v in enumerate(self.values)})
        return codes

    @cached_property
    def _numbers(self) -> NDArray[Any] | None:
        numbers = np.array(self.values + self.rare)
        return numbers if numbers.dtype.kind in "biuf" and len(numbers) else None

    def encode(self, column: Column, strict: bool) -> Entries:
        """A 1 at every known category."""
        codes = self.codes(column)
        codes = self.missing.mark(column, codes, len(self.values), strict)
        if strict and (codes == _UNKNOWN).any():
            self._refuse(column, int(np.flatnonzero(codes == _UNKNOWN)[0]))
        return Entries(codes)

    def codes(self, column: Column) -> IntArray:
        """Code of each cell: -1 for rare ones, -2 for unknown ones."""
        if column.kind == "number" and self._numbers is not None:
            return self._codes_of_numbers(column.values, self._numbers)
        coded: Coded = as_text(column).values.coded
        return coded.take(_look_up(self._by_text, coded.values), _NOTHING)

    def _codes_of_numbers(self, values: NDArray[Any], known: NDArray[Any]) -> IntArray:
        order = np.argsort(known, kind="stable")  # the rare ones stand behind the others
        at = np.minimum(np.searchsorted(known[order], values), len(known) - 1)
        codes = order[at].astype(np.int64)
        codes[codes >= len(self.values)] = _NOTHING
        return np.where(known[order[at]] == values, codes, _UNKNOWN)

    def _refuse(self, column: Column, row: int) -> None:
        raise ValueError(
            f"column {self.name!r}, row {row}: category {column.values[row]!r} was not seen in "
            "fit; use handle_unknown='ignore' to give such cells no entry"
        )


def _look_up(codes: dict[str | None, int], texts: list[str]) -> IntArray:
    return np.fromiter(map(codes.get, texts, repeat(_UNKNOWN)), np.int64, len(texts))


@dataclass
class Number(ColumnEncoder):
    """The number itself, or ``(x - mean) / scale``."""

    mean: float = 0.0
    scale: float = 1.0

    def fit(self, column: Column, options: Options) -> Number:
        """Learn mean and scale where they are asked for."""
        column = as_number(column)
        self.missing.fit(column)
        present = _present(column)
        if options.numeric == "standardize" and present.any():
            numbers = column.values[present].astype(np.float64)
            self.mean = float(numbers.mean())
            self.scale = float(numbers.std()) or 1.0
        return self

    def labels(self) -> list[str]:
        """The column's own name."""
        return [self.name, *self.missing.labels(self.name)]

    def encode(self, column: Column, strict: bool) -> Entries:
        """The numbers; zeros are not stored."""
        column = as_number(column)
        numbers = (column.values - self.mean) / self.scale
        cols = self.missing.mark(column, np.where(numbers != 0, 0, _NOTHING), 1, strict)
        return Entries(cols, np.where(column.missing, 1.0, numbers))


def _present(column: Column) -> NDArray[np.bool_]:
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
        self.edges = _edges(column.values[_present(column)].astype(np.float64), options.n_bins)
        return self

    def labels(self) -> list[str]:
        """``name=(a, b]``."""
        ends = ["-inf", *(str(text_of(edge)) for edge in self.edges), "inf"]
        named = [f"{self.name}=({a}, {b}]" for a, b in pairwise(ends)]
        return named + self.missing.labels(self.name)

    def encode(self, column: Column, strict: bool) -> Entries:
        """A 1 at the interval of each number."""
        column = as_number(column)
        codes = np.searchsorted(np.array(self.edges), column.values, side="left")
        return Entries(self.missing.mark(column, codes, len(self.edges) + 1, strict))


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
            _, cols = self._pairs(column, strict=False)
            counts = np.bincount(cols, minlength=self.elements.n_out)
            values = self.elements.values
            self.elements = Categories(self.name, Missing("ignore"))
            self.elements.keep(values, counts >= options.min_count)
        return self

    def _pairs(self, column: Column, strict: bool) -> tuple[IntArray, IntArray]:
        """Rows and columns of the known elements, each at most once per cell."""
        inside = self.elements.encode(_flat(column), strict).cols
        known = inside >= 0
        width = max(self.elements.n_out, 1)
        pairs = np.sort(_owners(column)[known] * width + inside[known])
        rows, cols = np.divmod(pairs[np.diff(pairs, prepend=-1) != 0], width)
        return rows, cols

    def labels(self) -> list[str]:
        """``name=element``."""
        return self.elements.labels() + self.missing.labels(self.name)

    def encode(self, column: Column, strict: bool) -> Entries:
        """Weights of the elements; unknown elements do not count."""
        column = as_sets(column, self.separator)
        rows, cols = self._pairs(column, strict)
        sizes = np.bincount(rows, minlength=len(column))[rows]
        power = {"l1": 1.0, "l2": 0.5, None: 0.0}[self.norm]
        gone = np.full(len(column), _NOTHING)
        gone = self.missing.mark(column, gone, self.elements.n_out, strict)
        blank = np.flatnonzero(gone >= 0)
        return Entries(
            np.concatenate([cols, gone[blank]]),
            np.concatenate([1.0 / sizes**power, np.ones(len(blank))]),
            np.concatenate([rows, blank]),
        )


def _owners(column: Column) -> IntArray:
    lengths = np.zeros(len(column), np.int64) if column.lengths is None else column.lengths
    return np.repeat(np.arange(len(column), dtype=np.int64), lengths)


def _flat(column: Column) -> Column:
    return Column(column.name, "text", column.values, np.zeros(len(column.values), bool))


def fit_column(column: Column, options: Options) -> ColumnEncoder:
    """Choose the encoder that fits the column and the options, and fit it."""
    return _choose(column, options).fit(column, options)


def _choose(column: Column, options: Options) -> ColumnEncoder:
    name, missing = column.name, Missing(options.missing)
    if options.is_set or column.kind == "sets":
        return Sets(name, missing, Categories(name, Missing("ignore")))
    if options.numeric == "bin":
        return Bins(name, missing)
    if options.numeric in ("passthrough", "standardize"):
        return Number(name, missing)
    return Categories(name, missing)


def from_state(state: dict[str, Any]) -> ColumnEncoder:
    """Build an encoder again from what :meth:`ColumnEncoder.state` gave."""
    kinds = {cls.__name__: cls for cls in (Categories, Number, Bins, Sets)}
    fields = {**state, "missing": Missing(**state["missing"])}
    cls = kinds[fields.pop("kind")]
    if cls is Sets:
        inner = fields["elements"]
        fields["elements"] = Categories(**{**inner, "missing": Missing(**inner["missing"])})
    encoder: ColumnEncoder = cls(**fields)
    return encoder
