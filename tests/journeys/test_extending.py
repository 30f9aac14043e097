"""The package in examples/extending: installed, found by its entry points, run from its file."""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sources import consume

import headgate as hg
from headgate.config import read_pipeline
from headgate.errors import ConfigRefused
from headgate.extensions import sink_entry, source_entry, source_names

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EXAMPLE = Path(__file__).parents[2] / "examples" / "extending"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the example on the path, with the metadata that setuptools writes from its pyproject.

    That is an installation as far as Python is concerned. `pip install` would need to download what
    builds a wheel.
    """
    folder = tmp_path / "installed"
    shutil.copytree(EXAMPLE, folder)
    command = [sys.executable, "-c", "import setuptools; setuptools.setup()", "egg_info"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


def errors_in(database: Path) -> list[str]:
    with sqlite3.connect(database) as connection:
        rows = connection.execute("SELECT message FROM errors ORDER BY headgate_key").fetchall()
    connection.close()
    return [message for (message,) in rows]


def test_an_installed_package_adds_a_source_and_a_sink(
    spark: SparkSession, installed: Path, tmp_path: Path
) -> None:
    assert "tail" in source_names()
    log = tmp_path / "app.log"
    log.write_text("ERROR one\nINFO fine\nERROR two\nERROR not com")
    for more, lines, expected in (("", 3, ["one", "two"]), ("plete\n", 4, ["not complete"])):
        with log.open("a") as file:
            file.write(more)
        gate = hg.load(read_pipeline(installed / "pipeline.yaml"), spark=spark)
        gate.start()
        consume(gate, lines)
        gate.stop()
        assert errors_in(tmp_path / "results.db")[-len(expected) :] == expected
    assert errors_in(tmp_path / "results.db") == ["one", "two", "not complete"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "{file: app.log}",
            "{fil: app.log}",
            "stream 'log': options.file must be given for format",
        ),
        (
            "{file: app.log}",
            "{file: app.log, fil: x}",
            "stream 'log': options.fil is 'x', but must be left out: format 'tail' takes only file;"
            " did you mean 'file'?",
        ),
        ("table: errors", "tabel: errors", "queries.errors.sink.options.table must be given for"),
        ("format: sqlite ", "format: sqlit ", "sink.format is 'sqlit', but must be one of parquet"),
        ("format: sqlite ", "format: sqlit ", "; did you mean 'sqlite'?"),
        ("format: tail ", "format: tial ", "; did you mean 'tail'?"),
    ],
)
def test_mistakes_in_a_file_that_uses_it_are_refused_by_name(
    spark: SparkSession, installed: Path, old: str, new: str, message: str
) -> None:
    file = installed / "pipeline.yaml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(ConfigRefused) as refused:
        hg.load(read_pipeline(file), spark=spark)
    assert message in str(refused.value)


def test_a_package_that_cannot_be_loaded_is_named_and_disturbs_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "broken-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[headgate.sources]\ngone = no_such_module:Gone\nidle = json:loads\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert {"gone", "idle"} <= {*source_names()}
    with pytest.raises(ConfigRefused, match=r"package 'broken': .*'gone'.*ModuleNotFoundError"):
        source_entry("gone")
    with pytest.raises(ConfigRefused, match=r"'idle'.* it registers no source of this name"):
        source_entry("idle")
    assert source_entry("nobody") is None
    assert sink_entry("parquet") is not None
