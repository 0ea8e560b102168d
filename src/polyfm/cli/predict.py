"""``polyfm predict``."""

from __future__ import annotations

import argparse
from typing import Any

from numpy.typing import NDArray

from polyfm.cli._files import check_writable
from polyfm.cli._models import ModelRows, add_files, add_model, is_classifier, load, say
from polyfm.cli._output import is_stdout, on_terminal, open_output, shown_labels
from polyfm.cli._progress import Progress
from polyfm.cli._reading import add_layout, add_on_error

_EPILOG = """examples:
  polyfm predict new.csv --model income.polyfm --output predictions.csv
  polyfm predict new.csv --model income.polyfm --proba | head
  polyfm predict day_1.svm.gz day_2.svm.gz --model clicks.polyfm --output clicks.parquet
  cat test.svm | polyfm predict - --format svmlight --model clicks.polyfm

The rows are read, predicted and written batch by batch, so that files may be of any size. They need
the columns (or the numbered features) that the model was trained on; other columns, the target
among them, are ignored, and so are categories and indices that training has not seen. Labels in
svmlight, libffm and Vowpal Wabbit files may be there or not.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add description and arguments."""
    parser.description = (
        "Predict the rows of files or of a dataset; one line for each, after a header."
    )
    parser.epilog = _EPILOG
    add_files(parser)
    add_layout(parser)
    add_on_error(parser)
    add_model(parser)
    parser.add_argument(
        "--output", metavar="FILE",
        help="where to write, CSV or .parquet (default: CSV to standard output)",
    )  # fmt: skip
    parser.add_argument(
        "--proba", action="store_true", help="write the probability of each label, not the label"
    )


def run(args: argparse.Namespace) -> None:
    """Predict."""
    if not is_stdout(args.output):
        check_writable(args.output, *args.files, args.model)
    saved = load(args)
    if args.proba and not is_classifier(saved.model):
        raise ValueError("--proba is for labels, but the model predicts numbers.")
    rows = ModelRows(args, args.files, saved, labels=False)
    progress = Progress(args, rows.n_bytes, shows=not on_terminal(args.output))
    n_rows = 0
    try:
        with open_output(args.output, _names(saved.model, args.proba)) as output:
            for batch in rows.batches(progress):
                output.write(_columns(saved.model, batch.X, args.proba))
                n_rows += batch.n_rows
    finally:
        progress.erase()
    rows.tell_lost(args)
    if not is_stdout(args.output):
        say(
            args,
            f"{n_rows:,} predictions written to {args.output} in {progress.seconds:.1f} s "
            f"({progress.rate})",
        )


def _names(model: Any, proba: bool) -> list[str]:
    if not proba:
        return ["prediction"]
    return [f"proba_{label}" for label in shown_labels(model.classes_).tolist()]


def _columns(model: Any, X: Any, proba: bool) -> list[NDArray[Any]]:
    if proba:
        return list(model.predict_proba(X).T)
    labels = model.predict(X)
    if not is_classifier(model):
        return [labels]
    return [labels.astype(shown_labels(model.classes_).dtype)]
