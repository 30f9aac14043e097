"""The engine of a Headgate, for tests that look inside."""

from headgate import Headgate
from headgate.spark.engine.engine import SparkEngine


def engine_of(gate: Headgate) -> SparkEngine:
    """Return the engine of a Headgate that has started; `parts` has what it consists of."""
    engine = gate._membership.started_engine
    assert isinstance(engine, SparkEngine)
    return engine
