"""Targets of a dataset: numbers as they are, labels in words as codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.data.texts import is_null

_LARGEST_WHOLE = 2.0**53
_MOST_LABELS = 100_000


class TargetEncoder:
    """Turns the targets of one batch after another into what shards store.

    Attributes
    ----------
    kind : {"number", "integer", "truth", "text"} or None
        What the targets are; None where there are none, or no batch has come yet.
    """

    def __init__(self) -> None:
        self.kind: str | None = None
        self._codes: dict[str, int] = {}
        self._has_begun = False

    @property
    def names(self) -> list[str] | None:
        """The labels in words, by code."""
        return list(self._codes) if self.kind == "text" else None

    def encode(self, y: Any, n_rows: int) -> NDArray[Any] | None:
        """Return float64, codes of int32, or None, of the same kind as for the batches before.

        Raises
        ------
        ValueError
            For targets of another kind than before, missing ones, or more than can be stored.
        """
        if y is None:
            self._begin(None)
            return None
        y = _plain(np.asarray(y))
        if y.shape != (n_rows,):
            raise ValueError(f"y has shape {y.shape}, but the batch has {n_rows} rows.")
        if y.dtype.kind in "OUST":
            return self._texts(y)
        if y.dtype.kind not in "biuf":
            raise ValueError(f"y is of type {y.dtype.name}; it must be numbers or texts.")
        self._begin({"b": "truth", "i": "integer", "u": "integer", "f": "number"}[y.dtype.kind])
        return self._numbers(y)

    def _begin(self, kind: str | None) -> None:
        if self._has_begun and kind != self.kind:
            words = {None: "no targets", "number": "floating-point targets", "text": "texts"}
            words |= {"integer": "whole numbers", "truth": "truth values"}
            raise ValueError(f"the batch has {words[kind]}, but those before {words[self.kind]}.")
        self.kind, self._has_begun = kind, True

    def _numbers(self, y: NDArray[Any]) -> NDArray[np.float64]:
        numbers = y.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(numbers))
        if len(bad):
            raise ValueError(f"y has {numbers[bad[0]]} in row {bad[0]} of the batch.")
        if self.kind == "integer" and np.abs(numbers).max(initial=0.0) > _LARGEST_WHOLE:
            raise ValueError("y has whole numbers above 2**53, which doubles do not tell apart.")
        return numbers

    def _texts(self, y: NDArray[Any]) -> NDArray[np.int32]:
        bad = [i for i, label in enumerate(y) if not isinstance(label, str | bytes)]
        if y.dtype.kind == "O" and bad:
            raise ValueError(_no_text(y, bad))
        self._begin("text")
        found, place = np.unique(y.astype(str), return_inverse=True)
        for label in found.tolist():
            self._codes.setdefault(label, len(self._codes))
        if len(self._codes) > _MOST_LABELS:
            raise ValueError(f"y has more than {_MOST_LABELS:,} different texts: no labels.")
        codes = np.array([self._codes[label] for label in found.tolist()], dtype=np.int32)
        return codes[place]


def _no_text(y: NDArray[Any], bad: list[int]) -> str:
    """Say what is wrong with targets some of which are no texts: above all, gaps."""
    gap = next((i for i in bad if is_null(y[i])), None)
    if gap is not None:
        return f"y is missing ({y[gap]!r}) in row {gap} of the batch."
    return f"y has {y[bad[0]]!r} in row {bad[0]} of the batch, not a text."


def _plain(y: NDArray[Any]) -> NDArray[Any]:
    """Return numbers that are kept as objects, as columns with gaps are, as numbers."""
    if y.dtype.kind != "O" or y.ndim != 1:
        return y
    kinds = {type(label) for label in y.tolist()}
    numbers = all(issubclass(kind, int | float | np.bool_ | np.number) for kind in kinds)
    return np.array(y.tolist()) if kinds and numbers else y


def first_bad(stored: NDArray[Any], kind: str, n_names: int | None) -> int | None:
    """Return the place of the first target that cannot have been written so."""
    if n_names is not None:
        bad = (stored < 0) | (stored >= n_names)
    elif kind == "number":
        bad = ~np.isfinite(stored)
    else:
        most = 1 if kind == "truth" else _LARGEST_WHOLE
        bad = ~((np.abs(stored) <= most) & (stored == np.floor(stored)))
    return int(np.argmax(bad)) if bad.any() else None


def decoded(stored: NDArray[Any], kind: str, names: NDArray[Any] | None) -> NDArray[Any]:
    """Return targets as they were given; numbers are not copied."""
    if names is not None:
        return np.asarray(names[stored])
    if kind == "integer":
        return stored.astype(np.int64)
    return stored.astype(bool) if kind == "truth" else stored
