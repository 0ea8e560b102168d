"""Telling the processor what memory will be needed."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from polyfm._jit.lanes import array_pointer


@intrinsic
def _prefetch_line(typingctx: Any, array: Any, offset: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = array_pointer(context, builder, array, *values)
        byte = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte.type, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        write, keep_in_cache, data = (ir.Constant(word, v) for v in (1, 3, 1))
        builder.call(function, [byte, write, keep_in_cache, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


def prefetch(array: Any, offset: int) -> None:
    """Ask for the cache line that holds flat position ``offset``, to be written soon."""


@overload(prefetch)
def _prefetch(array, offset):
    return lambda array, offset: _prefetch_line(array, offset)
