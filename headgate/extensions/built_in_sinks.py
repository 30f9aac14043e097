"""The sinks that Headgate has itself, as declared to the registry."""

import re

from headgate.errors import OptionRefused
from headgate.extensions.declared_options import SinkEntry
from headgate.extensions.lazy_import import lazy_import
from headgate.extensions.option_values import Options

COMPRESSIONS = ("zstd", "snappy", "gzip", "lz4", "brotli", "none")


def _refuse_compression(options: Options) -> None:
    compression = options.get("compression", "zstd")
    if compression not in COMPRESSIONS:
        expected = f"one of {', '.join(COMPRESSIONS)}"
        raise OptionRefused(option="compression", value=compression, expected=expected)


def _refuse_rows(options: Options) -> None:
    rows = options.get("rows", "1")
    if not (rows.isdecimal() and int(rows)):
        raise OptionRefused(option="rows", value=rows, expected="a number of rows, 1 or more")


def _refuse_stream(options: Options) -> None:
    name, lateness = options.get("stream"), options.get("lateness_s", "0")
    if name is not None and not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,99}", name):
        expected = "letters, digits and _, at most 100 of them"
        raise OptionRefused(option="stream", value=name, expected=expected)
    if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", lateness):
        raise OptionRefused(option="lateness_s", value=lateness, expected="0 or more seconds")


SINKS = (
    SinkEntry(
        name="parquet", make=lazy_import("headgate.spark.sinks.files.file_sink:parquet_files"),
        options={"compression": f"one of {', '.join(COMPRESSIONS)}"}, check=_refuse_compression,
        delivery="exactly once", has_files=True, has_columns=True,
    ),
    SinkEntry(
        name="json", make=lazy_import("headgate.spark.sinks.files.file_sink:text_files"),
        other_options=True, delivery="exactly once", has_files=True,
    ),
    SinkEntry(
        name="csv", make=lazy_import("headgate.spark.sinks.files.file_sink:text_files"),
        options={"header": "whether every file begins with the names"}, other_options=True,
        delivery="exactly once", has_files=True, by_position=True,
    ),
    SinkEntry(
        name="console", make=lazy_import("headgate.spark.sinks.console:Console"), by_position=True,
    ),
    SinkEntry(
        name="memory", make=lazy_import("headgate.spark.sinks.memory:Memory"),
        options={"rows": "maximum number of rows"}, check=_refuse_rows, by_position=True,
    ),
    SinkEntry(
        name="callback", make=lazy_import("headgate.spark.sinks.callback:Callback"),
        takes_function=True, by_position=True,
    ),
    SinkEntry(
        name="jdbc", make=lazy_import("headgate.spark.sinks.jdbc:Jdbc"),
        options={
            "url": "address of the database", "table": "name of the table",
            "key": "columns that identify a row, separated by commas",
        },
        required={"url": "jdbc:postgresql://host/base", "table": "fires", "key": "location, ts"},
        other_options=True, delivery="exactly once",
    ),
    SinkEntry(
        name="kafka", make=lazy_import("headgate.spark.sinks.kafka:Kafka"),
        options={"kafka.bootstrap.servers": "brokers to connect to first", "topic": "the topic"},
        required={"kafka.bootstrap.servers": "host:9092", "topic": "fires"},
        other_options=True, ask=lazy_import("headgate.spark.sources.kafka_options:ask_brokers"),
    ),
    SinkEntry(
        name="stream", make=lazy_import("headgate.spark.sinks.files.file_sink:StreamSink"),
        options={
            "stream": "name of the stream; if not set, that of the query",
            "event_time": "column with the event time of a tuple",
            "lateness_s": "seconds that a tuple's event time may lie behind the watermark",
        },
        check=_refuse_stream, delivery="exactly once",
    ),
)  # fmt: skip
