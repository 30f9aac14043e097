"""The command line as a user meets it: what it prints, where, and its exit code."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kit.commands import headgate
from kit.pipelines import ALL, SENSORS, SPARK_NOISE, STATISTICS, pipeline_file, with_statistics
from kit.terminal import Terminal
from rich.table import Table
from typer.main import get_command
from typer.testing import CliRunner

from headgate import __version__
from headgate.cli.app import app
from headgate.cli.output.tables import show
from headgate.errors import HeadgateError


def test_policies_are_listed_with_paper_and_objective() -> None:
    result = CliRunner().invoke(app, ["policies", "--json"])
    listed = {entry["name"]: entry for entry in json.loads(result.stdout)}
    assert {"rr", "fcfs", "hr", "hnr", "bsd", "cqc"} <= set(listed)
    assert listed["hnr"]["paper"] == "Sharaf eq 3.4"
    assert listed["hnr"]["objective"] == "mean slowdown"


def test_a_policy_is_explained_with_its_rule() -> None:
    result = CliRunner().invoke(app, ["policies", "hnr"])
    assert "S / (C̄ T)" in result.stdout


@pytest.mark.parametrize(
    "text", ["mean slowdown", "Sharaf eq 3.4", "use it when:", "not when:", "levels:", "engines:"]
)
def test_a_policy_is_explained_with_paper_levels_and_when_to_use_it(text: str) -> None:
    assert text in CliRunner().invoke(app, ["policies", "hnr"]).stdout


def test_another_name_of_a_policy_is_explained_too() -> None:
    assert "also called:  fifo" in CliRunner().invoke(app, ["policies", "fifo"]).stdout


def test_testbeds_are_listed_with_variants_options_and_defaults() -> None:
    printed = CliRunner().invoke(app, ["testbeds", "cqc"]).stdout
    assert "--workload A|B|C (default A), operator level" in printed
    assert "--load 0.95" in printed
    listed = json.loads(CliRunner().invoke(app, ["testbeds", "--json"]).stdout)
    assert [testbed["name"] for testbed in listed] == ["sharaf", "aurora", "cqc", "amos", "bz"]


def test_a_testbed_is_simulated_with_options_of_its_own() -> None:
    words = ["simulate", "--testbed", "sharaf", "--queries", "7", "--tuples=90", "--by-class"]
    result = CliRunner().invoke(app, [*words, "--policy", "hr,bsd(search=log)", "--json"])
    reports = json.loads(result.stdout)
    assert [report["policy"] for report in reports] == ["hr", "bsd(search=log)"]
    assert reports[0]["total"]["tuples_in"] == 7 * 90
    assert len(reports[0]["classes"]) > 1


def test_settings_of_the_run_change_it() -> None:
    words = ["simulate", "--testbed", "aurora", "--depth", "2", "--tuples", "300", "--json"]
    usual, *changed = (
        json.loads(CliRunner().invoke(app, [*words, *more]).stdout)[0]
        for more in ([], ["--overhead-s", "0.001"], ["--level", "query"], ["--workers", "2"])
    )
    assert usual["overhead_s"] == 0
    assert changed[0]["overhead_s"] == pytest.approx(0.001 * usual["box_calls"])
    assert changed[1]["decisions"] < usual["decisions"]
    assert changed[2]["utilisation"] < usual["utilisation"]


def test_measures_are_rows_and_policies_columns_within_100_columns(tmp_path: Path) -> None:
    words = ["simulate", "--testbed", "cqc", "--tuples", "30", "--overhead-s", "0.00001"]
    many = "hr,rr,bsd(search=log,clusters=12),cqc(inner=hnr),fcfs,mtiq,lsf"
    printed = CliRunner().invoke(app, [*words, "--policy", many]).stdout
    assert all(len(line) <= 100 for line in printed.splitlines())
    for row in (
        "response, mean (s)", "slowdown, ℓ2 norm", "queue size, mean (bytes)", "staleness",
        "tardiness, mean (s)", "overhead of box calls (s)", "memory, maximum (tuples)",
        "utilisation", "H: response, 95 % (s)",
    ):  # fmt: skip
        assert row in printed
    assert "QoS" not in printed  # no query has a graph
    assert "overhead of decisions" not in printed  # no policy has any


def test_policies_are_compared_and_the_winner_is_named(tmp_path: Path) -> None:
    words = ["compare", "--testbed", "sharaf", "--queries", "10", "--tuples", "100", "--seeds", "2"]
    words += ["--objective", "mean_response", "--policy", "rr,hr"]
    printed = CliRunner().invoke(app, words).stdout
    assert "hr is best; next is rr" in printed
    assert "of 2 seeds; the ranges of the two over seeds" in " ".join(printed.split())
    page = tmp_path / "page.html"
    comparison = json.loads(CliRunner().invoke(app, [*words, "--json", "--plot", str(page)]).stdout)
    assert [standing["policy"] for standing in comparison["standings"]] == ["hr", "rr"]
    assert len(comparison["standings"][0]["values"]) == 2
    assert "hr is best" in page.read_text()


def test_recorded_arrivals_take_the_place_of_a_streams_own(tmp_path: Path) -> None:
    file = tmp_path / "trace.parquet"
    pq.write_table(pa.table({"ts": [0.0, 1.0, 1.5, 4.0]}), file)
    words = ["simulate", "--testbed", "sharaf", "--queries", "3", "--trace", str(file), "--json"]
    report = json.loads(CliRunner().invoke(app, words).stdout)[0]
    assert report["total"]["tuples_in"] == 3 * 4
    assert report["seconds"] == pytest.approx(4.0, abs=1.5)


def test_a_policy_of_the_users_own_module_is_known_by_name(tmp_path: Path) -> None:
    module = tmp_path / "own_policies.py"
    module.write_text(
        "import headgate as hg\n\n@hg.priority('dearest', changes='never')\n"
        "def dearest(unit, now_s):\n    return unit.ideal_s\n"
    )
    words = ["simulate", "--testbed", "sharaf", "--queries", "3", "--tuples", "20", "--json"]
    done = headgate(*words, "--policy", "dearest", "--module", str(module))
    assert json.loads(done.stdout)[0]["policy"] == "dearest", done.stderr
    assert done.stderr == ""  # no progress bar outside a terminal


def test_a_pipeline_is_simulated_at_the_costs_of_the_file(tmp_path: Path) -> None:
    file = pipeline_file(tmp_path, queries=with_statistics())
    words = ["simulate", file, "--policy", "hr,cqc", "--seconds", "5", "--json"]
    reports = json.loads(CliRunner().invoke(app, words).stdout)
    assert [report["policy"] for report in reports] == ["hr", "cqc"]
    assert reports[0]["total"]["tuples_in"] == 2 * 5 * 200


def test_a_simulation_uses_what_a_run_has_recorded(tmp_path: Path) -> None:
    file = pipeline_file(tmp_path, queries=with_statistics())
    words = ["simulate", file, "--seconds", "5", "--json"]
    slow = {name: {**STATISTICS, "overhead_s": 0.5} for name in ("hot", "all")}
    quick_mean = json.loads(CliRunner().invoke(app, words).stdout)[0]["total"]["response_s"]["mean"]
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "statistics.json").write_text(json.dumps({"queries": slow}))
    slow_mean = json.loads(CliRunner().invoke(app, words).stdout)[0]["total"]["response_s"]["mean"]
    assert slow_mean > quick_mean + 0.4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("simulate", "{file}"), "cost and selectivity are not known for: all, hot"),
        (("simulate", "{file}", "--policy", "hnrr"), "Did you mean 'hnr'?"),
        (("policies", "cqq"), "there is no policy 'cqq'. Did you mean 'cqc'?"),
        (("run", "{file}", "--policy", "mss"), "one that runs on Spark"),
        (("run", "missing.yaml"), "missing.yaml: the file must be a readable file"),
    ],
)
def test_a_wrong_request_is_a_sentence_and_exit_code_2(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    file = pipeline_file(tmp_path)
    done = headgate(*(word.format(file=file) for word in words))
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("testbeds", "sharraf"), "there is no testbed 'sharraf'. Did you mean 'sharaf'?"),
        (("simulate",), "FILE must be one pipeline file, or --testbed NAME"),
        (("simulate", "{file}", "--testbed", "bz"), "must be one pipeline file, or --testbed NAME"),
        (("simulate", "{file}", "--polcy", "hr"), "no option '--polcy'. Did you mean '--policy'?"),
        (
            ("simulate", "--testbed", "bz", "--polcy", "hr"),
            "there is no option '--polcy'. Did you mean '--policy'?",
        ),
        (
            ("simulate", "--testbed", "sharaf", "--querries", "3"),
            "testbed 'sharaf': there is no option '--querries'. Did you mean '--queries'?",
        ),
        (("simulate", "--testbed", "bz", "--level", "box"), "must be query or operator"),
        (("simulate", "--testbed", "bz", "--policy", "bsd(searc=log)"), "Did you mean 'search'?"),
        (("simulate", "--testbed", "bz", "--module", "nowhere.py"), "there is none of that name"),
        (("simulate", "--testbed", "bz", "--plot", "no/such/folder.html"), "must be writable"),
        (
            ("compare", "--testbed", "bz", "--objective", "mean_respons"),
            "there is no measure 'mean_respons'. Did you mean 'mean_response'?",
        ),
    ],
)
def test_a_slip_is_answered_with_the_nearest_or_what_is_expected(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    file = pipeline_file(tmp_path, queries=with_statistics())
    result = CliRunner().invoke(app, [word.format(file=file) for word in words])
    assert isinstance(result.exception, HeadgateError), result.output
    assert message in str(result.exception)
    assert result.stdout == ""


MISTAKEN = """\
state: {state}
polcy: hnrr
spark:
  master: local[2]
  config: {{spark.jars: /no/such.jar, spark.driver.port: "{port}"}}
