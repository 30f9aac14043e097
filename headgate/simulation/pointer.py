"""A world inside compiled code: one pointer.

Numba passes a tuple of thirty arrays as two hundred arguments to every function that is not
inlined; measured, that was nine tenths of a simulation's time. Here a function gets one pointer, to
a list of addresses and lengths, and `world.queues` is read from there.
"""

from typing import Any

import numba
import numpy as np
from numba import extending, types
from numba.core import cgutils

from headgate.simulation.world import FIELDS, WORDS, World

# Numba's tools for new types have no types that fit, or none at all.
carray: Any = getattr(numba, "carray")  # noqa: B009
intrinsic: Any = extending.intrinsic
unbox: Any = extending.unbox
native: Any = extending.NativeValue


class WorldType(types.Type):
    """The type of a world inside compiled code."""

    def __init__(self) -> None:
        super().__init__(name="HeadgateWorld")


WORLD = WorldType()
extending.register_model(WorldType)(extending.models.OpaqueModel)


@extending.typeof_impl.register(World)
def _typeof(value: World, context: Any) -> WorldType:
    return WORLD


@unbox(WorldType)
def _unbox(typ: Any, value: Any, context: Any) -> Any:
    address = context.pyapi.object_getattr_string(value, "address")
    pointer = context.pyapi.long_as_voidptr(address)
    context.pyapi.decref(address)
    return native(pointer)


@intrinsic
def _word(typing: Any, world: Any, place: Any) -> Any:
    """Gives a word of a world's list."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words = builder.bitcast(arguments[0], cgutils.intp_t.as_pointer())
        return builder.load(builder.gep(words, [arguments[1]]))

    return types.intp(world, types.intp), generate


@intrinsic
def _pointer(typing: Any, address: Any) -> Any:
    """Gives an address as a pointer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.intp), generate


def _attribute(number: int, name: str, dtype: Any, dimensions: int) -> None:
    item = np.dtype(dtype)
    at = WORDS * number

    def one(world: Any) -> Any:
        return carray(_pointer(_word(world, at)), (_word(world, at + 1),), item)

    def two(world: Any) -> Any:
        shape = (_word(world, at + 1), _word(world, at + 2))
        return carray(_pointer(_word(world, at)), shape, item)

    def view(world: Any) -> Any:
        return one if dimensions == 1 else two

    extending.overload_attribute(WorldType, name)(view)


for _number, (_name, (_dtype, _dimensions)) in enumerate(FIELDS.items()):
    _attribute(_number, _name, _dtype, _dimensions)

__all__ = ["World"]
