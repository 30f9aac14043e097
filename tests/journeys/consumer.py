"""A process of its own that runs a pipeline until all of its source is processed and delivered."""

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict

from headgate import Headgate
from headgate.config import read_pipeline
from headgate.runtime import load


def main(file: str, offered: int, point: str = "", times: int = 0) -> None:
    """Says `started` on stdout once tuples flow; ends when all is consumed and delivered.

    Args:
        point: where the whole process group kills itself, when it comes there for the n-th time.
    """
    headgate = load(read_pipeline(file))
    headgate._reached = killer(point, times)
    headgate.start()
    print("started", flush=True)
    tell(headgate)
    while not done(headgate, offered) and not headgate.wait(0.05):
        pass
    headgate.stop()
    tell(headgate)


def done(headgate: Headgate, offered: int) -> bool:
    consumed = min(consumed for consumed, _ in headgate.totals().values())
    return consumed >= offered and not any((headgate.state / "outbox").rglob("*.parquet"))


def killer(point: str, times: int) -> Callable[[str], None]:
    left = [times]

    def reached(here: str) -> None:
        if here == point:
            left[0] -= 1
            if left[0] == 0:
                os.killpg(os.getpgrp(), signal.SIGKILL)  # the JVM dies with us

    return reached


def tell(headgate: Headgate) -> None:
    """Prints every query's account as a line of JSON."""
    print(
        json.dumps({name: asdict(each) for name, each in headgate.accounts().items()}), flush=True
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:4], *map(int, sys.argv[4:5]))
