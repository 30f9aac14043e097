"""The walls between the packages (rooms): which may import which. No list of exceptions."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

HEADGATE = Path(__file__).parents[1] / "headgate"
FILES = sorted(HEADGATE.rglob("*.py"))

CLOCKS = frozenset({"time", "datetime", "sched"})
THREADS = frozenset({"threading", "multiprocessing", "concurrent", "asyncio", "subprocess"})
FILES_AND_SOCKETS = frozenset(
    {"open", "os", "io", "pathlib", "shutil", "tempfile", "sqlite3", "socket", "urllib", "http"}
)
RANDOM = frozenset({"random", "secrets", "uuid", "numpy.random"})
SPARK_INSIDE = frozenset({"_jvm", "_jdf", "_jsparkSession", "_jsc", "_jrdd", "_jc"})
SPARK_CLASS = re.compile(r"\borg[./]apache[./]spark[./](\w+[./$])*[A-Z]")
"""Only headgate/spark/jvm may use these: PySpark's doors into the JVM, and classes of Spark."""

CORE_NEVER = CLOCKS | THREADS | FILES_AND_SOCKETS | RANDOM
"""The core takes arguments and returns answers: no clock, thread, file or random number."""


@dataclass(frozen=True)
class Room:
    """The rules of a room: its imports of ours and of others, and modules that it never uses.

    `inside_functions` may only be imported in a function, `for_types` only under TYPE_CHECKING.
    """

    ours: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    inside_functions: frozenset[str] = frozenset()
    for_types: frozenset[str] = frozenset()


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


OTHERS_OF_SPARK = names("pyspark py4j pyarrow numpy")
OTHERS_OF_SIMULATION = names("numpy numba")
VIRTUAL = CLOCKS | THREADS | RANDOM
POLICY_NEVER = CORE_NEVER | {"logging"}


def spark_room(ours: str, others: str = "") -> Room:
    """Return the rules of a folder of `spark`. Besides `ours`, it may import the leaf modules."""
    leaves = names("access result_files spark.clock spark.json_lines spark.output")
    leaves |= names("spark.time_limit spark.work")
    beside = names("extensions model scheduler metrics workloads")
    return Room(
        ours=frozenset(f"spark.{name}" for name in ours.split()) | leaves | beside,
        others=OTHERS_OF_SPARK | names(others),
    )


def simulation_room(ours: str) -> Room:
    """Return the rules of a folder of `simulation`."""
    beside = names("model scheduler metrics workloads policies.interface compiled")
    return Room(
        ours=frozenset(f"simulation.{name}" for name in ours.split()) | beside,
        others=OTHERS_OF_SIMULATION,
        never=VIRTUAL,
    )


def runtime_room(
    ours: str, for_types: str = "", inside_functions: str = "", others: str = ""
) -> Room:
    """Return the rules of a folder of `runtime`. One file of `live` imports Spark's side."""
    beside = names(
        "access config extensions model language policies scheduler metrics workloads simulation"
    )
    return Room(
        ours=frozenset(f"runtime.{name}" for name in ours.split()) | beside,
        others=names(f"numpy {others}"),
        inside_functions=names(inside_functions),
        for_types=names(for_types),
    )


RUNTIME_LEAVES = "listeners modules pipeline policy_text views"

