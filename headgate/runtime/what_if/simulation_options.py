"""The section `simulation` of a pipeline file, or the same flags, as options of `simulate`."""

from collections.abc import Callable, Mapping
from typing import Any

from headgate.config import SimulationConfig, simulation_section
from headgate.errors import ConfigRefused
from headgate.model.performance import specification_of
from headgate.runtime.policy_text import Spelled
from headgate.scheduler.shedder import Shedder
from headgate.simulation.loop.changes import Replacement, Switch

CHANGES = ("come", "go", "policy", "specification")
SHED = "shed_"


def simulation_values(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split options into those of a simulation, with checked values, and the others.

    Raises:
        ConfigRefused: a value cannot be used.
    """
    keys = SimulationConfig.model_fields
    wanted = {key: value for key, value in options.items() if key in keys}
    others = {key: value for key, value in options.items() if key not in keys}
    return simulation_section(wanted).values, others


def simulation_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of `simulate`; a shedder is made anew for each run (`fresh`)."""
    options = {
        key: value
        for key, value in values.items()
        if key != "at" and not (key == "shed" or key.startswith(SHED))
    }
    changes = [change_of(text) for text in values.get("at", ())]
    if changes:
        options["switches"] = tuple(one for one in changes if isinstance(one, Switch))
        options["replacements"] = tuple(one for one in changes if isinstance(one, Replacement))
    shedding = {
        key.removeprefix(SHED): value for key, value in values.items() if key.startswith(SHED)
    }
    if shedding or values.get("shed"):
        options["shedder"] = _shedders(shedding)
    return options


def fresh(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of one run: a shedder remembers what it has seen, so each run has its own."""
    make = options.get("shedder")
    return {**options, "shedder": make()} if callable(make) else dict(options)


def change_of(text: str) -> Switch | Replacement:
    """Parse what changes at an instant.

    Raises:
        ConfigRefused: the text cannot be parsed.
        UnknownName: there is no such policy.

    >>> change_of("10 go q1")
    Switch(at_s=10.0, query='q1', does='go')
    """
    words = text.split(maxsplit=2)
    try:
        at_s, word, value = float(words[0]), words[1], words[2]
    except (ValueError, IndexError):
        at_s, word, value = -1.0, "", ""
    if at_s < 0 or word not in CHANGES:
        expected = "seconds, then " + ", ".join(CHANGES) + ", then a value, as in '10 policy hnr'"
        raise ConfigRefused(path="simulation", key="at", value=text, expected=expected)
    match word:
        case "policy":
            return Replacement(at_s, policy=Spelled(value).make)
        case "specification":
            specification_of(value)
            return Replacement(at_s, specification=value)
        case "come":
            return Switch(at_s, value, "come")
    return Switch(at_s, value, "go")


def _shedders(parameters: Mapping[str, Any]) -> Callable[[], Shedder]:
    return lambda: Shedder(**parameters)
