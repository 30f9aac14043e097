"""Spark's connectors: whether there is one, and connections to databases."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession


def find_source(session: SparkSession, name: str) -> None:
    """Raise Spark's own error if it has no source of a name."""
    jvm: Any = session._jvm
    sources = jvm.org.apache.spark.sql.execution.datasources.DataSource
    sources.lookupDataSource(name, session._jsparkSession.sessionState().conf())


def jdbc_options(session: SparkSession, table: str, options: Mapping[str, str]) -> Any:
    """Return what Spark connects by; it knows drivers of `spark.jars`, too, or raises."""
    jvm: Any = session._jvm
    package = jvm.org.apache.spark.sql.execution.datasources.jdbc
    return package.JDBCOptions(options["url"], table, jvm.PythonUtils.toScalaMap(dict(options)))


def jdbc_connection(session: SparkSession, table: str, options: Mapping[str, str]) -> Any:
    """Return a new connection to a database."""
    jvm: Any = session._jvm
    dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(options["url"])
    return dialect.createConnectionFactory(jdbc_options(session, table, options)).apply(-1)


def jdbc_time_classes(session: SparkSession) -> tuple[Any, Any]:
    """Return Java's classes of timestamps and of dates in a database."""
    jvm: Any = session._jvm
    return jvm.java.sql.Timestamp, jvm.java.sql.Date
