"""The state of a window join: memory and log must not grow, however long it runs."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bars import Measurement
from headgate import Headgate, Query, Stream
from settings import settings_of

WINDOW_S, WINDOWS, RATE, LOOK_S = 5.0, 32, 500, 0.1


def measurements(folder: Path) -> Iterator[Measurement]:
    """Yield by how much the highest peak of windows 3 to 32 exceeds the first of them.

    Peaks are compared because the log is cleared every few seconds, not at every tuple.
    """
    command = [sys.executable, __file__, str(folder), str(folder / "state")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, start_new_session=True
    )
    peaks_by_key = json.loads(done.stdout.splitlines()[-1])
    for key, what in (("rss_mb", "resident memory"), ("log_kb", "bytes of log")):
        peaks = peaks_by_key[key][2:]
        yield Measurement(
            what=f"window join, 30 windows: highest peak over first, {what}",
            measured=100 * (max(peaks) / peaks[0] - 1),
            unit="%",
            bar=10.0,
            at_most=True,
            figures={key: peaks_by_key[key]},
        )


def _run(folder: Path, state: Path) -> dict[str, list[float]]:
    gate = Headgate(
        state=state, classes={"N": 1.0}, master="local[2]", rehearsal_s=0, retention_s=0,
        spark_config=settings_of("headgate", folder),
    )  # fmt: skip
    for seed, name in enumerate(("l", "r"), 1):
        options = {"rate_per_s": str(RATE), "seed": str(seed)}
        gate.add_stream(
            Stream(name=name, format="headgate", options=options, event_time="ts", trigger_s=0.2)
        )
    window = f"[RANGE {WINDOW_S:g} SECONDS]"
    sql = (
        f"SELECT l.location, l.ts FROM l {window} JOIN r {window} ON l.location = r.location"
        " WHERE l.temperature + r.temperature > 75"
    )
    gate.add_query(Query(name="join", sql=sql, query_class="N"))
    gate.start()
    rss_mb, log_kb = [], []
    gate.wait(20.0)  # until code is generated and compiled, and the heap has grown
    for _ in range(WINDOWS):
        seen = []
        for _ in range(round(WINDOW_S / LOOK_S)):
            gate.wait(LOOK_S)
            seen.append((_rss_mb(os.getpid()), _log_kb(state / "log")))
        rss_mb.append(max(used_mb for used_mb, _ in seen))
        log_kb.append(max(used_kb for _, used_kb in seen))
    gate.stop()
    return {"rss_mb": rss_mb, "log_kb": log_kb}


def _rss_mb(group: int) -> float:
    """Return the resident memory of a process group, in megabytes."""
    pages = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if int((process / "stat").read_text().rsplit(")", 1)[1].split()[2]) == group:
                pages += int((process / "statm").read_text().split()[1])
        except OSError:  # the process has ended since
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _log_kb(folder: Path) -> float:
    size_bytes = 0
    for file in folder.rglob("*.parquet"):
        try:
            size_bytes += file.stat().st_size
        except FileNotFoundError:  # the file has been dropped since
            continue
    return size_bytes / 1e3


if __name__ == "__main__":
    print(json.dumps(_run(Path(sys.argv[1]), Path(sys.argv[2]))))
