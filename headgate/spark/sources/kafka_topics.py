"""Kafka topics as a source: the driver's client reads them, or Spark does what it cannot."""

from collections.abc import Mapping

from headgate.extensions import LeftToSpark, Options, Source, SourceContext
from headgate.spark.sources.kafka_options import Subscription, subscription_of


def columns_of(options: Options) -> str:
    """Return the columns of a stream, as Spark DDL; leave what the client cannot do to Spark."""
    return _supported("", options).columns


def kafka_source(context: SourceContext) -> Source:
    """Create the source of a stream's topics; leave what the client cannot do to Spark."""
    subscription = _supported(context.stream, context.options)
    from headgate.spark.sources.kafka import KafkaSource  # noqa: PLC0415  # an extra

    return KafkaSource(subscription, context.schema)


def _supported(stream: str, options: Mapping[str, str]) -> Subscription:
    subscription = subscription_of(stream, options)
    if isinstance(subscription, str):
        raise LeftToSpark(f"the driver's own client cannot, {subscription}")
    return subscription
