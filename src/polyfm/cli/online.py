"""``polyfm online``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from polyfm import estimators
from polyfm.cli import _flags
from polyfm.cli._files import STDIN, TABLES, check_writable, size_of
from polyfm.cli._models import encoder_in, is_classifier, kept_notes, say
from polyfm.cli._progress import Progress
from polyfm.cli._reading import FORMATS, is_dataset
from polyfm.cli._reading import size_of as bytes_of
from polyfm.data import Dataset
from polyfm.data.batches import Batch
from polyfm.data.source import layout_of
from polyfm.online.progressive import Progressive, line_of
from polyfm.online.streams import iter_batches
from polyfm.persistence import load_pipeline, save_model

_FAMILIES: dict[str, str] = {
    "ftrl": "FTRL",
    "fm": "FM",
    "hierarchical-fm": "HierarchicalFM",
    "pqr": "PQR",
    "difacto": "DiFacto",
}
_DEFAULTS = {"random_state": 0}
_COLUMNS_OF_TABLES, _COLUMNS = 1 << 18, 1 << 24
_READING = ("file", "target", "numbers", "format", "separator", "zero_based", "batch_size")
"""Arguments that have to be the same when a run goes on."""
_EPILOG = """examples:
  polyfm online clicks.svm --model ftrl --penalty l1 --alpha 1 --output clicks.polyfm
  polyfm online clicks.csv --target click --model pqr --order 2000 --task classification
  polyfm online clicks.svm --model fm --checkpoint run.polyfm --every 100000
  polyfm online clicks.svm --model fm --checkpoint run.polyfm --every 100000 --resume

Each batch of rows is predicted before it is learnt, so the metrics are those of rows that the model
has not seen. A line per window tells them for its rows; the last line for all rows.

Tables: each cell is a category, name=cell, hashed to --max-features columns; --number names columns
that are numbers. svmlight and libffm files: columns are made as they come, up to --max-features.

Checkpoints: a checkpoint is a model file that holds the place in the file and the metrics, too. It
is replaced as a whole, so a run that is killed can --resume from the last one and come to the
same bits as one that was never stopped.

