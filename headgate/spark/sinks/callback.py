"""A Python function as a sink."""

import pyarrow as pa

from headgate.extensions import Receiver, SinkContext


class Callback(Receiver):
    """A sink that calls the function that `add_query` got."""

    def __init__(self, context: SinkContext) -> None:
        self._context = context

    def deliver(self, rows: pa.Table, key: str) -> None:
        assert self._context.deliver is not None
        self._context.deliver(rows, key)
