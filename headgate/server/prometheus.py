"""The figures of a run in the text format of Prometheus."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from headgate.metrics.histogram import BOUNDS_S, Histogram
from headgate.metrics.report import Report
from headgate.runtime import Headgate

REST = "other"
"""The label of the queries of a class that have no series of their own."""

COUNTERS = {
    "results": "Results of this run",
    "tuples": "Tuples taken in this run",
    "shed": "Tuples shed in overload",
    "late": "Tuples that came too late for their windows",
    "dead_letters": "Records that could not be parsed",
}
GAUGES = {
    "pending_tuples": "Tuples that wait",
    "oldest_waiting_seconds": "Age of the oldest tuple that waits",
    "failed": "Queries that have failed",
}
MEASURES = {
    "qos": ("qos", "Mean utility of the results that were due, from 0 to 1"),
    "staleness": ("staleness", "Share of the time in which an output was stale"),
    "tardiness_s": ("tardiness_seconds", "Mean tardiness of the results of windows"),
}
Values = dict[str, float]


def exposition(collector: Collector) -> bytes:
    """Return all metrics in the text format of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry)


class Sums:
    """Sums of counters that never fall, though queries leave the group that is summed.

    >>> sums = Sums()
    >>> sums.add("H", "fire", np.array([3.0])).tolist()
    [3.0]
    >>> sums.add("H", "smoke", np.array([5.0])).tolist()
    [8.0]
    >>> sums.add("N", "smoke", np.array([6.0])).tolist(), sums.of("H").tolist()
    ([1.0], [8.0])
    """

    def __init__(self) -> None:
        self._last: dict[str, Any] = {}
        self._sums: dict[object, Any] = {}

    def add(self, group: object, name: str, values: Any) -> Any:
        """Add what a member has counted since it was last added anywhere; return the sum.

        One that has counted less than before is a new one of the same name.
        """
        last = self._last.get(name)
        fell = last is None or bool((values < last).any())
        self._sums[group] = self._sums.get(group, 0.0) + (values if fell else values - last)
        self._last[name] = values
        return self._sums[group]

    def of(self, group: object) -> Any:
        """Return the sum of a group; 0 of one that has had no members."""
        return self._sums.get(group, 0.0)


