"""The options of a source or sink: texts by name, which can be read as numbers."""

from math import inf

from headgate.errors import OptionRefused


class Options(dict[str, str]):
    """Options as the user wrote them. A value that is no number is refused by the option's name.

    >>> Options(tuples="20").whole("tuples", 10), Options().whole("tuples", 10)
    (20, 10)
    >>> Options(tuples="few").whole("tuples", 10, least=1)
    Traceback (most recent call last):
    ...
    headgate.errors.OptionRefused: options.tuples is 'few', but must be a whole number, 1 or more.
    """

    def whole(self, name: str, default: int, *, least: int = 0) -> int:
        """Return an option as a whole number.

        Raises:
            OptionRefused: it is no whole number, or below `least`.
        """
        text = self.get(name, str(default))
        digits = text.removeprefix("-")
        if not (digits.isdecimal() and digits.isascii() and int(text) >= least):
            self._refuse(name, f"a whole number, {least} or more")
        return int(text)

    def number(self, name: str, default: float, *, above: float = -inf) -> float:
        """Return an option as a number.

        Raises:
            OptionRefused: it is no finite number, or not above `above`.
        """
        try:
            value = float(self.get(name, default))
        except ValueError:
            value = inf
        if not above < value < inf:
            self._refuse(name, "a number" + (f" above {above:g}" if above > -inf else ""))
        return value

    def _refuse(self, name: str, expected: str) -> None:
        raise OptionRefused(option=name, value=self.get(name), expected=expected)
