"""The handle of a query: the attributes of Structured Streaming's handle, and Headgate's own."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from headgate.errors import QueryRefused
from headgate.model.display.html_table import table_html
from headgate.runtime.describe.explanation import Explanation
from headgate.runtime.run.live_query import FinishedStep, LiveQuery

if TYPE_CHECKING:
    import pyarrow as pa


class QueryHandle:
    """One running query. Names that Structured Streaming also has are spelled as they are there."""

    def __init__(
        self,
        query: LiveQuery,
        explanation: Callable[[str], Explanation],
        why: Callable[[str, float | None], dict[str, Any]],
    ) -> None:
        self._query, self._explanation, self._why = query, explanation, why
        self.name = query.name

    def __repr__(self) -> str:
        return f"QueryHandle(name={self.name!r}, state={self.state!r})"

    def _repr_html_(self) -> str:
        figures = {"state": self.state, "lane": self.lane, **self.statistics()}
        return table_html(f"query {self.name}", list(figures), [list(figures.values())])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QueryHandle) and self._query is other._query

    def __hash__(self) -> int:
        return hash(id(self._query))

    @property
    def runId(self) -> str:
        """Another one in every run, and after a restart of the query."""
        return self._query.run_id

    @property
    def id(self) -> str | None:
        """The same in every run, and another after the query was dropped and added again.

        None before the start: the journal knows it.
        """
        number = self._query.id
        text = f"headgate:{self.name}:{number}"
        return None if number is None else str(uuid.uuid5(uuid.NAMESPACE_URL, text))

    @property
    def isActive(self) -> bool:
        query = self._query
        return query.has_started and query.state in ("RUNNING", "WAITING")

    @property
    def state(self) -> str:
        """FAILED, PAUSED, STOPPED, RUNNING (a call is under way) or WAITING (for data or turn)."""
        return self._query.state

    @property
    def lane(self) -> str | None:
        """The lane of its last call; None before the first."""
        return self._query.lane

    @property
    def status(self) -> dict[str, Any]:
        """What the query is doing, with the keys of Structured Streaming."""
        query = self._query
        row = query.row
        pending = 0 if row is None else int(row["pending"])
        message = "Waiting for data to arrive"
        if query.error is not None:
            message = f"Failed: {query.error}"
        elif query.paused or query.stopped:
            message = query.state.capitalize()
        elif not query.has_started:
            message = "Not started"
        elif query.runs:
            message = "Processing new data"
        elif pending:
            message = "Waiting for its turn"
        return {"message": message, "isDataAvailable": pending > 0, "isTriggerActive": query.runs}

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        steps = self._query.steps
        return self._progress_data(steps[-1]) if steps else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:
        return [self._progress_data(step) for step in list(self._query.steps)]

    def exception(self) -> Exception | None:
        """Return why the query failed; None while it has not."""
        return self._query.error

    def statistics(self) -> dict[str, float]:
        """Return the query's selectivity S, cost c̄ per tuple, overhead o per call, ideal time T."""
        return self._query.statistics()

    def rows(self) -> "pa.Table":
        """Return the rows in the query's memory sink as a pyarrow table, oldest first."""
        return self._memory().rows()

    @property
    def rows_dropped(self) -> int:
        """How many rows the memory sink has dropped, oldest first, to stay within its bound."""
        return self._memory().dropped

    def _memory(self) -> "Memory":
        receiver = self._query.receiver
        if not isinstance(receiver, Memory):
            raise QueryRefused(
                query=self.name, clause="rows", reason="need a memory sink that has started",
                fix="give the query  Sink(format='memory')  and start",
            )  # fmt: skip
        return receiver

    def explain(self) -> None:
        """Print its operators, which queries share its code, its lane, figures, sink and cursor."""
        print(self._explanation(self.name).text())

    def why(self, at_s: float | None = None) -> dict[str, Any]:
        """Return why a result took so long, as `Headgate.why` does."""
        return self._why(self.name, at_s)

    def stop(self) -> None:
        """Stop this query alone; the next start of the pipeline resumes it where it stopped."""
        self._query.stop()

    def _progress_data(self, step: FinishedStep) -> dict[str, Any]:
        """Return the progress of a step with the keys of Structured Streaming, and ours."""
        call, path = step.call, self._query.path
        query = path.query
        return {
            "id": self.id,
            "runId": self.runId,
            "name": self.name,
            "timestamp": datetime.fromtimestamp(step.at_s, UTC).isoformat(),
            "batchId": step.number,
            "numInputRows": call.tuples,
            "processedRowsPerSecond": call.tuples / max(step.seconds, 1e-9),
            "durationMs": {"triggerExecution": round(step.seconds * 1000)},
            "sources": [
                {
                    "description": f"stream {path.stream}",
                    "startOffset": call.first_train,
                    "endOffset": call.end_train,
                    "numInputRows": call.tuples,
                }
            ],
            "sink": {
                "description": f"{query.sink.format} {query.into or query.sink.path}",
                "numOutputRows": step.tuples_out,
            },
            "fusedWith": len(call.units) - 1,
            "lane": step.lane,
            "meanResponseSeconds": step.mean_response_s,
        }


@runtime_checkable
class Memory(Protocol):
    """A receiver that keeps rows for Python, as the memory sink does."""

    dropped: int

    def rows(self) -> "pa.Table":
        """Return the rows, oldest first."""
