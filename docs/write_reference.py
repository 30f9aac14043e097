"""The script of `make docs` that writes docs/reference.md: every key, command and policy."""

import os
from pathlib import Path

os.environ["TERMINAL_WIDTH"] = "100"  # typer reads it once, when it is imported
os.environ["NO_COLOR"] = "1"

from pydantic import BaseModel
from pydantic_core import PydanticUndefined
from typer.testing import CliRunner

from headgate import config
from headgate.cli.app import app
from headgate.cli.catalog import testbeds_as_data, word_of
from headgate.metrics.measures import MEASURES
from headgate.model.settings import Settings
from headgate.policies import policies
from headgate.runtime import TESTBEDS

VERBS = (
    "run", "check", "simulate", "compare", "replay", "reproduce", "policies", "testbeds",
    "add", "drop", "set policy", "set library", "set specification", "status", "health",
    "explain", "why", "open", "top", "sql", "stop",
)  # fmt: skip
MODELS = (
    config.Pipeline,
    Settings,
    config.PolicyConfig,
    config.ClassConfig,
    config.SparkConfig,
    config.StreamConfig,
    config.SimulationConfig,
    config.ArrivalsConfig,
    config.ViewConfig,
    config.QueryConfig,
    config.ValueConfig,
    config.SinkConfig,
    config.StatisticsConfig,
)


def reference() -> str:
    """Return the text of the page."""
    parts = [
        "# Reference",
        "`make docs` generates this page from the program. A test compares the two.",
        "## The pipeline file",
        "A value comes from its default, the file, the environment (`HEADGATE_STATE` sets `state`)"
        " or a flag. The last of these that has the value wins. `headgate check FILE --show` prints"
        " where each value comes from.",
        *map(_table, MODELS),
        "## The command line",
        "Exit codes: 0 done, 1 the work failed, 2 the request was wrong, 3 unhealthy"
        " (`status`, `health`), 130 interrupted.",
        *map(_help, ((), *(tuple(verb.split()) for verb in VERBS))),
        "## The measures",
        "`headgate simulate` prints these measures, and `headgate compare --objective` ranks by one"
        " of them. The last column says whether a measure exists for a single class or query, as in"
        " `p95_response:class=H`.",
        _measures(),
        "## The testbeds",
        "The workloads of the papers' experiments. The first variant of a testbed is the default.",
        _testbeds(),
        "## The policies",
        _policies(),
    ]
    return "\n\n".join(parts) + "\n"


def _table(model: type[BaseModel]) -> str:
    rows = ["| key | default | meaning |", "| --- | --- | --- |"]
    inherited = Settings.model_fields if issubclass(model, config.Pipeline) else ()
    for name, field in model.model_fields.items():
        if name in inherited:
            continue
        default = (
            "required" if field.is_required() else f"`{_default(field)}`".replace("``", "none")
        )
        rows.append(f"| `{field.alias or name}` | {default} | {field.description} |")
    title = (model.__doc__ or "").splitlines()[0]
    return f"### {model.__name__.removesuffix('Config')}\n\n{title}\n\n" + "\n".join(rows)


def _default(field: object) -> object:
    default = getattr(field, "default", PydanticUndefined)
    if default is not PydanticUndefined:
        return default
    value = field.default_factory()  # type: ignore[attr-defined]
    return (
        value.model_dump(by_alias=True, exclude_none=True)
        if isinstance(value, BaseModel)
        else value
    )


def _help(words: tuple[str, ...]) -> str:
    result = CliRunner().invoke(app, [*words, "--help"], prog_name="headgate")
    text = "\n".join(line.rstrip() for line in result.output.strip().splitlines())
    return f"### `{' '.join(('headgate', *words))}`\n\n```text\n{text}\n```"


def _measures() -> str:
    rows = [
        "| measure | meaning | unit | better | by class or query |",
        "| --- | --- | --- | --- | --- |",
    ]
    for measure in MEASURES.values():
        better = "higher" if measure.more_is_better else "lower"
        part = "no" if measure.of_line is None else "yes"
        rows.append(f"| `{measure.name}` | {measure.title} | {measure.unit} | {better} | {part} |")
    return "\n".join(rows)


def _testbeds() -> str:
    rows = ["| testbed | variant | level | options and defaults |", "| --- | --- | --- | --- |"]
    for family in testbeds_as_data(list(TESTBEDS)):
        for word, variant in family["variants"].items():
            options = ", ".join(f"`{key}={word_of(v)}`" for key, v in variant["options"].items())
            chosen = f"`{family['chosen_by']}={word}`"
            rows.append(f"| `{family['name']}` | {chosen} | {variant['level']} | {options} |")
    return "\n".join(rows)


def _policies() -> str:
    rows = [
        "| policy | rule | objective | paper | parameters | levels | engines | starves |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for entry in policies().values():
        names = " ".join(f"`{name}`" for name in (entry.name, *entry.aliases))
        parameters = ", ".join(f"`{key}={word_of(v)}`" for key, v in entry.parameters.items())
        cells = (
            names, entry.rule.splitlines()[0], entry.objective, entry.paper, parameters,
            ", ".join(entry.levels), ", ".join(entry.engines), "may" if entry.starves else "nobody",
        )  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    (Path(__file__).parent / "reference.md").write_text(reference())
