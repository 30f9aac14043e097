"""The faults: each function strikes a run that is ready and has nothing to do.

It may leave the run dead or alive. What comes after is the same for all faults (`plan.strike`).
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

from chaos.chain import Chain, Wrong, refused
from chaos.disks import fill, remount
from chaos.pipeline import ALTERED, FAR, HUNG, RESTARTED, TAKEN, Forest, take_away

Fault = Callable[[Chain, Random], None]

TO_THE_LOG = ("train written", "train named", "train journalled", "late tuples put aside",
              "train dropped")  # fmt: skip
IN_COMMITS = ("result written", "results written", "step journalled", "result visible")
IN_COMPACTIONS = ("files merged", "merge journalled", "replaced file removed")
IN_DELIVERIES = ("delivery begun", "result delivered")
IN_ALTER = ("version closed", "query journalled", "version begun")
IN_RESTART = ("sink replaced", "query resumed")
IN_RECOVERY = ("result recovered",)
POINTS = {
    *TO_THE_LOG, *IN_COMMITS, *IN_COMPACTIONS, *IN_DELIVERIES, *IN_ALTER, *IN_RESTART, *IN_RECOVERY,
}  # fmt: skip
"""Every point at which a run of this pipeline can be killed."""

GONE_S = 10.0
"""A run whose JVM is gone must end within this time."""


def killed_at(points: tuple[str, ...], most_times: int = 3) -> Fault:
    """Return the fault that kills a run when it reaches one of some points."""

    def strike(chain: Chain, rng: Random) -> None:
        chain.arm(rng.choice(points), rng.randint(1, most_times))
        chain.offer_until_death()

    return strike


def killed_in_recovery(chain: Chain, rng: Random) -> None:
    """Kill a run that leaves a result without its name, then the next one while it recovers."""
    chain.arm("result visible", rng.randint(1, 3))
    chain.offer_until_death()
    chain.arm(*IN_RECOVERY)
    chain.begin()
    if not chain.dies(60.0):
        raise Wrong("there was nothing to recover")


def killed_at_any_instant(chain: Chain, rng: Random) -> None:
    """Kill a run while it is busy."""
    chain.offer(3)
    chain.run.ended(rng.uniform(0.0, 1.5))
    _kill(chain)


def killed_in_alter(chain: Chain, rng: Random) -> None:
    """Kill a run inside `alter`, while it is busy with other calls."""
    name = rng.choice(list(ALTERED))
    text = ALTERED[name].text(chain.versions()[name] + 1)
    chain.offer()
    chain.run.ended(rng.uniform(0.0, 0.3))
    chain.arm(rng.choice(IN_ALTER))
    refusal = refused(lambda: chain.run.client.alter(name, text))
    if not chain.dies(30.0):
        raise Wrong(f"the run never reached its point in `alter {name}`: {refusal}")


def altered(chain: Chain, rng: Random) -> None:
    """Alter a query of a busy run, and kill the run while the new version is busy."""
    name = rng.choice(list(ALTERED))
    version = chain.versions()[name] + 1
    chain.offer()
    if chain.run.client.alter(name, ALTERED[name].text(version)) != version:
        raise Wrong(f"`alter {name}` did not begin version {version}")
    chain.offer()
    chain.run.ended(rng.uniform(0.0, 1.0))
    _kill(chain)


def killed_in_restart(chain: Chain, rng: Random) -> None:
    """Kill a run inside `restart`, while it is busy with other calls."""
    name = rng.choice(RESTARTED)
    chain.offer()
    chain.run.ended(rng.uniform(0.0, 0.3))
    chain.arm(rng.choice(IN_RESTART))
    refusal = refused(lambda: chain.run.client.repair(name, "restart"))
    if not chain.dies(30.0):
        raise Wrong(f"the run never reached its point in `restart {name}`: {refusal}")


def paused(chain: Chain, rng: Random) -> None:
    """Stop the process for some seconds in the middle of its work."""
    _pause(chain, rng, group=False)


def group_paused(chain: Chain, rng: Random) -> None:
    """Stop the process and its JVM for some seconds."""
    _pause(chain, rng, group=True)


def _pause(chain: Chain, rng: Random, *, group: bool) -> None:
    chain.offer()
    chain.run.ended(rng.uniform(0.0, 0.5))
    chain.run.signal(signal.SIGSTOP, group=group)
    chain.offer()
    time.sleep(rng.uniform(1.0, 4.0))
    chain.run.signal(signal.SIGCONT, group=group)


def results_taken(chain: Chain, rng: Random) -> None:
    """Take result files away, between rename and confirmation or while the run goes on."""
    if rng.random() < 0.7:
        chain.arm("result visible", rng.randint(1, 3))
        chain.offer_until_death()
    else:
        chain.offer()
        chain.run.ended(rng.uniform(0.2, 1.0))
    if not take_away(chain.folder, chain.state, TAKEN):
        raise Wrong("there were no results to take away")


def second_run(chain: Chain, rng: Random) -> None:
    """Start a second run on the same state directory, sometimes with --fresh."""
    chain.offer()
    second = chain.other(*["--fresh"] * rng.randint(0, 1))
    if not second.ended(60.0) or second.process.exitcode != 2:
        second.kill()
        raise Wrong(f"a second run ended with {second.process.exitcode}, not with 2")
    if f"that of process {chain.run.pid}" not in second.printed:
        raise Wrong(f"the refusal does not name process {chain.run.pid}: {second.printed}")
    chain.refusals += 1


def source_away(chain: Chain, rng: Random) -> None:
    """Rename the directory of a source, and bring it back after some seconds."""
    chain.offer()
    chain.run.ended(rng.uniform(0.0, 0.5))
    folder = chain.folder / rng.choice(("sensors", "alarms", "masts"))
    folder.rename(folder.with_name("away"))
    chain.run.ended(rng.uniform(1.0, 4.0))
    folder.with_name("away").rename(folder)
    chain.offer()


def function_hangs(chain: Chain, rng: Random) -> None:
    """Let a Python function hang until its query has failed, then restart the query."""
    hang = chain.folder / "hang"
    hang.touch()
    chain.offer()
    try:
        chain.wait(lambda: chain.states()[HUNG] == "FAILED", "the query that hangs has failed")
    finally:
        hang.unlink()
    others = {name for name, state in chain.states().items() if state == "FAILED"} - {HUNG}
    if others:
        raise Wrong(f"queries failed for another one that hangs: {sorted(others)}")
    chain.offer()
    chain.run.client.repair(HUNG, "restart")


def state_disk_full(chain: Chain, rng: Random) -> None:
    """Fill the disk of the state directory: for a while, until a kill, or also for a start."""
    ballast = fill(chain.state.parent)
    chain.offer()
    try:
        chain.run.ended(rng.uniform(1.0, 4.0))
        way = rng.randrange(3)
        if way:
            chain.run.kill()
        if way == 2:
            chain.begin()
            with suppress(TimeoutError):
                if not chain.run.ready(15.0):
                    chain.refusals += 1
            if "Traceback" in chain.run.printed:
                raise Wrong("a start on a full disk printed a stack trace")
            chain.run.kill()
    finally:
        ballast.unlink()
    for _ in range(0 if way else 6):  # the last attempt of a call may still be under way
        chain.run.ended(0.5)
        chain.repair()


def sink_disk_full(chain: Chain, rng: Random) -> None:
    """Fill the disk under the results of one query until the query has failed."""
    ballast = fill(_disk_of_one_query(chain))
    try:
        _fails_alone(chain, rng)
    finally:
        ballast.unlink()
    chain.run.client.repair(FAR, "restart")


def sink_read_only(chain: Chain, rng: Random) -> None:
    """Make the file system under the results of one query read-only until the query has failed."""
    disk = _disk_of_one_query(chain)
    remount(disk, "ro")
    try:
        _fails_alone(chain, rng)
    finally:
        remount(disk, "rw")
    chain.run.client.repair(FAR, "restart")


def _disk_of_one_query(chain: Chain) -> Path:
    assert isinstance(chain.world, Forest)
    assert chain.world.far is not None
    return chain.world.far.parent


def _fails_alone(chain: Chain, rng: Random) -> None:
    def has_failed() -> bool:
        if chain.states()[FAR] != "FAILED":
            chain.offer(1)  # a query whose input has no results does not write
            chain.run.ended(0.5)
        return chain.states()[FAR] == "FAILED"

    chain.offer(rng.randint(1, 2))
    chain.wait(has_failed, "the query whose results cannot be written has failed")
    others = [name for name, state in chain.states().items() if state == "FAILED"]
    if others != [FAR]:
        raise Wrong(f"queries failed with the one whose results cannot be written: {others}")


def shared_memory_full(chain: Chain, rng: Random) -> None:
    """Fill the shared memory of a run while it works."""
    ballast = fill(Path(f"/proc/{chain.run.pid}/root/dev/shm"))
    chain.offer(rng.randint(2, 4))
    chain.settle()
    ballast.unlink()
    chain.offer(1)


def jvm_killed(chain: Chain, rng: Random) -> None:
    """Kill the JVM alone, as the kernel does when memory runs out."""
    chain.offer(3)
    chain.run.ended(rng.uniform(0.0, 1.5))
    os.kill(chain.run.java(), signal.SIGKILL)
    if not chain.run.ended(GONE_S):
        raise Wrong(f"the run goes on {GONE_S:g} s after its JVM was killed")
    if chain.run.process.exitcode != 1 or "the JVM of Spark is gone" not in chain.run.printed:
        raise Wrong(f"without its JVM, the run ended with {chain.run.process.exitcode}")
    if "Traceback" in chain.run.printed:
        raise Wrong("a run without its JVM printed a stack trace")


def group_terminated(chain: Chain, rng: Random) -> None:
    """Send SIGTERM to the process group, as `timeout` and systemd do; sometimes during a start."""
    if rng.random() < 0.25:
        chain.run.kill()
        chain.begin()
        chain.wait(chain.is_locked, "a run that starts has locked its directory")
        chain.run.ended(rng.uniform(0.0, 4.0))
    chain.offer(3)
    chain.run.ended(rng.uniform(0.0, 1.0))
    chain.run.signal(signal.SIGTERM, group=True)
    if not chain.run.ended(30.0) or chain.run.process.exitcode != 0:
        raise Wrong(f"after SIGTERM, the run ended with {chain.run.process.exitcode}")
    if "Traceback" in chain.run.printed:
        raise Wrong("a run that was told to end printed a stack trace")


def group_killed(chain: Chain, rng: Random) -> None:
    """Kill the process and its JVM at once; sometimes also the next ones while they start."""
    chain.offer(3)
    chain.run.ended(rng.uniform(0.0, 1.5))
    chain.run.kill()
    if rng.random() < 0.5:
        chain.begin().ended(rng.uniform(0.2, 6.0))
        chain.run.kill()


def _kill(chain: Chain) -> None:
    chain.run.signal(signal.SIGKILL)
    if not chain.dies(30.0):
        raise Wrong("the process goes on after SIGKILL")
