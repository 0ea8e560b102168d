"""A table in, a sparse design matrix out: one field per column.

Notes
-----
The layout is that of Figure 1 in S. Rendle, "Factorization Machines", ICDM 2010: blocks of
one-hot, multi-hot and numeric columns side by side, each block belonging to one field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.utils.validation import check_is_fitted

from polyfm.data._table_encoder import TableEncoder, distinct_names
from polyfm.data.assembly import assemble
from polyfm.data.columns import ColumnEncoder, fit_column, from_state
from polyfm.data.frames import Column, Table

__all__ = ["OneHotFieldEncoder"]


class OneHotFieldEncoder(TableEncoder):
    """Encode a table as a sparse matrix with one field per column.

    A text or categorical column becomes a one-hot block, a column of sets (genres, items rated)
    a multi-hot block, a numeric column a single column or a block of bins.

    Parameters
    ----------
    numeric : {"auto", "passthrough", "bin", "log2", "standardize", "category"} or dict
        What to do with numeric columns, "auto" by default; a dict gives it per column, by name
        or by position, and leaves the others at "auto".

        - "passthrough": the number itself.
        - "bin": a one-hot block of about `n_bins` intervals ``(a, b]`` between quantiles; a
          value that fills a quantile by itself gets a bin of its own.
        - "log2": for counts, a one-hot block of ``floor(x)`` where :math:`|x| \\le 2` and of
          :math:`\\lfloor \\log_2(|x|)^2 \\rfloor` with the sign of x beyond: bins that grow with
          the number, as is the custom for click-through data.
        - "standardize": ``(x - mean) / std``; columns stay dense where they were sparse.
        - "category": every distinct number is a category.
        - "auto": booleans are categories.  Numbers in a frame or in dictionary rows pass through.
          An array has no columns that say what they are: its integers are taken as category
          codes, its floats pass through.
    n_bins : int, default=10
        Number of quantile bins, at least 2.
    sets : dict, default=None
        Columns whose cells are sets written as text, with the separator:
        ``{"genres": "|"}``.  Columns of lists, tuples, sets or arrays need no mention.
    set_norm : {"l1", "l2", None}, default="l1"
        Scale of a set of m elements: 1/m each, 1/sqrt(m) each, or 1 each.
    min_count : int, default=1
        Categories (and set elements) in fewer rows than this get no column.
    missing : {"category", "ignore", "error"}, default="category"
        Missing cells (None, NaN, null) get an output column of their own where `fit` saw any,
        or no entry, or are refused.
    handle_unknown : {"ignore", "error"}, default="ignore"
        At `transform`, categories that `fit` did not see get no entry, or are refused.
    dtype : dtype, default=numpy.float32
        Type of the output, ``float32`` or ``float64``.

    Attributes
    ----------
    fields_ : ndarray of int of shape (n_features_out_,)
        The field (number of the input column) of each output column.
    field_names_ : list of str
        Names of the input columns.
    n_features_in_ : int
        Number of input columns.
    n_features_out_ : int
        Number of output columns.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the input columns; only if they have names.

    Raises
    ------
    ValueError
        For a parameter out of its range, a column that is not there, infinite numbers, and for
        what `missing` or `handle_unknown` refuse; the message names column, row and cell.

    Notes
    -----
    Accepted are frames of any library narwhals knows, dictionaries of columns, lists of
    dictionaries (a key that a row lacks gives no entry), 2-D arrays and lists of rows.  In
    frames, columns are found by name at `transform`: their order is free and further columns
    are ignored.  Categories are sorted, so that the result does not depend on the row order.
    Categories of mixed type are told apart by their text.

    References
    ----------
    S. Rendle, "Factorization Machines", ICDM 2010, Figure 1.

    Examples
    --------
    >>> from polyfm.data import OneHotFieldEncoder
    >>> encoder = OneHotFieldEncoder()
    >>> X = encoder.fit_transform([{"device": "d1", "ad": "a1"}, {"ad": "a2", "n": 5}])
    >>> encoder.get_feature_names_out().tolist()
    ['ad=a1', 'ad=a2', 'device=d1', 'n']
    >>> X.toarray().tolist()
    [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 5.0]]
    """

    _choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        **TableEncoder._choices,
        "handle_unknown": ("ignore", "error"),
    }
    _least: ClassVar[dict[str, int]] = {"n_bins": 2, "min_count": 1}

    def __init__(
        self,
        *,
        numeric: str | Mapping[Any, str] = "auto",
        n_bins: int = 10,
        sets: Mapping[Any, str | None] | None = None,
        set_norm: str | None = "l1",
        min_count: int = 1,
        missing: str = "category",
        handle_unknown: str = "ignore",
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.numeric = numeric
        self.n_bins = n_bins
        self.sets = sets
        self.set_norm = set_norm
        self.min_count = min_count
        self.missing = missing
        self.handle_unknown = handle_unknown
        self.dtype = dtype

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the output columns: ``column``, ``column=category``, ``column=(a, b]``.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Accepted for pipelines; must equal the names seen in `fit` if these had names.

        Returns
        -------
        ndarray of object of shape (n_features_out_,)
            The names.

        Raises
        ------
        ValueError
            If `input_features` does not fit the columns seen in `fit`.
        """
        check_is_fitted(self)
        names = self._renamed(input_features)
        labels: list[str] = []
        for name, encoder in zip(names, self._encoders, strict=True):
            labels += [name + label[len(encoder.name) :] for label in encoder.labels()]
        return distinct_names(np.array(labels, dtype=object))

    def _learn(self, table: Table) -> None:
        self._check_parameters()
        options = self._options(table)
        encoders = [fit_column(c, o) for c, o in zip(table.columns, options, strict=True)]
        self._set_columns(encoders, table.origin != "array")

    def _state(self) -> dict[str, Any]:
        return {"columns": [encoder.state() for encoder in self._encoders]}

    def _set_state(self, state: dict[str, Any]) -> None:
        self._set_columns([from_state(column) for column in state["columns"]], state["named"])

    def _set_columns(self, encoders: list[ColumnEncoder], named: bool) -> None:
        self._encoders = encoders
        self._set_names([encoder.name for encoder in encoders], named)
        sizes = [encoder.n_out for encoder in encoders]
        self._offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.fields_ = np.repeat(np.arange(len(encoders)), sizes)
        self.n_features_out_ = int(self._offsets[-1])

    def _encode(self, columns: list[Column], n_rows: int) -> sp.csr_matrix:
        strict = self.handle_unknown == "error"
        entries = []
        parts = zip(self._encoders, columns, self._offsets[:-1], strict=True)
        for encoder, column, offset in parts:
            inside = encoder.encode(column, strict)
            cols = np.where(inside.cols >= 0, inside.cols + offset, -1)
            entries.append(inside._replace(cols=cols))
        return assemble(entries, (n_rows, self.n_features_out_), np.dtype(self.dtype))
