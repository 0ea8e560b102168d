"""Everything polyfm knows about compiling: the rest of the library writes plain Python.

``jit`` compiles a function with the library's options and its disk cache, ``generic`` chooses an
implementation by the type of its first argument, and ``lanes`` is the number type that lets one
scalar formula run on eight bases at a time.
"""

from polyfm._jit.cache import compile_count, jit, jit_allocating
from polyfm._jit.dispatch import generic
from polyfm._jit.lanes import (
    LANES,
    absolute,
    broadcast,
    horizontal_sum,
    load,
    load_like,
    maximum,
    minimum,
    power,
    square_root,
    store,
    where_positive,
)
from polyfm._jit.memory import prefetch
from polyfm._jit.subnormals import flush_subnormals, restore_mode
from polyfm._jit.words import load_word, zeros_before, zeros_behind

__all__ = [
    "LANES",
    "absolute",
    "broadcast",
    "compile_count",
    "flush_subnormals",
    "generic",
    "horizontal_sum",
    "jit",
    "jit_allocating",
    "load",
    "load_like",
    "load_word",
    "maximum",
    "minimum",
    "power",
    "prefetch",
    "restore_mode",
    "square_root",
    "store",
    "where_positive",
    "zeros_before",
    "zeros_behind",
]
