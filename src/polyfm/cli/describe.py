"""``polyfm describe``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.cli import _curve
from polyfm.cli._files import check_writable
from polyfm.cli._progress import Progress
from polyfm.cli._reading import Reading, add_format, reading
from polyfm.cli._tables import Counting
from polyfm.data.mistakes import likely_mistakes, likely_mistakes_of_columns
from polyfm.data.survey import COMPARED_ROWS, Survey

_EPILOG = """examples:
  polyfm describe clicks.svm
  polyfm describe clicks.data --figure frequencies.png
  zcat clicks.svm.gz | polyfm describe - --format svmlight --json

The file is read once, in memory that does not grow with its rows: 8 bytes for each column up to
number 16,777,216 (those beyond are counted together, by a hash), 8 for each of the first million
rows, which are compared for being the same, and a sample of 20,000 rows. Of the columns of tables
up to 1000 different values are counted; the number of more (~) is an estimate, within some 3 %.
"""
_SHOWN_LABELS, _SHOWN_FIELDS = 10, 50
_COUNTED_VALUES = 1000
"""So few values hardly ever share a hash; the number of more is an estimate."""
_QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add description and arguments."""
    parser.description = (
        "Say what is in a file or a dataset: rows, columns, fields, labels, frequencies, and what\n"
        "looks like a mistake of the format."
    )
    parser.epilog = _EPILOG
    parser.add_argument("file", metavar="FILE|DATASET", help="the rows; - reads standard input")
    add_format(parser)
    parser.add_argument("--figure", metavar="PATH", help="draw the frequencies there, too")
    parser.add_argument("--json", action="store_true", help="write JSON instead of a page")


def run(args: argparse.Namespace) -> None:
    """Describe."""
    if args.figure is not None:
        check_writable(args.figure, args.file)
    stream = reading(args, [args.file], Counting())
    progress = Progress(args, stream.n_bytes)
    try:
        survey = _survey(stream, progress)
    finally:
        progress.erase()
    figures = _figures(args, stream, survey)
    if args.json:
        print(json.dumps(figures))
    else:
        for line in _page(figures, survey):
            print(line)
    if args.figure is not None:
        _curve.draw(survey.frequencies(), args.figure)


def _survey(stream: Reading, progress: Progress) -> Survey:
    survey = Survey()
    for batch in stream.batches(progress):
        if stream.fields is not None:
            survey.tell_fields(stream.fields)
        survey.add(batch)
    return survey


def _figures(args: argparse.Namespace, stream: Reading, survey: Survey) -> dict[str, Any]:
    """Return what was found, in a form that JSON takes."""
    first = stream.first_index(survey)
    columns = _n_columns(stream, survey)
    cells = survey.n_rows * columns
    fields = _fields(stream, survey)
    mistakes = [*_index_mistakes(args, stream, survey), *likely_mistakes(survey)]
    if stream.distinct is not None:
        mistakes += likely_mistakes_of_columns(fields or [], survey.n_rows)
    return {
        "file": args.file,
        "format": stream.format,
        "bytes": stream.n_bytes,
        "first index": first,
        "rows": survey.n_rows,
        "empty rows": survey.n_empty,
        "entries per row": [max(survey.shortest, 0), survey.longest],
        "columns": columns,
        "columns used": survey.n_used,
        "columns counted one by one": not survey.is_folded,
        "entries": survey.nnz,
        "density": survey.nnz / cells if cells else None,
        "is table": stream.distinct is not None,
        "values": _values(survey),
        "labels": _labels(survey),
        "fields": fields,
        "repeated rows": survey.n_duplicates,
        "compared rows": survey.n_compared,
        "mistakes": mistakes,
    }


def _n_columns(stream: Reading, survey: Survey) -> int:
    if stream.distinct is not None:
        return len(stream.distinct)
    if stream.n_columns is not None:
        return stream.n_columns
    return survey.largest_column + 1 - (stream.first_index(survey) or 0) if survey.nnz else 0


def _values(survey: Survey) -> dict[str, Any] | None:
    if not survey.nnz:
        return None
    return {
        "all 1": survey.all_ones,
        "whole numbers": survey.all_whole,
        "range": [survey.least, survey.most],
    }


def _labels(survey: Survey) -> dict[str, Any] | None:
    labels = survey.labels
    if labels is None or labels.n == 0:
        return None
    if labels.counts is None and labels.are_texts:
        return {"counts": None}
    if labels.counts is not None and (labels.are_texts or len(labels.counts) <= _SHOWN_LABELS):
        found = sorted(labels.counts.items(), key=lambda pair: -pair[1])
        return {"counts": [[str(_whole(label)), n] for label, n in found]}
    return {"quantiles": dict(zip(map(str, _QUANTILES), _quantiles(labels), strict=True))}


def _quantiles(labels: Any) -> list[float]:
    return [float(value) for value in labels.quantiles(_QUANTILES)]


def _whole(label: Any) -> Any:
    return int(label) if isinstance(label, float) and label.is_integer() else label


