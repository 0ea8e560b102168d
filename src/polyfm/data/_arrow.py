"""pyarrow, where it is installed; the rest of the library does without."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["buffers_of", "codes_of", "missing_of", "pyarrow_or_none", "text_array"]


def pyarrow_or_none() -> ModuleType | None:
    """Return pyarrow, imported now, or None where there is none."""
    try:
        import pyarrow
    except ImportError:
        return None
    module: ModuleType = pyarrow
    return module


def text_array(values: Any) -> Any:
    """Return cells as one Arrow array of text, or of a dictionary; None if they are no such thing.

    Parameters
    ----------
    values : ndarray, pyarrow array, or a column of pandas
        Anything that ``pyarrow.array`` takes; Arrow's own strings are not copied if they are in
        one piece.

    Returns
    -------
    pyarrow.StringArray, LargeStringArray, DictionaryArray or None
        None for cells that are not all text or missing, that are all missing, and where there is
        no pyarrow.
    """
    pa = pyarrow_or_none()
    if pa is None:
        return None
    try:
        array = _in_one_piece(pa, values)
    except (pa.ArrowException, TypeError, UnicodeError):
        return None
    return None if array is None or array.null_count == len(array) else array


def _in_one_piece(pa: ModuleType, values: Any) -> Any:
    if isinstance(values, np.ndarray):
        values = pa.array(values, type=pa.large_string(), from_pandas=True)
    elif not isinstance(values, (pa.Array, pa.ChunkedArray)):
        values = pa.array(values, from_pandas=True)
    if pa.types.is_dictionary(values.type):
        return _whole(values.unify_dictionaries() if hasattr(values, "chunks") else values)
    if not _is_text(pa, values.type):
        return None
    several = hasattr(values, "chunks") and values.num_chunks > 1
    plain = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    # Two pieces below 2 GiB may be one above.
    return _whole(values.cast(pa.large_string()) if several or not plain else values)


def _is_text(pa: ModuleType, kind: Any) -> bool:
    view = getattr(pa.types, "is_string_view", None)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or (view and view(kind)))


def _whole(array: Any) -> Any:
    if not hasattr(array, "chunks"):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


def missing_of(array: Any) -> NDArray[np.bool_]:
    """Return which cells of an Arrow array are null."""
    if array.null_count == 0:
        return np.zeros(len(array), dtype=bool)
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False), dtype=bool)


def buffers_of(array: Any) -> tuple[NDArray[np.uint8], NDArray[np.integer]]:
    """Return the bytes and the offsets of an Arrow array of text, as they lie in memory."""
    _, offsets, data = array.buffers()
    wide = str(array.type) == "large_string"
    places: NDArray[Any] = np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)
    content = np.frombuffer(data, dtype=np.uint8) if data else np.zeros(0, dtype=np.uint8)
    return content, places[array.offset : array.offset + len(array) + 1]


def codes_of(array: Any) -> tuple[NDArray[np.int64], list[Any]]:
    """Return the number of each cell's value, -1 where it is null, and the values."""
    coded = array if hasattr(array, "dictionary") else array.dictionary_encode()
    gone = missing_of(coded)
    indices = coded.indices.fill_null(0) if coded.indices.null_count else coded.indices
    codes = indices.to_numpy().astype(np.int64)
    codes[gone] = -1
    return codes, coded.dictionary.to_pylist()
