"""Progress bars: on stderr, and only on a terminal."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from headgate.runtime import Spelled


def _bars() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip


@contextmanager
def of_each(
    policies: Sequence[Spelled], ends_at_s: float
) -> Iterator[Callable[[Spelled], Callable[[float], None]]]:
    """Shows a bar over virtual time for each policy; gives what makes a policy's callback."""
    with _bars() as bars:
        task_of = {
            each: bars.add_task(each.text, total=ends_at_s or None, start=False)
            for each in policies
        }

        def watch(policy: Spelled) -> Callable[[float], None]:
            bars.start_task(task_of[policy])
            return lambda now_s: bars.update(task_of[policy], completed=min(now_s, ends_at_s))

        yield watch


@contextmanager
def of_all() -> Iterator[Callable[[str, float], None]]:
    """Shows one bar with what runs at present; gives its callback."""
    with _bars() as bars:
        task = bars.add_task("", total=1.0)
        yield lambda what, share: bars.update(task, description=what, completed=share)
