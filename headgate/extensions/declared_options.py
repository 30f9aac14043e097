"""The declaration of a source or sink, and the options that it refuses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

from headgate.errors import OptionRefused
from headgate.extensions.option_values import Options

Delivery = Literal["at least once", "exactly once"]
"""What a reader of a sink sees after a crash. A receiver that recognizes keys may promise the
second."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The declaration of a source or sink.

    Args:
        make: the class, or a function: creates the source or sink from its context.
        options: what each option means, by name.
        required: an example for each option that must be set.
        other_options: whether there are options besides these, which are passed on.
        check: raises `OptionRefused` or `ValueError` if it refuses the value of an option.
        takes_function: whether the user passes a function beside the stream or query.
        ask: raises `OptionRefused` if the system that the options name does not answer; only
            `headgate check` calls it.
    """

    name: str
    make: Callable[[Any], Any]
    options: Mapping[str, str] = field(default_factory=dict)
    required: Mapping[str, str] = field(default_factory=dict)
    other_options: bool = False
    check: Callable[[Options], object] = lambda options: None
    takes_function: bool = False
    ask: Callable[[Options], object] = lambda options: None

    def refuse_options(self, values: Mapping[str, str]) -> None:
        """Refuse options that are unknown, missing or wrong.

        An unknown option may be the missing one, misspelled, so it is refused first.

        Raises:
            OptionRefused: names the first of them and what was expected.
        """
        for name, value in values.items():
            if name not in self.options and not self.other_options:
                raise OptionRefused(option=name, value=value, expected=self._left_out(name))
        for name, example in self.required.items():
            if not values.get(name, "").strip(" ,"):
                expected = (
                    f"given for format '{self.name}', as in  options: {{{name}: '{example}'}}"
                )
                raise OptionRefused(option=name, value=None, expected=expected)
        try:
            self.check(Options(values))
        except (ValueError, TypeError) as error:
            raise OptionRefused(option="", value=None, expected=str(error)) from error

    def _left_out(self, name: str) -> str:
        options = f"only {', '.join(self.options)}" if self.options else "none"
        return f"left out: format '{self.name}' takes {options}{hint(name, self.options)}"


@dataclass(frozen=True, kw_only=True)
class SourceEntry(Entry):
    """The declaration of a source.

    Args:
        columns: the columns as Spark DDL, or a function that returns them for the options; empty if
            the stream declares them.
        spark_reads: whether Structured Streaming can read the format where the driver cannot.
        arrivals: returns when tuples arrive in a simulation, for the options.
    """

    columns: str | Callable[[Options], str] = ""
    spark_reads: bool = False
    arrivals: Callable[[Options], Any] | None = None

    def columns_of(self, options: Mapping[str, str]) -> str:
        """Return the columns as Spark DDL; empty if the stream declares them.

        Raises:
            LeftToSpark: the driver cannot poll a source with these options.
        """
        return self.columns if isinstance(self.columns, str) else self.columns(Options(options))


@dataclass(frozen=True, kw_only=True)
class SinkEntry(Entry):
    """The declaration of a sink.

    Args:
        delivery: what a reader of the sink sees after a crash.
        has_files: whether results are files in a directory.
        has_columns: whether these files hold columns, so that some can be directories instead.
        by_position: whether columns are known by position, so that two may share a name.
    """

    delivery: Delivery = "at least once"
    has_files: bool = False
    has_columns: bool = False
    by_position: bool = False


def hint(name: str, names: Mapping[str, Any] | tuple[str, ...]) -> str:
    """Return a question for the nearest name, or nothing if none is near.

    >>> hint("row", ("rows", "topic"))
    "; did you mean 'rows'?"
    """
    lower = {other.lower(): other for other in names}
    nearest = get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    return f"; did you mean '{lower[nearest[0]]}'?" if nearest else ""
