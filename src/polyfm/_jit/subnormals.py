"""Numbers too small for full precision, which processors handle ten and more times slower.

A penalty that takes all factors towards zero never quite gets there: it leaves numbers below the
least normal one (1.2e-38 in single precision), and products of small factors get there earlier.
Compiled loops that may meet them let the processor take them for zero, within the loop alone, as
the mode belongs to the thread and Python code expects the usual one.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

_X86_MODE = 0x8040
"""Flush results to zero (bit 15) and take operands for zero (bit 6)."""
_ARM_MODE = 1 << 24


def _architecture() -> str:
    return str(binding.get_process_triple()).split("-")[0]


def _x86_register(builder: Any, name: str, pointer: Any) -> None:
    byte = builder.bitcast(pointer, ir.IntType(8).as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [byte.type])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}")
    builder.call(function, [byte])


def _read_mode(builder: Any) -> Any:
    """Return the floating-point mode of the thread as 64 bits, 0 where there is no way to it."""
    word, half = ir.IntType(64), ir.IntType(32)
    if _architecture() in ("x86_64", "i686"):
        room = cgutils.alloca_once(builder, half)
        _x86_register(builder, "stmxcsr", room)
        return builder.zext(builder.load(room), word)
    if _architecture() in ("aarch64", "arm64"):
        kind = ir.FunctionType(word, [])
        name = "llvm.aarch64.get.fpcr"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [])
    return ir.Constant(word, 0)


def _write_mode(builder: Any, mode: Any) -> None:
    word, half = ir.IntType(64), ir.IntType(32)
    if _architecture() in ("x86_64", "i686"):
        room = cgutils.alloca_once(builder, half)
        builder.store(builder.trunc(mode, half), room)
        _x86_register(builder, "ldmxcsr", room)
    elif _architecture() in ("aarch64", "arm64"):
        kind = ir.FunctionType(ir.VoidType(), [word])
        name = "llvm.aarch64.set.fpcr"
        builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [mode])


@intrinsic
def _flush(typingctx: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        mode = _read_mode(builder)
        is_x86 = _architecture() in ("x86_64", "i686")
        bits = ir.Constant(mode.type, _X86_MODE if is_x86 else _ARM_MODE)
        _write_mode(builder, builder.or_(mode, bits))
        return mode

    return types.int64(), codegen


@intrinsic
def _restore(typingctx: Any, mode: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _write_mode(builder, values[0])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


def flush_subnormals() -> int:
    """Take subnormal numbers for zero in this thread from now on; return the mode there was.

    In plain Python nothing changes.
    """
    return 0


def restore_mode(mode: int) -> None:
    """Return to the mode that :func:`flush_subnormals` has returned."""


@overload(flush_subnormals)
def _flush_subnormals():
    return lambda: _flush()


@overload(restore_mode)
def _restore_mode(mode):
    return lambda mode: _restore(mode)
