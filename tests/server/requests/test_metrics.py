"""The metrics of a run, as Prometheus reads them."""

import re
import shutil
import subprocess
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from kit.control import row
from kit.waiting import until
from prometheus_client.parser import text_string_to_metric_families

from headgate import Headgate
from headgate.metrics.histogram import BOUNDS_S
from headgate.server import Client, Control
from headgate.server.prometheus import RunCollector, exposition

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def scraped(gate: Headgate) -> dict[tuple[str, str], float]:
    """Return the values at /metrics by name and labels, as Prometheus's own parser reads them."""
    control = Control.read(gate.state)
    header = {"Authorization": f"Bearer {control.read_token}"}
    with urlopen(Request(f"{control.address}/metrics", headers=header)) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=")
        text = response.read().decode()
    values = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            bound = [sample.labels.pop("le")] if "le" in sample.labels else []
            values[sample.name, ",".join([*sample.labels.values(), *bound])] = sample.value
    return values


def test_prometheus_reads_the_figures_of_queries_classes_and_the_run(
    gate: Headgate, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(lambda: row(client, "hot")["since_start"]["results"])
    before, values, after = client.report(), scraped(gate), client.report()

    def lies_between(value: float, lines: str, name: str, figure: str) -> bool:
        ends = [
            next(line for line in report[lines] if line["name"] == name)["response_s"][figure]
            for report in (before, after)
        ]
        return bool(ends[0] <= value <= ends[1])

    for prefix, lines, name, labels in (
        ("query", "queries", "hot", "H,hot"), ("class", "classes", "H", "H"),
    ):  # fmt: skip
        series = f"headgate_{prefix}_response_seconds"
        assert lies_between(values[f"{series}_count", labels], lines, name, "count")
        assert lies_between(
            values[f"headgate_{prefix}_results_total", labels], lines, name, "count"
        )
        buckets = [
            value for key, value in values.items()
            if key[0] == f"{series}_bucket" and key[1].rpartition(",")[0] == labels
        ]  # fmt: skip
        assert len(buckets) == len(BOUNDS_S) + 1
        assert buckets == sorted(buckets)
        assert buckets[-1] == values[f"{series}_count", labels]
        assert values[f"{series}_sum", labels] > 0
    assert values["headgate_policy_info", "cqc,cqc"] == 1
    assert values["headgate_workers", ""] == 2
    assert 0 <= values["headgate_budget_used_ratio", "log"] < 1
    for part in ("scheduler", "storage", "call", "call_overhead"):
        assert values[f"headgate_{part}_seconds_total", ""] > 0
    assert values["headgate_class_failed", "H"] == values["headgate_query_failed", "H,hot"] == 0
    few = gate.settings.model_copy(update={"metrics_queries": 1})
    monkeypatch.setattr(Headgate, "settings", few)
    values = scraped(gate)
    named = {labels for name, labels in values if name == "headgate_query_results_total"}
    assert named == {"H,all", "H,other"}
    assert values["headgate_query_results_total", "H,other"] > 0


def test_alerts_and_dashboard_use_metrics_that_exist(gate: Headgate) -> None:
    folder = Path(__file__).parents[3] / "examples/monitoring"
    text = exposition(RunCollector(gate)).decode()
    names = {"up"}
    for family in text_string_to_metric_families(text):
        suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
        names |= {family.name + suffix for suffix in suffixes.get(family.type, [""])}
    used = set[str]()
    for file in ("alerts.yml", "grafana.json"):
        used |= set(re.findall(r"\bheadgate_\w+", (folder / file).read_text()))
    assert used
    assert used - names == set()
    page = (folder.parents[1] / "docs/operate.md").read_text()
    assert set(re.findall(r"\bheadgate_\w+", page)) - names - {
        "headgate_class_response_seconds", "headgate_query_response_seconds",
    } == set()  # fmt: skip
    if (promtool := shutil.which("promtool")) is not None:  # of Debian's package prometheus
        subprocess.run([promtool, "check", "rules", folder / "alerts.yml"], check=True)
        config = [promtool, "check", "config", "--syntax-only", folder / "prometheus.yml"]
        subprocess.run(config, check=True)
        subprocess.run([promtool, "check", "metrics"], input=text.encode(), check=True)
