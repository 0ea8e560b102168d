"""Adult: the set that ships with the package."""

from __future__ import annotations

import csv
import io
import lzma
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polyfm.datasets.bundle import DatasetBundle, encoded

__all__ = ["load_adult"]

_COLUMNS = [
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status"),
    *("occupation", "relationship", "race", "sex", "capital-gain", "capital-loss"),
    *("hours-per-week", "native-country", "income"),
]
_NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_N_TRAIN = 32_561

_DESCR = """Adult (Census Income): does a person earn more than 50,000 dollars a year?

48,842 persons of the 1994 census of the United States, 14 columns; 7,841 of the 32,561 persons
of the training part and 3,846 of the 16,281 of the test part earn more.  "?" stands for an answer
that was not given and is a category like any other.

Becker, B. and Kohavi, R. (1996). Adult [Dataset]. UCI Machine Learning Repository.
https://doi.org/10.24432/C5XW20.  Licence: CC BY 4.0.
"""


def load_adult(
    *, numeric: str = "bin", n_bins: int = 10, dtype: DTypeLike = np.float32
) -> DatasetBundle:
    """The Adult census data, which needs no download.

    Parameters
    ----------
    numeric : {"bin", "standardize", "passthrough", "category"}, default="bin"
        What to do with the six numeric columns, see `polyfm.data.OneHotFieldEncoder`.
    n_bins : int, default=10
        Number of quantile bins.
    dtype : dtype, default=numpy.float32
        Type of X.

    Returns
    -------
    DatasetBundle
        `y` is 1 for an income above 50,000, else 0; `splits` has "test", the customary one.
        Categories, bins and scales come from its training part.

    References
    ----------
    Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository,
    doi:10.24432/C5XW20 (CC BY 4.0).
    """
    frame = _frame()
    n_rows = len(frame["income"])
    train, test = np.arange(_N_TRAIN), np.arange(_N_TRAIN, n_rows)
    features = {name: frame[name] for name in _COLUMNS[:-1]}
    how = dict.fromkeys(_NUMERIC, numeric)
    return DatasetBundle(
        **encoded(features, train, dtype, numeric=how, n_bins=n_bins),
        y=(frame["income"] == ">50K").astype(np.int64),
        splits={"test": (train, test)},
        frame=frame,
        DESCR=_DESCR,
    )


def _frame() -> dict[str, NDArray[Any]]:
    rows = [*_rows("adult-train.csv.xz"), *_rows("adult-test.csv.xz")]
    frame = {}
    for name, cells in zip(_COLUMNS, zip(*rows, strict=True), strict=True):
        frame[name] = np.array(cells, dtype=np.int64 if name in _NUMERIC else object)
    return frame


def _rows(name: str) -> list[list[str]]:
    packed = (files("polyfm.datasets") / "_files" / "adult" / name).read_bytes()
    text = lzma.decompress(packed).decode("ascii")
    rows = [row for row in csv.reader(io.StringIO(text), skipinitialspace=True) if row]
    for row in rows:
        row[-1] = row[-1].rstrip(".")  # the test part writes ">50K."
    return rows
