"""Time zones as Spark understands them: its spellings, and the rules behind them."""

from typing import Any

from pyspark.sql import SparkSession

from headgate.errors import ConfigRefused
from headgate.spark.jvm.errors import SPARK_ERRORS, reason_of

SESSION_ZONE = "spark.sql.session.timeZone"


def zone_of(session: SparkSession) -> str:
    """Return the time zone of a session in Java's spelling: `PST` is `America/Los_Angeles`.

    Raises:
        ConfigRefused: Spark does not know the zone.
    """
    try:
        return str(_java_zone(session, str(session.conf.get(SESSION_ZONE))).getId())
    except SPARK_ERRORS as error:
        raise ConfigRefused(
            path="the Spark session", key=SESSION_ZONE, value=None,
            expected=f"a time zone that Spark knows: {reason_of(error)}",
        ) from error  # fmt: skip


def same_zone(session: SparkSession, one: str, other: str) -> bool:
    """Return True if two zones have the same rules, such as `UTC` and `Etc/UTC`."""
    rules = [_java_zone(session, zone).getRules() for zone in (one, other)]
    return bool(rules[0].equals(rules[1]))


def _java_zone(session: SparkSession, zone: str) -> Any:
    utils: Any = getattr(session._jvm, "org.apache.spark.sql.catalyst.util.DateTimeUtils")
    return utils.getZoneId(zone)
