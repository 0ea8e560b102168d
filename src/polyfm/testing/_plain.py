"""Compiled functions as plain Python, to compare the two in one process."""

from __future__ import annotations

import functools
import types
from typing import Any

import numpy as np

_PACKAGE = "polyfm"


def plain(function: Any) -> Any:
    """Return a function that does in plain Python what a compiled one does.

    It and everything of this package that it calls run as ``NUMBA_DISABLE_JIT=1`` would run them,
    without restarting the process.

    Parameters
    ----------
    function : callable
        A compiled function, a generic function, or any Python function that calls such.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfm.losses import Squared
    >>> from polyfm.losses.evaluate import mean_loss
    >>> from polyfm.testing import plain
    >>> plain(mean_loss)(Squared(), np.zeros(2), np.array([1.0, 2.0]), np.ones(2))
    1.25
    """
    interpreted = _interpreted(function)

    @functools.wraps(interpreted)
    def quiet(*args: Any) -> Any:
        # Compiled code does not warn, least of all of the lanes that hold no coordinate.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return interpreted(*args)

    return quiet


def _interpreted(function: Any) -> Any:
    return _plain_function(getattr(function, "py_func", function))


@functools.cache
def _plain_function(function: Any) -> Any:
    if hasattr(function, "implements"):
        return _PlainGeneric(function)
    namespace: dict[str, Any] = {"__builtins__": function.__globals__["__builtins__"]}
    copy = types.FunctionType(
        function.__code__,
        namespace,
        function.__name__,
        function.__defaults__,
        tuple(types.CellType(_replaced(c.cell_contents)) for c in function.__closure__ or ()),
    )
    for name in _names(function.__code__):
        if name in function.__globals__:
            namespace[name] = _replaced(function.__globals__[name])
    return copy


def _names(code: types.CodeType) -> set[str]:
    """Return the names that a function and the functions inside it may look up."""
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _replaced(thing: Any) -> Any:
    if isinstance(thing, types.ModuleType):
        return _PlainModule(thing) if thing.__name__.split(".")[0] == _PACKAGE else thing
    if hasattr(thing, "py_func") or hasattr(thing, "implements"):
        return _Later(thing)
    return thing


class _Later:
    """A function that is replaced when it is first called, so that recursion ends."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return _interpreted(self._function)(*args)


class _PlainModule:
    """A module whose compiled functions are plain ones."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _replaced(getattr(self._module, name))


class _PlainGeneric:
    """A generic function whose implementations are plain ones."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, spec: Any, *args: Any) -> Any:
        implementation = self._function.table.get(type(spec))
        if implementation is None:
            return self._function(spec, *args)
        return _interpreted(implementation)(spec, *args)
