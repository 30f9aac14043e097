"""A process of its own that runs a pipeline until every file of its source is processed."""

import sys

from headgate.config import read_pipeline
from headgate.runtime import load


def main(file: str, offered: int) -> None:
    """Says `started` on stdout once tuples flow; ends when every query has consumed all."""
    headgate = load(read_pipeline(file))
    headgate.start()
    print("started", flush=True)
    while any(consumed < offered for consumed, _ in headgate.totals().values()):
        if headgate.wait(0.05):
            break
    headgate.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
