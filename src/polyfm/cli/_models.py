"""A model file and the rows of another file, brought together."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NamedTuple

from numpy.typing import NDArray

from polyfm.cli._files import TABLES, Source, as_wide_as, opened, read_sparse, read_table
from polyfm.persistence import SavedModel, load_pipeline


class Prepared(NamedTuple):
    """Features of a file's rows as a model sees them, and their targets."""

    X: Any
    target: NDArray[Any] | None


def add_model(parser: Any) -> None:
    """Add the argument that names a model file."""
    parser.add_argument(
        "--model", required=True, metavar="MODEL", help="a model file, from polyfm train"
    )


def say(args: argparse.Namespace, text: str) -> None:
    """Write a line about the work on standard error, unless told to be quiet."""
    if not args.quiet:
        print(text, file=sys.stderr)


def prepare(args: argparse.Namespace, saved: SavedModel, *, labels: bool) -> Prepared:
    """Read the rows of ``args.file`` for a model.

    Raises
    ------
    ValueError
        If the file is of another kind than the one that the model was trained on.
    """
    with opened(args.file, args.format, args.separator) as source:
        _check_kind(source, saved)
        if source.format in TABLES:
            target = (
                (getattr(args, "target", None) or saved.notes.get("target")) if labels else None
            )
            if labels and target is None:
                raise ValueError("the model file names no target: give --target COLUMN.")
            content = read_table(source, target)
            return Prepared(saved.encoder.transform(content.rows), content.target)  # type: ignore[union-attr]
        source = source._replace(zero_based=saved.notes.get("zero_based", "auto"))
        content, _ = read_sparse(source, labels=labels)
    X, n_lost = as_wide_as(content.rows, int(saved.model.n_features_in_))
    if n_lost:
        say(args, f"{n_lost:,} entries with indices that the model does not know are ignored.")
    return Prepared(X, content.target)


def _check_kind(source: Source, saved: SavedModel) -> None:
    if source.format in TABLES and saved.encoder is None:
        raise ValueError(
            f"{source.path} is a table, but the model was trained on numbered features and has no "
            "encoder of columns: give it an svmlight or libffm file."
        )
    if source.format not in TABLES and saved.encoder is not None:
        raise ValueError(
            f"{source.path} is a {source.format} file, but the model was trained on the columns "
            f"of a table ({', '.join(saved.encoder.field_names_[:4])}, ...): give it a CSV or "
            "Parquet file with these columns."
        )


def load(args: argparse.Namespace) -> SavedModel:
    """Read the model file that the arguments name."""
    return load_pipeline(args.model)


def is_classifier(model: Any) -> bool:
    """Whether a model predicts labels."""
    return hasattr(model, "classes_")
