"""The position of the lowest set bit of a word, compiled to one instruction of the processor."""

from typing import Any

from numba import extending, types
from numba.core import cgutils

# Numba's extension functions have wrong types, or none at all.
intrinsic: Any = extending.intrinsic
tools: Any = cgutils


@intrinsic
def lowest_bit(typing: Any, word: Any) -> Any:
    """Return the position of the lowest set bit of a 64-bit word that is not 0."""
    if word != types.uint64:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], tools.true_bit)

    return types.int64(word), generate
