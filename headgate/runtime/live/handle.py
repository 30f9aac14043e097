"""The handle of a query: the attributes of Structured Streaming's handle, and Headgate's own."""

import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headgate.errors import HeadgateError, QueryRefused
from headgate.model.events import Event, StepFinished, StepStarted, UnitFailed
from headgate.model.network import Path
from headgate.model.plan import BoxCall
from headgate.runtime.describe.explanation import Explanation
from headgate.scheduler.scheduler import Scheduler


class QueryHandle:
    """One running query. Names that Structured Streaming also has are spelled as they are there."""

    def __init__(self, path: Path, explanation: Callable[[str], Explanation]) -> None:
        self._explanation = explanation
        self.name = path.query.name
        self.id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"headgate:{self.name}"))
        self.runId = str(uuid.uuid4())
        self._path = path
        self._unit = -1
        self._scheduler: Scheduler | None = None
        self._stop_query: Callable[[int], None] = lambda unit: None
        self._sink: Any = None
        self._progress: deque[_Progress] = deque(maxlen=100)
        self._steps = 0
        self._runs = self._stopped = self._released = False
        self._error: HeadgateError | Exception | None = None

    def bind(
        self, unit: int, scheduler: Scheduler, stop_query: Callable[[int], None], sink: Any = None
    ) -> None:
        """Connect the handle to the unit that runs the query, and to the sink of its results."""
        self._unit, self._scheduler, self._stop_query = unit, scheduler, stop_query
        self._sink = sink

    def release(self) -> None:
        """Disconnect the handle of a dropped query: another query may get its number."""
        self._released = self._stopped = True
        self._unit = -1
        self._stop_query = lambda unit: None

    @property
    def isActive(self) -> bool:
        return self._scheduler is not None and self._error is None and not self._stopped

    @property
    def state(self) -> str:
        """FAILED, STOPPED, RUNNING (a call is under way) or WAITING (for data or its turn)."""
        if self._error is not None:
            return "FAILED"
        if self._stopped:
            return "STOPPED"
        return "RUNNING" if self._runs else "WAITING"

    @property
    def unit(self) -> int:
        """The number of its row in the unit table; −1 before the start."""
        return self._unit

    @property
    def path(self) -> Path:
        """The query's path: the operators that a tuple passes."""
        return self._path

    @property
    def lane(self) -> str | None:
        """The lane of its last call; None before the first."""
        return self._progress[-1].lane if self._progress else None

    @property
    def status(self) -> dict[str, Any]:
        """What the query is doing, with the keys of Structured Streaming."""
        row = self._row()
        pending = 0 if row is None else int(row["pending"])
        message = "Waiting for data to arrive"
        if self._error is not None:
            message = f"Failed: {self._error}"
        elif self._stopped:
            message = "Stopped"
        elif self._scheduler is None:
            message = "Not started"
        elif self._runs:
            message = "Processing new data"
        elif pending:
            message = "Waiting for its turn"
        return {"message": message, "isDataAvailable": pending > 0, "isTriggerActive": self._runs}

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        return self._progress_data(self._progress[-1]) if self._progress else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:
        return [self._progress_data(progress) for progress in list(self._progress)]

    def exception(self) -> Exception | None:
        """Return why the query failed; None while it has not."""
        return self._error

    def statistics(self) -> dict[str, float]:
        """Return the query's selectivity S, cost c̄ per tuple, overhead o per call, ideal time T."""
        row = self._row()
        if row is None:
            return {}
        keys = ("selectivity", "tuple_cost_s", "overhead_s", "ideal_s")
        return {key: float(row[key]) for key in keys}

    def rows(self) -> Any:
        """Return the rows in the query's memory sink as a pyarrow table, oldest first."""
        return self._memory().rows()

    @property
    def rows_dropped(self) -> int:
        """How many rows the memory sink has dropped, oldest first, to stay within its bound."""
        return int(self._memory().dropped)

    def _memory(self) -> Any:
        receiver = getattr(self._sink, "receiver", None)
        if not callable(getattr(receiver, "rows", None)):
            raise QueryRefused(
                query=self.name, clause="rows", reason="need a memory sink that has started",
                fix="give the query  Sink(format='memory')  and start",
            )  # fmt: skip
        return receiver

    def explain(self) -> None:
        """Print its operators, which queries share its code, its lane, figures, sink and cursor."""
        print(self._explanation(self.name).text())

    def stop(self) -> None:
        """Stop this query alone; the next start of the pipeline resumes it where it stopped."""
        self._stopped = True
        self._stop_query(self._unit)

    def hear(self, event: Event, position: int = 0) -> None:
        """Update state and progress from an event of this query.

        Args:
            position: the position of the query among the event's units.
        """
        if self._released:
            return  # it was dropped, and another query has its number
        match event:
            case StepStarted():
                self._runs = True
            case StepFinished():
                self._runs = False
                responses_s, out = event.responses_s[position], event.tuples_out[position]
                mean_s = float(responses_s.mean()) if len(responses_s) else None
                self._progress.append(
                    _Progress(
                        self._steps, event.at_s, event.seconds, event.call, out, mean_s, event.lane
                    )
                )
                self._steps += 1
            case UnitFailed():
                self._error = event.error

    def _row(self) -> Any:
        """Return its row in the unit table; None as long as the scheduler has none for it."""
        table = () if self._scheduler is None else self._scheduler.table
        return table[self._unit] if 0 <= self._unit < len(table) else None

    def _progress_data(self, progress: "_Progress") -> dict[str, Any]:
        """Return the progress of a step with the keys of Structured Streaming, and ours."""
        call, query = progress.call, self._path.query
        return {
            "id": self.id,
            "runId": self.runId,
            "name": self.name,
            "timestamp": datetime.fromtimestamp(progress.at_s, UTC).isoformat(),
            "batchId": progress.step,
            "numInputRows": call.tuples,
            "processedRowsPerSecond": call.tuples / max(progress.seconds, 1e-9),
            "durationMs": {"triggerExecution": round(progress.seconds * 1000)},
            "sources": [
                {
                    "description": f"stream {self._path.stream}",
                    "startOffset": call.first_train,
                    "endOffset": call.end_train,
                    "numInputRows": call.tuples,
                }
            ],
            "sink": {
                "description": f"{query.sink.format} {query.into or query.sink.path}",
                "numOutputRows": progress.tuples_out,
            },
            "fusedWith": len(call.units) - 1,
            "lane": progress.lane,
            "meanResponseSeconds": progress.mean_response_s,
        }


@dataclass(frozen=True, slots=True)
class _Progress:
    """A step of a query, expanded to Structured Streaming's keys only on request.

    Of the response times only the mean is kept: there are a hundred steps for each of hundreds of
    queries, and a step may have a hundred thousand results.
    """

    step: int
    at_s: float
    seconds: float
    call: BoxCall
    tuples_out: int
    mean_response_s: float | None
    lane: str
