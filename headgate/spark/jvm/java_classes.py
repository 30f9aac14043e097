"""The Java classes of this package, compiled at start by Janino, a compiler that Spark ships."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

UNITS = (
    ("Admission", "JoinTimes", "QueryPlans", "Relations", "RowPlans", "SharedPlans"),
    ("PlanRunner",),
    ("CpuTime",),
)
"""Classes that are compiled together. `PlanRunner` is a unit of its own because it depends most on
Spark's internals: if it does not compile, the others still work and every call is a Spark job.
Without `CpuTime`, calls are charged by the clock."""

_LOCK = threading.Lock()
_LOADERS: dict[tuple[Any, int], tuple[str, Any]] = {}  # by JVM and unit


def java_class(session: SparkSession, name: str) -> Any:
    """Return a Java class of this package; its unit is compiled once per JVM.

    Raises:
        Py4JJavaError: this version of Spark lacks something that the unit needs.
    """
    (number,) = (number for number, names in enumerate(UNITS) if name in names)
    with _LOCK:
        package, loader = _compiled(session, number)
    return loader.loadClass(f"{package}.{name}")


def _compiled(session: SparkSession, number: int) -> tuple[str, Any]:
    """Return the package and the class loader of a unit, which can use the units before it."""
    jvm: Any = session._jvm
    key = jvm, number
    if key not in _LOADERS:
        # Each unit gets its own package name: py4j confuses two classes that have the same name.
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
    """Return the source of several classes as one compilation unit."""
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
