"""The results of a query that writes files, opened without a run."""

import os
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from headgate.errors import UnknownName
from headgate.model.argument_types import refuse_type
from headgate.result_files import listed

if TYPE_CHECKING:
    import pyarrow.dataset as ds


def results(
    folder: str | os.PathLike[str], query: str | None = None, *, format: Any = None
) -> "ds.Dataset":
    """Return the results of a query as a pyarrow dataset, each row once.

    The dataset has the files that the manifest lists at this moment or, without a manifest, those
    in the folder. `files` has their names, `to_table()` their rows. More results may come
    meanwhile; files that a compaction has replaced can be read for one more hour.

    Args:
        folder: of the results. With `query`, the state directory.
        query: the name of the query, if its results are in the state directory.
        format: how to read the files, as in `pyarrow.dataset.dataset`; if not given, what the names
            of the files say.

    Raises:
        UnknownName: there is no such folder.
    """
    # Simulations start without pyarrow's readers.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.dataset as ds  # noqa: PLC0415
    from pyarrow.fs import LocalFileSystem  # noqa: PLC0415

    refuse_type("results", "folder", folder, str | os.PathLike)
    refuse_type("results", "query", query, str | None)
    place = File(folder) if query is None else File(folder) / "results" / query
    place = place.absolute()
    if not place.is_dir():
        others = place.parent.iterdir() if place.parent.is_dir() else ()
        folders = [other.name for other in others if other.is_dir()]
        where = str(place.parent)
        raise UnknownName(kind="results folder", name=place.name, known=folders, where=where)
    names = listed(place)
    suffix: Any = File(names[0]).suffix.removeprefix(".") if names else ""
    if not names:
        return ds.FileSystemDataset.from_paths(
            [], schema=pa.schema([]), format=ds.ParquetFileFormat(), filesystem=LocalFileSystem()
        )
    return ds.dataset(
        [str(place / name) for name in names],
        format=format or suffix,
        partitioning=ds.partitioning(flavor="hive") if "/" in names[0] else None,
        partition_base_dir=str(place),
    )
