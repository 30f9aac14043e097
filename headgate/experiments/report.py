"""The report: pages that need no network connection, Markdown, CSV and `report.json`."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from headgate.experiments import chart

TITLES = {
    "aurora": "Operator Scheduling in a Data Stream Manager (Aurora)",
    "amos": "AMoS: adaptive multi-objective scheduling selection",
    "cqc": "Continuous Query Classes (CQC)",
    "sharaf": "Metrics and algorithms for processing multiple continuous queries (Sharaf)",
    "bz": "Minimizing Latency and Memory in DSMS (Bai and Zaniolo)",
}
"""The papers, in the order of the report."""

VERDICTS = {"yes": "holds", "partly": "holds in the mean only", "no": "does not hold"}

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;padding:1rem 1.5rem 4rem;max-width:1360px;
background:var(--page);color:var(--ink)}
:root{--page:#f6f8fa;--soft:#57606a;--yes:#1a7f37;--partly:#9a6700;--no:#cf222e;--link:#0a58ca}
@media (prefers-color-scheme: dark){:root{--page:#0d1117;--soft:#9aa4af;--yes:#3fb950;
--partly:#d29922;--no:#ff7b72;--link:#79b8ff}}
h1{font-size:1.7rem}h2{font-size:1.25rem;margin-top:0}a{color:var(--link)}
table{border-collapse:collapse;width:100%;background:var(--paper)}
td,th{border:1px solid var(--grid);padding:.35rem .6rem;text-align:left;vertical-align:top}
section{background:var(--paper);border:1px solid var(--grid);border-radius:8px;
padding:1rem 1.25rem;margin:1.25rem 0}
.list td:nth-child(1){width:7rem;white-space:nowrap}.list td:nth-child(2){width:55%}
.charts{margin-bottom:1rem;display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,470px),1fr));gap:1rem}
figure{margin:0;max-width:700px}figcaption{font-weight:600;font-size:.95rem;margin-bottom:.3rem}
svg{width:100%;height:auto;display:block}.soft{color:var(--soft);font-size:.9rem}
.yes{color:var(--yes)}.partly{color:var(--partly)}.no{color:var(--no)}
.verdict{font-weight:600;white-space:nowrap}code{font-size:.88em;overflow-wrap:anywhere}
details{margin:.5rem 0}pre{overflow:auto;font-size:.8rem}
"""


def write_report(figures: Sequence[Mapping[str, Any]], folder: str | Path) -> Path:
    """Write all forms of the report and return the path of its first page.

    Args:
        figures: as `figure_of` returns them.
    """
    place = Path(folder)
    (place / "data").mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(
        json.dumps(figure, ensure_ascii=False, allow_nan=False) for figure in figures
    )
    (place / "report.json").write_text(f'{{"figures": [\n{lines}\n]}}\n')
    for figure in figures:
        (place / "data" / f"{figure['id']}.csv").write_text(csv_of(figure))
        for number, panel in enumerate(figure["panels"], start=1):
            image = chart.svg(panel, title=_caption(figure, number - 1), alone=True)
            (place / "data" / f"{figure['id']}-{number}.svg").write_text(image)
    for paper in _papers(figures):
        (place / f"{paper}.html").write_text(_paper_page(paper, figures))
    (place / "report.md").write_text(markdown_of(figures))
    first = place / "index.html"
    first.write_text(_first_page(figures))
    return first


