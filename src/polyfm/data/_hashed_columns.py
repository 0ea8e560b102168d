"""Columns of a table whose cells are hashed."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm.data import _murmur
from polyfm.data._column_encoder import MISSING, Options
from polyfm.data._number_columns import Bins, Number, present
from polyfm.data.assembly import Entries
from polyfm.data.columns import ColumnEncoder, Sets, choose, from_state
from polyfm.data.frames import Column, as_number, as_sets
from polyfm.data.texts import PlainTexts

__all__ = ["HashedColumn", "Space"]

_PARTS = 1 << _murmur.COUNT_BITS
_TOP = 1 << (32 - _murmur.COUNT_BITS)
_NOBODY = np.zeros(0, dtype=bool)
_UNCOUNTED = np.zeros(0, dtype=np.uint32)


class Space(NamedTuple):
    """Where hashes point to."""

    n_bits: int
    signed: bool
    start: int = 0
    """First column of the block."""


@dataclass
class HashedColumn:
    """One column: how its cells become text or a number, and what has been counted.

    ``encoder`` is one of a table's column that holds no categories: it only knows bins, scales and
    how sets are written.
    """

    encoder: ColumnEncoder
    least: NDArray[np.uint32]
    """In each part of the space of hashes the least one met."""

    @classmethod
    def fit(cls, column: Column, options: Options) -> HashedColumn:
        """Learn bins and scales; categories are not looked at."""
        encoder = choose(column, options)
        if isinstance(encoder, (Number, Bins)):
            encoder.fit(column, options)
        elif isinstance(encoder, Sets):
            encoder.separator, encoder.norm = options.separator, options.set_norm
        encoder.missing.seen = options.missing == "category"
        return cls(encoder, np.full(_PARTS, _TOP, dtype=np.uint32))

    @property
    def name(self) -> str:
        """Of the column."""
        return self.encoder.name

    @property
    def salt(self) -> int:
        """The seed of the column's hashes: the hash of its name."""
        return _murmur.hash_text(self.name)

    def encode(self, column: Column, space: Space, count: bool) -> Entries:
        """Entries of a column; ``count`` also counts its values."""
        self.encoder.missing.refuse(column, self.encoder.missing.policy == "error")
        if isinstance(self.encoder, Number):
            return self._numbers(self.encoder, as_number(column), space, count)
        if isinstance(self.encoder, Sets):
            return self._sets(self.encoder, as_sets(column, self.encoder.separator), space, count)
        texts = self.encoder.cells(column)
        gone = texts.missing if texts.missing.any() else _NOBODY
        cols, signs = self._place(texts.hashes(self.salt), gone, space, count)
        if gone.size:
            cols = self._with_missing(column, cols, space, count)
            if signs is not None:
                signs[column.missing] = self._sign_of_missing(space)
        return Entries(cols, signs)

    def _place(
        self, hashes: NDArray[np.uint32], gone: NDArray[np.bool_], space: Space, count: bool
    ) -> tuple[NDArray[np.int32], NDArray[np.float64] | None]:
        cols = np.empty(len(hashes), dtype=np.int32)
        least = self.least if count else _UNCOUNTED
        _murmur.fold(hashes, gone, space.n_bits, cols, least)
        if space.start:
            cols[cols >= 0] += space.start
        return cols, np.where(hashes >> 31, -1.0, 1.0) if space.signed else None

    def _with_missing(
        self, column: Column, cols: NDArray[np.int32], space: Space, count: bool
    ) -> NDArray[np.int32]:
        if not (self.encoder.missing.seen and column.missing.any()):
            return cols
        hashed = np.array([_murmur.hash_text(MISSING, self.salt)], dtype=np.uint32)
        place, _ = self._place(hashed, _NOBODY, space, count)
        return np.where(column.missing, place[0], cols)

    def _numbers(self, encoder: Number, column: Column, space: Space, count: bool) -> Entries:
        numbers = encoder.scaled(column)
        # The field's name alone is the name of the number.
        own, sign = self._place(np.array([self.salt], dtype=np.uint32), _NOBODY, space, count)
        some = (numbers != 0) & present(column)
        cols = np.where(some, own[0], np.int32(-1))
        cols = self._with_missing(column, cols, space, count)
        signed = numbers if sign is None else numbers * sign[0]
        return Entries(cols, np.where(column.missing, self._sign_of_missing(space), signed))

    def _sign_of_missing(self, space: Space) -> float:
        return -1.0 if space.signed and _murmur.hash_text(MISSING, self.salt) >> 31 else 1.0

    def _sets(self, encoder: Sets, column: Column, space: Space, count: bool) -> Entries:
        rows, codes, values = encoder.members(column)
        hashes = PlainTexts(values).hashes(self.salt)[codes]
        cols, signs = self._place(hashes, _NOBODY, space, count)
        weights = encoder.weights(rows, len(column))
        blank = np.flatnonzero(column.missing) if self.encoder.missing.seen else rows[:0]
        gone = np.full(len(column), -1, dtype=np.int32)
        gone = self._with_missing(column, gone, space, count)[blank]
        return Entries(
            np.concatenate([cols, gone]),
            np.concatenate(
                [
                    weights if signs is None else weights * signs,
                    np.full(len(blank), self._sign_of_missing(space)),
                ]
            ),
            np.concatenate([rows, blank]),
        )

    def n_distinct(self) -> float:
        """Estimate how many distinct values have been counted."""
        empty = int(np.count_nonzero(self.least == _TOP))
        if empty > _PARTS // 20:
            return _PARTS * float(np.log(_PARTS / empty))
        met = _PARTS * (_PARTS - 1) / float(np.sum((self.least + 1.0) / _TOP))
        # Beyond some hundred million, values begin to share all 32 bits.
        return -(2.0**32) * float(np.log1p(-min(met, 2.0**32 - 1) / 2.0**32))

    def state(self) -> dict[str, Any]:
        """Everything learnt, as plain JSON values."""
        counted = base64.b64encode(self.least.astype("<u4").tobytes()).decode()
        return {**self.encoder.state(), "counted": counted}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> HashedColumn:
        """Build a column again from what :meth:`state` gave."""
        inner = {key: value for key, value in state.items() if key != "counted"}
        least = np.frombuffer(base64.b64decode(state["counted"]), dtype="<u4")
        if len(least) != _PARTS:  # compiled code relies on it
            raise ValueError(f"a count of values has {len(least)} parts instead of {_PARTS}")
        return cls(from_state(inner), least.astype(np.uint32))
