"""How much memory is free, asked before much of it is taken.

Systems promise more memory than they have, and end a process that uses what it was promised.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["free_bytes", "has_room"]

_SMALL = 1 << 28
"""Bytes that are taken without asking."""
_CGROUPS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
)


def has_room(n_bytes: int) -> bool:
    """Say whether so many bytes more can be taken; True where the system does not tell."""
    if n_bytes <= _SMALL:
        return True
    free = free_bytes()
    return free is None or n_bytes <= free


def free_bytes() -> int | None:
    """Return the bytes that this process may still take; None where the system does not tell."""
    known = [n for n in (_free_of_machine(), _free_of_group()) if n is not None]
    return min(known, default=None)


def _free_of_machine() -> int | None:
    found = re.search(r"MemAvailable:\s*(\d+) kB", _text("/proc/meminfo"))
    if found is not None:
        return 1024 * int(found[1])
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _free_of_group() -> int | None:
    """Return what is left of the limit of a container."""
    folder = "/sys/fs/cgroup"
    for limit, used, cached in _CGROUPS:
        most, now = _text(f"{folder}/{limit}").strip(), _text(f"{folder}/{used}").strip()
        if most.isdigit() and now.isdigit():
            statistics = _text(str(Path(folder, limit).with_name("memory.stat")))
            found = re.search(rf"^{cached} (\d+)$", statistics, re.MULTILINE)
            return max(int(most) - int(now) + (int(found[1]) if found else 0), 0)
    return None


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
