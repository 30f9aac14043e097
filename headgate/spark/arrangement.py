"""Which queries share their code: those of one stream and class, by what they have in common."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate.model.form import Form
from headgate.model.network import Path
from headgate.spark import constants, group

LEAST_ALIKE = 24
"""Queries of one form below which a mask is no dearer than a table of constants."""


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
    fits: Callable[[str, Form], bool],
) -> Iterator[Part]:
    """Gives the parts; a query that is in none has code of its own.

    Cheap queries share whatever they are. A costly one would make the others wait, so it shares
    only with costly ones that have their longest function call in common: Spark computes it once.

    Args:
        texts: what a query for a sink of text puts out, by name.
        costly: whether a query takes long alone.
        fits: whether a form of a stream can be a table of constants.
    """
    rooms: dict[tuple[str, str], list[Path]] = {}
    for path in paths:
        if not path.runs_whole:
            rooms.setdefault((path.stream, path.query.query_class), []).append(path)
    for (stream, _), found in rooms.items():
        kin: dict[str, list[Path]] = {}
        alike: dict[object, list[Path]] = {}
        others: list[Path] = []
        for path in found:
            if costly(path):
                kin.setdefault(path.longest_call, []).append(path)
            elif (key := constants.alike(path, texts.get(path.query.name))) is not None:
                alike.setdefault(key, []).append(path)
            else:
                others.append(path)
        for each in alike.values():
            form = each[0].form
            if len(each) >= LEAST_ALIKE and form is not None and fits(stream, form):
                yield from _cut(each, constants.MOST, table=True)
            else:
                others += each
        yield from _cut(others, group.MOST)
        for call, each in kin.items():
            if call and len(each) > 1:
                yield from _cut(each, group.MOST)


def _cut(paths: Sequence[Path], most: int, *, table: bool = False) -> Iterator[Part]:
    for at in range(0, len(paths), most):
        yield Part(tuple(paths[at : at + most]), table)
