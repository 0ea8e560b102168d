"""Batches: some rows of a file or a stream, with their targets and weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Batch"]


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
