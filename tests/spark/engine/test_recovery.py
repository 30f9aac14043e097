"""What a start refuses, before anything is removed."""

from pathlib import Path as File

import pytest

from headgate.errors import RecoveryRefused
from headgate.model.network.network import Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query, Sink
from headgate.spark.engine.recovery import refuse_old_results
from headgate.spark.journal.journal import Journal


def path_with(sink: Sink) -> Path:
    query = Query(name="q", sql="x", query_class="H", sink=sink)
    return Path(query=query, stream="s", operators=(Operator(kind="project", expressions=("a",)),))


def test_results_that_wait_for_delivery_are_not_left_behind_by_another_sink(
    tmp_path: File,
) -> None:
    journal, outbox = Journal(tmp_path), tmp_path / "outbox" / "q"
    outbox.mkdir(parents=True)
    (outbox / "000000000000-000000000000.parquet").touch()
    files = path_with(Sink(path=str(tmp_path / "results")))
    with pytest.raises(RecoveryRefused, match="and a sink that delivers nothing"):
        refuse_old_results(journal, [files])
    refuse_old_results(journal, [path_with(Sink(format="console"))])
    (outbox / "000000000000-000000000000.parquet").unlink()
    refuse_old_results(journal, [files])
    journal.close()
