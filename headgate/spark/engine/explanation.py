"""How a query runs, in words, for `explain`: who shares its code, and which lane it takes."""

from collections.abc import Sequence

from headgate.model.network.network import Path
from headgate.spark.execution.executor import Executor


def way_of(path: Path, paths: Sequence[Path], executor: Executor) -> tuple[list[str], str, str]:
    """Return the queries that share a query's code, how they share it, and the SQL of all.

    Args:
        paths: those of all queries.
    """
    if path.runs_whole:
        members, shape = _shared_whole(path, paths, executor)
        return members, shape, path.query.sql
    group = executor.arrangement.prepared(path).group
    return list(group.members), group.shape, group.text


def _shared_whole(path: Path, paths: Sequence[Path], executor: Executor) -> tuple[list[str], str]:
    """Return the queries that share a whole query's answer, panes or join, and a description."""
    arrangement, name = executor.arrangement, path.query.name
    twins = arrangement.twins(paths)
    equal = [other for other, twin in twins.items() if twin == twins[name]]
    alike = [other for other in executor.windowed.with_panes_of(name) if other not in equal]
    words = [f"one answer for {len(equal)} equal queries"] if len(equal) > 1 else []
    if alike:
        words.append(f"panes in common with {len(alike)} that aggregate alike")
    group_key = arrangement.group_key(path, twins)
    others = [
        other.query.name
        for other in (paths if path.kind.shares else ())
        if other.query.name not in equal and arrangement.group_key(other, twins) == group_key
    ]
    if others:
        words.append(f"{path.kind.shares} in common with {len(others)}")
        alike += others
    return [*equal, *alike], ", ".join(words) or "single"


def lane_text(path: Path, planned: str, executor: Executor) -> str:
    """Return the lane of a query and the reason.

    Args:
        planned: the lane that its next call is planned for, as the first word, and why.
    """
    if way := path.kind.way:
        needs_job = executor.windowed.needs_job(path)
        return f"{'job' if needs_job else planned.split()[0]}: {way}"
    arrangement = executor.arrangement
    prepared = arrangement.solo(path) if path.runs_whole else arrangement.prepared(path)
    return "job: the plan cannot run in the driver" if prepared.needs_job else planned
