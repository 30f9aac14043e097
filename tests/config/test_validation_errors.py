"""Mistakes in a pipeline file: each is answered with file, key and what was expected."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.pipeline_files import GOOD, changed, read, refusal

from headgate import Headgate
from headgate.config import read_pipeline
from headgate.errors import ConfigRefused, HeadgateError
from headgate.runtime.pipeline import policy_of

BOMB = "".join(f"{key}: &{key} [{'x' if key == 'a' else '*' + chr(ord(key) - 1)}" + (
    f", {'x' if key == 'a' else '*' + chr(ord(key) - 1)}" * 8 + "]\n"
) for key in "abcdefghi") + "classes: *i\n"  # fmt: skip
"""Nine lines, each a list of nine aliases of the line above."""


def test_all_mistakes_of_a_file_are_answered_at_once_each_with_its_line(tmp_path: Path) -> None:
    text = """state: s
wokers: 3
classes: {H: 6, N: 1}
streams:
  sensors: &sensors
    fromat: rate
    lateness_s: 5s
  copy:
    <<: *sensors
queries:
  hot: {class: H, sql: SELECT 1}
  dry: {class: X, sql: SELECT 1, sink: {format: cvs, folder: out}}
  wet:
    clas: H
    qos: [[0, 1], [2, x]]
  hot: {class: H, sql: SELECT 1, weight: heavy}
