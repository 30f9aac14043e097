"""The opening of an engine: the one place where its parts are built."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path as File
from queue import SimpleQueue

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.access import PRIVATE, access_of
from headgate.model.events import ClockTicked, SourcePolled
from headgate.model.network.network import Network
from headgate.model.query import Deliver
from headgate.model.settings import Settings
from headgate.model.stream import Rows
from headgate.spark.clock import Clock
from headgate.spark.engine.arrivals import Arrivals
from headgate.spark.engine.engine import SparkEngine
from headgate.spark.engine.members import Members
from headgate.spark.engine.parts import Parts
from headgate.spark.engine.recovery import refuse_old_results, refuse_other_zone, resumed
from headgate.spark.engine.requests import EventQueue, Requests
from headgate.spark.engine.run_sinks import RunSinks
from headgate.spark.event_time.idle_clock import IdleClock
from headgate.spark.event_time.producers import Producers
from headgate.spark.event_time.store import Store
from headgate.spark.execution.backfill import Backfill
from headgate.spark.execution.calls import Calls
from headgate.spark.execution.executor import Executor
from headgate.spark.execution.warm_up import WarmUp
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal
from headgate.spark.jvm.executors import refuse_unshared
from headgate.spark.jvm.jvm_watch import JvmWatch
from headgate.spark.jvm.lane.compatibility import driver_lane
from headgate.spark.jvm.session import own_session
from headgate.spark.log.budget import Budget
from headgate.spark.sinks.derived_streams import DerivedStreams
from headgate.spark.sinks.files.publisher import Publisher
from headgate.spark.sources.ingest import StreamIngest


def open_engine(
    session: SparkSession,
    network: Network,
    schemas: Mapping[str, StructType],
    state: File,
    settings: Settings,
    *,
    rows: Mapping[str, Rows],
    deliver: Mapping[str, Deliver],
    reached: Callable[[str], None],
) -> SparkEngine:
    """Open the state directory and return an engine over it; remove nothing.

    Args:
        schemas: the schema of each stream, as Spark reports it.
        state: the directory of log, journal and checkpoints.
        rows: for streams of format `python`, the function that returns their tuples.
        deliver: for queries with sinks of format `callback`, the function that takes their results.
        reached: called at every point where a crash must lose nothing; a test raises there.

    Raises:
        ConfigRefused: a source cannot be polled in the way that is asked for.
        RecoveryRefused: the state directory does not fit the network.
    """
    clock, budget = Clock(), Budget(settings)
    events: EventQueue = SimpleQueue()
    access = access_of(settings.file_mode, settings.group)
    access.folder(state)
    journal = Journal(state)
    try:
        for name in ("log", "results"):
            access.take_over(state / name)
        for name in ("checkpoints", "dead-letters", "outbox", "recording"):
            PRIVATE.take_over(state / name)
        refuse_unshared(session, state, access)
        ids = Cursors(journal).ids([path.query.name for path in network.paths])
        network = replace(network, ids=tuple(ids.values()))
        members = Members(network)
        producers = Producers(journal)
        watched = IdleClock(producers.feeds)
        producers.connect(network.paths, network.streams)
        store = Store(
            state, journal, schemas, budget.train_room_bytes, reached, producers.are_idle,
            watched.seconds, access,
        )  # fmt: skip
        arrivals = Arrivals(members, store, clock, events)
        derived = DerivedStreams(
            journal, store, producers, arrivals.put_named, budget.derived_bytes
        )  # fmt: skip
        refuse_other_zone(session, journal, state)
        for stream in network.streams:
            store.open(stream, partial(arrivals.put_named, stream.name))
        for path in network.paths:
            store.keep_for(path)
        engine_session = own_session(session)
        sinks = RunSinks(engine_session, state, deliver, budget, reached, access)
        ends = [path for path in network.paths if path.first_of is None]
        refuse_old_results(journal, ends)
        Cursors(journal).refuse_other_texts({path.query.name: path.query.sql for path in ends})
        sinks.open_all(ends)
        cursors = [resumed(path, network, journal, store) for path in network.paths]
        ingest = StreamIngest(
            session, journal, state, rows=rows, arrived=arrivals.put, pause_s=budget.pause_s,
            now_s=clock.now_s, importance=members.importance_of, settings=settings,
            watched=watched.add, emptied=store.emptied,
            spent=lambda stream, seconds: events.put(
                SourcePolled(clock.now_s(), stream, seconds)
            ),
        )  # fmt: skip
        ingest.prepare_all(network.streams, store.logs)
    except BaseException:
        journal.close()
        raise
    executor = Executor(
        journal, store.logs, sinks, reached, driver_lane(own_session(session), state), budget,
        store.timelines, derived, share=settings.share,
    )  # fmt: skip
    commits = executor.commits
    publisher = Publisher(
        commits.intents, commits.renames, sinks, reached,
        lambda: events.put(ClockTicked(clock.now_s())),
    )  # fmt: skip
    budget.measure(trains=store, panes=executor.windowed, results=sinks)
    warm_up = WarmUp(
        engine_session, executor, state / "rehearsal", settings.call_timeout_s,
        settings.lane or "driver",
    )  # fmt: skip
    executor.arrangement.arrange(network.paths, warm_up.is_costly)
    calls = Calls(
        session, executor, members, workers=settings.workers, now_s=clock.now_s, tell=events.put,
        call_timeout_s=settings.call_timeout_s, backfill=Backfill(journal),
    )  # fmt: skip
    parts = Parts(
        settings, JvmWatch(session), clock, events, Requests(events), journal, budget, members,
        producers, store, arrivals, derived, sinks, executor, publisher, warm_up, ingest, calls,
        cursors, reached,
    )  # fmt: skip
    return SparkEngine(parts)
