"""Questions to a Headgate: report, status, accounts and explanations. Answers change nothing."""

from typing import Any

from headgate.errors import ConfigRefused
from headgate.metrics.histogram import Histogram
from headgate.metrics.report import Report
from headgate.model.account import Account
from headgate.model.settings import Settings
from headgate.policies import Policy
from headgate.policies.amos import Amos
from headgate.runtime.describe.drawing import Drawing
from headgate.runtime.describe.explanation import Explanation
from headgate.runtime.live.amos_library import policy_explanation
from headgate.runtime.live.changes import Changes
from headgate.runtime.live.handle import QueryHandle
from headgate.runtime.live.live_cell import overview_html, watch
from headgate.runtime.live.overview import overview_of
from headgate.runtime.live.status import drawing_of, explanation_of, health_of, starting, status_of
from headgate.runtime.live.why import why_of
from headgate.runtime.members.membership import Membership
from headgate.runtime.run.rehearsal import Rehearsal


class Inspection:
    """What can be asked about a Headgate, before the start and while it runs.

    Args:
        membership: the streams and queries, with the engine and the run once they exist.
        rehearsal: the rehearsal of the queries, whose progress is part of the status.
    """

    def __init__(self, policy: Policy, membership: Membership, rehearsal: Rehearsal) -> None:
        self.policy, self._membership, self._rehearsal = policy, membership, rehearsal
        self._spelling: str | None = None
        """The text of the policy, if `set_policy` got a text."""
        self._earlier_policies: list[str] = []
        self._stopped = False
        self.changes = Changes(membership.state)

    def query(self, name: str) -> QueryHandle:
        """Return the handle of a query."""
        return QueryHandle(self._membership.query(name), self.explanation, self.why)

    def report(self) -> Report:
        """Return the report of the run so far. It names all policies that were in charge, in order.

        Raises:
            ConfigRefused: the run has not started; so with all methods that need it.
        """
        policies = [*self._earlier_policies, self._named_policy()]
        return self._membership.run_for("report").report(", then ".join(policies))

    def totals(self) -> dict[str, tuple[int, int]]:
        """Return how many tuples every query has consumed and produced, over all runs."""
        return self._membership.engine_for("totals").totals()

    def accounts(self) -> dict[str, Account]:
        """Return what became of all tuples, by query, over all runs.

        For every query, arrived = delivered + filtered + queued + shed + missed + late +
        dead_lettered.
        """
        return self._membership.engine_for("accounts").accounts()

    def explanation(self, name: str) -> Explanation:
        """Return how a query runs: operators, shared code, lane, figures, sink, cursor, policy."""
        return explanation_of(
            self._membership.query(name), self._membership, self.policy_in_charge()
        )

    def drawing(self) -> Drawing:
        """Return the network: streams, the parts that queries share, queries and their sinks."""
        return drawing_of(self._membership, self.policy_in_charge())

    def policy_in_charge(self) -> str:
        """Return the policy as it was written; for `amos`, also the policy whose turn it is.

        If the policy has failed, the answer says why, and which one decides in its place.
        """
        name = self.policy_text
        engine, run = self._membership.engine, self._membership.run
        if run is not None and run.scheduler.policy_error:
            return f"{name}, replaced by {run.scheduler.policy.name}: {run.scheduler.policy_error}"
        if isinstance(self.policy, Amos) and engine is not None:
            return f"{name}, at present {self.policy.in_charge(engine.now_s()).name}"
        return name

    @property
    def policy_text(self) -> str:
        """The policy with its parameters, as it can be set again."""
        return self._spelling or self.policy.spelled or self.policy.name

    def policy_explanation(self) -> dict[str, Any]:
        """Return the policy; of `amos`, also every score, and who was in charge when, and why."""
        return policy_explanation(self.policy, self.policy_in_charge())

    def _named_policy(self) -> str:
        """Return the policy with its parameters; for `amos`, also those that had a turn."""
        policy = self.policy
        name = self.policy_text
        if not isinstance(policy, Amos):
            return name
        turns = zip(policy.candidates, policy.turns, strict=False)  # the loop may add one just now
        chosen = [candidate.policy.name for candidate, turn in turns if turn]
        return f"{name}, in turn {', '.join(chosen)}" if chosen else name

    def status(self) -> dict[str, Any]:
        """Return the policy, the streams and every query's state and figures, as plain data.

        `differs` has, in sentences, what requests have changed of the pipeline file.

        Before the first tuple there is also `starting`: how many queries are `rehearsed`, and `of`
        how many.
        """
        run = self._membership.run
        if run is None:
            status = self._starting()
        else:
            status = status_of(self._membership, run, self.policy_in_charge())
        return {**status, "differs": self.changes.differences()}

    def _starting(self) -> dict[str, Any]:
        rehearsed_of = self._rehearsal.rehearsed_of
        return starting(self._membership, self._spelling or self.policy.name, rehearsed_of)

    def overview(self) -> dict[str, Any]:
        """Return what a page shows of a run: its classes and queries by name, as plain data.

        Before the first tuple, there is only `starting` besides the queries.
        """
        run = self._membership.run
        if run is None:
            status = self._starting()  # not `status`: the start may end at this moment
            rows = {row["query"]: {"class": row["class"], "state": row["state"]}
                    for row in status["queries"]}  # fmt: skip
            return {"policy": status["policy"], "queries": rows, "starting": status["starting"]}
        return overview_of(self._membership, run, self.policy_in_charge(), self.used)

    def why(self, name: str, at_s: float | None = None) -> dict[str, Any]:
        """Return why the slowest result of a call of a query took so long, as plain data.

        Its `parts` add up to the response time: until the tuple was in the log (`source`), until
        its `turn`, attempts that failed and their `retry`, and `running` until the commit. The
        calls that ran while it waited for its turn are in `instead`. The last hour is recorded, in
        at most 100 MB.

        Args:
            at_s: when the results were committed, in seconds since 1970; the nearest call is taken.
                None: the worst call of the last minute or, without any, of all that are recorded.

        Raises:
            RequestRefused: no call with results is recorded.
        """
        return why_of(self._membership, self._membership.run_for("why"), name, at_s)

    def watch(self, *, seconds: float = 60.0, every_s: float = 1.0) -> None:
        """Show the classes in the cell of a notebook, until the time is up or the cell is stopped.

        Stopping the cell does not stop the run.
        """
        watch(self, seconds=seconds, every_s=every_s)

    def _repr_html_(self) -> str:
        return overview_html(self.overview())

    def responses(self) -> tuple[dict[str, Histogram], dict[str, Histogram]]:
        """Return histograms of the response times of this run, by query and by class."""
        return self._membership.run_for("responses").responses()

    def health(self) -> dict[str, Any]:
        """Return whether the run is `healthy`, and `ready`: its start is complete.

        It is healthy while it goes on, no query has failed and no stream has stopped.
        """
        return health_of(self._membership)

    @property
    def running(self) -> bool:
        """Whether the start is complete: tuples are ingested, all can be inspected and changed."""
        return self._membership.run is not None and not self._stopped

    @property
    def settings(self) -> Settings:
        """The settings of the run."""
        return self._membership.settings

    @property
    def used(self) -> dict[str, float]:
        """The shares of the budgets for memory and log that are in use."""
        budget = self._membership.engine_for("used").budget
        return {"memory": budget.memory, "log": budget.log}

    @property
    def queries(self) -> tuple[QueryHandle, ...]:
        queries = tuple(self._membership.queries.values())  # at once: other threads add and drop
        return tuple(QueryHandle(query, self.explanation, self.why) for query in queries)

    def _refuse_stopped(self, method: str) -> None:
        """Raise ConfigRefused if a method cannot work any more."""
        if self._stopped:
            raise ConfigRefused(
                path="headgate", key=method, value=None,
                expected="called before stop; a new Headgate with the same `state` resumes",
            )  # fmt: skip
