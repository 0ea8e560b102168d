"""What looks wrong with rows: likely mistakes of their format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfm.data.survey import COUNTED_COLUMNS, Survey

_FEW_COLUMNS = 256
_ROWS_PER_CATEGORY = 5
_LARGEST_CODE = 100_000
_FAR, _USUAL = 100, 1000
_MANY_DUPLICATES = 0.05
_SECONDS = (9.0e8, 2.5e9)
"""From 1998 to 2049."""
_LISTED = 5
_MANY_ROWS, _OWN_VALUES = 100, 0.9


def likely_mistakes(survey: Survey) -> list[str]:
    """Return what looks like a mistake, a sentence for each.

    Parameters
    ----------
    survey : Survey
        Of all rows.

    Returns
    -------
    list of str
        Empty if nothing looks wrong.
    """
    checks = (_no_rows, _labels, _far_columns, _categories, _large_values, _empty_rows, _duplicates)
    return [sentence for check in checks for sentence in check(survey)]


def likely_mistakes_of_columns(columns: list[dict[str, Any]], n_rows: int) -> list[str]:
    """Return what looks like a mistake in the columns of a table.

    Parameters
    ----------
    columns : list of dict
        Of each its name ("field"), the number of its different values ("columns"), and of the
        rows where it is not missing ("rows").
    n_rows : int
        Number of all rows.

    Returns
    -------
    list of str
        Empty if nothing looks wrong.
    """
    empty = [column["field"] for column in columns if column["rows"] == 0]
    constant = [
        column["field"] for column in columns if column["columns"] == 1 and column["rows"] == n_rows
    ]
    own = [
        column["field"]
        for column in columns
        if column["rows"] > _MANY_ROWS and column["columns"] > _OWN_VALUES * column["rows"]
    ]
    numbers = [column["field"] for column in columns if _is_number(column["field"])]
    told = []
    if numbers:
        told.append(f"Columns are called {_some(numbers)}: is there no line of names?")
    if empty and n_rows:
        told.append(f"Columns without any value: {_some(empty)}.")
    if constant and n_rows > 1:
        told.append(f"Columns that have the same value in all rows: {_some(constant)}.")
    if own:
        told.append(
            f"Nearly every row has a value of its own in {_some(own)}: an identifier of the row "
            "tells nothing of others, and numbers are better cut into bins (polyfm train and "
            "convert do it)."
        )
    return told


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _no_rows(survey: Survey) -> Iterator[str]:
    if survey.n_rows == 0:
        yield "There are no rows: is this the file that was meant, and is it complete?"


def _labels(survey: Survey) -> Iterator[str]:
    if survey.labels is None or survey.labels.counts is None:
        return
    found = survey.labels.counts
    if len(found) == 1 and survey.n_rows > 1:
        yield f"All labels are {next(iter(found))}: there is nothing to learn."
    if set(found) == {1.0, 2.0}:
        yield "The labels are 1 and 2: other programs may take them for numbers, not classes."
    if len(found) > 1 and survey.n_rows > 100 and 1 in found.values() and len(found) <= 20:
        rare = [str(label) for label, n in found.items() if n == 1]
        yield f"Labels that occur once: {_some(rare)}."


def _far_columns(survey: Survey) -> Iterator[str]:
    """Ids far beyond the rest: parameters are made for each column up to the largest."""
    used = survey.used_columns
    if survey.n_used < 2:
        return
    usual = int(used[int(0.99 * (len(used) - 1))]) if len(used) else 0
    limit = _FAR * max(usual, _USUAL)
    n_far = survey.n_used - len(used) + int(np.count_nonzero(used > limit))
    if survey.largest_column > limit and n_far <= max(0.01 * survey.n_used, 1):
        yield (
            f"{n_far} of {survey.n_used:,} column numbers are far beyond the rest (up to "
            f"{survey.largest_column:,}; 99 % are up to {usual:,}): a model has parameters for "
            "each number up to the largest."
        )
    elif survey.largest_column >= COUNTED_COLUMNS and survey.n_used * _FAR < survey.largest_column:
        yield (
            f"Column numbers go up to {survey.largest_column:,}, but only {survey.n_used:,} occur: "
            "hash or renumber them."
        )


def _categories(survey: Survey) -> Iterator[str]:
    """Codes of categories that were written as values instead of columns of their own."""
    if survey.all_ones or survey.shortest != survey.longest or survey.n_used > _FEW_COLUMNS:
        return
    columns = [number for number, values in _columns_of(survey) if _are_codes(values)]
    if columns and 2 * len(columns) >= survey.n_used:
        yield (
            f"Every row has {survey.longest} entries, and the values of columns {_some(columns)} "
            "are small whole numbers: if they are codes of categories, each needs a column of its "
            "own (polyfm convert --target ... of a table makes them)."
        )


def _columns_of(survey: Survey) -> Iterator[tuple[int, NDArray[Any]]]:
    sample = survey.sample.tocsc()
    for j in np.flatnonzero(np.diff(sample.indptr)):
        yield int(j), sample.data[sample.indptr[j] : sample.indptr[j + 1]]


def _are_codes(values: NDArray[Any]) -> bool:
    distinct = np.unique(values)
    whole = bool(np.all(distinct == np.floor(distinct)))
    several = 3 <= len(distinct) <= len(values) / _ROWS_PER_CATEGORY
    return whole and several and distinct[0] >= 0 and distinct[-1] <= _LARGEST_CODE


def _large_values(survey: Survey) -> Iterator[str]:
    if survey.most <= _LARGEST_CODE:
        return
    sample = survey.sample
    if np.count_nonzero(sample.data > _LARGEST_CODE) == 0:
        yield f"There are values up to {survey.most:g}: scale them, or cut them into bins."
        return
    sample.data[sample.data <= _LARGEST_CODE] = 0
    sample.eliminate_zeros()
    large = sample.tocsc()
    times, ids, others = [], [], []
    for j in np.flatnonzero(np.diff(large.indptr)):
        values = large.data[large.indptr[j] : large.indptr[j + 1]]
        if _are_times(values):
            times.append(int(j))
        elif bool(np.all(values == np.floor(values))) and len(np.unique(values)) * 2 > len(values):
            ids.append(int(j))
        else:
            others.append(int(j))
    if times:
        yield f"Values of columns {_some(times)} look like times in seconds: cut them into bins."
    if ids:
        yield (
            f"Values of columns {_some(ids)} look like identifiers: give each a column of its own."
        )
    if others:
        yield f"Columns {_some(others)} have values up to {survey.most:g}: scale or bin them."


def _are_times(values: NDArray[Any]) -> bool:
    """Seconds, or thousandths of them, since 1970."""
    for unit in (1.0, 1e3):
        if values.min() >= _SECONDS[0] * unit and values.max() <= _SECONDS[1] * unit:
            return True
    return False


def _empty_rows(survey: Survey) -> Iterator[str]:
    if survey.n_rows and survey.n_empty == survey.n_rows:
        yield "No row has an entry."
    elif survey.n_empty > 0.01 * survey.n_rows:
        yield f"{survey.n_empty / survey.n_rows:.1%} of the rows have no entry."


def _duplicates(survey: Survey) -> Iterator[str]:
    if survey.n_compared > 100 and survey.n_duplicates > _MANY_DUPLICATES * survey.n_compared:
        yield (
            f"{survey.n_duplicates / survey.n_compared:.0%} of the rows repeat one before: if a "
            "part is held out at random, it is not new to the model."
        )


def _some(items: list[Any]) -> str:
    rest = len(items) - _LISTED
    return ", ".join(map(str, items[:_LISTED])) + (f" and {rest} more" if rest > 0 else "")
