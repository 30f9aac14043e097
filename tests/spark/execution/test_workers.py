"""Workers: turns that never end are abandoned, and their threads replaced."""

import threading

from headgate.model.plan import BoxCall
from headgate.spark.execution.workers import Task, Turn, Workers


def _threads() -> list[threading.Thread]:
    return [
        thread for thread in threading.enumerate() if thread.name.startswith("headgate-worker-test")
    ]


def test_a_turn_that_ends_while_it_is_abandoned_leaves_as_many_threads() -> None:
    begun, release = threading.Event(), threading.Event()
    workers_at_work: list[threading.Thread] = []

    def work(turn: Turn) -> None:
        workers_at_work.append(threading.current_thread())
        begun.set()
        release.wait(10)
        turn.end()

    workers = Workers(2, work, "test")
    call = BoxCall(number=0, units=(0,), stream=0, first_train=0, end_train=1, tuples=1)
    turn = Turn(Task(call, []), (0,), limit_s=60.0)
    workers.submit(turn)
    assert begun.wait(10)
    assert turn.abandon()
    release.set()  # the thread returns before anybody has replaced it
    workers_at_work[0].join(10)
    workers.replace(turn)
    assert len(_threads()) == 2
    workers.close(5)
    assert _threads() == []
