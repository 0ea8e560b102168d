"""CSV files block by block: pyarrow reads, and Python says what is wrong with the rest."""

from __future__ import annotations

import csv
import io
import itertools
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from polyfm.data._csv_scan import last_record
from polyfm.data.lines import TextFormatError
from polyfm.data.report import ReadReport

__all__ = ["Block", "CsvReader", "blocks", "check_kinds", "first_gap"]

_LONGEST = 1 << 26  # bytes of a record
_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\r|\n")
_SHOWN = 60
_KINDS = ("number", "text")


class Block(NamedTuple):
    """Whole records of a file."""

    text: bytes
    line: int
    """Number of the first line, from 1."""


def blocks(name: str, stream: Any, separator: str, size: int) -> Iterator[Block]:
    """Cut a stream into blocks of about so many bytes.

    Raises
    ------
    TextFormatError
        For a quoted cell that does not end.
    """
    rest, line = stream.read(size).removeprefix(_BOM), 1
    while rest:
        more = stream.read(size)
        end, opened = (len(rest), -1) if not more and b'"' not in rest else _ends(rest, separator)
        if opened >= 0 and (not more or len(rest) > _LONGEST):
            raise TextFormatError(
                name,
                line + _n_lines(rest[:opened]),
                "a quoted cell that does not end",
                rest[opened : opened + _SHOWN].decode("utf-8", "replace"),
            )
        end = end if more else len(rest)
        if end:
            yield Block(rest[:end], line)
            line += _n_lines(rest[:end])
        rest = rest[end:] + more


def _n_lines(text: bytes) -> int:
    """Count line ends; a return ends a line, unless a newline follows that does."""
    n_returns = text.count(b"\r")
    return text.count(b"\n") + (n_returns - text.count(b"\r\n") if n_returns else 0)


def _ends(text: bytes, separator: str) -> tuple[int, int]:
    if b'"' not in text:
        # What follows a return at the end is not known yet.
        return max(text.rfind(b"\n"), text.rfind(b"\r", 0, len(text) - 1)) + 1, -1
    return last_record(np.frombuffer(text, dtype=np.uint8), ord(separator))  # type: ignore[no-any-return]


