"""Which way a call takes: rows through the driver without a job, or a Spark job."""

from dataclasses import dataclass

from headgate.model.plan import Lane

MOST_TUPLES = 200_000
"""More never pass through the driver in one call."""


class Cost:
    """Seconds of a call as o + c n, learned from calls by recursive least squares.

    >>> cost = Cost(0.05, 1e-6)
    >>> for n in (100, 1000, 5000) * 20:
    ...     cost.learn(n, 0.01 + n * 2e-5)
    >>> round(cost.seconds(2000), 3)
    0.05
    """

    def __init__(self, overhead_s: float, tuple_s: float) -> None:
        self.overhead_s, self.tuple_s = overhead_s, tuple_s
        self._variance = [overhead_s**2, 0.0, tuple_s**2]
        self.calls = 0

    def seconds(self, tuples: int) -> float:
        return self.overhead_s + self.tuple_s * tuples

    def learn(self, tuples: int, seconds: float) -> None:
        a, b, d = self._variance
        # What was learned long ago counts less: the JVM gets warm, the load changes.
        a, d = a + (0.05 * self.overhead_s) ** 2, d + (0.05 * self.tuple_s) ** 2
        gain_o, gain_c = a + b * tuples, b + d * tuples
        spread = gain_o + gain_c * tuples + (0.2 * seconds) ** 2 + 1e-12
        error = seconds - self.seconds(tuples)
        self.overhead_s = max(1e-4, self.overhead_s + gain_o / spread * error)
        self.tuple_s = max(1e-9, self.tuple_s + gain_c / spread * error)
        self._variance = [
            a - gain_o * gain_o / spread,
            b - gain_o * gain_c / spread,
            d - gain_c * gain_c / spread,
        ]
        self.calls += 1


@dataclass
class Lanes:
    """The two ways of one group of queries; first figures are those of a filter on two cores."""

    driver: Cost
    job: Cost
    driver_can: bool = True
    fixed: Lane | None = None

    @classmethod
    def new(cls, fixed: Lane | None = None) -> "Lanes":
        return cls(Cost(0.008, 4e-6), Cost(0.09, 3e-6), fixed=fixed)

    def choose(self, tuples: int) -> Lane:
        """Gives the cheaper way for so many tuples."""
        if self.fixed is not None and (self.driver_can or self.fixed == "job"):
            return self.fixed
        if not self.driver_can or tuples > MOST_TUPLES:
            return "job"
        return "driver" if self.driver.seconds(tuples) <= self._job_s(tuples) else "job"

    def _job_s(self, tuples: int) -> float:
        """Gives what a job would take; until one has run, a tuple costs it no less than the driver.

        A guess that is too low sends long queues to jobs whose code is still to be generated, and
        the queues grow meanwhile.
        """
        if self.job.calls:
            return self.job.seconds(tuples)
        return self.job.overhead_s + max(self.job.tuple_s, self.driver.tuple_s) * tuples

    def learn(self, lane: Lane, tuples: int, seconds: float) -> None:
        (self.driver if lane == "driver" else self.job).learn(tuples, seconds)

    def why(self, tuples: int) -> str:
        """Says which way so many tuples take, and why."""
        if not self.driver_can:
            return "job: it needs more than Spark's code for a row"
        if tuples > MOST_TUPLES:
            return f"job: {tuples} tuples are more than {MOST_TUPLES}"
        expected = (
            ("driver", self.driver, self.driver.seconds(tuples)),
            ("job", self.job, self._job_s(tuples)),
        )
        ways = ", ".join(
            f"{name} {seconds * 1000:.1f} ms ({'measured' if cost.calls else 'guess'})"
            for name, cost, seconds in expected
        )
        return f"{self.choose(tuples)} at {tuples} tuples: {ways}"
