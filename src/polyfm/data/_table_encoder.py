"""What all encoders of tables share: parameters, the order of columns, names, and JSON."""

from __future__ import annotations

import json
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from polyfm.data.columns import Options
from polyfm.data.frames import Column, Table, read_table
from polyfm.data.texts import PlainTexts

__all__ = ["NUMERIC", "GrowingEncoder", "TableEncoder", "distinct_names", "no_rows"]

NUMERIC = ("auto", "passthrough", "bin", "log2", "standardize", "category")


class TableEncoder(TransformerMixin, BaseEstimator):
    """A transformer from tables to sparse matrices, with one field per column of the table."""

    _choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        "missing": ("category", "ignore", "error"),
        "set_norm": ("l1", "l2", None),
    }
    _least: ClassVar[dict[str, int]] = {"n_bins": 2}

    field_names_: list[str]
    fields_: NDArray[np.int64] | None
    n_features_in_: int
    n_features_out_: int
    numeric: str | Mapping[Any, str]
    sets: Mapping[Any, str | None] | None
    n_bins: int
    missing: str
    set_norm: str | None
    dtype: Any

    @abstractmethod
    def _learn(self, table: Table) -> None:
        """Forget everything and learn from a table."""

    @abstractmethod
    def _encode(self, columns: list[Column], n_rows: int) -> sp.csr_matrix:
        """Entries of columns in the order of ``field_names_``."""

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn the columns, and of each what its encoding needs.

        Parameters
        ----------
        X : frame, dict of columns, list of dict, 2-D array or list of rows
            The table, shape (n_samples, n_features).
        y : ignored
            Present for pipelines.

        Returns
        -------
        object
            Itself.
        """
        self._learn(read_table(X))
        return self

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
        self._learn(table)
        return self._encode(table.columns, table.n_rows)

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
        table = read_table(X, least_rows=0)
        columns = self._align(table)
        if table.n_rows == 0:
            return no_rows(self)
        return self._encode(columns, table.n_rows)

    def to_json(self) -> str:
        """Parameters and everything learnt, as JSON text that :meth:`from_json` reads.

        Returns
        -------
        str
            The text.
        """
        check_is_fitted(self)
        parameters = {name: _plain(value) for name, value in self.get_params(deep=False).items()}
        named = hasattr(self, "feature_names_in_")
        state = {"encoder": type(self).__name__, "params": parameters, "named": named}
        return json.dumps({**state, **self._state()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Build a fitted encoder from the text of :meth:`to_json`.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        object
            An encoder that transforms, and goes on learning, like the one that was written.

        Raises
        ------
        ValueError, KeyError, TypeError
            For another text.
        """
        state = json.loads(text)
        parameters = {name: _unplain(value) for name, value in state["params"].items()}
        encoder = cls(**{**parameters, "dtype": np.dtype(parameters["dtype"])})
        encoder._check_parameters()
        encoder._set_state(state)
        return encoder

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """Everything learnt, as plain JSON values."""

    @abstractmethod
    def _set_state(self, state: dict[str, Any]) -> None:
        """Take up what :meth:`_state` gave, and ``named``."""

    def _check_parameters(self) -> None:
        for name, choices in self._choices.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {choices}, got {getattr(self, name)!r}")
        for name, least in self._least.items():
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
        asked = self.numeric.values() if isinstance(self.numeric, Mapping) else [self.numeric]
        for mode in asked:
            if mode not in NUMERIC:
                raise ValueError(f"numeric must be one of {NUMERIC}, got {mode!r}")
        if np.dtype(self.dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ValueError(f"dtype must be float32 or float64, got {np.dtype(self.dtype).name}")

    def _options(self, table: Table) -> list[Options]:
        """How each column of a table is to be encoded."""
        names = [column.name for column in table.columns]
        asked: dict[str, str] = {}
        default = "auto"
        if isinstance(self.numeric, Mapping):
            asked = _by_name("numeric", self.numeric, names)
        else:
            default = self.numeric
        sets = _by_name("sets", self.sets or {}, names)
        return [
            Options(
                numeric=asked.get(column.name) or _mode(column, default, table.origin),
                n_bins=self.n_bins,
                min_count=getattr(self, "min_count", 1),
                missing=self.missing,
                is_set=column.name in sets,
                separator=sets.get(column.name),
                set_norm=self.set_norm,
            )
            for column in table.columns
        ]

    def _set_names(self, names: list[str], named: bool) -> None:
        self.field_names_ = names
        self.n_features_in_ = len(names)
        self.__dict__.pop("feature_names_in_", None)
        if named:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _align(self, table: Table) -> list[Column]:
        """Columns of a new table in the order of ``fit``."""
        named = hasattr(self, "feature_names_in_")
        if (not named and table.columns) or table.origin == "array":
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
        if new and getattr(self, "handle_unknown", "ignore") == "error":
            raise ValueError(f"keys not seen in fit: {new}; fit saw {self.field_names_}")

    def _renamed(self, input_features: ArrayLike | None) -> list[str]:
        """Names of the input columns, the caller's if these fit."""
        if input_features is None:
            return self.field_names_
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


class GrowingEncoder(TableEncoder):
    """A table encoder that can go on learning, from batch after batch."""

    @abstractmethod
    def _learn_more(self, columns: list[Column], new: Table) -> None:
        """Learn from known columns, and from a table of columns that are new."""

    def partial_fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn from one more batch; columns that have been given away never change.

        Parameters
        ----------
        X : frame, dict of columns, list of dict, 2-D array or list of rows
            The batch, shape (n_samples, n_features). Only dictionaries may bring keys that
            are new; further columns of frames are ignored. Without rows, nothing is learnt.
        y : ignored
            Present for pipelines.

        Returns
        -------
        object
            Itself.
        """
        if not hasattr(self, "field_names_"):
            self._learn(read_table(X))
            return self
        self._check_parameters()
        table = read_table(X, least_rows=0)
        if table.n_rows == 0:
            self._align(table)
            return self
        old, new = self._split_new(table)
        self._learn_more(self._align(old), new)
        return self

    def _split_new(self, table: Table) -> tuple[Table, Table]:
        """The columns that are known, and those of dictionaries that are not."""
        known = set(self.field_names_)
        if table.origin != "rows" or not hasattr(self, "feature_names_in_"):
            return table, Table([], table.origin, table.n_rows)
        parts: tuple[list[Column], list[Column]] = ([], [])
        for column in table.columns:
            parts[column.name not in known].append(column)
        old, new = (Table(part, table.origin, table.n_rows) for part in parts)
        return old, new


def no_rows(encoder: Any) -> sp.csr_matrix:
    """Return the encoding of a table without rows, as wide as is known."""
    given = 2**encoder.n_bits if not getattr(encoder, "per_field", True) else 0
    width = getattr(encoder, "n_features_out_", given)
    return sp.csr_matrix((0, width), dtype=np.dtype(getattr(encoder, "dtype", np.float32)))


def distinct_names(names: NDArray[Any]) -> NDArray[Any]:
    """Return names of columns, with a number behind those that were there before.

    They meet where a category is called ``<missing>`` beside cells that are missing, or the name
    of a column of the table holds a ``=``. Those that come later do not change what came before.
    """
    if len(set(names)) == len(names):
        return names
    own, taken = names.copy(), set()
    for place, name in enumerate(names):
        number = 2
        while own[place] in taken:
            own[place] = f"{name}#{number}"
            number += 1
        taken.add(own[place])
    return own


def _plain(value: Any) -> Any:
    """A parameter in a form that JSON has."""
    if isinstance(value, Mapping):
        keys = [int(key) if isinstance(key, np.integer) else key for key in value]
        return {"pairs": list(zip(keys, value.values(), strict=True))}
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    return value.item() if isinstance(value, np.generic) else np.dtype(value).name


def _unplain(value: Any) -> Any:
    return dict(value["pairs"]) if isinstance(value, dict) else value


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
