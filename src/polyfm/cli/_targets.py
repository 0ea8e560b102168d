"""What a look at all targets tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

_MOST_COUNTED = 1_000
_MOST_SHOWN = 5


class Targets:
    """Counts targets batch by batch.

    Attributes
    ----------
    n_rows : int
        Targets so far.
    is_number : bool
        Whether they are numbers, not text or truth values.
    """

    def __init__(self) -> None:
        self.n_rows, self.is_number, self._sum = 0, True, 0.0
        self._counts: Counter[Any] | None = Counter()

    @classmethod
    def of(cls, parts: Iterable[NDArray[Any]]) -> Self:
        """Count all of them."""
        targets = cls()
        for y in parts:
            targets.add(y)
        return targets

    def add(self, y: NDArray[Any]) -> None:
        """Count some more."""
        self.n_rows += len(y)
        self.is_number = self.is_number and y.dtype.kind in "iuf"
        if y.dtype.kind in "iuf":
            self._sum += float(np.sum(y, dtype=np.float64))
        if self._counts is not None:
            values, counts = np.unique(y, return_counts=True)
            self._counts.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
            if len(self._counts) > _MOST_COUNTED:
                self._counts = None

    @property
    def only_one(self) -> str | None:
        """The only target there is, as text; None where there are several."""
        if self._counts is None or len(self._counts) != 1:
            return None
        return _shown(next(iter(self._counts)))

    @property
    def are_labels(self) -> bool:
        """Whether they look like labels: no numbers, or two of them."""
        return not self.is_number or (self._counts is not None and len(self._counts) == 2)

    def words(self, classification: bool) -> str:
        """Say what was met, to be put behind the name of the task."""
        if not classification:
            return f" of {self._sum / max(self.n_rows, 1):.4g} on average" if self.is_number else ""
        if self._counts is None:
            return f" of more than {_MOST_COUNTED} classes"
        if len(self._counts) > _MOST_SHOWN:
            return f" of {len(self._counts)} classes"
        named = (f"{_shown(label)} ({n:,})" for label, n in sorted(self._counts.items()))
        return f" of {', '.join(named)}"


def _shown(label: Any) -> str:
    is_whole = isinstance(label, float) and label.is_integer()
    return str(int(label)) if is_whole else str(label)