classes: {{H: 6, N: 1}}
streams:
  sensors: {{format: headgate, options: {{rate_per_s: 200}}, event_time: ts}}
  orders:
    format: kafka
    options: {{kafka.bootstrap.servers: "127.0.0.1:{closed}", subscribe: orders}}
  words: {{format: json, schema: word STRING, options: {{path: /no/such/folder}}}}
  blank: {{format: json, options: {{path: /no/such/folder}}}}
views:
  warm: {{sql: SELECT * FROM sensors WHERE temprature > 3}}
queries:
  good: {{class: H, sql: "SELECT location FROM sensors [RANGE 60 SECONDS]"}}
  typo:
    class: H
    retention: 5
    sql: |
      SELECT location
      FROM sensors
      WHERE temprature > 3
  table: {{class: H, sql: SELECT * FROM sensor}}
  function: {{class: H, sql: SELECT uper(location) AS l FROM sensors}}
  unit: {{class: H, sql: "SELECT count(*) AS n FROM sensors [RANGE 60 SECNODS]"}}
  window: {{class: H, sql: "SELECT count(*) AS n FROM sensr [RANGE 60 SECONDS]"}}
  sorted: {{class: X, sql: SELECT * FROM sensors ORDER BY ts, weight: heavy}}
  words: {{class: N, sql: SELECT wrd FROM words}}
  base:
    class: N
    sql: SELECT * FROM sensors
    sink: {{format: jdbc, options: {{url: "jdbc:none:x", table: t, key: location}}}}
  of_view: {{class: N, sql: SELECT * FROM warm}}
  of_blank: {{class: N, sql: SELECT * FROM blank}}