ROOMS = {
    "headgate": Room(ours=names("extensions model policies metrics.report runtime testing")),
    "testing": Room(ours=names("model runtime"), for_types=names("pyspark")),
    "errors": Room(never=CORE_NEVER),
    "access": Room(never=CLOCKS | THREADS | RANDOM),
    "result_files": Room(never=CLOCKS | THREADS | RANDOM),
    "compiled": Room(others=names("numba")),
    "extensions": Room(for_types=names("pyarrow"), never=CORE_NEVER),
    "model": Room(ours=names("extensions"), others=names("numpy pydantic"), never=CORE_NEVER),
    "language": Room(ours=names("extensions model"), others=names("sqlglot"), never=CORE_NEVER),
    "policies": Room(
        ours=names("model compiled policies.structures policies.methods"),
        others=names("numpy numba"),
        never=POLICY_NEVER,
    ),
    "policies.methods": Room(
        ours=names("model compiled policies.structures policies.interface policies.registry"),
        others=names("numpy numba"),
        never=POLICY_NEVER,
    ),
    "policies.structures": Room(
        ours=names("model compiled"), others=names("numpy numba"), never=POLICY_NEVER
    ),
    "scheduler": Room(
        ours=names(
            "model metrics.stale_time metrics.with_waiting policies.interface"
            " policies.registry compiled"
        ),
        others=names("numpy numba"),
        never=CORE_NEVER,
    ),
    "metrics": Room(ours=names("model"), others=names("numpy"), never=CORE_NEVER),
    "workloads": Room(
        ours=names("model compiled"),
        others=names("numpy pyarrow numba"),
        never=names("time random"),
    ),
    "workloads.testbeds": Room(
        ours=names("model compiled workloads"),
        others=names("numpy pyarrow numba"),
        never=names("time random"),
    ),
    "simulation": simulation_room(""),
    "simulation.world": simulation_room(""),
    "simulation.kernel": simulation_room("world"),
    "simulation.build": simulation_room("kernel world"),
    "simulation.loop": simulation_room("build kernel world"),
    "spark": spark_room(""),
    "spark.room": spark_room("engine sources sinks log jvm"),
    "spark.jvm": spark_room(""),
    "spark.jvm.query": spark_room("jvm"),
    "spark.jvm.lane": spark_room("jvm"),
    "spark.journal": spark_room(""),
    "spark.log": spark_room("journal jvm"),
    "spark.event_time": spark_room("log journal"),
    "spark.sources": spark_room("sources.files log journal jvm", "confluent_kafka"),
    "spark.sources.files": spark_room("log jvm"),
    "spark.sinks": spark_room("sinks.files event_time log journal jvm"),
    "spark.sinks.files": spark_room("log journal jvm"),
    "spark.sharing": spark_room("event_time log jvm"),
    "spark.windows": spark_room("sharing sinks event_time log jvm"),
    "spark.execution": spark_room("windows sinks sharing event_time log journal jvm"),
    "spark.engine": spark_room(
        "execution windows sources sinks sharing event_time log journal jvm"
    ),
    "config": Room(
        ours=names("extensions model workloads"),
        others=names("pydantic yaml"),
        never=THREADS | RANDOM,
    ),
    "runtime": runtime_room("live describe what_if recording results", "pyspark"),
    "runtime.results": Room(ours=names("model result_files"), others=names("pyarrow")),
    "runtime.live": runtime_room(
        f"members run describe recording {RUNTIME_LEAVES}", "pyspark pyarrow"
    ),
    "runtime.members": runtime_room("run views", "pyspark pyarrow"),
    "runtime.run": runtime_room(
        "run.spark_room recording listeners", "pyspark pyarrow", others="opentelemetry"
    ),
    "runtime.run.spark_room": runtime_room("", "pyspark pyarrow", "spark.room"),
    "runtime.describe": runtime_room("recording"),
    "runtime.what_if": runtime_room(f"recording {RUNTIME_LEAVES}"),
    "runtime.recording": runtime_room("", others="pydantic pydantic_core"),
    "experiments": Room(
        ours=names("experiments.papers model runtime simulation spark workloads metrics"),
        others=names("plotly pyspark"),
    ),
    "experiments.papers": Room(ours=names("experiments metrics model workloads")),
    "server": Room(
        ours=names("access runtime metrics policies"),
        others=names("fastapi starlette uvicorn h11 numpy prometheus_client"),
    ),
    "cli": Room(
        ours=names("access runtime config server experiments policies metrics"),
        others=names("typer rich"),
    ),
}
"""The rooms by their dotted names. A folder inside a room has its own rules."""


@dataclass(frozen=True)
class Import:
    module: str
    line: int
    inside_function: bool
    for_types: bool


def room_of(file: Path) -> str:
    """Return the innermost room of a file; headgate/__init__.py is its own room."""
    parts = [part.removesuffix(".py") for part in file.relative_to(HEADGATE).parts]
    if parts == ["__init__"]:
        return "headgate"
    prefixes = [".".join(parts[:size]) for size in range(len(parts), 0, -1)]
    return next((prefix for prefix in prefixes if prefix in ROOMS), parts[0])


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(HEADGATE).with_suffix("").parts)


MODULES = frozenset(map(module_of, FILES))


@cache
def files_of(room: str) -> frozenset[str]:
    """Return the modules that lie in a room itself, not in a folder inside it."""
    return frozenset(module_of(file) for file in FILES if room_of(file) == room)


