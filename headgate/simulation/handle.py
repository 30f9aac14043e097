"""A world as one pointer for compiled code.

Numba passes a tuple of thirty arrays as two hundred arguments to every function that is not inlined;
measured, that was nine tenths of a simulation's time. Here a function gets one pointer, to a list of
addresses and lengths, and `world.queues` is read from there.
"""

from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import NativeValue, intrinsic, models, overload_attribute, register_model
from numba.extending import typeof_impl, unbox

from headgate.simulation.world import FIELDS, World

WORDS = 4
"""Words a field: address, number of dimensions' lengths (two), and one spare."""


class WorldType(types.Type):  # type: ignore[misc]  # numba gives its types as Any
    """The type of a world inside compiled code."""

    def __init__(self) -> None:
        super().__init__(name="HeadgateWorld")


WORLD = WorldType()
register_model(WorldType)(models.OpaqueModel)


class Handle:
    """Holds a world's arrays in place and gives their addresses; made anew when an array grows."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._words = np.zeros(WORDS * len(FIELDS), dtype=np.int64)
        for number, name in enumerate(FIELDS):
            array = getattr(world, name)
            assert array.flags.c_contiguous, name
            self._words[WORDS * number] = array.ctypes.data
            self._words[WORDS * number + 1 : WORDS * number + 1 + array.ndim] = array.shape
        self.address = self._words.ctypes.data


@typeof_impl.register(Handle)
def _typeof(value: Handle, context: Any) -> WorldType:
    return WORLD


@unbox(WorldType)
def _unbox(typ: Any, value: Any, context: Any) -> NativeValue:
    address = context.pyapi.object_getattr_string(value, "address")
    pointer = context.pyapi.long_as_voidptr(address)
    context.pyapi.decref(address)
    return NativeValue(pointer, is_error=cgutils.is_not_null(context.builder, context.pyapi.err_occurred()))


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
        return numba.carray(_pointer(_word(world, at)), (_word(world, at + 1),), item)

    def two(world: Any) -> Any:
        shape = (_word(world, at + 1), _word(world, at + 2))
        return numba.carray(_pointer(_word(world, at)), shape, item)

    def view(world: Any) -> Any:
        return one if dimensions == 1 else two

    overload_attribute(WorldType, name)(view)


for _number, (_name, (_dtype, _dimensions)) in enumerate(FIELDS.items()):
    _attribute(_number, _name, _dtype, _dimensions)
