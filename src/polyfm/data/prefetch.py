"""Making items ready in a thread while the caller is busy with those before."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
_SECONDS_BETWEEN_LOOKS = 0.1
_PATIENCE = 1.0
"""Seconds to wait for a thread to end that may be waiting for a pipe itself."""


class _Failed:
    """What the thread has died of, on its way to the caller."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


_END = object()


def prefetched(items: Iterable[T], depth: int = 2) -> Iterator[T]:
    """Yield the items of an iterable, which another thread asks for ahead of time.

    Parameters
    ----------
    items : iterable
        Asked for in one thread, which is started with the first item and ended with the last, an
        error, or when the caller goes no further.
    depth : int, default=2
        Items that may wait, so that memory is bounded.

    Raises
    ------
    Exception
        What the iterable raises, after the items before it.
    """
    ready: queue.Queue[Any] = queue.Queue(depth)
    is_over = threading.Event()
    thread = threading.Thread(
        target=_fill, args=(items, ready, is_over), name="polyfm-reader", daemon=True
    )
    thread.start()
    try:
        while (item := ready.get()) is not _END:
            if isinstance(item, _Failed):
                raise item.error
            yield item
    finally:
        is_over.set()
        thread.join(_PATIENCE)


def _fill(items: Iterable[Any], ready: queue.Queue[Any], is_over: threading.Event) -> None:
    try:
        for item in items:
            if not _put(ready, item, is_over):
                return
    except BaseException as error:  # the caller's to handle, whatever it is
        _put(ready, _Failed(error), is_over)
    else:
        _put(ready, _END, is_over)
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


def _put(ready: queue.Queue[Any], item: Any, is_over: threading.Event) -> bool:
    """Wait until there is room; return whether the caller is still there."""
    while not is_over.is_set():
        try:
            ready.put(item, timeout=_SECONDS_BETWEEN_LOOKS)
        except queue.Full:
            continue
        return True
    return False
