"""Which queries share their code: those of one stream, by what they have in common."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate.model.form import Form
from headgate.model.network import Path
from headgate.model.plan import Share
from headgate.spark import constants, group

LEAST_ALIKE = 24
"""Queries of one form that become a table of constants where nothing was measured."""


@dataclass(frozen=True)
class Part:
    """Queries that share their code, as a mask or as a table of constants."""

    paths: tuple[Path, ...]
    table: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(path.query.name for path in self.paths)


def parts_of(
    paths: Iterable[Path],
    texts: Mapping[str, str],
    costly: Callable[[Path], bool],
    as_table: Callable[[str, Form, int], bool],
    share: Share = "class",
) -> Iterator[Part]:
    """Gives the parts; a query that is in none has code of its own.

    Cheap queries share whatever they are. A costly one would make the others wait, so it shares
    only with costly ones that have their longest function call in common, or all: Spark computes it
    once.

    Args:
        texts: what a query for a sink of text puts out, by name.
        costly: whether a query takes long alone.
        as_table: whether so many queries of a stream that have a form are a table of constants.
        share: between which queries code is shared.
    """
    rooms: dict[tuple[str, str], list[Path]] = {}
    for path in paths:
        if not path.runs_whole:
            rooms.setdefault((path.stream, shared_by(path, share)), []).append(path)
    for (stream, _), found in rooms.items():
        kin: dict[object, list[Path]] = {}
        cheap: list[Path] = []
        for path in found:
            if costly(path):
                own = path.longest_call or (path.predicate, path.outputs)
                kin.setdefault(own, []).append(path)
            else:
                cheap.append(path)
        alike = alike_in(cheap, texts)
        others = [path for path in cheap if path.form is None]
        for form, each in alike:
            if as_table(stream, form, len(each)):
                yield from divided(each, table=True)
            else:
                others += each
        yield from divided(others)
        for each in kin.values():
            if len(each) > 1:
                yield from divided(each)


def shared_by(path: Path, share: Share) -> str:
    """Names those between which a query's equal parts run once."""
    names = {"class": f"class {path.query.query_class}", "all": "all"}
    return names.get(share, f"query {path.query.name}")


def alike_in(paths: Iterable[Path], texts: Mapping[str, str]) -> list[tuple[Form, list[Path]]]:
    """Gives the queries that differ in constants alone, by their form."""
    alike: dict[object, tuple[Form, list[Path]]] = {}
    for path in paths:
        if path.form is not None:
            key = constants.alike(path, texts.get(path.query.name))
            alike.setdefault(key, (path.form, []))[1].append(path)
    return list(alike.values())


def divided(paths: Sequence[Path], *, table: bool = False) -> Iterator[Part]:
    """Gives parts that are not too large, as a table of constants or as masks."""
    most = constants.MOST if table else group.MOST
    for at in range(0, len(paths), most):
        yield Part(tuple(paths[at : at + most]), table)
