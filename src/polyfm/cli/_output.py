"""Where results of many rows go: a CSV or Parquet file, or standard output."""

from __future__ import annotations

import csv
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from polyfm.cli._files import STDIN

_PARQUET = (".parquet", ".pq")


class Output(ABC):
    """Takes the rows of a table as they come."""

    @abstractmethod
    def write(self, columns: Sequence[NDArray[Any]]) -> None:
        """Write some rows, column by column."""


class CsvOutput(Output):
    """Lines of text, passed on batch by batch.

    Parameters
    ----------
    stream : text file
    names : sequence of str
        Of the columns.
    """

    def __init__(self, stream: TextIO, names: Sequence[str]) -> None:
        self._stream = stream
        self._writer = csv.writer(stream, lineterminator="\n")
        self._writer.writerow(names)

    def write(self, columns: Sequence[NDArray[Any]]) -> None:
        """Write lines."""
        texts = [_texts(column) for column in columns]
        if all(column.dtype.kind in "iuf" for column in columns):  # in which nothing is quoted
            lines = texts[0] if len(texts) == 1 else map(",".join, zip(*texts, strict=True))
            self._stream.write("\n".join(lines) + "\n")
        else:
            self._writer.writerows(zip(*texts, strict=True))
        self._stream.flush()


def _texts(column: NDArray[Any]) -> list[str]:
    """Return cells as text; numbers in their own precision: 3.1, not the double next to it."""
    texts: list[str] = column.astype(str).tolist()
    return texts


class ParquetOutput(Output):
    """A Parquet file, with a row group for each batch.

    Parameters
    ----------
    path : path
    names : sequence of str
        Of the columns.
    """

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self._path, self._names = path, list(names)
        self._file: Any = None

    def write(self, columns: Sequence[NDArray[Any]]) -> None:
        """Write a row group."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        arrays = [pa.array(c.tolist() if c.dtype.kind in "OU" else c) for c in columns]
        table = pa.table(dict(zip(self._names, arrays, strict=True)))
        if self._file is None:
            self._file = pq.ParquetWriter(self._path, table.schema)
        self._file.write_table(table)

    def close(self) -> None:
        """Write the end, without which the file cannot be read."""
        if self._file is not None:
            self._file.close()


def is_stdout(name: str | None) -> bool:
    """Whether results go to standard output."""
    return name in (None, STDIN)


def on_terminal(name: str | None) -> bool:
    """Whether results go to a terminal, where a progress bar would be among them."""
    return is_stdout(name) and sys.stdout.isatty()


@contextmanager
def open_output(name: str | None, names: Sequence[str]) -> Iterator[Output]:
    """Open a place for results; a file gets its name when all is written, and is not left in parts.

    Raises
    ------
    ImportError
        For a Parquet file, if there is no pyarrow.
    OSError
        If the file cannot be written.
    """
    if name is None or name == STDIN:
        yield CsvOutput(sys.stdout, names)
        return
    if Path(name).suffix.lower() in _PARQUET:
        _check_pyarrow()
        with _beside(Path(name)) as path:
            output = ParquetOutput(path, names)
            try:
                yield output
            finally:
                output.close()
        return
    with _beside(Path(name)) as path, path.open("w", encoding="utf-8", newline="") as stream:
        yield CsvOutput(stream, names)


def _beside(path: Path) -> Any:
    """Provide a path to write to; pipes and devices are written to as they are."""
    return nullcontext(path) if path.exists() and not path.is_file() else _replaced(path)


@contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _check_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError(
            "writing Parquet files needs pyarrow: pip install 'polyfm[arrow]'"
        ) from None


def shown_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers as integers, as files have them."""
    is_whole = labels.dtype.kind == "f" and bool(np.all(labels == np.floor(labels)))
    return labels.astype(np.int64) if is_whole else labels
