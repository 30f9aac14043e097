"""The options that several commands share, and how they are parsed."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, make_dataclass
from functools import wraps
from inspect import Signature, signature
from typing import Annotated, Any, get_args

import typer

from headgate.cli.address_options import ALLOW_HOST, HOST, PLAIN_HTTP, PORT, TLS_CERT, TLS_KEY
from headgate.config import LogFormat, SimulationConfig, read_pipeline
from headgate.errors import ConfigRefused, UnknownName
from headgate.runtime import Spelled, Trace, load_module, spelled, value_of
from headgate.server import Address

ANY_OPTION = {"ignore_unknown_options": True}
"""Each testbed has its own options: they are parsed from the arguments that typer does not know."""

FILE = Annotated[str, typer.Argument(metavar="FILE", help="The pipeline file.")]
WORDS = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE | --testbed NAME --OPTION VALUE",
        help="A pipeline file, or a testbed and its options; see `headgate testbeds`.",
        show_default=False,
    ),
]
TESTBED = Annotated[
    str | None, typer.Option(metavar="NAME", help="Testbed: sharaf, aurora, cqc, amos or bz.")
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
        min=0.001, help="How long tuples arrive. Default: 60 s of a pipeline, all of a testbed."
    ),
]
TRACE = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[STREAM=]FILE",
        help="Parquet file of recorded arrivals, used instead of the stream's own.",
    ),
]
TRACE_COLUMN = Annotated[
    str | None, typer.Option(metavar="NAME", help="Column of the trace that has the times.")
]
TRACE_SCALE = Annotated[
    float | None,
    typer.Option(
        help="Factor for recorded times. Default: 1, or the one that keeps a testbed's rate."
    ),
]
LEVEL = Annotated[
    str | None,
    typer.Option(
        metavar="query|operator", help="What is scheduled. Default: as in the testbed's paper."
    ),
]
TRAIN = Annotated[
    int | None, typer.Option(min=1, help="Most tuples per call. Default: the policy's.")
]
OVERHEAD_S = Annotated[
    float | None, typer.Option(min=0, help="Overhead of a box call, in seconds.")
]
WORKERS = Annotated[int | None, typer.Option(min=1, help="Most calls that run at once.")]
SHARED_PRIORITY = Annotated[
    str | None,
    typer.Option(
        metavar="max|sum|pdt",
        help="Segments that a shared operator runs with and is ranked by: best, all, best set.",
    ),
]
LEARNS = Annotated[
    bool,
    typer.Option("--learns", help="Learn selectivities during the run instead of knowing them."),
]
MODULES = Annotated[
    list[str] | None,
    typer.Option(
        "--module",
        metavar="FILE.py|NAME",
        help="Module with policies, sources or sinks of your own, to be used by name.",
    ),
]
PLOT = Annotated[
    str | None, typer.Option(metavar="FILE.html", help="Write plots to this HTML page.")
]
JSON = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
RUN_SECONDS = Annotated[
    float | None,
    typer.Option(
        min=1,
        help="Accept tuples for this long, then finish them. Default: until stopped or Ctrl-C.",
    ),
]
STATE = Annotated[str | None, typer.Option(help="State directory. Default: that of the file.")]
FRESH = Annotated[bool, typer.Option(help="Begin with an empty state directory.")]
CONTROL = Annotated[
    bool,
    typer.Option("--control/--no-control", help="Let other commands query and change the run."),
]
RECORD = Annotated[bool, typer.Option("--record", help="Record the run, for `headgate replay`.")]


LOG_FORMAT = Annotated[
    LogFormat | None,
    typer.Option(help="Format of headgate.log: text or json. Default: that of the file."),
]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `run`, which `check` takes too."""

    file: FILE
    policy: POLICIES = None
    seconds: RUN_SECONDS = None
    state: STATE = None
    fresh: FRESH = False
    control: CONTROL = True
    host: HOST = "127.0.0.1"
    port: PORT = None
    allow_host: ALLOW_HOST = None
    tls_cert: TLS_CERT = None
    tls_key: TLS_KEY = None
    allow_plain_http: PLAIN_HTTP = False
    record: RECORD = False
    log_format: LOG_FORMAT = None
    module: MODULES = None
    as_json: JSON = False

    @property
    def address(self) -> Address | None:
        """Where the page and the control API listen; None if nobody may control the run."""
        if not self.control:
            return None
        return Address(
            self.host, self.port, tuple(self.allow_host or ()), self.tls_cert, self.tls_key,
            self.allow_plain_http,
        )  # fmt: skip

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that are used instead of those of the file."""
        settings = {"state": self.state, "record": self.record, "log_format": self.log_format}
        return {name: value for name, value in settings.items() if value}


@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """The options of all commands that simulate."""

    words: WORDS = None
    testbed: TESTBED = None
    policy: POLICIES = None
    seconds: SECONDS = None
    level: LEVEL = None
    train: TRAIN = None
    overhead_s: OVERHEAD_S = None
    workers: WORKERS = None
    shared_priority: SHARED_PRIORITY = None
    learns: LEARNS = False
    trace: TRACE = None
    trace_column: TRACE_COLUMN = None
    trace_scale: TRACE_SCALE = None
    module: MODULES = None
    plot: PLOT = None
    as_json: JSON = False

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a simulation."""
        return {
            "seconds": self.seconds, "level": self.level, "workers": self.workers,
            "train_tuples": self.train, "overhead_s": self.overhead_s,
            "shared_priority": self.shared_priority, "learns": self.learns,
            "traces": [
                Trace.of(text, self.trace_column, self.trace_scale) for text in self.trace or ()
            ],
            **self._charges,
        }  # fmt: skip

    @property
    def _charges(self) -> dict[str, Any]:
        charges = {name: getattr(self, name) for name in SimulationConfig.model_fields}
        return {name: value for name, value in charges.items() if value is not None}