"""
    # Other tests have registered sinks of their own.
    answer = re.sub(r"(kafka, stream)[a-z_, ]*;", r"\1;", refusal(tmp_path, text))
    assert answer.splitlines() == [
        "line 2: unknown key 'wokers'; did you mean 'workers'?",
        "line 6: streams.sensors: unknown key 'fromat'; did you mean 'format'?",
        "line 6: streams.copy: unknown key 'fromat'; did you mean 'format'?",
        'line 7: streams.sensors.lateness_s: expected a number of seconds, got "5s"',
        'line 7: streams.copy.lateness_s: expected a number of seconds, got "5s"',
        "line 12: queries.dry.sink: unknown key 'folder'; write `options: {folder: ...}` for an"
        " option of the format, or use one of commit_every_s, compact, format, options,"
        " partition_by, path, target_file_mb",
        "line 12: queries.dry.class is 'X', but must be one of H, N.",
        "line 12: queries.dry.sink.format is 'cvs', but must be one of parquet, json, csv, console,"
        " memory, callback, jdbc, kafka, stream; did you mean 'csv'?",
        "line 13: queries.wet.sql must be given: it has no default.",
        "line 14: queries.wet: unknown key 'clas'; did you mean 'class'?",
        'line 15: queries.wet.qos.1.1: expected a number, got "x"',
        "line 16: queries.hot must be given once: it is also in line 11.",
        'line 16: queries.hot.weight: expected a number, got "heavy"',
    ]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"wokers": 3}, "headgate: unknown key 'wokers'; did you mean 'workers'?"),
        ({"clases": {}}, "headgate: unknown key 'clases'; did you mean 'classes'?"),
        ({"memory_bytes": 0}, "headgate: memory_bytes is 0, but must be above 0 bytes."),
        ({"workers": 0}, "headgate: workers is 0, but must be greater than or equal to 1."),
        ({"lane": "fast"}, "headgate: lane is 'fast', but must be 'driver' or 'job'."),
        ({"workers": "two"}, 'headgate: workers: expected a whole number, got "two"'),
    ],
)
def test_a_wrong_keyword_is_answered_before_spark_starts(
    keywords: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigRefused) as refused:
        Headgate(state=tmp_path, **keywords)
    assert str(refused.value) == message


def test_a_mistake_in_the_environment_is_answered_with_its_variable(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(GOOD))
    with pytest.raises(
        ConfigRefused, match=r'HEADGATE_WORKERS: expected a whole number, got "many"'
    ):
        read_pipeline(file, {"HEADGATE_WORKERS": "many"})
    with pytest.raises(ConfigRefused, match=r'the command line: --workers: .*"none"'):
        read_pipeline(file, {"HEADGATE_WORKERS": "4"}, workers="none")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("polcy", 1, "unknown key 'polcy'; did you mean 'policy'?"),
        ("queries.hot.clas", "H", "queries.hot: unknown key 'clas'; did you mean 'class'?"),
        ("streams.sensors.fromat", 1, "streams.sensors: unknown key 'fromat'; did you mean"),
        (
            "queries.hot.sink",
            {"folder": "x"},
            "queries.hot.sink: unknown key 'folder'; write `options: {folder: ...}` for an",
        ),
        (
            "streams.sensors.late_path",
            "late",
            "streams.sensors must be a mapping with event_time beside late_path",
        ),
        ("streams.sensors.late_path", "", "streams.sensors.late_path is '', but must"),
        ("streams.sensors.late_path", 7, "streams.sensors.late_path: expected a text, got 7"),
        ("state", ..., "state must be given: it has no default."),
        ("streams", ..., "streams must be given: it has no default."),
        ("queries.hot.sql", ..., "queries.hot.sql must be given: it has no default."),
        ("queries.hot.class", ..., "queries.hot.class must be given: it has no default."),
        ("streams.sensors.format", ..., "streams.sensors.format must be given"),
        ("workers", "many", 'workers: expected a whole number, got "many"'),
        ("retention_s", "5s", 'retention_s: expected a number of seconds, got "5s"'),
        ("record", "maybe", 'record: expected true or false, got "maybe"'),
        ("workers", 0, "workers is 0, but must be greater than or equal to 1."),
        ("train_tuples", 0, "train_tuples is 0, but must be greater than or equal to 1."),
        ("most_fused", 1.5, "most_fused: expected a whole number, got 1.5"),
        ("retention_s", -1, "retention_s is -1, but must be greater than or equal to 0."),
        ("queries", {}, "queries is {}, but must"),
        ("queries", None, "queries: expected a mapping, got nothing"),
        ("queries", ["a"], "queries: expected a mapping, got a list"),
        ("classes", {}, "classes is {}, but must"),
        ("queries.hot.weight", -1, "queries.hot.weight is -1, but must be greater than or equal"),
        (
            "queries.hot.weight",
            float("nan"),
            "queries.hot.weight: expected a finite number, got nan",
        ),
        (
            "queries.hot.weight",
            "1e999",
            'queries.hot.weight: expected a finite number, got "1e999"',
        ),
        ("state", "a\0b", "state is 'a\\x00b', but must be a path without NUL"),
        ("queries.hot.deadline_s", 0, "queries.hot.deadline_s is 0, but must be above 0 seconds."),
        (
            "queries.hot.sink",
            {"format": "cvs"},
            "queries.hot.sink.format is 'cvs', but must be one of parquet, json, csv, console,"
            " memory, callback, jdbc, kafka, stream",
        ),
        (
            "queries.hot.sink",
            {"format": "jdbc", "options": {"url": "jdbc:derby:memory:x", "password": "secret"}},
            "queries.hot.sink.options.table must be given for format 'jdbc', as in  options: {",
        ),
        (
            "queries.hot.sink",
            {"format": "memory", "options": {"rows": 0}},
            "queries.hot.sink.options.rows is '0', but must be a number of rows, 1 or more.",
        ),
        (
            "queries.hot.sink",
            {"format": "kafka", "path": "out"},
            "queries.hot.sink.path is 'out', but must be left out: format 'kafka' has no directory",
        ),
        (
            "queries.hot.sink",
            {"commit_every_s": 0},
            "queries.hot.sink.commit_every_s is 0, but must be above 0 seconds.",
        ),
        (
            "queries.hot.sink",
            {"commit_every_s": "5s"},
            'queries.hot.sink.commit_every_s: expected a number of seconds, got "5s"',
        ),
        (
            "queries.hot.sink",
            {"format": "memory", "compact": True},
            "queries.hot.sink.compact is True, but must be left out: format 'memory' writes no"
            " files.",
        ),
        (
            "queries.hot.sink",
            {"format": "csv", "partition_by": ["a"]},
            "queries.hot.sink.partition_by is ['a'], but must be left out: format 'csv' writes rows"
            " as text. Write parquet.",
        ),
        (
            "queries.hot.sink",
            {"partition_by": ["a", "A"]},
            "queries.hot.sink.partition_by is ['a', 'A'], but must be a list that names no column"
            " twice.",
        ),
        (
            "queries.hot.sink",
            {"target_file_mb": 8},
            "queries.hot.sink.target_file_mb is 8.0, but must be given together with"
            " commit_every_s, after which smaller files become visible, or with compact.",
        ),
        ("queries.hot.class", "X", "queries.hot.class is 'X', but must be one of H, N."),
        ("queries.hot.class", "X|Y", "queries.hot.class is 'X|Y', but must be one of H, N."),
        ("classes.H", 0, "classes.H is 0, but must be greater than 0."),
        ("classes.H", -1, "classes.H is -1, but must be greater than 0."),
        ("classes.H", float("inf"), "classes.H: expected a finite number, got inf"),
        ("classes.H", "high", 'classes.H: expected a number, got "high"'),
        (
            "queries.hot.statistics",
            {"cost_s": 0, "selectivity": 1},
            "queries.hot.statistics.cost_s",
        ),
        ("queries.hot.statistics", {"cost_s": 1, "selectivity": 2}, "queries.hot.statistics.sel"),
        ("streams.sensors.trigger_s", -1, "streams.sensors.trigger_s is -1, but must be"),
        ("streams.sensors.arrivals", {"rate_per_s": 0}, "streams.sensors.arrivals.rate_per_s is 0"),
        (
            "streams.sensors.arrivals",
            {"rate_per_s": 1, "burst_every_s": 5, "burst_for_s": 9},
            "streams.sensors.arrivals",
        ),
        ("queries", {"two words": {"sql": "SELECT 1", "class": "H"}}, "queries.two words"),
        ("queries.hot.sql", "  ", "queries.hot.sql"),
        ("streams", {"1st": {"format": "rate"}}, "streams.1st"),
        ("streams", {"s" * 300: {"format": "rate"}}, f"streams.{'s' * 300} is"),
        (
            "streams",
            {"s": {"format": "json", "path": "in"}},
            "streams.s: unknown key 'path'; write `options: {path: ...}` for an option of the",
        ),
        ("policy", ["cqc"], "policy: expected a mapping, got a list"),
        ("queries.hot.sink", 7, "queries.hot.sink: expected a mapping, got 7"),
        (
            "streams.sensors.options.path",
            ["a"],
            "streams.sensors.options.path: expected a text, a number, true or false, got a list",
        ),
        ("queries.hot.qos", [[0, 1], [1, 2]], "queries.hot.qos must be falling or level"),
        ("queries.hot.loss", [[0, 1], [1, 2]], "queries.hot.loss must be falling or level"),
        (
            "queries.hot.value",
            {"column": "heat", "points": [[1, 1], [0, 1]]},
            "queries.hot.value must be in strictly ascending value",
        ),
        ("classes.H", {"target_s": 1}, "classes.H.priority must be given"),
        ("classes.H", {"priority": 6, "target_s": 0}, "classes.H.target_s is 0, but must be above"),
        (
            "classes.H",
            {"priority": 6, "taget_s": 1},
            "classes.H: unknown key 'taget_s'; did you mean 'target_s'?",
        ),
    ],
)
def test_a_mistake_is_answered_with_file_key_and_what_was_expected(
    tmp_path: Path, key: str, value: object, message: str
) -> None:
    text = refusal(tmp_path, changed(key, value))
    assert re.search(rf"^(line \d+: )?{re.escape(message)}", text, re.MULTILINE), text


def test_two_queries_of_one_name_are_refused_with_the_line(tmp_path: Path) -> None:
    text = "state: s\nqueries:\n  hot: {sql: a, class: H}\n  dry: {}\n  hot: {sql: b, class: H}\n"
    message = "line 5: queries.hot must be given once: it is also in line 3."
    assert message in refusal(tmp_path, text).splitlines()


def test_two_streams_of_one_name_are_refused_as_well(tmp_path: Path) -> None:
    text = "streams:\n  s: {format: rate}\n  s: {format: rate}\n"
    assert "line 3: streams.s must be given once: it is also in line 2" in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("state: [1, 2\nqueries: {", "the file must be valid YAML: "),
        ("state: a: b", "the file must be valid YAML: mapping values are not allowed"),
        ("\tstate: a", "the file must be valid YAML: "),
        ("state: !!python/object:os.system a", "the file must be valid YAML: "),
        ("- a\n- b\n", "the file must be a mapping of keys."),
        ("", "the file must be a mapping of keys."),
        ("just words", "the file must be a mapping of keys."),
        ("state: \x00", "the file must be valid YAML"),
        ("{{ name }}: a", "the file must be valid YAML"),
        ("[a, b]: c", "the file must be valid YAML"),
        (b"state: \xff\xfe", "the file must be "),
        ({**GOOD, 1: "a"}, "1 is 1, but must be"),
        ("classes: " + "[" * 5000, "the file must be valid YAML: it has more than 50 levels"),
        ("classes: &a [*a]", "the file must be valid YAML: an alias stands inside"),
        (BOMB, "line 6: the file must be valid YAML: it has more than 500000 values"),
        ("classes: " + "9" * 5000, "the file must be valid YAML: Exceeds the limit"),
        ("classes: 2024-02-31", "the file must be valid YAML: day is out of range for month."),
    ],
)
def test_what_is_no_pipeline_file_is_refused(tmp_path: Path, text: Any, message: str) -> None:
    assert re.search(rf"^(line \d+: )?{re.escape(message)}", refusal(tmp_path, text), re.MULTILINE)


def test_a_missing_file_is_answered_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigRefused) as refused:
        read_pipeline(tmp_path / "none.yaml")
    assert str(refused.value) == (
        f"{tmp_path}/none.yaml: the file must be a readable file: no such file or directory."
    )


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigRefused, match="a readable file: is a directory"):
        read_pipeline(tmp_path)


def test_a_stream_without_arrivals_cannot_be_simulated_and_says_what_to_give(
    tmp_path: Path,
) -> None:
    with pytest.raises(
        ConfigRefused, match=r"stream 'sensors': arrivals must be given .*rate_per_s"
    ):
        read(tmp_path, GOOD).arrivals_of("sensors")


@pytest.mark.parametrize("options", [{}, {"rate_per_s": "many"}, {"rate_per_s": 0}])
def test_a_generator_without_a_usable_rate_is_refused_not_a_stack_trace(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    data = changed("streams.sensors", {"format": "headgate", "options": options})
    with pytest.raises(HeadgateError, match="rate_per_s"):
        read(tmp_path, data).arrivals_of("sensors")


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"name": "cqcc"}, "there is no policy 'cqcc'. Did you mean 'cqc'?"),
        (
            {"name": "cqc", "perod_s": 1},
            "there is no parameter 'perod_s'. Did you mean 'period_s'?",
        ),
        ({"name": "cqc", "inner": "hnrr"}, "there is no policy 'hnrr'. Did you mean 'hnr'?"),
        ({"name": "cqc", "period_s": 0}, "period_s above 0 seconds"),
    ],
)
def test_a_policy_that_cannot_be_is_answered_with_the_nearest_name(
    tmp_path: Path, policy: dict[str, Any], message: str
) -> None:
    with pytest.raises(HeadgateError) as refused:
        policy_of(read(tmp_path, changed("policy", policy)))
    assert message in str(refused.value)


def test_settings_of_spark_and_options_may_be_secret_and_are_not_shown(tmp_path: Path) -> None:
    pipeline = read(tmp_path, changed("spark.config", {"spark.password": "secret"}))
    assert "master" in str(pipeline.spark)
    assert "secret" not in f"{pipeline.spark} {pipeline!r}"
    options, stream = {"password": "secret"}, {"format": "rate", "late_path": "late"}
    for key, value in (
        ("spark.config", ["secret"]),
        ("spark.config.password", ["secret"]),
        ("spark.config.pin", 31337),
        ("streams.sensors.options.password", ["secret"]),
        ("streams.sensors", {**stream, "options": options}),
    ):
        message = refusal(tmp_path, changed(key, value))
        assert key in message
        assert "secret" not in message
        assert "31337" not in message


@pytest.mark.parametrize("value", ["0644", 0o640, "660"])
def test_permissions_are_octal_digits_or_the_number_that_yaml_reads(
    tmp_path: Path, value: object
) -> None:
    assert int(read(tmp_path, changed("file_mode", value)).file_mode, 8) in (0o644, 0o640, 0o660)
    assert refusal(tmp_path, changed("file_mode", 640)).endswith(
        "file_mode is 640, but must be permissions that let the owner read and write, as in '0600'"
        " or '0640'."
    )
