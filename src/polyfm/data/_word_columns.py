"""Columns of a table that know which output column each of their values has."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.data._column_encoder import MISSING, NOTHING, UNKNOWN, ColumnEncoder, IntArray, Options
from polyfm.data._number_columns import Bins, Number, present
from polyfm.data.assembly import Entries
from polyfm.data.columns import Log2, Sets, choose, distinct, from_state
from polyfm.data.frames import Column, as_number, as_sets

__all__ = ["WordColumn"]

_MISSING, _OTHER, _FIRST = range(3)  # slots
UNKNOWN_LABEL = "<unknown>"


@dataclass
class WordColumn:
    """One column of a table: what it has met, and where in the matrix that is.

    Each value has a slot, and each slot a column of the matrix, or none: slot 0 is for missing
    cells, slot 1 for values without a slot, the others follow in the order in which they came.
    Slots and their columns never change.
    """

    encoder: ColumnEncoder
    """Knows how cells become text, bins or numbers; its own list of categories stays empty."""
    with_other: bool = False
    """Whether values without a slot share a column of the matrix."""
    words: dict[str, int] = field(default_factory=dict)
    """The slots of text."""
    waiting: Counter[str] = field(default_factory=Counter)
    """In how many rows those have been that are still too rare for a slot."""
    missing_met: bool = False
    places: IntArray = field(default_factory=lambda: np.full(_FIRST, NOTHING))
    """The column of the matrix of each slot; -1 for none."""

    @classmethod
    def fit(cls, column: Column, options: Options, with_other: bool) -> WordColumn:
        """Learn bins and scales, for good, and the first values."""
        encoder = choose(column, options)
        if isinstance(encoder, (Number, Bins)):
            encoder.fit(column, options)
        elif isinstance(encoder, Sets):
            encoder.separator, encoder.norm = options.separator, options.set_norm
        itself = cls(encoder, with_other and not isinstance(encoder, (Number, Bins)))
        itself.learn(column, options.min_count)
        return itself

    @property
    def name(self) -> str:
        """Of the column."""
        return self.encoder.name

    @property
    def _n_slots(self) -> int:
        if isinstance(self.encoder, Number):
            return _FIRST + 1
        if isinstance(self.encoder, Bins):
            return _FIRST + len(self.encoder.edges) + 1
        return _FIRST + len(self.words)

    def learn(self, column: Column, min_count: int) -> None:
        """Meet the cells of a batch; values that are frequent enough get slots, in order."""
        missing = self.encoder.missing
        missing.refuse(column, missing.policy == "error")
        self.missing_met |= missing.policy == "category" and bool(column.missing.any())
        if isinstance(self.encoder, (Number, Bins)):
            return
        if isinstance(self.encoder, Sets):
            _, codes, values = self.encoder.members(as_sets(column, self.encoder.separator))
        else:
            codes, values = self.encoder.cells(column).coded
        words = self.words
        new = [value for value in values if value not in words] if words else list(values)
        if min_count > 1:
            counts = np.bincount(codes[codes >= 0], minlength=len(values)).tolist()
            new = self._frequent(dict(zip(values, counts, strict=True)), new, min_count)
        if column.kind != "number" and not isinstance(self.encoder, Log2):
            new.sort()  # numbers are in their order
        self.words.update(zip(new, range(self._n_slots, self._n_slots + len(new)), strict=True))

    def _frequent(self, counts: dict[str, int], new: list[str], min_count: int) -> list[str]:
        for value in new:
            self.waiting[value] += counts[value]
        new = [value for value in new if self.waiting[value] >= min_count]
        for value in new:
            del self.waiting[value]
        return new

    def settle(self, n_columns: int) -> int:
        """Give columns, from ``n_columns`` on, to slots that have none; return how many there are.

        Values come first, then what is unknown, then what is missing.
        """
        n_new = self._n_slots - len(self.places)
        end = n_columns + n_new
        self.places = np.concatenate([self.places, np.arange(n_columns, end)])
        for slot, wanted in ((_OTHER, self.with_other), (_MISSING, self.missing_met)):
            if wanted and self.places[slot] < 0:
                self.places[slot] = end
                end += 1
        return end

    def labels(self) -> list[str]:
        """Of the slots: what comes behind the column's name."""
        if isinstance(self.encoder, Number):
            own = [""]
        elif isinstance(self.encoder, Bins):
            own = [f"={interval}" for interval in self.encoder.intervals()]
        else:
            own = [f"={word}" for word in self.words]
        return [f"={MISSING}", f"={UNKNOWN_LABEL}", *own]

    def encode(self, column: Column, strict: bool) -> Entries:
        """Entries of a column; ``strict`` refuses what has not been met."""
        missing = self.encoder.missing
        unexpected = strict and missing.policy == "category" and not self.missing_met
        missing.refuse(column, missing.policy == "error" or unexpected)
        if isinstance(self.encoder, Sets):
            return self._sets(self.encoder, as_sets(column, self.encoder.separator), strict)
        if isinstance(self.encoder, Number):
            column = as_number(column)
            numbers = self.encoder.scaled(column)
            slots = np.where((numbers != 0) & present(column), _FIRST, NOTHING)
            values = np.where(column.missing, 1.0, numbers)
            return Entries(self._columns(slots, column), values)
        if isinstance(self.encoder, Bins):
            column = as_number(column)
            slots = np.where(present(column), self.encoder.codes(column) + _FIRST, NOTHING)
            return Entries(self._columns(slots, column))
        coded = self.encoder.cells(column).coded
        places = self.places[self._look_up(coded.codes, coded.values, strict)]
        return Entries(self._with_missing(coded.take(places, NOTHING), column))

    def _columns(self, slots: IntArray, column: Column) -> IntArray:
        """Columns of the matrix."""
        found: IntArray = np.append(self.places, NOTHING)[slots]  # -1 finds the end
        return self._with_missing(found, column)

    def _with_missing(self, cols: IntArray, column: Column) -> IntArray:
        """Missing cells have a column where there is one for them."""
        return np.where(column.missing, self._of_missing, cols) if column.missing.any() else cols

    @property
    def _of_missing(self) -> int:
        if self.encoder.missing.policy != "category":
            return NOTHING
        return int(self.places[_MISSING if self.missing_met else _OTHER])

    def _look_up(self, codes: IntArray, values: list[str], strict: bool) -> IntArray:
        """Slots of values, 1 where they have none."""
        found = map(self.words.get, values, [UNKNOWN] * len(values))
        slots = np.fromiter(found, np.int64, len(values))
        for code in np.flatnonzero(slots == UNKNOWN).tolist():
            if strict and values[code] not in self.waiting:
                row = int(np.argmax(codes == code))
                raise ValueError(
                    f"column {self.name!r}, row {row}: category {values[code]!r} was not seen in "
                    "fit; use handle_unknown='ignore' to give such cells no entry"
                )
        slots[slots == UNKNOWN] = _OTHER
        return slots

    def _sets(self, encoder: Sets, column: Column, strict: bool) -> Entries:
        rows, codes, values = encoder.members(column)
        places = self.places[self._look_up(codes, values, strict)][codes]
        known = places >= 0
        rows, cols = distinct(rows[known], places[known], int(self.places.max()) + 1)
        blank = np.flatnonzero(column.missing & (self._of_missing >= 0))
        return Entries(
            np.concatenate([cols, np.full(len(blank), self._of_missing)]),
            np.concatenate([encoder.weights(rows, len(column)), np.ones(len(blank))]),
            np.concatenate([rows, blank]),
        )

    def state(self) -> dict[str, Any]:
        """Everything learnt, as plain JSON values."""
        return {
            "encoder": self.encoder.state(),
            "with_other": self.with_other,
            "words": list(self.words),
            "waiting": dict(self.waiting),
            "missing_met": self.missing_met,
            "places": self.places.tolist(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> WordColumn:
        """Build a column again from what :meth:`state` gave."""
        words = {word: slot for slot, word in enumerate(state["words"], _FIRST)}
        places: NDArray[np.int64] = np.array(state["places"], dtype=np.int64)
        return cls(
            from_state(state["encoder"]),
            state["with_other"],
            words,
            Counter(state["waiting"]),
            state["missing_met"],
            places,
        )
