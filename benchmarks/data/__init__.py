"""From files to models: ``python benchmarks/run.py data``.

Put together from the parts in this folder, each a module with ``measure``, which takes ``rounds``
and ``quick``, or one of them, or nothing, and returns lines (what, figure, bar): the figure must be
at least the bar, at most its size where the bar is negative, and is only reported where the bar is
None. Contestants take turns in one process and the best of the rounds counts.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

from report import verdict


def run(rounds: int, quick: bool) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Return the figures of all parts, and the verdicts on those that have a bar."""
    figures: dict[str, float] = {}
    verdicts = []
    for part in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        measure = importlib.import_module(f"data.{part}").measure
        known = {"rounds": rounds, "quick": quick}
        wanted = {name: known[name] for name in inspect.signature(measure).parameters}
        for what, figure, bar in measure(**wanted):
            if bar is None:
                figures[what] = figure
            else:
                verdicts.append(verdict(what, figure, ">=" if bar > 0 else "<=", abs(bar)))
    return figures, verdicts
