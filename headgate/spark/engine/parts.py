"""The parts of an engine."""

from collections.abc import Callable
from dataclasses import dataclass

from headgate.model.settings import Settings
from headgate.spark.clock import Clock
from headgate.spark.engine.arrivals import Arrivals
from headgate.spark.engine.members import Members
from headgate.spark.engine.requests import EventQueue, Requests
from headgate.spark.engine.run_sinks import RunSinks
from headgate.spark.event_time.producers import Producers
from headgate.spark.event_time.store import Store
from headgate.spark.execution.calls import Calls
from headgate.spark.execution.executor import Executor
from headgate.spark.execution.warm_up import WarmUp
from headgate.spark.journal.journal import Journal
from headgate.spark.jvm.jvm_watch import JvmWatch
from headgate.spark.log.budget import Budget
from headgate.spark.sinks.derived_streams import DerivedStreams
from headgate.spark.sinks.files.publisher import Publisher
from headgate.spark.sources.ingest import StreamIngest


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of an engine, ready to begin.

    Args:
        events: what reaches the loop from other threads.
        requests: has changes made by the loop.
        cursors: the train that each unit continues with.
        reached: called at every point where a crash must lose nothing; a test raises there.
    """

    settings: Settings
    jvm: JvmWatch
    clock: Clock
    events: EventQueue
    requests: Requests
    journal: Journal
    budget: Budget
    members: Members
    producers: Producers
    store: Store
    arrivals: Arrivals
    derived: DerivedStreams
    sinks: RunSinks
    executor: Executor
    publisher: Publisher
    warm_up: WarmUp
    ingest: StreamIngest
    calls: Calls
    cursors: list[int]
    reached: Callable[[str], None]
