"""The checks of rooms find what is forbidden, and nothing else."""

import pytest
from test_rooms import faults_of, insides_of


@pytest.mark.parametrize(
    ("line", "forbidden"),
    [
        ("session._jsparkSession.cloneSession()", True),
        ("frame._jdf", True),
        ("jvm = session.sparkContext._jvm", True),
        ("getattr(session, '_jvm')", True),
        ("jvm.org.apache.spark.sql.classic.Dataset", True),
        ("load('org.apache.spark.sql.catalyst.trees.TreeNode')", True),
        ("load('org/apache/spark/SparkEnv')", True),
        ("'org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0'", False),
        ("KEY = 'org.apache.spark.sql.parquet.row.metadata'", False),
        ("import pyspark", False),
    ],
)
def test_the_wall_around_spark_holds(line: str, forbidden: bool) -> None:
    assert bool(list(insides_of(line))) is forbidden


@pytest.mark.parametrize(
    ("room", "line", "forbidden"),
    [
        ("model", "import time", True),
        ("model", "from datetime import datetime", True),
        ("model", "def f():\n    import threading", True),
        ("model", "def f():\n    open('x')", True),
        ("model", "from headgate.policies import cqc", True),
        ("model", "from headgate import errors", False),
        ("model", "import numpy as np\nnp.random.default_rng()", True),
        ("model", "from ..policies import cqc", True),
        ("model", "from . import plan", False),
        ("language", "import pyspark", True),
        ("policies", "import logging", True),
        ("policies", "from headgate.scheduler.queues import StreamBuffer", True),
        ("scheduler", "from headgate.policies.interface import Policy", False),
        ("scheduler", "from headgate.policies import interface", False),
        ("scheduler", "from headgate.policies import cqc", True),
        ("scheduler", "from headgate.policies.rate import highest_rate", True),
        ("metrics", "from headgate.scheduler import loop", True),
        ("simulation", "from time import sleep", True),
        ("spark", "from headgate.policies.interface import Policy", True),
        ("spark", "from headgate.simulation import engine", True),
        ("spark", "from headgate.language.parse import path_of", True),
        ("runtime", "from headgate.spark import room", True),
        ("runtime", "def f():\n    from headgate.spark import room", True),
        ("runtime.live", "def f():\n    from headgate.spark import room", True),
        ("runtime.run.spark_room", "def f():\n    from headgate.spark import room", False),
        ("runtime.run.spark_room", "from headgate.spark import room", True),
        ("runtime.run.spark_room", "def f():\n    from headgate.spark import engine", True),
        ("runtime", "import pyspark", True),
        ("runtime.live", "if TYPE_CHECKING:\n    from pyspark.sql import SparkSession", False),
        ("runtime", "if TYPE_CHECKING:\n    pass\nelse:\n    import pyspark", True),
        ("runtime", "from headgate.cli import main", True),
        ("config", "from headgate.runtime import load", True),
        ("metrics", "import rich", True),
        ("spark.log", "from headgate.spark.sinks.files.file_sink import FileSink", True),
        ("spark.log", "from headgate.spark.jvm.types import arrow_schema", False),
        ("spark.windows", "from headgate.spark.execution.executor import Executor", True),
        ("spark.execution", "from headgate.spark.windows.queries import WindowedQueries", False),
        ("spark.execution", "from headgate.spark.engine.engine import SparkEngine", True),
        ("simulation.world", "from headgate.simulation.kernel import queues", True),
        ("policies.structures", "from headgate.policies.interface import Policy", True),
        ("runtime.what_if", "from headgate.runtime.live.headgate import Headgate", True),
    ],
)
def test_the_walls_hold(room: str, line: str, forbidden: bool) -> None:
    assert bool(list(faults_of(line, room, f"headgate.{room}"))) is forbidden
