"""A number type of eight lanes, so that one scalar formula serves eight bases at a time.

Kernels, penalties and update rules are written as scalar arithmetic. Compiled code runs them on
``Lanes``, one SIMD register's worth of bases; plain Python runs them on NumPy vectors of the same
length. Nothing depends on a compiler's mood to vectorise, and a formula is written once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

LANES = 8


class LanesType(types.Type):
    """Numba's view of eight floating-point numbers, or whole ones, in one register."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")

    @property
    def key(self) -> Any:
        return self.dtype


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, fe_type: LanesType) -> None:
        element = manager.lookup(fe_type.dtype).get_value_type()
        super().__init__(manager, fe_type, ir.VectorType(element, LANES))


def _splat(builder: Any, value: Any, count: int = LANES) -> Any:
    vector = ir.VectorType(value.type, count)
    index = ir.Constant(ir.IntType(32), 0)
    single = builder.insert_element(ir.Constant(vector, ir.Undefined), value, index)
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), count), [0] * count)
    return builder.shuffle_vector(single, ir.Constant(vector, ir.Undefined), zeros)


def _as_lanes(context: Any, builder: Any, value: Any, source: Any, target: LanesType) -> Any:
    if isinstance(source, LanesType):
        return value
    return _splat(builder, context.cast(builder, value, source, target.dtype))


def _lanes_of(*args: Any) -> LanesType | None:
    return next((a for a in args if isinstance(a, LanesType)), None)


def _elementwise(emit: Callable[[Any, list[Any]], Any]) -> Any:
    """Build an intrinsic that applies ``emit`` to lanes, scalars being broadcast."""

    def typer(typingctx: Any, *args: Any) -> Any:
        lanes = _lanes_of(*args)
        if lanes is None:
            return None

        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            pairs = zip(values, signature.args, strict=True)
            return emit(builder, [_as_lanes(context, builder, v, t, lanes) for v, t in pairs])

        return lanes(*args), codegen

    return typer


def _unary(emit: Callable[[Any, list[Any]], Any]) -> Any:
    typer = _elementwise(emit)
    return intrinsic(lambda typingctx, a: typer(typingctx, a))


def _binary(emit: Callable[[Any, list[Any]], Any]) -> Any:
    typer = _elementwise(emit)
    return intrinsic(lambda typingctx, a, b: typer(typingctx, a, b))


def _operator(function: Any, emit: Callable[[Any, list[Any]], Any]) -> None:
    apply = _binary(emit)

    @overload(function)
    def _lanes_operator(a, b):
        return (lambda a, b: apply(a, b)) if _lanes_of(a, b) else None


def _is_whole(vector: Any) -> bool:
    return isinstance(vector.element, ir.IntType)


def _arithmetic(name: str) -> Callable[[Any, list[Any]], Any]:
    def emit(builder: Any, values: list[Any]) -> Any:
        return getattr(builder, name if _is_whole(values[0].type) else f"f{name}")(*values)

    return emit


_operator(operator.add, _arithmetic("add"))
_operator(operator.sub, _arithmetic("sub"))
_operator(operator.mul, _arithmetic("mul"))
# Whole numbers alone, which are taken as such without a sign.
_operator(operator.rshift, lambda b, v: b.lshr(*v))
_operator(operator.truediv, lambda b, v: b.fdiv(*v))


def _suffix(vector: Any) -> str:
    """Return how LLVM writes the type of lanes at the end of names."""
    element = vector.element
    if _is_whole(vector):
        return f"v{LANES}i{element.width}"
    return f"v{LANES}f{32 if isinstance(element, ir.FloatType) else 64}"


def _call(name: str) -> Callable[[Any, list[Any]], Any]:
    def emit(builder: Any, values: list[Any]) -> Any:
        kind = values[0].type
        suffix = _suffix(kind)
        signature = ir.FunctionType(kind, [kind] * len(values))
        function = cgutils.get_or_insert_function(
            builder.module, signature, f"llvm.{name}.{suffix}"
        )
        return builder.call(function, values)

    return emit


_sqrt_lanes = _unary(_call("sqrt"))
_abs_lanes = _unary(_call("fabs"))
_neg_lanes = _unary(lambda b, v: b.fneg(*v))


def _compare_select(relation: str) -> Callable[[Any, list[Any]], Any]:
    def emit(builder: Any, values: list[Any]) -> Any:
        compare = builder.icmp_signed if _is_whole(values[0].type) else builder.fcmp_ordered
        return builder.select(compare(relation, *values), *values)

    return emit