def counts(figures: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Return how many statements hold, hold partly and do not hold."""
    return Counter(statement["holds"] for figure in figures for statement in figure["statements"])


def verdict_of(figure: Mapping[str, Any]) -> str:
    """Return the worst verdict of a figure's statements."""
    verdicts = {statement["holds"] for statement in figure["statements"]}
    return next((verdict for verdict in ("no", "partly") if verdict in verdicts), "yes")


def csv_of(figure: Mapping[str, Any]) -> str:
    """Return the data of a figure, a row per value, after a line with its command."""
    text = io.StringIO()
    text.write(f"# {figure['command']}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["panel", "kind", "curve", "policy", "part", "x", "value", "low", "high"])
    for number, panel in enumerate(figure["panels"], start=1):
        for curve in panel["curves"]:
            x_values = curve.get("x", panel["x"]["values"])
            for row in zip(x_values, curve["values"], curve["low"], curve["high"], strict=True):
                names = [curve["label"], curve["policy"], curve.get("part", "")]
                writer.writerow([number, panel["kind"], *names, *row])
    return text.getvalue()


def markdown_of(figures: Sequence[Mapping[str, Any]]) -> str:
    """Return the whole report as Markdown."""
    lines = ["# The papers' figures, reproduced", "", _count_sentence(figures), ""]
    for paper in _papers(figures):
        lines += [f"## {TITLES[paper]}", ""]
        for figure in _of_paper(paper, figures):
            settings = figure["settings"]
            lines += [f"### {figure['id']}: {settings['title']}", "", f"`{figure['command']}`", ""]
            lines += [settings["note"], ""] if settings["note"] else []
            for number in range(len(figure["panels"])):
                caption = _caption(figure, number)
                lines += [f"![{caption}](data/{figure['id']}-{number + 1}.svg)", ""]
            lines += ["| statement | verdict | measured |", "| --- | --- | --- |"]
            for row in figure["statements"]:
                why = f" {row['why']}" if row["why"] else ""
                verdict = f"{VERDICTS[row['holds']]}.{why}"
                lines.append(f"| {row['text']} | {verdict} | {row['measured']} |")
            lines += ["", f"Data: [data/{figure['id']}.csv](data/{figure['id']}.csv)", ""]
    return "\n".join(lines)


def _papers(figures: Sequence[Mapping[str, Any]]) -> list[str]:
    present = {figure["paper"] for figure in figures}
    return [paper for paper in TITLES if paper in present]


def _of_paper(paper: str, figures: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [figure for figure in figures if figure["paper"] == paper]


def _caption(figure: Mapping[str, Any], number: int) -> str:
    return str(figure["settings"]["panels"][number]["title"])


def _count_sentence(figures: Sequence[Mapping[str, Any]]) -> str:
    numbers = counts(figures)
    return (
        f"{len(figures)} figures, {sum(numbers.values())} statements: {numbers['yes']} hold in"
        f" every seed, {numbers['partly']} only in the mean, {numbers['no']} do not hold."
    )


def _engines(figures: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence about what is simulated."""
    if any(panel["engine"] == "spark" for figure in figures for panel in figure["panels"]):
        return "What is “on Spark” was measured on one machine; all else is simulated."
    return "Every figure is simulated."


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{chart.style()}{STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def _first_page(figures: Sequence[Mapping[str, Any]]) -> str:
    body = ["<h1>The papers' figures, reproduced</h1>", f"<p>{_count_sentence(figures)}</p>"]
    body.append(
        f'<p class="soft">A statement holds if it holds in every seed. {_engines(figures)}'
        " Curves are means over seeds, and bands or whiskers reach from the least to the most."
        ' <a href="report.json">report.json</a> and <a href="report.md">report.md</a> have the'
        " same data.</p>"
    )
    for paper in _papers(figures):
        body.append(f'<h2><a href="{paper}.html">{escape(TITLES[paper])}</a></h2>')
        body.append('<table class="list"><tr><th>figure</th><th>what</th><th>statements</th></tr>')
        for figure in _of_paper(paper, figures):
            verdicts = ", ".join(
                f'<span class="{verdict} verdict">{number} {VERDICTS[verdict]}</span>'
                for verdict in VERDICTS
                if (number := sum(row["holds"] == verdict for row in figure["statements"]))
            )
            body.append(
                f'<tr><td><a href="{paper}.html#{figure["id"]}">{figure["id"]}</a></td>'
                f"<td>{escape(figure['settings']['title'])}</td><td>{verdicts}</td></tr>"
            )
        body.append("</table><br>")
    return _page("The papers' figures, reproduced", "".join(body))


def _paper_page(paper: str, figures: Sequence[Mapping[str, Any]]) -> str:
    body = [f"<h1>{escape(TITLES[paper])}</h1>", '<p><a href="index.html">All papers</a></p>']
    for figure in _of_paper(paper, figures):
        body.extend(_section(figure))
    return _page(TITLES[paper], "".join(body))


def _section(figure: Mapping[str, Any]) -> Iterator[str]:
    settings = figure["settings"]
    yield f'<section id="{figure["id"]}"><h2>{figure["id"]}: {escape(settings["title"])}</h2>'
    if settings["note"]:
        yield f"<p>{escape(settings['note'])}</p>"
    yield '<div class="charts">'
    for number, panel in enumerate(figure["panels"]):
        caption = _caption(figure, number)
        yield f"<figure><figcaption>{escape(caption)}</figcaption>"
        yield f"{chart.svg(panel, title=caption)}</figure>"
    yield "</div><table><tr><th>the paper's statement</th><th>here</th><th>measured</th></tr>"
    for row in figure["statements"]:
        why = f'<div class="soft">{escape(row["why"])}</div>' if row["why"] else ""
        verdict = f'<span class="{row["holds"]} verdict">{VERDICTS[row["holds"]]}</span>{why}'
        yield f"<tr><td>{escape(row['text'])}</td><td>{verdict}</td>"
        yield f'<td class="soft">{escape(row["measured"])}</td></tr>'
    yield "</table><details><summary>Setting</summary><pre>"
    yield escape(json.dumps(settings["panels"], ensure_ascii=False, indent=1))
    command, seeds = escape(figure["command"]), len(figure["seeds"])
    yield f'</pre></details><p class="soft"><code>{command}</code> · {seeds} seeds'
    yield f' · <a href="data/{figure["id"]}.csv">data as CSV</a></p></section>'
