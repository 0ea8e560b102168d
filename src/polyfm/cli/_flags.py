"""Flags of the command line from the signature and the docstring of an estimator."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

_HIDDEN = ("verbose", "warm_start", "fields")
"""``--quiet`` stands for the first; the second is about a second fit; the file tells the third."""
_PER_FIELD = "array or dict"
_SEVERAL = "tuple of"


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


def add_flags(
    parser: Any,
    estimators: Mapping[str, type],
    defaults: Mapping[str, Any],
    besides: Collection[str] = (),
) -> None:
    """Add a flag for each parameter of some estimators; a flag not given stays out of the result.

    Parameters
    ----------
    parser : argparse.ArgumentParser or a group of one
        Gets the flags.
    estimators : dict of str to type
        Estimators by task; their parameters of one name share a flag.
    defaults : dict of str
        Defaults that differ from those of the estimators.
    besides : collection of str
        Parameters that have a flag already.
    """
    tables = {task: documented(estimator) for task, estimator in estimators.items()}
    for name in dict.fromkeys(name for table in tables.values() for name in table):
        variants = {task: table[name] for task, table in tables.items() if name in table}
        if name not in besides:
            _add_flag(parser, variants, defaults)


def _add_flag(parser: Any, variants: Mapping[str, Parameter], defaults: Mapping[str, Any]) -> None:
    first = next(iter(variants.values()))
    flag = "--" + first.name.replace("_", "-")
    common: dict[str, Any] = {"dest": first.name, "help": _help(variants, defaults)}
    common["default"] = defaults.get(first.name, argparse.SUPPRESS)
    if isinstance(first.default, bool):
        parser.add_argument(flag, action=argparse.BooleanOptionalAction, **common)
    elif _PER_FIELD in first.kind:
        parser.add_argument(flag, type=per_field, metavar="X|X,X,...|FIELD=X,...", **common)
    elif first.kind.startswith(_SEVERAL):
        parser.add_argument(flag, type=several, metavar="N,N,...", **common)
    else:
        choices = _choices(first.kind)
        parser.add_argument(flag, type=value_of, metavar=choices or _metavar(first), **common)


def _help(variants: Mapping[str, Parameter], defaults: Mapping[str, Any]) -> str:
    texts = {}
    for task, parameter in variants.items():
        default = defaults.get(parameter.name, parameter.default)
        # Objects of one's own can be given in Python only.
        text = re.sub(r"[;.] [Aa] spec .*$", ".", parameter.text)
        texts[task] = f"{text} (default: {'none' if default is None else default})"
    if len(set(texts.values())) == 1 and len(texts) > 1:
        told = next(iter(texts.values()))
    else:
        told = " ".join(f"For {task}: {text}" for task, text in texts.items())
    return told.replace("%", "%%")


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


def per_field(text: str) -> Any:
    """Return one value, or several by field: ``3,auto,5`` as a list, ``user=3,film=5`` as a dict.

    Raises
    ------
    argparse.ArgumentTypeError
        For a text that names some fields only.
    """
    parts = text.split(",")
    if "=" not in text:
        return value_of(text) if len(parts) == 1 else [value_of(part) for part in parts]
    pairs = [part.rpartition("=") for part in parts]
    if not all(equals for _, equals, _ in pairs):
        raise argparse.ArgumentTypeError(f"must name a field for each value, got {text!r}")
    return {name: value_of(value) for name, _, value in pairs}


def several(text: str) -> tuple[Any, ...]:
    """Return the values of a list with commas."""
    return tuple(value_of(part) for part in text.split(","))


def given(args: argparse.Namespace, task: str, estimators: Mapping[str, type]) -> dict[str, Any]:
    """Return the parameters of the estimator of a task among the arguments.

    Raises
    ------
    ValueError
        For a flag that was given and that only another estimator has.
    """
    own = documented(estimators[task])
    for other, estimator in estimators.items():
        for name in documented(estimator):
            if name not in own and hasattr(args, name):
                flag = "--" + name.replace("_", "-")
                raise ValueError(f"{flag} is for {other}, but the task is {task}.")
    return {name: getattr(args, name) for name in own if hasattr(args, name)}
