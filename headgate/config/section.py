"""What all sections of a pipeline file share: names, options, and no unknown keys."""

from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from headgate.model.stream import NAME

Name = Annotated[str, Field(pattern=rf"^{NAME.pattern}$")]
Options = dict[str, str | int | float | bool]


class Section(BaseModel):
    """A mapping in a pipeline file, which refuses keys that it does not have."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def option_texts(options: Mapping[str, str | int | float | bool]) -> dict[str, str]:
    """Return options as texts, the way Spark takes them.

    >>> option_texts({"header": True, "rows": 5})
    {'header': 'true', 'rows': '5'}
    """
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in options.items()
    }


def named(key: str) -> Callable[[object], object]:
    """Return a validator that reads a text as a section with one key.

    >>> named("format")("parquet")
    {'format': 'parquet'}
    """
    return lambda value: {key: value} if isinstance(value, str) else value


def alone(key: str) -> Callable[[object], object]:
    """Return a validator that reads anything but a section as a section with one key.

    >>> alone("priority")(6)
    {'priority': 6}
    """
    return lambda value: value if isinstance(value, Mapping | BaseModel) else {key: value}
