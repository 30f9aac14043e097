"""Measure the simulation: its speed, the cost of a decision among many boxes, the cost of AMoS.

The exit code is 1 if a bar is missed. Run it on a machine that does nothing else.

    python bench/simulation.py --results bench/results/simulation.json
    python bench/simulation.py --quick --only growth
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy
import simpy

import against_simpy
import amos_cost
import growth
import speed
from bars import Measurement, table
from headgate.policies import policy_entry
from machine import cpu_clock, facts

Part = Callable[[argparse.Namespace], Iterator[Measurement]]


def _speed(arguments: argparse.Namespace) -> Iterator[Measurement]:
    return speed.measurements(speed.QUICK if arguments.quick else speed.FULL, arguments.policies)


def _simpy(arguments: argparse.Namespace) -> Iterator[Measurement]:
    sizes = against_simpy.QUICK if arguments.quick else against_simpy.FULL
    return against_simpy.measurements(sizes, speed.QUICK if arguments.quick else speed.FULL)


def _growth(arguments: argparse.Namespace) -> Iterator[Measurement]:
    return growth.measurements(*((growth.QUICK, 1) if arguments.quick else (growth.FULL, 3)))


def _amos(arguments: argparse.Namespace) -> Iterator[Measurement]:
    return amos_cost.measurements(amos_cost.QUICK if arguments.quick else speed.FULL)


PARTS: dict[str, Part] = {"speed": _speed, "simpy": _simpy, "growth": _growth, "amos": _amos}


def main() -> int:
    arguments = _arguments()
    measurements: list[Measurement] = []
    parts: dict[str, Any] = {}
    for name in arguments.only or PARTS:
        before = cpu_clock(os.getpgrp(), time.time())
        measured = list(PARTS[name](arguments))
        conditions = cpu_clock(os.getpgrp(), time.time()).since(before)
        parts[name] = {"conditions": conditions, "rows": [row.to_dict() for row in measured]}
        measurements += measured
    print(table(measurements))
    print()
    for name, part in parts.items():
        cores = part["conditions"]
        print(
            f"{name}: used {cores['side_cores']:.2f} cores, others {cores['other_cores']:.2f},"
            f" the host {cores['stolen_cores']:.2f}"
        )
    if arguments.results is not None:
        answer = {"machine": _machine(), "quick": arguments.quick, **_settings(), "parts": parts}
        arguments.results.parent.mkdir(parents=True, exist_ok=True)
        arguments.results.write_text(json.dumps(answer, indent=1, ensure_ascii=False) + "\n")
    missed = [row for row in measurements if row.verdict == "miss"]
    print(f"{len(missed)} of {sum(row.bar is not None for row in measurements)} bars missed")
    return 1 if missed else 0


def _machine() -> dict[str, Any]:
    return {
        **facts(),
        "numba": numba.__version__,
        "numpy": numpy.__version__,
        "simpy": simpy.__version__,
        "load_average": list(os.getloadavg()),
    }


def _settings() -> dict[str, Any]:
    return {
        "testbed": f"Sharaf, single stream, utilisation {speed.UTILISATION}, trains of one tuple",
        "seeds": {"testbed": speed.SEED, "growth": growth.SEED},
    }


def _names(text: str) -> frozenset[str]:
    return frozenset(policy_entry(name).name for name in text.split(","))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Measure the simulation against its bars; exit with 1 if one is missed.",
        epilog="example: python bench/simulation.py --quick --only growth",
    )
    parser.add_argument("--quick", action="store_true", help="small runs, once each")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), help="the parts to run (all)")
    parser.add_argument("--policies", type=_names, default=frozenset(), help="for the speed part")
    parser.add_argument("--results", type=Path, metavar="FILE", help="write the results here")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
