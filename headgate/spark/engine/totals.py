"""Totals over all runs: what has become of the tuples of every query, and the dead letters."""

from headgate.model.account import Account
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal
from headgate.spark.log.dead_letters import letter_counts


class Totals:
    """The totals in the journal. They can still be read once they are frozen and it is closed."""

    def __init__(self, journal: Journal) -> None:
        self._journal, self._cursors = journal, Cursors(journal)
        self._counts: dict[str, tuple[int, int]] | None = None
        self._accounts: dict[str, Account] | None = None
        self._letters: dict[str, int] | None = None
        self._query_letters: dict[str, int] | None = None

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return how many tuples each query has consumed and produced."""
        return self._cursors.counts() if self._counts is None else self._counts

    def accounts(self) -> dict[str, Account]:
        """Return, by query, what has become of its tuples."""
        return self._cursors.accounts() if self._accounts is None else self._accounts

    def dead_letters(self) -> dict[str, int]:
        """Return the number of dead letters of each stream that has any."""
        return letter_counts(self._journal) if self._letters is None else self._letters

    def query_letters(self) -> dict[str, int]:
        """Return the number of dead letters of each query that has any of its own."""
        return self._cursors.dead() if self._query_letters is None else self._query_letters

    def freeze(self) -> None:
        """Keep the totals in memory, before the journal is closed."""
        self._letters, self._query_letters = letter_counts(self._journal), self._cursors.dead()
        self._counts, self._accounts = self._cursors.counts(), self._cursors.accounts()

    @property
    def are_frozen(self) -> bool:
        return self._counts is not None
