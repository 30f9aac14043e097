"""Sources and sinks by name: Headgate's own, those of a user's module and of installed packages.

In: a decorated class or an entry point. Out: its entry, which knows the options, refuses wrong ones
and creates the source or receiver. Never imports Spark, polls a source or delivers a result itself.
"""

from headgate.extensions.option_values import Options
from headgate.extensions.polling import (
    MOST_TUPLES,
    LeftToSpark,
    Letter,
    Polled,
    Source,
    SourceContext,
)
from headgate.extensions.receiver import ROW_KEY, Receiver, SinkContext, row_keys
from headgate.extensions.registry import (
    sink,
    sink_entry,
    sink_names,
    sinks,
    source,
    source_entry,
    source_names,
    sources,
)

__all__ = [
    "MOST_TUPLES",
    "ROW_KEY",
    "LeftToSpark",
    "Letter",
    "Options",
    "Polled",
    "Receiver",
    "SinkContext",
    "Source",
    "SourceContext",
    "row_keys",
    "sink",
    "sink_entry",
    "sink_names",
    "sinks",
    "source",
    "source_entry",
    "source_names",
    "sources",
]
