"""Telling the processor and the reference counter about memory."""

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


@intrinsic
def _without_owner(typingctx: Any, array: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        make = context.make_array(array)
        view = make(context, builder, values[0])
        view.meminfo = ir.Constant(view.meminfo.type, None)
        view.parent = ir.Constant(view.parent.type, None)
        return view._getvalue()

    return array(array), codegen


def borrow(array: Any) -> Any:
    """Return a view that is not counted: for compiled loops whose caller holds the array.

    Each call of a function that is not inlined counts its arrays' references with atomic
    instructions. That costs as much as a short row, and threads that share arrays wait for each
    other at the counters.
    """
    return array


@overload(borrow)
def _borrow(array):
    if isinstance(array, types.Array):
        return lambda array: _without_owner(array)
    return None
