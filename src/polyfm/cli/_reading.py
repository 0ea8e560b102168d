"""Files and datasets as streams of batches, for commands that take data of any size."""

from __future__ import annotations

import argparse
import glob
import os
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.cli._files import STDIN, TABLES
from polyfm.cli._progress import Progress
from polyfm.data import (
    Batch,
    Dataset,
    ReadReport,
    TextFormatError,
    iter_libffm,
    iter_svmlight,
    iter_vw,
)
from polyfm.data._sources import open_sources
from polyfm.data.lines import starts_at_zero
from polyfm.data.source import is_pipe, layout_by_ending
from polyfm.data.survey import Survey

BATCH_ROWS = 65_536
FORMATS = ("auto", "svmlight", "libffm", "vw", "csv", "parquet")
_HEAD = 1 << 16
VW_BITS = 18


class Reading:
    """Rows that are read batch by batch.

    Attributes
    ----------
    format : str
        Of the files.
    n_bytes : int or None
        Of the files, where it is known.
    n_columns : int or None
        Number of columns, where it is known beforehand.
    is_repeatable : bool
        Whether the rows can be read again.
    """

    format: str
    n_bytes: int | None = None
    n_columns: int | None = None
    is_repeatable = True

    def batches(self, progress: Progress) -> Iterator[Batch]:
        """Read; ``progress`` is told bytes and rows."""
        raise NotImplementedError

    @property
    def fields(self) -> NDArray[np.int64] | None:
        """The field of each column that was read so far."""
        return None

    @property
    def field_names(self) -> list[str] | None:
        """Names of the fields."""
        return None

    @property
    def notes(self) -> dict[str, Any]:
        """What a model, or a dataset, has to remember of the files."""
        return {"format": self.format}

    def kept(self) -> dict[str, Any]:
        """Return what a dataset keeps beside the rows, when all are read."""
        return {"fields": self.fields}

    @property
    def distinct(self) -> NDArray[np.int64] | None:
        """Estimates of the different values of each field, where columns are hashes of them."""
        return None

    def first_index(self, survey: Survey) -> int | None:
        """Return what the file writes for the first column; None if it writes no numbers."""
        return None


class DatasetReading(Reading):
    """Rows of a dataset."""

    format = "dataset"

    def __init__(self, path: str) -> None:
        self._dataset = Dataset(path)
        self.n_bytes, self.n_columns = self._dataset.n_bytes, self._dataset.n_features

    def batches(self, progress: Progress) -> Iterator[Batch]:
        """Take the rows from the map."""
        share = self._dataset.n_bytes / max(self._dataset.n_rows, 1)
        for batch in self._dataset.iter_batches(BATCH_ROWS):
            yield batch
            progress.add_rows(batch.n_rows)
            progress.add_bytes(int(share * batch.n_rows))

    @property
    def fields(self) -> NDArray[np.int64] | None:
        """The field of each column."""
        return self._dataset.fields

    @property
    def field_names(self) -> list[str] | None:
        """Names of the fields, as they were noted."""
        return self._dataset.notes.get("field_names")