def _fields(stream: Reading, survey: Survey) -> list[dict[str, Any]] | None:
    found = survey.fields()
    if found is None:
        return None
    names, columns = stream.field_names, found.columns
    if stream.distinct is not None:
        # The count, unless so many values share columns that the estimate is better.
        few = stream.distinct < _COUNTED_VALUES
        columns = np.where(few, columns, stream.distinct)
    return [
        {
            "field": k if names is None else names[k],
            "columns": int(columns[k]),
            "rows": int(found.rows[k]),
            "entries": int(found.entries[k]),
        }
        for k in range(len(columns))
        if found.entries[k] or stream.distinct is not None
    ]


def _index_mistakes(args: argparse.Namespace, stream: Reading, survey: Survey) -> Iterator[str]:
    if stream.first_index(survey) is None or not survey.nnz:
        return
    if args.zero_based == "false" and survey.smallest_column == 0:
        yield "There is an index 0, but the indices are said to start at 1: use --zero-based true."
    if args.zero_based == "true" and survey.smallest_column > 0:
        yield (
            f"Indices are said to start at 0, but the smallest is {survey.smallest_column}: column "
            "0 would be empty."
        )


def _page(figures: dict[str, Any], survey: Survey) -> Iterator[str]:
    yield _title(figures)
    shortest, longest = figures["entries per row"]
    each = f"{shortest} each" if shortest == longest else f"{shortest} to {longest} entries"
    yield _line("rows", figures["rows"], f"{each}, {figures['empty rows']:,} empty")
    if figures["is table"]:
        total = sum(field["columns"] for field in figures["fields"] or [])
        yield _line("columns", figures["columns"], f"{total:,} different values")
    else:
        least = "" if figures["columns counted one by one"] else "at least "
        used = f"{least}{figures['columns used']:,} of them used"
        yield _line("columns", figures["columns"], used)
    density = figures["density"]
    yield _line("entries", figures["entries"], "" if density is None else f"density {density:.3g}")
    if figures["values"] and not figures["is table"]:
        yield f"values    {_told_values(figures['values'])}"
    if figures["labels"]:
        yield f"labels    {_told_labels(figures['labels'], figures['rows'])}"
    compared = figures["compared rows"]
    if compared:
        which = f"the first {compared:,}" if figures["rows"] > COMPARED_ROWS else "all"
        share = figures["repeated rows"] / compared
        yield f"repeated  {share:.1%} of {which} rows have the entries of one before"
    if figures["fields"]:
        yield from _told_fields(figures["fields"], figures["rows"], figures["is table"])
    yield from _told_frequencies(survey.frequencies(), figures["is table"])
    yield from _told_mistakes(figures["mistakes"])


def _title(figures: dict[str, Any]) -> str:
    words = [figures["format"]]
    if figures["bytes"] is not None:
        words.append(f"{figures['bytes'] / 1e6:,.1f} MB")
    if figures["first index"] is not None:
        words.append(f"indices from {figures['first index']}")
    return f"{figures['file']}: {', '.join(words)}"


def _line(name: str, number: int, remark: str) -> str:
    return f"{name:<9} {number:,}" + (f" ({remark})" if remark else "")


def _told_values(values: dict[str, Any]) -> str:
    if values["all 1"]:
        return "all 1"
    least, most = values["range"]
    return f"{'whole numbers' if values['whole numbers'] else 'numbers'} from {least:g} to {most:g}"


def _told_labels(labels: dict[str, Any], n_rows: int) -> str:
    if "quantiles" in labels:
        numbers = "  ".join(f"{value:g}" for value in labels["quantiles"].values())
        return f"{numbers} (least, quarters, most)"
    found = labels["counts"]
    if found is None:
        return "more than 1,000 different texts"
    told = [f"{label}: {n / n_rows:.2%}" for label, n in found[:_SHOWN_LABELS]]
    rest = len(found) - len(told)
    return "   ".join(told) + (f"   and {rest:,} more" if rest else "")


def _told_fields(fields: list[dict[str, Any]], n_rows: int, is_table: bool) -> Iterator[str]:
    yield ""
    of_what = ("column", "values") if is_table else ("field", "columns")
    yield f"{of_what[0]:<20} {of_what[1]:>12} {'rows with one':>14}"
    for field in fields[:_SHOWN_FIELDS]:
        share = field["rows"] / n_rows
        n = field["columns"]
        shown = f"~{n:,}" if is_table and n >= _COUNTED_VALUES else f"{n:,}"
        yield f"{field['field']!s:<20} {shown:>12} {share:>14.2%}"
    if len(fields) > _SHOWN_FIELDS:
        yield f"and {len(fields) - _SHOWN_FIELDS:,} fields more; --json lists all"


def _told_frequencies(frequencies: NDArray[np.int64], is_table: bool) -> Iterator[str]:
    if len(frequencies):
        what = "values" if is_table else "columns"
        yield ""
        yield f"entries of the {what}, the most frequent first (bars on a scale of logarithms)"
        yield from _curve.bars(frequencies, sys.stdout.encoding)
        once = np.count_nonzero(frequencies == 1) / len(frequencies)
        yield f"{once:.1%} of the {what} occur once"


def _told_mistakes(mistakes: list[str]) -> Iterator[str]:
    yield ""
    if not mistakes:
        yield "nothing looks like a mistake"
        return
    yield "likely mistakes"
    yield from (f"- {sentence}" for sentence in mistakes)
