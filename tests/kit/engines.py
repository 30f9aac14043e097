"""The engine and the scheduler of a Headgate, for tests that look inside."""

from typing import Any

from headgate import Headgate
from headgate.model.plan import BoxCall
from headgate.runtime.run.guarded_scheduler import GuardedScheduler
from headgate.runtime.run.run import Running
from headgate.spark.engine.engine import SparkEngine


def engine_of(gate: Headgate) -> SparkEngine:
    """Return the engine of a Headgate that has started; `parts` has what it consists of."""
    engine = gate._membership.engine
    assert isinstance(engine, SparkEngine)
    return engine


def scheduler_of(gate: Headgate) -> GuardedScheduler:
    """Return the scheduler of a Headgate that has started."""
    return run_of(gate).scheduler


def run_of(gate: Headgate) -> Running:
    """Return the run of a Headgate that has started."""
    run = gate._membership.run
    assert run is not None
    return run


def row_of(gate: Headgate, name: str) -> Any:
    """Return the row of a query in the table that policies see."""
    return gate.query(name)._query.row


def names_of(gate: Headgate, call: BoxCall) -> list[str]:
    """Return the names of the queries that a call runs."""
    return [engine_of(gate).members.path_of(unit).query.name for unit in call.units]
