"""A query of a run: its id, its state and its last steps."""

import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headgate.extensions import Receiver
from headgate.model.events import Event, StepFinished, StepStarted, UnitFailed
from headgate.model.network.network import Path
from headgate.model.plan import BoxCall
from headgate.scheduler.scheduler import Scheduler


class LiveQuery:
    """What is known about a query: the loop updates it, handles and the status read it.

    Args:
        path: its path; the last one, if the query is cut.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.query.name
        self.run_id = str(uuid.uuid4())
        self.id: int | None = None
        """Its id, which no other query of the state directory ever has; None before the start."""
        self.bound_at_s: float | None = None
        """Since when it is part of the run."""
        self.receiver: Receiver | None = None
        """What its results are delivered to; None for files and streams, and before the start."""
        self.steps: deque[FinishedStep] = deque(maxlen=100)
        self.error: Exception | None = None
        self.runs = self.stopped = self.paused = False
        self._number = 0
        self._scheduler: Scheduler | None = None
        self._stop_query: Callable[[int], None] | None = None

    def bind(
        self,
        number: int,
        scheduler: Scheduler,
        stop_query: Callable[[int], None],
        receiver: Receiver | None,
    ) -> None:
        """Connect the query to the run, under its id, and to what its results are delivered to."""
        self.id, self._scheduler, self._stop_query = number, scheduler, stop_query
        self.receiver = receiver

    @property
    def has_started(self) -> bool:
        return self._scheduler is not None

    @property
    def state(self) -> str:
        """FAILED, PAUSED, STOPPED, RUNNING (a call is under way) or WAITING (for data or turn)."""
        if self.error is not None:
            return "FAILED"
        if self.paused:
            return "PAUSED"
        if self.stopped:
            return "STOPPED"
        return "RUNNING" if self.runs else "WAITING"

    @property
    def lane(self) -> str | None:
        """The lane of its last call; None before the first."""
        return self.steps[-1].lane if self.steps else None

    @property
    def row(self) -> Any:
        """Its row in the unit table; None as long as the scheduler has none for it."""
        scheduler, number = self._scheduler, self.id
        return None if scheduler is None or number is None else scheduler.rows.unit(number)

    def statistics(self) -> dict[str, float]:
        """Return the query's selectivity S, cost c̄ per tuple, overhead o per call, ideal time T."""
        row = self.row
        if row is None:
            return {}
        keys = ("selectivity", "tuple_cost_s", "overhead_s", "ideal_s")
        return {key: float(row[key]) for key in keys}

    def stop(self) -> None:
        """Stop this query alone; the next start resumes it."""
        self.stopped = True
        if self._stop_query is not None and self.id is not None:
            self._stop_query(self.id)

    def begin_again(self, path: Path) -> None:
        """Clear the state of a query that was restarted or altered."""
        self.path, self.run_id, self.error = path, str(uuid.uuid4()), None
        self.runs = self.stopped = self.paused = False

    def hear(self, event: Event, position: int = 0) -> None:
        """Update the state and the last steps from an event of this query.

        Args:
            position: the position of the query among the event's units.
        """
        match event:
            case StepStarted():
                self.runs = True
            case StepFinished():
                self.runs = False
                responses_s, out = event.responses_s[position], event.tuples_out[position]
                mean_s = float(responses_s.mean()) if len(responses_s) else None
                self.steps.append(
                    FinishedStep(
                        self._number, event.at_s, event.seconds, event.call, out, mean_s, event.lane
                    )
                )
                self._number += 1
            case UnitFailed():
                self.error = event.error


@dataclass(frozen=True, slots=True)
class FinishedStep:
    """A step of a query.

    Of the response times only the mean is kept: there are a hundred steps for each of hundreds of
    queries, and a step may have a hundred thousand results.
    """

    number: int
    at_s: float
    seconds: float
    call: BoxCall
    tuples_out: int
    mean_response_s: float | None
    lane: str
