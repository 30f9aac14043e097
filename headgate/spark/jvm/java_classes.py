"""Java sources of this package, compiled at start by the Janino compiler that ships with Spark."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

UNITS = (("Admission", "JoinTimes", "QueryPlans", "Relations", "SharedPlans"), ("PlanRunner",))
"""What is compiled together. The driver lane, which has most to do with Spark's internals, comes by
itself behind the others: without it all calls are jobs."""

_LOCK = threading.Lock()
_LOADERS: dict[tuple[int, int], tuple[str, Any]] = {}


def java_class(session: SparkSession, name: str) -> Any:
    """Return a class of ours; each unit is compiled once in each JVM.

    Raises:
        Py4JJavaError: this version of Spark lacks something that the unit needs.
    """
    (number,) = (number for number, names in enumerate(UNITS) if name in names)
    with _LOCK:
        package, loader = _compiled(session, number)
    return loader.loadClass(f"{package}.{name}")


def _compiled(session: SparkSession, number: int) -> tuple[str, Any]:
    """Return the package and class loader of a unit, which sees those before it."""
    jvm: Any = session._jvm
    key = id(jvm), number
    if key not in _LOADERS:
        # A package of its own: py4j mistakes two classes of one name for each other.
        package = f"headgate_{uuid4().hex[:8]}"
        parent, imports = jvm.java.lang.Thread.currentThread().getContextClassLoader(), list[str]()
        if number:
            before, parent = _compiled(session, number - 1)
            imports = [f"import {before}.{name};" for name in UNITS[number - 1]]
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(parent)
        compiler.cook(_source(package, UNITS[number], imports))
        _LOADERS[key] = package, compiler.getClassLoader()
    return _LOADERS[key]


def _source(package: str, names: Sequence[str], imports: Sequence[str]) -> str:
    """Return classes as one compilation unit."""
    lines = [
        line
        for name in names
        for line in (Path(__file__).with_name("java") / f"{name}.java").read_text().splitlines()
    ]
    all_imports = dict.fromkeys([*imports, *(line for line in lines if _is_import(line))])
    bodies = [line for line in lines if not _is_import(line)]
    return "\n".join([f"package {package};", *all_imports, *bodies])


def _is_import(line: str) -> bool:
    return line.startswith("import ")
