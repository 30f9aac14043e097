"""Most tuples in queue (AMoS §2.1)."""

from headgate.model.network.unit_table import Unit
from headgate.model.plan import ALL
from headgate.policies.interface import Policy
from headgate.policies.priority import PriorityPolicy
from headgate.policies.registry import register


def most_tuples(unit: Unit, now_s: float) -> float:
    """Return the queue length in tuples."""
    return unit.amount


@register(
    "mtiq",
    objective="longest queue",
    paper="AMoS §2.1",
    use="Queues are bounded and must not overflow.",
    avoid="Every query must get results: a query with few tuples may wait forever.",
)
def most_tuples_in_queue(batch: bool = False) -> Policy:
    """Queue length in tuples: N (AMoS §2.1).

    Departs from the paper at a join, whose two queues count one by one and not together.

    Args:
        batch: a call takes the whole queue, as the batch scheduler that the paper calls it; its
            worked example takes one tuple.
    """
    return PriorityPolicy(most_tuples, "queue", ALL if batch else None)
