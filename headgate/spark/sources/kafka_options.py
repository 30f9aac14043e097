"""The options of a stream that the driver's own Kafka client supports."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import Any

from headgate.errors import OptionRefused
from headgate.extensions import MOST_TUPLES

COLUMNS = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP,"
    " timestampType INT"
)
HEADERS = ", headers ARRAY<STRUCT<key: STRING, value: BINARY>>"

OPTIONS = {
    *("subscribe", "startingoffsets", "maxoffsetspertrigger", "failondataloss", "includeheaders"),
}
SET_BY_SPARK = {"auto.offset.reset", "enable.auto.commit", "interceptor.classes"}
"""Settings of the client that Spark refuses, since it sets them itself, as we do."""

DEFAULTS = {
    "isolation.level": "read_uncommitted",  # as in Spark's client
    "queued.max.messages.kbytes": "16384",
    "fetch.queue.backoff.ms": "20",
    "reconnect.backoff.max.ms": "1000",
    "max.poll.interval.ms": "86400000",  # a full log may make sources wait
    "log_level": "0",  # the poller reports errors
}
SERVERS = "kafka.bootstrap.servers"
FIXED = {"auto.offset.reset": "error", "enable.auto.commit": "false"}


@dataclass(frozen=True)
class Subscription:
    """The options of a stream and the settings of the client.

    Options have Spark's names, in any case.

    Args:
        most: the most records of one poll.
        client: settings by the client's names; in the options they have the prefix `kafka.`.
    """

    stream: str
    topics: tuple[str, ...] = ()
    latest: bool = True
    most: int = MOST_TUPLES
    fails_on_data_loss: bool = True
    headers: bool = False
    client: dict[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> str:
        """The columns, those of Spark's Kafka source, as DDL."""
        return COLUMNS + (HEADERS if self.headers else "")


def subscription_of(stream: str, stream_options: Mapping[str, str]) -> Subscription | str:
    """Parse a stream's options; return the reason if the driver's client does not support them."""
    if find_spec("confluent_kafka") is None:
        return "it is not installed: pip install 'headgate[kafka]'"
    prefix = "kafka."
    values = {name.lower(): value for name, value in stream_options.items()}
    settings = {
        name.removeprefix(prefix): value
        for name, value in values.items()
        if name.startswith(prefix)
    }
    options = {name: value for name, value in values.items() if not name.startswith(prefix)}
    if unknown := sorted(options.keys() - OPTIONS):
        return f"it does not know the option {unknown[0]}"
    if fixed := sorted(name for name in settings if name in SET_BY_SPARK or "serializer" in name):
        return f"kafka.{fixed[0]} cannot be set"
    topics = dict.fromkeys(map(str.strip, options.get("subscribe", "").split(",")))
    topics.pop("", None)
    if "bootstrap.servers" not in settings or not topics:
        return "it needs kafka.bootstrap.servers and subscribe"
    starting = options.get("startingoffsets", "latest").lower()
    if starting not in ("earliest", "latest"):
        return f"it does not know startingOffsets {starting}"
    most = options.get("maxoffsetspertrigger", str(MOST_TUPLES))
    if not most.isdigit() or not int(most):
        return f"maxOffsetsPerTrigger {most} is not a number of records"
    client = {"group.id": f"headgate-{stream}", **DEFAULTS, **settings, **FIXED}
    from confluent_kafka import Consumer, KafkaException  # noqa: PLC0415  # an extra

    try:
        Consumer(client).close()
    except (KafkaException, TypeError, ValueError) as error:
        return f"it refuses the settings: {reason_of(error)}"
    return Subscription(
        stream=stream,
        topics=tuple(topics),
        latest=starting == "latest",
        most=min(int(most), MOST_TUPLES),
        fails_on_data_loss=options.get("failondataloss", "true").lower() == "true",
        headers=options.get("includeheaders", "false").lower() == "true",
        client=client,
    )


ANSWER_S = 5.0
"""How long a broker may take to answer a check."""


def ask_brokers(options: Mapping[str, str]) -> None:
    """Refuse brokers of which none answers.

    Raises:
        OptionRefused: names the brokers and the reason.
    """
    name = next((name for name in options if name.lower() == SERVERS), None)
    if name is None:
        return
    subscription = subscription_of("check", options)
    client = {} if isinstance(subscription, str) else subscription.client
    if reason := _silence(options[name], tuple(client.items())):
        expected = f"a broker that answers: {reason}"
        raise OptionRefused(option=name, value=options[name], expected=expected)


@cache  # many streams have the same brokers
def _silence(servers: str, client: tuple[tuple[str, Any], ...]) -> str | None:
    """Return why none of the brokers answers; None if one does."""
    reason = "there is no HOST:PORT"
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), ANSWER_S).close()
        except (OSError, ValueError) as error:
            reason = f"{server.strip()}: {getattr(error, 'strerror', None) or error}".lower()
        else:
            return _no_topics(dict(client)) if client else None
    return reason


def _no_topics(client: dict[str, Any]) -> str | None:
    """Return why the client cannot list the topics; None if it can."""
    from confluent_kafka import Consumer, KafkaException  # noqa: PLC0415  # an extra

    consumer = Consumer(client)
    try:
        consumer.list_topics(timeout=ANSWER_S)
    except KafkaException as error:
        return reason_of(error)
    finally:
        consumer.close()
    return None


def reason_of(error: Exception) -> str:
    """Return what the client says about an error, which may hold a `KafkaError`."""
    first = error.args[0] if error.args else error
    return first.str() if hasattr(first, "str") else str(first)