class TextReading(Reading):
    """Rows of svmlight, libffm or Vowpal Wabbit files.

    Parameters
    ----------
    names : sequence of str
        The files.
    layout : str
        Their format.
    labels : bool
        Whether each row has a label.
    with_fields : bool, default=True
        Whether to keep the field of each column.
    on_error : {"raise", "skip"}, default="raise"
        What to do with a line that cannot be read.
    n_bits : int, default=18
        Of Vowpal Wabbit's hash.
    dtype : dtype, default="float32"
        Of the values.

    Attributes
    ----------
    first : int
        The index of the first column.
    """

    def __init__(
        self,
        names: Sequence[str],
        layout: str,
        labels: bool,
        *,
        with_fields: bool = True,
        on_error: str = "raise",
        n_bits: int = VW_BITS,
        dtype: str = "float32",
    ) -> None:
        self.format, self._names, self._labels = layout, list(names), labels
        self._with_fields, self._n_bits = with_fields, n_bits
        self._common = {"on_error": on_error, "dtype": dtype, "batch_rows": BATCH_ROWS}
        self.n_bytes, self.is_repeatable = size_of(names), not any(map(is_pipe, names))
        self._report = ReadReport()
        self.first = 0

    def batches(self, progress: Progress) -> Iterator[Batch]:
        """Parse the lines."""
        self._report = ReadReport()
        for batch in unchanged(self._names, self._open(progress)):
            yield batch
            progress.add_rows(batch.n_rows)

    def _open(self, progress: Progress) -> Iterator[Batch]:
        common: dict[str, Any] = {
            **self._common, "labels": self._labels, "progress": progress.add_bytes,
            "report": self._report if self._with_fields else None,
        }  # fmt: skip
        if self.format == "vw":
            return iter_vw(self._names, n_bits=self._n_bits, **common)
        read = iter_svmlight if self.format == "svmlight" else iter_libffm
        return read(self._names, zero_based=self.first == 0, **common)

    def find_first(self) -> None:
        """Read all lines to find out whether indices start at 0."""
        self.first = 1
        try:
            for _ in self._open(Progress.silent()):
                pass
        except TextFormatError as error:
            if starts_at_zero(error):  # whatever else is wrong is found again
                self.first = 0

    @property
    def fields(self) -> NDArray[np.int64] | None:
        """The field of each column that was read so far, -1 for several or none."""
        return self._report.fields

    @property
    def field_names(self) -> list[str] | None:
        """Names of the namespaces."""
        return self._report.field_names

    @property
    def notes(self) -> dict[str, Any]:
        """Format, and the index of the first column."""
        if self.format == "vw":
            return super().notes
        return {"format": self.format, "zero_based": self.first == 0}

    def first_index(self, survey: Survey) -> int | None:
        """Return 0 if rows that were read from 0 on have such an index, or else 1."""
        if self.format == "vw":
            return None
        return int(survey.smallest_column != 0) if survey.nnz else self.first


