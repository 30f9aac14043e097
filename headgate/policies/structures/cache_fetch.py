"""Fetching into the cache ahead of time, compiled: a hint that changes nothing but speed.

Of 100 000 units few are in the cache. Where it is known which of them will be looked at soon, their
records come from memory while something else is done; nobody waits for them, as for a load.
"""

from typing import Any

from numba import extending, types
from numba.core import cgutils

# Numba's tools for new operations have no types that fit, or none at all.
intrinsic: Any = extending.intrinsic
tools: Any = cgutils
ir: Any = tools.ir
INTO_ALL_CACHES = 3


@intrinsic
def fetch(typing: Any, array: Any, place: Any) -> Any:
    """Fetches what an array of one dimension has at a place, from 0 on and within its length."""
    if not isinstance(array, types.Array) or not isinstance(place, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        of = context.make_array(signature.args[0])(context, builder, arguments[0])
        at = context.cast(builder, arguments[1], signature.args[1], types.intp)
        item = tools.get_item_pointer(context, builder, signature.args[0], of, [at])
        byte = builder.bitcast(item, tools.voidptr_t)
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch",
            (tools.voidptr_t,),
            ir.FunctionType(ir.VoidType(), [tools.voidptr_t, *[ir.IntType(32)] * 3]),
        )
        flags = (0, INTO_ALL_CACHES, 1)  # to be read; of data, not code
        builder.call(prefetch, [byte, *(ir.Constant(ir.IntType(32), flag) for flag in flags)])

    return types.void(array, place), generate
