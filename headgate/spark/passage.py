"""The way of rows into the JVM, through generated code, and back."""

import os
import struct
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.spark.types import ZONE


class Passage:
    """Generated code that rows pass, one after the other, by a single call of the JVM.

    It is a small class of Java (`Passage.java`), which the compiler compiles that Spark brings for
    the code that it generates: a call by py4j takes some tenths of a millisecond, and there would
    be twenty of them.

    Args:
        taken, given: what goes in and comes out, as Spark's types.
        back_as: what comes out, as Arrow's.
    """

    def __init__(
        self,
        session: SparkSession,
        taken: Any,
        codes: Sequence[Any],
        given: Any,
        back_as: pa.Schema,
    ) -> None:
        self._java = _compiled(session._jvm).newInstance()
        self._java.between(taken, given, ZONE)
        for code in codes:
            self._java.add(code)
        self._back_as = back_as

    def __call__(self, taken: pa.Table) -> pa.Table:
        """Gives what the code makes of rows, in their order."""
        with _files() as (there, back):
            with pa.OSFile(there, "wb") as file, pa.ipc.new_stream(file, taken.schema) as out:
                out.write_table(taken)
            self._java.carry(there, back)
            return _read(back, self._back_as)


@cache
def _compiled(jvm: Any) -> Any:
    # Two workers may come here at once, and py4j takes classes of one name for one class.
    name = f"Passage{uuid4().hex}"
    source = Path(__file__).with_name("Passage.java").read_text()
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(source.replace("class Passage", f"class {name}"))
    return compiler.getClassLoader().loadClass(name)


def _read(back: str, schema: pa.Schema) -> pa.Table:
    with open(back, "rb") as file:
        data = file.read()
    batches, at = [], 0
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        message = pa.py_buffer(memoryview(data)[at + 4 : at + 4 + size])
        batches.append(pa.ipc.read_record_batch(message, schema))
        at += 4 + size
    return pa.Table.from_batches(batches, schema=schema)


class _files:
    """Two files, there and back, in memory where the machine has such a directory."""

    _ROOM = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()

    def __enter__(self) -> tuple[str, str]:
        name = f"{self._ROOM}/headgate-{uuid4().hex}"
        self._names = f"{name}-there", f"{name}-back"
        return self._names

    def __exit__(self, *_: object) -> None:
        for name in self._names:
            with suppress(FileNotFoundError):
                os.unlink(name)
