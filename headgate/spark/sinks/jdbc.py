"""A database table as a sink: rows are written by their key, through the driver's JVM."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from headgate.errors import QueryRefused
from headgate.extensions import ROW_KEY, Receiver, SinkContext, row_keys
from headgate.spark.jvm.connectors import jdbc_connection, jdbc_options, jdbc_time_classes
from headgate.spark.jvm.errors import SPARK_ERRORS, reason_of


class Jdbc(Receiver):
    """A table that rows are written to by key: a row that exists is updated, any other inserted.

    One result is one transaction, so that nobody reads half of it. A result may be delivered again,
    but finds its rows then and leaves the table as it was: a reader sees it exactly once.
    Statements are plain SQL that every database knows.
    """

    def __init__(self, context: SinkContext) -> None:
        session, options = context.session, context.options
        # Looked up once: py4j calls Java for every dot of a name.
        self._session, (self._timestamp, self._date) = session, jdbc_time_classes(session)
        self._table = options["table"]
        self._keys = [key for name in options["key"].split(",") if (key := name.strip())]
        # The rest is for the connection: user, password, driver, and whatever the driver knows.
        self._options = {key: options[key] for key in options if key != "key"}
        self._refuse_keys(context)
        self._refuse_without_driver(context)

    def deliver(self, rows: pa.Table, key: str) -> None:
        table = rows
        if ROW_KEY in self._keys:
            table = table.append_column(ROW_KEY, pa.array(row_keys(table, key)))
        keys = [_column_of(table, name) for name in self._keys]
        rest = [name for name in table.column_names if name not in keys]
        # Of rows with the same key the last one counts.
        latest = {tuple(row[name] for name in keys): row for row in table.to_pylist()}
        values = [
            {name: self._java(value) for name, value in row.items()} for row in latest.values()
        ]
        connection = self._connect()
        try:
            connection.setAutoCommit(False)
            names = self._names(connection, table.column_names)
            self._put(connection, names, keys, rest, values)
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
        finally:
            connection.close()

    def _refuse_keys(self, context: SinkContext) -> None:
        """Raise QueryRefused if a key is not a column of the query's results."""
        columns = context.schema.names
        names = {name.lower() for name in columns}
        for key in self._keys:
            if key != ROW_KEY and key.lower() not in names:
                raise QueryRefused(
                    query=context.query, clause=f"sink options.key '{key}'",
                    reason=f"is not a column of the query, which returns {', '.join(columns)}",
                    fix=f"select the column, name other columns, or use '{ROW_KEY}' to write a row"
                    " for every result",
                )  # fmt: skip

    def _refuse_without_driver(self, context: SinkContext) -> None:
        """Raise QueryRefused if the driver of the database is not on the class path."""
        try:
            jdbc_options(self._session, self._table, self._options)  # also looks in `spark.jars`
        except SPARK_ERRORS as error:
            raise QueryRefused(
                query=context.query, clause="sink options.url",
                reason=f"has no driver on the class path: {reason_of(error)}",
                fix="add  spark.jars: DRIVER.jar  to the settings of Spark (`spark: {config: ...}`"
                " in a pipeline file), and the option `driver` if its class is not found by itself",
            ) from error  # fmt: skip

    def _connect(self) -> Any:
        return jdbc_connection(self._session, self._table, self._options)

    def _names(self, connection: Any, columns: Sequence[str]) -> dict[str, str]:
        """Return every column's name as the database spells it, quoted.

        Raises:
            LookupError: the table does not have all columns.
        """
        statement = connection.createStatement()
        about = statement.executeQuery(f"SELECT * FROM {self._table} WHERE 1 = 0").getMetaData()
        names = [about.getColumnLabel(index) for index in range(1, about.getColumnCount() + 1)]
        statement.close()
        quote = connection.getMetaData().getIdentifierQuoteString().strip()
        quoted_names = {name.lower(): f"{quote}{name}{quote}" for name in names}
        if missing := [name for name in columns if name.lower() not in quoted_names]:
            raise LookupError(
                f"table {self._table} has no column {', '.join(missing)}; it has {', '.join(names)}"
            )
        return {name: quoted_names[name.lower()] for name in columns}

    def _put(
        self,
        connection: Any,
        names: Mapping[str, str],
        keys: Sequence[str],
        rest: Sequence[str],
        rows: Sequence[Mapping[str, Any]],
    ) -> None:
        """Update the rows that exist, then insert the others."""
        by_null: dict[tuple[bool, ...], list[Mapping[str, Any]]] = {}
        for row in rows:
            by_null.setdefault(tuple(row[key] is None for key in keys), []).append(row)
        new: list[Mapping[str, Any]] = []
        for nulls, alike in by_null.items():
            pairs = list(zip(keys, nulls, strict=True))
            where = " AND ".join(
                f"{names[key]} IS NULL" if null else f"{names[key]} = ?" for key, null in pairs
            )
            bound_keys = [key for key, null in pairs if not null]
            set_names = rest or keys
            changed = ", ".join(f"{names[name]} = ?" for name in set_names)
            counts = self._batch(
                connection,
                f"UPDATE {self._table} SET {changed} WHERE {where}",
                [[row[name] for name in (*set_names, *bound_keys)] for row in alike],
            )
            if min(counts) < 0:
                raise LookupError("the driver does not report how many rows an UPDATE has changed")
            new += [row for row, count in zip(alike, counts, strict=True) if not count]
        if new:
            order = [*keys, *rest]
            columns, marks = ", ".join(names[name] for name in order), ", ".join("?" * len(order))
            self._batch(
                connection,
                f"INSERT INTO {self._table} ({columns}) VALUES ({marks})",
                [[row[name] for name in order] for row in new],
            )

    def _batch(self, connection: Any, sql: str, rows: Sequence[Sequence[Any]]) -> list[int]:
        statement = connection.prepareStatement(sql)
        try:
            for row in rows:
                for index, value in enumerate(row, 1):
                    statement.setObject(index, value)
                statement.addBatch()
            return list(statement.executeBatch())
        finally:
            statement.close()

    def _java(self, value: Any) -> Any:
        """Return a value as drivers accept it; nested ones as JSON."""
        if isinstance(value, datetime):
            if value.tzinfo is None:
                return self._timestamp.valueOf(value.isoformat(" "))
            instant = self._timestamp(int(value.replace(microsecond=0).timestamp()) * 1000)
            instant.setNanos(value.microsecond * 1000)
            return instant
        if isinstance(value, date):
            return self._date.valueOf(value.isoformat())
        if isinstance(value, list | dict | tuple):
            return json.dumps(value, default=str)
        return value


def _column_of(table: pa.Table, name: str) -> str:
    """Return a column's name as the table spells it."""
    return next(column for column in table.column_names if column.lower() == name.lower())
