"""Tables of what was measured, and the bars it has to reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from libraries import Run
from problems import Problem


@dataclass(frozen=True)
class Row:
    """The best run of one contestant on one problem."""

    contestant: str
    rows_per_second: float
    ns_per_nonzero: float
    quality: float


class Bar(NamedTuple):
    """``ns[slow] / ns[fast]`` must be at least (``sense=">="``) or at most ``bound``."""

    label: str
    slow: str
    fast: str
    sense: str
    bound: float


class ProcessBar(NamedTuple):
    """A figure of `process.measure`, and the most it may be."""

    label: str
    what: str
    unit: str
    bound: float


BARS = (
    Bar("rows/s, polyfm / modern-fm", "modern-fm", "polyfm", ">=", 6.0),
    Bar("rows/s, polyfm / river", "river", "polyfm", ">=", 100.0),
    Bar("rows/s, two threads / one", "polyfm", "polyfm 2 threads", ">=", 1.6),
    Bar("time, order 3 / order 2", "polyfm order 3", "polyfm", "<=", 2.2),
    Bar("time, predict / training epoch", "polyfm predict", "polyfm", "<=", 1.0),
    Bar("time, polyfm / touch", "polyfm", "touch", "<=", 6.0),
)
PROCESS_BARS = (
    ProcessBar("import polyfm", "import", "s", 0.3),
    ProcessBar("first fit of a new process, compiled before", "first-fit", "s", 0.5),
    ProcessBar("training memory beyond the data / parameters", "memory", "x", 3.0),
)


def summarise(problem: Problem, contestant: str, runs: list[Run]) -> Row:
    best = min(runs, key=lambda run: run.seconds)
    per_row = best.seconds / best.rows_visited
    nonzeros_per_row = problem.X.nnz / problem.X.shape[0]
    return Row(contestant, 1.0 / per_row, 1e9 * per_row / nonzeros_per_row, best.quality)


def check(rows: list[Row]) -> list[dict[str, Any]]:
    """Every bar whose two contestants both ran."""
    ns = {row.contestant: row.ns_per_nonzero for row in rows}
    present = (bar for bar in BARS if bar.slow in ns and bar.fast in ns)
    return [
        verdict(bar.label, ns[bar.slow] / ns[bar.fast], bar.sense, bar.bound) for bar in present
    ]


def check_process(figures: Mapping[str, float]) -> list[dict[str, Any]]:
    bars = (bar for bar in PROCESS_BARS if bar.what in figures)
    return [verdict(bar.label, figures[bar.what], "<=", bar.bound, bar.unit) for bar in bars]


def verdict(label: str, value: float, sense: str, bound: float, unit: str = "x") -> dict[str, Any]:
    """A figure beside its bar."""
    reached = value >= bound if sense == ">=" else value <= bound
    return {"label": label, "value": value, "sense": sense, "bound": bound, "unit": unit,
            "reached": reached}  # fmt: skip


def print_rows(problem: Problem, rows: list[Row], base: str) -> None:
    n_rows, n_features = problem.X.shape
    measure = "log loss" if problem.task == "classification" else "RMSE"
    print(f"\n{problem.name}: {n_rows:,} rows, {n_features:,} features, {problem.X.nnz:,} nonzeros")
    print(f"{'contestant':<20}{'rows/s':>12}{'ns/nonzero':>12}{'time / ' + base:>20}{measure:>12}")
    of_base = next((row.ns_per_nonzero for row in rows if row.contestant == base), float("nan"))
    for row in sorted(rows, key=lambda row: row.ns_per_nonzero):
        print(
            f"{row.contestant:<20}{row.rows_per_second:>12,.0f}{row.ns_per_nonzero:>12.1f}"
            f"{row.ns_per_nonzero / of_base:>20.2f}{row.quality:>12.4f}"
        )


def print_verdicts(verdicts: list[dict[str, Any]]) -> None:
    for v in verdicts:
        mark = "reached" if v["reached"] else "MISSED"
        print(
            f"  {v['label']:<46}{v['value']:>9.3f} {v['unit']}   "
            f"bar {v['sense']} {v['bound']:g}   {mark}"
        )


def print_figures(title: str, figures: Mapping[str, float]) -> None:
    print(f"\n{title}")
    for name, value in figures.items():
        print(f"  {name:<46}{value:>12,.1f}")