Models: what --help says of a flag is about the first kind of model that has it; other kinds have
flags of the same names with defaults of their own.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add description and arguments."""
    parser.description = "Learn a stream of rows, and judge the model as it goes by."
    parser.epilog = _EPILOG
    parser.add_argument(
        "file", metavar="FILE", help="svmlight, libffm, Vowpal Wabbit, CSV or Parquet, or a dataset"
    )
    parser.add_argument(
        "--format", choices=FORMATS, default="auto",
        help="of FILE; auto goes by its ending (default: auto)",
    )  # fmt: skip
    parser.add_argument("--separator", metavar="CHARACTER", help="between the cells of a CSV file")
    parser.add_argument("--target", metavar="COLUMN", help="what to predict, in a table")
    parser.add_argument(
        "--number", dest="numbers", action="append", default=[], metavar="COLUMN",
        help="a column of a CSV file that is a number; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--zero-based", action="store_true", help="the first column of the file is written 0"
    )
    parser.add_argument(
        "--model", choices=tuple(_FAMILIES), default="ftrl", help="kind of model (default: ftrl)"
    )
    parser.add_argument(
        "--task", choices=("auto", "regression", "classification"), default="auto",
        help="auto means classification if the first batch has two labels (default: auto)",
    )  # fmt: skip
    parser.add_argument(
        "--classes", metavar="A,B,...", help="all labels, where the first batch may lack one"
    )
    parser.add_argument(
        "--metrics", metavar="NAME,...", help="rmse, mae; log_loss, auc, accuracy (default: all)"
    )
    parser.add_argument(
        "--window", type=int, default=10_000, metavar="N", help="rows of a line (default: 10000)"
    )
    parser.add_argument(
        "--batch-size", type=int, default=1000, metavar="N", dest="rows_at_once",
        help="rows that are predicted before they are learnt (default: 1000)",
    )  # fmt: skip
    parser.add_argument("--output", metavar="MODEL", help="where to save the model at the end")
    parser.add_argument("--checkpoint", metavar="FILE", help="where to save what is done so far")
    parser.add_argument(
        "--every", type=int, default=100_000, metavar="N",
        help="rows from one checkpoint to the next, at the end of a batch (default: 100000)",
    )  # fmt: skip
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    group = parser.add_argument_group("model")
    told = {"batch_size"}
    for family in _FAMILIES:
        kinds = _kinds(family)
        _flags.add_flags(group, {family: kinds["regression"]}, _DEFAULTS, besides=told)
        told |= {name for kind in kinds.values() for name in _flags.documented(kind)}
    group.add_argument(
        "--class-weight", type=_flags.per_field, default=argparse.SUPPRESS,
        metavar="LABEL=X,...", help="weights of the classes",
    )  # fmt: skip


def _kinds(family: str) -> dict[str, type]:
    """Return the estimators of a family by task."""
    stem = _FAMILIES[family]
    return {
        "regression": getattr(estimators, f"{stem}Regressor"),
        "classification": getattr(estimators, f"{stem}Classifier"),
    }


def run(args: argparse.Namespace) -> None:
    """Learn the stream."""
    _check(args)
    run_ = _resumed(args) if args.resume else _begun(args)
    try:
        _go(args, run_)
    except KeyboardInterrupt:
        told = f"after {run_.n_rows:,} rows"
        if args.checkpoint and run_.n_rows:
            _save(args, run_, args.checkpoint)
            told += f"; they are in {args.checkpoint}, from which --resume goes on"
        raise KeyboardInterrupt(told) from None
    run_.close_window()
    _tell_total(run_)
    if args.output:
        _save(args, run_, args.output)
        say(args, f"saved to {args.output} ({size_of(args.output)})")


def _check(args: argparse.Namespace) -> None:
    if args.file == STDIN:
        raise ValueError("a stream is read from a file, which can be taken up again; name one.")
    for name in (args.output, args.checkpoint):
        if name is not None:
            check_writable(name, args.file)
    if args.every < 1:
        raise ValueError(f"--every must be at least 1, got {args.every}.")
    if args.resume and args.checkpoint is None:
        raise ValueError("--resume goes on from a checkpoint: name it by --checkpoint.")


def _batches(args: argparse.Namespace, skip: int, progress: Progress) -> Any:
    stream = Dataset(args.file) if is_dataset(args.file) else args.file
    return iter_batches(
        stream, args.rows_at_once, target=args.target, numbers=args.numbers,
        layout=args.format, separator=args.separator, zero_based=args.zero_based, skip=skip,
        progress=progress.add_bytes,
    )  # fmt: skip


def _format(args: argparse.Namespace) -> str:
    return "dataset" if is_dataset(args.file) else layout_of(args.file, args.format)


def _begun(args: argparse.Namespace) -> Progressive:
    """Make a model that suits the first batch."""
    first = next(_batches(args, 0, Progress.silent()), None)
    if first is None:
        raise ValueError(f"{args.file} has no rows.")
    task, classes = _task(args, first), None
    if task == "classification":
        classes = np.unique(
            first.targets.astype(str) if first.targets.dtype == object else first.targets
        )
        if args.classes is not None:
            words = args.classes.split(",")
            classes = np.array(words if classes.dtype.kind == "U" else list(map(float, words)))
        classes = np.sort(classes)
    kinds = _kinds(args.model)
    given = _given(args, kinds, task)
    is_table = _format(args) in TABLES
    given.setdefault("max_features", _COLUMNS_OF_TABLES if is_table else _COLUMNS)
    metrics = None if args.metrics is None else args.metrics.split(",")
    return Progressive(kinds[task](**given), metrics, args.window, classes)


def _given(args: argparse.Namespace, kinds: Mapping[str, type], task: str) -> dict[str, Any]:
    """Return the parameters among the arguments; refuse those of other kinds of models."""
    own = set(_flags.documented(kinds[task])) - {"batch_size"}
    families = [_kinds(family).values() for family in _FAMILIES]
    every = {name for kinds_ in families for kind in kinds_ for name in _flags.documented(kind)}
    for name in sorted(every - own - set(_DEFAULTS) - {"batch_size"}):
        if hasattr(args, name):
            flag = "--" + name.replace("_", "-")
            raise ValueError(f"{flag} is not for --model {args.model} in a {task}.")
    return {name: getattr(args, name) for name in own if hasattr(args, name)}


def _task(args: argparse.Namespace, first: Batch) -> str:
    if args.task != "auto":
        return str(args.task)
    several = first.targets.dtype.kind not in "iuf"
    return "classification" if several or len(np.unique(first.targets)) == 2 else "regression"


def _resumed(args: argparse.Namespace) -> Progressive:
    """Return a run as a checkpoint has it."""
    saved = load_pipeline(args.checkpoint)
    notes = saved.notes.get("online")
    if notes is None:
        raise ValueError(f"{args.checkpoint} is a model file, but no checkpoint of polyfm online.")
    before, now = notes["reading"], _reading(args)
    for name, value in now.items():
        if before[name] != value:
            raise ValueError(
                f"{name} was {before[name]!r} and is {value!r} now: a run goes on with the same "
                "rows only."
            )
    metrics = notes["progress"]["total"]["metrics"]
    run_ = Progressive(saved.model, metrics, args.window)
    run_.restore(notes["progress"])
    say(args, f"going on after {run_.n_rows:,} rows")
    return run_


def _reading(args: argparse.Namespace) -> dict[str, Any]:
    """Return what decides how the file is cut into batches."""
    values = {**vars(args), "file": str(Path(args.file).resolve()), "batch_size": args.rows_at_once}
    return {name: values[name] for name in _READING}


def _go(args: argparse.Namespace, run_: Progressive) -> None:
    bar = Progress(args, bytes_of([args.file]))
    for batch in _batches(args, run_.n_rows, bar):
        due = run_.n_rows // args.every
        if run_.take(batch):
            bar.erase()
            if run_.windows and not args.quiet:
                print(line_of(run_.windows[-1]), flush=True)
        if args.checkpoint and run_.n_rows // args.every > due:
            _save(args, run_, args.checkpoint)
        bar.add_rows(batch.n_rows)
    bar.erase()


def _save(args: argparse.Namespace, run_: Progressive, path: str) -> None:
    notes = {
        "format": _format(args),
        "task": "classification" if is_classifier(run_.model) else "regression",
        "zero_based": args.zero_based,
        "target": args.target,
    }
    encoder = None
    if notes["format"] in TABLES:
        notes["numbers"] = args.numbers
    elif notes["format"] == "dataset":
        dataset = Dataset(args.file)
        encoder, notes = encoder_in(dataset), {**notes, **kept_notes(dataset)}
    else:
        notes["dtype"] = "float64"
    if path == args.checkpoint:
        notes["online"] = {"reading": _reading(args), "progress": run_.state()}
    save_model(run_.model, path, encoder=encoder, notes=notes)


def _tell_total(run_: Progressive) -> None:
    found = run_.result()
    numbers = "  ".join(f"{name} {value:.5f}" for name, value in found.total.items())
    print(f"{found.n_rows:>12,} rows in all  {numbers}  {found.rows_per_second:,.0f} rows/s")
