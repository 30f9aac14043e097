"""The choice of queries that share their code: queries of one stream with common parts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from headgate.model.network.network import Path
from headgate.model.plan import Share
from headgate.spark.jvm.query.plans import Parts
from headgate.spark.sharing import constants_group, mask_group

LEAST_ALIKE = 24
"""The fewest queries of one form that become a table of constants. With fewer queries, a mask was
measured to be faster."""


@dataclass(frozen=True)
class Member:
    """A query and its parts."""

    path: Path
    parts: Parts


@dataclass(frozen=True)
class Part:
    """Queries that share their code.

    Args:
        table: whether they share a table of constants; if not, they share a mask.
    """

    members: tuple[Member, ...]
    table: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.path.query.name for member in self.members)


def parts_of(
    members: Iterable[Member], costly: Callable[[Path], bool], share: Share = "class"
) -> Iterator[Part]:
    """Yield groups of queries that share code; a query that is in none has its own code.

    A cheap query shares with any other cheap query. A costly query would make the others wait. So
    it shares only with costly queries that have the same longest function call, or that are equal:
    Spark computes the call, or the whole query, once.

    Args:
        costly: returns True if a query takes long on its own.
        share: the scope within which queries share code.
    """
    scopes: dict[tuple[str, str], list[Member]] = {}
    for member in members:
        scope = member.path.stream, shared_by(member.path, share)
        scopes.setdefault(scope, []).append(member)
    for scope_members in scopes.values():
        kin: dict[int, list[Member]] = {}
        alike: dict[object, list[Member]] = {}
        others: list[Member] = []
        for member in scope_members:
            if costly(member.path):
                call = member.parts.longest_call or -member.path.key
                kin.setdefault(call, []).append(member)
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
    """Return a key that is equal for queries that can share a table of constants."""
    assert member.parts.form_key is not None
    return member.parts.form_key, tuple(output.name for output in member.parts.outputs)


def shared_by(path: Path, share: Share) -> str:
    """Return the name of the scope within which equal parts of a query run once.

    Queries from which tuples may be dropped share with each other: what others need runs anyway.
    """
    names = {"class": f"class {path.query.query_class}", "all": "all"}
    name = names.get(share, f"query {path.query.name}")
    return f"{name}, may be shed" if path.query.allows_shedding else name


def divided(members: Sequence[Member], *, table: bool = False) -> Iterator[Part]:
    """Divide queries into parts that are not too large, as tables of constants or as masks."""
    most = constants_group.MOST if table else mask_group.MOST
    for first in range(0, len(members), most):
        yield Part(tuple(members[first : first + most]), table)
