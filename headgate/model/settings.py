"""The settings of a Headgate: each with its type, unit, default, limits and a sentence."""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from headgate.extensions.polling import MOST_FILE_BYTES, MOST_RECORD_BYTES
from headgate.model.network.units import SharedPriority
from headgate.model.plan import Lane, Share


def _octal(value: object) -> str:
    """Return permissions as the digits of `chmod`; 0640 in YAML is the number 416."""
    text = f"{value:04o}" if isinstance(value, int) else str(value)
    if not re.fullmatch("0?6[0246]{2}", text):
        raise ValueError("permissions that let the owner read and write, as in '0600' or '0640'")
    return text


LogFormat = Literal["text", "json"]
FileMode = Annotated[str, BeforeValidator(_octal)]


class Settings(BaseModel):
    """Settings of a run: keys of a pipeline file and keyword arguments of `Headgate`."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    workers: int = Field(
        2,
        ge=1,
        description="calls that may run at the same time; more than the cores only adds waiting",
    )
    train_tuples: int | None = Field(
        None,
        ge=1,
        description="maximum tuples per call, which takes at least one train; if not set, all that"
        " are pending",
    )
    call_s: float | None = Field(
        1.0,
        gt=0,
        description="seconds of a call, by its measured cost: with a backlog, a call takes as many"
        " tuples as fit, or so many that overhead is at most 5 % of it; if not set, there is no"
        " such limit",
    )
    most_fused: int = Field(256, ge=1, description="maximum queries per call; 1 turns fusion off")
    retention_s: float = Field(
        3600.0, ge=0, description="seconds that trains are kept after every query has passed them"
    )
    rehearsal_s: float = Field(
        12.0, ge=0, description="seconds to warm up and measure new queries before the first tuple"
    )
    memory_bytes: int = Field(
        512 << 20,
        gt=0,
        description="maximum bytes of memory for trains and results; sources wait before it is"
        " used up",
    )
    log_bytes: int = Field(
        10 << 30,
        gt=0,
        description="maximum bytes on disk for the log and for results that wait for a sink; then"
        " sources wait, and tuples are shed where queries allow it",
    )
    lane: Lane | None = Field(
        None,
        description="driver or job, for every call that can take this lane; if not set, the one"
        " that is expected to be faster",
    )
    share: Share = Field(
        "class",
        description="which queries share equal parts, so that these run once: those of one class,"
        " all, none",
    )
    shared_priority: SharedPriority = Field(
        "pdt",
        description="which queries of a shared call count for its priority, where a policy ranks"
        " by rates: those that raise the value of the whole (pdt), the best (max) or all (sum)",
    )
    log_format: LogFormat = Field(
        "text", description="whether an event in headgate.log is a line of text or a JSON object"
    )
    traces: bool = Field(
        False,
        description="whether every call becomes a span of OpenTelemetry (extra `otel`), with the"
        " provider that the program or `opentelemetry-instrument` has set",
    )
    record: bool = Field(
        False, description="whether to record all events in STATE/recording, for a replay"
    )
    file_mode: FileMode = Field(
        "0600",
        description="permissions of the files of results, log and late tuples; whoever may read"
        " them may also search their folders. Other files with rows are always 0600",
    )
    group: str | None = Field(
        None,
        min_length=1,
        description="name or number of the group of these files; if not set, that of the process",
    )
    call_timeout_s: float = Field(
        300.0, gt=0, description="maximum seconds per call; a query whose call takes longer fails"
    )
    most_record_bytes: int = Field(
        MOST_RECORD_BYTES,
        gt=0,
        description="maximum bytes of a line that the driver reads from a JSON or CSV file; a"
        " longer one becomes a dead letter",
    )
    most_file_bytes: int = Field(
        MOST_FILE_BYTES,
        gt=0,
        description="maximum bytes, after decompression, of a file that the driver reads; a larger"
        " one becomes a dead letter",
    )
    most_text_bytes: int = Field(
        1 << 20, gt=0, description="maximum bytes of a query's text, in UTF-8"
    )
    most_nesting: int = Field(
        500,
        gt=0,
        description="maximum levels of nested brackets, CASEs and comments in a query's text",
    )
    most_plan_nodes: int = Field(
        50_000,
        gt=0,
        description="maximum operators and expressions in a query's plan, subqueries included",
    )
    analysis_timeout_s: float = Field(
        30.0, gt=0, description="maximum seconds for Spark to parse and analyze a query's text"
    )
    allows_paths: bool = Field(
        False,
        description="whether queries may read files by their path, as in ``parquet.`/data/a` ``;"
        " never files in the state directory",
    )
    allows_reflection: bool = Field(
        False,
        description="whether queries may call Java methods: `reflect`, `java_method`,"
        " `try_reflect`",
    )
    open_metrics: bool = Field(
        False, description="whether `GET /metrics` is answered without a token"
    )
    metrics_queries: int = Field(
        200,
        ge=0,
        description="maximum queries with series of their own at `/metrics`, by class, then name;"
        " the rest of each class is summed as `other`",
    )
