"""A model file and the rows of other files, brought together batch by batch."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyfm.cli._files import TABLES, as_wide_as, whole_numbers
from polyfm.cli._progress import Progress
from polyfm.cli._reading import (
    DatasetReading,
    Reading,
    TextReading,
    is_dataset,
    one_format,
)
from polyfm.cli._tables import EventReading, Known, TableReading
from polyfm.data import Batch, Dataset, TextFormatError
from polyfm.data._table_encoder import TableEncoder
from polyfm.data.lines import starts_at_zero
from polyfm.data.prefetch import prefetched
from polyfm.persistence import SavedModel, load_pipeline
from polyfm.persistence.files import encoder_of

_ENCODER = "encoder.json"
"""What polyfm convert calls the encoder of a table."""


class Prepared(NamedTuple):
    """Features of some rows as a model sees them, their targets and weights."""

    X: Any
    target: NDArray[Any] | None
    weight: NDArray[np.float64] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return Batch(*self).n_rows


def add_model(parser: Any) -> None:
    """Add the argument that names a model file."""
    parser.add_argument(
        "--model", required=True, metavar="MODEL", help="a model file, from polyfm train"
    )


def add_files(parser: Any) -> None:
    """Add the argument that names the rows for a model."""
    parser.add_argument(
        "files", metavar="FILE|DATASET", nargs="+",
        help="the rows; several files are taken as one, - is standard input",
    )  # fmt: skip


def say(args: argparse.Namespace, text: str) -> None:
    """Write a line about the work on standard error, unless told to be quiet."""
    if not args.quiet:
        print(text, file=sys.stderr)


class ModelRows:
    """Rows of files or of a dataset, as a model takes them.

    Parameters
    ----------
    args : argparse.Namespace
        With ``format``, ``separator``, ``zero_based`` and ``on_error``.
    names : sequence of str
        The files, or the dataset.
    saved : SavedModel
        The model, or what is known of one that is to be trained.
    target : str, optional
        The column of the targets of a table.
    labels : bool
        Whether targets are read.

    Raises
    ------
    ValueError
        If the files are of another kind than those that the model was trained on.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        names: Sequence[str],
        saved: SavedModel,
        *,
        labels: bool,
        target: str | None = None,
    ) -> None:
        self._names, self._saved, self._labels = names, saved, labels
        self.n_lost = 0
        if len(names) == 1 and is_dataset(names[0]):
            self.reading: Reading = self._of_dataset(names[0])
            return
        layout = one_format(names, args.format)
        _check_kind(names[0], layout, saved)
        if layout in TABLES:
            self.reading = self._of_tables(args, names, layout, target)
        else:
            self.reading = self._of_text(args, names, layout)

    def _of_dataset(self, name: str) -> Reading:
        dataset = Dataset(name)
        check_same_columns(dataset, self._saved)
        if self._labels and not dataset.has_targets:
            raise ValueError(f"{name} has no targets.")
        return DatasetReading(name)

    def _of_tables(
        self, args: argparse.Namespace, names: Sequence[str], layout: str, target: str | None
    ) -> Reading:
        target = target or self._saved.notes.get("target")
        if self._labels and target is None:
            raise ValueError("the model file names no target: give --target COLUMN.")
        if self._saved.encoder is None:
            numbers = self._saved.notes.get("numbers")
            return EventReading(args, names, layout, target, self._labels, numbers)
        options = argparse.Namespace(**{**vars(args), "target": target if self._labels else None})
        encoder = self._saved.encoder
        columns = list(getattr(encoder, "feature_names_in_", [])) or None
        return TableReading(options, names, layout, Known(encoder), columns)

    def _of_text(self, args: argparse.Namespace, names: Sequence[str], layout: str) -> TextReading:
        notes = self._saved.notes
        stream = TextReading(
            names, layout, self._labels, with_fields=False, on_error=args.on_error,
            n_bits=_bits_of(names[0], self._saved) if layout == "vw" else 1,
            dtype=notes.get("dtype", "float32"),
        )  # fmt: skip
        stream.first = 1
        if args.zero_based != "auto" or "zero_based" in notes:
            asked = args.zero_based if args.zero_based != "auto" else notes["zero_based"]
            stream.first = 0 if str(asked).lower() == "true" else 1
        elif layout != "vw" and stream.is_repeatable:
            stream.find_first()
        return stream

    @property
    def n_bytes(self) -> int | None:
        """Bytes of all files, where they are known."""
        return self.reading.n_bytes

    def batches(self, progress: Progress) -> Iterator[Prepared]:
        """Read; ``progress`` is told bytes and rows.

        Raises
        ------
        ValueError
            For a line that cannot be read, and if there are no rows.
        """
        batches = self.reading.batches(progress)
        if self.reading.is_repeatable:  # a thread that waits for a pipe cannot be interrupted
            batches = prefetched(batches)
        n_rows = 0
        try:
            for batch in batches:
                n_rows += batch.n_rows
                if batch.n_rows:
                    yield self._prepared(batch)
        except TextFormatError as error:
            if self.reading.is_repeatable or not starts_at_zero(error):
                raise
            raise ValueError(f"{error}; if indices start at 0, say --zero-based true") from None
        if n_rows == 0:
            raise ValueError(f"{' '.join(self._names)}: no rows in it.")

    def _prepared(self, batch: Batch) -> Prepared:
        X = batch.X
        if sp.issparse(X):
            X, n_lost = as_wide_as(X, int(self._saved.model.n_features_in_))
            self.n_lost += n_lost
        target = whole_numbers(batch.targets) if self._labels else None
        return Prepared(X, target, batch.weight)

    def whole(self) -> Prepared:
        """Return all rows at once."""
        parts = list(self.batches(Progress.silent()))
        if not sp.issparse(parts[0].X):
            raise ValueError("the model hashes names, and has no columns to look for.")
        return Prepared(sp.vstack([part.X for part in parts], format="csr"), *_joined(parts))

    def tell_lost(self, args: argparse.Namespace) -> None:
        """Say how many entries had no place in the model."""
        if self.n_lost:
            say(
                args,
                f"{self.n_lost:,} entries with indices that the model does not know are ignored.",
            )


