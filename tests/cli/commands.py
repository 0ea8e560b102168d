"""What calling the command line in this process gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

N = 400
"""Rows of the files in the fixture ``folder``."""


class Result(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Result]
