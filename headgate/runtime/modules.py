"""Import of a user's modules, so that what they register can be used by name."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from headgate.errors import ConfigRefused


def load_module(name: str) -> ModuleType:
    """Import a file, or a module by its dotted name; the working directory is searched first.

    Raises:
        ConfigRefused: there is no such file or module, or its import fails.
    """
    try:
        return _from_file(Path(name)) if name.endswith(".py") else _by_name(name)
    except Exception as error:  # whatever the user's code raises
        raise ConfigRefused(
            path="module", key="name", value=name, expected=f"a module: {_reason(name, error)}"
        ) from error


def _from_file(file: Path) -> ModuleType:
    if not file.is_file():
        raise FileNotFoundError(file)
    stem = file.stem
    spec = importlib.util.spec_from_file_location(stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(stem)
    sys.modules[stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[stem]
        if before is not None:
            sys.modules[stem] = before
        raise
    return module


def _by_name(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    return importlib.import_module(name)


def _reason(name: str, error: Exception) -> str:
    if isinstance(error, FileNotFoundError) or getattr(error, "name", None) == name:
        return "there is none of that name, in the working directory or installed"
    return f"importing it raises {type(error).__name__}: {error}"