def _joined(parts: list[Prepared]) -> tuple[NDArray[Any] | None, NDArray[np.float64] | None]:
    target = weight = None
    if parts[0].target is not None:
        target = np.concatenate([part.target for part in parts if part.target is not None])
    if any(part.weight is not None for part in parts):
        weights = (np.ones(p.n_rows) if p.weight is None else p.weight for p in parts)
        weight = np.concatenate(list(weights))
    return target, weight


def _check_kind(name: str, layout: str, saved: SavedModel) -> None:
    hashes = hasattr(saved.model, "_hashed_into")
    if layout in TABLES and saved.encoder is None and not hashes:
        raise ValueError(
            f"{name} is a table, but the model was trained on numbered features and has no "
            "encoder of columns: give it an svmlight or libffm file."
        )
    if layout not in TABLES and hashes:
        raise ValueError(
            f"{name} is a {layout} file, but the model was trained on names, which it hashes: give "
            "it a CSV or Parquet file."
        )
    if layout not in TABLES and saved.encoder is not None:
        raise ValueError(
            f"{name} is a {layout} file, but the model was trained on the columns of a table "
            f"({', '.join(saved.encoder.field_names_[:4])}, ...): give it a CSV or Parquet file "
            "with these columns."
        )


def _bits_of(name: str, saved: SavedModel) -> int:
    n_features = int(saved.model.n_features_in_)
    bits = n_features.bit_length() - 1
    if n_features != 2**bits:
        raise ValueError(
            f"{name} is Vowpal Wabbit text, whose names are hashed to a power of 2 of columns, but "
            f"the model has {n_features:,} columns: it was trained on other files."
        )
    return bits


def encoder_in(dataset: Dataset) -> TableEncoder | None:
    """Return the encoder that is kept with a dataset."""
    if _ENCODER not in dataset.attachments:
        return None
    return encoder_of(dataset.attachment(_ENCODER).decode())


def kept_notes(dataset: Dataset) -> dict[str, Any]:
    """Return what a model has to remember of the files that a dataset was made from."""
    kept = ("format", "zero_based", "target")
    return {"format": "dataset", **{k: dataset.notes[k] for k in kept if k in dataset.notes}}


def check_same_columns(dataset: Dataset, saved: SavedModel) -> None:
    """Raise a ValueError where the columns of a dataset are not those of a model."""
    name, notes = dataset.path, dataset.notes
    encoder = dataset.attachment(_ENCODER) if _ENCODER in dataset.attachments else None
    if saved.encoder is not None and not _is_encoding(encoder, saved.encoder):
        raise ValueError(
            f"{name} was not made by the encoder of the model, so that its columns mean something "
            "else: give the tables themselves."
        )
    its, ours = notes.get("zero_based"), saved.notes.get("zero_based")
    if its is not None and ours is not None and its != ours:
        raise ValueError(
            f"the files of {name} count columns from {int(not its)}, those that the model was "
            f"trained on from {int(not ours)}: convert with --zero-based {str(ours).lower()}."
        )
    hashed = "vw" in (notes.get("format"), saved.notes.get("format")) or encoder is not None
    if hashed and dataset.n_features != saved.model.n_features_in_:
        raise ValueError(
            f"{name} has {dataset.n_features:,} columns, but the model "
            f"{saved.model.n_features_in_:,}."
        )


def _is_encoding(text: bytes | None, encoder: Any) -> bool:
    if text is None:
        return False
    return bool(_essence(text.decode()) == _essence(encoder.to_json()))


def _essence(text: str) -> Any:
    """Return what an encoder's columns hang on: not how many values a hash has met."""
    state = json.loads(text)
    for column in state.get("columns", ()):
        column.pop("counted", None)
    return state


def load(args: argparse.Namespace) -> SavedModel:
    """Read the model file that the arguments name."""
    return load_pipeline(args.model)


def is_classifier(model: Any) -> bool:
    """Whether a model predicts labels."""
    return hasattr(model, "classes_")
