"""Telling how far training is: a line for each epoch, and a bar within it on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import TextIO

_BAR_WIDTH = 30
_SECONDS_BETWEEN_DRAWS = 0.1


class Progress:
    """Reports training, or nothing.

    Parameters
    ----------
    verbose : int
        0 for silence, 1 for a line per epoch and a bar where the stream is a terminal.
    stream : text file, optional
        Where to write; standard output if None.
    label : str, default=""
        Written before the bar.
    """

    def __init__(self, verbose: int = 0, stream: TextIO | None = None, label: str = "") -> None:
        self.verbose = verbose
        self._stream = stream
        self._label = label
        self._drawn = 0
        self._last_draw = 0.0

    def within(self, epoch: int, part: int, n_parts: int) -> Callable[[int, int], None] | None:
        """Return a function that draws the bar of one epoch, or None if there is none."""
        if not self.verbose or not self._out.isatty():
            return None

        def draw(done: int, total: int) -> None:
            self._draw(epoch, (part + done / max(total, 1)) / n_parts)

        return draw

    def epoch(self, epoch: int, n_epochs: int, entry: Mapping[str, float]) -> None:
        """Write the line of an epoch that has ended."""
        if not self.verbose:
            return
        self._erase()
        width = len(str(n_epochs))
        fields = [f"{self._label}epoch {epoch:{width}d}/{n_epochs}"]
        fields += [f"{name} {value:.5f}" for name, value in entry.items() if "second" not in name]
        if "rows_per_second" in entry:
            fields.append(f"{entry['rows_per_second']:,.0f} rows/s")
        # One write: an interrupt between a line and its end would glue the next one to it.
        self._out.write("  ".join(fields) + "\n")
        self._out.flush()

    def close(self) -> None:
        """Take the bar away."""
        self._erase()

    @property
    def _out(self) -> TextIO:
        # Looked up late, so that a redirected standard output is respected.
        return sys.stdout if self._stream is None else self._stream

    def _draw(self, epoch: int, share: float) -> None:
        now = time.monotonic()
        if now - self._last_draw < _SECONDS_BETWEEN_DRAWS and share < 1.0:
            return
        self._last_draw = now
        filled = round(share * _BAR_WIDTH)
        bar = "#" * filled + "." * (_BAR_WIDTH - filled)
        text = f"{self._label}epoch {epoch} [{bar}] {share:4.0%}"
        print(f"\r{text}", end="", file=self._out, flush=True)
        self._drawn = len(text)

    def _erase(self) -> None:
        if self._drawn:
            print("\r" + " " * self._drawn + "\r", end="", file=self._out, flush=True)
            self._drawn = 0
