"""The sources that Headgate has itself, as declared to the registry."""

from headgate.errors import OptionRefused
from headgate.extensions.declared_options import SourceEntry
from headgate.extensions.lazy_import import lazy_import
from headgate.extensions.option_values import Options

_FILES = {
    "path": "the directory",
    "maxFilesPerTrigger": "maximum files per poll",
    "pathGlobFilter": "pattern of file names",
    "followSymlinks": "whether symbolic links that lead out of the directory are read; default: no",
}


def _refuse_values(options: Options) -> None:
    for name, value in options.items():
        if name.lower() == "maxfilespertrigger":  # Spark ignores the case
            options.whole(name, 1, least=1)
        if name.lower() == "followsymlinks" and value.lower() not in ("true", "false"):
            raise OptionRefused(option=name, value=value, expected="true or false")


def _directory(name: str) -> SourceEntry:
    return SourceEntry(
        name=name, make=lazy_import("headgate.spark.sources.files.directory:directory_source"),
        options=_FILES, other_options=True, check=_refuse_values, spark_reads=True,
    )  # fmt: skip


SOURCES = (
    *map(_directory, ("parquet", "json", "csv")),
    SourceEntry(
        name="kafka",
        make=lazy_import("headgate.spark.sources.kafka_topics:kafka_source"),
        options={
            "kafka.bootstrap.servers": "brokers to connect to first",
            "subscribe": "topics, separated by commas",
            "startingOffsets": "earliest or latest",
            "maxOffsetsPerTrigger": "maximum records per poll",
            "failOnDataLoss": "whether the stream ends when records were deleted unread",
            "includeHeaders": "whether there is a column with the headers",
        },
        other_options=True,
        columns=lazy_import("headgate.spark.sources.kafka_topics:columns_of"),
        ask=lazy_import("headgate.spark.sources.kafka_options:ask_brokers"),
        spark_reads=True,
    ),
    SourceEntry(
        name="headgate",
        make=lazy_import("headgate.spark.sources.generator:GeneratorSource"),
        options={
            "rate_per_s": "tuples per second outside bursts",
            "burst_factor": "factor on the rate during a burst",
            "burst_every_s": "seconds from one burst to the next",
            "burst_for_s": "seconds that a burst lasts",
            "seed": "seed of the readings",
            "tuples": "how many tuples to generate; if not set, without end",
        },
        required={"rate_per_s": "1500"},
        check=lazy_import("headgate.spark.sources.generator:refuse_values"),
        columns=lazy_import("headgate.spark.sources.generator:columns_of"),
        arrivals=lazy_import("headgate.workloads.testbeds.forest:arrivals_of"),
    ),
    SourceEntry(
        name="python",
        make=lazy_import("headgate.spark.sources.python_rows:RowSource"),
        options={"rowsPerPoll": "maximum rows per poll"},
        check=lambda options: options.whole("rowsPerPoll", 1000, least=1),
        takes_function=True,
    ),
)
