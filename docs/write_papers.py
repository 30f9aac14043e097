"""The script of `make docs` that writes docs/papers.md from a report of `headgate reproduce`."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headgate.experiments.report import TITLES

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "docs" / "report" / "report.json"
PAGE = ROOT / "docs" / "papers.md"


def page_of(figures: Sequence[Mapping[str, Any]]) -> str:
    """Return the page: for each paper a table with a line per figure."""
    numbers = Counter(row["holds"] for figure in figures for row in figure["statements"])
    quick = any(figure["settings"]["quick"] for figure in figures)
    size = "a quick run" if quick else "a full run"
    lines = [
        "# The papers' figures",
        "",
        f"Written by `make docs` from [report.json](report/report.json), {size} of `headgate"
        f" reproduce`: {sum(numbers.values())} statements about {len(figures)} figures."
        f" {numbers['yes']} hold in every seed, {numbers['partly']} in the mean only,"
        f" {numbers['no']} do not hold. [reproduce.md](reproduce.md) explains the command; its"
        " report has the charts, the statements and the reasons.",
    ]
    for paper, title in TITLES.items():
        lines += ["", f"## {title}", "", "| figure | what | holds | in the mean | does not hold |"]
        lines.append("| --- | --- | --- | --- | --- |")
        for figure in figures:
            if figure["paper"] == paper:
                holds = Counter(row["holds"] for row in figure["statements"])
                cells = " | ".join(str(holds[verdict]) for verdict in ("yes", "partly", "no"))
                lines.append(f"| `{figure['id']}` | {figure['settings']['title']} | {cells} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page_of(json.loads(REPORT.read_text())["figures"]))