def imports_of(text: str, folder: str) -> Iterator[Import]:
    """Yield every import in a text, at any depth. `folder` is the package that a dot means."""
    yield from _imports(ast.parse(text), folder.split("."), False, False)


def _imports(node: ast.AST, folder: list[str], function: bool, for_types: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, node.lineno, function, for_types)
    elif isinstance(node, ast.ImportFrom):
        above = folder[: len(folder) + 1 - node.level] if node.level else []
        for alias in node.names:
            module = ".".join([*above, *filter(None, [node.module]), alias.name])
            yield Import(module, node.lineno, function, for_types)
    function |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    typed = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    for child in ast.iter_child_nodes(node):
        only_types = typed and child not in getattr(node, "orelse", [])
        yield from _imports(child, folder, function, for_types or only_types)


def within(module: str, allowed: frozenset[str]) -> bool:
    """Return True if a module is an allowed one, or inside an allowed one."""
    return any(module == prefix or module.startswith(f"{prefix}.") for prefix in allowed)


def may_import(statement: Import, room: str) -> bool:
    rules, top = ROOMS[room], statement.module.split(".")[0]
    if top == "headgate":
        allowed = rules.ours | files_of(room) | {"errors"}
        allowed |= rules.inside_functions if statement.inside_function else frozenset()
        allowed |= rules.for_types if statement.for_types else frozenset()
        return within(statement.module.removeprefix("headgate."), allowed)
    if within(statement.module, rules.never):
        return False
    allowed = rules.others | (rules.for_types if statement.for_types else frozenset())
    return top in sys.stdlib_module_names or within(statement.module, allowed)


def faults_of(text: str, room: str, folder: str) -> Iterator[str]:
    for statement in imports_of(text, folder):
        if not may_import(statement, room):
            yield f"line {statement.line} imports {statement.module}"
    never = ROOMS[room].never
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in never:
            yield f"line {node.lineno} calls {ast.unparse(node.func)}"
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "np.random" and never & RANDOM:
            yield f"line {node.lineno} uses np.random"


def insides_of(source: str) -> Iterator[str]:
    """Yield the uses of what is inside Spark: names that lead there, and names of its classes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            if node.attr in SPARK_INSIDE:
                yield f"line {node.lineno} touches {node.attr}"
            if SPARK_CLASS.search(ast.unparse(node)):
                yield f"line {node.lineno} names {ast.unparse(node)}"
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and (text in SPARK_INSIDE or SPARK_CLASS.search(text)):
            yield f"line {node.lineno} names {text}"


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(HEADGATE)) for file in FILES])
def test_a_file_imports_only_what_its_room_may(file: Path) -> None:
    room, place = room_of(file), file.relative_to(HEADGATE.parent)
    assert room in ROOMS, f"{place} is in no room of the table"
    assert list(faults_of(file.read_text(), room, ".".join(place.parts[:-1]))) == []


def imported_modules(file: Path) -> set[str]:
    """Return the modules of ours that a file imports, types included."""
    place = file.relative_to(HEADGATE.parent)
    imported: set[str] = set()
    for statement in imports_of(file.read_text(), ".".join(place.parts[:-1])):
        name = statement.module.removeprefix("headgate.")
        imported |= {name, name.rpartition(".")[0]} & MODULES
    return imported - {module_of(file)}


def test_no_modules_import_each_other() -> None:
    graph = {module_of(file): imported_modules(file) for file in FILES}
    assert sum(map(len, graph.values())) > 500
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from error


def test_only_the_wall_around_spark_reaches_inside() -> None:
    wall = HEADGATE / "spark" / "jvm"
    outside = [file for file in FILES if wall not in file.parents]
    faults = {
        str(file.relative_to(HEADGATE)): uses
        for file in outside
        if (uses := list(insides_of(file.read_text())))
    }
    assert faults == {}
    assert sum(1 for file in FILES for _ in insides_of(file.read_text())) > 10
    assert [file for file in HEADGATE.rglob("*.java") if wall not in file.parents] == []


def test_simulation_starts_without_spark() -> None:
    program = (
        "import sys, headgate, headgate.simulation.loop.engine, headgate.config, headgate.runtime;"
        "print(sorted({'pyspark', 'py4j', 'typer', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
