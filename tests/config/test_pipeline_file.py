"""What a pipeline file says arrives in the run."""

from inspect import signature
from pathlib import Path

import yaml
from kit.pipeline_files import GOOD, changed, read

from headgate import Headgate
from headgate.config import Pipeline, read_pipeline
from headgate.model.query import QueryStatistics, Sink
from headgate.model.settings import Settings
from headgate.runtime.pipeline import policy_of
from headgate.workloads.arrivals import Bursts


def test_short_forms_name_a_policy_and_a_format(tmp_path: Path) -> None:
    pipeline = read(tmp_path, {**changed("queries.hot.sink", "json"), "policy": "cqc(inner=hr)"})
    assert pipeline.query_models()[0].sink == Sink(format="json")
    assert policy_of(pipeline).spelled == "cqc(inner=hr)"
    assert policy_of(read(tmp_path, changed("policy", "hnr"))).name == "hnr"


def test_a_good_file_becomes_streams_queries_and_defaults(tmp_path: Path) -> None:
    pipeline = read(tmp_path, GOOD)
    stream, query = pipeline.stream_models()[0], pipeline.query_models()[0]
    assert (stream.name, stream.format, stream.options) == (
        "sensors",
        "rate",
        {"rowsPerSecond": "5"},
    )
    assert (query.name, query.query_class, query.weight) == ("hot", "H", 1.0)
    assert query.sink == Sink(format="parquet", path="")
    assert (pipeline.policy.name, pipeline.workers, pipeline.train_tuples) == ("cqc", 2, None)


def test_every_key_of_a_query_arrives(tmp_path: Path) -> None:
    text = """
state: s
classes: {H: 1}
streams:
  sensors: {format: json, schema: "a INT", options: {multiLine: true}, event_time: ts, trigger_s: 1,
            late_path: out/late}
queries:
  hot:
    sql: SELECT a FROM sensors
    class: H
    weight: 0
    deadline_s: 2.5
    sink: {format: json, path: /tmp/hot, options: {ignoreNullFields: false}, commit_every_s: 5,
           target_file_mb: 0.5, compact: true}
    statistics: {cost_s: 0.001, selectivity: 0.5, overhead_s: 0.1}
"""
    pipeline = read(tmp_path, text)
    query, stream = pipeline.query_models()[0], pipeline.stream_models()[0]
    assert (query.weight, query.deadline_s) == (0, 2.5)
    options = {"ignoreNullFields": "false"}
    assert query.sink == Sink(
        format="json", path="/tmp/hot", options=options, commit_every_s=5, target_file_mb=0.5,
        compact=True,
    )  # fmt: skip
    assert query.statistics == QueryStatistics(cost_s=0.001, selectivity=0.5, overhead_s=0.1)
    assert (stream.schema, stream.event_time, stream.trigger_s) == ("a INT", "ts", 1)
    assert stream.options == {"multiLine": "true"}
    assert stream.late_path == "out/late"


def test_the_settings_are_keywords_of_a_headgate_and_keys_of_a_file() -> None:
    keywords, keys = signature(Headgate).parameters, Pipeline.model_fields
    for name, field in Settings.model_fields.items():
        assert keywords[name].default == keys[name].default == field.default
        assert f"{name}: {field.description}" in (Headgate.__init__.__doc__ or "")


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(changed("workers", 3)))
    environment = {"HEADGATE_WORKERS": "4", "HEADGATE_MOST_FUSED": "7", "HOME": "/root"}
    assert read_pipeline(file).workers == 3
    assert read_pipeline(file, environment).workers == 4
    pipeline = read_pipeline(file, environment, workers=5)
    assert (pipeline.workers, pipeline.most_fused) == (5, 7)
    assert pipeline.origins["workers"] == "flag"
    assert pipeline.origins["most_fused"] == "HEADGATE_MOST_FUSED"
    assert pipeline.origins["state"] == str(file)
    assert "retention_s" not in pipeline.origins


def test_arrivals_of_a_simulation_are_the_files_else_the_generators(tmp_path: Path) -> None:
    from_file = read(tmp_path, changed("streams.sensors.arrivals", {"rate_per_s": 7}))
    assert from_file.arrivals_of("sensors") == Bursts(rate_per_s=7)
    options = {"rate_per_s": 1500, "burst_factor": 8, "burst_for_s": 3, "seed": 1}
    pipeline = read(
        tmp_path, changed("streams.sensors", {"format": "headgate", "options": options})
    )
    assert pipeline.arrivals_of("sensors") == Bursts(rate_per_s=1500, burst_factor=8, burst_for_s=3)


def test_every_key_but_the_name_is_a_parameter_of_the_policy(tmp_path: Path) -> None:
    pipeline = read(tmp_path, changed("policy", {"name": "cqc", "inner": "hnr", "period_s": 2}))
    assert pipeline.policy.parameters == {"inner": "hnr", "period_s": 2}
    assert policy_of(pipeline).name == "cqc"
    assert policy_of(pipeline, "hr").name == "hr"


def test_the_example_is_a_good_file() -> None:
    example = Path(__file__).parents[2] / "examples" / "forest.yaml"
    pipeline = read_pipeline(example)
    assert len(pipeline.query_models()) == 24
    assert set(pipeline.classes) == {query.query_class for query in pipeline.query_models()}
    assert policy_of(pipeline).name == "cqc"
    assert pipeline.arrivals_of("sensors").rate_per_s == 3000
