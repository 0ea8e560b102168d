"""What every loader returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from polyfm.data import OneHotFieldEncoder

__all__ = ["DatasetBundle", "Indices", "encoded", "random_split"]

Indices = NDArray[np.int64]
Split = tuple[Indices, Indices]


@dataclass(frozen=True, repr=False)
class DatasetBundle:
    """A data set, ready to fit.

    Attributes
    ----------
    X : scipy.sparse.csr_matrix of shape (n_samples, n_features)
        The design matrix.
    y : ndarray of shape (n_samples,)
        The target.
    feature_names : ndarray of str of shape (n_features,)
        Names of the columns of `X`, such as ``user=196``.
    fields : ndarray of int64 of shape (n_features,)
        The field of each column of `X`, a number into `field_names`.
    field_names : list of str
        Names of the fields.
    splits : dict of str to (train, test)
        Row numbers of the customary splits.
    frame : dict of str to ndarray
        The raw columns where the set has any, all of length n_samples.
    DESCR : str
        What it is, where it comes from and on which terms.
    """

    X: sp.csr_matrix
    y: NDArray[Any]
    feature_names: NDArray[Any]
    fields: Indices
    field_names: list[str]
    DESCR: str
    splits: dict[str, Split] = field(default_factory=dict)
    frame: dict[str, NDArray[Any]] = field(default_factory=dict)

    def split(
        self, name: str | None = None
    ) -> tuple[sp.csr_matrix, sp.csr_matrix, NDArray[Any], NDArray[Any]]:
        """The rows of a split.

        Parameters
        ----------
        name : str, default=None
            A key of `splits`; None takes the first.

        Returns
        -------
        X_train, X_test, y_train, y_test
            In the order of scikit-learn's ``train_test_split``.

        Raises
        ------
        ValueError
            If there is no such split.
        """
        name = next(iter(self.splits), None) if name is None else name
        if name not in self.splits:
            raise ValueError(f"no split {name!r}; this data set has {list(self.splits)}")
        train, test = self.splits[name]
        return self.X[train], self.X[test], self.y[train], self.y[test]

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        return (
            f"DatasetBundle({rows} rows, {columns} columns in {len(self.field_names)} fields, "
            f"splits {list(self.splits)})"
        )


def encoded(
    columns: Mapping[str, Any], fit_on: Iterable[int] | None, dtype: DTypeLike, **options: Any
) -> dict[str, Any]:
    """X, names and fields of a table, as keyword arguments of :class:`DatasetBundle`.

    ``fit_on`` are the rows that the encoder may learn from; None means all of them.
    """
    encoder = OneHotFieldEncoder(dtype=dtype, **options)
    if fit_on is None:
        X = encoder.fit_transform(columns)
    else:
        known = np.asarray(fit_on)
        encoder.fit({name: np.asarray(values)[known] for name, values in columns.items()})
        X = encoder.transform(columns)
    return {
        "X": X,
        "feature_names": encoder.get_feature_names_out(),
        "fields": encoder.fields_,
        "field_names": encoder.field_names_,
    }


def random_split(n_rows: int, test_share: float) -> dict[str, Split]:
    """A fixed random split, the same on every machine."""
    order = np.random.default_rng(0).permutation(n_rows)
    n_test = round(n_rows * test_share)
    return {"random": (np.sort(order[n_test:]), np.sort(order[:n_test]))}
