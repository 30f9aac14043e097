"""The Numba type of a world: inside compiled code, a world is one pointer.

Numba passes a tuple of thirty arrays as two hundred arguments to every function that is not
inlined; that was measured to take nine tenths of a simulation's time. Here a function gets one
pointer, to a list of addresses and lengths, and `world.queues` is read from there.
"""

from typing import Any

import numba
import numpy as np
from numba import extending, types
from numba.core import cgutils
from numba.core.typing import templates
from numba.np import arrayobj

from headgate.simulation.world.world import FIELDS, WORDS, World

# Numba's tools for new types have type hints that do not fit, or none at all.
unbox: Any = extending.unbox
native: Any = extending.NativeValue
tools: Any = cgutils
fields: Any = FIELDS
populate_array: Any = arrayobj.populate_array
infer_getattr: Any = templates.infer_getattr
Attributes: Any = templates.AttributeTemplate
lower_getattr: Any = extending.lower_getattr_generic


class WorldType(types.Type):
    """The type of a world inside compiled code."""

    def __init__(self) -> None:
        super().__init__(name="HeadgateWorld")


WORLD = WorldType()
extending.register_model(WorldType)(extending.models.OpaqueModel)

PLACES = {name: WORDS * number for number, name in enumerate(FIELDS)}
ARRAYS: dict[str, Any] = {
    name: types.Array(numba.from_dtype(np.dtype(item)), dimensions, "C")
    for name, (item, dimensions) in fields.items()
}


@extending.typeof_impl.register(World)
def _typeof(value: World, context: Any) -> WorldType:
    return WORLD


@unbox(WorldType)
def _unbox(typ: Any, value: Any, context: Any) -> Any:
    address = context.pyapi.object_getattr_string(value, "address")
    pointer = context.pyapi.long_as_voidptr(address)
    context.pyapi.decref(address)
    return native(pointer)


@infer_getattr
class _Attributes(Attributes):  # type: ignore[misc]  # the base class is untyped
    key = WorldType

    def generic_resolve(self, world: Any, name: str) -> Any:
        return ARRAYS.get(name)


@lower_getattr(WorldType)
def _view(context: Any, builder: Any, world: Any, pointer: Any, name: str) -> Any:
    """Return an array of a world, from its address and lengths in the world's list."""
    array_type = ARRAYS[name]
    words = builder.bitcast(pointer, tools.intp_t.as_pointer())

    def word(number: int) -> Any:
        place = tools.intp_t(PLACES[name] + number)
        loaded = builder.load(builder.gep(words, [place]))
        # The list does not change while compiled code runs, so it need not be read again after
        # every write to an array.
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    array = context.make_array(array_type)(context, builder)
    lengths = [word(1 + dimension) for dimension in range(array_type.ndim)]
    item_bytes = tools.intp_t(context.get_abi_sizeof(context.get_data_type(array_type.dtype)))
    strides = [item_bytes]
    for length in lengths[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    populate_array(
        array,
        data=builder.inttoptr(word(0), context.get_data_type(array_type.dtype).as_pointer()),
        shape=lengths,
        strides=strides,
        itemsize=item_bytes,
        meminfo=None,
    )
    return array._getvalue()


__all__ = ["World"]
