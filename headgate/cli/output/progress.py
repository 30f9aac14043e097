"""Progress bars, on stderr and only on a terminal."""

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
def policy_bars(
    policies: Sequence[Spelled], ends_at_s: float
) -> Iterator[Callable[[Spelled], Callable[[float], None]]]:
    """Show a bar over virtual time for each policy; yield a function that returns its callback."""
    with _bars() as bars:
        tasks = {
            policy: bars.add_task(policy.text, total=ends_at_s or None, start=False)
            for policy in policies
        }

        def watch(policy: Spelled) -> Callable[[float], None]:
            bars.start_task(tasks[policy])
            return lambda now_s: bars.update(tasks[policy], completed=min(now_s, ends_at_s))

        yield watch


@contextmanager
def overall_bar() -> Iterator[Callable[[str, float], None]]:
    """Show one bar with the name of what runs now; yield its callback."""
    with _bars() as bars:
        task = bars.add_task("", total=1.0)
        yield lambda what, share: bars.update(task, description=what, completed=share)
