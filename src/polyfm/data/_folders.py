"""Folders that appear under their name as a whole, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from polyfm.data._sections import DatasetError

_LOCK = "writer.lock"
_SECONDS_TO_LOCK = 60
_EXCHANGE, _CURRENT = 2, -100


class Draft:
    """A hidden folder beside ``path`` that becomes it when all is written.

    It is called ``.NAME.partial-PID``. Drafts that a killed process left behind are removed; one
    is known by its lock, which the operating system has taken off.

    Parameters
    ----------
    path : Path
        The final name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
        for stale in abandoned(path):
            shutil.rmtree(stale, ignore_errors=True)
        self.folder = path.with_name(f".{path.name}.partial-{os.getpid()}")
        try:
            self.folder.mkdir()
        except FileExistsError:
            raise DatasetError(path, "is being written by this process already.") from None
        self._lock: IO[bytes] | None = (self.folder / _LOCK).open("wb")
        with contextlib.suppress(OSError):  # a file system without locks: drafts are not removed
            _lock(self._lock)

    def publish(self, replace: bool) -> None:
        """Give the folder its final name; ``replace`` puts it in place of a former one.

        A process that is killed meanwhile leaves the former folder or the new one under the name.
        Only where a system cannot exchange two folders, there may be none: the former one is then
        in the hidden ``.NAME.former``.
        """
        if os.name == "nt":  # which does not remove open files
            self._unlock()
        (self.folder / _LOCK).unlink()
        sync(self.folder)
        if replace and self.path.exists():
            self._exchange()
        else:
            self._rename()
        self._unlock()
        sync(self.path.parent)

    def _rename(self) -> None:
        try:
            self.folder.rename(self.path)
        except OSError as error:
            if self.path.exists():
                problem = "has come into being meanwhile; overwrite=True replaces it."
                raise DatasetError(self.path, problem) from error
            raise

    def _exchange(self) -> None:
        former = self.path.with_name(f".{self.path.name}.former")
        shutil.rmtree(former, ignore_errors=True)
        if _exchange(self.folder, self.path):
            self.folder.rename(former)
        else:
            self.path.rename(former)
            self.folder.rename(self.path)
        shutil.rmtree(former, ignore_errors=True)

    def discard(self) -> None:
        """Remove all that was written."""
        self._unlock()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def sync(folder: Path) -> None:
    """Make sure that the names in a folder are on the disk."""
    if os.name == "nt":  # which has no such call
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def drafts(path: Path) -> Iterator[Path]:
    """Find the drafts of a folder, whoever writes them."""
    start = f".{path.name}.partial-"
    if path.parent.is_dir():
        names = (entry.name for entry in os.scandir(path.parent))
        yield from (path.with_name(name) for name in sorted(names) if name.startswith(start))


def abandoned(path: Path) -> list[Path]:
    """Return the drafts of a folder whose writer is dead."""
    return [draft for draft in drafts(path) if _is_abandoned(draft)]


def _is_abandoned(draft: Path) -> bool:
    try:
        with (draft / _LOCK).open("r+b") as stream:
            _lock(stream)
            return True
    except FileNotFoundError:
        # The writer locks it at once and takes the lock away just before the folder gets its name.
        return draft.exists() and time.time() - draft.stat().st_mtime > _SECONDS_TO_LOCK
    except OSError:
        return False


def _lock(stream: IO[bytes]) -> None:
    """Lock a file until it is closed or the process ends; an OSError if another has the lock."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders at one blow; return whether the system can."""
    swap = _renameat2()
    if swap is None:
        return False
    return bool(swap(_CURRENT, os.fsencode(one), _CURRENT, os.fsencode(other), _EXCHANGE) == 0)


def _renameat2() -> Callable[..., Any] | None:
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
