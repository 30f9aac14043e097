"""Fetching into the cache ahead of time, compiled: a hint that changes nothing but speed.

Of 100 000 units few are in the cache. If the next units are known, their records are fetched from
memory while other work is done. A load would make the processor wait; a fetch does not.
"""

from typing import Any

from numba import extending, types
from numba.core import cgutils

# Numba's extension functions have wrong types, or none at all.
intrinsic: Any = extending.intrinsic
tools: Any = cgutils
ir: Any = tools.ir
INTO_ALL_CACHES = 3


@intrinsic
def fetch(typing: Any, array: Any, place: Any) -> Any:
    """Fetch the item of a one-dimensional array at `place`, which is at least 0 and in range."""
    if not isinstance(array, types.Array) or not isinstance(place, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        index = context.cast(builder, arguments[1], signature.args[1], types.intp)
        item = tools.get_item_pointer(context, builder, signature.args[0], view, [index])
        byte = builder.bitcast(item, tools.voidptr_t)
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch",
            (tools.voidptr_t,),
            ir.FunctionType(ir.VoidType(), [tools.voidptr_t, *[ir.IntType(32)] * 3]),
        )
        flags = (0, INTO_ALL_CACHES, 1)  # for reading; data, not code
        builder.call(prefetch, [byte, *(ir.Constant(ir.IntType(32), flag) for flag in flags)])

    return types.void(array, place), generate
