"""Most tuples in queue (AMoS §2.1)."""

from headgate.model.network.unit_table import Unit
from headgate.policies.priority import priority


@priority(
    "mtiq",
    objective="longest queue",
    paper="AMoS §2.1",
    changes="queue",
    use="Queues are bounded and must not overflow.",
    avoid="Every query must get results: a query with few tuples may wait forever.",
)
def most_tuples(unit: Unit, now_s: float) -> float:
    """Queue length in tuples: N (AMoS §2.1)."""
    return unit.amount
