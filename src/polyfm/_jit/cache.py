"""Compiling with Numba and keeping the result in a disk cache that follows the source."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pathlib
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

from polyfm._jit import sources
from polyfm._jit.store import Store

_OWN_FOLDER = re.compile("polyfm-[0-9a-f]{16}")
_FOLDERS_KEPT = 8

_dispatchers: list[Any] = []


def cache_folder() -> pathlib.Path:
    """Return the folder of compiled code: ``POLYFM_JIT_CACHE``, else the user's cache folder."""
    chosen = os.environ.get("POLYFM_JIT_CACHE") or os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return pathlib.Path(chosen)
    if sys.platform == "win32":
        base = pathlib.Path(os.environ.get("LOCALAPPDATA", pathlib.Path.home()))
    elif sys.platform == "darwin":
        base = pathlib.Path.home() / "Library" / "Caches"
    else:
        base = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    return base / "polyfm" / "jit"


@functools.cache
def _is_writable(folder: pathlib.Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


class _Locator(_CacheLocator):
    """Keeps compiled code in a folder of its own for each state of the source code.

    A process whose users have registered specs of their own has another fingerprint than one
    without, and may have inlined other code.
    """

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._file = py_file
        self._line = py_func.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(cache_folder() / f"polyfm-{sources.fingerprint()[:16]}")

    def ensure_cache_path(self) -> None:
        path = pathlib.Path(self.get_cache_path())
        if not path.is_dir():
            path.mkdir(parents=True, exist_ok=True)
            _drop_old_folders(path.parent)

    def get_source_stamp(self) -> str:
        return sources.fingerprint()

    def get_disambiguator(self) -> str:
        return f"{hashlib.sha256(self._file.encode()).hexdigest()[:10]}-{self._line}"

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func, py_file)


def _drop_old_folders(parent: pathlib.Path) -> None:
    """Delete what former versions have compiled, but for the folders made last."""
    made = [f for f in parent.iterdir() if f.is_dir() and _OWN_FOLDER.fullmatch(f.name)]
    try:
        made.sort(key=lambda f: f.stat().st_mtime)
    except OSError:  # another process is at it
        return
    for folder in made[:-_FOLDERS_KEPT]:
        shutil.rmtree(folder, ignore_errors=True)


class _Impl(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012 - numba's protocol

    def check_cachable(self, cres: Any) -> bool:
        # Only functions of this package are cached, and none of them holds a dynamic global.
        return not cres.lifted


class _Cache(FunctionCache):
    _impl_class = _Impl

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        self._cache_path = ""
        self._follow_source()

    def _follow_source(self) -> None:
        # Implementations may be registered after the caller was decorated.
        path = self._impl.locator.get_cache_path()
        if path != self._cache_path:
            self._cache_path = path
            self._cache_file = Store(path, self._impl.filename_base)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        self._follow_source()
        try:
            return super()._load_overload(sig, target_context)
        except OSError:  # unreadable: compile
            return None

    def _save_overload(self, sig: Any, data: Any) -> None:
        self._follow_source()
        # A full disk, or a folder of another user: go on uncached.
        with contextlib.suppress(OSError):
            super()._save_overload(sig, data)


def jit(function: Callable[..., Any]) -> Any:
    """Compile ``function`` on first use, without the GIL, cached on disk where a folder allows it.

    Division by zero follows IEEE 754, as in NumPy. Functions that call each other are inlined, and
    references to arrays are not counted: per row, the counters' atomic instructions would cost
    more than the arithmetic, and threads would wait for each other at them. So a function may not
    allocate or return an array; one that does uses :func:`jit_allocating`.

    With ``NUMBA_DISABLE_JIT=1`` the function runs as plain Python, without NumPy's warnings of
    overflow and the like, as compiled code gives none.
    """
    return _compiled(function, forceinline=True, _nrt=False)


def jit_allocating(function: Callable[..., Any]) -> Any:
    """Compile as :func:`jit` does a function that makes new arrays."""
    return _compiled(function)


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    if config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)
    dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if _is_writable(cache_folder()):
        dispatcher._cache = _Cache(function)
    _dispatchers.append(dispatcher)
    return dispatcher


def compile_count() -> int:
    """Return how many signatures this process has compiled itself, cache hits not counted."""
    return sum(sum(d.stats.cache_misses.values()) for d in _dispatchers)
