"""Java sources of this package, compiled at start by the Janino compiler that ships with Spark."""

import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

SOURCES = ("Admission", "JoinTimes", "PlanRunner", "QueryPlans", "SharedPlans")

_LOCK = threading.Lock()
_LOADERS: dict[int, tuple[str, Any]] = {}


def java_class(session: SparkSession, name: str) -> Any:
    """Return a class of ours; all are compiled together, once in each JVM."""
    jvm: Any = session._jvm
    with _LOCK:
        if id(jvm) not in _LOADERS:
            # A package of its own: py4j mistakes two classes of one name for each other.
            package = f"headgate_{uuid4().hex[:8]}"
            loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(loader)
            compiler.cook(_unit(package))
            _LOADERS[id(jvm)] = package, compiler.getClassLoader()
        package, loader = _LOADERS[id(jvm)]
    return loader.loadClass(f"{package}.{name}")


def _unit(package: str) -> str:
    """Return all sources as one compilation unit."""
    imports: dict[str, None] = {}
    bodies = []
    for name in SOURCES:
        lines = Path(__file__).with_name(f"{name}.java").read_text().splitlines()
        imports |= dict.fromkeys(line for line in lines if line.startswith("import "))
        bodies += [line for line in lines if not line.startswith("import ")]
    return "\n".join([f"package {package};", *imports, *bodies])
