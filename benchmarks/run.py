"""Times polyfm beside other libraries: ``python benchmarks/run.py [names...]``.

All contestants train on the same data in the same process, in turns, one thread each (except
where the label says otherwise); the best of the rounds counts. Names are problems, contestants or
suites, which bring problems and contestants of their own.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from threadpoolctl import threadpool_limits

import data
import descent
import online
import pqr
import process
import report
from libraries import Run, Trainer, load_libraries
from problems import PROBLEMS, QUICK_PROBLEMS, Problem

RANK = 8
SUITES = {"data": data, "descent": descent, "online": online, "pqr": pqr}


def main() -> int:
    libraries = load_libraries()
    arguments = _parse([module.name for module in libraries])
    names = arguments.names or [*PROBLEMS, *SUITES]
    suites = [n for n in names if n in SUITES]
    wanted = [m.name for m in libraries if m.name in names]
    problems = [n for n in names if n in PROBLEMS] or (list(PROBLEMS) if wanted else [])
    entrants = [m for m in libraries if (not wanted or m.name in wanted) and _present(m)]
    with threadpool_limits(1):  # no linear algebra beyond the threads a label speaks of
        results = [_run_problem(name, entrants, arguments) for name in problems]
        of_suites = {name: _run_suite(name, arguments) for name in suites}
    figures = _process_figures(entrants, arguments.quick) if problems else {}
    if arguments.json:
        record = {"problems": results, "process": figures, "suites": of_suites}
        arguments.json.write_text(json.dumps(record, indent=2) + "\n")
    return 0


def _parse(library_names: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    choices = [*PROBLEMS, *library_names, *SUITES]
    parser.add_argument("names", nargs="*", metavar="name", help="any of " + ", ".join(choices))
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contestant")
    parser.add_argument("--epochs", type=int, default=10, help="passes over the data per turn")
    parser.add_argument("--base", default="touch", help="contestant the time column is relative to")
    parser.add_argument("--quick", action="store_true", help="small data, to see that all works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(choices))
    if unknown:
        parser.error(f"unknown name {', '.join(unknown)}; choose from {', '.join(choices)}")
    if arguments.rounds < 1 or arguments.epochs < 1:
        parser.error("--rounds and --epochs must be at least 1")
    return arguments


def _present(module: ModuleType) -> bool:
    if module.available():
        return True
    print(f"{module.name} is not installed and left out", file=sys.stderr)
    return False


def _run_problem(
    name: str, entrants: list[ModuleType], arguments: argparse.Namespace
) -> dict[str, Any]:
    problem = (QUICK_PROBLEMS if arguments.quick else PROBLEMS)[name]()
    trainers = _prepare(problem, entrants, arguments.epochs)
    runs = _take_turns(trainers, arguments.rounds)
    rows = [report.summarise(problem, label, runs[label]) for label in trainers]
    verdicts = report.check(rows)
    report.print_rows(problem, rows, arguments.base)
    report.print_verdicts(verdicts)
    return {"problem": name, "rows": [asdict(row) for row in rows], "bars": verdicts}


def _run_suite(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    figures, verdicts = SUITES[name].run(arguments.rounds, arguments.quick)
    report.print_figures(name, figures)
    report.print_verdicts(verdicts)
    return {"figures": figures, "bars": verdicts}


def _prepare(problem: Problem, entrants: list[ModuleType], epochs: int) -> dict[str, Trainer]:
    return {
        f"{module.name} {variant}".strip(): module.make(problem, RANK, epochs, variant)
        for module in entrants
        for variant in getattr(module, "variants", ("",))
    }


def _take_turns(trainers: dict[str, Trainer], rounds: int) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {label: [] for label in trainers}
    for turn in range(1, rounds + 1):
        for label, train in trainers.items():
            print(f"round {turn}/{rounds}: {label}", file=sys.stderr)
            gc.collect()
            runs[label].append(train())
    return runs


def _process_figures(entrants: list[ModuleType], quick: bool) -> dict[str, float]:
    if all(module.name != "polyfm" for module in entrants):
        return {}
    figures = {bar.what: process.measure(bar.what, quick) for bar in report.PROCESS_BARS}
    print("\nnew processes")
    report.print_verdicts(report.check_process(figures))
    return figures


if __name__ == "__main__":
    sys.exit(main())
