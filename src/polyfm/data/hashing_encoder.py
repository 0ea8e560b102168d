"""Tables hashed to a number of columns that is known beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.utils.validation import check_is_fitted

from polyfm.data._hashed_columns import HashedColumn, Space
from polyfm.data._table_encoder import GrowingEncoder
from polyfm.data.assembly import Entries, assemble
from polyfm.data.frames import Column, Table, read_table

__all__ = ["HashingEncoder"]

_MOST_BITS = 30


class HashingEncoder(GrowingEncoder):
    r"""Encode a table as a sparse matrix of :math:`2^b` columns, without a list of categories.

    The column of a category is a hash of its text. Nothing has to be remembered, new categories
    are no exception, and two categories may share a column.

    Parameters
    ----------
    n_bits : int, default=20
        b, from 1 to 30.
    signed : bool, default=False
        Whether another bit of the hash gives each entry a sign, so that what shares a column
        cancels out on average instead of adding up.
    per_field : bool, default=False
        Whether each column of the table has :math:`2^b` columns to itself, so that only values of
        one column can meet, and ``fields_`` is known. By default all share :math:`2^b`: the best
        use of them, and their number does not depend on the table.
    numeric : {"auto", "passthrough", "bin", "log2", "standardize", "category"} or dict
        What to do with numeric columns, "auto" by default; a dict gives it per column, by name
        or by position, and leaves the others at "auto".

        - "passthrough": the number itself, in the column of the hash of the table's column name.
        - "bin": the interval between quantiles, hashed.
        - "log2": for counts, :math:`\lfloor x \rfloor` where :math:`|x| \le 2`, and
          :math:`\lfloor \log_2(|x|)^2 \rfloor` with the sign of x beyond, hashed: bins that grow
          with the number, as is the custom for click-through data.
        - "standardize": ``(x - mean) / std``, in the column of the hash of the name.
        - "category": the number as text, hashed.
        - "auto": booleans are categories.  Numbers in a frame or in dictionary rows pass through;
          of arrays, integers are categories and floats pass through.
    n_bins : int, default=10
        Number of quantile bins, at least 2.
    sets : dict, default=None
        Columns whose cells are sets written as text, with the separator:
        ``{"genres": "|"}``.  Columns of lists, tuples, sets or arrays need no mention.
    set_norm : {"l1", "l2", None}, default="l1"
        Scale of a set of m elements: 1/m each, 1/sqrt(m) each, or 1 each.
    missing : {"category", "ignore", "error"}, default="category"
        Missing cells are hashed as the text ``<missing>``, get no entry, or are refused.
    dtype : dtype, default=numpy.float32
        Type of the output, ``float32`` or ``float64``.

    Attributes
    ----------
    collision_rate_ : float
        The share of the distinct values met in `fit` and `partial_fit` that can be expected to
        share their column with another one: :math:`1 - (1 - 1/m)^{n - 1}` for n values in m
        columns.
    n_distinct_ : ndarray of shape (n_features_in_,)
        Estimate of the number of distinct values of each column of the table, within some 3 %
        (5 % around a few thousand).
    fields_ : ndarray of int of shape (n_features_out_,) or None
        The field (number of the input column) of each output column with ``per_field=True``.
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
        what `missing` refuses; the message names column, row and cell.

    Notes
    -----
    The column of a text t in the table's column named c is ``murmur3_32(t, seed=s) mod 2^b`` with
    the salt ``s = murmur3_32(c, seed=0)``, of the bytes in UTF-8; that of a number that passes
    through is ``s mod 2^b``, and the highest bit of the hash is the sign. This is the same on every
    machine and in every version. Entries of a row that meet are added up.

    Accepted are the tables that :class:`OneHotFieldEncoder` takes. What `fit` learns are the
    names of the columns, what they hold, bins and scales; `partial_fit` lets all that stand, counts
    distinct values, and takes keys of dictionaries that are new. Text in frames is hashed where it
    lies in Arrow's memory, if pyarrow is installed; the result is the same without.

    Distinct values are counted by the least hash in each of 1024 parts (P. Flajolet, É. Fusy, O.
    Gandouet, F. Meunier, "HyperLogLog", 2007, describes the family; F. Giroire, "Order statistics
    and estimating cardinalities of massive data sets", 2009, this estimate).

    References
    ----------
    K. Weinberger, A. Dasgupta, J. Langford, A. Smola, J. Attenberg, "Feature Hashing for Large
    Scale Multitask Learning", ICML 2009.

    Examples
    --------
    >>> from polyfm.data import HashingEncoder
    >>> encoder = HashingEncoder(n_bits=10)
    >>> X = encoder.fit_transform({"device": ["d1", "d2"], "n": [3.0, 0.0]})
    >>> X.shape
    (2, 1024)
    >>> X.indices.tolist(), X.data.tolist()
    ([172, 901, 661], [3.0, 1.0, 1.0])
    """

    _least: ClassVar[dict[str, int]] = {"n_bits": 1, "n_bins": 2}

    def __init__(
        self,
        n_bits: int = 20,
        *,
        signed: bool = False,
        per_field: bool = False,
        numeric: str | Mapping[Any, str] = "auto",
        n_bins: int = 10,
        sets: Mapping[Any, str | None] | None = None,
        set_norm: str | None = "l1",
        missing: str = "category",
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.n_bits = n_bits
        self.signed = signed
        self.per_field = per_field
        self.numeric = numeric
        self.n_bins = n_bins
        self.sets = sets
        self.set_norm = set_norm
        self.missing = missing
        self.dtype = dtype

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
        return self._assemble(self._learn_and_hash(table), table.n_rows)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the output columns: ``#17``, or ``column#17`` with a block for each column.

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
        blocks = names if self.per_field else [""]
        numbers = range(2**self.n_bits)
        return np.array([f"{name}#{j}" for name in blocks for j in numbers], dtype=object)

    def _learn(self, table: Table) -> None:
        self._learn_and_hash(table)

    def _learn_and_hash(self, table: Table) -> list[Entries]:
        """Forget everything, learn from a table, and return its entries."""
        self._check_parameters()
        options = self._options(table)
        columns = [HashedColumn.fit(c, o) for c, o in zip(table.columns, options, strict=True)]
        self._set_columns(columns, table.origin != "array")
        entries = self._hash(table.columns, count=True)
        self._set_counts()
        return entries

    def _learn_more(self, columns: list[Column], new: Table) -> None:
        options = self._options(new) if new.columns else []
        more = [HashedColumn.fit(c, o) for c, o in zip(new.columns, options, strict=True)]
        self._set_columns([*self._columns, *more], hasattr(self, "feature_names_in_"))
        self._hash([*columns, *new.columns], count=True)
        self._set_counts()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_bits > _MOST_BITS:
            raise ValueError(
                f"n_bits must be an integer of at most {_MOST_BITS}, got {self.n_bits}"
            )

    def _set_columns(self, columns: list[HashedColumn], named: bool) -> None:
        n_blocks = len(columns) if self.per_field else 1
        width = n_blocks << self.n_bits
        if width >= 2**31:
            raise ValueError(
                f"per_field=True with n_bits={self.n_bits} and {n_blocks} columns makes {width:,} "
                "columns, more than the 2^31 - 1 there may be: give fewer bits"
            )
        self._columns = columns
        self._set_names([column.name for column in columns], named)
        self.n_features_out_ = width
        fields = np.repeat(np.arange(n_blocks), 2**self.n_bits) if self.per_field else None
        self.fields_ = fields

    def _set_counts(self) -> None:
        self.n_distinct_ = np.array([column.n_distinct() for column in self._columns])
        met = self.n_distinct_ if self.per_field else self.n_distinct_.sum(keepdims=True)
        alone = np.exp(np.maximum(met - 1, 0) * np.log1p(-(2.0**-self.n_bits)))
        self.collision_rate_ = float(np.sum(met * (1 - alone)) / max(float(met.sum()), 1.0))

    def _hash(self, columns: list[Column], count: bool) -> list[Entries]:
        entries = []
        for place, (hashed, column) in enumerate(zip(self._columns, columns, strict=True)):
            start = place << self.n_bits if self.per_field else 0
            space = Space(self.n_bits, self.signed, start)
            entries.append(hashed.encode(column, space, count))
        return entries

    def _encode(self, columns: list[Column], n_rows: int) -> sp.csr_matrix:
        return self._assemble(self._hash(columns, count=False), n_rows)

    def _assemble(self, entries: list[Entries], n_rows: int) -> sp.csr_matrix:
        return assemble(entries, (n_rows, self.n_features_out_), np.dtype(self.dtype))

    def _state(self) -> dict[str, Any]:
        return {"columns": [column.state() for column in self._columns]}

    def _set_state(self, state: dict[str, Any]) -> None:
        columns = [HashedColumn.from_state(column) for column in state["columns"]]
        self._set_columns(columns, state["named"])
        self._set_counts()
