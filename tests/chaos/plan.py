"""The plan of a run of the harness: which faults, in which groups, all drawn from a seed."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from shutil import rmtree

from chaos import faults
from chaos.broker import Topic, broker_away
from chaos.chain import Chain, Wrong
from chaos.disks import mount, unmount
from chaos.faults import Fault, killed_at
from chaos.pipeline import Forest
from chaos.runs import Jvm
from headgate.errors import HeadgateError


class Impossible(Exception):
    """A group of faults cannot be made on this machine."""


LONGEST = 12
"""A group has at most so many faults: its input grows, and its JVM collects what runs leave."""


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    Args:
        group: what its chains are like: faults of different groups do not share one.
        number: how many there are in a run of the harness.
    """

    group: str
    number: int
    strike: Fault


KINDS = {
    "driver killed at any instant": Kind("kill", 20, faults.killed_at_any_instant),
    "driver killed between source and log": Kind("kill", 14, killed_at(faults.TO_THE_LOG)),
    "driver killed inside a commit": Kind("kill", 20, killed_at(faults.IN_COMMITS)),
    "driver killed inside a compaction": Kind("kill", 12, killed_at(faults.IN_COMPACTIONS, 2)),
    "driver killed inside a delivery": Kind("kill", 6, killed_at(faults.IN_DELIVERIES, 2)),
    "driver killed twice, inside recovery too": Kind("kill", 6, faults.killed_in_recovery),
    "driver killed inside `alter`": Kind("kill", 9, faults.killed_in_alter),
    "driver killed after `alter`": Kind("kill", 4, faults.altered),
    "driver killed inside `restart`": Kind("kill", 8, faults.killed_in_restart),
    "driver stopped for seconds (SIGSTOP)": Kind("kill", 8, faults.paused),
    "results taken away by a consumer": Kind("kill", 6, faults.results_taken),
    "second run on the same state": Kind("kill", 6, faults.second_run),
    "source directory away for seconds": Kind("kill", 5, faults.source_away),
    "driver killed, through Structured Streaming": Kind(
        "streaming", 8, killed_at((*faults.TO_THE_LOG[:3], *faults.IN_COMMITS))
    ),
    "Python function hangs": Kind("hang", 6, faults.function_hangs),
    "disk of the state full": Kind("disk", 6, faults.state_disk_full),
    "disk of a sink full": Kind("disk", 4, faults.sink_disk_full),
    "directory of a sink read-only": Kind("disk", 4, faults.sink_read_only),
    "shared memory full": Kind("memory", 5, faults.shared_memory_full),
    "JVM killed alone": Kind("process", 10, faults.jvm_killed),
    "SIGTERM to the process group": Kind("process", 8, faults.group_terminated),
    "SIGKILL to the process group": Kind("process", 6, faults.group_killed),
    "process group stopped for seconds": Kind("process", 4, faults.group_paused),
    "broker away": Kind("broker", 3, broker_away),
}


@dataclass(frozen=True)
class Planned:
    """A fault that is to be made; its number decides all of its random choices."""

    number: int
    kind: str


@dataclass(frozen=True)
class Outcome:
    """What came of a fault."""

    number: int
    kind: str
    lost: int = 0
    twice: int = 0
    refused: int = 0
    wrong: str = ""
    seconds: float = 0.0


def groups_of(seed: int, share: float = 1.0) -> list[tuple[str, list[Planned]]]:
    """Return all faults of a seed in groups, each with the name of its surroundings.

    Args:
        share: the part of the faults of each kind that are made, at least one.
    """
    rng, number = Random(seed), 0
    by_group: dict[str, list[Planned]] = {}
    for name, kind in KINDS.items():
        for _ in range(max(1, round(kind.number * share))):
            by_group.setdefault(kind.group, []).append(Planned(number, name))
            number += 1
    groups = []
    for name, planned in by_group.items():
        rng.shuffle(planned)
        groups += [
            (begin, name, planned[begin : begin + LONGEST])
            for begin in range(0, len(planned), LONGEST)
        ]
    # First one of each kind of surroundings: a run that is cut short has seen all of them.
    return [(name, planned) for begin, name, planned in sorted(groups, key=lambda group: group[0])]


def outcomes(folder: Path, seed: int, group: str, planned: Sequence[Planned]) -> Iterator[Outcome]:
    """Strike with the faults of a group one after the other, on one state directory.

    A state directory in which something was lost, or went wrong, is kept. The next fault then
    begins with a new one.
    """
    left = list(planned)
    while left:
        place = folder / f"{left[0].number:03d}"
        rmtree(place, ignore_errors=True)
        with surroundings(place, group, seed) as chain:
            while left:
                fault = left.pop(0)
                outcome = strike(chain, fault, Random(f"{seed} {fault.number}"))
                yield outcome
                if outcome.lost or outcome.twice or outcome.wrong:
                    break
            else:
                chain.close()
                rmtree(place / "state", ignore_errors=True)


def strike(chain: Chain, fault: Planned, rng: Random) -> Outcome:
    """Make a fault, then check the journal, the accounts and the results."""
    began_s, chain.refusals = time.monotonic(), 0
    lost = twice = 0
    wrong = ""
    try:
        if not chain.is_alive:
            chain.offer()
            chain.resume()
            chain.settle()
        KINDS[fault.kind].strike(chain, rng)
        chain.check_journal()
        chain.resume()
        chain.settle()
        differences = chain.differences()
        lost, twice, wrong = differences.lost, differences.twice, "; ".join(differences.notes)
    except (Wrong, HeadgateError, TimeoutError, AssertionError, OSError) as error:
        wrong = f"{type(error).__name__}: {error}"
    seconds = time.monotonic() - began_s
    return Outcome(fault.number, fault.kind, lost, twice, chain.refusals, wrong, seconds)


@contextmanager
def surroundings(place: Path, group: str, seed: int) -> Iterator[Chain]:
    """Yield a chain with the surroundings of a group: its JVM, its disks, its input.

    Raises:
        Impossible: this machine does not allow them.
    """
    if group in ("disk", "memory") and os.geteuid() != 0:
        raise Impossible("only root may mount file systems")
    place.mkdir(parents=True)
    jvm = None if group in ("memory", "process") else Jvm(place / "spark")
    small, far = place / "small", place / "far"
    chain: Chain | None = None
    try:
        if group == "disk":
            if not (mount(small, "48m") and mount(far, "4m")):
                raise Impossible("this process may not mount file systems")
            world = Forest(place, far=far / "results", retention_s=3600)
            chain = Chain(place, world, jvm=jvm, state=small / "state")
        elif group == "hang":
            world = Forest(place, hangs=True, retention_s=3600, call_timeout_s=20)
            chain = Chain(place, world, jvm=jvm)
        elif group == "broker":
            chain = Chain(place, _topic(place), jvm=jvm)
        else:
            world = Forest(place, "spark" if group == "streaming" else "auto")
            chain = Chain(place, world, jvm=jvm, small_memory=group == "memory")
        yield chain
    finally:
        if chain is not None:
            chain.close()
            if isinstance(chain.world, Topic):
                chain.world.broker.stop()
        if jvm is not None:
            jvm.close()
        for disk in (small, far):
            with suppress(OSError):
                unmount(disk)


def _topic(place: Path) -> Topic:
    try:
        return Topic(place)
    except (OSError, AssertionError) as error:
        raise Impossible(f"no broker: {error}") from error
