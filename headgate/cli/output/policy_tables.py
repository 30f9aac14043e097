"""The tables of `headgate explain --policy`: scores, and who was in charge when."""

import json
from typing import Any

from rich.table import Table

from headgate.cli.output.tables import show

SHOWN = 20
"""How many of the latest choices are printed; --json has all that are kept."""


def show_policy(explanation: dict[str, Any], *, as_json: bool) -> None:
    """Print the policy of a run; of `amos`, also its scores and its latest choices."""
    if as_json:
        print(json.dumps(explanation))
        return
    print(f"policy: {explanation['policy']}")
    amos = explanation["amos"]
    if amos is None:
        return
    for row in amos["specification"]:
        print(f"asked for: {row['quantifier']} {row['metric']}, weight {row['weight']:g}")
    scores = Table("policy", "score", "turns", title="scores, higher is better")
    for row in amos["scores"]:
        scores.add_row(row["policy"], _score(row["score"]), str(row["turns"]))
    show(scores)
    if not explanation["choices"]:
        return
    names = [row["policy"] for row in amos["scores"]]
    choices = Table("at", "in charge", "why", *names, title="latest choices")
    for choice in explanation["choices"][-SHOWN:]:
        marks = [_score(choice["scores"].get(name)) for name in names]
        choices.add_row(f"{choice['at_s']:.1f} s", choice["chosen"], choice["why"], *marks)
    show(choices)


def _score(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
