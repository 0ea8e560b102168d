"""Eight bytes of a buffer at a time, and the bits of a word."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

from polyfm._jit.lanes import array_pointer

_WORD = ir.IntType(64)


@intrinsic
def _load_word(typingctx: Any, buffer: Any, at: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = array_pointer(context, builder, buffer, *values)
        word = builder.load(builder.bitcast(pointer, _WORD.as_pointer()))
        word.align = 1
        return word

    return types.uint64(buffer, types.intp), codegen


@intrinsic
def _zeros_behind(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


@intrinsic
def _zeros_before(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.ctlz(values[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


def load_word(buffer: Any, at: int) -> Any:
    """Return ``buffer[at:at + 8]``, of ``uint8``, as one ``uint64``, the first byte the lowest.

    Compiled, nothing checks that the buffer goes on so far.
    """
    return np.uint64(int.from_bytes(bytes(buffer[at : at + 8]), "little"))


@overload(load_word)
def _compiled_load_word(buffer, at):
    return lambda buffer, at: _load_word(buffer, at)


def zeros_behind(word: Any) -> int:
    """Return the number of bits behind the last 1 of a ``uint64``: 64 if it is 0."""
    word = int(word)
    return (word & -word).bit_length() - 1 if word else 64


@overload(zeros_behind)
def _compiled_zeros_behind(word):
    return lambda word: _zeros_behind(word)


def zeros_before(word: Any) -> int:
    """Return the number of bits before the first 1 of a ``uint64``: 64 if it is 0."""
    return 64 - int(word).bit_length()


@overload(zeros_before)
def _compiled_zeros_before(word):
    return lambda word: _zeros_before(word)
