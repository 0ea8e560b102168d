"""All or nothing: an estimator whose fit fails is as it was before."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


def all_or_nothing(method: Method) -> Method:
    """Make a method restore the attributes of its object when it raises.

    A method that wants to leave something behind all the same, as an interrupted first fit does,
    sets ``self._kept`` to the attributes to leave. One that changes arrays in place sets
    ``self._undo`` to functions that change them back.
    """

    @functools.wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(self.__dict__)
        try:
            result = method(self, *args, **kwargs)
            self.__dict__.pop("_undo", None)
            return result
        except BaseException:
            for take_back in self.__dict__.get("_undo", ()):
                take_back()
            kept = self.__dict__.pop("_kept", None)
            self.__dict__.clear()
            self.__dict__.update(before if kept is None else kept)
            raise

    return wrapper  # type: ignore[return-value]
