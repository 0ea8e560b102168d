"""``polyfm predict``."""

from __future__ import annotations

import argparse
import csv
from typing import Any

from polyfm.cli._files import STDIN, add_source, check_writable, write_to
from polyfm.cli._models import add_model, is_classifier, load, prepare, say

_EPILOG = """examples:
  polyfm predict new.csv --model income.polyfm --output predictions.csv
  polyfm predict new.csv --model income.polyfm --proba | head
  cat test.svm | polyfm predict - --format svmlight --model clicks.polyfm

The file needs the columns (or the numbered features) that the model was trained on; other columns,
the target among them, are ignored, and so are categories and indices that training has not seen.
Labels in svmlight and libffm files may be there or not.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add description and arguments."""
    parser.description = "Predict the rows of a file; one line for each, after a header."
    parser.epilog = _EPILOG
    add_source(parser)
    add_model(parser)
    parser.add_argument("--output", metavar="CSV", help="where to write (default: standard output)")
    parser.add_argument(
        "--proba", action="store_true", help="write the probability of each label, not the label"
    )


def run(args: argparse.Namespace) -> None:
    """Predict."""
    if args.output not in (None, STDIN):
        check_writable(args.output, args.file, args.model)
    saved = load(args)
    if args.proba and not is_classifier(saved.model):
        raise ValueError("--proba is for labels, but the model predicts numbers.")
    X, _ = prepare(args, saved, labels=False)
    header, rows = _predictions(saved.model, X, args.proba)
    with write_to(args.output) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    if args.output not in (None, STDIN):
        say(args, f"{X.shape[0]:,} predictions written to {args.output}")


def _predictions(model: Any, X: Any, proba: bool) -> tuple[list[str], Any]:
    if proba:
        return [f"proba_{label}" for label in model.classes_], model.predict_proba(X).astype(str)
    # As text in their own precision: 3.1, not the double next to the single 3.1.
    return ["prediction"], model.predict(X).astype(str)[:, None]
