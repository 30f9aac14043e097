"""Seeded luck: a generator for each purpose, so that one draw more here moves nothing there."""

from numpy.random import PCG64, Generator

from headgate.workloads.demands import whole


def generator(seed: int, purpose: str, number: int = 0) -> Generator:
    """Gives the generator of a seed and a purpose, always the same.

    >>> int(generator(1, "costs").integers(1000)) == int(generator(1, "costs").integers(1000))
    True
    """
    whole("luck", least=0, seed=seed)
    return Generator(PCG64([seed, int.from_bytes(purpose.encode()), number]))
