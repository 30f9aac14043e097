"""Recordings: the events that a run's scheduler received, when it planned, what it started.

A recording is a folder with a file for each run. The first line of a file holds the network, the
settings, and the statistics at the start. Then comes a line for each turn of the loop: the event,
the instant of the plan, the calls that were started. The last line, of a run that was stopped
cleanly, holds the statistics at the end. Numbers are read back exactly as they were written.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path as File
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field
from pydantic_core import to_json

from headgate.errors import ConfigRefused
from headgate.model.events import NetworkChanged
from headgate.model.network.network import Network, Path
from headgate.model.network.units import SharedPriority
from headgate.model.plan import ALL, Lane
from headgate.model.query import QueryStatistics
from headgate.runtime.recording.network_data import NetworkData, RecordedStatistics
from headgate.runtime.recording.turns import Turn, TurnReader, turn_data

FOLDER, FORMAT = "recording", 3


@dataclass(frozen=True)
class Settings:
    """The settings of a scheduler, besides the network.

    Args:
        known: the statistics of the queries at the start.
        ids: those of the network. Old recordings, and simulations, identify queries by position.
    """

    policy: str
    workers: int
    train_tuples: Annotated[int, BeforeValidator(lambda tuples: tuples or ALL)]
    most_fused: int
    call_bytes: Annotated[float, BeforeValidator(lambda size: inf if size is None else size)]
    first_trains: tuple[int, ...]
    cursors: tuple[int, ...]
    known: Mapping[str, RecordedStatistics]
    groups: tuple[int, ...] = ()
    # The field was called `sharing` in earlier versions; before it existed, runs used `max`.
    shared_priority: Annotated[
        SharedPriority, Field(validation_alias=AliasChoices("shared_priority", "sharing"))
    ] = "max"
    lane: Lane | None = None
    # Calls of earlier versions had no limit of seconds.
    call_s: Annotated[float, BeforeValidator(lambda limit: inf if limit is None else limit)] = inf
    ids: tuple[int, ...] = ()


class Header(BaseModel):
    """The first line of a recording."""

    format: int = FORMAT
    network: NetworkData
    settings: Settings


class Footer(BaseModel):
    """The last line of a run that ends cleanly."""

    learned: Mapping[str, RecordedStatistics]


@dataclass(frozen=True)
class Recording:
    """One recorded run.

    Args:
        network: the network at the start.
        learned: the statistics of the queries at the end; empty if the run did not end cleanly.
    """

    file: File
    network: Network
    settings: Settings
    turns: tuple[Turn, ...]
    learned: Mapping[str, QueryStatistics]

    @cached_property
    def _networks(self) -> list[Network]:
        changes = [t.event.network for t in self.turns if isinstance(t.event, NetworkChanged)]
        return [self.network, *changes]

    @property
    def last_network(self) -> Network:
        """The network at the end. It has all streams of the run, but no dropped query."""
        return self._networks[-1]

    @cached_property
    def paths(self) -> dict[int, Path]:
        """By id, the paths that were in the network at any time of the run."""
        return {
            number: network.paths[place]
            for network in self._networks
            for number, place in network.places.items()
        }


def header_of(network: Network, settings: Settings) -> str:
    """Return the first line of a recording, without options and paths of sources and sinks."""
    return _line(Header(network=NetworkData.of(network), settings=settings))


def line_of(turn: Turn) -> str:
    """Return the line of one turn."""
    return _line(turn_data(turn))


def footer_of(learned: Mapping[str, QueryStatistics]) -> str:
    """Return the last line of a run that ends cleanly."""
    return _line(Footer(learned=learned))


def read_recording(path: str | File) -> Recording:
    """Read one run: a file, or the last file of a recording or of a state directory.

    A line that a crash has left unfinished is dropped, with all that follows it.

    Raises:
        ConfigRefused: there is no recording, or it has another format.
    """
    file = _file_of(File(path))
    lines = _lines(file)
    first = next(lines, None)
    if not isinstance(first, dict) or first.get("format") != FORMAT:
        expected = f"a recording of format {FORMAT}"
        raise ConfigRefused(path=str(path), key="recording", value=file.name, expected=expected)
    header = Header.model_validate(first)
    network = replace(header.network.network(), ids=header.settings.ids)
    reader, turns, learned = TurnReader(network), [], {}
    for line in lines:
        if isinstance(line, dict):
            learned = dict(Footer.model_validate(line).learned)
        else:
            turns.append(reader.turn(line))
    return Recording(file, network, header.settings, tuple(turns), learned)


def _file_of(path: File) -> File:
    if path.is_file():
        return path
    for folder in (path / FOLDER, path):
        if files := sorted(folder.glob("*.jsonl")):
            return files[-1]
    expected = "a recording, or a state directory with one: `headgate run --record` makes it"
    raise ConfigRefused(path=str(path), key="recording", value=None, expected=expected)


def _lines(file: File) -> Iterator[Any]:
    with file.open(encoding="utf-8") as text:
        for line in text:
            if not line.endswith("\n"):
                return
            try:
                yield json.loads(line)
            except ValueError:
                return


def _line(data: Any) -> str:
    return to_json(data, by_alias=True, fallback=lambda number: number.item()).decode() + "\n"
