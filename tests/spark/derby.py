"""A database in memory, which comes with Spark."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.model.query import Sink
from headgate.spark.sinks.jdbc import Jdbc


class Database:
    """A database in memory, asked without Spark."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        jvm: Any = spark.sparkContext._jvm
        jvm.java.lang.System.setProperty("derby.stream.error.file", str(folder / "derby.log"))
        self.url = f"jdbc:derby:memory:{folder.name};create=true"
        self._session = spark
        self._connection = jvm.java.sql.DriverManager.getConnection(self.url)

    def execute(self, sql: str) -> None:
        self._connection.createStatement().execute(sql)

    def rows(self, sql: str) -> list[list[str | None]]:
        found = self._connection.createStatement().executeQuery(sql)
        count = found.getMetaData().getColumnCount()
        rows = []
        while found.next():
            rows.append([found.getString(at) for at in range(1, count + 1)])
        return rows

    def sink(self, table: str, key: str) -> Jdbc:
        return Jdbc(self._session, self.named(table, key))

    def named(self, table: str, key: str) -> Sink:
        """Gives a table as a pipeline names it."""
        return Sink(format="jdbc", options={"url": self.url, "table": table, "key": key})
