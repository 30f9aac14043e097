"""Validation of a pipeline file: all its mistakes, and the valid rest of the file."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from headgate.config.mistakes import Mistake
from headgate.config.pipeline import Pipeline
from headgate.config.validation_errors import MISSING, refusals_of, taken_names, wrong_queries
from headgate.config.yaml_file import Document, Place, twin_keys
from headgate.errors import ConfigRefused, UnknownKey

MOST_ROUNDS = 100
"""The most times that a file is validated; each time, what was wrong is left out."""


class Validation:
    """The mistakes of a pipeline file, found without Spark.

    Args:
        document: the file.
        changes: values from the environment, by key.
        flags: values from the command line, by key.

    Attributes:
        pipeline: the pipeline without its wrong values; None if nothing can be left out of it.
        mistakes: all mistakes, in the order of the file once `sorted_mistakes` returns them.
    """

    def __init__(
        self, document: Document, changes: Mapping[str, Any], flags: Mapping[str, Any]
    ) -> None:
        self.document = document
        self._origins = {
            **{key: ("the environment", f"HEADGATE_{key.upper()}") for key in changes},
            **{key: ("the command line", f"--{key}") for key in flags},
        }
        self._data = deepcopy({**document.data, **changes, **flags})
        self._removed: set[Place] = set()
        self._spelled: dict[Place, Place] = {}
        """The places of misspelled keys, by the places that were meant."""
        self.mistakes = [self.mistake((), refusal) for refusal in twin_keys(document)]
        self.pipeline = self._examine()

    def mistake(self, place: Place, refusal: ConfigRefused) -> Mistake:
        """Return a refusal as a mistake at a place of the file."""
        file, key = self._origins.get(place[0] if place else "", (self.document.path, refusal.key))
        if file == self.document.path:
            return Mistake(file, refusal.line or self.line(place), key, refusal.fault)
        return Mistake(file, None, key, refusal.fault.replace(refusal.key, key, 1))

    def line(self, place: Place) -> int | None:
        """Return the line of a key, even of one that is misspelled."""
        spelled = (self._spelled.get(place[:size]) for size in range(len(place), 0, -1))
        return self.document.line(next(filter(None, spelled), place))

    def has_mistake(self, *place: str) -> bool:
        """Return True if a value at or inside a place was wrong."""
        return any(removed[: len(place)] == place for removed in self._removed)

    def sorted_mistakes(self) -> list[Mistake]:
        """Return the mistakes in the order of the file."""
        return sorted(self.mistakes, key=lambda mistake: mistake.line or 0)

    def _examine(self) -> Pipeline | None:
        for _ in range(MOST_ROUNDS):
            pipeline, refusals = self._validated()
            if not refusals:
                return pipeline
            before = set(self._removed)
            for place, refusal in refusals:
                if self._reports(place, refusal):
                    self.mistakes.append(self.mistake(place, refusal))
                if not self._repair(place, refusal, self._removed - before):
                    return None
        return None

    def _validated(self) -> tuple[Pipeline | None, list[tuple[Place, ConfigRefused]]]:
        path = self.document.path
        try:
            pipeline = Pipeline.model_validate(self._data)
        except ValidationError as error:
            refusals = refusals_of(path, error, self._data, Pipeline)
            # First those that may repair a key which is missing only because it is misspelled.
            return None, sorted(refusals, key=lambda pair: not isinstance(pair[1], UnknownKey))
        names = taken_names(path, pipeline.streams, pipeline.views, pipeline.queries)
        return pipeline, [*names, *wrong_queries(path, pipeline.queries, pipeline.classes)]

    def _reports(self, place: Place, refusal: ConfigRefused) -> bool:
        """Return False if a value is refused only because another mistake was removed."""
        misspelled = refusal.expected == MISSING and place in self._spelled
        replaced = False
        if place[-1:] == ("class",):
            classes = self.document.data.get("classes")
            replaced = isinstance(classes, dict) and refusal.value in [*classes]
        return not (misspelled or replaced or self.has_mistake(*place))

    def _repair(self, place: Place, refusal: ConfigRefused, just_removed: set[Place]) -> bool:
        """Remove the value at a place, or what is around it; return False if nothing is left.

        A misspelled key gets the name that was meant, and a wrong class is replaced by any: the
        rest of the section can then be examined as it is meant.

        Args:
            just_removed: places that were removed since the last validation.
        """
        section = self._section(place)
        if section is None and any(place[:size] in just_removed for size in range(len(place))):
            return True
        if section is not None:
            if isinstance(refusal, UnknownKey) and refusal.nearest is not None:
                self._removed.add(place)
                self._spelled[(*place[:-1], refusal.nearest)] = place
                section.setdefault(refusal.nearest, section.pop(place[-1]))
                return True
            if refusal.expected == MISSING and place[-1] in section:
                return True
            if place == ("state",) or place[-1] == "class":
                self._removed.add(place)
                section[place[-1]] = "state" if place == ("state",) else next(iter(self._classes()))
                return True
        while place:
            self._removed.add(place)
            section = self._section(place)
            if section is not None and place[-1] in section:
                del section[place[-1]]
                return True
            place = place[:-1]
        return False

    def _section(self, place: Place) -> dict[Any, Any] | None:
        """Return the mapping around a place; None if there is none."""
        section: Any = self._data
        for part in place[:-1]:
            section = section.get(part) if isinstance(section, dict) else None
        return section if isinstance(section, dict) else None

    def _classes(self) -> Mapping[str, Any]:
        classes = self._data.get("classes")
        return classes if isinstance(classes, dict) and classes else {"default": 1.0}
