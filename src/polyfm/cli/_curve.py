"""How often columns occur, as a picture in text or in a file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_WIDTH = 50


def ranks(n: int) -> list[int]:
    """Return 1, 2, 5, 10, 20, 50, ... up to n, and n."""
    found, decade = [], 1
    while decade <= n:
        found += [step * decade for step in (1, 2, 5) if step * decade < n]
        decade *= 10
    return [*found, n]


def bars(frequencies: NDArray[np.int64], encoding: str | None = None) -> Iterator[str]:
    """Draw a line for some ranks, as long as the logarithm of the frequency.

    Parameters
    ----------
    frequencies : ndarray of int64
        Of the columns, the most frequent first.
    encoding : str, optional
        Of the terminal; blocks are drawn where it has them.
    """
    block = "█" if (encoding or "").lower().replace("-", "") == "utf8" else "#"
    longest = np.log1p(float(frequencies[0]))
    for rank in ranks(len(frequencies)):
        n = int(frequencies[rank - 1])
        yield f"{rank:>12,} {n:>14,}  {block * max(round(_WIDTH * np.log1p(n) / longest), 1)}"


def draw(frequencies: NDArray[np.int64], path: str) -> None:
    """Write a figure of frequencies by rank, both on scales of logarithms.

    Raises
    ------
    ImportError
        Without matplotlib.
    ValueError
        For a file format that it does not know, or without any column.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("--figure needs matplotlib: pip install 'polyfm[plot]'") from None
    if len(frequencies) == 0:
        raise ValueError("there is no column whose frequency could be drawn.")
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.loglog(np.arange(1, len(frequencies) + 1), frequencies)
    axes.set(xlabel="rank of the column", ylabel="entries")
    axes.grid(alpha=0.3)
    figure.savefig(path)
