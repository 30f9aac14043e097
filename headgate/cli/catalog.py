"""The lists of policies and testbeds, and the explanation of one of them."""

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from textwrap import fill, indent
from typing import Any, get_args

from rich import box
from rich.table import Table

from headgate.cli.output.tables import out, show
from headgate.errors import UnknownName
from headgate.policies import Engine, PolicyEntry, fidelity, policy_entry
from headgate.policies import policies as known_policies
from headgate.runtime import TESTBEDS, Family, Variant

WIDEST = 22
"""Most characters of a parameter in the list of policies."""


def show_policies(name: str | None, *, as_json: bool) -> None:
    """Print the list of policies, or one with its rule, its parameters and when to use it.

    Raises:
        UnknownName: there is no such policy; the nearest is suggested.
    """
    entries = list(known_policies().values()) if name is None else [policy_entry(name)]
    if as_json:
        print(json.dumps([_plain(entry) for entry in entries], ensure_ascii=False))
    elif name is None:
        show(_list(entries))
    else:
        _explain(entries[0])


def show_testbeds(name: str | None, *, as_json: bool) -> None:
    """Print all testbeds, or one, with their variants and options.

    Raises:
        UnknownName: there is no such testbed.
    """
    if name is not None and name not in TESTBEDS:
        raise UnknownName(kind="testbed", name=name, known=TESTBEDS)
    chosen = [TESTBEDS[name]] if name else list(TESTBEDS.values())
    if as_json:
        print(json.dumps(testbeds_as_data([family.name for family in chosen])))
        return
    for family in chosen:
        out.print(f"{family.name}: {family.about}", highlight=False, markup=False)
        for words, variant in _variants(family):
            options = " ".join(_flag(key, value) for key, value in variant.options.items())
            out.print(f"  --{family.chosen_by} {words}, {variant.level} level", highlight=False)
            out.print(indent(fill(options, 96), "    "), highlight=False, markup=False)


def _variants(family: Family) -> Iterator[tuple[str, Variant]]:
    """Yield the variants; those with the same options and level are joined into one entry."""
    alike = groupby(family.variants.items(), key=lambda item: (item[1].options, item[1].level))
    for _, members in alike:
        named = dict(members)
        words = "|".join(named)
        usual = f" (default {family.usual})" if family.usual in named else ""
        yield f"{words}{usual}", next(iter(named.values()))


def testbeds_as_data(names: list[str]) -> list[dict[str, Any]]:
    """Return testbeds as plain data, for JSON and for the reference page."""
    return [
        {
            "name": family.name,
            "about": family.about,
            "chosen_by": family.chosen_by,
            "variants": {
                word: {"level": variant.level, "options": variant.options}
                for word, variant in family.variants.items()
            },
        }
        for family in map(TESTBEDS.__getitem__, names)
    ]


def _list(entries: list[PolicyEntry]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("policy", "objective", "paper", "parameters", "level", "starves", "engine"):
        table.add_column(name)
    for entry in entries:
        table.add_row(
            entry.name, entry.objective, entry.paper, _shortly(entry.parameters),
            _either(entry.levels), "may" if entry.starves else "nobody", _either(entry.engines),
        )  # fmt: skip
    return table


def _shortly(parameters: Mapping[str, Any]) -> str:
    """Return the parameters, one per line, long ones cut; `headgate policies NAME` has them all."""
    texts = [f"{key}={word_of(value)}" for key, value in parameters.items()]
    return "\n".join(text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…" for text in texts)


def _explain(entry: PolicyEntry) -> None:
    pairs = [
        ("paper", entry.paper),
        ("also called", ", ".join(entry.aliases)),
        ("parameters", _parameters(entry.parameters)),
        ("use it when", entry.use),
        ("not when", entry.avoid),
        ("starves", "it may: a query can wait for ever" if entry.starves else "nobody"),
        ("levels", ", ".join(entry.levels)),
        ("engines", ", ".join(entry.engines)),
        *(_on_engine(entry, engine) for engine in get_args(Engine)),
    ]
    out.print(f"{entry.name}: {entry.objective}\n\n{entry.rule}\n", highlight=False, markup=False)
    for name, value in pairs:
        if value:
            out.print(f"{name + ':':13} {value}", highlight=False, markup=False)


def _plain(entry: PolicyEntry) -> dict[str, object]:
    fidelities = {engine: fidelity(entry, engine) for engine in get_args(Engine)}
    on_engines = {
        engine: {"is": str(truth), "reason": truth.reason} for engine, truth in fidelities.items()
    }
    return {**entry.to_dict(), "fidelity": on_engines}


def _on_engine(entry: PolicyEntry, engine: Engine) -> tuple[str, str]:
    """Return the name of an engine, and how true the policy is to its rule there."""
    truth = fidelity(entry, engine)
    return f"on {engine}" if engine == "spark" else engine, f"{truth}: {truth.reason}"


def _parameters(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={word_of(value)}" for key, value in parameters.items())


def word_of(value: Any) -> str:
    """Return a value as it is written on the command line."""
    if isinstance(value, tuple):
        return "+".join(map(word_of, value))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value).replace(",", "+")


def _flag(key: str, value: Any) -> str:
    flag = "--" + key.replace("_", "-")
    return flag if value is False else f"{flag} {word_of(value)}"


def _either(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else "both"
