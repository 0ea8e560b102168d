"""Columns of text, without a Python object for each cell where that can be had."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm.data import _arrow
from polyfm.data._murmur import murmur3_32

__all__ = ["ArrowTexts", "Coded", "CodedTexts", "PlainTexts", "Texts", "text_of"]

NULL_TYPES = frozenset({"NoneType", "NAType", "NaTType"})
_EXACT_FLOAT = 2.0**53


class Coded(NamedTuple):
    """A column as numbers of distinct values."""

    codes: NDArray[np.int64]
    """Of each cell the place of its value, -1 where it is missing."""
    values: list[str]
    """Each occurs, and none twice."""

    def take(self, of_values: NDArray[Any], of_missing: Any) -> NDArray[Any]:
        """Return for each cell what was found for its value."""
        return np.append(of_values, np.array([of_missing], of_values.dtype))[self.codes]


class Texts(ABC):
    """The cells of a column of text."""

    @property
    @abstractmethod
    def missing(self) -> NDArray[np.bool_]:
        """Which cells hold nothing."""

    @abstractmethod
    def _encode(self) -> Coded: ...

    @abstractmethod
    def hashes(self, seed: int) -> NDArray[np.uint32]:
        """MurmurHash3 of the cells' bytes in UTF-8; any number where they are missing."""

    @cached_property
    def coded(self) -> Coded:
        """Distinct values, and which of them each cell is; worked out once."""
        return self._encode()

    def __len__(self) -> int:
        return len(self.missing)

    def __getitem__(self, row: int) -> str | None:
        codes, values = self.coded
        return None if codes[row] < 0 else values[codes[row]]

    def without_missing(self) -> CodedTexts:
        """Return the cells that hold something."""
        codes, values = self.coded
        return CodedTexts(codes[codes >= 0], values)


class PlainTexts(Texts):
    """A list of str, None where a cell is missing."""

    def __init__(self, cells: Sequence[str | None]) -> None:
        self._cells = cells

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells hold nothing."""
        return np.fromiter((cell is None for cell in self._cells), bool, len(self._cells))

    def _encode(self) -> Coded:
        places: dict[str | None, int] = dict.fromkeys(self._cells, 0)
        places.pop(None, None)
        places = {value: code for code, value in enumerate(places)}
        # map() keeps the loop over the cells in C.
        found = map(places.get, self._cells, repeat(-1))
        return Coded(np.fromiter(found, np.int64, len(self._cells)), list(places))  # type: ignore[arg-type]

    def hashes(self, seed: int) -> NDArray[np.uint32]:
        """MurmurHash3 of the cells' bytes in UTF-8."""
        return murmur3_32(*_joined([cell or "" for cell in self._cells]), seed)


class ArrowTexts(Texts):
    """Text of a ``pyarrow.StringArray`` or ``LargeStringArray``."""

    def __init__(self, array: Any) -> None:
        self._array = array

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells hold nothing."""
        return _arrow.missing_of(self._array)

    def __len__(self) -> int:
        return len(self._array)

    def _encode(self) -> Coded:
        return Coded(*_arrow.codes_of(self._array))

    def hashes(self, seed: int) -> NDArray[np.uint32]:
        """MurmurHash3 of the cells' bytes, read where they lie."""
        return murmur3_32(*_arrow.buffers_of(self._array), seed)


class CodedTexts(Texts):
    """Numbers of values, from a column of categories or of numbers.

    Parameters
    ----------
    codes : ndarray of int
        The value of each cell, -1 where it is missing.
    values : sequence
        Values of any kind, which may occur twice or not at all.
    """

    def __init__(self, codes: NDArray[Any], values: Sequence[Any] | NDArray[Any]) -> None:
        self._codes, self._values = codes, values

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells hold nothing."""
        return self.coded.codes < 0

    def __len__(self) -> int:
        return len(self._codes)

    def _encode(self) -> Coded:
        used = np.bincount(self._codes + 1, minlength=len(self._values) + 1)[1:] > 0
        places: dict[str, int] = {}
        new = np.full(len(self._values) + 1, -1)
        for old in np.flatnonzero(used).tolist():
            text = text_of(self._values[old])
            if text is not None:
                new[old] = places.setdefault(text, len(places))
        return Coded(new[self._codes], list(places))

    def hashes(self, seed: int) -> NDArray[np.uint32]:
        """MurmurHash3 of the values' bytes in UTF-8, by cell."""
        return self.coded.take(murmur3_32(*_joined(self.coded.values), seed), 0)


def _joined(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return UTF-8 bytes of texts one after the other, and where each starts and ends."""
    whole = "".join(texts)
    if whole.isascii():
        content, lengths = whole.encode(), list(map(len, texts))
    else:
        pieces = [text.encode("utf-8", "surrogatepass") for text in texts]
        content, lengths = b"".join(pieces), list(map(len, pieces))
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return np.frombuffer(content, dtype=np.uint8), offsets


def arrow_texts(values: Any) -> Texts | None:
    """Return cells as text that lies in Arrow's memory; None if they are no text, or no pyarrow."""
    array = _arrow.text_array(values)
    if array is None:
        return None
    if hasattr(array, "dictionary"):
        return CodedTexts(*_arrow.codes_of(array))
    return ArrowTexts(array)


def is_null(value: Any) -> bool:
    """Whether a cell is None, or the like of it in pandas."""
    return type(value).__name__ in NULL_TYPES


def text_of(value: Any) -> str | None:
    """Text by which a category is known; None for a missing value.

    Whole floats read like integers, so that an integer column that became float (because of a
    missing cell, or on its way through a file) keeps its categories.
    """
    if is_null(value):
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (float, np.floating)):
        if np.isnan(value):
            return None
        whole = float(value).is_integer() and abs(float(value)) < _EXACT_FLOAT
        return str(int(value)) if whole else str(value)
    return str(value)
