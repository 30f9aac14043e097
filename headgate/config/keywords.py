"""Settings as keyword arguments of a function."""

from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar

from pydantic import ValidationError

from headgate.config.validation_errors import first_of, refusals_of
from headgate.errors import UnknownKey
from headgate.model.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def settings_of(keywords: Mapping[str, Any], names: Iterable[str]) -> Settings:
    """Return the settings that keyword arguments contain.

    Args:
        names: the names of all arguments, to suggest one if a keyword is unknown.

    Raises:
        ConfigRefused: there is no such setting, or a value is wrong.

    >>> settings_of({"wokers": 3}, ["state", "workers"])
    Traceback (most recent call last):
    headgate.errors.UnknownKey: headgate: unknown key 'wokers'; did you mean 'workers'?
    >>> settings_of({"call_timeout_s": 0}, ["call_timeout_s"])
    Traceback (most recent call last):
    headgate.errors.ConfigRefused: headgate: call_timeout_s is 0, but must be above 0 seconds.
    """
    for key in keywords.keys() - Settings.model_fields.keys():
        raise UnknownKey(path="headgate", key=key, keys=names)
    try:
        return Settings.model_validate(dict(keywords))
    except ValidationError as error:
        raise first_of(refusals_of("headgate", error, dict(keywords), Settings)) from error


def show_settings(function: F) -> F:
    """Show the settings in the signature and the docstring of a function of `**settings`.

    So `help` and notebooks show them, although they are declared only once.
    """
    parameters = signature(function).parameters.values()
    named = [entry for entry in parameters if entry.kind is not Parameter.VAR_KEYWORD]
    settings = signature(Settings).parameters.values()
    vars(function)["__signature__"] = Signature([*named, *settings])
    fields = Settings.model_fields.items()
    lines = [f"    {name}: {field.description}." for name, field in fields]
    function.__doc__ = "\n".join(["Settings:", *lines])
    return function
