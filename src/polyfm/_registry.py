"""Names for specs: what users write in place of a class, derived from what a package exports."""

from __future__ import annotations

import importlib
import re
from typing import Any


def public_name(cls: type, separator: str = "_") -> str:
    """Return the users' name of a spec class: ``SquaredHinge`` is ``"squared_hinge"``."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", separator, cls.__name__)
    return words.lower()


def named_specs(package: str, separator: str = "_") -> dict[str, type]:
    """Return the spec classes that a package exports, by their users' names."""
    module = importlib.import_module(package)
    exported = (getattr(module, name) for name in module.__all__)
    return {public_name(cls, separator): cls for cls in exported}


def find_spec(choice: Any, known: dict[str, type], argument: str, contract: Any) -> Any:
    """Return the spec that a user's choice stands for: a name, or a spec of their own.

    Parameters
    ----------
    choice : str or NamedTuple
        What the user gave.
    known : dict of str to type
        The named specs; a name stands for the spec with its default values.
    argument : str
        The argument's name, for the error.
    contract : generic function
        One that every spec of this kind implements.

    Raises
    ------
    ValueError
        For a name that is not known.
    TypeError
        For a spec without an implementation.
    """
    if isinstance(choice, str):
        if choice not in known:
            names = ", ".join(repr(name) for name in sorted(known))
            raise ValueError(f"{argument}={choice!r} is not known; choose one of {names}.")
        return known[choice]()
    if type(choice) not in contract.table:
        raise TypeError(
            f"{argument} must be a name or a spec with an implementation of "
            f"{contract.__module__}.{contract.__name__}, got {choice!r}."
        )
    return choice
