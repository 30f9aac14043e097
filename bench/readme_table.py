"""Prints what the README says of the last comparison with native queries, from bench/results."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
SIDES = ("native-fifo", "native-fair", "headgate")
HEAD = """\
| queries | class | native FIFO | native FAIR pools | Headgate `cqc` | native ÷ Headgate |
| --- | --- | --- | --- | --- | --- |"""


def markdown() -> str:
    """Gives mean / p95 seconds by number of queries and class, and what was run where."""
    answers = _answers()
    lines = [HEAD]
    for answer in answers:
        for name in (*answer["classes"], "all"):
            cells = [_cell(answer["sides"][side], name) for side in SIDES]
            ratio = answer["native_over_headgate"].get(name, {})
            ratios = " / ".join(_times(ratio.get(key)) for key in ("mean_s", "p95_s"))
            queries = answer["request"]["queries"]
            lines.append(f"| {queries} | {name} | {' | '.join(cells)} | {ratios} |")
    machine, request = answers[0]["machine"], answers[0]["request"]
    lines.append(
        f"\nSeconds, mean / p95. {machine['date'][:10]}, {machine['cores']} cores,"
        f" {machine['memory_gb']} GB, PySpark {machine['pyspark']}; {request['rate_per_s']:g}"
        f" tuples/s in files of {request['tick_s']:g} s, {request['seconds']:g} s measured after"
        f" {request['warm_up_s']:g} s. A share in brackets is the part of the due results that a"
        " side had committed when its time was up, where that is below 0.99: it has failed, and its"
        " times are those of its quickest results."
    )
    return "\n".join(lines)


def headline() -> str:
    """Gives the README's first result, of the largest comparison."""
    answer = _answers()[-1]
    times = [answer["sides"][side]["classes"]["H"]["mean_s"] for side in reversed(SIDES)]
    ours_s, fair_s, fifo_s = times
    return (
        f"**{answer['request']['queries']} queries on {answer['machine']['cores']} cores: Headgate"
        f" answers the highly critical class in {ours_s:.2f} s on average, native Structured"
        f" Streaming in {fair_s:.1f} s with FAIR pools and {fifo_s:.1f} s with FIFO**"
        " (`make bench-native`, [below](#against-native-structured-streaming))."
    )


def with_few() -> str:
    """Gives what the smallest comparison says, where native is at its best."""
    answer = _answers()[0]
    means = {side: answer["sides"][side]["classes"]["all"]["mean_s"] for side in SIDES}
    best_s = min(means["native-fifo"], means["native-fair"])
    return (
        f"With {answer['request']['queries']} queries at the same rate native answers in"
        f" {best_s:.2f} s on average, Headgate in {means['headgate']:.2f} s."
    )


def _answers() -> list[dict[str, Any]]:
    found = sorted(RESULTS.glob("native-*.json"), key=lambda file: int(file.stem.split("-")[1]))
    return [json.loads(file.read_text()) for file in found]


def _cell(side: dict[str, Any], name: str) -> str:
    line = side["classes"].get(name)
    if line is None:
        return "failed"
    share = f" [{line['share']:.2f}]" if line["share"] < 0.99 else ""
    if line["mean_s"] is None:
        return f"–{share}"
    return f"{line['mean_s']:.2f} / {line['p95_s']:.2f}{share}"


def _times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.1f}"


if __name__ == "__main__":
    print(f"{headline()}\n\n{with_few()}\n\n{markdown()}")
