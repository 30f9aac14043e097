"""Writes docs/reference.md from the program itself: every key, command and policy. `make docs`."""

import os
from pathlib import Path

os.environ["TERMINAL_WIDTH"] = "100"  # typer reads it once, when it is imported
os.environ["NO_COLOR"] = "1"

from pydantic import BaseModel
from pydantic_core import PydanticUndefined
from typer.testing import CliRunner

from headgate import config
from headgate.cli.app import app
from headgate.policies import policies

MODELS = (
    config.Pipeline,
    config.PolicyConfig,
    config.SparkConfig,
    config.StreamConfig,
    config.ArrivalsConfig,
    config.QueryConfig,
    config.SinkConfig,
    config.StatisticsConfig,
)


def reference() -> str:
    """Gives the whole page."""
    parts = [
        "# Reference",
        "Printed from the program by `make docs`; a test holds the two together.",
        "## The pipeline file",
        "A value comes from its default, the file, the environment (`HEADGATE_STATE` sets `state`)"
        " or a flag; the last one wins. `headgate check FILE --show` says where each comes from.",
        *map(_table, MODELS),
        "## The command line",
        "Exit codes: 0 done, 1 the work failed, 2 the request was wrong, 130 interrupted.",
        *map(_help, ((), ("run",), ("check",), ("simulate",), ("policies",))),
        "## The policies",
        _policies(),
    ]
    return "\n\n".join(parts) + "\n"


def _table(model: type[BaseModel]) -> str:
    rows = ["| key | default | meaning |", "| --- | --- | --- |"]
    for name, field in model.model_fields.items():
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
    made = field.default_factory()  # type: ignore[attr-defined]
    return made.model_dump(by_alias=True) if isinstance(made, BaseModel) else made


def _help(words: tuple[str, ...]) -> str:
    result = CliRunner().invoke(app, [*words, "--help"], prog_name="headgate")
    text = "\n".join(line.rstrip() for line in result.output.strip().splitlines())
    return f"### `{' '.join(('headgate', *words))}`\n\n```text\n{text}\n```"


def _policies() -> str:
    rows = ["| policy | rule | objective | paper | starves |", "| --- | --- | --- | --- | --- |"]
    for entry in policies().values():
        rule = entry.rule.splitlines()[0]
        starves = "may" if entry.starves else "nobody"
        rows.append(f"| `{entry.name}` | {rule} | {entry.objective} | {entry.paper} | {starves} |")
    return "\n".join(rows)


if __name__ == "__main__":
    (Path(__file__).parent / "reference.md").write_text(reference())