def _flag_type(name: str, annotation: Any) -> Any:
    """Return the type of a flag for a key of the section `simulation` of a pipeline file."""
    if name in ("preloaded", "at"):
        return list[str]
    return next(kind for kind in (bool, int, float) if kind in _types(annotation))


def _types(annotation: Any) -> list[Any]:
    """Return the types in an annotation such as `Annotated[float, ...] | None`."""
    return [annotation, *(kind for part in get_args(annotation) for kind in _types(part))]


def _charge(name: str) -> tuple[str, Any, Any]:
    """Return an option as a field of a dataclass: its name, its type and its default."""
    key = SimulationConfig.model_fields[name]
    text = str(key.description)
    option = typer.Option(
        help=f"{text[0].upper()}{text[1:]}.", rich_help_panel="Charges of the simulation"
    )
    return name, Annotated[_flag_type(name, key.annotation) | None, option], field(default=None)


WITH_CHARGES = make_dataclass(
    "SimulationOptionsWithCharges",
    [_charge(name) for name in SimulationConfig.model_fields],
    bases=(SimulationOptions,), frozen=True, kw_only=True,
)  # fmt: skip
"""The options of all commands that simulate, and one for each key of the section `simulation`."""


def with_options(shared: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options of several commands to one of them.

    Args:
        shared: the dataclass of these options. The command's first parameter is an instance of it.
    """
    declared = list(signature(shared).parameters.values())

    def decorator(command: Callable[..., None]) -> Callable[..., None]:
        specific = list(signature(command).parameters.values())[1:]

        @wraps(command)
        def wrapper(**values: Any) -> None:
            options = shared(
                **{parameter.name: values.pop(parameter.name) for parameter in declared}
            )
            command(options, **values)

        wrapper.__annotations__ = {
            parameter.name: parameter.annotation for parameter in (*specific, *declared)
        }
        vars(wrapper)["__signature__"] = Signature([*specific, *declared])
        return wrapper

    return decorator


def load_modules(modules: Sequence[str] | None) -> None:
    """Import the user's own modules, which registers their policies."""
    for name in modules or ():
        load_module(name)


def policies(options: SimulationOptions) -> list[Spelled]:
    """Return the policies of --policy, after loading the user's modules."""
    load_modules(options.module)
    return spelled(options.policy) if options.policy else []


def simulation_request(
    command: str | None, options: SimulationOptions
) -> tuple[Any, dict[str, Any]]:
    """Return what to simulate, a testbed's name or a pipeline, and the settings for it.

    Args:
        command: the name of the command, for refusals.

    Raises:
        ConfigRefused: neither a file nor a testbed is named, or both.
        UnknownName: there is no such option.
    """
    files, testbed_options = _sorted(options.words or ())
    settings = options.settings
    if options.testbed is not None and not files:
        return options.testbed, {**settings, **testbed_options}
    if len(files) != 1 or options.testbed is not None:
        expected = "one pipeline file, or --testbed NAME (`headgate testbeds` lists them)"
        raise ConfigRefused(
            path=f"headgate {command}", key="FILE", value=" ".join(files) or None,
            expected=expected,
        )  # fmt: skip
    for name in testbed_options:
        raise UnknownName(kind="option", name=name, known=())
    return read_pipeline(files[0], os.environ), settings


@contextmanager
def suggesting_options(ctx: typer.Context) -> Iterator[None]:
    """Replace the error for an unknown option by one that suggests the nearest known option."""
    try:
        yield
    except UnknownName as error:
        if error.kind != "option":
            raise
        flags = [*map(_flag, error.known), *command_options(ctx)]
        raise UnknownName(
            kind="option", name=_flag(error.name), known=flags, where=error.where
        ) from error


def command_options(ctx: typer.Context) -> list[str]:
    """Return the options that the command itself has."""
    flags = [flag for parameter in ctx.command.params for flag in parameter.opts]
    return [flag for flag in flags if flag.startswith("--")]


def _sorted(words: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Split arguments into files and options: `--key value`, `--key=value`, or `--key` for true."""
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
