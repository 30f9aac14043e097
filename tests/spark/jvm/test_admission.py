"""No text reads files, starts programs or exhausts the JVM; a refusal names its reason."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate import Headgate, Stream
from headgate.config import Pipeline
from headgate.errors import QueryRefused
from headgate.model.query import Query
from headgate.model.settings import Settings
from headgate.spark.engine.history import history_of
from headgate.spark.journal.journal import Journal
from headgate.spark.jvm.query.analysis import Analyst
from headgate.spark.jvm.session import own_session

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOKEN = '{"port": 1, "token": "secret"}'


class Texts:
    """An analyst of texts over a stream `readings`, with its own settings."""

    def __init__(self, session: SparkSession, folder: Path, **settings: object) -> None:
        self.session, self.state = own_session(session), folder / "state"
        self.state.mkdir(exist_ok=True)
        control = self.state / "control.json"
        control.write_text(TOKEN)
        self.session.sql(f"CREATE TEMP VIEW stolen AS SELECT * FROM text.`{control}`")
        self.analyst = Analyst(self.session, Settings.model_validate(settings), self.state)
        self.analyst.add_stream("readings", StructType.fromDDL("k INT, place STRING, heat DOUBLE"))
        one = self.session.createDataFrame([(1, "a", 1.0)], "k INT, place STRING, heat DOUBLE")
        one.createOrReplaceTempView("readings")

    def frame(self, sql: str) -> DataFrame:
        return self.analyst.frame(Query(name="q", sql=sql, query_class="H"))

    def refusal(self, sql: str) -> str:
        """Return why a text is refused. A text that is not refused is run."""
        with pytest.raises(QueryRefused) as refused:
            self.frame(sql).collect()
        assert "\nFix: " in str(refused.value)
        assert "org.apache" not in str(refused.value)
        return str(refused.value)


@pytest.fixture(scope="module")
def texts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Texts:
    return Texts(spark, tmp_path_factory.mktemp("admission"))


def nested_cases(levels: int) -> str:
    text = "CASE WHEN k = {} THEN {} ELSE "
    cases = "".join(text.format(n, n) for n in range(2, levels + 2))
    return f"SELECT {cases} 0 {'END ' * levels} AS c FROM readings"


def doubling(levels: int) -> str:
    """Return a text of common table expressions, each with twice the columns of the last."""
    steps = "".join(f", t{n} AS (SELECT * FROM t{n - 1} JOIN t{n - 1})" for n in range(1, levels))
    return f"WITH t0 AS (SELECT * FROM readings){steps} SELECT 1 FROM t{levels - 1}"


def test_no_text_starts_a_program_wherever_it_stands(texts: Texts, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    script = f"SELECT TRANSFORM(place) USING 'touch {witness}; cat' AS (c STRING) FROM readings"
    texts.session.sql(f"CREATE OR REPLACE TEMP VIEW scripted AS {script}")
    texts.session.sql(script).createOrReplaceTempView("scripted_frame")
    for sql in (
        script,
        f"WITH t AS ({script}) SELECT * FROM t",
        f"SELECT ({script}) AS c FROM readings",
        f"SELECT k FROM readings WHERE place IN ({script})",
        f"SELECT k FROM readings WHERE EXISTS ({script})",
        f"SELECT * FROM readings JOIN ({script}) t ON t.c = place",
        f"SELECT * FROM readings, LATERAL ({script})",
        f"SELECT k FROM readings WHERE k > (WITH t AS ({script}) SELECT count(*) FROM t)",
        f"SELECT k FROM readings UNION ALL {script}",
        f"SELECT CASE WHEN k = 1 THEN transform(array(1), x -> ({script})) END FROM readings",
    ):
        assert "line 1: TRANSFORM starts a program on the machine" in texts.refusal(sql)
    for view in ("scripted", "scripted_frame"):
        sql = f"SELECT k FROM readings WHERE place IN (SELECT * FROM {view})"
        assert f"query 'q': TRANSFORM in view {view} starts a program" in texts.refusal(sql)
    assert not witness.exists()


def test_no_text_reads_a_file_by_its_path(texts: Texts, monkeypatch: pytest.MonkeyPatch) -> None:
    control = texts.state / "control.json"
    monkeypatch.chdir(texts.state)
    for sql in (
        f"SELECT * FROM readings JOIN text.`{control}`",
        f"SELECT (SELECT max(value) FROM text.`file:{control}`) AS t FROM readings",
        f"WITH t AS (SELECT * FROM json.`{control}`) SELECT * FROM t",
        f"SELECT k FROM readings WHERE EXISTS (TABLE binaryFile.`{texts.state}/journal.db`)",
        "SELECT * FROM csv.`control.json`",
        f"SELECT * FROM spark_catalog.text.`{control}`",
        f"SELECT * FROM IDENTIFIER('text.`{control}`')",
        "SELECT k FROM readings WHERE EXISTS (SELECT * FROM stolen)",
    ):
        message = texts.refusal(sql)
        assert "reads files by their path, which is off by default" in message
        assert "secret" not in message
    assert "line 2: text./etc/passwd" in texts.refusal("SELECT *\nFROM text.`/etc/passwd`")
    for sql in (
        f"SELECT from_xml(place, 'a INT', map('rowValidationXSDPath', '{control}')) FROM readings",
        f"SELECT from_xml('', 'a INT', map(concat('row', 'ValidationXSDPath'), '{control}'))",
        f"SELECT from_avro(unhex(place), '', map('avroSchemaUrl', '{control}')) FROM readings",
        f"SELECT from_protobuf(unhex(place), 'm', '{control}') FROM readings",
    ):
        assert "opens a file by its path, which is off by default" in texts.refusal(sql)
    assert "function `read_files` does not exist" in texts.refusal("SELECT * FROM read_files('/')")


def test_an_administrator_can_allow_paths_but_not_the_state_directory(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts = Texts(spark, tmp_path, allows_paths=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/notes.txt").write_text("hello")
    (tmp_path / "link").symlink_to(texts.state)
    (row,) = texts.frame(f"SELECT * FROM text.`{tmp_path}/elsewhere/*.txt`").collect()
    assert row.value == "hello"
    assert "in view stolen reaches the state directory" in texts.refusal("SELECT * FROM stolen")
    for path in (
        texts.state / "control.json",
        texts.state / "*",
        tmp_path / "*/control.json",
        tmp_path / "elsewhere/../state",
        tmp_path / "link/control.json",
        tmp_path,
        f"file://{texts.state}",
        os.path.relpath(texts.state),
    ):
        message = texts.refusal(f"SELECT * FROM text.`{path}`")
        assert "reaches the state directory, which no query may read" in message
        assert "secret" not in message


def test_reflection_is_off_unless_an_administrator_allows_it(
    spark: SparkSession, texts: Texts, tmp_path: Path
) -> None:
    call = "('java.lang.System', 'getProperty', 'user.dir')"
    texts.session.sql(f"CREATE OR REPLACE TEMP VIEW told AS SELECT reflect{call} AS c")
    for sql, name in (
        (f"SELECT reflect{call} FROM readings", "reflect"),
        (f"SELECT k FROM readings ORDER BY java_method{call}", "java_method"),
        (f"SELECT k FROM readings WHERE place IN (SELECT try_reflect{call})", "try_reflect"),
        (f"SELECT system.builtin.reflect{call} FROM readings", "reflect"),
        ("SELECT * FROM told", "reflect in view told"),
    ):
        assert f"{name} can call any Java method, which is off by default" in texts.refusal(sql)
    assert "IDENTIFIER hides the name" in texts.refusal(f"SELECT IDENTIFIER('reflect'){call}")
    (row,) = Texts(spark, tmp_path, allows_reflection=True).frame(f"SELECT reflect{call}").collect()
    assert Path(row[0]).is_dir()


def test_no_text_is_executed_that_is_not_a_select(texts: Texts) -> None:
    for sql, message in (
        ("CREATE TABLE made (a INT)", "CreateTable is not a SELECT: a query only reads"),
        ("CREATE TABLE IDENTIFIER('made') (a INT)", "is not a SELECT"),
        ("WITH t AS (SELECT 1 AS a) INSERT INTO made SELECT * FROM t", "is not a SELECT"),
        ("FROM readings INSERT INTO made SELECT k INSERT INTO made SELECT k", "is not a SELECT"),
        ("EXECUTE IMMEDIATE 'CREATE TABLE made (a INT)'", "is not a SELECT"),
        ("BEGIN CREATE TABLE made (a INT); SELECT 1; END", "is not a SELECT"),
        ("SET spark.sql.ansi.enabled = false", "SetCommand is not a SELECT"),
    ):
        assert message in texts.refusal(sql)
    assert not texts.session.catalog.tableExists("made")


def test_tables_views_and_functions_of_the_session_stay_allowed(
    texts: Texts, tmp_path: Path
) -> None:
    session = texts.session
    session.range(3).write.parquet(str(tmp_path / "files"))
    session.read.parquet(str(tmp_path / "files")).createOrReplaceTempView("of_files")
    session.sql("CREATE OR REPLACE TEMP VIEW of_text AS SELECT id FROM of_files")
    session.sql("CREATE OR REPLACE GLOBAL TEMP VIEW of_all AS SELECT id FROM range(3)")
    session.sql("CREATE TABLE stored USING parquet AS SELECT id FROM range(3)")
    session.udf.register("risk", lambda heat: heat * 2, "DOUBLE")
    body = "a + (SELECT max(k) FROM readings)"
    session.sql(f"CREATE TEMPORARY FUNCTION most(a INT) RETURNS INT RETURN {body}")
    try:
        for table in ("of_files", "of_text", "global_temp.of_all", "stored", "default.stored"):
            assert texts.frame(f"SELECT * FROM readings JOIN {table} ON k = id").count() == 1
    finally:
        session.sql("DROP TABLE stored")
    assert texts.frame("SELECT risk(heat) AS r, most(1) AS m FROM readings").count() == 1


@pytest.mark.parametrize(
    "sql",
    [
        "FROM readings SELECT k",
        "FROM readings |> WHERE k = 1 |> EXTEND k + 1 AS n |> AGGREGATE count(*) GROUP BY n",
        "SELECT k FROM readings QUALIFY row_number() OVER (ORDER BY heat) = 1",
        "SELECT sum(heat) OVER w FROM readings WINDOW w AS (PARTITION BY k)",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3)"
        " SELECT * FROM r",
        "SELECT * FROM readings PIVOT (sum(heat) FOR place IN ('a', 'b'))",
        "SELECT * FROM readings UNPIVOT (v FOR n IN (k, heat))",
        "SELECT * FROM readings LATERAL VIEW explode(array(1)) e AS f",
        "SELECT * FROM readings r, LATERAL (SELECT r.k + 1 AS n), LATERAL explode(array(r.k))",
        "SELECT k FROM readings WHERE k IN (SELECT id FROM range(3)) AND EXISTS (VALUES (1))",
        "SELECT /*+ BROADCAST(b) */ * EXCEPT (k) FROM readings a JOIN readings b USING (k)",
        "SELECT k, grouping(k) FROM readings GROUP BY CUBE (k, place) HAVING count(*) > 0",
        "SELECT from_xml(place, 'a INT', map('mode', 'FAILFAST')) FROM readings",
        "SELECT * FROM VALUES ('one', current_timestamp()) AS data(a, b) LIMIT 1 OFFSET 1",
        "SELECT k FROM readings TABLESAMPLE (10 PERCENT) INTERSECT SELECT 1 EXCEPT SELECT 2",
    ],
)
def test_selects_that_people_write_are_admitted(texts: Texts, sql: str) -> None:
    assert texts.frame(sql).columns


def test_three_hundred_nested_cases_are_admitted(texts: Texts) -> None:
    assert texts.frame(nested_cases(300)).columns == ["c"]


def test_a_plan_that_is_too_large_or_too_deep_is_refused(texts: Texts) -> None:
    chain = "SELECT\nk" + " + k" * 1600 + " AS c FROM readings"
    assert "line 2: the text makes a plan of more than 1,500 levels" in texts.refusal(chain)
    assert "more than 1,500 levels" in texts.refusal(f"SELECT {'NOT ' * 50_000}true")
    terms = " OR ".join(f"k = {n}" for n in range(13_000))
    message = texts.refusal(f"SELECT k FROM readings WHERE {terms}")
    assert "the text makes a plan of 52,003 operators and expressions, and 50,000 are" in message
    assert "keep long lists of values in a table" in message
    stars = "SELECT 1 FROM " + "(SELECT *, * FROM " * 40 + "readings" + ")" * 40
    assert "operators and expressions, and 50,000 are allowed" in texts.refusal(stars)
    assert "operators and expressions, and 50,000 are allowed" in texts.refusal(doubling(30))
    assert "levels deep" in texts.refusal("SELECT " + "(" * 20_000 + "1" + ")" * 20_000)
    (row,) = texts.frame("SELECT k FROM readings").collect()
    assert row.k == 1


def test_an_analysis_that_takes_too_long_is_refused_and_ends(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts = Texts(spark, tmp_path, analysis_timeout_s=0.2, most_plan_nodes=10**9)
    message = texts.refusal(doubling(12))
    assert "query 'q': the text takes Spark more than 0.2 s to analyze" in message
    for thread in analyses(spark):
        thread.join(60_000)
    assert list(analyses(spark)) == []


def analyses(spark: SparkSession) -> Iterator[object]:
    """Yield the threads of the JVM that analyze a text."""
    threads = spark._jvm.java.lang.Thread.getAllStackTraces().keySet()  # type: ignore[union-attr]
    return (thread for thread in threads if thread.getName() == "headgate-analysis")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1\nFROM reading", ["line 2: table or stream `reading` does", "write readings"]),
        ("SELECT 1 FROM xyz", ["table or stream `xyz` does not exist", "read one of "]),
        ("SELECT heta FROM readings", ["column `heta` does not exist", "write `heat`"]),
        ("SELECT zzz FROM readings", ["column `zzz` does not exist", "use one of `"]),
        ("SELECT uper(place) FROM readings", ["function `uper` does not exist", "write upper, or"]),
        ("SELECT qqq(k) FROM readings", ["function `qqq` does not exist", "use a function of Sp"]),
        ("SELECT * FROM rnge(3)", ["function `rnge` does not exist", "write range"]),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(
    texts: Texts, sql: str, expected: list[str]
) -> None:
    wrong, fix = expected
    assert wrong in texts.refusal(sql)
    assert f"Fix: {fix}" in texts.refusal(sql)


def test_sql_over_the_past_keeps_to_the_same_rules(spark: SparkSession, tmp_path: Path) -> None:
    Journal(tmp_path).close()
    (tmp_path / "control.json").write_text(TOKEN)
    for sql, message in (
        (f"SELECT * FROM text.`{tmp_path}/control.json`", "reads files by their path"),
        (f"SELECT * FROM VALUES (1) WHERE EXISTS (TABLE text.`{tmp_path}`)", "by their path"),
        ("SELECT reflect('java.lang.Math', 'abs', 1)", "can call any Java method"),
        ("WITH t AS (SELECT TRANSFORM(1) USING 'cat') SELECT * FROM t", "TRANSFORM starts a progr"),
        ("SELECT (((1)))", "is nested more than 2 levels deep"),
        ("DROP TABLE t", "DropTable is not a SELECT"),
    ):
        with pytest.raises(QueryRefused, match="query 'sql'") as refused:
            history_of(own_session(spark), tmp_path, sql, Settings(most_nesting=2))
        assert message in str(refused.value)
    text = f"SELECT * FROM text.`{tmp_path}/control.json`"
    with pytest.raises(QueryRefused, match="reaches the state directory"):
        history_of(own_session(spark), tmp_path, text, Settings(allows_paths=True))


def test_a_headgate_and_a_pipeline_file_take_the_rules(spark: SparkSession, tmp_path: Path) -> None:
    streams = {"s": {"format": "headgate", "options": {"rate_per_s": 10}}}
    queries = {"q": {"sql": "SELECT 1", "class": "default"}}
    file = {"state": "x", "streams": streams, "queries": queries}
    changed = {
        "most_text_bytes": 1000, "most_nesting": 3, "most_plan_nodes": 30,
        "analysis_timeout_s": 9.0, "allows_paths": True, "allows_reflection": True,
    }  # fmt: skip
    pipeline = Pipeline.model_validate({**file, **changed})
    assert pipeline.model_dump(include=set(changed)) == changed
    gate = Headgate(spark, state=tmp_path, **changed)
    rows = tmp_path / "rows"
    rows.mkdir()
    options = {"path": str(rows)}
    gate.add_stream(Stream(name="s", format="parquet", options=options, schema="a INT"))
    for sql, message in (
        ("SELECT ((((a)))) AS a FROM s", "is nested more than 3 levels deep"),
        ("SELECT ((((a)))) AS a FROM s [ROWS 5]", "is nested more than 3 levels deep"),
        (
            f"SELECT a FROM s WHERE a IN ({'1, ' * 30} 1)",
            "operators and expressions, and 30 are allowed",
        ),
        (f"SELECT '{'x' * 1000}' AS a FROM s", "bytes, and 1,000 are allowed"),
    ):
        with pytest.raises(QueryRefused) as refused:
            gate.add_query(Query(name="q", sql=sql, query_class="default"))
        assert message in str(refused.value)
