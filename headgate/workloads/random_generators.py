"""Seeded random generators, one per purpose, so that draws for one do not change another."""

from numpy.random import PCG64, Generator

from headgate.workloads.value_checks import whole


def generator(seed: int, purpose: str, number: int = 0) -> Generator:
    """Return a generator that depends only on the arguments.

    >>> int(generator(1, "costs").integers(1000)) == int(generator(1, "costs").integers(1000))
    True
    """
    whole("random generator", least=0, seed=seed)
    return Generator(PCG64([seed, int.from_bytes(purpose.encode()), number]))
