"""STATE/changes.jsonl: what was changed in a run by request, so that the next start keeps it."""

import json
import logging
from dataclasses import asdict, dataclass, field
from pathlib import Path as File
from typing import Any, Literal

from headgate.access import PRIVATE

log = logging.getLogger("headgate")

FILE = "changes.jsonl"

Kind = Literal[
    "policy", "specification", "query", "sql", "add", "drop", "drop stream", "pause", "resume",
    "restart", "library",
]  # fmt: skip

FINAL: tuple[Kind, ...] = ("drop", "drop stream", "restart", "library")
"""What cannot be undone."""


@dataclass(frozen=True)
class Change:
    """One change.

    Args:
        origin: who has asked for it.
        name: the query, the stream or, of an addition, all names; "" of a policy.
        before, after: the values that it has changed; of an addition the fragment.
        undoes: the number of the change that it has undone.
    """

    number: int
    at_s: float
    origin: str
    kind: Kind
    name: str = ""
    before: Any = None
    after: Any = None
    undoes: int | None = None


@dataclass
class Standing:
    """What all changes together have made of the pipeline file.

    Args:
        replaced: what was dropped and then added anew, whatever the file has of these names.
    """

    policy: str | None = None
    specification: Any = None
    queries: dict[str, dict[str, Any]] = field(default_factory=dict)
    added: dict[str, Any] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    replaced: set[str] = field(default_factory=set)

    def take(self, change: Change) -> None:
        """Take another change into account."""
        match change.kind:
            case "policy":
                self.policy, self.specification = change.after, None
            case "specification":
                self.specification = change.after
            case "query":
                self.queries.setdefault(change.name, {}).update(change.after)
            case "sql":
                self.queries.setdefault(change.name, {})["sql"] = change.after
            case "add":
                self.added[change.name] = change.after
                self.replaced |= self.dropped & {*change.name.split(", ")}
                self.dropped -= {*change.name.split(", ")}
            case "drop" | "drop stream":
                for name in change.name.split(", "):
                    self.queries.pop(name, None)
                    self.dropped.add(name)
                    self.replaced.discard(name)


class Changes:
    """The log of changes of a state directory, and what they have made of its pipeline file."""

    def __init__(self, state: File, *, fresh: bool = False) -> None:
        self._file = state / FILE
        self.entries: list[Change] = []
        self.standing = Standing()
        self._is_torn = False
        """Whether the last line was not written to its end."""
        self.of_file: dict[str, Any] = {"policy": None, "queries": {}}
        """The policy and the queries as the pipeline file has them."""
        for line in () if fresh else self._lines():
            try:
                self._take(Change(**json.loads(line)))
            except (ValueError, TypeError):  # the last line of a run that was killed
                log.warning("%s: a line cannot be read and is left out", FILE)

    def note(self, at_s: float, origin: str, kind: Kind, **values: Any) -> Change:
        """Write a change that was made into the log, and return it."""
        number = self.entries[-1].number + 1 if self.entries else 1
        change = Change(number, at_s, origin, kind, **values)
        self._take(change)
        try:
            if not self._file.exists():
                PRIVATE.touch(self._file)
            with self._file.open("a", encoding="utf-8") as file:
                line = json.dumps(asdict(change), separators=(",", ":")) + "\n"
                file.write(f"\n{line}" if self._is_torn else line)
            self._is_torn = False
        except OSError as error:
            self._is_torn = True  # perhaps a part of the line is in it
            log.warning("%s could not be written: %s", FILE, error)
        return change

    def begin_fresh(self) -> None:
        """Forget all changes: the state directory begins without what was in it."""
        self.entries, self.standing = [], Standing()

    def to_list(self) -> list[dict[str, Any]]:
        """Return all changes, the last one first, with whether each can be undone."""
        undone = {change.undoes for change in self.entries}
        return [
            {**asdict(change), "undone": change.number in undone,
             "can_undo": self._can_undo(change, undone)}
            for change in reversed(self.entries)
        ]  # fmt: skip

    def of_number(self, number: int) -> Change | None:
        """Return a change that can be undone; None without one of this number."""
        undone = {change.undoes for change in self.entries}
        for change in self.entries:
            if change.number == number and self._can_undo(change, undone):
                return change
        return None

    def begin_without_file(self, policy: str, queries: dict[str, Any]) -> None:
        """Compare with what a program has added before the start, where there is no file.

        Changes of earlier runs then do not last: the program says what it wants.
        """
        if self.of_file["policy"] is None:
            self.standing, self.of_file = Standing(), {"policy": policy, "queries": queries}

    def differences(self) -> list[str]:
        """Return in sentences where the run differs from its pipeline file."""
        standing, queries = self.standing, self.of_file["queries"]
        texts = []
        policy = self.of_file["policy"]
        if standing.policy is not None and standing.policy != policy:
            texts.append(f"policy is {standing.policy}, in the file {policy}")
        if standing.specification is not None:
            texts.append("the specification of amos was changed")
        for name, values in standing.queries.items():
            usual = queries.get(name, {})
            texts += [
                f"query {name}: {key} is {_text(value)}, in the file {_text(usual.get(key))}"
                for key, value in values.items()
                if name in queries and value != usual.get(key)
            ]
        for names in standing.added:
            texts += [
                f"{name} was added and is not in the file"
                for name in names.split(", ")
                if name not in queries and name not in standing.dropped
            ]
        texts += [f"{name} was dropped and is in the file" for name in sorted(standing.dropped)
                  if name in queries]  # fmt: skip
        return texts

    def _can_undo(self, change: Change, undone: set[int | None]) -> bool:
        """Only the last change of a thing can be undone: earlier ones were overwritten."""
        if change.kind in FINAL or change.number in undone or change.undoes is not None:
            return False
        about = (self._subject(change), change.name)
        later = (
            other for other in self.entries
            if other.number > change.number and other.number not in undone and other.undoes is None
        )  # fmt: skip
        return all(
            (self._subject(other), other.name) != about
            and not (other.kind == "drop" and other.name in change.name.split(", "))
            and not (other.kind == "policy" and change.kind == "specification")
            for other in later
        )

    @staticmethod
    def _subject(change: Change) -> str:
        return "pause" if change.kind == "resume" else change.kind

    def _take(self, change: Change) -> None:
        self.entries.append(change)
        self.standing.take(change)

    def _lines(self) -> list[str]:
        try:
            text = self._file.read_text(encoding="utf-8")
        except OSError:
            return []
        self._is_torn = bool(text) and not text.endswith("\n")
        return [line for line in text.splitlines() if line]


def _text(value: Any) -> str:
    return "none" if value is None else str(value)
