"""Spark's connectors: lookup of a source by name, and JDBC connections."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession


def find_source(session: SparkSession, name: str) -> None:
    """Raise Spark's own error if Spark has no source with this name."""
    jvm: Any = session._jvm
    sources = jvm.org.apache.spark.sql.execution.datasources.DataSource
    sources.lookupDataSource(name, session._jsparkSession.sessionState().conf())


def jdbc_options(session: SparkSession, table: str, options: Mapping[str, str]) -> Any:
    """Return Spark's JDBC options for a table.

    Spark also finds drivers in `spark.jars`. It raises an error if it has no driver for the URL.
    """
    jvm: Any = session._jvm
    package = jvm.org.apache.spark.sql.execution.datasources.jdbc
    return package.JDBCOptions(options["url"], table, jvm.PythonUtils.toScalaMap(dict(options)))


def jdbc_connection(session: SparkSession, table: str, options: Mapping[str, str]) -> Any:
    """Return a new connection to a database."""
    jvm: Any = session._jvm
    dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(options["url"])
    return dialect.createConnectionFactory(jdbc_options(session, table, options)).apply(-1)


def jdbc_time_classes(session: SparkSession) -> tuple[Any, Any]:
    """Return the Java classes of JDBC timestamps and JDBC dates."""
    jvm: Any = session._jvm
    return jvm.java.sql.Timestamp, jvm.java.sql.Date