def unchanged(names: Sequence[str], batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yield batches of files; raise a ValueError in the end if one was written to meanwhile."""
    before = _stamps(names)
    yield from batches
    for path, stamp in _stamps(names).items():
        if before.get(path) != stamp:
            raise ValueError(f"{path} has changed while it was read: wait until it is complete.")


def _stamps(names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return size and time of the last change of each file on disk."""
    paths = [path for name in names for path in _paths_of(name)]
    states = {path: os.stat(path) for path in paths if os.path.isfile(path)}
    return {path: (state.st_size, state.st_mtime_ns) for path, state in states.items()}


def _paths_of(name: str) -> list[str]:
    plain = os.path.exists(name) or not glob.has_magic(name)
    return [name] if plain else sorted(glob.glob(name, recursive=True))


def is_dataset(name: str) -> bool:
    """Whether a name is that of a folder, which only a dataset can be."""
    return name != STDIN and Path(name).is_dir()


def reading(args: argparse.Namespace, names: Sequence[str], encoding: Any) -> Reading:
    """Find out how to read files, or a dataset; ``encoding`` makes matrices of tables.

    Raises
    ------
    ValueError
        For files of several formats, or of none that is known.
    OSError
        If one cannot be read.
    """
    if len(names) == 1 and is_dataset(names[0]):
        return DatasetReading(names[0])
    layout = one_format(names, args.format)
    if layout in TABLES:
        from polyfm.cli._tables import TableReading

        return TableReading(args, names, layout, encoding)
    on_error = getattr(args, "on_error", "raise")
    bits = getattr(args, "n_bits", None) or VW_BITS
    return TextReading(names, layout, labels=not args.unlabelled, on_error=on_error, n_bits=bits)


def one_format(names: Sequence[str], layout: str) -> str:
    """Return the format of files, of which there can be one only.

    Raises
    ------
    ValueError
        For files of several formats, or of none that is known.
    """
    for name in names:
        if is_dataset(name):
            raise ValueError(f"{name} is a folder; several datasets are not read as one.")
    formats = sorted({format_of(name, layout) for name in names})
    if len(formats) > 1:
        raise ValueError(f"files of one format are needed, got {' and '.join(formats)}.")
    return formats[0]


def add_format(parser: Any) -> None:
    """Add the arguments that tell the format of files, and what in them is the target."""
    add_layout(parser)
    parser.add_argument("--target", metavar="COLUMN", help="the column of the labels, in a table")
    parser.add_argument(
        "--unlabelled", action="store_true", help="lines of text may lack a label; none is read"
    )


def add_layout(parser: Any) -> None:
    """Add the arguments that tell the format of files."""
    parser.add_argument(
        "--format", choices=FORMATS, default="auto",
        help="of FILE; auto goes by its ending, else by its first line (default: auto)",
    )  # fmt: skip
    parser.add_argument(
        "--separator", metavar="CHARACTER",
        help="between the cells of a CSV file (default: a comma; a tab in .tsv files)",
    )  # fmt: skip
    for kind, words in (("text", "text, however its first cells look"), ("number", "numbers")):
        parser.add_argument(
            f"--{kind}", action="append", default=[], metavar="COLUMN", dest=f"{kind}_columns",
            help=f"a column of a CSV file that holds {words}; may be repeated",
        )  # fmt: skip
    parser.add_argument(
        "--zero-based", choices=("auto", "true", "false"), default="auto",
        help="whether indices of svmlight and libffm files start at 0 (default: auto)",
    )  # fmt: skip


def add_on_error(parser: Any) -> None:
    """Add the argument that says what to do with bad lines."""
    parser.add_argument(
        "--on-error", choices=("raise", "skip"), default="raise",
        help="what to do with a line that cannot be read: end, or leave it out and tell how many "
        "there were (default: raise)",
    )  # fmt: skip


def format_of(name: str, layout: str) -> str:
    """Return the format of a file: as said, by its ending, or by its first line.

    Raises
    ------
    ValueError
        If none of these tells it.
    """
    if layout != "auto":
        return layout
    known = layout_by_ending(name)
    if known is not None:
        return known
    if name != STDIN and is_pipe(name):
        raise ValueError(f"{name} is a pipe, whose rows come once: name their format by --format.")
    start = _start_of_stdin() if name == STDIN else _start_of(name)
    shown = "standard input" if name == STDIN else name
    return "parquet" if start.startswith(b"PAR1") else _format_of_lines(shown, start)


def _start_of(name: str) -> bytes:
    for opened in open_sources(name):
        return opened.stream.read(_HEAD)
    return b""


def _start_of_stdin() -> bytes:
    """Look at the first bytes of standard input without taking them."""
    stdin: Any = sys.stdin.buffer
    start: bytes = stdin.peek(_HEAD)
    if start.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(wbits=31).decompress(start)
    return start


def _format_of_lines(name: str, start: bytes) -> str:
    lines = (line for line in start.splitlines() if line.split(b"#")[0].strip())
    line = next(lines, None)
    if line is None:
        raise ValueError(f"{name} is empty.")
    if re.search(rb"(^|\s)\|\S*(\s|$)", line):
        return "vw"
    words = line.split(b"#")[0].split()
    colons = {word.count(b":") for word in words if not word.startswith(b"qid:")} - {0}
    if colons in ({1}, {2}) and b"," not in line:
        return "svmlight" if colons == {1} else "libffm"
    if any(mark in line for mark in (b",", b";", b"\t")):
        return "csv"
    raise ValueError(f"{name}: cannot tell the format; name it with --format.")


def size_of(names: Sequence[str]) -> int | None:
    """Return the bytes of all files, as they lie; None if one does not tell."""
    total = 0
    for name in names:
        try:
            total += sum(os.path.getsize(path) for path in _paths_of(name))
        except OSError:  # standard input, or an address
            return None
    return total
