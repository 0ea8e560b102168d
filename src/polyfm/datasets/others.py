"""California housing (dense numbers) and Last.fm (how often who listened to whom)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polyfm.datasets.bundle import DatasetBundle, encoded, random_split
from polyfm.datasets.home import Download, Source, find

__all__ = ["fetch_california_housing", "fetch_lastfm"]

CALIFORNIA = Source(
    "regression_arff",
    (("cal_housing.data", "cal.housing.arff"),),
    "https://www.dcc.fc.up.pt/~ltorgo/Regression/cal_housing.html",
    (
        Download(
            "https://ndownloader.figshare.com/files/5976036",
            "sha256:aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",
            "cal_housing.tgz",
        ),
    ),
)
LASTFM = Source(
    "hetrec2011-lastfm",
    (("user_artists.dat",),),
    "https://grouplens.org/datasets/hetrec-2011/",
    (Download("https://files.grouplens.org/datasets/hetrec2011/hetrec2011-lastfm-2k.zip"),),
)

_CALIFORNIA_COLUMNS = [
    *("longitude", "latitude", "housingMedianAge", "totalRooms", "totalBedrooms"),
    *("population", "households", "medianIncome", "medianHouseValue"),
]


def fetch_california_housing(
    *,
    numeric: str = "standardize",
    n_bins: int = 10,
    dtype: DTypeLike = np.float32,
    download: bool = True,
) -> DatasetBundle:
    """California housing: median house value of 20,640 districts from eight numbers.

    Parameters
    ----------
    numeric : {"standardize", "bin", "passthrough"}, default="standardize"
        What to do with the numbers, see `polyfm.data.OneHotFieldEncoder`.  Means, scales and
        bins come from the training part of the split.
    n_bins : int, default=10
        Number of quantile bins.
    dtype : dtype, default=numpy.float32
        Type of X.
    download : bool, default=True
        Whether the network may be used.

    Returns
    -------
    DatasetBundle
        `y` is the value in units of 100,000 dollars; `splits` has "random", a fixed split of 80
        to 20.

    Raises
    ------
    DatasetNotFoundError
        If the file is not here and cannot be downloaded.

    References
    ----------
    R. K. Pace and R. Barry, "Sparse Spatial Autoregressions", Statistics and Probability Letters
    33, 1997.
    """
    table = _numbers(find(CALIFORNIA, download=download)["cal_housing.data"])
    frame = dict(zip(_CALIFORNIA_COLUMNS, table.T, strict=True))
    splits = random_split(len(table), 0.2)
    features = {name: frame[name] for name in _CALIFORNIA_COLUMNS[:-1]}
    return DatasetBundle(
        **encoded(features, splits["random"][0], dtype, numeric=numeric, n_bins=n_bins),
        y=frame["medianHouseValue"] / 100_000,
        splits=splits,
        frame=frame,
        DESCR="California housing, census of 1990 (StatLib).\n",
    )


def _numbers(path: Path) -> NDArray[np.float64]:
    lines = path.read_text("ascii").splitlines()
    rows = [line for line in lines if line[:1] in "-0123456789" and line.strip()]
    return np.array([row.split(",") for row in rows], dtype=np.float64)


def fetch_lastfm(*, dtype: DTypeLike = np.float32, download: bool = True) -> DatasetBundle:
    """Last.fm (HetRec 2011): how often 1,892 people played 17,632 artists, 92,834 pairs.

    Parameters
    ----------
    dtype : dtype, default=numpy.float32
        Type of X.
    download : bool, default=True
        Whether the network may be used.

    Returns
    -------
    DatasetBundle
        One-hot user and artist; `y` is ``log(1 + plays)``, the plays themselves are in `frame`;
        `splits` has "random", a fixed split of 80 to 20.

    Raises
    ------
    DatasetNotFoundError
        If the file is not here and cannot be downloaded.

    References
    ----------
    I. Cantador, P. Brusilovsky and T. Kuflik, HetRec 2011 workshop at RecSys.
    """
    path = find(LASTFM, download=download)["user_artists.dat"]
    text = path.read_bytes().partition(b"\n")[2]
    log = np.array(text.split(), dtype=np.int64).reshape(-1, 3)
    frame: dict[str, Any] = dict(zip(("user", "artist", "plays"), log.T, strict=True))
    features = {name: frame[name] for name in ("user", "artist")}
    return DatasetBundle(
        **encoded(features, None, dtype, numeric="category"),
        y=np.log1p(frame["plays"]),
        splits=random_split(len(log), 0.2),
        frame=frame,
        DESCR="Last.fm-2k of HetRec 2011, grouplens.org and last.fm.  Non-commercial use.\n",
    )
