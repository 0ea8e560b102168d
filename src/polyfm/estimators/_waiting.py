"""The first rows of a stream, kept until there are enough of them to choose features by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyfm.data.rows import row_numbers
from polyfm.estimators._validation import Labelled


@dataclass(frozen=True)
class WaitingRows:
    """Rows in the order of their arrival, as pieces of geometrically growing sizes.

    So a row is copied a few times only, even where rows come one by one.
    """

    pieces: tuple[dict[str, NDArray[Any]], ...] = ()
    """CSR arrays, targets and weights of some rows each."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(len(piece["weights"]) for piece in self.pieces)

    def with_rows(self, rows: Labelled) -> Self:
        """Return these rows and some more."""
        matrix = rows.matrix[rows.numbers]
        pieces = [*self.pieces, {
            "lengths": np.diff(matrix.indptr).astype(np.int64),
            "indices": matrix.indices.astype(np.int64),
            "values": matrix.data,
            "targets": rows.targets,
            "weights": rows.weight,
        }]  # fmt: skip
        while len(pieces) > 1 and len(pieces[-2]["weights"]) <= 2 * len(pieces[-1]["weights"]):
            last, one = pieces.pop(), pieces.pop()
            pieces.append({name: np.concatenate([one[name], last[name]]) for name in one})
        return replace(self, pieces=tuple(pieces))

    def labelled(self, n_features: int) -> Labelled:
        """Return all rows as one matrix."""
        whole = {
            name: np.concatenate([piece[name] for piece in self.pieces])
            for name in self.pieces[0]
        }  # fmt: skip
        indptr = np.concatenate([[0], np.cumsum(whole["lengths"])])
        matrix = sp.csr_matrix(
            (whole["values"], whole["indices"], indptr), shape=(len(whole["lengths"]), n_features)
        )
        return Labelled(matrix, whole["targets"], whole["weights"], row_numbers(matrix.shape[0]))
