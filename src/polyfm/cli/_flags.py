"""Flags of the command line from the signature and the docstring of an estimator."""

from __future__ import annotations

import argparse
import inspect
import re
from dataclasses import dataclass
from typing import Any

_HIDDEN = ("verbose", "warm_start")
"""``--quiet`` stands for the first; the second is about a second fit."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of an estimator, as its docstring tells it."""

    name: str
    default: Any
    kind: str
    """The type as documented, such as ``float or "auto"``."""
    text: str


def documented(estimator: type) -> dict[str, Parameter]:
    """Return the parameters of an estimator by name.

    Raises
    ------
    ValueError
        If one is missing in the docstring.
    """
    told = _sections(inspect.getdoc(estimator) or "")
    parameters = {}
    for name, parameter in inspect.signature(estimator).parameters.items():
        if name in _HIDDEN:
            continue
        if name not in told:
            raise ValueError(f"{estimator.__name__} does not document its parameter {name!r}.")
        kind, text = told[name]
        parameters[name] = Parameter(name, parameter.default, kind, text)
    return parameters


def _sections(doc: str) -> dict[str, tuple[str, str]]:
    """Return type and text of each parameter of a numpydoc docstring."""
    body = re.search(r"\nParameters\n-+\n(.*?)(?=\n\w[\w ]*\n-{3,}\n|\Z)", doc, re.DOTALL)
    found = {}
    for match in re.finditer(
        r"^(\w[\w, ]*) : (.*)\n((?:(?: .*)?\n?)*?)(?=^\w|\Z)", body[1] if body else "", re.MULTILINE
    ):
        for name in match[1].split(", "):
            found[name] = (match[2], _plain(match[3]))
    return found


def _plain(text: str) -> str:
    """Take the mark-up off a docstring's text."""
    text = " ".join(text.split())
    text = re.sub(r":\w+:`~?([^`]*)`", r"\1", text)
    text = re.sub(r"\\sqrt\s*\{([^}]*)\}", r"sqrt(\1)", text)
    text = re.sub(r"\\frac12", "1/2", text)
    text = re.sub(r"\\(\w+)", r"\1", text)
    return text.replace("``", "").replace("`", "")


def add_flags(parser: Any, estimators: list[type]) -> None:
    """Add a flag for each parameter of some estimators; a flag not given stays out of the result.

    Parameters
    ----------
    parser : argparse.ArgumentParser or a group of one
        Gets the flags.
    estimators : list of type
        Their parameters of one name share a flag.
    """
    tables = [documented(estimator) for estimator in estimators]
    for name in dict.fromkeys(name for table in tables for name in table):
        same_name = [table[name] for table in tables if name in table]
        _add_flag(parser, same_name)


def _add_flag(parser: Any, variants: list[Parameter]) -> None:
    first = variants[0]
    flag = "--" + first.name.replace("_", "-")
    text = " / ".join(dict.fromkeys(_help(parameter) for parameter in variants))
    common: dict[str, Any] = {"dest": first.name, "default": argparse.SUPPRESS}
    common["help"] = text.replace("%", "%%")
    if isinstance(first.default, bool):
        parser.add_argument(flag, action=argparse.BooleanOptionalAction, **common)
    else:
        choices = _choices(first.kind)
        parser.add_argument(flag, type=value_of, metavar=choices or _metavar(first), **common)


def _help(parameter: Parameter) -> str:
    default = parameter.default
    shown = "none" if default is None else default
    return f"{parameter.text} (default: {shown})"


def _choices(kind: str) -> str:
    listed = re.match(r"\{(.*)\}", kind)
    if listed is None:
        return ""
    words = [word.strip().strip('"') for word in listed[1].split(",")]
    return "{" + ",".join(word.lower() if word == "None" else word for word in words) + "}"


def _metavar(parameter: Parameter) -> str:
    kind = parameter.kind
    words = {"int": "N", "float": "X", "bool": "{auto,true,false}"}
    return next((word for start, word in words.items() if kind.startswith(start)), "NAME")


def value_of(text: str) -> Any:
    """Return the number, truth value or None that a text stands for, or else the text."""
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for parse in (int, float):
        try:
            return parse(text)
        except ValueError:
            continue
    return text


def given(args: argparse.Namespace, estimator: type) -> dict[str, Any]:
    """Return the estimator's parameters among the arguments.

    Raises
    ------
    ValueError
        For a flag that was given and that the estimator does not have.
    """
    own = documented(estimator)
    return {name: getattr(args, name) for name in own if hasattr(args, name)}


def check_given(args: argparse.Namespace, estimator: type, others: list[type]) -> None:
    """Raise a ValueError for a flag that belongs to another estimator only."""
    own = documented(estimator)
    for other in others:
        for name in documented(other):
            if name not in own and hasattr(args, name):
                flag = "--" + name.replace("_", "-")
                raise ValueError(f"{flag} is for {other.__name__}, not for {estimator.__name__}.")
