"""How far a command is: one line on a terminal, by bytes where their number is known."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Self

_SECONDS_BETWEEN_DRAWS = 0.2


class Progress:
    """Counts bytes and rows, and shows them with a rate while it is on a terminal.

    Parameters
    ----------
    args : argparse.Namespace
        ``quiet`` says whether to show nothing.
    total : int, optional
        Bytes in all.
    shows : bool, default=True
        False where results go to the same terminal.
    """

    def __init__(
        self, args: argparse.Namespace, total: int | None = None, shows: bool = True
    ) -> None:
        self.total, self.n_bytes, self.n_rows = total, 0, 0
        self._shows = shows and not args.quiet and sys.stderr.isatty()
        self._started, self._last, self._drawn = time.monotonic(), 0.0, 0

    @classmethod
    def silent(cls) -> Self:
        """Return one that shows nothing."""
        return cls(argparse.Namespace(quiet=True))

    def add_bytes(self, n: int) -> None:
        """Count bytes that were read."""
        self.n_bytes += n
        self._draw()

    def add_rows(self, n: int) -> None:
        """Count rows that were dealt with."""
        self.n_rows += n
        self._draw()

    def restart(self) -> None:
        """Count from the beginning."""
        self.n_bytes = self.n_rows = 0
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Time since the beginning."""
        return max(time.monotonic() - self._started, 1e-9)

    @property
    def rate(self) -> str:
        """Bytes a second, or rows where bytes are not known."""
        if self.n_bytes:
            return f"{self.n_bytes / 1e6 / self.seconds:,.1f} MB/s"
        return f"{self.n_rows / self.seconds:,.0f} rows/s"

    def _draw(self) -> None:
        now = time.monotonic()
        if not self._shows or now - self._last < _SECONDS_BETWEEN_DRAWS:
            return
        words = [f"{self.n_rows:,} rows"]
        if self.n_bytes:
            words.append(f"{self.n_bytes / 1e6:,.1f} MB")
        if self.total:
            words.insert(0, f"{min(self.n_bytes / self.total, 1):.0%}")
        text = "  ".join([*words, self.rate])
        print("\r" + text.ljust(self._drawn), end="", file=sys.stderr, flush=True)
        self._last, self._drawn = now, len(text)

    def erase(self) -> None:
        """Take the line off the terminal."""
        if self._drawn:
            print("\r" + " " * self._drawn + "\r", end="", file=sys.stderr, flush=True)
            self._drawn = 0
