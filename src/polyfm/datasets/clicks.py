"""Sets of clicks, choices and grants: Frappe, Criteo, Avazu, Amazon access, a9a."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from polyfm.data import load_csv, load_svmlight
from polyfm.data._pieces import TextLayout
from polyfm.data._reading import AsWritten, Reading, demands, read_as_written
from polyfm.datasets.bundle import DatasetBundle, Indices, encoded, random_split
from polyfm.datasets.home import Download, Source, find

__all__ = [
    "fetch_a9a",
    "fetch_amazon_access",
    "fetch_avazu_mini",
    "fetch_criteo_mini",
    "fetch_frappe",
]

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"

FRAPPE = Source(
    "frappe",
    (
        ("frappe.train.libfm", "frappe.train.rebuilt.libfm"),
        ("frappe.validation.libfm",),
        ("frappe.test.libfm",),
    ),
    "https://github.com/hexiangnan/neural_factorization_machine",
)
CRITEO = Source(
    "criteo/mini_libsvm",
    (("tr.mini.libsvm",), ("va.mini.libsvm",)),
    "https://github.com/gutouyu/ML_CIA (DCN/data)",
)
AVAZU = Source(
    "avazu/aflaisler",
    (("X_test_xsmall.csv",), ("y_test_xsmall.csv",)),
    "https://github.com/aflaisler/kaggle-avazu-ctr (data)",
)
AMAZON = Source(
    "amazon_access",
    (("train.csv",),),
    "https://www.kaggle.com/c/amazon-employee-access-challenge/data",
)
A9A = Source(
    "classification_libsvm",
    (("a9a",), ("a9a.t",)),
    _LIBSVM,
    (Download(_LIBSVM + "a9a"), Download(_LIBSVM + "a9a.t")),
)

_FRAPPE_FIELDS = [
    *("user", "item", "daytime", "weekday", "isweekend"),
    *("homework", "cost", "weather", "country", "city"),
]
_CRITEO_NUMBERS, _CRITEO_CATEGORIES = 13, 26
# a9a: the 14 columns of Adult, each with the number of its binary features.
_A9A_FIELDS = {
    "age": 5,
    "workclass": 8,
    "fnlwgt": 5,
    "education": 16,
    "education-num": 5,
    "marital-status": 7,
    "occupation": 14,
    "relationship": 6,
    "race": 5,
    "sex": 2,
    "capital-gain": 2,
    "capital-loss": 2,
    "hours-per-week": 5,
    "native-country": 41,
}


def fetch_frappe(*, dtype: DTypeLike = np.float32) -> DatasetBundle:
    """Frappe: is an app used in a context? 288,609 rows of 10 categories, labels -1 and 1.

    Parameters
    ----------
    dtype : dtype, default=numpy.float32
        Type of X.

    Returns
    -------
    DatasetBundle
        `splits` has "test" and "validation", both against the training file.  Where only a
        rebuilt training file is there (``frappe.train.rebuilt.libfm``) it is taken.

    Raises
    ------
    DatasetNotFoundError
        If the files are not here; there is no direct download, the message says what to do.

    References
    ----------
    L. Baltrunas et al., "Frappe: Understanding the Usage and Perception of Mobile App
    Recommendations In-The-Wild", arXiv:1505.03014.
    """
    paths = find(FRAPPE)
    files = load_svmlight(list(paths.values()), dtype=dtype)
    X = sp.csr_matrix(sp.vstack([part for part, _ in files], format="csr"))
    labels = [np.asarray(y) for _, y in files]
    parts = _consecutive([len(y) for y in labels])
    log = paths["frappe.test.libfm"].with_name("frappe.csv")
    values = _first_seen(log) if log.is_file() else {}
    fields, names = _fields_by_place(X, _FRAPPE_FIELDS, values)
    rebuilt = "rebuilt" in paths["frappe.train.libfm"].name
    return DatasetBundle(
        X=X,
        y=np.concatenate(labels),
        feature_names=names,
        fields=fields,
        field_names=list(_FRAPPE_FIELDS),
        splits={"test": (parts[0], parts[2]), "validation": (parts[0], parts[1])},
        DESCR="Frappe, app usage in context; two unused apps for every one used (label -1).\n"
        + ("The training part is a rebuilt one: the unused apps in it were drawn anew.\n" * rebuilt)
        + "L. Baltrunas et al., arXiv:1505.03014.  Research use only, no redistribution.\n",
    )


def _consecutive(sizes: list[int]) -> list[Indices]:
    ends = np.cumsum([0, *sizes])
    return [np.arange(a, b) for a, b in pairwise(ends)]


def _first_seen(log: Path) -> dict[str, list[str]]:
    """Values of each column in the order in which they first occur, which is that of the ids."""
    frame = _text_columns(log, "\t")
    return {name: list(dict.fromkeys(frame[name])) for name in _FRAPPE_FIELDS}


def _fields_by_place(
    X: sp.csr_matrix, field_names: list[str], values: dict[str, list[str]]
) -> tuple[Indices, NDArray[Any]]:
    """Fields of a matrix whose rows hold one entry per field, in order.

    A column is named by its value where these are known, else by its rank in the field.
    """
    ids = X.indices.reshape(-1, len(field_names))
    fields = np.empty(X.shape[1], dtype=np.int64)
    fields[ids] = np.arange(len(field_names))
    sizes = np.bincount(fields)
    named = [
        f"{name}={value}"
        for name, size in zip(field_names, sizes, strict=True)
        for value in values.get(name, range(size))
    ]
    return fields, np.array(named, dtype=object)


def fetch_criteo_mini(*, dtype: DTypeLike = np.float32) -> DatasetBundle:
    """Criteo, a small piece: 20,000 advertisements shown, 13 numbers and 26 categories each.

    Parameters
    ----------
    dtype : dtype, default=numpy.float32
        Type of X.

    Returns
    -------
    DatasetBundle
        `y` is 1 for a click, else 0; `splits` has "va": train on the ``tr`` file, test on ``va``.

    Raises
    ------
    DatasetNotFoundError
        If the files are not here; there is no direct download, the message says what to do.

    Notes
    -----
    The third file that goes with these two has no labels and is not read.  The place in the row
    decides about the field: one index stands for a number in one place and for a category in
    another.
    """
    paths = find(CRITEO)
    asked = demands(True, "auto", None, np.float64, auto=True)
    reading = Reading(TextLayout(2), asked)
    parts = [read_as_written(path, reading) for path in paths.values()]
    tr, va = _consecutive([len(part.labels) for part in parts])
    return DatasetBundle(
        **_criteo_design(parts, np.dtype(dtype)),
        y=np.concatenate([part.labels for part in parts]).astype(np.int64),
        splits={"va": (tr, va)},
        DESCR="Criteo Display Advertising, two times 10,000 rows.  Non-commercial use.\n",
    )


def _criteo_design(parts: list[AsWritten], dtype: np.dtype[Any]) -> dict[str, Any]:
    width = _CRITEO_NUMBERS + _CRITEO_CATEGORIES
    ids = np.concatenate([part.ids for part in parts]).reshape(-1, width)
    values = np.concatenate([part.values for part in parts]).reshape(-1, width)
    codes = ids[:, _CRITEO_NUMBERS:]
    known = np.unique(codes)
    columns = np.hstack([ids[:, :_CRITEO_NUMBERS] - 1, np.searchsorted(known, codes) + 13])
    shape = (len(ids), _CRITEO_NUMBERS + len(known))
    indptr = np.arange(0, ids.size + 1, width)
    X = sp.csr_matrix((values.ravel().astype(dtype), columns.ravel(), indptr), shape=shape)
    X.eliminate_zeros()
    fields = np.empty(shape[1], dtype=np.int64)
    fields[columns] = np.arange(width)
    numbers = [f"I{j}" for j in range(1, _CRITEO_NUMBERS + 1)]
    categories = [f"C{j}" for j in range(1, _CRITEO_CATEGORIES + 1)]
    field_names = numbers + categories
    named = zip(fields[_CRITEO_NUMBERS:], known, strict=True)
    names = numbers + [f"{field_names[field]}={code}" for field, code in named]
    return {
        "X": X,
        "fields": fields,
        "field_names": field_names,
        "feature_names": np.array(names, dtype=object),
    }


def fetch_avazu_mini(*, dtype: DTypeLike = np.float32) -> DatasetBundle:
    """Avazu, a small piece: 15,000 advertisements on mobile phones, 21 categories each.

    Parameters
    ----------
    dtype : dtype, default=numpy.float32
        Type of X.

    Returns
    -------
    DatasetBundle
        `y` is 1 for a click, else 0; `splits` has "random", a fixed split of 80 to 20.

    Raises
    ------
    DatasetNotFoundError
        If the files are not here; there is no direct download, the message says what to do.
    """
    paths = find(AVAZU)
    frame = _text_columns(paths["X_test_xsmall.csv"])
    _, y, _ = load_csv(paths["y_test_xsmall.csv"], target="click")
    return _categorical("Avazu click-through rate, 15,000 rows.  Kaggle rules.\n", frame, y, dtype)


def fetch_amazon_access(*, dtype: DTypeLike = np.float32) -> DatasetBundle:
    """Amazon Employee Access: is access to a resource granted? 32,769 rows of 9 categories.

    Parameters
    ----------
    dtype : dtype, default=numpy.float32
        Type of X.

    Returns
    -------
    DatasetBundle
        `y` is 1 for granted, else 0; `splits` has "random", a fixed split of 80 to 20.

    Raises
    ------
    DatasetNotFoundError
        If the file is not here; Kaggle asks for a login, the message says what to do.
    """
    frame = _text_columns(find(AMAZON)["train.csv"])
    y = frame.pop("ACTION").astype(np.int64)
    return _categorical("Amazon Employee Access Challenge.  Kaggle rules.\n", frame, y, dtype)


def _text_columns(path: Path, separator: str = ",") -> dict[str, NDArray[Any]]:
    """Columns of a CSV file as they are written: codes keep their leading zeros."""
    with path.open(encoding="utf-8", newline="") as stream:
        names, *rows = csv.reader(stream, delimiter=separator)
    columns = zip(*rows, strict=True)
    return {n: np.array(cells, dtype=object) for n, cells in zip(names, columns, strict=True)}


def _categorical(
    about: str, frame: dict[str, NDArray[Any]], y: NDArray[Any] | None, dtype: DTypeLike
) -> DatasetBundle:
    target = np.asarray(y)
    return DatasetBundle(
        **encoded(frame, None, dtype),
        y=target,
        splits=random_split(len(target), 0.2),
        frame=frame,
        DESCR=about,
    )


def fetch_a9a(*, dtype: DTypeLike = np.float32, download: bool = True) -> DatasetBundle:
    """a9a: Adult in 123 binary features, as the LIBSVM collection has it; labels -1 and 1.

    Parameters
    ----------
    dtype : dtype, default=numpy.float32
        Type of X.
    download : bool, default=True
        Whether the network may be used.

    Returns
    -------
    DatasetBundle
        `splits` has "test": 32,561 rows against 16,281.

    Raises
    ------
    DatasetNotFoundError
        If the files are not here and cannot be downloaded.

    References
    ----------
    C.-C. Chang and C.-J. Lin, LIBSVM Data; B. Becker and R. Kohavi, Adult, 1996.
    """
    paths = find(A9A, download=download)
    widths = list(_A9A_FIELDS.values())
    (X, y), (X_test, y_test) = load_svmlight([*paths.values()], n_features=sum(widths), dtype=dtype)
    train, test = _consecutive([X.shape[0], X_test.shape[0]])
    field_names = list(_A9A_FIELDS)
    named = [f"{name}={k}" for name, width in _A9A_FIELDS.items() for k in range(1, width + 1)]
    return DatasetBundle(
        X=sp.csr_matrix(sp.vstack([X, X_test], format="csr")),
        y=np.concatenate([np.asarray(y), np.asarray(y_test)]),
        feature_names=np.array(named, dtype=object),
        fields=np.repeat(np.arange(len(widths)), widths),
        field_names=field_names,
        splits={"test": (train, test)},
        DESCR="a9a of the LIBSVM collection, from UCI Adult (CC BY 4.0).\n",
    )
