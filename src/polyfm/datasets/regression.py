"""Regression on a few numbers: ages of abalones, activity of a computer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from polyfm.datasets.bundle import DatasetBundle, encoded, random_split
from polyfm.datasets.home import Source, find

__all__ = ["fetch_abalone", "fetch_cpu_small"]

ABALONE = Source(
    "regression_arff",
    (("abalone.data", "abalone.arff"),),
    "https://archive.ics.uci.edu/dataset/1/abalone",
)
CPU_SMALL = Source(
    "regression_arff",
    (("cpu.small.arff", "cpu_small.arff"),),
    "https://www.dcc.fc.up.pt/~ltorgo/Regression/DataSets.html",
)

_ABALONE_COLUMNS = (
    *("sex", "length", "diameter", "height"),
    *("wholeWeight", "shuckedWeight", "visceraWeight", "shellWeight", "rings"),
)
_CPU_COLUMNS = (
    *("lread", "lwrite", "scall", "sread", "swrite", "fork", "exec"),
    *("rchar", "wchar", "runqsz", "freemem", "freeswap", "usr"),
)


def fetch_abalone(
    *,
    numeric: str = "standardize",
    n_bins: int = 10,
    dtype: DTypeLike = np.float32,
    download: bool = True,
) -> DatasetBundle:
    """Abalone: rings (age) of 4,177 shellfish from sex and seven measures.

    Parameters
    ----------
    numeric : {"standardize", "bin", "passthrough"}, default="standardize"
        What to do with the measures, see `polyfm.data.OneHotFieldEncoder`.  Means, scales and
        bins come from the training part of the split.
    n_bins : int, default=10
        Number of quantile bins.
    dtype : dtype, default=numpy.float32
        Type of X.
    download : bool, default=True
        Whether the network may be used; there is no direct download of this set.

    Returns
    -------
    DatasetBundle
        `y` is the number of rings; `splits` has "random", a fixed split of 80 to 20.

    Raises
    ------
    DatasetNotFoundError
        If the file is not here.

    References
    ----------
    W. J. Nash et al., "The Population Biology of Abalone in Tasmania", Sea Fisheries Division,
    Technical Report 48, 1994 (UCI, CC BY 4.0).
    """
    path = find(ABALONE, download=download)["abalone.data"]
    words = "Abalone (UCI, CC BY 4.0).\n"
    return _bundle(path, _ABALONE_COLUMNS, numeric, n_bins, dtype, words)


def fetch_cpu_small(
    *,
    numeric: str = "standardize",
    n_bins: int = 10,
    dtype: DTypeLike = np.float32,
    download: bool = True,
) -> DatasetBundle:
    """Computer activity, the small version: time in user mode from twelve system counters.

    Parameters
    ----------
    numeric : {"standardize", "bin", "passthrough"}, default="standardize"
        What to do with the counters, see `polyfm.data.OneHotFieldEncoder`.  Means, scales and
        bins come from the training part of the split.
    n_bins : int, default=10
        Number of quantile bins.
    dtype : dtype, default=numpy.float32
        Type of X.
    download : bool, default=True
        Whether the network may be used; there is no direct download of this set.

    Returns
    -------
    DatasetBundle
        8,192 rows; `y` is the share of time in per cent; `splits` has "random", a fixed split of
        80 to 20.

    Raises
    ------
    DatasetNotFoundError
        If the file is not here.

    References
    ----------
    DELVE archive, "Computer Activity"; the file is that of the collection of L. Torgo.
    """
    path = find(CPU_SMALL, download=download)["cpu.small.arff"]
    words = "Computer activity, small (DELVE).\n"
    return _bundle(path, _CPU_COLUMNS, numeric, n_bins, dtype, words)


def _bundle(
    path: Path, names: tuple[str, ...], numeric: str, n_bins: int, dtype: DTypeLike, words: str
) -> DatasetBundle:
    rows = _cells(path, len(names))
    numbers = {
        name: np.array(cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)
    }
    frame = {n: cells if n == "sex" else cells.astype(np.float64) for n, cells in numbers.items()}
    splits = random_split(len(rows), 0.2)
    features = {name: frame[name] for name in names[:-1]}
    return DatasetBundle(
        **encoded(features, splits["random"][0], dtype, numeric=numeric, n_bins=n_bins),
        y=frame[names[-1]],
        splits=splits,
        frame=frame,
        DESCR=words,
    )


def _cells(path: Path, n_columns: int) -> list[list[str]]:
    """Return the cells of a file of comma-separated lines, or of the data part of an ARFF file."""
    lines = [line.strip() for line in path.read_text("latin-1").splitlines()]
    data = [line for line in lines if line and line[0] not in "%@"]
    rows = [[cell.strip() for cell in line.split(",")] for line in data]
    wrong = next((row for row in rows if len(row) != n_columns), None)
    if wrong is not None:
        raise ValueError(f"{path}: rows have {n_columns} cells, got {len(wrong)}: {wrong}.")
    return rows
