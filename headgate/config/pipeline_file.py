"""The pipeline file as a run uses it: its values, those of the environment, and flags."""

from collections.abc import Mapping
from pathlib import Path as File
from typing import Any

from headgate.config.mistakes import Mistakes
from headgate.config.pipeline import Pipeline
from headgate.config.validation import Validation
from headgate.config.yaml_file import read_document


def read_pipeline(
    path: str | File, environment: Mapping[str, str] | None = None, **flags: Any
) -> Pipeline:
    """Read and check a pipeline file. Relative directories are relative to the working directory.

    A value comes from the defaults, the file, the environment (`HEADGATE_STATE` for `state`) or a
    flag; the last of these that has the value wins.

    Raises:
        ConfigRefused: the file is missing, is not YAML, or values are wrong; names all of them.
    """
    examination = examine(path, environment, **flags)
    if examination.mistakes or examination.pipeline is None:
        raise Mistakes(examination.sorted_mistakes())
    return examination.pipeline


def examine(
    path: str | File, environment: Mapping[str, str] | None = None, **flags: Any
) -> Validation:
    """Read a pipeline file as `read_pipeline` does, and return all its mistakes.

    Raises:
        ConfigRefused: the file is missing, is not YAML, or is no mapping.
    """
    document = read_document(path)
    outside = {} if environment is None else environment
    changes = {
        key: outside[variable]
        for key in Pipeline.model_fields
        if (variable := f"HEADGATE_{key.upper()}") in outside
        and key not in ("streams", "views", "queries")
    }
    examination = Validation(document, changes, flags)
    if (pipeline := examination.pipeline) is not None:
        pipeline.origins.update(dict.fromkeys(document.data, str(path)))
        pipeline.origins.update({key: f"HEADGATE_{key.upper()}" for key in changes})
        pipeline.origins.update(dict.fromkeys(flags, "flag"))
    return examination
