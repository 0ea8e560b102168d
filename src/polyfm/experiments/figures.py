"""What the experiments' figures have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyfm.experiments.report import Report

Cells = dict[str, Any]
Drawing = Callable[[Any], None]


def cells(report: Report) -> list[Cells]:
    """Return the rows of a report, each by the names of the columns."""
    return [dict(zip(report.columns, row, strict=True)) for row in report.rows]


def dots(report: Report, *, group: str, label: str, value: str, spread: str = "") -> Drawing:
    """Return a drawing with a panel per ``group``: a dot per ``label``, with its spread.

    Parameters
    ----------
    report : Report
        Where the figures are; it may still be filled after this call.
    group, label, value, spread : str
        Columns of the report; ``spread`` may be empty.
    """

    def draw(figure: Any) -> None:
        rows = cells(report)
        groups = list(dict.fromkeys(row[group] for row in rows))
        labels = list(dict.fromkeys(row[label] for row in rows))
        figure.set_size_inches(2.2 + 2.2 * len(groups), 1.2 + 0.26 * len(labels))
        panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
        for panel, name in zip(panels, groups, strict=True):
            mine = [row for row in rows if row[group] == name]
            at = [labels.index(row[label]) for row in mine]
            bars = [row[spread] for row in mine] if spread else None
            panel.errorbar([row[value] for row in mine], at, xerr=bars, fmt="o", capsize=2)
            panel.set_title(name, fontsize=9)
            panel.set_xlabel(value)
            panel.grid(alpha=0.3)
        panels[0].set_yticks(range(len(labels)), labels, fontsize=8)
        panels[0].invert_yaxis()

    return draw


def lines(
    report: Report, *, group: str, label: str, x: str, y: str, log: tuple[str, ...] = ()
) -> Drawing:
    """Return a drawing with a panel per ``group``: a line per ``label``, y over x.

    Parameters
    ----------
    report : Report
        Where the figures are; it may still be filled after this call.
    group, label, x, y : str
        Columns of the report.
    log : tuple of str
        Which axes have a logarithmic scale: "x", "y".
    """

    def draw(figure: Any) -> None:
        rows = cells(report)
        groups = list(dict.fromkeys(row[group] for row in rows))
        labels = list(dict.fromkeys(row[label] for row in rows))
        figure.set_size_inches(1.5 + 3.2 * len(groups), 4.2)
        panels = figure.subplots(1, len(groups), squeeze=False)[0]
        for panel, name in zip(panels, groups, strict=True):
            for each in labels:
                mine = [row for row in rows if row[group] == name and row[label] == each]
                if mine:
                    shown = [float(r[x]) for r in mine], [float(r[y]) for r in mine]
                    panel.plot(*shown, marker=".", label=each)
            panel.set(title=name, xlabel=x, ylabel=y)
            for axis in log:
                getattr(panel, f"set_{axis}scale")("log")
            panel.grid(alpha=0.3)
        panels[0].legend(fontsize=7)

    return draw
