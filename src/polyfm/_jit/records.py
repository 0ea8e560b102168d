"""Records of four numbers or two, scattered over memory, and lanes: eight records at a time.

What belongs to one coordinate lies in one record, so that a single cache line is fetched for it.
Arithmetic wants the same number of eight records side by side. Between the two stands a
transposition in registers: one load and one store for each record, whole.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from polyfm._jit.lanes import LANES, LanesType, array_pointer

RECORD, SHORT_RECORD = 4, 2
"""Numbers in a record, and in a short one."""
_LOW = [0, 8, 1, 9, 4, 12, 5, 13]
_HIGH = [2, 10, 3, 11, 6, 14, 7, 15]
_LOW_PAIRS = [0, 1, 8, 9, 4, 5, 12, 13]
_HIGH_PAIRS = [2, 3, 10, 11, 6, 7, 14, 15]
_FIRST = [0, 2, 8, 10, 4, 6, 12, 14]
_SECOND = [1, 3, 9, 11, 5, 7, 13, 15]


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


def load_short_records(records: Any, places: Any, at: int) -> tuple[Any, Any]:
    """Return the first and the second numbers of the short records at ``places[at : at + 8]``."""
    first, second = records.reshape(-1, SHORT_RECORD)[places[at : at + LANES]].T
    return first, second


def store_short_records(records: Any, places: Any, at: int, first: Any, second: Any) -> None:
    """Write the numbers of short records, the last first: of equal places the first is kept."""
    flat = records.reshape(-1, SHORT_RECORD)
    for i in range(LANES - 1, -1, -1):
        flat[places[at + i]] = first[i], second[i]


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


def _joined(builder: Any, rows: list[Any]) -> Any:
    """Join vectors, a power of two of them, into one."""
    while len(rows) > 1:
        numbers = list(range(2 * rows[0].type.count))
        rows = [_shuffled(builder, rows[i], rows[i + 1], numbers) for i in range(0, len(rows), 2)]
    return rows[0]


class _Emitter:
    """What both directions need: pointers to records and to planes."""

    def __init__(self, context: Any, builder: Any, signature: Any, values: Any) -> None:
        self.builder = builder
        self._context, self._values, self._types = context, values, signature.args
        self._element = context.get_value_type(self._types[0].dtype)
        self.align = self._types[0].dtype.bitwidth // 8

    def record(self, i: int, size: int = RECORD) -> Any:
        builder = self.builder
        at = builder.add(self._values[2], ir.Constant(self._values[2].type, i))
        pointer = array_pointer(self._context, builder, self._types[1], self._values[1], at)
        place = builder.sext(builder.load(pointer), ir.IntType(64))
        offset = builder.mul(place, ir.Constant(place.type, size))
        first = array_pointer(self._context, builder, self._types[0], self._values[0], offset)
        return builder.bitcast(first, ir.VectorType(self._element, size).as_pointer())

    def as_one(self, records: Any, place: int, pointer: Any) -> Any:
        """Return one of four short records and its pointer, as one number if there is such."""
        if isinstance(self._element, ir.DoubleType):
            numbers = [2 * place, 2 * place + 1]
            return _shuffled(self.builder, records, records, numbers), pointer
        four = self.builder.bitcast(records, ir.VectorType(ir.DoubleType(), 4))
        record = self.builder.extract_element(four, ir.Constant(ir.IntType(32), place))
        return record, self.builder.bitcast(pointer, record.type.as_pointer())

    def plane(self, p: int) -> Any:
        builder = self.builder
        array = self._context.make_array(self._types[3])(self._context, builder, self._values[3])
        stride = builder.extract_value(array.shape, 1)
        offset = builder.add(self._values[4], builder.mul(stride, ir.Constant(stride.type, p)))
        pointer = builder.gep(array.data, [offset])
        return builder.bitcast(pointer, ir.VectorType(self._element, LANES).as_pointer())


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


@intrinsic
def _load_short(typingctx: Any, records: Any, places: Any, at: Any) -> Any:
    lanes = LanesType(records.dtype)

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        emit = _Emitter(context, builder, signature, values)
        # So that one shuffle within halves of registers brings them in order.
        two = [
            _joined(
                builder,
                [builder.load(emit.record(i, SHORT_RECORD), align=emit.align) for i in some],
            )
            for some in ((0, 1, 4, 5), (2, 3, 6, 7))
        ]
        planes = [_shuffled(builder, two[0], two[1], some) for some in (_FIRST, _SECOND)]
        return context.make_tuple(builder, signature.return_type, planes)

    return types.UniTuple(lanes, SHORT_RECORD)(records, places, types.intp), codegen


@intrinsic
def _store_short(
    typingctx: Any, records: Any, places: Any, at: Any, first: Any, second: Any
) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        emit = _Emitter(context, builder, signature, values)
        halves = [_shuffled(builder, values[3], values[4], numbers) for numbers in (_LOW, _HIGH)]
        for i in range(LANES - 1, -1, -1):
            # Two records of one half, two of the other, and so on.
            half, place = halves[i // 2 % 2], 2 * (i // 4) + i % 2
            pointer = emit.record(i, SHORT_RECORD)
            builder.store(*emit.as_one(half, place, pointer), align=emit.align)
        return context.get_dummy_value()

    return types.void(records, places, types.intp, first, second), codegen


@overload(load_records)
def _load(records, places, at, planes, to):
    return lambda records, places, at, planes, to: _load_records(records, places, at, planes, to)


@overload(store_records)
def _store(records, places, at, planes, to):
    return lambda records, places, at, planes, to: _store_records(records, places, at, planes, to)


@overload(load_short_records)
def _load_two(records, places, at):
    return lambda records, places, at: _load_short(records, places, at)


@overload(store_short_records)
def _store_two(records, places, at, first, second):
    return lambda records, places, at, first, second: _store_short(
        records, places, at, first, second
    )
