"""The options that verbs share, and what their words mean."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.config import read_pipeline
from headgate.errors import ConfigRefused, UnknownName
from headgate.runtime import Spelled, Trace, load_module, spelled, value_of

ANY_OPTION = {"ignore_unknown_options": True}
"""What a testbed can be set to is the testbed's own: its options are read from the words left."""

FILE = Annotated[str, typer.Argument(metavar="FILE", help="The pipeline file.")]
WORDS = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE | --testbed NAME --OPTION VALUE",
        help="A pipeline file; or a testbed and its options, see `headgate testbeds`.",
        show_default=False,
    ),
]
TESTBED = Annotated[
    str | None, typer.Option(metavar="NAME", help="sharaf, aurora, cqc, amos or bz.")
]
POLICIES = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="A,B,...",
        help="Policies; parameters go in parentheses: bsd(search=log,clusters=12).",
    ),
]
SECONDS = Annotated[
    float | None,
    typer.Option(
        min=0.001, help="How long tuples arrive; else 60 s of a pipeline, all of a testbed."
    ),
]
TRACE = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[STREAM=]FILE",
        help="A Parquet file of recorded arrivals in place of the stream's own.",
    ),
]
TRACE_COLUMN = Annotated[
    str | None, typer.Option(metavar="NAME", help="The trace's column of times.")
]
TRACE_SCALE = Annotated[
    float | None,
    typer.Option(
        help="What recorded times are multiplied by; else 1, or what keeps a testbed's rate."
    ),
]
LEVEL = Annotated[
    str | None,
    typer.Option(metavar="query|operator", help="Who is scheduled; else as the testbed's paper."),
]
TRAIN = Annotated[
    int | None, typer.Option(min=1, help="Tuples a call takes at the most; else as the policy's.")
]
OVERHEAD_S = Annotated[float | None, typer.Option(min=0, help="Seconds of every box call.")]
WORKERS = Annotated[int | None, typer.Option(min=1, help="Calls under way at once.")]
SHARING = Annotated[
    str | None,
    typer.Option(metavar="max|sum|pdt", help="What shared operators run with and are worth."),
]
LEARNS = Annotated[bool, typer.Option("--learns", help="Selectivities are measured, not known.")]
MODULES = Annotated[
    list[str] | None,
    typer.Option(
        "--module",
        metavar="FILE.py|NAME",
        help="A module of your own; its policies are then known by name.",
    ),
]
PLOT = Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write a page with plots.")]
JSON = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

_SETTINGS = {
    "seconds": "seconds", "level": "level", "workers": "workers", "train": "train_tuples",
    "overhead_s": "overhead_s", "sharing": "sharing", "learns": "learns",
}  # fmt: skip


def _shared(
    words: WORDS = None,
    testbed: TESTBED = None,
    policy: POLICIES = None,
    seconds: SECONDS = None,
    level: LEVEL = None,
    train: TRAIN = None,
    overhead_s: OVERHEAD_S = None,
    workers: WORKERS = None,
    sharing: SHARING = None,
    learns: LEARNS = False,
    trace: TRACE = None,
    trace_column: TRACE_COLUMN = None,
    trace_scale: TRACE_SCALE = None,
    module: MODULES = None,
    plot: PLOT = None,
    as_json: JSON = False,
) -> None:
    """Has the options of every verb that simulates."""


def of_a_workload(verb: Callable[..., None]) -> Callable[..., None]:
    """Gives a verb the options of all that simulate, beside its own; they are in its context."""
    own, shared = (list(signature(each).parameters.values()) for each in (verb, _shared))

    @wraps(verb)
    def told(**given: Any) -> None:
        verb(**{each.name: given[each.name] for each in own})

    told.__annotations__ = {each.name: each.annotation for each in (*own, *shared)}
    vars(told)["__signature__"] = Signature([*own, *shared])
    return told


def load_modules(modules: Sequence[str] | None) -> None:
    """Makes the policies of a user's own modules known."""
    for name in modules or ():
        load_module(name)


def policies(ctx: typer.Context) -> list[Spelled]:
    """Gives the policies that a verb was told, those of the user's own modules among them."""
    load_modules(ctx.params["module"])
    return spelled(ctx.params["policy"]) if ctx.params["policy"] else []


def asked(ctx: typer.Context) -> tuple[Any, dict[str, Any]]:
    """Gives what is to be simulated, and the settings for it, from all that a verb was told.

    Raises:
        ConfigRefused: neither a file nor a testbed is named, or both.
        UnknownName: there is no such option.
    """
    told = ctx.params
    files, options = _sorted(told["words"] or ())
    settings = {name: told[key] for key, name in _SETTINGS.items()}
    column, scale = told["trace_column"], told["trace_scale"]
    settings["traces"] = [Trace.of(each, column, scale) for each in told["trace"] or ()]
    if told["testbed"] is not None and not files:
        return told["testbed"], {**settings, **options}
    if len(files) != 1 or told["testbed"] is not None:
        expected = "one pipeline file, or --testbed NAME (`headgate testbeds` lists them)"
        raise ConfigRefused(
            path=f"headgate {ctx.command.name}", key="FILE", value=" ".join(files) or None,
            expected=expected,
        )  # fmt: skip
    for name in options:
        raise UnknownName(kind="option", name=name, known=())
    return read_pipeline(files[0], os.environ), settings


@contextmanager
def own_options_too(ctx: typer.Context) -> Iterator[None]:
    """Lets a wrong option be answered with the nearest of the verb's own and of the testbed's."""
    try:
        yield
    except UnknownName as error:
        if error.kind != "option":
            raise
        known = [*map(_flag, error.known), *own_options(ctx)]
        raise UnknownName(
            kind="option", name=_flag(error.name), known=known, where=error.where
        ) from error


def own_options(ctx: typer.Context) -> list[str]:
    """Gives the options that a verb itself has."""
    flags = [flag for each in ctx.command.params for flag in each.opts]
    return [flag for flag in flags if flag.startswith("--")]


def _sorted(words: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Tells files from options: `--key value`, `--key=value`, or `--key` alone for true."""
    files: list[str] = []
    options: dict[str, Any] = {}
    left = list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("-"):
            files.append(word)
            continue
        flag, equals, value = word.partition("=")
        if not equals:
            value = left.pop(0) if left and not left[0].startswith("--") else "true"
        options[flag.lstrip("-").replace("-", "_")] = value_of(value)
    return files, options


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
