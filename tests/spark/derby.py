"""A database in memory: Derby, which comes with Spark."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.extensions import Options, SinkContext
from headgate.model.query import Sink
from headgate.spark.sinks.jdbc import Jdbc


class Database:
    """A Derby database in memory, which tests read without Spark."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        jvm: Any = spark.sparkContext._jvm
        jvm.java.lang.System.setProperty("derby.stream.error.file", str(folder / "derby.log"))
        self.url = f"jdbc:derby:memory:{folder.name};create=true"
        self._session = spark
        self._connection = jvm.java.sql.DriverManager.getConnection(self.url)

    def execute(self, sql: str) -> None:
        self._connection.createStatement().execute(sql)

    def rows(self, sql: str) -> list[list[str | None]]:
        result = self._connection.createStatement().executeQuery(sql)
        count = result.getMetaData().getColumnCount()
        rows = []
        while result.next():
            rows.append([result.getString(column) for column in range(1, count + 1)])
        return rows

    def sink(self, table: str, key: str) -> Jdbc:
        """Return the receiver of a table; a query would output the columns of the key."""
        options = Options(self.named(table, key).options)
        schema = pa.schema([(name.strip(), pa.string()) for name in key.split(",")])
        return Jdbc(
            SinkContext(
                query="q", format="jdbc", options=options, schema=schema, session=self._session
            )
        )

    def named(self, table: str, key: str) -> Sink:
        """Return the sink of a table, as a pipeline declares it."""
        return Sink(format="jdbc", options={"url": self.url, "table": table, "key": key})
