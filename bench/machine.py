"""The machine of a comparison: what it is, and who used its cores meanwhile."""

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyspark

import headgate

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def facts() -> dict[str, str | int | float]:
    """Return what a reader must know to compare the results with those of another machine."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_name(),
        "cores": os.cpu_count() or 0,
        "memory_gb": round(pages / 1e9, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "pyspark": pyspark.__version__,
        "java": (java.stderr.splitlines() or ["none"])[0],
        "headgate": headgate.__version__,
    }


def _cpu_name() -> str:
    """Return the name of the processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


@dataclass(frozen=True)
class CpuClock:
    """CPU seconds used so far: by a process group, by all processes, and stolen by the host."""

    at_s: float
    group_s: float
    busy_s: float
    stolen_s: float

    def since(self, before: "CpuClock") -> dict[str, float]:
        """Return the cores used on average, which tell a disturbed comparison from a fair one."""
        passed_s = max(1e-9, self.at_s - before.at_s)
        group = (self.group_s - before.group_s) / passed_s
        busy = (self.busy_s - before.busy_s) / passed_s
        return {
            "side_cores": round(group, 2),
            "other_cores": round(max(0.0, busy - group), 2),
            "stolen_cores": round((self.stolen_s - before.stolen_s) / passed_s, 2),
        }


def cpu_clock(group: int, at_s: float) -> CpuClock:
    """Read the CPU clocks. A dead child's time counts with the process that waited for it."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _, _, irq, soft, stolen = fields
    ticks = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:  # the process has ended since
            continue
        if int(words[2]) == group:
            ticks += sum(int(word) for word in words[11:15])
    busy = user + nice + system + irq + soft
    return CpuClock(at_s, ticks / _TICKS_PER_S, busy / _TICKS_PER_S, stolen / _TICKS_PER_S)