_max_lanes = _binary(_compare_select(">"))
_min_lanes = _binary(_compare_select("<"))


@overload(operator.neg)
def _negate(a):
    return (lambda a: _neg_lanes(a)) if isinstance(a, LanesType) else None


def square_root(x: Any) -> Any:
    """Return the square root of a scalar or of lanes."""
    return np.sqrt(x)


@overload(square_root)
def _square_root(x):
    return (lambda x: _sqrt_lanes(x)) if isinstance(x, LanesType) else (lambda x: np.sqrt(x))


_pow_lanes = _binary(_call("pow"))


def power(x: Any, exponent: Any) -> Any:
    """Return x to the power of a scalar, for x >= 0 a scalar or lanes."""
    return x**exponent


@overload(power)
def _power(x, exponent):
    if isinstance(x, LanesType):
        return lambda x, exponent: _pow_lanes(x, exponent)
    return lambda x, exponent: x**exponent


def absolute(x: Any) -> Any:
    """Return the absolute value of a scalar or of lanes."""
    return np.abs(x)


@overload(absolute)
def _absolute(x):
    return (lambda x: _abs_lanes(x)) if isinstance(x, LanesType) else (lambda x: abs(x))


def maximum(x: Any, y: Any) -> Any:
    """Return the larger of two numbers, lane by lane."""
    return np.maximum(x, y)


@overload(maximum)
def _maximum(x, y):
    if _lanes_of(x, y):
        return lambda x, y: _max_lanes(x, y)
    return lambda x, y: max(x, y)


def minimum(x: Any, y: Any) -> Any:
    """Return the smaller of two numbers, lane by lane."""
    return np.minimum(x, y)


@overload(minimum)
def _minimum(x, y):
    if _lanes_of(x, y):
        return lambda x, y: _min_lanes(x, y)
    return lambda x, y: min(x, y)


def _select(builder: Any, values: list[Any]) -> Any:
    condition, *choices = values
    zero = ir.Constant(condition.type, None)
    return builder.select(builder.fcmp_ordered(">", condition, zero), *choices)


_select_typer = _elementwise(_select)


@intrinsic
def _select_lanes(typingctx: Any, condition: Any, x: Any, y: Any) -> Any:
    return _select_typer(typingctx, condition, x, y)


def where_positive(condition: Any, x: Any, y: Any) -> Any:
    """Return x where the condition is > 0, else y, lane by lane."""
    return np.where(condition > 0, x, y)[()]


@overload(where_positive)
def _where_positive(condition, x, y):
    if _lanes_of(condition, x, y):
        return lambda condition, x, y: _select_lanes(condition, x, y)
    return lambda condition, x, y: x if condition > 0 else y


