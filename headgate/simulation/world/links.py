"""The lists of numbers that the rows of a world refer to."""

from collections.abc import Sequence


class Links:
    """Lists of numbers, stored one after the other in one array."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def add(self, numbers: Sequence[int]) -> tuple[int, int]:
        first = len(self.numbers)
        self.numbers += numbers
        return first, len(self.numbers)
