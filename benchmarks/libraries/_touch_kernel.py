"""The compiled loop of `bench_touch`, apart so that the module loads without numba."""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic


@intrinsic
def prefetch_row(typing_context, array, row):
    """Ask for the first cache line of ``array[row]``, to be written."""

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = builder.extract_value(view.strides, 0)
        pointer_type = ir.IntType(8).as_pointer()
        offset = builder.mul(arguments[1], stride)
        base = builder.bitcast(view.data, pointer_type)
        address = builder.gep(base, [offset])
        i32 = ir.IntType(32)
        declaration = ir.FunctionType(ir.VoidType(), [pointer_type, i32, i32, i32])
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [pointer_type], fnty=declaration
        )
        write, high_locality, data_cache = i32(1), i32(3), i32(1)
        builder.call(function, [address, write, high_locality, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.uintp), generate


@njit(nogil=True, error_model="numpy")
def touch_epoch(order, indptr, indices, data, table, records):
    width = np.uintp(table.shape[1])
    last = order.shape[0] - 1
    for i in range(order.shape[0]):
        following = order[min(i + 1, last)]
        for t in range(indptr[following], indptr[following + 1]):
            prefetch_row(table, np.uintp(indices[t]))
            prefetch_row(records, np.uintp(indices[t]))
        for t in range(indptr[order[i]], indptr[order[i] + 1]):
            parameters = table[np.uintp(indices[t])]
            for f in range(width):
                parameters[f] += data[t]
            record = records[np.uintp(indices[t])]
            for f in range(np.uintp(4)):
                record[f] += data[t]
