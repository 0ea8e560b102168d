"""``polyfm convert``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polyfm.cli._encoding import TableEncoding, add_encoder, add_encoding, check_encoding
from polyfm.cli._files import STDIN
from polyfm.cli._models import say
from polyfm.cli._progress import Progress
from polyfm.cli._reading import (
    Reading,
    TextReading,
    add_format,
    is_dataset,
    one_format,
    reading,
)
from polyfm.data import Batch, Dataset, DatasetWriter, TextFormatError
from polyfm.data._writing import SHARD_ROWS, check_place
from polyfm.data.lines import starts_at_zero
from polyfm.data.prefetch import prefetched

_EPILOG = """examples:
  polyfm convert train.svm train.data
  polyfm convert day_0.svm.gz day_1.svm.gz days.data --rows-per-shard 1000000
  polyfm convert clicks.csv clicks.data --target click --encoder hashing --bits 22
  zcat clicks.ffm.gz | polyfm convert - clicks.data --format libffm --overwrite

Tables are encoded on the way, and the encoder is kept with the rows. What the first 65,536 rows
suggest for columns of numbers holds for all; --min-count takes a pass more over the files.

OUT is a folder of files that are mapped into memory instead of being parsed. It gets its name when
all of it is written, and nothing is left of a run that fails; --overwrite replaces a former dataset
only then.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add description and arguments."""
    parser.description = "Write the rows of files into a dataset, which is read without parsing."
    parser.epilog = _EPILOG
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="the rows, in this order; - reads standard input"
    )
    parser.add_argument("out", metavar="OUT", help="the folder to write")
    add_format(parser)
    parser.add_argument(
        "--rows-per-shard", type=int, default=SHARD_ROWS, metavar="N",
        help=f"rows of each file of the dataset (default: {SHARD_ROWS})",
    )  # fmt: skip
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a dataset that is there already"
    )
    group = parser.add_argument_group("encoding of tables")
    add_encoder(group)
    add_encoding(group)


def run(args: argparse.Namespace) -> None:
    """Convert."""
    if args.out == STDIN:
        raise ValueError("a dataset is a folder; it cannot be written to standard output.")
    for name in args.files:
        if is_dataset(name):
            raise ValueError(f"{name} is a folder; convert takes files.")
    check_place(Path(args.out).absolute(), args.overwrite)
    check_encoding(args, one_format(args.files, args.format))
    stream = reading(args, args.files, TableEncoding(args))
    progress = Progress(args, stream.n_bytes)
    try:
        convert_rows(args, stream, progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("no dataset was written") from None
    finally:
        progress.erase()
    say(args, f"{Dataset(args.out)}")
    say(args, f"converted in {progress.seconds:.1f} s ({progress.rate})")


def convert_rows(args: argparse.Namespace, stream: Reading, progress: Progress) -> None:
    """Write; where indices are taken to start at 1 and one of 0 turns up, begin again."""
    if not isinstance(stream, TextReading):
        _write(args, stream, progress)
        return
    stream.first = 0 if args.zero_based == "true" else 1
    try:
        _write(args, stream, progress)
    except TextFormatError as error:
        if args.zero_based != "auto" or not starts_at_zero(error):
            raise
        if not stream.is_repeatable:
            raise ValueError(
                f"{error}; standard input is read once: say --zero-based true"
            ) from None
        stream.first = 0
        progress.restart()
        _write(args, stream, progress)


def _write(args: argparse.Namespace, stream: Reading, progress: Progress) -> None:
    with DatasetWriter(
        args.out,
        shard_rows=args.rows_per_shard,
        overwrite=args.overwrite,
        n_features=getattr(args, "n_features", None),
    ) as writer:
        for batch in _ahead(stream, stream.batches(progress)):
            writer.add(batch)
        if writer.n_rows == 0:
            raise ValueError(f"{' '.join(args.files)}: no rows in it.")
        notes: dict[str, Any] = {**stream.notes, "files": list(args.files)}
        if stream.field_names is not None:
            notes["field_names"] = stream.field_names
        writer.finish(notes=notes, **stream.kept())


def _ahead(stream: Reading, batches: Iterator[Batch]) -> Iterator[Batch]:
    """Let a thread parse one batch while another is written.

    Not from a pipe: a thread that waits for more of it could not be interrupted.
    """
    return prefetched(batches) if stream.is_repeatable else batches
