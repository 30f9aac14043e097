"""What the runtime needs of `headgate.spark`, as protocols, and the one place that imports it.

mypy compares the protocols with the module `headgate.spark.room` and its classes.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path as File
from typing import TYPE_CHECKING, Protocol

from headgate.access import PRIVATE, Access
from headgate.errors import HeadgateError, RecoveryRefused
from headgate.extensions import Receiver
from headgate.language.analysis import Analyst
from headgate.model.account import Account
from headgate.model.arrays import Ints
from headgate.model.events import SheddingChanged
from headgate.model.lag import Lag
from headgate.model.network.network import Network, Path
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import Deliver, QueryStatistics
from headgate.model.settings import Settings
from headgate.model.stream import Rows, Stream
from headgate.model.trouble import Trouble
from headgate.policies import Policy
from headgate.scheduler.engine import Engine

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class StreamAnalyst(Analyst, Protocol):
    """The analyzer of texts, with the streams that these may read."""

    def add_stream(self, name: str, schema: "StructType", event_time: str | None) -> None: ...

    def drop_stream(self, name: str) -> None: ...

    def schema_of(self, path: Path) -> "StructType": ...


class Changes(Protocol):
    """Streams and queries that are added and dropped while the engine runs."""

    def add_stream(self, network: Network, number: int, schema: "StructType") -> None: ...

    def has_stream(self, number: int) -> bool: ...

    def drop_stream(self, name: str) -> None: ...

    def ids_of(self, paths: Sequence[Path], *, renewed: bool = False) -> dict[str, int]: ...

    def add_query(
        self,
        network: Network,
        units: Sequence[int],
        budget_s: float,
        schemas: "Mapping[str, StructType]",
    ) -> None: ...

    def drop_query(self, unit: int) -> threading.Event: ...

    def quiet_query(self, unit: int) -> threading.Event: ...

    def end_quiet(self) -> None: ...

    def pause_query(self, unit: int) -> None: ...

    def stop_query(self, unit: int) -> None: ...

    def reclassify(self, network: Network) -> None: ...

    def set_query(self, network: Network, units: Sequence[int]) -> None: ...

    def refuse_old_results(self, paths: Sequence[Path]) -> None: ...


class Repairs(Protocol):
    """Queries that are restarted, or get another text, while the engine runs."""

    def restart_query(self, unit: int) -> None: ...

    def alter_query(self, network: Network, unit: int, new: int, budget_s: float) -> None: ...


class Members(Protocol):
    """The dropped queries whose statistics are still to be deleted."""

    @property
    def dropped_names(self) -> set[str]: ...

    def forget(self, names: set[str]) -> None: ...


class Measured(Protocol):
    """The costs per tuple of queries that ran alone, by the names of their paths."""

    @property
    def alone_s(self) -> Mapping[str, float]: ...


class Budget(Protocol):
    """The shares of the budgets that are in use."""

    @property
    def memory(self) -> float: ...

    @property
    def log(self) -> float: ...


class LiveEngine(Engine, Protocol):
    """An engine that runs on Spark and keeps its state in a directory."""

    @property
    def changes(self) -> Changes: ...

    @property
    def repairs(self) -> Repairs: ...

    @property
    def paused(self) -> Sequence[str]: ...

    @property
    def unusable(self) -> Mapping[str, HeadgateError]: ...

    @property
    def members(self) -> Members: ...

    @property
    def rehearsal(self) -> Measured: ...

    @property
    def budget(self) -> Budget: ...

    @property
    def ids(self) -> dict[str, int]: ...

    @property
    def cursors(self) -> Ints: ...

    @property
    def first_trains(self) -> Sequence[int]: ...

    @property
    def groups(self) -> Sequence[int]: ...

    def cause_of(self, error: BaseException) -> BaseException: ...

    @property
    def failures(self) -> Sequence[HeadgateError]: ...

    @property
    def loop_s(self) -> float: ...

    @property
    def storage_s(self) -> float: ...

    def troubles(self) -> Sequence[Trouble]: ...

    def lags(self) -> Sequence[Lag]: ...

    def rehearse(
        self,
        recorded: Mapping[str, QueryStatistics],
        budget_s: float,
        progress: Callable[[int, int], None],
    ) -> dict[str, QueryStatistics]: ...

    def begin(self) -> None: ...

    def receiver_of(self, query: str) -> Receiver | None: ...

    def way_of(self, unit: int) -> tuple[list[str], str, str]: ...

    def lane_text(self, unit: int, planned: str) -> str: ...

    def change_policy(self, policy: Policy) -> None: ...

    def shed(self, changes: Sequence[SheddingChanged]) -> Sequence[SheddingChanged]: ...

    def loss_of(self, unit: int) -> QoSGraph | None: ...

    def forget(self, stream: int, passed: int) -> None: ...

    def totals(self) -> dict[str, tuple[int, int]]: ...

    def accounts(self) -> dict[str, Account]: ...

    def dead_letters(self) -> dict[str, int]: ...

    def query_letters(self) -> dict[str, int]: ...

    def added_delays_s(self) -> dict[str, float]: ...

    def drain(self, timeout_s: float | None = None) -> None: ...

    def stop(self) -> None: ...

    def close(self) -> None: ...


class SparkRoom(Protocol):
    """The module `headgate.spark.room`: sessions, the analyzer of queries, the engine."""

    def open_engine(
        self,
        session: "SparkSession",
        network: Network,
        schemas: "Mapping[str, StructType]",
        state: File,
        settings: Settings,
        *,
        rows: Mapping[str, Rows],
        deliver: Mapping[str, Deliver],
        reached: Callable[[str], None],
    ) -> LiveEngine: ...

    def Analyst(
        self, session: "SparkSession", settings: Settings, state: File
    ) -> StreamAnalyst: ...

    def local_session(
        self, state: File, master: str, settings: Mapping[str, str], access: Access = PRIVATE
    ) -> "SparkSession": ...

    def own_session(self, session: "SparkSession") -> "SparkSession": ...

    def stop_session(self, session: "SparkSession") -> None: ...

    def quiet_python(self) -> None: ...

    def source_of(self, session: "SparkSession", stream: Stream) -> "DataFrame": ...

    def refuse_sink(
        self, session: "SparkSession", path: Path, deliver: Deliver | None = None
    ) -> None: ...

    def refuse_outputs(self, session: "SparkSession", path: Path) -> None: ...

    def history_of(
        self, session: "SparkSession", state: File, text: str, settings: Settings | None
    ) -> "DataFrame": ...

    def versions_of(self, state: File) -> dict[str, int]: ...

    def other_texts(self, state: File, texts: Mapping[str, str]) -> dict[str, RecoveryRefused]: ...

    def kept_trains(self, state: File) -> dict[str, tuple[str, list[str]]]: ...

    def noticed_end(self) -> AbstractContextManager[None]: ...

    def refuse_failure(self) -> AbstractContextManager[None]: ...

    def collected(self, frame: "DataFrame") -> "pa.Table": ...


def spark_room() -> SparkRoom:
    """Import Spark's side, only when it is needed: simulations must start without Java."""
    from headgate.spark import room  # noqa: PLC0415

    return room
