"""Tables encoded by vocabularies that can grow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.utils.validation import check_is_fitted

from polyfm.data._table_encoder import GrowingEncoder, distinct_names
from polyfm.data._word_columns import WordColumn
from polyfm.data.assembly import assemble
from polyfm.data.frames import Column, Table

__all__ = ["VocabularyEncoder"]


class VocabularyEncoder(GrowingEncoder):
    r"""Encode a table with one output column for each value met, batch after batch.

    The first batch is laid out as :class:`OneHotFieldEncoder` does it. New values of later batches
    get columns behind those that there are, so that a column once given never changes.

    Parameters
    ----------
    growing : bool, default=True
        Whether `partial_fit` may go on after the first batch. A frozen encoder refuses;
        ``set_params(growing=False)`` freezes one.
    min_count : int, default=1
        Values (and set elements) get a column when they have been in so many rows, counted over
        all batches. Those that are still too rare are remembered with their counts.
    numeric : {"auto", "passthrough", "bin", "log2", "standardize", "category"} or dict
        What to do with numeric columns, as for :class:`OneHotFieldEncoder`. Bins, means and
        scales are those of the first batch.
    n_bins : int, default=10
        Number of quantile bins, at least 2.
    sets : dict, default=None
        Columns whose cells are sets written as text, with the separator:
        ``{"genres": "|"}``.  Columns of lists, tuples, sets or arrays need no mention.
    set_norm : {"l1", "l2", None}, default="l1"
        Scale of a set of m elements: 1/m each, 1/sqrt(m) each, or 1 each.
    missing : {"category", "ignore", "error"}, default="category"
        Missing cells (None, NaN, null) get an output column of their own once there are any, or
        no entry, or are refused.
    handle_unknown : {"ignore", "category", "error"}, default="ignore"
        At `transform`, values without a column get no entry; or the column ``name=<unknown>``,
        which each field of categories then has from the start and in which values rarer than
        `min_count` meet; or values never met are refused.
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
        Number of output columns so far.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the input columns; only if they have names.

    Raises
    ------
    ValueError
        For a parameter out of its range, a column that is not there, infinite numbers, and for
        what `missing`, `handle_unknown` or `growing` refuse.

    Notes
    -----
    Accepted are the tables that :class:`OneHotFieldEncoder` takes. Values are known by their text:
    the number 7 and the text ``7`` are one. Those that a batch adds are sorted, so that the order
    of its rows plays no part. With pyarrow, text in frames becomes numbers of distinct values by
    its dictionaries, and Python sees each value of a batch once; the result is the same without.

    Examples
    --------
    >>> from polyfm.data import VocabularyEncoder
    >>> encoder = VocabularyEncoder()
    >>> encoder.partial_fit({"user": ["b", "a"], "film": ["x", "y"]}).n_features_out_
    4
    >>> encoder.partial_fit({"user": ["c", "a"], "film": ["y", "z"]}).n_features_out_
    6
    >>> encoder.get_feature_names_out().tolist()
    ['user=a', 'user=b', 'film=x', 'film=y', 'user=c', 'film=z']
    """

    _choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        **GrowingEncoder._choices,
        "handle_unknown": ("ignore", "category", "error"),
    }
    _least: ClassVar[dict[str, int]] = {"n_bins": 2, "min_count": 1}

    def __init__(
        self,
        *,
        growing: bool = True,
        min_count: int = 1,
        numeric: str | Mapping[Any, str] = "auto",
        n_bins: int = 10,
        sets: Mapping[Any, str | None] | None = None,
        set_norm: str | None = "l1",
        missing: str = "category",
        handle_unknown: str = "ignore",
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.growing = growing
        self.min_count = min_count
        self.numeric = numeric
        self.n_bins = n_bins
        self.sets = sets
        self.set_norm = set_norm
        self.missing = missing
        self.handle_unknown = handle_unknown
        self.dtype = dtype

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the output columns: ``column``, ``column=value``, ``column=(a, b]``.

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
        labels = np.empty(self.n_features_out_, dtype=object)
        for name, column in zip(self._renamed(input_features), self._columns, strict=True):
            own = np.array([name + label for label in column.labels()], dtype=object)
            given = column.places >= 0
            labels[column.places[given]] = own[given]
        return distinct_names(labels)

    def _learn(self, table: Table) -> None:
        self._check_parameters()
        self._set_columns(self._fitted(table), table.origin != "array", 0)

    def _fitted(self, table: Table) -> list[WordColumn]:
        options = self._options(table) if table.columns else []
        with_other = self.handle_unknown == "category"
        return [
            WordColumn.fit(column, option, with_other)
            for column, option in zip(table.columns, options, strict=True)
        ]

    def _learn_more(self, columns: list[Column], new: Table) -> None:
        if not self.growing:
            raise ValueError(
                "this VocabularyEncoder is frozen (growing=False): fit learns a new vocabulary, "
                "set_params(growing=True) lets this one grow"
            )
        more = self._fitted(new)
        for known, column in zip(self._columns, columns, strict=True):
            known.learn(column, self.min_count)
        named = hasattr(self, "feature_names_in_")
        self._set_columns([*self._columns, *more], named, self.n_features_out_)

    def _set_columns(self, columns: list[WordColumn], named: bool, n_columns: int) -> None:
        """Take up columns; what in them has no place yet gets one from ``n_columns`` on."""
        for column in columns:
            n_columns = column.settle(n_columns)
        self._columns = columns
        self._set_names([column.name for column in columns], named)
        self.n_features_out_ = n_columns
        self.fields_ = np.zeros(n_columns, dtype=np.int64)
        for field, column in enumerate(columns):
            self.fields_[column.places[column.places >= 0]] = field

    def _encode(self, columns: list[Column], n_rows: int) -> sp.csr_matrix:
        strict = self.handle_unknown == "error"
        entries = [k.encode(c, strict) for k, c in zip(self._columns, columns, strict=True)]
        return assemble(entries, (n_rows, self.n_features_out_), np.dtype(self.dtype))

    def _state(self) -> dict[str, Any]:
        columns = [column.state() for column in self._columns]
        return {"columns": columns, "n_features_out": self.n_features_out_}

    def _set_state(self, state: dict[str, Any]) -> None:
        columns = [WordColumn.from_state(column) for column in state["columns"]]
        self._set_columns(columns, state["named"], state["n_features_out"])
