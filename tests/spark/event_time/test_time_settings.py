"""A timeline keeps the times by which its tuples are placed for as long as a query reads it."""

import pytest
from timelines import SECOND, Make, stream

from headgate.errors import RecoveryRefused
from headgate.model.stream import Stream
from headgate.spark.event_time.time_settings import begins_anew
from headgate.spark.event_time.timeline_entries import TimelineEntries
from headgate.spark.journal.cursors import Cursors


def test_times_change_only_where_no_query_reads_the_timeline(make: Make) -> None:
    world = make(stream("a"), stream("b"))
    assert not begins_anew(world.journal, "t", world.streams)
    world.take("a", 10 * SECOND)
    world.take("b", 9 * SECOND)
    Cursors(world.journal).remember("w", "text", "t", ("a", "b"))
    same = (Stream(name="a", format="json", event_time="TS"), stream("b", max_delay_s=1.0))
    assert not begins_anew(world.journal, "t", same)
    late = (stream("a", lateness_s=5), stream("b"))
    for others in (late, (Stream(name="a", format="parquet"), stream("b"))):
        with pytest.raises(RecoveryRefused, match="stream 'a': expected event_time: ts and"):
            begins_anew(world.journal, "t", others)
    Cursors(world.journal).forget("w")
    assert begins_anew(world.journal, "t", late)
    assert not begins_anew(world.journal, "t", late)
    world.streams = late
    world.begin()
    assert [entry.number for entry in TimelineEntries(world.journal, "t")()] == [2, 3]
    assert world.timeline.watermark(world.end) == 5 * SECOND