"""


@pytest.mark.spark
@pytest.mark.slow
def test_check_names_all_mistakes_of_a_file_with_line_and_key(
    terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    file = tmp_path / "pipeline.yaml"
    with socket.create_server(("127.0.0.1", 0)) as busy, socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))  # and does not listen
        ports = {"port": busy.getsockname()[1], "closed": unheard.getsockname()[1]}
        file.write_text(MISTAKEN.format(state=tmp_path / "file" / "state", **ports))
        done = terminal.run("check", str(file), "--module", "no_such_module", "--json")
    assert done.returncode == 2, done.stderr
    assert done.stderr == ""
    checked = json.loads(done.stdout)
    assert checked["unread"] == ["of_blank", "of_view"]
    mistakes = {
        (mistake["line"], mistake["key"]): mistake["text"] for mistake in checked["mistakes"]
    }
    for (line, key), text in {
        (None, "--module"): "--module is 'no_such_module', but must be a module: there is none",
        (1, "state"): "but must be a directory that can be written: not a directory.",
        (2, "polcy"): "unknown key 'polcy'; did you mean 'policy'?",
        (2, "policy.name"): "there is no policy 'hnrr'. Did you mean 'hnr'?",
        (5, "spark.config.spark.jars"): "there is no /no/such.jar.",
        (5, "spark.config.spark.driver.port"): "but must be a free port: address already in use.",
        (11, "streams.orders.options.kafka.bootstrap.servers"): "a broker that answers: ",
        (12, "streams.words.format"): "but must be a source that Spark can open: Path does not",
        (13, "streams.blank.format"): "but must be a source that Spark can open: ",
        (15, "views.warm.sql"): "Fix: write `temperature`",
        (20, "queries.typo.retention"): "queries.typo: unknown key 'retention'",
        (24, "queries.typo.sql"): "column `temprature` does not exist in the stream.\nFix: write `",
        (25, "queries.table.sql"): "table or stream `sensor` does not exist.\nFix: write sensors",
        (26, "queries.function.sql"): "function `uper` does not exist.\nFix: write upper",
        (27, "queries.unit.sql"): "there is no unit SECNODS.\nFix: write [RANGE 60 SECONDS]",
        (28, "queries.window.sql"): "there is no stream 'sensr'. Did you mean 'sensors'?",
        (29, "queries.sorted.class"): "is 'X', but must be one of H, N.",
        (29, "queries.sorted.weight"): 'expected a number, got "heavy"',
        (29, "queries.sorted.sql"): "ORDER BY cannot run continuously",
        (30, "queries.words.sql"): "column `wrd` does not exist",
        (34, "queries.base.sink.options.url"): "has no driver on the class path",
    }.items():
        assert text in mistakes.pop((line, key)), (line, key)
    assert mistakes == {}


@pytest.mark.spark
@pytest.mark.slow
def test_check_takes_what_run_takes(terminal: Terminal, tmp_path: Path) -> None:
    run_options, check_options = (
        {
            option
            for parameter in get_command(app).commands[name].params
            for option in parameter.opts
        }
        for name in ("run", "check")
    )
    assert run_options <= check_options
    (tmp_path / "own.py").write_text(
        "import headgate as hg\n@hg.sink('own_sink')\nclass Own(hg.Receiver):\n"
        "    def __init__(self, context): pass\n    def deliver(self, rows, key): pass\n"
    )
    mine = {"all": {**ALL, "sink": "own_sink"}}
    (tmp_path / "in").mkdir()
    files = {
        "format": "json", "ingest": "spark", "schema": "i INT",
        "options": {"path": str(tmp_path / "in")},
    }  # fmt: skip
    streams = {"sensors": SENSORS, "files": files}
    file = pipeline_file(tmp_path, queries=mine, streams=streams)
    done = terminal.run("check", file, "--module", str(tmp_path / "own.py"), "--fresh")
    (note,) = done.stderr.splitlines()
    assert note.startswith(
        f"{file}: note: stream 'files': Structured Streaming reads its files, so"
    )
    assert done.stdout == f"{file}: 2 streams and 1 query can run.\n"
    assert done.returncode == 0
    assert not (tmp_path / "state").exists()


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_ends_with_a_report_and_keeps_the_screen_clean(
    terminal: Terminal, tmp_path: Path
) -> None:
    file = pipeline_file(tmp_path)
    done = terminal.run("run", file, "--seconds", "3", "--json", "--no-control")
    assert done.returncode == 0, done.stderr
    assert "control" not in done.stderr
    assert not any(noise in done.stderr for noise in SPARK_NOISE)
    report = json.loads(done.stdout)[0]
    assert report["total"]["pending"] == 0
    assert report["total"]["tuples_in"] >= 2 * 3 * 200 * 0.5
    assert report["total"]["response_s"]["mean"] > 0
    statistics = json.loads((tmp_path / "state/statistics.json").read_text())
    assert set(statistics["queries"]) == {"hot", "all"}


def test_the_version_is_that_of_the_package() -> None:
    assert CliRunner().invoke(app, ["--version"]).output == f"headgate {__version__}\n"


def test_no_command_needs_an_extra_before_it_is_used() -> None:
    program = (
        "import sys; sys.modules['confluent_kafka'] = sys.modules['plotly'] = None\n"
        "import headgate.cli, headgate.runtime, headgate.spark.room\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_plot_without_its_library_is_refused_before_the_simulation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    words = ["simulate", "--testbed", "sharaf", "--plot", str(tmp_path / "x.html")]
    error = CliRunner().invoke(app, words).exception
    assert str(error) == "--plot: plotly must be installed: pip install 'headgate[plots]'."


def test_a_table_in_a_pipe_has_its_longest_cell_whole(capsys: pytest.CaptureFixture[str]) -> None:
    cell = "x" * 30_000
    table = Table("query", "value")
    table.add_row("long", cell)
    show(table)
    assert cell in capsys.readouterr().out
