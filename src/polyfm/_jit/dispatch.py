"""Functions whose implementation is chosen by the type of their first argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import overload

from polyfm._jit import sources


def generic(declaration: Callable[..., Any]) -> Any:
    """Turn a declaration into a function dispatched on its first argument, the *spec*.

    A spec is an instance of a ``NamedTuple`` class: a loss, a kernel, a penalty, an update rule.
    The same generic function works in plain Python, where the implementation is looked up when it
    is called, and inside compiled code, where it is resolved when the caller is compiled and
    inlined by LLVM.

    Parameters
    ----------
    declaration : callable
        A function with the signature and the documentation of the contract; its body is never run.

    Returns
    -------
    callable
        The generic function. ``function.implements(Spec)`` registers an implementation and
        ``function.table`` maps spec classes to implementations.

    Raises
    ------
    TypeError
        When it is called with a spec that has no implementation.
    """
    table: dict[type, Callable[..., Any]] = {}

    @functools.wraps(declaration)
    def call(spec: Any, *args: Any) -> Any:
        try:
            implementation = table[type(spec)]
        except KeyError:
            known = ", ".join(sorted(cls.__name__ for cls in table)) or "nothing yet"
            raise TypeError(
                f"{declaration.__name__}() has no implementation for {type(spec).__name__}; "
                f"it knows {known}."
            ) from None
        return implementation(spec, *args)

    @overload(
        call,
        strict=False,
        jit_options={"_nrt": False, "error_model": "numpy", "forceinline": True},
    )
    def _resolve(spec, *args):
        if isinstance(spec, types.BaseNamedTuple):
            return table.get(spec.instance_class)
        return None

    def implements(cls: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def register(implementation: Callable[..., Any]) -> Callable[..., Any]:
            table[cls] = implementation
            sources.register(implementation)
            return implementation

        return register

    call.implements = implements  # type: ignore[attr-defined]
    call.table = table  # type: ignore[attr-defined]
    return call
