"""``polyfm reproduce``: run an experiment on real data and print its table."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

_EXAMPLE = """example:
  POLYFM_DATA=~/data polyfm reproduce movielens-100k --csv ratings.csv
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument("name", metavar="NAME", nargs="?", help="the experiment; none lists them")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write the table there")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="also draw it there, as PNG")
    parser.add_argument("--full", action="store_true", help="the long version, where there is one")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")


def run(args: argparse.Namespace) -> None:
    """Run the experiment."""
    from polyfm.experiments import EXPERIMENTS

    if args.name is None:
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:19} {(experiment.__doc__ or '').splitlines()[0]}")
        return
    if args.name not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise ValueError(f"there is no experiment {args.name!r}; choose one of {known}.")
    report = EXPERIMENTS[args.name](**_options(EXPERIMENTS[args.name], args))
    print(report.to_markdown() if args.markdown else report.to_text())
    if args.csv is not None:
        args.csv.write_text(report.to_csv())
    if args.figure is not None:
        report.save_figure(args.figure)


def _options(experiment: Callable[..., Any], args: argparse.Namespace) -> dict[str, bool]:
    if not args.full:
        return {}
    if "full" not in inspect.signature(experiment).parameters:
        raise ValueError(f"the experiment {args.name!r} has no long version: leave --full out.")
    return {"full": True}
