"""The place of the lowest bit of a word, compiled: one instruction of the processor."""

from typing import Any

from numba import extending, types
from numba.core import cgutils

# Numba's tools for new operations have no types that fit, or none at all.
intrinsic: Any = extending.intrinsic
tools: Any = cgutils


@intrinsic
def lowest_bit(typing: Any, word: Any) -> Any:
    """Gives k of the lowest 2^k that a word of 64 bits has; the word is not 0."""
    if word != types.uint64:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], tools.true_bit)

    return types.int64(word), generate
