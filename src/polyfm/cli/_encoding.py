"""Tables to features: the flags, and what they come to."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from polyfm.cli._files import TABLES
from polyfm.data._table_encoder import NUMERIC
from polyfm.data.frames import Column, read_table

_ROWS_PER_CATEGORY = 5
_BINS = 10
HASH_BITS = 20


def add_encoding(group: Any) -> None:
    """Add the flags that say how columns of a table become features."""
    group.add_argument(
        "--numeric", action="append", default=[], metavar="[COLUMN=]HOW",
        help=f"for numbers: {', '.join(NUMERIC)}; may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--n-bins", type=int, default=_BINS, metavar="N", help=f"bins (default: {_BINS})"
    )
    group.add_argument(
        "--sets", action="append", default=[], metavar="COLUMN=SEPARATOR",
        help="a column whose cells are sets written as text; may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--min-count", type=int, default=1, metavar="N",
        help="rows in which a category must occur to become a feature (default: 1)",
    )  # fmt: skip


def check_encoding(args: argparse.Namespace, layout: str) -> None:
    """Refuse flags of encodings for files that they do not change.

    Raises
    ------
    ValueError
        Naming the flag.
    """
    is_table = layout in TABLES
    given = {
        "--encoder": args.encoder is not None,
        "--numeric": bool(args.numeric),
        "--n-bins": args.n_bins != _BINS,
        "--sets": bool(args.sets),
        "--min-count": args.min_count != 1,
    }
    flag = next((flag for flag, is_given in given.items() if is_given), None)
    if flag is not None and not is_table:
        raise ValueError(f"{flag} is for tables (CSV, Parquet); the rows are {layout}.")
    if args.n_bits is not None and layout != "vw" and not (is_table and args.encoder == "hashing"):
        raise ValueError("--bits is for --encoder hashing of tables, and for Vowpal Wabbit text.")


def sets(given: list[str]) -> dict[str, str]:
    """Return the columns of sets, with their separators.

    Raises
    ------
    ValueError
        For an argument of another form.
    """
    return dict(_pair("--sets", text) for text in given)


def numeric(given: list[str], columns: list[Column]) -> dict[str, str]:
    """Return how to encode each column of numbers, as the arguments say or the numbers suggest.

    Raises
    ------
    ValueError
        For a way that there is not, or a column that the file does not have.
    """
    named = [_pair("--numeric", text) if "=" in text else ("", text) for text in given]
    for name, how in named:
        if how not in NUMERIC:
            raise ValueError(f"--numeric must be one of {', '.join(NUMERIC)}, got {how!r}.")
        if name and name not in [column.name for column in columns]:
            raise ValueError(f"--numeric names a column {name!r} that the file does not have.")
    asked = {name: how for name, how in named if how != "auto"}
    default = asked.pop("", None)
    numbers = [column for column in columns if column.kind == "number"]
    return {column.name: default or _robust(column) for column in numbers} | asked


def _robust(column: Column) -> str:
    """Return "category" for codes, identifiers and small counts, "bin" for measurements."""
    values = np.asarray(column.values)[~column.missing]
    whole = values.dtype.kind in "biu" or bool(np.all(values == np.floor(values)))
    if whole and len(np.unique(values)) * _ROWS_PER_CATEGORY <= len(values):
        return "category"
    return "bin"


def _pair(flag: str, text: str) -> tuple[str, str]:
    name, equals, value = text.rpartition("=")
    if not equals or not value:
        raise ValueError(f"{flag} takes COLUMN=VALUE, got {text!r}.")
    return name, value


class TableEncoding:
    """Encodes the batches of a table.

    Parameters
    ----------
    args : argparse.Namespace
        The flags of :func:`add_encoding` and :func:`add_encoder`.

    Attributes
    ----------
    encoder : VocabularyEncoder or HashingEncoder
        The encoder, None before the first batch.
    is_counted : bool
        Whether all batches have to be learnt before the first can be encoded.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self.encoder: Any = None
        self.is_counted = args.encoder != "hashing" and args.min_count > 1
        if args.encoder == "hashing" and args.min_count != 1:
            raise ValueError("--min-count is for --encoder vocabulary.")

    def learn(self, rows: Any) -> None:
        """Learn columns from the first batch, and categories from each."""
        if self.encoder is None:
            self.encoder = self._made(rows)
        self.encoder.partial_fit(rows)

    def encode(self, rows: Any) -> Any:
        """Return a matrix; unless all is learnt, its columns become more with the categories."""
        if not self.is_counted:
            self.learn(rows)
        return self.encoder.transform(rows)

    def _made(self, rows: Any) -> Any:
        from polyfm.data import HashingEncoder, VocabularyEncoder

        args = self._args
        how = numeric(args.numeric, read_table(rows).columns)
        common: dict[str, Any] = {"numeric": how, "n_bins": args.n_bins, "sets": sets(args.sets)}
        if args.encoder == "hashing":
            return HashingEncoder(n_bits=args.n_bits or HASH_BITS, **common)
        return VocabularyEncoder(min_count=args.min_count, **common)


def add_encoder(group: Any) -> None:
    """Add the flags that choose an encoder of batches."""
    group.add_argument(
        "--encoder", choices=("vocabulary", "hashing"),
        help="a column for each category, or a hash of it (default: vocabulary)",
    )  # fmt: skip
    group.add_argument(
        "--bits", "--n-bits", type=int, metavar="B", dest="n_bits",
        help="of the hash, so that there are 2^B columns (default: 20; 18 for Vowpal Wabbit text)",
    )  # fmt: skip
