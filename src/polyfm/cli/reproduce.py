"""``polyfm reproduce``: run an experiment on real data and print its table."""

from __future__ import annotations

import argparse
from pathlib import Path

_EXAMPLE = """example:
  POLYFM_DATA=~/data polyfm reproduce movielens-100k --csv ratings.csv
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments."""
    parser.epilog = _EXAMPLE
    parser.add_argument("name", metavar="NAME", nargs="?", help="the experiment; none lists them")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write the table there")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")


def run(args: argparse.Namespace) -> None:
    """Run the experiment."""
    from polyfm.experiments import EXPERIMENTS

    if args.name is None:
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:16} {(experiment.__doc__ or '').splitlines()[0]}")
        return
    if args.name not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise ValueError(f"there is no experiment {args.name!r}; choose one of {known}.")
    report = EXPERIMENTS[args.name]()
    print(report.to_markdown() if args.markdown else report.to_text())
    if args.csv is not None:
        args.csv.write_text(report.to_csv())
