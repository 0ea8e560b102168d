"""A fingerprint of all code that compiled functions may have inlined.

A compiled solver inlines kernels, losses and update rules from other files, so the time stamp of
its own file says nothing about whether its cached machine code is current. The fingerprint covers
the whole package, by content, and every implementation registered from outside of it.
"""

from __future__ import annotations

import functools
import hashlib
import pathlib
from collections.abc import Callable
from typing import Any

_PACKAGE = pathlib.Path(__file__).resolve().parent.parent
_COMPILED_FOLDERS = (
    "_jit",
    "data",
    "kernels",
    "losses",
    "models",
    "penalties",
    "solvers",
    "updates",
)
_outside: dict[str, bytes] = {}


def register(implementation: Callable[..., Any]) -> None:
    """Remember an implementation from outside the package, whose code the cache must follow."""
    code = implementation.__code__
    if pathlib.Path(code.co_filename).is_relative_to(_PACKAGE):
        return
    name = f"{implementation.__module__}.{implementation.__qualname__}:{code.co_firstlineno}"
    constants = repr([c for c in code.co_consts if not hasattr(c, "co_code")]).encode()
    _outside[name] = code.co_code + constants + repr(code.co_names).encode()


@functools.cache
def _package_digest() -> bytes:
    digest = hashlib.sha256()
    for folder in _COMPILED_FOLDERS:
        for path in sorted((_PACKAGE / folder).glob("*.py")):
            digest.update(path.name.encode())
            digest.update(path.read_bytes())
    return digest.digest()


def fingerprint() -> str:
    """Return a hexadecimal digest of the package's and all registered outside code."""
    digest = hashlib.sha256(_package_digest())
    for name in sorted(_outside):
        digest.update(name.encode())
        digest.update(_outside[name])
    return digest.hexdigest()