class RunCollector(Collector):
    """The metrics of one run. What it sums over queries is kept from one scrape to the next."""

    def __init__(self, gate: Headgate) -> None:
        self._gate, self._lock = gate, threading.Lock()
        self._class_sums, self._rest_sums = Sums(), Sums()

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics; before the first tuple only whether the run is ready and healthy."""
        gate = self._gate
        for name, value in gate.health().items():
            yield _one(f"headgate_{name}", f"Health of the run: {name.replace('_', ' ')}", value)
        if not gate.running:
            return
        with self._lock:
            overview, report = gate.overview(), gate.report()
            by_query, by_class = gate.responses()
            yield from _run_metrics(overview, report)
            yield from self._class_metrics(overview, report, by_class)
            yield from self._query_metrics(overview, by_query)

    def _class_metrics(
        self, overview: Mapping[str, Any], report: Report, responses: Mapping[str, Histogram]
    ) -> Iterator[Metric]:
        lines = {line.name: line for line in report.classes}
        for name, row in overview["queries"].items():
            self._class_sums.add(row["class"], name, _lost(row))
        rows: dict[tuple[str, ...], Values] = {}
        histograms: dict[tuple[str, ...], Histogram] = {}
        for name, row in overview["classes"].items():
            line, histograms[(name,)] = lines[name], responses[name]
            lost = (np.zeros(3) + self._class_sums.of(name)).tolist()
            members = [query for query in overview["queries"].values() if query["class"] == name]
            rows[(name,)] = {
                "results": line.response_s.count, "tuples": line.tuples_in,
                **dict(zip(("shed", "late", "dead_letters"), lost, strict=True)),
                "pending_tuples": row["waiting"], "oldest_waiting_seconds": _oldest(members),
                "failed": row["failed"], **_measures(row),
            }  # fmt: skip
        yield from _families("headgate_class", ["class"], rows, histograms)

    def _query_metrics(
        self, overview: Mapping[str, Any], by_query: Mapping[str, Histogram]
    ) -> Iterator[Metric]:
        queries = overview["queries"]
        ranks = {name: rank for rank, name in enumerate(overview["classes"])}
        names = sorted(queries, key=lambda name: (ranks[queries[name]["class"]], name))
        chosen = [name for name in names if name != REST][: self._gate.settings.metrics_queries]
        rows: dict[tuple[str, ...], Values] = {}
        histograms: dict[tuple[str, ...], Histogram] = {}
        empty = Histogram(np.zeros(len(BOUNDS_S), dtype=np.int64), 0, 0.0)
        for name in chosen:
            row, labels = queries[name], (queries[name]["class"], name)
            histograms[labels] = by_query.get(name, empty)
            shed, late, dead_letters = _lost(row).tolist()
            rows[labels] = {
                "results": histograms[labels].count, "tuples": _taken(row),
                "shed": shed, "late": late, "dead_letters": dead_letters,
                **_gauges([row]), **_measures(row["measures"]),
            }  # fmt: skip
        rest = [name for name in names if name not in set(chosen)]
        for query_class in dict.fromkeys(queries[name]["class"] for name in rest):
            members = [name for name in rest if queries[name]["class"] == query_class]
            labels = query_class, REST
            for name in members:
                histogram = by_query.get(name, empty)
                counts = (histogram.count, histogram.total, _taken(queries[name]))
                values = np.concatenate([histogram.below, counts, _lost(queries[name])])
                self._rest_sums.add(query_class, name, values)
            *below, count, total, tuples, shed, late, dead_letters = self._rest_sums.of(
                query_class
            ).tolist()
            histograms[labels] = Histogram(np.array(below), int(count), total)
            rows[labels] = {
                "results": count, "tuples": tuples, "shed": shed, "late": late,
                "dead_letters": dead_letters, **_gauges([queries[name] for name in members]),
            }  # fmt: skip
        yield from _families("headgate_query", ["class", "query"], rows, histograms)


def _run_metrics(overview: Mapping[str, Any], report: Report) -> Iterator[Metric]:
    """Yield the metrics that a run has once."""
    yield _one("headgate_run_seconds", "Seconds since the first tuple", overview["seconds"])
    yield _one("headgate_workers", "Workers", overview["workers"])
    yield _one("headgate_workers_busy", "Workers with a call under way", overview["busy"])
    yield _count("headgate_calls", "Box calls", report.calls)
    yield _count("headgate_failures", "Failures of queries and streams", len(report.errors))
    texts = {
        "scheduler": "that the scheduler spent on events and decisions",
        "storage": "in which trains and results were written and journalled, by all threads",
        "calls": "of workers that box calls took regardless of their number of tuples",
        "busy": "of workers that box calls took",
    }
    names = {"calls": "call_overhead", "busy": "call"}
    for key, seconds in overview["overhead_s"].items():
        yield _count(f"headgate_{names.get(key, key)}_seconds", f"Seconds {texts[key]}", seconds)
    budgets = GaugeMetricFamily(
        "headgate_budget_used_ratio", "Share of a budget that is in use", labels=["budget"]
    )
    for name, share in overview["used"].items():
        budgets.add_metric([name], share)
    yield budgets
    policy = GaugeMetricFamily(
        "headgate_policy_info", "The policy that was set, and the one that decides",
        labels=["policy", "deciding"],
    )  # fmt: skip
    policy.add_metric([overview["policy"].partition(", ")[0], overview["deciding"]], 1)
    yield policy
    letters = CounterMetricFamily(
        "headgate_stream_dead_letters", "Records that could not be parsed", labels=["stream"]
    )
    for stream in overview["streams"]:
        letters.add_metric([stream], overview["dead_letters"].get(stream, 0))
    yield letters
    troubles = GaugeMetricFamily(
        "headgate_stream_trouble", "1 while a stream does not deliver", labels=["stream", "state"]
    )
    for trouble in overview["troubles"]:
        troubles.add_metric([trouble["stream"], trouble["state"]], 1)
    yield troubles
    lags = GaugeMetricFamily(
        "headgate_stream_lag_seconds", "How far a stream lags behind its source", labels=["stream"]
    )
    for stream in overview["streams"]:
        lags.add_metric([stream], overview["lags"].get(stream, {}).get("behind_s", 0.0))
    yield lags


def _families(
    prefix: str,
    labels: list[str],
    rows: Mapping[tuple[str, ...], Values],
    histograms: Mapping[tuple[str, ...], Histogram],
) -> Iterator[Metric]:
    """Yield one family per metric, with a series for each row that has it."""
    response = HistogramMetricFamily(
        f"{prefix}_response_seconds", "Response time of results of this run", labels=labels
    )
    for names, histogram in histograms.items():
        bounds = [*map(str, BOUNDS_S), "+Inf"]
        counts = [*histogram.below.tolist(), histogram.count]
        response.add_metric(names, list(zip(bounds, counts, strict=True)), histogram.total)
    yield response
    kinds: Iterable[tuple[Callable[..., Any], Mapping[str, str]]] = (
        (CounterMetricFamily, COUNTERS),
        (GaugeMetricFamily, GAUGES | dict(MEASURES.values())),
    )
    for kind, texts in kinds:
        for name, text in texts.items():
            family = kind(f"{prefix}_{name}", text, labels=labels)
            for names, row in rows.items():
                if name in row:
                    family.add_metric(names, row[name])
            yield family


def _lost(row: Mapping[str, Any]) -> Any:
    """Return how many tuples a query has not computed: shed, late, dead letters."""
    return np.array([row["shed"], row["late"], row["dead_lettered"]], dtype=np.float64)


def _taken(row: Mapping[str, Any]) -> float:
    """Return how many tuples a query has taken in this run."""
    return float(row["tuples_since_start"])


def _gauges(rows: list[Mapping[str, Any]]) -> Values:
    return {
        "pending_tuples": sum(row["waiting"] for row in rows),
        "oldest_waiting_seconds": _oldest(rows),
        "failed": sum(row["state"] == "FAILED" for row in rows),
    }


def _oldest(rows: Iterable[Mapping[str, Any]]) -> float:
    return max((row["oldest_waiting_s"] or 0.0 for row in rows), default=0.0)


def _measures(figures: Mapping[str, float | None]) -> Values:
    """Return the figures that apply, by the names of their metrics."""
    return {
        name: float(value)
        for key, (name, _) in MEASURES.items()
        if (value := figures.get(key)) is not None
    }


def _one(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=float(value))


def _count(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=float(value))
