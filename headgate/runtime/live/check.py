"""The check of a pipeline file: all mistakes in one pass, with one start of Spark."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path as File
from tempfile import TemporaryDirectory
from typing import Any

from headgate.config import Mistake, Pipeline, Validation, examine
from headgate.errors import (
    ConfigRefused,
    HeadgateError,
    OptionRefused,
    QueryRefused,
    SparkGone,
    UnknownName,
)
from headgate.extensions import LeftToSpark, Options, sink_entry, source_entry
from headgate.language.streams_in_text import streams_in
from headgate.model.query import Query
from headgate.model.settings import Settings
from headgate.model.stream import Stream
from headgate.policies import Policy, policy_named
from headgate.runtime.live.changes import Changes
from headgate.runtime.live.environment_checks import missing_jars, ports_in_use, unwritable
from headgate.runtime.live.headgate import Headgate
from headgate.runtime.modules import load_module
from headgate.runtime.pipeline import policy_of, refuse_off_spark
from headgate.runtime.policy_text import spelled
from headgate.runtime.run.spark_room import spark_room
from headgate.runtime.views import reading_order

Place = tuple[str, ...]


@dataclass(frozen=True)
class Checked:
    """What the check of a pipeline file has found.

    Args:
        pipeline: the file without its wrong parts; None if nothing is left of it.
        unread: queries that were not analyzed, since a stream that they read is refused.
        notes: what is no mistake, but may be other than expected.
    """

    file: str
    pipeline: Pipeline | None
    mistakes: tuple[Mistake, ...]
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        pipeline = self.pipeline
        return {
            "file": self.file,
            "streams": 0 if pipeline is None else len(pipeline.streams),
            "queries": 0 if pipeline is None else len(pipeline.queries),
            "mistakes": [asdict(mistake) for mistake in self.mistakes],
            "unread": list(self.unread),
            "notes": list(self.notes),
        }


def check(
    file: str,
    environment: Mapping[str, str] | None = None,
    *,
    modules: Sequence[str] = (),
    policy: str | None = None,
    fresh: bool = False,
    **flags: Any,
) -> Checked:
    """Check a pipeline file as a run would read it; nothing is written to its state directory.

    Args:
        modules: files or modules with policies, sources and sinks of the user's own.
        policy: the policies of the run, as written on a command line; by default that of the file.
        fresh: whether the run begins without what an earlier one has left in its state directory.

    Raises:
        ConfigRefused: the file is missing, is not YAML, or is no mapping.
    """
    wrong_modules = list(_wrong_modules(modules))
    examination = examine(file, environment, **flags)
    mistakes, pipeline = examination.mistakes, examination.pipeline
    unread: list[str] = []
    notes: list[str] = []
    if pipeline is not None:
        checks = _Checks(examination, pipeline)
        checks.surroundings()
        checks.analyze(checks.policy(policy))
        if not fresh and checks.policies == 1:
            checks.compare_texts()
        unread = checks.unread
        streams = pipeline.stream_models()
        notes = [s.unwatched for s in streams if s.ingest == "spark" and s.unwatched]
    ordered = (*wrong_modules, *sorted(mistakes, key=lambda mistake: mistake.line or 0))
    return Checked(file, pipeline, ordered, tuple(unread), tuple(notes))


def _wrong_modules(modules: Sequence[str]) -> Iterator[Mistake]:
    for name in modules:
        try:
            load_module(name)
        except ConfigRefused as refused:
            text = f"--module is {name!r}, but must be {refused.expected}."
            yield Mistake("the command line", None, "--module", text)


class _Checks:
    """Checks of a file that has been examined; they add to its mistakes."""

    def __init__(self, examination: Validation, pipeline: Pipeline) -> None:
        self._examination, self._pipeline = examination, pipeline
        self.unread: list[str] = []
        self.policies = 1
        """How many policies run; several have a fresh folder each."""
        streams = examination.document.data.get("streams")
        self._refused = {*(streams if isinstance(streams, dict) else ())} - {*pipeline.streams}
        """Streams of unknown columns."""

    def policy(self, text: str | None) -> Policy:
        """Return the policy of the run; another one if it is refused."""
        try:
            if text is not None:
                chosen = [policy.make() for policy in spelled(text)]
            else:
                chosen = [policy_of(self._pipeline)]
            self.policies = len(chosen)
            for policy in chosen:
                refuse_off_spark(policy)
        except HeadgateError as error:
            if text is not None:
                file, key = "the command line", "--policy"
                self._examination.mistakes.append(Mistake(file, None, key, f"{key}: {error}"))
            elif not self._examination.has_mistake("policy"):
                wrong = "name"
                if isinstance(error, UnknownName) and error.kind == "parameter":
                    wrong = error.name
                self._add(("policy", wrong), str(error))
            return policy_named("rr")
        return chosen[0]

    def surroundings(self) -> None:
        """Check directories, jars, ports and brokers."""
        pipeline = self._pipeline
        folders: dict[Place, str | None] = {("state",): pipeline.state}
        for name, stream in pipeline.streams.items():
            folders["streams", name, "late_path"] = stream.late_path
            self._ask(("streams", name), source_entry(stream.format), stream.options)
        for name, query in pipeline.queries.items():
            folders["queries", name, "sink", "path"] = query.sink.path
            sink: Place = ("queries", name, "sink")
            self._ask(sink, sink_entry(query.sink.format), query.sink.options)
        for place, folder in folders.items():
            if not folder or self._examination.has_mistake(*place):
                continue
            if reason := unwritable(File(folder)):
                self._expect(place, folder, f"a directory that can be written: {reason}")
        for key, value in pipeline.spark.config.items():
            setting: Place = ("spark", "config", key)
            for jar in missing_jars(key, value):
                self._expect(setting, value, f"files that exist: there is no {jar}")
            if reason := ports_in_use(key, value):
                self._expect(setting, value, f"a free port: {reason}")

    def analyze(self, policy: Policy) -> None:
        """Let Spark open the streams and analyze the queries."""
        pipeline = self._pipeline
        with TemporaryDirectory() as state:
            try:
                gate = Headgate(
                    state=state, policy=policy,
                    classes={name: vars(section) for name, section in pipeline.classes.items()},
                    master=pipeline.spark.master, spark_config=pipeline.spark.config,
                    **pipeline.model_dump(include=set(Settings.model_fields)),
                )  # fmt: skip
            except ConfigRefused as refused:
                place = ("spark", *refused.key.split("."))
                self._expect(place, refused.value, refused.expected)
                return
            try:
                for stream in pipeline.stream_models():
                    self._add_stream(gate, stream)
                for query in self._ordered(list(pipeline.query_models())):
                    self._add_query(gate, query)
            finally:
                gate.stop()

    def compare_texts(self) -> None:
        """Compare the texts of queries with those of the last run, as a start does."""
        pipeline, standing = self._pipeline, Changes(File(self._pipeline.state)).standing
        texts = {
            query.name: standing.queries.get(query.name, {}).get("sql", query.sql)
            for query in pipeline.query_models()
            if query.name not in standing.dropped | standing.replaced
        }
        for name, refusal in spark_room().other_texts(File(pipeline.state), texts).items():
            section = "views" if name in pipeline.views else "queries"
            self._add((section, name, "sql"), str(refusal).removeprefix(f"query '{name}': "))

    def _add_stream(self, gate: Headgate, stream: Stream) -> None:
        try:
            gate.add_stream(stream)
        except SparkGone:
            raise
        except HeadgateError as error:
            place: Place = ("streams", stream.name)
            if isinstance(error, ConfigRefused):
                key = {"source": "format"}.get(error.key, error.key)
                self._expect((*place, *key.split(".", 1)), error.value, error.expected)
            else:
                self._add(place, str(error))
            if not _add_substitute(gate, stream):
                self._refused.add(stream.name)

    def _add_query(self, gate: Headgate, query: Query) -> None:
        section = "views" if query.name in self._pipeline.views else "queries"
        place: Place = (section, query.name)
        if streams_in(query, self._refused):
            self.unread.append(query.name)
        else:
            try:
                gate.add_query(query)
            except QueryRefused as error:
                self._refuse_text(place, error)
            except ConfigRefused as error:
                self._expect((*place, *error.key.split(".", 2)), error.value, error.expected)
            except SparkGone:
                raise
            except HeadgateError as error:
                self._add((*place, "sql"), str(error).removeprefix(f"query '{query.name}': "))
            else:
                return
        if query.into is not None:
            self._refused.add(query.into)

    def _ordered(self, queries: list[Query]) -> list[Query]:
        """Return the queries in an order in which they can be added, without those in a cycle."""
        while True:
            try:
                return reading_order(queries)
            except ConfigRefused as error:
                cycle = str(error.value).split(" -> ")
                views = self._pipeline.views
                place = ("views" if cycle[0] in views else "queries", cycle[0])
                self._expect(place, error.value, f"without the cycle: {error.expected}")
                self._refused |= {q.into for q in queries if q.name in cycle and q.into}
                queries = [query for query in queries if query.name not in cycle]

    def _refuse_text(self, place: Place, error: QueryRefused) -> None:
        """Add the refusal of a query, at the key that its clause names or in its text."""
        word, _, rest = error.clause.partition(" ")
        keys: Place = ("sql",)
        if word in ("sink", "cut", "event_time", "on_error"):
            keys = (word, *rest.split(" ")[0].split(".", 1)) if word == "sink" else (word,)
        document = self._examination.document
        line = document.line_in((*place, *keys), error.line)
        key = ".".join((*place, *keys))
        text = f"{key}: {error.clause} {error.reason}.\nFix: {error.fix}"
        self._examination.mistakes.append(Mistake(document.path, line, key, text))

    def _ask(self, place: Place, entry: Any, options: Mapping[str, Any]) -> None:
        """Ask the system outside that a stream or sink names whether it answers."""
        if entry is None:
            return
        try:
            entry.ask(Options({key: str(value) for key, value in options.items()}))
        except OptionRefused as refused:
            keys = refused.key.split(".", 1)
            self._expect((*place, *keys), refused.value, refused.expected)

    def _expect(self, place: Place, value: object, expected: str) -> None:
        file, key = self._examination.document.path, ".".join(place)
        refusal = ConfigRefused(path=file, key=key, value=value, expected=expected)
        self._examination.mistakes.append(self._examination.mistake(place, refusal))

    def _add(self, place: Place, text: str) -> None:
        examination, key = self._examination, ".".join(place)
        mistake = Mistake(examination.document.path, examination.line(place), key, f"{key}: {text}")
        examination.mistakes.append(mistake)


def _add_substitute(gate: Headgate, stream: Stream) -> bool:
    """Add a stream with the same columns and no source, so that its readers can be analyzed.

    Return False if its columns are not known.
    """
    entry = source_entry(stream.format)
    with suppress(HeadgateError, LeftToSpark):
        columns = stream.schema or ("" if entry is None else entry.columns_of(stream.options))
        if columns:
            empty = replace(stream, format="python", options={}, schema=columns, ingest="auto")
            gate.add_stream(empty, rows=lambda first: ())
            return True
    return False
