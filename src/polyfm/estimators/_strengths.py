"""Penalties per field: from what the user gives to one number for each column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfm.estimators._numbers import check_number

_AUTO = "auto"


class Fields(NamedTuple):
    """The field of each column."""

    numbers: NDArray[np.int64]
    """(n_features,), -1 for a column of no field."""
    names: Sequence[Any]
    """Of each field: what a mapping calls it."""
    in_order: bool
    """Whether fields are numbered by the user, so that a list of values has an order."""


class Strength(NamedTuple):
    """The penalty of each column: the base times the column's multiplier."""

    base: float
    """Mean over the fields."""
    multipliers: NDArray[np.float64] | None
    """(n_features,); None where all are 1."""


def check_strengths(name: str, given: Any, *, allows_auto: bool) -> None:
    """Raise a ValueError or TypeError unless all that is given are numbers >= 0.

    ``given`` is a number, an array or list of numbers, or a mapping of fields to numbers; "auto"
    may stand for a number where it is allowed.
    """
    if isinstance(given, Mapping):
        for field, value in given.items():
            _check(f"{name}[{field!r}]", value, allows_auto)
    elif not _is_list(given):
        _check(name, given, allows_auto)
    elif not _are_sound_numbers(given):
        for i, value in enumerate(given):
            _check(f"{name}[{i}]", value, allows_auto)


def _check(name: str, value: Any, allows_auto: bool) -> None:
    if not (allows_auto and isinstance(value, str) and value == _AUTO):
        check_number(name, value, Real, least=0)


def _is_list(given: Any) -> bool:
    return not isinstance(given, str) and getattr(given, "ndim", int(hasattr(given, "__len__"))) > 0


def _are_sound_numbers(given: Any) -> bool:
    """Tell, for an array of numbers, whether they need no look one by one."""
    if not isinstance(given, np.ndarray) or given.ndim != 1 or given.dtype.kind not in "iuf":
        return False
    return bool((np.isfinite(given) & (given >= 0)).all())


def find_strength(
    name: str, given: Any, automatic: float, fields: Fields | None, n_features: int
) -> Strength:
    """Return the penalty of each column.

    Parameters
    ----------
    name : str
        Of the parameter, for errors.
    given : float, str, array or mapping
        What :func:`check_strengths` has accepted.
    automatic : float
        What "auto" stands for, and the penalty of fields that a mapping leaves out.
    fields : Fields or None
        None where each column is a field of its own.
    n_features : int
        Number of columns.

    Raises
    ------
    ValueError
        If there is not one value per field, or a mapping names a field that there is not.
    """
    if isinstance(given, Mapping):
        values = [automatic] * _n_fields(fields, n_features)
        for field, value in given.items():
            values[_number_of(name, field, fields, n_features)] = _resolved(value, automatic)
    elif _is_list(given):
        _check_length(name, len(given), fields, n_features)
        values = [_resolved(value, automatic) for value in given]
    else:
        return Strength(_resolved(given, automatic), None)
    return _per_column(np.array(values), None if fields is None else fields.numbers)


def _resolved(value: Any, automatic: float) -> float:
    return automatic if isinstance(value, str) else float(value)


def _n_fields(fields: Fields | None, n_features: int) -> int:
    return n_features if fields is None else len(fields.names)


def _number_of(name: str, field: Any, fields: Fields | None, n_features: int) -> int:
    names = range(n_features) if fields is None else fields.names
    try:
        return names.index(field)
    except ValueError:
        known = ", ".join(repr(known) for known in names[:8]) + (", ..." if len(names) > 8 else "")
        raise ValueError(
            f"{name} names the field {field!r}, which is not among those of "
            f"{'X' if fields is None else 'fields'}: {known}."
        ) from None


def _check_length(name: str, n_given: int, fields: Fields | None, n_features: int) -> None:
    n_needed = _n_fields(fields, n_features)
    if fields is None and n_given != n_needed:
        raise ValueError(
            f"{name} has {n_given} values, but X has {n_features} columns: give one value per "
            "column, or by fields= the number of the field of each column and one value per field."
        )
    if fields is not None and not fields.in_order:
        raise ValueError(
            f"fields holds names, which have no order: give {name} as a dict of field to value."
        )
    if n_given != n_needed:
        raise ValueError(
            f"{name} has {n_given} values, but fields are numbered from 0 to {n_needed - 1}: give "
            f"{n_needed} values, one per field."
        )


def _per_column(values: NDArray[np.float64], numbers: NDArray[np.int64] | None) -> Strength:
    largest = float(values.max(initial=0.0))
    if (values == largest).all():
        return Strength(largest, None)
    relative = values / largest
    mean = float(relative.mean())
    multipliers = relative / mean
    if numbers is not None:
        # The last place is that of columns with the field -1.
        multipliers = np.append(multipliers, 1.0)[numbers]
    return Strength(largest * mean, multipliers)


def read_fields(given: Any, n_features: int) -> Fields | None:
    """Return the fields of the columns, None where none are given.

    Parameters
    ----------
    given : array of shape (n_features,) or None
        Numbers from 0, -1 for a column of no field; or names.
    n_features : int
        Number of columns.

    Raises
    ------
    TypeError
        For anything else than whole numbers or names.
    ValueError
        For a number below -1, or another number of columns.
    """
    if given is None:
        return None
    numbers = np.asarray(given)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iuUO":
        raise TypeError(
            "fields must be a list of whole numbers or of names, one per column, got "
            f"{_described(given, numbers)}."
        )
    if len(numbers) != n_features:
        raise ValueError(
            f"fields has {len(numbers)} values, but X has {n_features} columns: give the field of "
            "each column, such as fields_ of the OneHotFieldEncoder that made X."
        )
    return _named(numbers) if numbers.dtype.kind in "UO" else _numbered(numbers)


def _described(given: Any, array: NDArray[Any]) -> str:
    if array.ndim == 0:
        return repr(given)
    return f"an array of shape {array.shape} and type {array.dtype.name}"


def _numbered(given: NDArray[Any]) -> Fields:
    wrong = np.flatnonzero((given < -1) | (given >= len(given)))
    if wrong.size:
        raise ValueError(
            f"fields holds {given[wrong[0]]} for column {wrong[0]}: fields are numbered from 0 to "
            f"less than the number of columns, {len(given)}; -1 is for columns of no field."
        )
    numbers = given.astype(np.int64)
    return Fields(numbers, range(int(numbers.max(initial=-1)) + 1), in_order=True)


def _named(given: NDArray[Any]) -> Fields:
    for column, name in enumerate(given):
        if not isinstance(name, str):
            raise TypeError(
                f"fields must hold whole numbers or names, got {name!r} for column {column}."
            )
    names, numbers = np.unique(given.astype(object), return_inverse=True)
    return Fields(numbers.astype(np.int64), names.tolist(), in_order=False)