class CsvReader:
    """Turns blocks of CSV files, of one kind all of them, into Arrow tables.

    Parameters
    ----------
    separator : str
        Between two cells.
    header : bool
        Whether the first line of each file holds the names.
    kinds : mapping of str to {"number", "text"}
        What columns hold; others are what the first block suggests.
    required : tuple of str
        Columns without missing cells.
    on_error : {"raise", "skip"}
        What to do with a record that cannot be read.
    report : ReadReport or None
        Is told of records that are left out.
    wanted : tuple of str, optional
        The columns of the tables, if not all.
    weight : str, optional
        The column of required ones that holds weights of the rows.
    """

    def __init__(
        self,
        separator: str,
        header: bool,
        kinds: Mapping[str, str],
        required: tuple[str, ...],
        on_error: str,
        report: ReadReport | None,
        wanted: tuple[str, ...] | None = None,
        weight: str | None = None,
    ) -> None:
        self._wanted, self._weight = wanted, weight
        self._separator, self._header, self._kinds = separator, header, kinds
        self._required, self._on_error, self._report = required, on_error, report
        self._names: list[str] = []
        self._types: dict[str, Any] = {}
        self._origin = ""
        self._errors: list[TextFormatError] = []

    def tables(self, name: str, stream: Any, size: int) -> Iterator[tuple[Any, int]]:
        """Read a file; yields tables, and how many bytes of text they were."""
        self._errors = []
        parts = blocks(name, stream, self._separator, size)
        first = next(parts, None)
        if first is None:
            raise TextFormatError(name, None, "the file is empty")
        for block in self._without_header(name, first), *parts:
            if block.text.strip():
                yield self._table(name, block), len(block.text)
        self._warn()

    def _without_header(self, name: str, block: Block) -> Block:
        """Learn the names of the columns, or check them against those of the file before."""
        reader = self._records(name, block.line, block.text.decode("utf-8", "replace"))
        line, cells = next(reader, (block.line, []))
        names = cells if self._header else [f"x{j}" for j in range(len(cells))]
        self._check_names(name, line, names)
        if not self._names:
            self._names, self._origin = names, name
        if not self._header:
            return block
        n_lines = next(reader, (block.line + _n_lines(block.text) + 1, []))[0] - block.line
        ends = (match.end() for match in _LINE_END.finditer(block.text))
        start = next(itertools.islice(ends, n_lines - 1, None), len(block.text))
        return Block(block.text[start:], block.line + n_lines)

    def _check_names(self, name: str, line: int, names: list[str]) -> None:
        if len(set(names)) < len(names):
            twice = sorted({column for column in names if names.count(column) > 1})
            raise TextFormatError(name, line, f"column names occur twice: {twice}")
        if self._names and names != self._names:
            raise TextFormatError(
                name, line, f"the columns are {names}, but those of {self._origin} {self._names}"
            )
        for column in (*self._required, *self._kinds, *(self._wanted or ())):
            if column not in names:
                raise ValueError(f"{name}: no column {column!r}; the columns are {names}")

    def _table(self, name: str, block: Block) -> Any:
        import pyarrow as pa

        if not self._types:
            self._types = self._suggested(name, block)
        try:
            table = self._parse(block.text, self._types)
        except pa.ArrowInvalid as error:
            return self._slowly(name, block, error)
        if any(self._first_gap(table, column) is not None for column in self._required):
            return self._slowly(name, block, None)
        return table

    def _first_gap(self, table: Any, column: str) -> int | None:
        return first_gap(table.column(column), column == self._weight)

    @property
    def _kept(self) -> list[str]:
        """The columns of the tables, in the order of the files."""
        return [n for n in self._names if self._wanted is None or n in self._wanted]

    def _parse(self, text: bytes, types: Mapping[str, Any]) -> Any:
        import pyarrow as pa
        from pyarrow import csv as pa_csv

        return pa_csv.read_csv(
            pa.BufferReader(text),
            pa_csv.ReadOptions(column_names=self._names, block_size=len(text) + 1),
            pa_csv.ParseOptions(delimiter=self._separator, newlines_in_values=True),
            pa_csv.ConvertOptions(
                column_types=types, null_values=[""], true_values=[], false_values=[],
                strings_can_be_null=True, quoted_strings_can_be_null=True,
                include_columns=self._kept,
            ),
        )  # fmt: skip

    def _suggested(self, name: str, block: Block) -> dict[str, Any]:
        """Types as users say, or as the block suggests: numbers if all cells are, or else text."""
        import pyarrow as pa

        asked = {"number": pa.float64(), "text": pa.string()}
        said = {column: asked[kind] for column, kind in self._kinds.items()}
        try:
            schema = self._parse(block.text, said).schema
        except pa.ArrowInvalid:
            # Without the records that have too many cells; what else is wrong is found again.
            records = self._records(name, block.line, block.text.decode("utf-8", "replace"))
            good = [cells for _, cells in records if len(cells) == len(self._names)]
            schema = self._parse(self._written(good), {}).schema if good else pa.schema({})
        kept = {
            field.name: field.type
            for field in schema
            if pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        }
        return {**dict.fromkeys(self._names, pa.string()), **kept, **said}

    def _slowly(self, name: str, block: Block, error: Exception | None) -> Any:
        """Read records one by one; raise the first error, or leave out those that have one."""
        text, found = self._decoded(name, block)
        good = []
        for line, cells in self._records(name, block.line, text):
            problem = self._problem(cells)
            if problem is None:
                good.append(cells)
            else:
                found.append(TextFormatError(name, line, *problem))
        if error is not None and not found:
            raise TextFormatError(name, block.line, str(error)) from error
        self._refuse(found)
        if not good:
            import pyarrow as pa

            return pa.schema(self._types).empty_table().select(self._kept)
        return self._parse(self._written(good), self._types)

    def _refuse(self, found: list[TextFormatError]) -> None:
        for error in sorted(found, key=lambda error: error.line or 0):
            if self._on_error == "raise":
                raise error
            self._errors.append(error)
            if self._report is not None:
                self._report.skip(error)

    def _warn(self) -> None:
        if self._errors:
            n = len(self._errors)
            lines = "line was" if n == 1 else "lines were"
            warnings.warn(f"{n} {lines} left out, the first: {self._errors[0]}", stacklevel=3)

    def _records(self, name: str, line: int, text: str) -> Iterator[tuple[int, list[str]]]:
        """Records with the number of their first line; that of the text is ``line``."""
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=self._separator)
        first = line
        try:
            for cells in reader:
                if cells:
                    yield line, cells
                line = first + reader.line_num
        except csv.Error as error:
            raise TextFormatError(name, line, str(error)) from None

    def _decoded(self, name: str, block: Block) -> tuple[str, list[TextFormatError]]:
        """The block as text, lines that are no UTF-8 blank, and what is wrong with these."""
        found = []
        lines = block.text.splitlines(keepends=True)
        for number, content in enumerate(lines):
            try:
                content.decode()
            except UnicodeDecodeError as error:
                shown = content[:_SHOWN].decode("utf-8", "replace").rstrip("\r\n")
                problem = f"not UTF-8 text ({error.reason} at byte {error.start + 1})"
                found.append(TextFormatError(name, block.line + number, problem, shown))
                lines[number] = b"\n"
        return b"".join(lines).decode(), found

    def _written(self, records: list[list[str]]) -> bytes:
        out = io.StringIO()
        writer = csv.writer(out, delimiter=self._separator, quoting=csv.QUOTE_ALL)
        writer.writerows(records)
        return out.getvalue().encode()

    def _problem(self, cells: list[str]) -> tuple[str, str] | None:
        """What is wrong with a record, and the text of it."""
        if len(cells) != len(self._names):
            found = f"{len(cells)} cells, but there are {len(self._names)} columns"
            return found, self._separator.join(cells)[:_SHOWN]
        for name, cell in zip(self._names, cells, strict=True):
            if not cell:
                if name in self._required:
                    return f"{name!r} is missing", self._separator.join(cells)[:_SHOWN]
            elif not _fits(cell, str(self._types[name])):
                return self._misfit(name, cell), cell[:_SHOWN]
            elif name in self._required and not self._is_usable(name, cell):
                wanted = "finite and not negative" if name == self._weight else "finite"
                return f"{name!r} is {cell!r}; it must be {wanted}", cell[:_SHOWN]
        return None

    def _is_usable(self, name: str, cell: str) -> bool:
        """Whether a target or weight is, if it is a number at all, one that can be used."""
        if str(self._types[name]) == "string":
            return True
        number = float(cell)
        return np.isfinite(number).item() and (name != self._weight or number >= 0)

    def _misfit(self, name: str, cell: str) -> str:
        whole = str(self._types[name]) == "int64"
        if name == self._weight:
            return f"the weight {name!r} is {cell[:_SHOWN]!r}, not a number"
        if whole and _fits(cell, "double"):
            return (
                f"column {name!r} held whole numbers so far, here it is {cell!r}; say "
                f"types={{{name!r}: 'number'}} if it holds other numbers"
            )
        return (
            f"column {name!r} is {cell[:_SHOWN]!r}, not a number; say types={{{name!r}: 'text'}} "
            "if it holds text"
        )


def _fits(cell: str, kind: str) -> bool:
    if kind == "string":
        return True
    try:
        number = int(cell) if kind == "int64" else float(cell)
    except ValueError:
        return False
    return "_" not in cell and (kind != "int64" or -(2**63) <= number < 2**63)


def first_gap(column: Any, is_weight: bool) -> int | None:
    """Return the place of the first cell of an Arrow column that is no target, or no weight."""
    import pyarrow as pa

    bad = np.zeros(len(column), dtype=bool)
    if column.null_count:
        bad |= column.is_null().to_numpy()
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        numbers = column.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy()
        bad |= ~np.isfinite(numbers) | (is_weight & (numbers < 0))
    return int(np.argmax(bad)) if bad.any() else None


def check_kinds(types: Mapping[str, str]) -> None:
    """Raise a ValueError for kinds that there are not."""
    for name, kind in types.items():
        if kind not in _KINDS:
            raise ValueError(f"types[{name!r}] must be one of {_KINDS}, got {kind!r}")
