"""What the log keeps for open sessions, and when time passes for them."""

from timelines import SECOND, Make, over, stream

from headgate.language.kinds.sessions import Sessions
from headgate.model.window_ends import NEVER
from headgate.spark.event_time.open_sessions import OpenSessions

GAP = over(2 * SECOND, kind=Sessions)


def test_all_is_kept_until_somebody_has_told(make: Make) -> None:
    world = make(stream("a"))
    world.reads(GAP)
    for number in range(20):
        world.take("a", number * SECOND)
        world.timeline.drop(world.end)
    assert world.timeline.held("a") == 0
    world.timeline.open_sessions.tell(GAP, 15, 12 * SECOND)
    world.timeline.drop(14)
    assert world.timeline.held("a") == 0, "a query may still begin with train 14"
    world.timeline.drop(16)
    assert world.timeline.held("a") == 12
    world.begin()
    assert world.timeline.open_sessions.since(GAP, 16) == NEVER
    world.timeline.drop(world.end)
    assert world.timeline.held("a") == 12


def test_a_query_that_runs_no_more_keeps_nothing(make: Make) -> None:
    world = make(stream("a"))
    world.reads(GAP)
    world.reads(GAP)  # q1 equals q0
    world.reads(over(5 * SECOND, 5 * SECOND))
    for number in range(20):
        world.take("a", number * SECOND)
    world.timeline.open_sessions.forget("q0")
    world.timeline.drop(world.end)
    assert world.timeline.held("a") == 0
    world.timeline.open_sessions.forget("q1")
    world.timeline.drop(world.end)
    assert world.timeline.held("a") == 14


def test_what_holds_at_a_train_holds_behind_it() -> None:
    sessions = OpenSessions()
    assert sessions.kept_since(9) is None
    sessions.add("q", GAP)
    sessions.tell(GAP, 8, 80)
    sessions.tell(GAP, 4, 40)  # an equal query that is behind
    assert [sessions.since(GAP, first) for first in (3, 4, 7, 8, 99)] == [NEVER, 40, 40, 80, 80]
    assert [sessions.kept_since(passed) for passed in (3, 5, 9)] == [NEVER, 40, 80]


def test_time_passes_in_a_quiet_stream_until_its_sessions_have_ended(make: Make) -> None:
    world = make(stream("a"))
    world.reads(GAP)
    world.take("a", 0, 10 * SECOND, SECOND)  # the last is late
    ends = []
    for tenth in range(0, 300):
        world.timeline.tick(tenth / 10)
        ends.append(world.end)
    assert world.end == 2, "one beat, for the tuple that lies at the watermark"
    assert world.timeline.watermark(world.end) == 12 * SECOND + SECOND // 10
    assert ends.index(2) == 21
