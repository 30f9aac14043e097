"""Which queries share their code: those of one stream, by what they have in common."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from headgate.model.network import Path
from headgate.model.plan import Share
from headgate.spark.jvm.query.plans import Parts
from headgate.spark.sharing import constants_group, mask_group

LEAST_ALIKE = 24
"""Queries of one form that become a table of constants: with fewer, bits were measured quicker."""


@dataclass(frozen=True)
class Member:
    """A query with its parts."""

    path: Path
    parts: Parts


@dataclass(frozen=True)
class Part:
    """Queries that share their code, as a mask or as a table of constants."""

    members: tuple[Member, ...]
    table: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.path.query.name for member in self.members)


def parts_of(
    members: Iterable[Member], costly: Callable[[Path], bool], share: Share = "class"
) -> Iterator[Part]:
    """Yield the parts; a query that is in none has code of its own.

    Cheap queries share whatever they are. A costly one would make the others wait, so it shares
    only with costly ones that have their longest function call in common, or all: Spark computes it
    once.

    Args:
        costly: whether a query takes long alone.
        share: between which queries code is shared.
    """
    rooms: dict[tuple[str, str], list[Member]] = {}
    for member in members:
        room = member.path.stream, shared_by(member.path, share)
        rooms.setdefault(room, []).append(member)
    for room_members in rooms.values():
        kin: dict[int, list[Member]] = {}
        alike: dict[object, list[Member]] = {}
        others: list[Member] = []
        for member in room_members:
            if costly(member.path):
                own = member.parts.longest_call or -member.path.key
                kin.setdefault(own, []).append(member)
            elif member.parts.form is not None:
                alike.setdefault(_form(member), []).append(member)
            else:
                others.append(member)
        for group in alike.values():
            if len(group) >= LEAST_ALIKE:
                yield from divided(group, table=True)
            else:
                others += group
        yield from divided(others)
        for group in kin.values():
            if len(group) > 1:
                yield from divided(group)


def _form(member: Member) -> object:
    """Return what queries of one table of constants have in common."""
    assert member.parts.form_key is not None
    return member.parts.form_key, tuple(output.name for output in member.parts.outputs)


def shared_by(path: Path, share: Share) -> str:
    """Name those between which a query's equal parts run once."""
    names = {"class": f"class {path.query.query_class}", "all": "all"}
    return names.get(share, f"query {path.query.name}")


def divided(members: Sequence[Member], *, table: bool = False) -> Iterator[Part]:
    """Yield parts that are not too large, as a table of constants or as masks."""
    most = constants_group.MOST if table else mask_group.MOST
    for at in range(0, len(members), most):
        yield Part(tuple(members[at : at + most]), table)
