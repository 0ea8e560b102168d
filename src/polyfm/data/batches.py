"""Batches: some rows of a file or a stream, with their targets and weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Batch", "as_batch", "checked_batches"]

_BATCH_KINDS = "a Batch, or a tuple (X, y) or (X, y, weight)"


class Batch(NamedTuple):
    """Some rows of a file or a stream."""

    X: Any
    """A matrix, a frame, or a list of dictionaries."""
    y: NDArray[Any] | None
    """The targets, an entry for each row; None where there are none."""
    weight: NDArray[np.float64] | None = None
    """Of each row; None where all are 1."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)

    @property
    def targets(self) -> NDArray[Any]:
        """The targets, for callers that cannot do without.

        Raises
        ------
        ValueError
            Where there are none.
        """
        if self.y is None:
            raise ValueError("The rows have no targets; learning and judging need them.")
        return self.y

    def without(self, n: int) -> Batch:
        """Return the batch without its first n rows."""
        rows = self.X.iloc if hasattr(self.X, "iloc") else self.X
        y, weight = self.y, self.weight
        return Batch(rows[n:], None if y is None else y[n:], None if weight is None else weight[n:])


def checked_batches(batches: Any) -> Iterable[Any]:
    """Return batches, or raise a TypeError that says what they would have to be."""
    one = isinstance(batches, tuple) and bool(batches) and hasattr(batches[0], "shape")
    several = isinstance(batches, Iterable) and not isinstance(batches, str | bytes | Mapping)
    if one or hasattr(batches, "shape") or not several:
        kind = "a single batch" if one else f"a {type(batches).__name__}"
        raise TypeError(
            f"batches must be a list, or another iterable, of {_BATCH_KINDS}; got {kind}: "
            "write [(X, y)] for a matrix and its targets."
        )
    found: Iterable[Any] = batches
    return found


def as_batch(batch: Any, number: int) -> Batch:
    """Return a batch, or raise a TypeError that says what it would have to be."""
    if isinstance(batch, tuple) and 2 <= len(batch) <= 3:
        return Batch(*batch)
    found = f"a tuple of {len(batch)}" if isinstance(batch, tuple) else f"a {type(batch).__name__}"
    advice = " Write (X, None) for rows without targets." if hasattr(batch, "shape") else ""
    raise TypeError(f"Batch {number} of the dataset is {found}, not {_BATCH_KINDS}.{advice}")
