"""A table in, a sparse design matrix out: one field per column.

Notes
-----
The layout is that of Figure 1 in S. Rendle, "Factorization Machines", ICDM 2010: blocks of
one-hot, multi-hot and numeric columns side by side, each block belonging to one field.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from polyfm.data.assembly import assemble
from polyfm.data.columns import ColumnEncoder, Options, fit_column, from_state
from polyfm.data.frames import Column, Table, read_table
from polyfm.data.texts import PlainTexts

__all__ = ["OneHotFieldEncoder"]

_CHOICES: dict[str, tuple[Any, ...]] = {
    "handle_unknown": ("ignore", "error"),
    "missing": ("category", "ignore", "error"),
    "set_norm": ("l1", "l2", None),
}
_NUMERIC = ("auto", "passthrough", "bin", "standardize", "category")


class OneHotFieldEncoder(TransformerMixin, BaseEstimator):
    """Encode a table as a sparse matrix with one field per column.

    A text or categorical column becomes a one-hot block, a column of sets (genres, items rated)
    a multi-hot block, a numeric column a single column or a block of bins.

    Parameters
    ----------
    numeric : {"auto", "passthrough", "bin", "standardize", "category"} or dict, default="auto"
        What to do with numeric columns; a dict gives it per column, by name or by position,
        and leaves the others at "auto".

        - "passthrough": the number itself.
        - "bin": a one-hot block of about `n_bins` intervals ``(a, b]`` between quantiles; a
          value that fills a quantile by itself gets a bin of its own.
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

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn the categories, bins and scales of every column.

        Parameters
        ----------
        X : frame, dict of columns, list of dict, 2-D array or list of rows
            The table, shape (n_samples, n_features).
        y : ignored
            Present for pipelines.

        Returns
        -------
        OneHotFieldEncoder
            Itself.
        """
        return self._fit(read_table(X))

    def fit_transform(self, X: Any, y: ArrayLike | None = None, **params: Any) -> sp.csr_matrix:
        """Fit and encode in one pass over the table.

        Parameters
        ----------
        X : frame, dict of columns, list of dict, 2-D array or list of rows
            The table, shape (n_samples, n_features).
        y : ignored
            Present for pipelines.
        **params : dict
            None are known.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_samples, n_features_out_)
            The encoded table.
        """
        if params:
            raise TypeError(f"unknown fit parameters: {sorted(params)}")
        table = read_table(X)
        return self._fit(table)._encode(table.columns, table.n_rows)

    def transform(self, X: Any) -> sp.csr_matrix:
        """Encode a table.

        Parameters
        ----------
        X : frame, dict of columns, list of dict, 2-D array or list of rows
            The table, shape (n_samples, n_features).

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_samples, n_features_out_)
            The encoded table, indices sorted, zeros not stored.
        """
        check_is_fitted(self)
        table = read_table(X)
        return self._encode(self._align(table), table.n_rows)

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
        names = self.field_names_ if input_features is None else self._renamed(input_features)
        labels: list[str] = []
        for name, encoder in zip(names, self._encoders, strict=True):
            labels += [name + label[len(encoder.name) :] for label in encoder.labels()]
        return np.array(labels, dtype=object)

    def to_json(self) -> str:
        """Everything learnt, as JSON text that :meth:`from_json` reads.

        Returns
        -------
        str
            Parameters of `transform` and the state of each column.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        state = {
            "handle_unknown": self.handle_unknown,
            "dtype": np.dtype(self.dtype).name,
            "named": names is not None,
            "columns": [encoder.state() for encoder in self._encoders],
        }
        return json.dumps(state)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Build a fitted encoder from the text of :meth:`to_json`.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        OneHotFieldEncoder
            An encoder that transforms like the one that was written.  Parameters that only
            matter for `fit` have their defaults.
        """
        state = json.loads(text)
        encoder = cls(handle_unknown=state["handle_unknown"], dtype=np.dtype(state["dtype"]))
        encoder._set_columns([from_state(column) for column in state["columns"]], state["named"])
        return encoder

    def _fit(self, table: Table) -> Self:
        self._check_parameters()
        names = [column.name for column in table.columns]
        asked: dict[str, str] = {}
        default = "auto"
        if isinstance(self.numeric, Mapping):
            asked = _by_name("numeric", self.numeric, names)
        else:
            default = self.numeric
        sets = _by_name("sets", self.sets or {}, names)
        encoders = []
        for column in table.columns:
            mode = asked.get(column.name) or _mode(column, default, table.origin)
            encoders.append(fit_column(column, self._options(column, mode, sets)))
        self._set_columns(encoders, table.origin != "array")
        return self

    def _options(self, column: Column, mode: str, sets: Mapping[str, str | None]) -> Options:
        return Options(
            numeric=mode,
            n_bins=self.n_bins,
            min_count=self.min_count,
            missing=self.missing,
            is_set=column.name in sets,
            separator=sets.get(column.name),
            set_norm=self.set_norm,
        )

    def _check_parameters(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {choices}, got {getattr(self, name)!r}")
        for name, least in (("n_bins", 2), ("min_count", 1)):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
        asked = self.numeric.values() if isinstance(self.numeric, Mapping) else [self.numeric]
        for mode in asked:
            if mode not in _NUMERIC:
                raise ValueError(f"numeric must be one of {_NUMERIC}, got {mode!r}")
        if np.dtype(self.dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ValueError(f"dtype must be float32 or float64, got {np.dtype(self.dtype).name}")

    def _set_columns(self, encoders: list[ColumnEncoder], named: bool) -> None:
        self._encoders = encoders
        self.field_names_ = [encoder.name for encoder in encoders]
        sizes = [encoder.n_out for encoder in encoders]
        self._offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.fields_ = np.repeat(np.arange(len(encoders)), sizes)
        self.n_features_in_ = len(encoders)
        self.n_features_out_ = int(self._offsets[-1])
        self.__dict__.pop("feature_names_in_", None)
        if named:
            self.feature_names_in_ = np.array(self.field_names_, dtype=object)

    def _align(self, table: Table) -> list[Column]:
        """Columns of a new table in the order of ``fit``."""
        named = hasattr(self, "feature_names_in_")
        if not named or table.origin == "array":
            return self._by_position(table, named)
        found = {column.name: column for column in table.columns}
        gone = [name for name in self.field_names_ if name not in found]
        if table.origin == "rows":
            self._refuse_new_keys(found)
            found.update({name: _absent(name, table.n_rows) for name in gone})
        elif gone:
            raise ValueError(f"columns missing from X: {gone}; it has {list(found)}")
        return [found[name] for name in self.field_names_]

    def _by_position(self, table: Table, named: bool) -> list[Column]:
        if len(table.columns) != self.n_features_in_:
            raise ValueError(
                f"X has {len(table.columns)} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        if named != (table.origin != "array"):
            has, had = ("no", "with") if named else ("", "without")
            warnings.warn(
                f"X has {has} feature names, but {type(self).__name__} was fitted {had} feature "
                "names; columns are taken by position".replace("  ", " "),
                UserWarning,
                stacklevel=3,
            )
        return table.columns

    def _refuse_new_keys(self, found: Mapping[str, Column]) -> None:
        new = sorted(set(found) - set(self.field_names_))
        if new and self.handle_unknown == "error":
            raise ValueError(f"keys not seen in fit: {new}; fit saw {self.field_names_}")

    def _encode(self, columns: list[Column], n_rows: int) -> sp.csr_matrix:
        strict = self.handle_unknown == "error"
        entries = []
        parts = zip(self._encoders, columns, self._offsets[:-1], strict=True)
        for encoder, column, offset in parts:
            inside = encoder.encode(column, strict)
            cols = np.where(inside.cols >= 0, inside.cols + offset, -1)
            entries.append(inside._replace(cols=cols))
        return assemble(entries, (n_rows, self.n_features_out_), np.dtype(self.dtype))

    def _renamed(self, input_features: ArrayLike) -> list[str]:
        names = [str(name) for name in np.asarray(input_features, dtype=object)]
        if len(names) != self.n_features_in_:
            raise ValueError(
                f"input_features should have length equal to number of features "
                f"({self.n_features_in_}), got {len(names)}"
            )
        if hasattr(self, "feature_names_in_") and names != self.field_names_:
            raise ValueError("input_features is not equal to feature_names_in_")
        return names

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what goes in."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _by_name(parameter: str, given: Mapping[Any, Any], names: list[str]) -> dict[str, Any]:
    """The same mapping with positions replaced by names; "auto" entries say nothing."""
    resolved = {}
    for key, value in given.items():
        by_position = isinstance(key, (int, np.integer)) and 0 <= key < len(names)
        name = names[key] if by_position else key
        if name not in names:
            raise ValueError(f"{parameter} names a column {key!r} that X lacks; it has {names}")
        if value != "auto":
            resolved[name] = value
    return resolved


def _mode(column: Column, default: str, origin: str) -> str:
    """How to encode a column that the caller did not name."""
    if column.kind != "number":
        return "category"
    if default != "auto":
        return default
    codes = "b" if origin != "array" else "biu"
    return "category" if column.values.dtype.kind in codes else "passthrough"


def _absent(name: str, n_rows: int) -> Column:
    nothing = PlainTexts([None] * n_rows)
    return Column(name, "text", nothing, np.zeros(n_rows, bool), np.ones(n_rows, bool))
