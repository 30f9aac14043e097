"""Write the figures of README.md and of pages in docs from the last results in bench/results.

A generated part stands between the comments `<!-- generated: NAME -->` and `<!-- end -->`.
"""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"
PAGES = ("README.md", "docs/benchmarks.md", "docs/reliability.md")
SIDES = ("native-fifo", "native-fair", "headgate")
CLASSES = {"H": "highly critical", "C": "critical", "N": "neutral", "all": "all 50 queries"}
PART = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """Return the text of a page with its generated parts filled in from the last results."""
    return PART.sub(lambda part: f"{part[1]}{PARTS[part[2]]()}\n{part[3]}", page)


def headline() -> str:
    """Return the first result of the README, in a sentence."""
    answer = _results("spark")
    sides = _comparison(answer)["sides"]
    fifo_s, fair_s, ours_s = (sides[side]["classes"]["H"]["mean_s"] for side in SIDES)
    return (
        f"**50 queries on {answer['machine']['cores']} cores: Headgate answers the highly critical"
        f" class in {ours_s:.2f} s on average, native Structured Streaming in {fair_s:.1f} s with"
        f" FAIR pools and {fifo_s:.1f} s with FIFO** (`make bench-spark`,"
        " [all figures](docs/benchmarks.md))."
    )


def mean_responses() -> str:
    """Return the mean response of 50 queries by class, as a table for the README."""
    sides = _comparison(_results("spark"))["sides"]
    lines = [
        "| class | native, FIFO | native, FAIR pools | Headgate | Headgate is sooner by |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, words in CLASSES.items():
        times_s = [sides[side]["classes"][name]["mean_s"] for side in SIDES]
        cells = " | ".join(f"{time_s:.2f} s" for time_s in times_s)
        lines.append(f"| {words} | {cells} | {min(times_s[:2]) / times_s[2]:.0f} times |")
    return "\n".join(lines)


def responses() -> str:
    """Return mean / p95 seconds of 50 queries by class and side."""
    sides = _comparison(_results("spark"))["sides"]
    lines = [
        "| class | native FIFO | native FAIR pools | Headgate `cqc` | native ÷ Headgate |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in CLASSES:
        times = [sides[side]["classes"][name] for side in SIDES]
        ratios = [
            min(line[key] for line in times[:2]) / times[2][key] for key in ("mean_s", "p95_s")
        ]
        cells = " | ".join(map(_cell, times))
        lines.append(f"| {name} | {cells} | {' / '.join(f'{ratio:.1f}' for ratio in ratios)} |")
    return "\n".join(lines)


def bars() -> str:
    """Return every measured row with its bar, and when and where it was measured."""
    answer = _results("spark")
    lines = ["| measured | value | bar |", "| --- | --- | --- |"]
    rows = [*answer["rows"], *_results("language")["rows"]]
    for row in rows:
        bar = "" if row["bar"] is None else f"{row['bar_is']} {row['bar']:g}"
        missed = " **missed**" if row["verdict"] == "miss" else ""
        measured = row["measured"]
        value = f"{measured:,.0f}" if measured >= 1000 else f"{measured:.3g}"
        lines.append(f"| {row['what']} | {value} {row['unit']}{missed} | {bar} |")
    machine, dates = answer["machine"], sorted({row["at"][:10] for row in rows})
    lines.append(
        f"\nMeasured on {' and '.join(dates)}: {machine['cores']} cores, {machine['memory_gb']} GB,"
        f" PySpark {machine['pyspark']}, one run of each part."
    )
    return "\n".join(lines)


def chaos() -> str:
    """Return how many faults of each kind `make chaos` has made, and what came of them."""
    answer = _results("chaos")
    heads = ("faults", "lost", "twice", "refused", "wrong", "seconds")
    lines = [
        "| fault | faults | rows lost | rows twice | refused | anything else wrong | seconds |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    total = {head: sum(row[head] for row in answer["rows"]) for head in heads}
    for row in [*answer["rows"], {"kind": "**all**", **total}]:
        cells = " | ".join(f"{round(row[head]):,}" for head in heads)
        lines.append(f"| {row['kind']} | {cells} |")
    lines.append(
        f"\n{total['faults']} of {answer['planned']} faults of seed {answer['seed']}, from"
        f" {answer['from'][:16].replace('T', ' ')} to {answer['to'][:16].replace('T', ' ')} UTC,"
        f" commit {' and '.join(answer['commits'])}, {answer['cores']} cores, PySpark"
        f" {answer['pyspark']}."
    )
    return "\n".join(lines)


PARTS = {
    "headline": headline,
    "mean-responses": mean_responses,
    "responses": responses,
    "bars": bars,
    "chaos": chaos,
}


def _results(name: str) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return results


def _comparison(answer: dict[str, Any]) -> dict[str, Any]:
    rows = (row for row in answer["rows"] if row["what"].startswith("50 queries: mean response"))
    return next(rows)


def _cell(line: dict[str, Any]) -> str:
    share = line["committed"] / line["expected"] if line["expected"] else 1.0
    share_text = f" [{share:.2f}]" if share < 0.99 else ""
    return f"{line['mean_s']:.2f} / {line['p95_s']:.2f}{share_text}"


if __name__ == "__main__":
    for page in PAGES:
        (ROOT / page).write_text(filled((ROOT / page).read_text()))
