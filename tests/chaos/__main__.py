"""Make faults of every kind and check after each that nothing was lost and nothing comes twice.

What is done is noted in the folder of --state; the same command goes on after it.
"""

import argparse
import signal
import sys
import time
from pathlib import Path

from chaos import ledger
from chaos.plan import Impossible, Outcome, groups_of, outcomes


def main() -> int:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="seed of every random choice")
    parser.add_argument("--state", type=Path, default=Path("state/chaos"), help="folder for all")
    parser.add_argument("--seconds", type=float, default=4200, help="begin no fault after this")
    parser.add_argument("--share", type=float, default=1.0, help="part of the faults of each kind")
    parser.add_argument("--group", action="append", help="only faults of this group")
    parser.add_argument("--results", type=Path, help="JSON file that the table is written to")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # runs end with this process
    began_s, seed = time.monotonic(), options.seed
    folder = options.state.absolute() / str(seed)
    book, groups = ledger.Ledger(folder, seed), groups_of(seed, options.share)
    planned, impossible = sum(len(faults) for _, faults in groups), 0
    for group, all_faults in groups:
        faults = [fault for fault in all_faults if fault.number not in book.done]
        if options.group and group not in options.group:
            continue
        try:
            for outcome in outcomes(folder, seed, group, faults):
                book.add(outcome)
                say(f"{len(book.done)} of {planned}: {outcome.kind}: {verdict(outcome)}")
                if time.monotonic() - began_s > options.seconds:
                    break
        except Impossible as reason:
            say(f"{len(faults)} faults are not possible here: {reason}")
            impossible += len(faults)
        if time.monotonic() - began_s > options.seconds:
            break
    results = book.results(planned)
    print(ledger.table(results))
    if left := planned - impossible - len(book.done):
        say(f"{left} faults are left; the same command goes on")
    if options.results:
        ledger.write(options.results, results)
    return 0 if ledger.is_clean(results) else 1


def verdict(outcome: Outcome) -> str:
    """Return what came of a fault, in words."""
    counts = f"lost {outcome.lost}, twice {outcome.twice}, "
    counts = counts if outcome.lost or outcome.twice else ""
    return f"{counts}{outcome.wrong or 'nothing lost'} ({outcome.seconds:.1f} s)"


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
