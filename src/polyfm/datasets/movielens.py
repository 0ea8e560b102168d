"""MovieLens 100K and 1M: who rated which film how."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from polyfm.datasets.bundle import DatasetBundle, Indices, Split, encoded, random_split
from polyfm.datasets.home import Download, Source, find

__all__ = [
    "fetch_movielens_1m",
    "fetch_movielens_100k",
    "fetch_movielens_demographics",
    "fetch_movielens_links",
]

_SITE = "https://files.grouplens.org/datasets/movielens/"
_SPLITS = ("u1", "u2", "u3", "u4", "u5", "ua", "ub")
_PARTS = [f"{name}.{part}" for name in _SPLITS for part in ("base", "test")]

ML_100K = Source(
    "movielens-100k",
    tuple((name,) for name in ("u.data", "u.user", "u.item", "u.genre", *_PARTS)),
    "https://grouplens.org/datasets/movielens/100k/",
    (Download(_SITE + "ml-100k.zip", "md5:0e33842e24a9c977be4e0107933c0723"),),
)
ML_1M = Source(
    "movielens-1m",
    (("ratings.dat", "ratings.csv"), ("users.dat",), ("movies.dat",)),
    "https://grouplens.org/datasets/movielens/1m/",
    (Download(_SITE + "ml-1m.zip", "md5:c4d9eecfca2ab87c1945afe126590906"),),
)

_CITE = """
F. M. Harper and J. A. Konstan, "The MovieLens Datasets: History and Context", ACM Transactions on
Interactive Intelligent Systems 5(4), 2015.  Terms: for research; no redistribution, no commercial
use without permission of GroupLens; see the README of the set.
"""

Columns = dict[str, NDArray[Any]]


def fetch_movielens_100k(
    *,
    ids: bool = True,
    side_features: bool = False,
    dtype: DTypeLike = np.float32,
    download: bool = True,
) -> DatasetBundle:
    """MovieLens 100K: 100,000 ratings of 1,682 films by 943 people.

    Parameters
    ----------
    ids : bool, default=True
        One-hot blocks of user and item.
    side_features : bool, default=False
        Age (in ten bins), gender, occupation and the first two characters of the zip code of the
        user; genres (multi-hot, of sum 1) and year of the film.
    dtype : dtype, default=numpy.float32
        Type of X.
    download : bool, default=True
        Whether the network may be used.

    Returns
    -------
    DatasetBundle
        Rows in the order of ``u.data``, `y` the ratings 1 to 5; `splits` has the official u1 to
        u5, ua and ub.

    Raises
    ------
    DatasetNotFoundError
        If the files are not here and cannot be downloaded.
    """
    paths = find(ML_100K, download=download)
    log = _integers(paths["u.data"].read_bytes())
    frame = dict(zip(("user", "item", "rating", "timestamp"), log.T, strict=True))
    return DatasetBundle(
        **_design(frame, _users_100k(paths), _items_100k(paths), ids, side_features, dtype),
        y=frame["rating"].astype(np.float64),
        splits={name: _official_split(frame, paths, name) for name in _SPLITS},
        frame=frame,
        DESCR="MovieLens 100K: 100,000 ratings of 1,682 films by 943 people.\n" + _CITE,
    )


def fetch_movielens_1m(
    *,
    ids: bool = True,
    side_features: bool = False,
    dtype: DTypeLike = np.float32,
    download: bool = True,
) -> DatasetBundle:
    """MovieLens 1M: a million ratings of 3,706 films by 6,040 people.

    Parameters
    ----------
    ids : bool, default=True
        One-hot blocks of user and item.
    side_features : bool, default=False
        Age group, gender, occupation (a code) and the first two characters of the zip code of
        the user; genres (multi-hot, of sum 1) and year of the film.
    dtype : dtype, default=numpy.float32
        Type of X.
    download : bool, default=True
        Whether the network may be used.

    Returns
    -------
    DatasetBundle
        Rows in the order of the file, `y` the ratings 1 to 5; `splits` has "random", a fixed
        random split of 90 to 10.

    Raises
    ------
    DatasetNotFoundError
        If the files are not here and cannot be downloaded.

    Notes
    -----
    A ``ratings.csv`` (user,movie,rating,timestamp) is taken in place of ``ratings.dat``; an empty
    timestamp reads -1.
    """
    paths = find(ML_1M, download=download)
    log = _ratings_1m(paths["ratings.dat"])
    frame = dict(zip(("user", "item", "rating", "timestamp"), log.T, strict=True))
    n_rows = len(log)
    return DatasetBundle(
        **_design(frame, _users_1m(paths), _items_1m(paths), ids, side_features, dtype),
        y=frame["rating"].astype(np.float64),
        splits=random_split(n_rows, 0.1),
        frame=frame,
        DESCR=f"MovieLens 1M: {n_rows:,} ratings of films by 6,040 people.\n" + _CITE,
    )


def fetch_movielens_links(
    *, ids: bool = True, dtype: DTypeLike = np.float32, download: bool = True
) -> DatasetBundle:
    """MovieLens 100K as two classes: ratings of 5, and all others.

    Parameters
    ----------
    ids : bool, default=True
        One-hot blocks of user (943) and item (1,682), beside the other columns.
    dtype : dtype, default=numpy.float32
        Type of X.
    download : bool, default=True
        Whether the network may be used.

    Returns
    -------
    DatasetBundle
        Rows in the order of ``u.data``; `y` is 1 for the 21,201 ratings of 5, else -1. X is binary,
        49 columns of the user (age to the nearest ten, gender, occupation, first character of the
        zip code) and 29 of the film (year of release to the nearest ten, genres). There are no
        customary splits.

    Raises
    ------
    DatasetNotFoundError
        If the files are not here and cannot be downloaded.

    References
    ----------
    Blondel, Fujino, Ueda, Ishihata, "Higher-Order Factorization Machines", NIPS 2016.
    """
    paths = find(ML_100K, download=download)
    log = _integers(paths["u.data"].read_bytes())
    frame = dict(zip(("user", "item", "rating", "timestamp"), log.T, strict=True))
    users, items = _users_100k(paths), _items_100k(paths)
    users["age"] = _decades(users["age"])
    users["zip"] = np.array([text[:1] for text in users["zip"]], dtype=object)
    items["year"] = _decades(items["year"])
    design = _design(frame, users, items, ids, True, dtype)
    design["X"].data[:] = 1  # films of several genres would have shares of 1
    return DatasetBundle(
        **design,
        y=np.where(frame["rating"] == 5, 1, -1),
        frame=frame,
        DESCR="MovieLens 100K: is a rating 5?\n" + _CITE,
    )


def fetch_movielens_demographics(
    size: str = "100k", *, dtype: DTypeLike = np.float32, download: bool = True
) -> DatasetBundle:
    """MovieLens 100K or 1M without ids: who rates what kind of film how.

    Parameters
    ----------
    size : {"100k", "1m"}, default="100k"
        Which of the two.
    dtype : dtype, default=numpy.float32
        Type of X.
    download : bool, default=True
        Whether the network may be used.

    Returns
    -------
    DatasetBundle
        Rows in the order of the file, `y` the ratings 1 to 5. X is binary: gender, age (in years
        or, in 1M, by group), occupation and zip code of the user, genres of the film. There are no
        customary splits.

    Raises
    ------
    DatasetNotFoundError
        If the files are not here and cannot be downloaded.

    References
    ----------
    Ma, "Projective Quadratic Regression for Online Learning", AAAI 2020.
    """
    sources = {"100k": (ML_100K, _users_100k, _items_100k), "1m": (ML_1M, _users_1m, _items_1m)}
    if size not in sources:
        raise ValueError(f"size must be '100k' or '1m', got {size!r}.")
    source, users_of, items_of = sources[size]
    paths = find(source, download=download)
    is_small = size == "100k"
    log = _integers(paths["u.data"].read_bytes()) if is_small else _ratings_1m(paths["ratings.dat"])
    frame = dict(zip(("user", "item", "rating", "timestamp"), log.T, strict=True))
    users, items = users_of(paths, whole_code=True), items_of(paths)
    users["age"] = np.array([f"{float(age):g}" for age in users["age"]], dtype=object)
    del items["year"]
    design = _design(frame, users, items, False, True, dtype)
    design["X"].data[:] = 1  # films of several genres would have shares of 1
    return DatasetBundle(
        **design,
        y=frame["rating"].astype(np.float64),
        frame=frame,
        DESCR=f"MovieLens {size.upper()} by demographics and genres.\n" + _CITE,
    )


def _decades(years: NDArray[Any]) -> NDArray[Any]:
    rounded = [year and f"{round(float(year) / 10) * 10}" for year in years]
    return np.array(rounded, dtype=object)


def _integers(text: bytes) -> Indices:
    return np.array(text.split(), dtype=np.int64).reshape(-1, 4)


def _ratings_1m(path: Path) -> Indices:
    text = path.read_bytes()
    if path.suffix == ".csv":
        text = text.partition(b"\n")[2].replace(b"\r", b"").replace(b",\n", b",-1\n")
        return _integers(text.replace(b",", b" "))
    return _integers(text.replace(b"::", b" "))


def _lines(path: Path, separator: str) -> list[list[str]]:
    return [line.split(separator) for line in path.read_text("latin-1").splitlines() if line]


def _users_100k(paths: dict[str, Path], *, whole_code: bool = False) -> Columns:
    user, age, gender, occupation, code = zip(*_lines(paths["u.user"], "|"), strict=True)
    return {
        "user": np.array(user, dtype=np.int64),
        "age": np.array(age, dtype=np.float64),
        "gender": np.array(gender, dtype=object),
        "occupation": np.array(occupation, dtype=object),
        "zip": _codes(code, whole_code),
    }


def _codes(codes: tuple[str, ...], whole: bool) -> NDArray[Any]:
    return np.array([code if whole else code[:2] for code in codes], dtype=object)


def _items_100k(paths: dict[str, Path]) -> Columns:
    genres = [name for name, *_ in _lines(paths["u.genre"], "|")]
    rows = _lines(paths["u.item"], "|")
    flags = [[g for g, on in zip(genres, row[5:], strict=True) if on == "1"] for row in rows]
    return {
        "item": np.array([row[0] for row in rows], dtype=np.int64),
        "genres": np.array(["|".join(names) for names in flags], dtype=object),
        "year": np.array([row[2][-4:] or None for row in rows], dtype=object),
    }


def _users_1m(paths: dict[str, Path], *, whole_code: bool = False) -> Columns:
    user, gender, age, occupation, code = zip(*_lines(paths["users.dat"], "::"), strict=True)
    return {
        "user": np.array(user, dtype=np.int64),
        "age": np.array(age, dtype=object),
        "gender": np.array(gender, dtype=object),
        "occupation": np.array(occupation, dtype=object),
        "zip": _codes(code, whole_code),
    }


def _items_1m(paths: dict[str, Path]) -> Columns:
    rows = _lines(paths["movies.dat"], "::")
    years = [re.search(r"\((\d{4})\)\s*$", title) for _, title, _ in rows]
    return {
        "item": np.array([row[0] for row in rows], dtype=np.int64),
        "genres": np.array([row[2] for row in rows], dtype=object),
        "year": np.array([found and found[1] for found in years], dtype=object),
    }


def _design(
    frame: Columns, users: Columns, items: Columns, ids: bool, side: bool, dtype: DTypeLike
) -> dict[str, Any]:
    """Encode each user and each film once, and repeat the rows as the log says."""
    if not (ids or side):
        raise ValueError("ids=False and side_features=False leave nothing to learn from")
    left = _block(frame["user"], users, "user", ids, side, dtype)
    right = _block(frame["item"], items, "item", ids, side, dtype)
    n_left = len(left["field_names"])
    return {
        "X": sp.csr_matrix(sp.hstack([left["X"], right["X"]], format="csr")),
        "feature_names": np.concatenate([left["feature_names"], right["feature_names"]]),
        "fields": np.concatenate([left["fields"], right["fields"] + n_left]),
        "field_names": left["field_names"] + right["field_names"],
    }


def _block(
    log: NDArray[Any], table: Columns, key: str, ids: bool, side: bool, dtype: DTypeLike
) -> dict[str, Any]:
    present, rows = np.unique(log, return_inverse=True)
    order = np.argsort(table[key])
    at = order[np.searchsorted(table[key], present, sorter=order)]
    kept = {n: v[at] for n, v in table.items() if (ids if n == key else side)}
    numeric = {n: "category" if n == key else "bin" for n, v in kept.items() if v.dtype != object}
    sets = {"genres": "|"} if "genres" in kept else None
    block = encoded(kept, None, dtype, numeric=numeric, sets=sets)
    block["X"] = block["X"][rows]
    return block


def _official_split(frame: Columns, paths: dict[str, Path], name: str) -> Split:
    """Row numbers of the (user, item) pairs of a split's two files."""
    keys = _pair(frame["user"], frame["item"])
    order = np.argsort(keys)
    parts = []
    for part in ("base", "test"):
        log = _integers(paths[f"{name}.{part}"].read_bytes())
        at = np.searchsorted(keys, _pair(log[:, 0], log[:, 1]), sorter=order)
        parts.append(np.sort(order[at]))
    return parts[0], parts[1]


def _pair(user: NDArray[Any], item: NDArray[Any]) -> Indices:
    joined: Indices = user * 100_000 + item
    return joined
