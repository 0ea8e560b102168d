"""Records of four numbers, scattered over memory, and lanes: eight records at a time.

What belongs to one coordinate lies in one record, so that a single cache line is fetched for it.
Arithmetic wants the same number of eight records side by side. Between the two stands a
transposition in registers: one load and one store for each record, whole.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from polyfm._jit.lanes import LANES, array_pointer

RECORD = 4
"""Numbers in a record."""
_LOW = [0, 8, 1, 9, 4, 12, 5, 13]
_HIGH = [2, 10, 3, 11, 6, 14, 7, 15]
_LOW_PAIRS = [0, 1, 8, 9, 4, 5, 12, 13]
_HIGH_PAIRS = [2, 3, 10, 11, 6, 7, 14, 15]


def load_records(records: Any, places: Any, at: int, planes: Any, to: int) -> None:
    """Copy the records at ``places[at : at + 8]`` into the columns from ``to`` of (4, n) planes."""
    flat = records.reshape(-1, RECORD)
    for i in range(LANES):
        planes[:, to + i] = flat[places[at + i]]


def store_records(records: Any, places: Any, at: int, planes: Any, to: int) -> None:
    """Copy the columns from ``to`` back, the last first: of equal places the first is kept."""
    flat = records.reshape(-1, RECORD)
    for i in range(LANES - 1, -1, -1):
        flat[places[at + i]] = planes[:, to + i]


def _shuffled(builder: Any, one: Any, other: Any, numbers: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), numbers)
    return builder.shuffle_vector(one, other, mask)


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Transpose two blocks of four by four, side by side in four vectors of eight."""
    low = [_shuffled(builder, rows[i], rows[i + 1], _LOW) for i in (0, 2)]
    high = [_shuffled(builder, rows[i], rows[i + 1], _HIGH) for i in (0, 2)]
    return [
        _shuffled(builder, pair[0], pair[1], numbers)
        for pair in (low, high)
        for numbers in (_LOW_PAIRS, _HIGH_PAIRS)
    ]


class _Emitter:
    """What both directions need: pointers to records and to planes."""

    def __init__(self, context: Any, builder: Any, signature: Any, values: Any) -> None:
        self.builder = builder
        self._context, self._values, self._signature = context, values, signature
        self._records, _, self._at, self._planes, self._to = signature.args
        self.element = context.get_value_type(self._records.dtype)
        self.align = self._records.dtype.bitwidth // 8

    def record(self, i: int) -> Any:
        builder, places = self.builder, self._signature.args[1]
        at = builder.add(self._values[2], ir.Constant(self._values[2].type, i))
        pointer = array_pointer(self._context, builder, places, self._values[1], at)
        place = builder.sext(builder.load(pointer), ir.IntType(64))
        offset = builder.mul(place, ir.Constant(place.type, RECORD))
        first = array_pointer(self._context, builder, self._records, self._values[0], offset)
        return builder.bitcast(first, ir.VectorType(self.element, RECORD).as_pointer())

    def plane(self, p: int) -> Any:
        builder = self.builder
        array = self._context.make_array(self._planes)(self._context, builder, self._values[3])
        stride = builder.extract_value(array.shape, 1)
        offset = builder.add(self._values[4], builder.mul(stride, ir.Constant(stride.type, p)))
        pointer = builder.gep(array.data, [offset])
        return builder.bitcast(pointer, ir.VectorType(self.element, LANES).as_pointer())


@intrinsic
def _load_records(typingctx: Any, records: Any, places: Any, at: Any, planes: Any, to: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        emit = _Emitter(context, builder, signature, values)
        four = [builder.load(emit.record(i), align=emit.align) for i in range(LANES)]
        rows = [_shuffled(builder, four[i], four[i + 4], list(range(LANES))) for i in range(4)]
        for p, lanes in enumerate(_transposed(builder, rows)):
            builder.store(lanes, emit.plane(p), align=emit.align)
        return context.get_dummy_value()

    return types.void(records, places, types.intp, planes, types.intp), codegen


@intrinsic
def _store_records(typingctx: Any, records: Any, places: Any, at: Any, planes: Any, to: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        emit = _Emitter(context, builder, signature, values)
        lanes = [builder.load(emit.plane(p), align=emit.align) for p in range(RECORD)]
        rows = _transposed(builder, lanes)
        for i in range(LANES - 1, -1, -1):
            half = [0, 1, 2, 3] if i < 4 else [4, 5, 6, 7]
            four = _shuffled(builder, rows[i % 4], rows[i % 4], half)
            builder.store(four, emit.record(i), align=emit.align)
        return context.get_dummy_value()

    return types.void(records, places, types.intp, planes, types.intp), codegen


@overload(load_records)
def _load(records, places, at, planes, to):
    return lambda records, places, at, planes, to: _load_records(records, places, at, planes, to)


@overload(store_records)
def _store(records, places, at, planes, to):
    return lambda records, places, at, planes, to: _store_records(records, places, at, planes, to)
