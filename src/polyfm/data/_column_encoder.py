"""What the encoders of one column share: options, missing cells, the interface."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm.data.assembly import Entries
from polyfm.data.frames import Column
from polyfm.data.texts import Texts

__all__ = ["MISSING", "NOTHING", "UNKNOWN", "ColumnEncoder", "IntArray", "Missing", "Options"]

MISSING = "<missing>"
IntArray = NDArray[np.int64]
NOTHING, UNKNOWN = -1, -2


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
        codes = np.where(column.missing, at if self.seen else NOTHING, codes)
        return codes if column.absent is None else np.where(column.absent, NOTHING, codes)

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

    def cells(self, column: Column) -> Texts:
        """The category or the bin of each cell as text."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Everything learnt, as plain JSON values."""
        return {"kind": type(self).__name__, **asdict(self)}
