"""A table of results that prints, and goes into CSV, Markdown and a figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Report:
    """Results of an experiment.

    Parameters
    ----------
    title : str
        What was measured, on what.
    columns : sequence of str
        Names of the columns; the first names what a row is.
    rows : list of tuple
        Cells: text or numbers.
    notes : list of str
        What a reader has to know to repeat or compare the figures.
    draw : callable, optional
        Draws the results into the matplotlib figure that it is given.
    """

    title: str
    columns: Sequence[str]
    rows: list[tuple[object, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    draw: Callable[[Any], None] | None = None

    def add(self, *cells: object) -> None:
        """Append a row.

        Raises
        ------
        ValueError
            When the number of cells is not that of the columns.
        """
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns.")
        self.rows.append(cells)

    def to_text(self) -> str:
        """Return the table with aligned columns."""
        lines = [tuple(self.columns), *(tuple(map(_shown, row)) for row in self.rows)]
        widths = [max(len(line[c]) for line in lines) for c in range(len(self.columns))]
        left = [not lines[-1][c].replace(".", "").isdigit() for c in range(len(self.columns))]
        body = [
            "  ".join(
                cell.ljust(width) if is_left else cell.rjust(width)
                for cell, width, is_left in zip(line, widths, left, strict=True)
            )
            for line in lines
        ]
        rule = "-" * len(body[0])
        return "\n".join([self.title, rule, body[0], rule, *body[1:], *self._notes()])

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        lines = [tuple(self.columns), ("---",) + ("---:",) * (len(self.columns) - 1)]
        lines += [tuple(map(_shown, row)) for row in self.rows]
        table = ["| " + " | ".join(line) + " |" for line in lines]
        return "\n".join([f"**{self.title}**", "", *table, "", *self._notes()])

    def to_csv(self) -> str:
        """Return the table as CSV, numbers in full."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return out.getvalue()

    def save_figure(self, path: Path) -> None:
        """Write the figure as PNG, or what the suffix of ``path`` says.

        Raises
        ------
        ValueError
            If the experiment has no figure.
        ImportError
            If matplotlib is not installed.
        """
        if self.draw is None:
            raise ValueError(f"{self.title!r} has no figure.")
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError("figures need matplotlib: pip install 'polyfm[plot]'.") from error
        figure = Figure(figsize=(8.0, 4.5), layout="constrained")
        self.draw(figure)
        figure.savefig(path, dpi=100)

    def _notes(self) -> list[str]:
        return [f"- {note}" for note in self.notes]


def _shown(cell: object) -> str:
    return f"{cell:.4f}" if isinstance(cell, float) else str(cell)
