"""The start of Spark: what cannot start is a sentence, and executors can reach the driver."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from headgate import Headgate
from headgate.errors import ConfigRefused
from headgate.spark.jvm.session import announced_address

ON_A_CLUSTER = """
import os, sys
from pyspark.sql import SparkSession
import headgate as hg

spark = SparkSession.builder.master("local-cluster[1,1,1024]").getOrCreate()
for state in (sys.argv[1], "/proc/self/cwd/state"):  # an executor has another directory there
    gate = hg.Headgate(spark, state=state, rehearsal_s=0)
    stream = {"rate_per_s": "500", "tuples": "50"}
    gate.add_stream(hg.Stream(name="s", format="headgate", options=stream))
    gate.add_query(hg.Query(name="all", sql="SELECT * FROM s", query_class="default"))
    try:
        gate.start()
        print("started")
    except hg.HeadgateError as error:
        print(error)
    gate.stop()
"""


def test_a_master_that_does_not_answer_is_refused_before_spark_starts(tmp_path: Path) -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))  # and does not listen
        master = f"spark://127.0.0.1:{unheard.getsockname()[1]}"
        with pytest.raises(ConfigRefused) as refused:
            Headgate(state=tmp_path, master=master)
    answer = f"spark: master is '{master}', but must be a master that answers: connection refused."
    assert str(refused.value) == answer


@pytest.mark.parametrize("home", ["/nowhere", None])
def test_no_java_is_a_sentence(
    home: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "prefix", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("JAVA_HOME", home)
    with pytest.raises(ConfigRefused, match=r"JAVA_HOME .*must be set to the directory of Java 17"):
        Headgate(state=tmp_path)


def test_the_driver_announces_the_address_from_which_it_reaches_the_master() -> None:
    with socket.create_server(("127.0.0.2", 0)) as server:
        port = server.getsockname()[1]
        settings = announced_address(f"spark://127.0.0.2:{port}")
    assert settings == {"spark.driver.host": "127.0.0.1"}
    assert announced_address("local[2]")["spark.driver.host"] == "127.0.0.1"
    assert announced_address("yarn") == {}


@pytest.mark.spark
@pytest.mark.slow
def test_executors_must_share_the_state_directory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ON_A_CLUSTER, str(tmp_path / "state")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    first, refusal, fix = done.stdout.splitlines()
    assert first == "started", done.stderr
    assert "found an executor on host " in refusal
    assert "that cannot read it: FileNotFoundException" in refusal
    assert fix.startswith("Fix: mount a shared file system (such as NFS) at the same path on ")
