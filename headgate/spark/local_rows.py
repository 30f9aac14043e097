"""Equal keys, groups and sums over columns of Arrow, as Spark has them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headgate.spark.projection import NotPlain

Places = NDArray[np.int64]

MOST_PAIRS = 1 << 22
"""Pairs of rows above which a join is left to a job."""

_EXACT = 1 << 53


class TooMuch(Exception):
    """It is better left to a job."""


class Encoded:
    """Numbers for the values of columns, the same for equal ones."""

    @staticmethod
    def refuse(types: Iterable[pa.DataType]) -> None:
        """Raises NotPlain for types whose equality is not that of their bytes."""
        for kind in types:
            if pa.types.is_struct(kind):
                Encoded.refuse(field.type for field in kind)
            elif not (
                pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)
                or pa.types.is_date(kind) or pa.types.is_timestamp(kind)
                or pa.types.is_decimal(kind)
            ):  # fmt: skip
                raise NotPlain(str(kind))

    @staticmethod
    def of(columns: Sequence[Any], rows: int) -> Places:
        """Gives a number for every row; NULL is a value like others."""
        codes = np.zeros(rows, dtype=np.int64)
        for column in columns:
            for each in _flat(column):
                own: Any = pc.dictionary_encode(
                    pa.concat_arrays(_chunks(each)), null_encoding="encode"
                )
                found = own.indices.to_numpy(zero_copy_only=False).astype(np.int64)
                _, codes = np.unique(codes * (found.max(initial=0) + 1) + found,
                                     return_inverse=True)  # fmt: skip
        return codes


@dataclass(frozen=True)
class Groups:
    """Rows by group: the first row of each, and which group a row is in."""

    first: Places
    of: Places


def grouped(keys: Sequence[Any], rows: int) -> Groups:
    """Gives the groups of rows with equal keys."""
    _, first, of = np.unique(Encoded.of(keys, rows), return_index=True, return_inverse=True)
    return Groups(first, of)


class _Aggregated:
    """Folds a column by group, with the types that Spark gives the results."""

    _SUMS = ("Sum", "Average")

    def can(self, kind: str, argument: pa.DataType, result: str) -> bool:
        """Tells whether it can: numbers are added, what has one order is compared.

        Fractions are added one after the other, as a job over one partition does.
        """
        if kind == "Count":
            return True
        if kind in self._SUMS:
            numbers = pa.types.is_integer(argument) or pa.types.is_floating(argument)
            return numbers and result in ("bigint", "double")
        ordered = pa.types.is_integer(argument) or pa.types.is_string(argument)
        ordered |= pa.types.is_date(argument) or pa.types.is_timestamp(argument)
        return kind in ("Min", "Max") and ordered

    def __call__(self, kind: str, column: Any, groups: Groups, result: pa.DataType) -> Any:
        size = len(groups.first)
        known = np.asarray(column.is_valid())
        counts = np.bincount(groups.of[known], minlength=size)
        if kind == "Count":
            return pa.array(counts, pa.int64())
        if kind in self._SUMS:
            whole = pa.types.is_integer(column.type)
            values = column.cast(pa.int64() if whole else pa.float64()).fill_null(0).to_numpy()
            most = float(np.abs(values).max(initial=0)) * len(values) if whole else 0.0
            if most >= _EXACT:
                raise TooMuch("sums that may overflow, or are not exact")
            sums = np.bincount(groups.of[known], weights=values[known], minlength=size)
            if kind == "Sum":
                sums = sums.astype(np.int64) if whole else sums
                return pa.array(sums, mask=counts == 0).cast(result)
            return pa.array(sums / np.maximum(1, counts), mask=counts == 0)
        rows = pa.table({"group": groups.of, "value": column})
        order: Any = "ascending" if kind == "Min" else "descending"
        # NULL comes last, so it is first only where all are.
        keys: Any = [("group", "ascending"), ("value", order)]
        sorted_ = pc.sort_indices(rows, keys).to_numpy()
        begins = np.searchsorted(groups.of[sorted_], np.arange(size))
        return column.take(pa.array(sorted_[begins])).cast(result)


aggregated = _Aggregated()


class _Merged:
    """Folds a column in two steps: by group, then groups of groups; adds whole numbers only."""

    def can(self, kind: str, argument: pa.DataType) -> bool:
        return kind in ("Count", "Min", "Max") or pa.types.is_integer(argument)

    def width(self, kind: str) -> int:
        """Gives how many columns the first step makes."""
        return 2 if kind in ("Sum", "Average") else 1

    def partial(self, kind: str, column: Any, groups: Groups) -> list[Any]:
        """Gives the columns of the first step."""
        if kind not in ("Sum", "Average"):
            result = pa.int64() if kind == "Count" else column.type
            return [aggregated(kind, column, groups, result)]
        counts = aggregated("Count", column, groups, pa.int64())
        return [aggregated("Sum", column, groups, pa.int64()), counts]

    def __call__(self, kind: str, parts: Sequence[Any], groups: Groups, result: Any) -> Any:
        """Gives the result of the second."""
        if kind == "Count":
            return aggregated("Sum", parts[0], groups, result)
        if kind != "Average":
            return aggregated(kind, parts[0], groups, result)
        sums = aggregated("Sum", parts[0], groups, pa.int64()).fill_null(0).to_numpy()
        counts = aggregated("Sum", parts[1], groups, pa.int64()).to_numpy()
        return pa.array(sums / np.maximum(1, counts), mask=counts == 0)


merged = _Merged()


class _Joined:
    """Finds pairs of rows with equal keys; NULL is equal to nothing."""

    KINDS = ("Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti")

    def pairs(self, lefts: Sequence[Any], rights: Sequence[Any]) -> tuple[Places, Places]:
        """Gives the places of all pairs."""
        a, b = len(lefts[0]), len(rights[0])
        both = [
            pa.concat_arrays([*_chunks(left), *_chunks(right)])
            for left, right in zip(lefts, rights, strict=True)
        ]
        codes = Encoded.of(both, a + b)
        known = np.ones(a + b, dtype=np.bool_)
        for each in both:
            known &= np.asarray(each.is_valid())
        left, right = np.flatnonzero(known[:a]), np.flatnonzero(known[a:])
        order = right[np.argsort(codes[a:][right], kind="stable")]
        ranked = codes[a:][order]
        first = np.searchsorted(ranked, codes[:a][left], side="left")
        counts = np.searchsorted(ranked, codes[:a][left], side="right") - first
        if counts.sum() > MOST_PAIRS:
            raise TooMuch("pairs")
        at = np.repeat(left, counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return at, order[np.repeat(first, counts) + within]

    def of_kind(
        self, how: str, pairs: tuple[Places, Places], lefts: int, rights: int
    ) -> tuple[Any, Any]:
        """Gives the rows of a join: places on the left and on the right, or on the left alone."""
        at, of = pairs
        if how == "LeftSemi":
            return np.unique(at), None
        if how == "LeftAnti":
            return _without(at, lefts), None
        left: list[Any] = [pa.array(at)]
        right: list[Any] = [pa.array(of)]
        if how in ("LeftOuter", "FullOuter"):
            left.append(pa.array(_without(at, lefts)))
            right.append(pa.nulls(len(left[-1]), pa.int64()))
        if how in ("RightOuter", "FullOuter"):
            right.append(pa.array(_without(of, rights)))
            left.append(pa.nulls(len(right[-1]), pa.int64()))
        return pa.concat_arrays(left), pa.concat_arrays(right)


joined = _Joined()


def _without(places: Places, count: int) -> Places:
    """Gives those of 0, ..., count − 1 that are no places."""
    return np.setdiff1d(np.arange(count), places)


def _flat(column: Any) -> list[Any]:
    """Gives a column, or the columns inside one that is nested."""
    if not pa.types.is_struct(column.type):
        return [column]
    whole = pa.concat_arrays(_chunks(column))
    return [whole.is_valid(), *(inner for each in whole.flatten() for inner in _flat(each))]


def _chunks(column: Any) -> list[Any]:
    if not isinstance(column, pa.ChunkedArray):
        return [column]
    return column.chunks or [pa.array([], column.type)]
