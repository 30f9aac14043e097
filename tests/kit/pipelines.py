"""A small pipeline file, for the commands."""

from pathlib import Path

import yaml

HOT = {"class": "H", "sql": "SELECT location, ts FROM sensors WHERE temperature > 35"}
ALL = {"class": "N", "sql": "SELECT temperature FROM sensors"}
STATISTICS = {"cost_s": 1e-5, "selectivity": 0.5, "overhead_s": 0.05}
SENSORS = {"format": "headgate", "options": {"rate_per_s": 200}, "arrival_time": "ts"}
SPARK_NOISE = ("WARN", "Traceback", "log4j", "incubator", "org.apache")
"""Words that never appear on a user's screen."""


def pipeline_file(folder: Path, **changes: object) -> str:
    """Write a pipeline of two queries over one stream, with its state in the folder."""
    pipeline = {
        "state": str(folder / "state"),
        "rehearsal_s": 1,
        "spark": {"master": "local[2]"},
        "classes": {"H": 6, "N": 1},
        "streams": {"sensors": SENSORS},
        "queries": {"hot": HOT, "all": ALL},
        **changes,
    }
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline, sort_keys=False))
    return str(file)


def with_statistics() -> dict[str, object]:
    """Return the queries with figures, so that they can be simulated."""
    queries = {"hot": HOT, "all": ALL}
    return {name: {**query, "statistics": STATISTICS} for name, query in queries.items()}
