"""Writes what the README says of the Spark engine, from the last results in bench/results."""

import json
import re
from pathlib import Path
from typing import Any

README = Path(__file__).parents[1] / "README.md"
RESULTS = Path(__file__).parent / "results" / "spark.json"
LANGUAGE = Path(__file__).parent / "results" / "language.json"
SIDES = ("native-fifo", "native-fair", "headgate")
CLASSES = ("H", "C", "N", "all")
HEAD = """\
| class | native FIFO | native FAIR pools | Headgate `cqc` | native ÷ Headgate |
| --- | --- | --- | --- | --- |"""
BARS = """\
| measured | value | bar |
| --- | --- | --- |"""


def headline() -> str:
    """Gives the README's first result."""
    answer = _answer()
    sides = _compared(answer)["sides"]
    fifo_s, fair_s, ours_s = (sides[side]["classes"]["H"]["mean_s"] for side in SIDES)
    return (
        f"**50 queries on {answer['machine']['cores']} cores: Headgate answers the highly critical"
        f" class in {ours_s:.2f} s on average, native Structured Streaming in {fair_s:.1f} s with"
        f" FAIR pools and {fifo_s:.1f} s with FIFO** (`make bench-spark`,"
        " [below](#against-native-structured-streaming))."
    )


def markdown() -> str:
    """Gives mean / p95 seconds of 50 queries by class, then every row that has a bar."""
    answer = _answer()
    sides = _compared(answer)["sides"]
    lines = [HEAD]
    for name in CLASSES:
        times = [sides[side]["classes"][name] for side in SIDES]
        cells = [_cell(line) for line in times]
        ratios = [
            min(line[key] for line in times[:2]) / times[2][key] for key in ("mean_s", "p95_s")
        ]
        ratio = " / ".join(f"{each:.1f}" for each in ratios)
        lines.append(f"| {name} | {' | '.join(cells)} | {ratio} |")
    lines += ["", BARS]
    rows = [*answer["rows"], *json.loads(LANGUAGE.read_text())["rows"]]
    for row in rows:
        bar = "" if row["bar"] is None else f"{row['bar_is']} {row['bar']:g}"
        missed = " **missed**" if row["verdict"] == "miss" else ""
        measured = row["measured"]
        value = f"{measured:,.0f}" if measured >= 1000 else f"{measured:.3g}"
        lines.append(f"| {row['what']} | {value} {row['unit']}{missed} | {bar} |")
    machine, dates = answer["machine"], sorted({row["at"][:10] for row in rows})
    lines.append(
        f"\n{' and '.join(dates)}, {machine['cores']} cores, {machine['memory_gb']} GB, PySpark"
        f" {machine['pyspark']}, one run of each part. The first table has seconds, mean / p95;"
        " a share in brackets is the part of the due results that a side had committed when its"
        " time was up, where that is below 0.99: it has failed, and its times are those of its"
        " quickest results."
    )
    return "\n".join(lines)


def write() -> None:
    """Puts both where they stood in the README."""
    text = README.read_text()
    text = re.sub(r"\*\*50 queries on .*", lambda _: headline(), text, count=1)
    pattern = r"\| class \| native FIFO .*?quickest results\."
    README.write_text(re.sub(pattern, lambda _: markdown(), text, count=1, flags=re.DOTALL))


def _answer() -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(RESULTS.read_text())
    return answer


def _compared(answer: dict[str, Any]) -> dict[str, Any]:
    rows = (row for row in answer["rows"] if row["what"].startswith("50 queries: mean response"))
    return next(rows)


def _cell(line: dict[str, Any]) -> str:
    share = line["committed"] / line["expected"] if line["expected"] else 1.0
    shown = f" [{share:.2f}]" if share < 0.99 else ""
    return f"{line['mean_s']:.2f} / {line['p95_s']:.2f}{shown}"


if __name__ == "__main__":
    write()