def array_pointer(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    """Emit the address of the flat position ``offset`` of an array."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [offset])


def _lane_mask(builder: Any, count: Any) -> Any:
    numbers = ir.VectorType(count.type, LANES)
    return builder.icmp_signed(
        "<", ir.Constant(numbers, list(range(LANES))), _splat(builder, count)
    )


def _vector_pointer(builder: Any, pointer: Any, element: Any) -> Any:
    return builder.bitcast(pointer, ir.VectorType(element, LANES).as_pointer())


@intrinsic
def _load_full(typingctx: Any, array: Any, offset: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        element = context.get_value_type(array.dtype)
        pointer = array_pointer(context, builder, array, *values)
        return builder.load(
            _vector_pointer(builder, pointer, element), align=array.dtype.bitwidth // 8
        )

    return LanesType(array.dtype)(array, types.intp), codegen


@intrinsic
def _store_full(typingctx: Any, array: Any, offset: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = array_pointer(context, builder, array, values[0], values[1])
        place = _vector_pointer(builder, pointer, values[2].type.element)
        builder.store(values[2], place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, LanesType(array.dtype)), codegen


def _masked_name(kind: str, vector: Any) -> str:
    return f"llvm.masked.{kind}.{_suffix(vector)}.p0"


@intrinsic
def _load_part(typingctx: Any, array: Any, offset: Any, count: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vector = ir.VectorType(context.get_value_type(array.dtype), LANES)
        pointer = array_pointer(context, builder, array, values[0], values[1])
        place = _vector_pointer(builder, pointer, vector.element)
        mask = _lane_mask(builder, values[2])
        align = ir.Constant(ir.IntType(32), array.dtype.bitwidth // 8)
        kind = ir.FunctionType(vector, [place.type, align.type, mask.type, vector])
        function = cgutils.get_or_insert_function(
            builder.module, kind, _masked_name("load", vector)
        )
        return builder.call(function, [place, align, mask, ir.Constant(vector, None)])

    return LanesType(array.dtype)(array, types.intp, types.intp), codegen


@intrinsic
def _store_part(typingctx: Any, array: Any, offset: Any, count: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vector = values[3].type
        pointer = array_pointer(context, builder, array, values[0], values[1])
        place = _vector_pointer(builder, pointer, vector.element)
        mask = _lane_mask(builder, values[2])
        align = ir.Constant(ir.IntType(32), array.dtype.bitwidth // 8)
        kind = ir.FunctionType(ir.VoidType(), [vector, place.type, align.type, mask.type])
        function = cgutils.get_or_insert_function(
            builder.module, kind, _masked_name("store", vector)
        )
        builder.call(function, [values[3], place, align, mask])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, LanesType(array.dtype)), codegen


def load(array: Any, offset: int, count: int) -> Any:
    """Read ``count`` consecutive numbers of a C-contiguous array from flat position ``offset``.

    Returns lanes; those beyond ``count`` hold 0.
    """
    count = min(count, LANES)
    lanes = np.zeros(LANES, dtype=array.dtype)
    lanes[:count] = array.reshape(-1)[offset : offset + count]
    return lanes


def load_like(number: Any, array: Any, offset: int, count: int) -> Any:
    """Read as :func:`load` does where ``number`` is lanes, and one scalar where it is a scalar."""
    return array.reshape(-1)[offset] if np.ndim(number) == 0 else load(array, offset, count)


def store(array: Any, offset: int, count: int, value: Any) -> None:
    """Write the first ``count`` lanes of ``value`` (or a scalar) at flat position ``offset``."""
    flat = array.reshape(-1)
    if np.ndim(value) == 0:
        flat[offset] = value
    else:
        count = min(count, LANES)
        flat[offset : offset + count] = value[:count]


@intrinsic
def _load_one(typingctx: Any, array: Any, offset: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(array_pointer(context, builder, array, *values))

    return array.dtype(array, types.intp), codegen


@intrinsic
def _store_one(typingctx: Any, array: Any, offset: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], array_pointer(context, builder, array, values[0], values[1]))
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype), codegen


@overload(load)
def _load(array, offset, count):
    def implementation(array, offset, count):
        if count >= LANES:
            return _load_full(array, offset)
        return _load_part(array, offset, count)

    return implementation


@overload(load_like)
def _load_like(number, array, offset, count):
    if isinstance(number, LanesType):
        return lambda number, array, offset, count: load(array, offset, count)
    return lambda number, array, offset, count: _load_one(array, offset)


@overload(store)
def _store(array, offset, count, value):
    if not isinstance(value, LanesType):
        return lambda array, offset, count, value: _store_one(array, offset, value)

    def implementation(array, offset, count, value):
        if count >= LANES:
            _store_full(array, offset, value)
        else:
            _store_part(array, offset, count, value)

    return implementation


def broadcast(array: Any, value: float) -> Any:
    """Return lanes of ``array``'s precision that all hold ``value``."""
    return np.full(LANES, value, dtype=array.dtype)


@intrinsic
def _broadcast_lanes(typingctx: Any, array: Any, value: Any) -> Any:
    lanes = LanesType(array.dtype)

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _as_lanes(context, builder, values[1], signature.args[1], lanes)

    return lanes(array, value), codegen


@overload(broadcast)
def _broadcast(array, value):
    return lambda array, value: _broadcast_lanes(array, value)


def horizontal_sum(x: Any) -> Any:
    """Add up eight lanes by halving, so that plain and compiled code round alike.

    A scalar is its own sum.
    """
    if np.ndim(x) == 0:
        return x
    four = x[:4] + x[4:]
    two = four[:2] + four[2:]
    return two[0] + two[1]


@intrinsic
def _sum_lanes(typingctx: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        (vector,) = values
        width = LANES
        while width > 1:
            width //= 2
            low, high = (
                builder.shuffle_vector(
                    vector,
                    ir.Constant(vector.type, ir.Undefined),
                    ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(s, s + width))),
                )
                for s in (0, width)
            )
            vector = builder.fadd(low, high)
        return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

    return x.dtype(x), codegen


@overload(horizontal_sum)
def _horizontal_sum(x):
    return (lambda x: _sum_lanes(x)) if isinstance(x, LanesType) else (lambda x: x)
