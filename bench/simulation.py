"""Measures the simulation: how fast it is, how decisions grow with the boxes, what AMoS costs.

Exits with 1 where a bar is missed; run it on a machine that does nothing else.

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


def _speed(asked: argparse.Namespace) -> Iterator[Measurement]:
    return speed.measurements(speed.QUICK if asked.quick else speed.FULL, asked.policies)


def _simpy(asked: argparse.Namespace) -> Iterator[Measurement]:
    sizes = against_simpy.QUICK if asked.quick else against_simpy.FULL
    return against_simpy.measurements(sizes, speed.QUICK if asked.quick else speed.FULL)


def _growth(asked: argparse.Namespace) -> Iterator[Measurement]:
    return growth.measurements(*((growth.QUICK, 1) if asked.quick else (growth.FULL, 3)))


def _amos(asked: argparse.Namespace) -> Iterator[Measurement]:
    return amos_cost.measurements(amos_cost.QUICK if asked.quick else speed.FULL)


PARTS: dict[str, Part] = {"speed": _speed, "simpy": _simpy, "growth": _growth, "amos": _amos}


def main() -> int:
    arguments = _arguments()
    found: list[Measurement] = []
    parts: dict[str, Any] = {}
    for name in arguments.only or PARTS:
        before = cpu_clock(os.getpgrp(), time.time())
        measured = list(PARTS[name](arguments))
        conditions = cpu_clock(os.getpgrp(), time.time()).since(before)
        parts[name] = {"conditions": conditions, "rows": [each.to_dict() for each in measured]}
        found += measured
    print(table(found))
    print()
    for name, part in parts.items():
        of = part["conditions"]
        print(
            f"{name}: used {of['side_cores']:.2f} cores, others {of['other_cores']:.2f},"
            f" the host {of['stolen_cores']:.2f}"
        )
    if arguments.results is not None:
        answer = {"machine": _machine(), "quick": arguments.quick, **_settings(), "parts": parts}
        arguments.results.parent.mkdir(parents=True, exist_ok=True)
        arguments.results.write_text(json.dumps(answer, indent=1, ensure_ascii=False) + "\n")
    missed = [each for each in found if each.verdict == "miss"]
    print(f"{len(missed)} of {sum(each.bar is not None for each in found)} bars missed")
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
        description="Measures the simulation against its bars; exits with 1 where one is missed.",
        epilog="example: python bench/simulation.py --quick --only growth",
    )
    parser.add_argument("--quick", action="store_true", help="small runs, once each")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), help="some of the parts")
    parser.add_argument("--policies", type=_names, default=frozenset(), help="of the speed part")
    parser.add_argument("--results", type=Path, metavar="FILE", help="write what was found there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
